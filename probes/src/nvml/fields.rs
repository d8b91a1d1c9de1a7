//! Field values: many small readings in one driver call.
//!
//! The wrapper always asks with scope 0 and refuses two of the seven value types, so this goes to
//! the library directly. Each value carries its own return code. Numbers 251 to 273 moved with
//! driver 580.82, see [`reason_time_ids`].

use nvml_wrapper_sys::bindings as sys;

use super::codes;
use super::session::{Device, Zeroed, call};
use crate::reading::{Absence, Reading};

/// The scope that stands for the sum over all links.
pub(crate) const ALL_LINKS: u32 = u32::MAX;

/// A number of a field's own type.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

/// A set of fields that are asked for together; those that this GPU does not have are left out
/// after the first time.
pub(crate) struct FieldSet {
    wanted: Vec<(u32, u32)>,
    absent: Vec<((u32, u32), Absence)>,
    buffer: Vec<sys::nvmlFieldValue_t>,
    found: Vec<((u32, u32), Result<Number, Absence>)>,
    failure: Option<Absence>,
}

impl FieldSet {
    /// Fields by number and scope.
    pub(crate) fn new(wanted: Vec<(u32, u32)>) -> Self {
        Self { wanted, absent: vec![], buffer: vec![], found: vec![], failure: None }
    }

    /// Asks again for those that were left out.
    pub(crate) fn ask_all_again(&mut self) {
        self.wanted.extend(self.absent.drain(..).map(|(key, _)| key));
    }

    /// One call for all.
    pub(crate) fn read(&mut self, device: &Device) {
        self.found.clear();
        self.failure = None;
        if self.wanted.is_empty() {
            return;
        }
        self.buffer.clear();
        self.buffer.extend(self.wanted.iter().map(|(field, scope)| {
            let mut value = sys::nvmlFieldValue_t::zeroed();
            value.fieldId = *field;
            value.scopeId = *scope;
            // A value that the driver leaves untouched must not read as success.
            value.nvmlReturn = codes::NOT_SUPPORTED;
            value
        }));
        let count = i32::try_from(self.buffer.len()).unwrap_or(i32::MAX);
        let values = self.buffer.as_mut_ptr();
        if let Err(absence) =
            call!(device, nvmlDeviceGetFieldValues(device.handle(), count, values))
        {
            self.failure = Some(absence);
            return;
        }
        self.found.extend(self.buffer.iter().map(|v| ((v.fieldId, v.scopeId), decode(v))));
        let absent = &mut self.absent;
        self.found.retain(|(key, value)| match value {
            Err(absence @ (Absence::Unsupported | Absence::TooOld)) => {
                absent.push((*key, absence.clone()));
                false
            }
            _ => true,
        });
        self.wanted.retain(|key| !absent.iter().any(|(gone, _)| gone == key));
    }

    fn find(&self, field: u32, scope: u32) -> Result<Number, Absence> {
        let key = (field, scope);
        if let Some((_, absence)) = self.absent.iter().find(|(at, _)| *at == key) {
            return Err(absence.clone());
        }
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        match self.found.iter().find(|(at, _)| *at == key) {
            Some((_, value)) => value.clone(),
            None => Err(Absence::NotRead),
        }
    }

    /// A count.
    pub(crate) fn unsigned(&self, field: u32, scope: u32) -> Reading<u64> {
        self.find(field, scope)
            .and_then(|number| match number {
                Number::Unsigned(value) => Ok(value),
                Number::Signed(value) => u64::try_from(value).ok().ok_or(Absence::OutOfRange),
                Number::Float(_) => Err(Absence::OutOfRange),
            })
            .into()
    }

    /// A number below 2^32, such as a mode.
    pub(crate) fn small(&self, field: u32, scope: u32) -> Reading<u32> {
        self.unsigned(field, scope).and_then(|value| {
            u32::try_from(value).map_or(Reading::Absent(Absence::OutOfRange), Reading::Value)
        })
    }

    /// A signed number.
    pub(crate) fn signed(&self, field: u32, scope: u32) -> Reading<i64> {
        self.find(field, scope)
            .and_then(|number| match number {
                Number::Signed(value) => Ok(value),
                // Some drivers answer a signed field as unsigned 32 bits.
                Number::Unsigned(value) => u32::try_from(value)
                    .map(|value| i64::from(value.cast_signed()))
                    .ok()
                    .ok_or(Absence::OutOfRange),
                Number::Float(_) => Err(Absence::OutOfRange),
            })
            .into()
    }

    /// Yes or no.
    pub(crate) fn flag(&self, field: u32) -> Reading<bool> {
        self.unsigned(field, 0).map(|value| value != 0)
    }
}

fn decode(value: &sys::nvmlFieldValue_t) -> Result<Number, Absence> {
    if value.nvmlReturn != 0 {
        return Err(codes::absence(value.nvmlReturn));
    }
    // With ECC off the driver may leave fields 1 to 31 untouched and still say success.
    if value.timestamp == 0 && value.fieldId <= 31 {
        return Err(Absence::Unsupported);
    }
    let raw = value.value;
    // SAFETY: the type says which member was written; all members are plain numbers.
    unsafe {
        Ok(match value.valueType {
            0 if raw.dVal.is_finite() => Number::Float(raw.dVal),
            0 => return Err(Absence::NoData),
            1 => Number::Unsigned(u64::from(raw.uiVal)),
            2 => Number::Unsigned(raw.ulVal),
            3 => Number::Unsigned(raw.ullVal),
            4 => Number::Signed(raw.sllVal),
            5 => Number::Signed(i64::from(raw.siVal)),
            6 => Number::Unsigned(u64::from(raw.usVal)),
            other => return Err(Absence::Failed { what: format!("value type {other}") }),
        })
    }
}

/// Fields of the time under software thermal, hardware thermal and power brake, by driver version:
/// they were renumbered between CUDA 13.0 and its first update.
pub(crate) fn reason_time_ids(driver_version: &str) -> [u32; 3] {
    let mut parts = driver_version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if version >= (580, 82) { [269, 270, 271] } else { [251, 252, 253] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_fields_follow_the_driver() {
        assert_eq!(reason_time_ids("580.65.06"), [251, 252, 253]);
        assert_eq!(reason_time_ids("580.82"), [269, 270, 271]);
        assert_eq!(reason_time_ids("590.48.01"), [269, 270, 271]);
        assert_eq!(reason_time_ids("garbage"), [251, 252, 253]);
    }

    #[test]
    fn every_value_type_is_decoded_and_a_foreign_one_is_a_reason() {
        let mut value = sys::nvmlFieldValue_t::zeroed();
        value.timestamp = 1;
        value.value.sllVal = -8;
        value.valueType = 5;
        assert_eq!(decode(&value), Ok(Number::Signed(-8)));
        value.valueType = 4;
        assert_eq!(decode(&value), Ok(Number::Signed(-8)));
        value.valueType = 9;
        assert!(matches!(decode(&value), Err(Absence::Failed { .. })));
        value.valueType = 0;
        value.value.dVal = f64::NAN;
        assert_eq!(decode(&value), Err(Absence::NoData));
    }

    #[test]
    fn an_untouched_ecc_field_is_unsupported() {
        let mut value = sys::nvmlFieldValue_t::zeroed();
        value.fieldId = 3;
        assert_eq!(decode(&value), Err(Absence::Unsupported));
    }
}

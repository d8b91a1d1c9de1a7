//! `nvmlDeviceGetFieldValues`: readings by number. Each value has its own code, type, time stamp
//! and cost; `scopeId` picks the link, lane or power domain.
//!
//! Numbers 251 to 273 were dealt anew between CUDA 13.0 and its Update 1: drivers from 580.82 on
//! answer the three slowdown counters at 269 to 271, older ones at 251 to 253.

use nvml_wrapper_sys::bindings::{nvmlFieldValue_t, nvmlValue_t};

use crate::call::{Ask, edit, element, get};
use crate::codes::{Answer, Code, INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::ecc::{self, Counter};

/// A value with the type it comes in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    U32(u32),
    UnsignedLong(u64),
    U64(u64),
    I32(i32),
}

impl Value {
    fn falsified(self, lie: f64) -> Self {
        match self {
            Self::U32(_) => Self::U32(lie as u32),
            Self::UnsignedLong(_) => Self::UnsignedLong(lie as u64),
            Self::U64(_) => Self::U64(lie as u64),
            Self::I32(_) => Self::I32(lie as i32),
        }
    }

    fn typed(self) -> (u32, nvmlValue_t) {
        // All eight bytes are defined, so that a caller who reads the wrong member sees numbers.
        let mut value = nvmlValue_t { ullVal: 0 };
        match self {
            Self::U32(v) => {
                value.uiVal = v;
                (1, value)
            }
            Self::UnsignedLong(v) => (2, nvmlValue_t { ulVal: v }),
            Self::U64(v) => (3, nvmlValue_t { ullVal: v }),
            Self::I32(v) => {
                value.siVal = v;
                (5, value)
            }
        }
    }
}

/// `scopeId` for the sum over all links.
const ALL: u32 = u32::MAX;

/// Whether a driver counts by the numbers of CUDA 13.0 Update 1.
fn renumbered(driver: &str) -> bool {
    let mut parts = driver.split('.').map(|part| part.parse().unwrap_or(0));
    let version: (u32, u32) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    version >= (580, 82)
}

fn link(ask: &Ask, scope: u32) -> Answer<Option<u32>> {
    match scope {
        _ if ask.gpu.spec.nvlink.links == 0 => Err(NOT_SUPPORTED),
        ALL => Ok(None),
        link if link < ask.gpu.spec.nvlink.links => Ok(Some(link)),
        _ => Err(INVALID_ARGUMENT),
    }
}

fn when(has: bool, value: Value) -> Answer<Value> {
    if has { Ok(value) } else { Err(NOT_SUPPORTED) }
}

/// Nanoseconds of a clock reason.
fn reason(ask: &Ask, bit: u64) -> Value {
    Value::U64(ask.reason_nanoseconds(bit))
}

fn milliwatts(watts: f64) -> Value {
    Value::U32((watts * 1000.0) as u32)
}

fn power_limit(ask: &Ask, watts: f64) -> Answer<Value> {
    when(ask.gpu.spec.power_watts.max > 0.0, milliwatts(watts))
}

/// T.Limit thresholds, from Ada on: degrees relative to the limit, signed.
fn t_limit(ask: &Ask, degrees: i32) -> Answer<Value> {
    when(ask.gpu.spec.architecture >= 8 && ask.gpu.spec.datacenter, Value::I32(degrees))
}

/// The field's value as the product and the moment have it.
#[allow(clippy::too_many_lines, reason = "one row a field, in order of their numbers")]
#[allow(clippy::match_same_arms, reason = "rows are kept in order of their numbers")]
pub(crate) fn read(ask: &Ask, id: u32, scope: u32) -> Answer<Value> {
    let spec = &ask.gpu.spec;
    let renumbered = renumbered(ask.site.machine.driver_version(ask.t));
    let blackwell = spec.architecture >= 10;
    let ampere = spec.architecture >= 7;
    match id {
        1 | 2 => when(ecc::has(ask), Value::U32(1)),
        3..=28 => Counter::of_field(id)
            .map_or(Err(NOT_SUPPORTED), |counter| ecc::count(ask, counter).map(Value::U64)),
        29..=31 | 92 | 93 => when(spec.retired_pages, Value::U32(0)),
        32..=37 | 39..=44 | 46..=51 | 53..=58 => {
            // Links 0 to 5 of the older error counters: flit CRC, data CRC, replay, recovery.
            let (link, replayed) = ((id - 32) % 7, matches!((id - 32) / 7, 0 | 2));
            let errors = if replayed { ask.nvlink_errors(link) } else { 0 };
            when(link < spec.nvlink.links && !blackwell, Value::U64(errors))
        }
        38 | 45 | 52 | 59 | 160 => {
            link(ask, ALL)?;
            let first = (0..spec.nvlink.links).map(|link| ask.nvlink_errors(link)).sum();
            when(!blackwell, Value::U64(if matches!(id, 38 | 52) { first } else { 0 }))
        }
        74 => Ok(reason(ask, 0x4)),
        75 => Ok(reason(ask, 0x20 | 0x40)),
        76 => Ok(reason(ask, 0x10)),
        77 | 79..=81 => Ok(Value::U64(0)),
        78 => Ok(reason(ask, 0x1)),
        82 => when(spec.memory_temperature, Value::U32(ask.memory_temperature() as u32)),
        83 | 191 => when(spec.architecture >= 5, Value::U64((ask.energy() * 1000.0) as u64)),
        91 => when(spec.nvlink.links > 0, Value::U32(spec.nvlink.links)),
        94 => when(spec.pcie.width > 0, Value::U32(ask.pcie_replays() as u32)),
        95 => when(spec.pcie.width > 0, Value::U32(0)),
        138..=141 => {
            let kib = ask.nvlink_kib(link(ask, scope)?);
            // Raw counts what the protocol adds.
            let overhead = if id >= 140 { 1.12 } else { 1.0 };
            let direction = if id.is_multiple_of(2) { 1.0 } else { 0.98 };
            when(!blackwell, Value::U64((kib * overhead * direction) as u64))
        }
        142..=145 => {
            let series = match id {
                142 => &spec.remapped_corrected,
                143 => &spec.remapped_uncorrected,
                144 => &spec.remap_pending,
                _ => &spec.remap_failed,
            };
            let has = ampere && spec.remap_banks > 0 && spec.mig.is_empty();
            when(has, Value::U32(ask.value(series.as_ref()) as u32))
        }
        147 => {
            let up = (0..spec.nvlink.links).filter(|link| ask.nvlink_up(*link)).count();
            when(spec.nvlink.switch, Value::U32(up as u32))
        }
        161..=163 => {
            let link = link(ask, scope)?.unwrap_or(0);
            let errors = if id == 161 { ask.nvlink_errors(link) } else { 0 };
            when(!blackwell, Value::U64(errors))
        }
        164 => {
            let up = link(ask, scope)?.is_none_or(|link| ask.nvlink_up(link));
            Ok(Value::U32(if up { spec.nvlink.mbps } else { 0 }))
        }
        165 => {
            let up = link(ask, scope)?.is_none_or(|link| ask.nvlink_up(link));
            Ok(Value::U32(u32::from(up)))
        }
        166 => link(ask, scope).map(|_| Value::U32(spec.nvlink.version)),
        169 | 173..=182 => when(spec.pcie.width > 0 && ampere, Value::U32(0)),
        183 => {
            if scope >= spec.pcie.width {
                return Err(INVALID_ARGUMENT);
            }
            when(ampere, Value::U32(0))
        }
        185 | 186 => match scope {
            0 => Ok(milliwatts(ask.power())),
            1 | 2 => Err(NOT_SUPPORTED),
            _ => Err(INVALID_ARGUMENT),
        },
        187 => power_limit(ask, spec.power_watts.min),
        188 | 189 => power_limit(ask, spec.power_watts.max),
        190 | 192 => power_limit(ask, ask.power_limit()),
        193 => t_limit(ask, -8),
        194 => t_limit(ask, -2),
        195 => when(spec.memory_temperature && spec.architecture >= 8, Value::I32(0)),
        196 => t_limit(ask, 0),
        197 => when(ampere && spec.pcie.width > 0, Value::U64(ask.pcie_bytes().0)),
        198 => when(ampere && spec.pcie.width > 0, Value::U64(ask.pcie_bytes().1)),
        199 => when(spec.mig_max > 0, Value::U32(1)),
        201..=204 => {
            let bytes = ask.nvlink_kib(link(ask, scope)?) * 1024.0;
            // 201 and 203 count packets, taken as 256 bytes each.
            let value = if id % 2 == 1 { bytes / 256.0 } else { bytes };
            when(blackwell, Value::U64(value as u64))
        }
        206..=215 | 219..=222 | 235..=250 | 289..=295 => {
            let link = link(ask, scope)?.unwrap_or(0);
            let errors = if id == 208 { ask.nvlink_errors(link) } else { 0 };
            when(blackwell, Value::U64(errors))
        }
        228 | 229 => when(spec.pcie.width > 0, Value::U32(0)),
        230 => when(
            spec.datacenter && renumbered_action(ask),
            Value::U32(ask.value(spec.recovery_action.as_ref()) as u32),
        ),
        251..=253 if !renumbered => Ok(slowdown(ask, id - 251)),
        269..=271 if renumbered => Ok(slowdown(ask, id - 269)),
        254 | 255 if !renumbered => Ok(Value::U64(0)),
        272 | 273 if renumbered => Ok(Value::U64(0)),
        274 => when(spec.datacenter && spec.architecture >= 9, Value::U32(100)),
        _ => Err(NOT_SUPPORTED),
    }
}

/// The recovery action came with R570.
fn renumbered_action(ask: &Ask) -> bool {
    let driver = ask.site.machine.driver_version(ask.t);
    driver.split('.').next().and_then(|major| major.parse::<u32>().ok()).unwrap_or(0) >= 570
}

/// Software thermal, hardware thermal, hardware power brake.
fn slowdown(ask: &Ask, which: u32) -> Value {
    reason(ask, [0x20, 0x40, 0x80][which as usize % 3])
}

fn answer(ask: &Ask, id: u32, scope: u32) -> Answer<Value> {
    let honest = match ask.gpu.fields.get(&id) {
        // An override keeps the type the field has; a field the product lacks is a 64-bit count.
        Some(series) => {
            Ok(read(ask, id, scope).unwrap_or(Value::U64(0)).falsified(series.at(ask.t)))
        }
        None => read(ask, id, scope),
    };
    honest.map(|value| ask.lie.map_or(value, |lie| value.falsified(lie)))
}

device_calls! {
    fn nvmlDeviceGetFieldValues(ask, count: i32, values: *mut nvmlFieldValue_t) {
        if values.is_null() || count <= 0 {
            return Err(INVALID_ARGUMENT);
        }
        let stamp = ask.site.unix_us(ask.t);
        let cost = ask.site.machine.latency_us("nvmlDeviceGetFieldValues") / f64::from(count);
        for position in 0..count as usize {
            let at = element(values, position);
            let wanted = get(at)?;
            // A flaw of the real library: with ECC switched off it leaves these untouched.
            if ask.gpu.spec.ecc == Some(false) && (1..=31).contains(&wanted.fieldId) {
                continue;
            }
            let answer = answer(ask, wanted.fieldId, wanted.scopeId);
            edit(at, |field| {
                field.timestamp = stamp as i64;
                field.latencyUsec = cost as i64;
                match answer {
                    Ok(value) => {
                        (field.valueType, field.value) = value.typed();
                        field.nvmlReturn = 0;
                    }
                    Err(Code(code)) => field.nvmlReturn = code,
                }
            })?;
        }
        Ok(())
    }
}

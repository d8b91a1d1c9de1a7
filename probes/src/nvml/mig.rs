//! MIG instances: each is a device of its own with its own memory.
//!
//! Slots may be empty. Numeric instance ids are reused at once after a change, so an instance is known
//! by its UUID. Instances of one GPU instance share its memory figures.

use nvml_wrapper_sys::bindings as sys;
use serde::{Deserialize, Serialize};

use super::session::{Device, Zeroed, call};
use crate::reading::{Absence, Reading};

/// What makes a device a MIG instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MigInstance {
    /// UUID of the GPU.
    pub parent_uuid: String,
    /// GPU instance.
    pub gpu_instance: Reading<u32>,
    /// Compute instance.
    pub compute_instance: Reading<u32>,
    /// Compute slices.
    pub compute_slices: Reading<u32>,
    /// `3g.40gb`, from the slices and the memory.
    pub profile: Reading<String>,
}

impl MigInstance {
    /// `g1.c0`.
    pub fn label(&self) -> String {
        let number = |reading: &Reading<u32>| reading.get().map_or("?".into(), |n| n.to_string());
        format!("g{}.c{}", number(&self.gpu_instance), number(&self.compute_instance))
    }
}

/// The instances of a GPU, with the device and what makes it one. Empty slots are passed over.
pub(crate) fn read_instances<'s>(
    device: &Device<'s>,
    parent_uuid: &str,
) -> Result<Vec<(Device<'s>, MigInstance)>, Absence> {
    let mut most = 0;
    call!(device, nvmlDeviceGetMaxMigDeviceCount(device.handle(), &raw mut most))?;
    let mut instances = Vec::new();
    for slot in 0..most.min(64) {
        let mut handle = std::ptr::null_mut();
        match call!(
            device[slot],
            nvmlDeviceGetMigDeviceHandleByIndex(device.handle(), slot, &raw mut handle)
        ) {
            Ok(()) => {
                let instance = device.sibling(handle);
                let facts = read_instance(&instance, parent_uuid);
                instances.push((instance, facts));
            }
            Err(Absence::NoData) => {}
            Err(absence) => return Err(absence),
        }
    }
    Ok(instances)
}

fn read_instance(device: &Device, parent_uuid: &str) -> MigInstance {
    let mut id = 0;
    let gpu_instance =
        call!(device, nvmlDeviceGetGpuInstanceId(device.handle(), &raw mut id)).map(|()| id).into();
    let compute_instance =
        call!(device, nvmlDeviceGetComputeInstanceId(device.handle(), &raw mut id))
            .map(|()| id)
            .into();
    let mut attributes = sys::nvmlDeviceAttributes_t::zeroed();
    let answer: Reading<()> =
        call!(device, nvmlDeviceGetAttributes_v2(device.handle(), &raw mut attributes)).into();
    MigInstance {
        parent_uuid: parent_uuid.into(),
        gpu_instance,
        compute_instance,
        compute_slices: answer.clone().map(|()| attributes.computeInstanceSliceCount),
        profile: answer.map(|()| profile(&attributes)),
    }
}

/// The profile as operators write it: compute slices of the GPU instance and its marketed memory.
fn profile(attributes: &sys::nvmlDeviceAttributes_t) -> String {
    // Instances show a little less than their name: 9984 MiB is the 10gb profile.
    let gigabytes = (attributes.memorySizeMB as f64 / 1000.0).round();
    format!("{}g.{gigabytes:.0}gb", attributes.gpuInstanceSliceCount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_named_as_operators_name_them() {
        let mut attributes = sys::nvmlDeviceAttributes_t::zeroed();
        for (slices, mib, name) in
            [(3, 40448, "3g.40gb"), (2, 20096, "2g.20gb"), (1, 9984, "1g.10gb")]
        {
            attributes.gpuInstanceSliceCount = slices;
            attributes.memorySizeMB = mib;
            assert_eq!(profile(&attributes), name);
        }
    }
}

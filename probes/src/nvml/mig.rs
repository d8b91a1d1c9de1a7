//! MIG instances: each is a device of its own with its own memory.
//!
//! Slots may be empty. Numeric instance ids are reused at once after a change, so an instance is known
//! by its UUID. Instances of one GPU instance share its memory figures.

use serde::{Deserialize, Serialize};

use crate::reading::Reading;

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

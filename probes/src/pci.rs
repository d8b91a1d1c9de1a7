//! NVIDIA GPUs as the PCI bus shows them: no driver and no NVML needed, so a dead GPU is seen too.
//!
//! Truth: `bus/pci/devices` of sysfs, joined with `driver/nvidia/gpus` of procfs where the module
//! is loaded. Traps:
//! - `vendor` in sysfs is what was read when the device was found, and stays good after it died.
//!   Only the config space tells: a device that does not answer reads as all ones. Reading the
//!   config space wakes a suspended device, so a suspended one is left alone.
//! - A dead device's link reads as all ones as well: 63 lanes. Such widths are dropped.
//! - Virtual functions (vGPU) have the class of a GPU; they are parts of one and are left out.
//! - An idle GeForce lowers its link generation by itself: judge links under load only.

mod address;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod information;
mod sysfs;

use serde::{Deserialize, Serialize};

use crate::reading::Reading;

pub(crate) use address::parse_pci_word;
pub use address::{normalize_pci, pci_slot, same_pci_device};
pub use information::{Information, parse_information};
pub(crate) use sysfs::merge_vanished;
pub use sysfs::read_pci_gpus;

/// An NVIDIA GPU as the PCI bus shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PciGpu {
    /// `0000:83:00.0`.
    pub pci: String,
    /// PCI device id, `2330`.
    pub device_id: String,
    /// Bound kernel driver: `nvidia`, `nouveau`, `vfio-pci`; empty for none.
    pub driver: String,
    /// Whether the device answers on the bus. `false`: its config space reads as all ones, or it
    /// was here and is gone from the bus. Absent while it is suspended, which asking would end.
    pub on_bus: Reading<bool>,
    /// UUID from `/proc/driver/nvidia/gpus`, where the module has cached it.
    pub uuid: Reading<String>,
    /// Product name from the same place, without the leading `NVIDIA `.
    pub model: Reading<String>,
    /// N of `/dev/nvidiaN`.
    pub minor: Reading<u32>,
    /// Version of the firmware on the GPU's system processor; unsupported where it runs none.
    pub firmware: Reading<String>,
    /// Current link, `32.0 GT/s PCIe` as generation.
    pub link_generation: Reading<u32>,
    /// Current lanes.
    pub link_width: Reading<u32>,
    /// The most the device can do.
    pub max_link_generation: Reading<u32>,
    /// The most lanes.
    pub max_link_width: Reading<u32>,
    /// NUMA node; absent where the platform names none.
    pub numa_node: Reading<u32>,
    /// CPUs near it.
    pub local_cpus: Reading<String>,
    /// Sum of corrected bus errors (AER).
    pub aer_correctable_total: Reading<u64>,
    /// Sum of uncorrected, non-fatal bus errors.
    pub aer_nonfatal_total: Reading<u64>,
    /// Sum of fatal bus errors.
    pub aer_fatal_total: Reading<u64>,
}

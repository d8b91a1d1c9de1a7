//! What a GPU is, and how it is set up. Read once a generation, modes every 10 s.

use serde::{Deserialize, Serialize};

use crate::reading::Reading;
use crate::snapshot::Stamp;

/// What a GPU is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// When it was read.
    pub read: Stamp,
    /// Serial number of the board; GeForce has none.
    pub serial: Reading<String>,
    /// Part number of the board.
    pub board_part_number: Reading<String>,
    /// Firmware.
    pub vbios: Reading<String>,
    /// PCI device id with vendor, `233010DE`.
    pub pci_device_id: Reading<String>,
    /// `Hopper`, `Ada`, …; a number that this version does not know is written as such.
    pub architecture: Reading<String>,
    /// `9.0`.
    pub compute_capability: Reading<String>,
    /// CUDA cores.
    pub cores: Reading<u32>,
    /// Width of the memory bus.
    pub memory_bus_bits: Reading<u32>,
    /// N of `/dev/nvidiaN`.
    pub minor: Reading<u32>,
    /// Place on the board.
    pub module_id: Reading<u32>,
    /// Firmware of the GPU system processor; must equal the driver.
    pub gsp_firmware: Reading<String>,
    /// Whether that firmware is in use.
    pub gsp_enabled: Reading<bool>,
    /// The driver stays loaded without clients.
    pub persistence: Reading<bool>,
    /// `default`, `prohibited`, `exclusive process`.
    pub compute_mode: Reading<String>,
    /// A display is driven.
    pub display_active: Reading<bool>,
    /// `none`, `HMM`, `ATS`.
    pub addressing: Reading<String>,
    /// `none`, `pass-through`, `vGPU guest`, `vGPU host`.
    pub virtualization: Reading<String>,
    /// MIG is on.
    pub mig_enabled: Reading<bool>,
    /// MIG will be on after a reset.
    pub mig_pending: Reading<bool>,
    /// Confidential computing is on.
    pub confidential: Reading<bool>,
}

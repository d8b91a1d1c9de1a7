//! What a GPU is, and how it is set up. Read once a generation, modes every 10 s.

use std::time::Instant;

use nvml_wrapper_sys::bindings as sys;
use serde::{Deserialize, Serialize};

use super::session::{Device, Zeroed, call, text, version_word};
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

/// Reads a text through a call that takes buffer and length.
macro_rules! text_of {
    ($device:ident, $name:ident, $length:literal) => {{
        let mut buffer = [0; $length];
        call!($device, $name($device.handle(), buffer.as_mut_ptr(), $length))
            .map(|()| text(&buffer))
            .into()
    }};
}

/// UUID, name without the vendor, and bus address as the kernel writes it.
pub(crate) fn read_names(device: &Device) -> (Reading<String>, Reading<String>, Reading<String>) {
    let uuid = read_uuid(device);
    let name: Reading<String> = text_of!(device, nvmlDeviceGetName, 96);
    let name = name.map(|name| name.strip_prefix("NVIDIA ").map_or(name.clone(), str::to_string));
    let pci = pci_info(device).map(|pci| crate::pci::normalize_pci(&text(&pci.busId)));
    (uuid, name, pci)
}

/// UUID alone.
pub fn read_uuid(device: &Device) -> Reading<String> {
    text_of!(device, nvmlDeviceGetUUID, 96)
}

fn pci_info(device: &Device) -> Reading<sys::nvmlPciInfo_t> {
    let mut pci = sys::nvmlPciInfo_t::zeroed();
    call!(device, nvmlDeviceGetPciInfo_v3(device.handle(), &raw mut pci)).map(|()| pci).into()
}

impl Identity {
    /// Reads what does not change.
    pub(crate) fn read_once(&mut self, device: &Device) {
        let start = Instant::now();
        self.serial = text_of!(device, nvmlDeviceGetSerial, 30);
        self.board_part_number = text_of!(device, nvmlDeviceGetBoardPartNumber, 80);
        self.vbios = text_of!(device, nvmlDeviceGetVbiosVersion, 32);
        self.pci_device_id = pci_info(device).map(|pci| format!("{:08X}", pci.pciDeviceId));
        let mut number = 0;
        self.architecture = Reading::from(call!(
            device,
            nvmlDeviceGetArchitecture(device.handle(), &raw mut number)
        ))
        .map(|()| architecture_name(number));
        let (mut major, mut minor) = (0, 0);
        self.compute_capability = Reading::from(call!(
            device,
            nvmlDeviceGetCudaComputeCapability(device.handle(), &raw mut major, &raw mut minor)
        ))
        .map(|()| format!("{major}.{minor}"));
        self.cores = call!(device, nvmlDeviceGetNumGpuCores(device.handle(), &raw mut number))
            .map(|()| number)
            .into();
        self.memory_bus_bits =
            call!(device, nvmlDeviceGetMemoryBusWidth(device.handle(), &raw mut number))
                .map(|()| number)
                .into();
        self.minor = call!(device, nvmlDeviceGetMinorNumber(device.handle(), &raw mut number))
            .map(|()| number)
            .into();
        self.module_id = call!(device, nvmlDeviceGetModuleId(device.handle(), &raw mut number))
            .map(|()| number)
            .into();
        let mut version = [0; 64];
        self.gsp_firmware =
            call!(device, nvmlDeviceGetGspFirmwareVersion(device.handle(), version.as_mut_ptr()))
                .map(|()| text(&version))
                .into();
        let mut default = 0;
        self.gsp_enabled = call!(
            device,
            nvmlDeviceGetGspFirmwareMode(device.handle(), &raw mut number, &raw mut default)
        )
        .map(|()| number != 0)
        .into();
        let mut mode = sys::nvmlDeviceAddressingMode_t::zeroed();
        mode.version = version_word::<sys::nvmlDeviceAddressingMode_t>(1);
        self.addressing = Reading::from(call!(
            device,
            nvmlDeviceGetAddressingMode(device.handle(), &raw mut mode)
        ))
        .map(|()| named(mode.value, &["none", "HMM", "ATS"]));
        self.virtualization = Reading::from(call!(
            device,
            nvmlDeviceGetVirtualizationMode(device.handle(), &raw mut number)
        ))
        .map(|()| {
            let names = ["none", "pass-through", "vGPU guest", "vGPU host", "vSGA host"];
            named(number, &names)
        });
        let mut state = sys::nvmlConfComputeSystemState_t::zeroed();
        self.confidential = call!(device, nvmlSystemGetConfComputeState(&raw mut state))
            .map(|()| state.ccFeature != 0)
            .into();
        self.read = device.stamp(start);
    }

    /// Reads the modes, which an administrator may change.
    pub(crate) fn read_slow(&mut self, device: &Device) {
        let mut number = 0;
        self.persistence =
            call!(device, nvmlDeviceGetPersistenceMode(device.handle(), &raw mut number))
                .map(|()| number != 0)
                .into();
        self.compute_mode = Reading::from(call!(
            device,
            nvmlDeviceGetComputeMode(device.handle(), &raw mut number)
        ))
        .map(|()| {
            let names = ["default", "exclusive thread", "prohibited", "exclusive process"];
            named(number, &names)
        });
        self.display_active =
            call!(device, nvmlDeviceGetDisplayActive(device.handle(), &raw mut number))
                .map(|()| number != 0)
                .into();
        let mut pending = 0;
        let mig =
            call!(device, nvmlDeviceGetMigMode(device.handle(), &raw mut number, &raw mut pending));
        self.mig_enabled = mig.clone().map(|()| number != 0).into();
        self.mig_pending = mig.map(|()| pending != 0).into();
    }
}

/// A number's name in a list, or the number itself.
fn named(number: u32, names: &[&str]) -> String {
    names.get(number as usize).map_or_else(|| format!("mode {number}"), ToString::to_string)
}

/// An architecture's name; one that is newer than this program is written as its number.
fn architecture_name(number: u32) -> String {
    const NAMES: [&str; 14] = [
        "",
        "",
        "Kepler",
        "Maxwell",
        "Pascal",
        "Volta",
        "Turing",
        "Ampere",
        "Ada",
        "Hopper",
        "Blackwell",
        "",
        "",
        "Rubin",
    ];
    match NAMES.get(number as usize) {
        Some(name) if !name.is_empty() => (*name).to_string(),
        _ => format!("architecture {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_architecture_or_mode_is_a_number_not_an_error() {
        assert_eq!(architecture_name(9), "Hopper");
        assert_eq!(architecture_name(11), "architecture 11");
        assert_eq!(named(7, &["none"]), "mode 7");
    }
}

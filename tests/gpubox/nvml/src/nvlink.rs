//! `NVLink`, link by link.

use nvml_wrapper_sys::bindings::{
    nvmlC2cModeInfo_v1_t, nvmlNvLinkInfo_v1_t, nvmlNvLinkInfo_v2_t, nvmlPciInfo_t,
};

use crate::call::{Ask, edit, put, supported, text_field, versioned};
use crate::codes::{Answer, DEPRECATED, INVALID_ARGUMENT, NOT_SUPPORTED};

/// The driver's own maximum: beyond it a link number is wrong, below it is merely not there.
const LINKS: u32 = 18;

fn present(ask: &Ask, link: u32) -> Answer {
    if link >= LINKS.max(ask.gpu.spec.nvlink.links) {
        return Err(INVALID_ARGUMENT);
    }
    supported(link < ask.gpu.spec.nvlink.links)
}

fn remote(ask: &Ask, link: u32, pci: *mut nvmlPciInfo_t) -> Answer {
    present(ask, link)?;
    supported(ask.nvlink_up(link))?;
    // A switch sits on buses of its own; a bridge leads to the neighbouring GPU.
    let (domain, bus, id) = if ask.gpu.spec.nvlink.switch {
        (0, 0x07 + link % 4, 0x22A3_10DE)
    } else {
        let gpus = &ask.site.machine.gpus;
        let peer = gpus.get(ask.gpu.index ^ 1).unwrap_or(ask.gpu);
        (peer.bus.domain, peer.bus.bus, peer.spec.pci_device_id)
    };
    put(
        pci,
        nvmlPciInfo_t {
            busIdLegacy: text_field(&format!("{domain:04X}:{bus:02X}:00.0")),
            domain,
            bus,
            device: 0,
            pciDeviceId: id,
            pciSubSystemId: 0,
            busId: text_field(&format!("{domain:08X}:{bus:02X}:00.0")),
        },
    )
}

device_calls! {
    fn nvmlDeviceGetNvLinkState(ask, link: u32, active: *mut u32) {
        present(ask, link)?;
        ask.put(active, u32::from(ask.nvlink_up(link)))
    }
    fn nvmlDeviceGetNvLinkVersion(ask, link: u32, version: *mut u32) {
        present(ask, link)?;
        ask.put(version, ask.gpu.spec.nvlink.version)
    }
    fn nvmlDeviceGetNvLinkCapability(ask, link: u32, capability: u32, result: *mut u32) {
        present(ask, link)?;
        match capability {
            // P2P, system memory, their atomics; SLI no; valid yes.
            0..=3 | 5 => ask.put(result, 1),
            4 => ask.put(result, 0),
            _ => Err(INVALID_ARGUMENT),
        }
    }
    fn nvmlDeviceGetNvLinkRemotePciInfo_v2(ask, link: u32, pci: *mut nvmlPciInfo_t) {
        remote(ask, link, pci)
    }
    fn nvmlDeviceGetNvLinkRemotePciInfo(ask, link: u32, pci: *mut nvmlPciInfo_t) {
        remote(ask, link, pci)
    }
    fn nvmlDeviceGetNvLinkRemoteDeviceType(ask, link: u32, kind: *mut u32) {
        present(ask, link)?;
        supported(ask.nvlink_up(link))?;
        ask.put(kind, if ask.gpu.spec.nvlink.switch { 2 } else { 0 })
    }
    fn nvmlDeviceGetNvLinkErrorCounter(ask, link: u32, counter: u32, value: *mut u64) {
        present(ask, link)?;
        supported(ask.gpu.spec.architecture < 10)?;
        match counter {
            // The scenario's figure is of CRC flits; every one of them was replayed.
            0 | 2 => ask.put(value, ask.nvlink_errors(link)),
            1 | 3 => ask.put(value, 0),
            4 if ask.gpu.spec.architecture >= 7 => ask.put(value, 0),
            4 => Err(NOT_SUPPORTED),
            _ => Err(INVALID_ARGUMENT),
        }
    }
    fn nvmlDeviceGetNvLinkUtilizationCounter(_ask, _link: u32, _set: u32, _rx: *mut u64, _tx: *mut u64) {
        Err(DEPRECATED)
    }
    fn nvmlDeviceGetNvLinkInfo(ask, info: *mut nvmlNvLinkInfo_v2_t) {
        supported(ask.gpu.spec.architecture >= 10 && ask.gpu.spec.nvlink.links > 0)?;
        if versioned(info, 2).is_ok() {
            return edit(info, |info| {
                info.isNvleEnabled = 0;
                info.firmwareInfo.numValidEntries = 0;
            });
        }
        let info = info.cast::<nvmlNvLinkInfo_v1_t>();
        versioned(info, 1)?;
        edit(info, |info| info.isNvleEnabled = 0)
    }
    fn nvmlDeviceGetC2cModeInfoV(_ask, _info: *mut nvmlC2cModeInfo_v1_t) { Err(NOT_SUPPORTED) }
}

//! Which GPU: count, handles, names, numbers on the board, PCI address.

use std::ffi::{c_char, c_int};

use gpubox::{BusId, Gpu, Site};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlPciInfo_t, nvmlPciInfoExt_v1_t, nvmlPdi_v1_t, nvmlPlatformInfo_v1_t,
    nvmlPlatformInfo_v2_t, nvmlUUID_v1_t,
};

use crate::call::{
    Ask, Call, Handle, edit, get, get_text, put, put_text, supported, text_field, versioned,
};
use crate::codes::{
    Answer, Code, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, VERSION_MISMATCH,
};

fn hand_out(call: &Call, gpu: &Gpu, mig: Option<usize>, device: *mut nvmlDevice_t) -> Answer {
    if gpu.spec.lost_at.is_some_and(|lost| call.t >= lost) {
        return Err(Code(gpu.spec.lost_lookup.unwrap_or(15)));
    }
    put(device, Handle::make(gpu.index, mig))
}

/// Which GPU a UUID means, and which of its instances.
fn of_uuid(site: &'static Site, uuid: &str) -> Option<(usize, Option<usize>)> {
    site.machine.gpus.iter().find_map(|gpu| {
        if gpu.uuid == uuid {
            return Some((gpu.index, None));
        }
        let slot = gpu.mig_uuids.iter().position(|instance| instance == uuid)?;
        Some((gpu.index, Some(slot)))
    })
}

fn of_bus(site: &'static Site, text: *const c_char) -> Option<usize> {
    let wanted = BusId::parse(&get_text(text).ok()?)?;
    site.machine.gpus.iter().position(|gpu| gpu.bus == wanted)
}

fn by_index(call: &Call, index: u32, device: *mut nvmlDevice_t) -> Answer {
    let gpu = call.site.machine.gpus.get(index as usize).ok_or(INVALID_ARGUMENT)?;
    hand_out(call, gpu, None, device)
}

fn by_uuid(call: &Call, uuid: &str, device: *mut nvmlDevice_t) -> Answer {
    let (index, mig) = of_uuid(call.site, uuid).ok_or(NOT_FOUND)?;
    hand_out(call, &call.site.machine.gpus[index], mig, device)
}

fn by_bus(call: &Call, text: *const c_char, device: *mut nvmlDevice_t) -> Answer {
    BusId::parse(&get_text(text)?).ok_or(INVALID_ARGUMENT)?;
    let index = of_bus(call.site, text).ok_or(NOT_FOUND)?;
    hand_out(call, &call.site.machine.gpus[index], None, device)
}

/// What `nvmlDeviceGetPciInfo` says of a GPU.
fn pci_info(ask: &Ask) -> nvmlPciInfo_t {
    let BusId { domain, bus, device } = ask.gpu.bus;
    nvmlPciInfo_t {
        busIdLegacy: text_field(&format!("{domain:04X}:{bus:02X}:{device:02X}.0")),
        domain,
        bus,
        device,
        pciDeviceId: ask.gpu.spec.pci_device_id,
        pciSubSystemId: ask.gpu.spec.pci_subsystem_id,
        busId: text_field(&format!("{domain:08X}:{bus:02X}:{device:02X}.0")),
    }
}

fn optional(text: Option<&String>, out: *mut c_char, length: u32) -> Answer {
    put_text(out, length, text.ok_or(NOT_SUPPORTED)?)
}

system_calls! {
    fn nvmlDeviceGetCount_v2(call, count: *mut u32) {
        put(count, call.lie.map_or(call.site.machine.gpus.len() as u32, |lie| lie as u32))
    }
    fn nvmlDeviceGetCount(call, count: *mut u32) { put(count, call.site.machine.gpus.len() as u32) }
}

lookup_calls! {
    fn nvmlDeviceGetHandleByIndex_v2(call, index: u32, device: *mut nvmlDevice_t) about (|_| Some(index as usize)) {
        by_index(call, index, device)
    }
    fn nvmlDeviceGetHandleByIndex(call, index: u32, device: *mut nvmlDevice_t) about (|_| Some(index as usize)) {
        by_index(call, index, device)
    }
    fn nvmlDeviceGetHandleByUUID(call, uuid: *const c_char, device: *mut nvmlDevice_t) about (|site| Some(of_uuid(site, &get_text(uuid).ok()?)?.0)) {
        by_uuid(call, &get_text(uuid)?, device)
    }
    fn nvmlDeviceGetHandleByUUIDV(call, uuid: *mut nvmlUUID_v1_t, device: *mut nvmlDevice_t) about (|_| None) {
        versioned(uuid, 1)?;
        let given = get(uuid)?;
        // Type 1 is text, type 2 the sixteen bytes.
        if given.type_ != 1 {
            return Err(NOT_SUPPORTED);
        }
        // SAFETY: the caller says which member of the union it filled; any bytes are valid here.
        let text = unsafe { given.value.str_ };
        let text: Vec<u8> =
            text.iter().map(|c| c.cast_unsigned()).take_while(|c| *c != 0).collect();
        by_uuid(call, &String::from_utf8_lossy(&text), device)
    }
    fn nvmlDeviceGetHandleBySerial(call, serial: *const c_char, device: *mut nvmlDevice_t) about (|_| None) {
        let wanted = get_text(serial)?;
        let mut gpus = call.site.machine.gpus.iter();
        let gpu = gpus.find(|gpu| gpu.serial.as_ref() == Some(&wanted)).ok_or(NOT_FOUND)?;
        hand_out(call, gpu, None, device)
    }
    fn nvmlDeviceGetHandleByPciBusId_v2(call, bus: *const c_char, device: *mut nvmlDevice_t) about (|site| of_bus(site, bus)) {
        by_bus(call, bus, device)
    }
    fn nvmlDeviceGetHandleByPciBusId(call, bus: *const c_char, device: *mut nvmlDevice_t) about (|site| of_bus(site, bus)) {
        by_bus(call, bus, device)
    }
}

instance_calls! {
    fn nvmlDeviceGetName(ask, name: *mut c_char, length: u32) {
        match ask.mig.and_then(|slot| ask.gpu.spec.mig.get(slot)) {
            None => put_text(name, length, &ask.gpu.spec.name),
            Some(instance) => {
                put_text(name, length, &format!("{} MIG {}", ask.gpu.spec.name, instance.profile))
            }
        }
    }
    fn nvmlDeviceGetUUID(ask, uuid: *mut c_char, length: u32) {
        let text = ask.mig.and_then(|slot| ask.gpu.mig_uuids.get(slot)).unwrap_or(&ask.gpu.uuid);
        put_text(uuid, length, text)
    }
    fn nvmlDeviceGetIndex(ask, index: *mut u32) {
        ask.put(index, ask.mig.unwrap_or(ask.gpu.index) as u32)
    }
    fn nvmlDeviceGetBrand(ask, brand: *mut u32) {
        ask.put(brand, ask.gpu.spec.brand.unwrap_or(14))
    }
    fn nvmlDeviceGetArchitecture(ask, architecture: *mut u32) {
        ask.put(architecture, ask.gpu.spec.architecture)
    }
    fn nvmlDeviceGetCudaComputeCapability(ask, major: *mut c_int, minor: *mut c_int) {
        let [high, low] = ask.gpu.spec.compute_capability;
        ask.put(major, high)?;
        ask.put(minor, low)
    }
    fn nvmlDeviceGetPciInfo_v3(ask, pci: *mut nvmlPciInfo_t) { put(pci, pci_info(ask)) }
    fn nvmlDeviceGetPciInfo_v2(ask, pci: *mut nvmlPciInfo_t) { put(pci, pci_info(ask)) }
    fn nvmlDeviceGetPciInfo(ask, pci: *mut nvmlPciInfo_t) { put(pci, pci_info(ask)) }
}

device_calls! {
    fn nvmlDeviceGetSerial(ask, serial: *mut c_char, length: u32) {
        optional(ask.gpu.serial.as_ref(), serial, length)
    }
    fn nvmlDeviceGetVbiosVersion(ask, version: *mut c_char, length: u32) {
        optional(ask.gpu.spec.vbios.as_ref(), version, length)
    }
    fn nvmlDeviceGetBoardPartNumber(ask, part: *mut c_char, length: u32) {
        optional(ask.gpu.spec.board_part.as_ref(), part, length)
    }
    fn nvmlDeviceGetMinorNumber(ask, minor: *mut u32) { ask.put(minor, ask.gpu.minor) }
    fn nvmlDeviceGetBoardId(ask, board: *mut u32) { ask.put(board, ask.gpu.bus.bus << 8) }
    fn nvmlDeviceGetMultiGpuBoard(ask, multi: *mut u32) { ask.put(multi, 0) }
    fn nvmlDeviceGetModuleId(ask, module: *mut u32) {
        ask.put(module, ask.gpu.index as u32 % 8 + 1)
    }
    fn nvmlDeviceGetPdi(ask, pdi: *mut nvmlPdi_v1_t) {
        versioned(pdi, 1)?;
        let digits = ask.gpu.uuid.bytes().filter(u8::is_ascii_hexdigit);
        let value = digits.fold(0_u64, |sum, digit| sum.rotate_left(5) ^ u64::from(digit));
        edit(pdi, |pdi| pdi.value = value)
    }
    fn nvmlDeviceGetPlatformInfo(ask, info: *mut nvmlPlatformInfo_v2_t) {
        supported(ask.gpu.spec.architecture >= 10 && ask.gpu.spec.datacenter)?;
        let module = ask.gpu.index as u8 % 8 + 1;
        if versioned(info, 2).is_ok() {
            return edit(info, |info| {
                info.slotNumber = 1;
                info.trayIndex = 0;
                info.hostId = 1;
                info.peerType = 1;
                info.moduleId = module;
            });
        }
        let info = info.cast::<nvmlPlatformInfo_v1_t>();
        versioned(info, 1)?;
        edit(info, |info| {
            info.chassisPhysicalSlotNumber = 1;
            info.peerType = 1;
            info.moduleId = module;
        })
    }
    fn nvmlDeviceGetPciInfoExt(ask, pci: *mut nvmlPciInfoExt_v1_t) {
        versioned(pci, 1)?;
        let plain = pci_info(ask);
        edit(pci, |pci| {
            pci.domain = plain.domain;
            pci.bus = plain.bus;
            pci.device = plain.device;
            pci.pciDeviceId = plain.pciDeviceId;
            pci.pciSubSystemId = plain.pciSubSystemId;
            pci.baseClass = 3;
            pci.subClass = if ask.gpu.spec.datacenter { 2 } else { 0 };
            pci.busId = plain.busId;
        })
    }
    fn nvmlDeviceGetNumGpuCores(ask, cores: *mut u32) {
        ask.put_if(!ask.mig_on(), cores, ask.gpu.spec.cores)
    }
    fn nvmlDeviceGetMemoryBusWidth(ask, width: *mut u32) {
        ask.put_if(!ask.is_unified(), width, ask.gpu.spec.bus_width)
    }
    fn nvmlDeviceGetGspFirmwareVersion(ask, version: *mut c_char) {
        supported(ask.gpu.spec.gsp.unwrap_or(true))?;
        // The only text call without a length; the header promises 64 bytes.
        put_text(version, 64, ask.site.machine.driver_version(ask.t))
    }
    fn nvmlDeviceGetGspFirmwareMode(ask, enabled: *mut u32, default: *mut u32) {
        let on = u32::from(ask.gpu.spec.gsp.unwrap_or(true));
        ask.put(enabled, on)?;
        ask.put(default, on)
    }
    fn nvmlDeviceGetInforomImageVersion(ask, version: *mut c_char, length: u32) {
        supported(ask.gpu.spec.datacenter)?;
        put_text(version, length, "G520.0200.00.05")
    }
    fn nvmlDeviceGetInforomVersion(ask, object: u32, version: *mut c_char, length: u32) {
        supported(ask.gpu.spec.datacenter)?;
        match object {
            0 => put_text(version, length, "2.1"),
            1 => put_text(version, length, "7.16"),
            2 => Err(NOT_SUPPORTED),
            _ => Err(INVALID_ARGUMENT),
        }
    }
    fn nvmlDeviceGetInforomConfigurationChecksum(ask, sum: *mut u32) {
        ask.put_if(ask.gpu.spec.datacenter, sum, 0x5EED_0000 + ask.gpu.spec.sm_count)
    }
    fn nvmlDeviceValidateInforom(ask) { supported(ask.gpu.spec.datacenter) }
    fn nvmlDeviceGetPgpuMetadataString(_ask, _out: *mut c_char, size: *mut u32) {
        get(size)?;
        Err(if get(size)? == 0 { INSUFFICIENT_SIZE } else { NOT_SUPPORTED })
    }
    fn nvmlDeviceGetIrqNum(ask, irq: *mut u32) { ask.put(irq, 120 + ask.gpu.index as u32) }
    fn nvmlDeviceGetBusType(ask, kind: *mut u32) { ask.put(kind, 2) }
    fn nvmlDeviceGetCapabilities(_ask, capabilities: *mut u32) {
        get(capabilities)?;
        Err(VERSION_MISMATCH)
    }
}

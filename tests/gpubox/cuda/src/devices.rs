//! Devices: what there is, as far as `CUDA_VISIBLE_DEVICES` lets this process see it.

use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

use gpubox::{BusId, Gpu, Site};

use crate::call::{get_text, put, put_text};
use crate::results::{
    Answer, Failure, INVALID_DEVICE, INVALID_VALUE, NO_DEVICE, NOT_FOUND, SYSTEM_DRIVER_MISMATCH,
};
use crate::state::{self, tables};

/// GPU indices by ordinal. The list ends at the first entry that names nothing, as CUDA's does.
fn visible(site: &'static Site) -> &'static [usize] {
    static VISIBLE: OnceLock<Vec<usize>> = OnceLock::new();
    VISIBLE.get_or_init(|| {
        let gpus = &site.machine.gpus;
        let Ok(list) = std::env::var("CUDA_VISIBLE_DEVICES") else {
            return (0..gpus.len()).collect();
        };
        let find = |word: &str| match word.parse::<usize>() {
            Ok(index) => (index < gpus.len()).then_some(index),
            Err(_) => gpus.iter().position(|gpu| word.len() > 4 && gpu.uuid.starts_with(word)),
        };
        list.split(',').map_while(|word| find(word.trim())).collect()
    })
}

/// The GPU index behind an ordinal.
pub(crate) fn index(site: &'static Site, ordinal: c_int) -> Answer<usize> {
    let visible = visible(site);
    usize::try_from(ordinal).ok().and_then(|at| visible.get(at).copied()).ok_or(INVALID_DEVICE)
}

/// The ordinal of a GPU index.
pub(crate) fn ordinal(site: &'static Site, gpu: usize) -> c_int {
    visible(site).iter().position(|seen| *seen == gpu).map_or(-1, |at| at as c_int)
}

fn device(site: &'static Site, ordinal: c_int) -> Answer<&'static Gpu> {
    tables()?;
    site.machine.gpus.get(index(site, ordinal)?).ok_or(INVALID_DEVICE)
}

fn init(site: &'static Site) -> Answer {
    site.come_up();
    let t = site.seconds();
    match (site.machine.cuda.init_code, site.machine.host.init_code.at(t) as u32) {
        (0, 0) => {}
        (0, 18) => return Err(SYSTEM_DRIVER_MISMATCH),
        (0, _) => return Err(NO_DEVICE),
        (code, _) => return Err(Failure(code)),
    }
    if !site.machine.driver_at(t).1 || visible(site).is_empty() {
        return Err(NO_DEVICE);
    }
    state::initialize(site);
    Ok(())
}

/// `CUdevice_attribute` by number; 0 for those that say no or that nobody asked about yet.
#[allow(clippy::match_same_arms, reason = "rows are kept in order of their numbers")]
fn attribute(gpu: &Gpu, attribute: u32) -> c_int {
    let spec = &gpu.spec;
    let modern = spec.architecture >= 7;
    let shared = match spec.compute_capability {
        [9..=12, _] => 227 << 10,
        [8, 0] => 163 << 10,
        [8, _] => 99 << 10,
        [7, 0] => 96 << 10,
        _ => 64 << 10,
    };
    match attribute {
        1..=3 => 1024,
        4 => 64,
        5 => c_int::MAX,
        6 | 7 => 65535,
        8 => 48 << 10,
        9 => 64 << 10,
        10 => 32,
        11 => c_int::MAX,
        12 | 82 => 65536,
        13 => spec.clocks.graphics as c_int * 1000,
        14 => 512,
        16 => spec.sm_count as c_int,
        15 | 19 | 31 | 41 | 78..=80 | 83 | 88..=90 | 95 | 99 | 102..=104 | 115 => 1,
        17 => 0,
        18 => c_int::from(spec.memory.is_some()),
        20 => spec.compute_mode as c_int,
        32 => c_int::from(spec.ecc.unwrap_or(spec.datacenter)),
        33 => gpu.bus.bus as c_int,
        34 => gpu.bus.device as c_int,
        36 => spec.clocks.memory as c_int * 1000,
        37 => spec.bus_width as c_int,
        38 => (spec.l2_mib << 20) as c_int,
        39 => {
            if spec.compute_capability == [7, 5] {
                1024
            } else {
                2048
            }
        }
        40 => 3,
        50 => gpu.bus.domain as c_int,
        75 => spec.compute_capability[0],
        76 => spec.compute_capability[1],
        81 => shared + 1024,
        97 => shared,
        106 => 32,
        108 if modern => ((spec.l2_mib << 20) / 8 * 5) as c_int,
        _ => 0,
    }
}

/// The sixteen bytes of a `GPU-…` text.
fn uuid_bytes(text: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    let digits: Vec<u32> =
        text.trim_start_matches("GPU-").chars().filter_map(|c| c.to_digit(16)).collect();
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (pair[0] << 4 | pair[1]) as u8;
    }
    bytes
}

exports! {
    fn cuInit(site, flags: u32) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        init(site)
    }
    // Works without cuInit.
    fn cuDriverGetVersion(site, version: *mut c_int) { put(version, site.machine.host.cuda_version) }
    fn cuDeviceGetCount(site, count: *mut c_int) {
        tables()?;
        put(count, visible(site).len() as c_int)
    }
    fn cuDeviceGet(site, out: *mut c_int, ordinal: c_int) {
        device(site, ordinal)?;
        put(out, ordinal)
    }
    fn cuDeviceGetName(site, name: *mut c_char, length: c_int, ordinal: c_int) {
        put_text(name, length, &device(site, ordinal)?.spec.name)
    }
    fn cuDeviceGetUuid(site, uuid: *mut [u8; 16], ordinal: c_int) {
        put(uuid, uuid_bytes(&device(site, ordinal)?.uuid))
    }
    fn cuDeviceGetUuid_v2(site, uuid: *mut [u8; 16], ordinal: c_int) {
        put(uuid, uuid_bytes(&device(site, ordinal)?.uuid))
    }
    fn cuDeviceTotalMem_v2(site, bytes: *mut usize, ordinal: c_int) {
        let gpu = device(site, ordinal)?;
        put(bytes, state::memory_info(site, gpu.index)?.0 as usize)
    }
    fn cuDeviceGetAttribute(site, value: *mut c_int, which: u32, ordinal: c_int) {
        put(value, attribute(device(site, ordinal)?, which))
    }
    fn cuDeviceComputeCapability(site, major: *mut c_int, minor: *mut c_int, ordinal: c_int) {
        let [high, low] = device(site, ordinal)?.spec.compute_capability;
        put(major, high)?;
        put(minor, low)
    }
    fn cuDeviceGetPCIBusId(site, text: *mut c_char, length: c_int, ordinal: c_int) {
        let BusId { domain, bus, device } = device(site, ordinal)?.bus;
        put_text(text, length, &format!("{domain:04x}:{bus:02x}:{device:02x}.0"))
    }
    fn cuDeviceGetByPCIBusId(site, out: *mut c_int, text: *const c_char) {
        let wanted = BusId::parse(&get_text(text)?).ok_or(INVALID_VALUE)?;
        let visible = visible(site).iter();
        let mut numbered = visible.enumerate();
        let found = numbered.find(|(_, gpu)| site.machine.gpus[**gpu].bus == wanted);
        put(out, found.ok_or(INVALID_DEVICE)?.0 as c_int)
    }
    fn cuDeviceCanAccessPeer(site, can: *mut c_int, one: c_int, two: c_int) {
        let linked = |ordinal| device(site, ordinal).map(|gpu| gpu.spec.nvlink.links > 0);
        put(can, c_int::from(one != two && linked(one)? && linked(two)?))
    }
    // Statically linked runtimes look everything up here; they are not served.
    fn cuGetProcAddress_v2(
        _site,
        _name: *const c_char,
        out: *mut usize,
        _version: c_int,
        _flags: u64,
        status: *mut u32,
    ) {
        put(out, 0)?;
        crate::call::put_optional(status, 1)?;
        Err(NOT_FOUND)
    }
}

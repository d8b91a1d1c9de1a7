//! Who is near whom: ancestors, peers, processors, memory nodes. The made-up board has its GPUs in
//! order on the sockets, two behind each switch.

use std::ffi::c_ulong;

use gpubox::Gpu;
use nvml_wrapper_sys::bindings::nvmlDevice_t;

use crate::call::{Ask, element, find, put, put_list};
use crate::codes::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED};

fn common_ancestor(one: &Gpu, two: &Gpu) -> u32 {
    if one.index == two.index {
        0
    } else if one.numa_node != two.numa_node {
        50
    } else if one.index / 2 == two.index / 2 && one.spec.nvlink.switch {
        10
    } else {
        40
    }
}

fn peer(ask: &Ask, other: nvmlDevice_t) -> Answer<&'static Gpu> {
    Ok(find(ask.site, other, ask.t)?.gpu)
}

/// The bit mask of the processors on the GPU's socket.
fn cpu_words(ask: &Ask, size: u32, words: *mut c_ulong) -> Answer {
    if size == 0 || words.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    let host = &ask.site.machine.host;
    let each = host.cpus / host.numa_nodes.max(1);
    let mine = ask.gpu.numa_node * each..(ask.gpu.numa_node + 1) * each;
    for word in 0..size {
        let bits = (0..64).filter(|bit| mine.contains(&(word * 64 + bit)));
        put(element(words, word as usize), bits.fold(0, |mask, bit| mask | 1 << bit))?;
    }
    Ok(())
}

device_calls! {
    fn nvmlDeviceGetTopologyCommonAncestor(ask, other: nvmlDevice_t, level: *mut u32) {
        ask.put(level, common_ancestor(ask.gpu, peer(ask, other)?))
    }
    fn nvmlDeviceGetTopologyNearestGpus(
        ask,
        level: u32,
        count: *mut u32,
        devices: *mut nvmlDevice_t,
    ) {
        let near: Vec<_> = ask
            .site
            .machine
            .gpus
            .iter()
            .filter(|gpu| gpu.index != ask.gpu.index && common_ancestor(ask.gpu, gpu) == level)
            .map(|gpu| crate::call::Handle::make(gpu.index, None))
            .collect();
        if devices.is_null() {
            return put(count, near.len() as u32);
        }
        put_list(count, devices, &near)
    }
    fn nvmlDeviceGetP2PStatus(ask, other: nvmlDevice_t, kind: u32, status: *mut u32) {
        let other = peer(ask, other)?;
        let linked = ask.gpu.spec.nvlink.links > 0 && other.spec.nvlink.links > 0;
        let value = match kind {
            0..=2 if linked => 0,
            2 => 5,
            // Without links, consumer boards have their peer access switched off.
            0 | 1 | 4 if ask.gpu.spec.datacenter && other.spec.datacenter => 0,
            0 | 1 | 4 => 1,
            3 => if linked { 0 } else { 5 },
            _ => return Err(INVALID_ARGUMENT),
        };
        ask.put(status, value)
    }
    fn nvmlDeviceOnSameBoard(ask, other: nvmlDevice_t, same: *mut i32) {
        ask.put(same, i32::from(peer(ask, other)?.index == ask.gpu.index))
    }
    fn nvmlDeviceGetCpuAffinityWithinScope(
        ask,
        size: u32,
        words: *mut c_ulong,
        scope: u32,
    ) {
        if scope > 1 {
            return Err(INVALID_ARGUMENT);
        }
        cpu_words(ask, size, words)
    }
    fn nvmlDeviceGetCpuAffinity(ask, size: u32, words: *mut c_ulong) { cpu_words(ask, size, words) }
    fn nvmlDeviceGetMemoryAffinity(
        ask,
        size: u32,
        words: *mut c_ulong,
        scope: u32,
    ) {
        if size == 0 || words.is_null() || scope > 1 {
            return Err(INVALID_ARGUMENT);
        }
        for word in 0..size {
            let node = ask.gpu.numa_node;
            let bit = if node / 64 == word { 1 << (node % 64) } else { 0 };
            put(element(words, word as usize), bit)?;
        }
        Ok(())
    }
    // Only where GPUs are NUMA nodes themselves.
    fn nvmlDeviceGetNumaNodeId(_ask, _node: *mut u32) { Err(NOT_SUPPORTED) }
}

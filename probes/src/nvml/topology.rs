//! The way from one GPU to the others, and to the CPUs near it. Read once a generation.

use std::time::Instant;

use nvml_wrapper_sys::bindings as sys;
use serde::{Deserialize, Serialize};

use super::session::{Device, Zeroed, call, text};
use crate::reading::Reading;
use crate::snapshot::Stamp;

/// Where the GPU sits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Topology {
    /// When it was read.
    pub read: Stamp,
    /// CPUs near it, `0-31,64-95`.
    pub cpu_affinity: Reading<String>,
    /// NUMA nodes near it.
    pub memory_affinity: Reading<String>,
    /// The way to each other GPU.
    pub peers: Vec<Peer>,
}

/// The way to another GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Peer {
    /// The other GPU's number.
    pub gpu_index: u32,
    /// As in `nvidia-smi topo -m`: `PIX`, `PXB`, `PHB`, `NODE`, `SYS`.
    pub path: Reading<String>,
    /// Active NVLinks between the two, through switches or not; unsupported where it cannot be told.
    pub nvlinks: Reading<u32>,
    /// Whether one can read the other's memory: `ok`, or why not.
    pub peer_access: Reading<String>,
}

/// A GPU as the topology sees it.
pub struct Node<'s> {
    /// Its number in the snapshot.
    pub index: u32,
    /// Its bus address.
    pub pci: String,
    /// The device.
    pub device: Device<'s>,
}

/// Reads the way from each GPU to each other one. Only GPUs that answer may be handed over: asking
/// about a sick one can block for ever.
pub fn read_all(nodes: &[Node]) -> Vec<(u32, Topology)> {
    nodes.iter().map(|node| (node.index, read_one(node, nodes))).collect()
}

fn read_one(node: &Node, nodes: &[Node]) -> Topology {
    let start = Instant::now();
    let device = &node.device;
    let ends = link_ends(device);
    let peers = nodes.iter().filter(|peer| peer.index != node.index).map(|peer| {
        let other = peer.device.handle();
        let (mut level, mut status) = (0, 0);
        Peer {
            gpu_index: peer.index,
            path: Reading::from(call!(
                device,
                nvmlDeviceGetTopologyCommonAncestor(device.handle(), other, &raw mut level)
            ))
            .map(|()| path_name(level)),
            nvlinks: ends.as_ref().map(|ends| {
                let here = ends.iter().filter(|end| match end {
                    End::Gpu(pci) => *pci == peer.pci,
                    End::Switch => true,
                });
                u32::try_from(here.count()).unwrap_or(u32::MAX)
            }),
            peer_access: Reading::from(call!(
                device,
                nvmlDeviceGetP2PStatus(device.handle(), other, 0, &raw mut status)
            ))
            .map(|()| peer_name(status)),
        }
    });
    Topology {
        cpu_affinity: affinity_of_cpus(device),
        memory_affinity: affinity_of_memory(device),
        peers: peers.collect(),
        read: device.stamp(start),
    }
}

/// Where an active NVLink ends. Switches connect every GPU behind them with each other.
enum End {
    Gpu(String),
    Switch,
}

fn link_ends(device: &Device) -> Reading<Vec<End>> {
    let mut ends = Vec::new();
    for link in 0..36 {
        let mut active = 0;
        match call!(device[link], nvmlDeviceGetNvLinkState(device.handle(), link, &raw mut active))
        {
            Ok(()) if active == 1 => {}
            Ok(()) => continue,
            Err(absence) if link == 0 => return Reading::Absent(absence),
            Err(_) => break,
        }
        let mut kind = 0;
        let asked = call!(
            device[link],
            nvmlDeviceGetNvLinkRemoteDeviceType(device.handle(), link, &raw mut kind)
        );
        let mut pci = sys::nvmlPciInfo_t::zeroed();
        // 0 is a GPU, 1 a Power CPU, 2 a switch.
        match (asked, kind) {
            (Ok(()), 2) => ends.push(End::Switch),
            (Ok(()), 0) | (Err(_), _)
                if call!(
                    device[link],
                    nvmlDeviceGetNvLinkRemotePciInfo_v2(device.handle(), link, &raw mut pci)
                )
                .is_ok() =>
            {
                ends.push(End::Gpu(crate::pci::normalize_pci(&text(&pci.busId))));
            }
            _ => {}
        }
    }
    ends.into()
}

fn affinity_of_cpus(device: &Device) -> Reading<String> {
    // 16 words hold 1,024 CPUs.
    let mut set = [0; 16];
    call!(device, nvmlDeviceGetCpuAffinityWithinScope(device.handle(), 16, set.as_mut_ptr(), 0))
        .map(|()| list(&set))
        .into()
}

fn affinity_of_memory(device: &Device) -> Reading<String> {
    let mut set = [0; 4];
    call!(device, nvmlDeviceGetMemoryAffinity(device.handle(), 4, set.as_mut_ptr(), 0))
        .map(|()| list(&set))
        .into()
}

/// Set bits as the kernel lists CPUs: `0-31,64-95`.
fn list(words: &[u64]) -> String {
    let is_set = |bit: usize| words.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1);
    let mut ranges: Vec<String> = Vec::new();
    let mut bit = 0;
    while bit < words.len() * 64 {
        if is_set(bit) {
            let first = bit;
            while is_set(bit + 1) {
                bit += 1;
            }
            ranges.push(if first == bit { first.to_string() } else { format!("{first}-{bit}") });
        }
        bit += 1;
    }
    ranges.join(",")
}

fn path_name(level: u32) -> String {
    match level {
        0 => "internal".into(),
        10 => "PIX".into(),
        20 => "PXB".into(),
        30 => "PHB".into(),
        40 => "NODE".into(),
        50 => "SYS".into(),
        other => format!("level {other}"),
    }
}

fn peer_name(status: u32) -> String {
    let names = [
        "ok",
        "chipset does not",
        "GPU does not",
        "not across this topology",
        "switched off by a registry key",
        "not supported",
        "unknown",
    ];
    names.get(status as usize).map_or_else(|| format!("status {status}"), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_sets_read_as_the_kernel_lists_them() {
        assert_eq!(list(&[0xFFFF_FFFF, 0xFFFF_FFFF]), "0-31,64-95");
        assert_eq!(list(&[0b1011]), "0-1,3");
        assert_eq!(list(&[0, 0]), "");
        assert_eq!(list(&[1 << 63, 1]), "63-64");
    }
}

//! NUMA nodes, and which of them are GPU memory.
//!
//! A node without CPUs may be host memory all the same (CXL, persistent memory). It is a GPU's
//! when the driver says so (`numa_status`), or when the kernel lists it as a generic initiator:
//! that is how Grace firmware announces the nodes it sets aside for GPUs.

use std::collections::BTreeSet;

use super::NumaNode;
use super::memory::parse_kib;
use crate::machine::{Machine, read_line, read_text};
use crate::reading::{Absence, Reading};

pub(super) fn read_numa(machine: &Machine) -> Reading<Vec<NumaNode>> {
    let folder = match std::fs::read_dir(machine.sys("devices/system/node")) {
        Ok(folder) => folder,
        Err(error) => return Reading::Absent(Absence::from_io(&error)),
    };
    let devices = read_device_nodes(machine);
    let mut nodes: Vec<NumaNode> = Vec::new();
    for entry in folder.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("node")?.parse().ok());
        let Some(node) = number else { continue };
        let cpus = read_line(&entry.path().join("cpulist")).unwrap_or_default();
        let meminfo = read_text(&entry.path().join("meminfo")).unwrap_or_default();
        let Some((total_bytes, free_bytes)) = parse_node_meminfo(&meminfo) else { continue };
        let is_device = cpus.is_empty() && devices.contains(&node);
        nodes.push(NumaNode { node, cpus, total_bytes, free_bytes, is_device });
    }
    nodes.sort_by_key(|node| node.node);
    nodes.into()
}

fn read_device_nodes(machine: &Machine) -> BTreeSet<u32> {
    let initiators = read_line(&machine.sys("devices/system/node/has_generic_initiator"));
    let mut nodes = parse_node_list(&initiators.unwrap_or_default());
    if let Ok(gpus) = std::fs::read_dir(machine.proc("driver/nvidia/gpus")) {
        for gpu in gpus.flatten() {
            let status = read_text(&gpu.path().join("numa_status")).unwrap_or_default();
            nodes.extend(parse_numa_status(&status));
        }
    }
    nodes
}

/// Total and free bytes of `Node 0 MemTotal: 24684084 kB` lines.
pub(super) fn parse_node_meminfo(text: &str) -> Option<(u64, u64)> {
    let field = |wanted: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.split_whitespace().last() == Some(wanted)).then(|| parse_kib(value))?
        })
    };
    Some((field("MemTotal")?, field("MemFree")?))
}

/// `1-8,12` as numbers; far more nodes than any box has are refused.
pub(super) fn parse_node_list(text: &str) -> BTreeSet<u32> {
    let mut nodes = BTreeSet::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>())
            && last < 4096
        {
            nodes.extend(first..=last);
        }
    }
    nodes
}

/// The node that the driver names for one GPU, in a line that begins with `Node`.
pub(super) fn parse_numa_status(text: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().starts_with("Node").then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tree::FakeTree;

    const NODE: &str = "sys/devices/system/node";

    #[test]
    fn a_graces_gpu_memory_is_marked_and_cxl_memory_is_not() {
        let tree = FakeTree::new(&[
            (&format!("{NODE}/node0/cpulist"), "0-71\n"),
            (&format!("{NODE}/node0/meminfo"), "Node 0 MemTotal: 100 kB\nNode 0 MemFree: 40 kB\n"),
            (&format!("{NODE}/node1/cpulist"), "\n"),
            (&format!("{NODE}/node1/meminfo"), "Node 1 MemTotal: 96 kB\nNode 1 MemFree: 90 kB\n"),
            (&format!("{NODE}/node9/cpulist"), "\n"),
            (&format!("{NODE}/node9/meminfo"), "Node 9 MemTotal: 64 kB\nNode 9 MemFree: 64 kB\n"),
            (&format!("{NODE}/has_generic_initiator"), "1-8\n"),
            (&format!("{NODE}/online"), "0-9\n"),
        ]);
        let nodes = read_numa(&tree.machine);
        let marks: Vec<(u32, bool)> =
            nodes.value().unwrap().iter().map(|node| (node.node, node.is_device)).collect();
        assert_eq!(marks, [(0, false), (1, true), (9, false)]);
        assert_eq!(nodes.value().unwrap()[1].total_bytes, 96 * 1024);
    }

    #[test]
    fn the_driver_may_name_the_node_itself() {
        assert_eq!(parse_numa_status("Node:  2\nStatus: online\n"), Some(2));
        assert_eq!(parse_numa_status("Node: -1\n"), None);
        assert_eq!(parse_numa_status(""), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_in_stride(text in "(.|\n){0,80}") {
            parse_node_meminfo(&text);
            parse_node_list(&text);
            parse_numa_status(&text);
        }
    }
}

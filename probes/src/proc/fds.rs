//! `/proc/PID/fd`: which device files of the driver a process holds, and its sockets.
//!
//! Each descriptor is a link; its target is the only way to tell what it is, so the cost is one call
//! a descriptor. A zombie whose threads live on has an empty folder while the threads keep the files,
//! and with them the GPU memory: there the threads' own folders are asked. Needs the process's uid or
//! `CAP_SYS_PTRACE`. Where the host's root is mounted elsewhere, targets may carry that prefix.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::RawDir;
use rustix::io::Errno;

use crate::machine::Machine;
use crate::reading::Absence;

use super::DeviceCount;
use super::task::{Task, absence};

/// A server with more descriptors than this has them for sockets; the rest is not looked at.
pub(crate) const MOST_DESCRIPTORS: usize = 65_536;

/// Room for one `getdents` call.
const LIST_BYTES: usize = 32 << 10;

/// Longer targets are cut; those that we look for are short.
const TARGET_BYTES: usize = 512;

/// Where a driver container keeps the root of the driver's files.
const DRIVER_ROOT: &[u8] = b"/run/nvidia/driver";

/// What of a process's descriptors matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Descriptors {
    pub(crate) devices: Vec<DeviceCount>,
    /// Inodes of its sockets, ascending.
    pub(crate) sockets: Vec<u64>,
    pub(crate) total: usize,
}

/// Reads descriptor folders with buffers that are kept.
#[derive(Debug)]
pub(crate) struct DescriptorReader {
    prefixes: Vec<Vec<u8>>,
    list: Vec<u8>,
    target: Vec<u8>,
}

impl DescriptorReader {
    pub(crate) fn new(machine: &Machine) -> Self {
        Self {
            prefixes: root_prefixes(machine),
            list: Vec::with_capacity(LIST_BYTES),
            target: vec![0; TARGET_BYTES],
        }
    }

    /// The `most` lowest descriptors of a process; of its threads where it is a zombie.
    pub(crate) fn read(
        &mut self,
        task: &Task,
        zombie: bool,
        most: usize,
    ) -> Result<Descriptors, Absence> {
        let found = self.read_folder(&task.open_folder("fd")?, most).map_err(absence)?;
        if found.total > 0 || !zombie {
            return Ok(found);
        }
        let mut threads = Vec::new();
        let folder = task.open_folder("task")?;
        numbers_in(&folder, &mut self.list, |tid| threads.push(tid)).map_err(absence)?;
        for tid in threads {
            let Ok(folder) = task.open_folder(&format!("task/{tid}/fd")) else { continue };
            match self.read_folder(&folder, most) {
                Ok(found) if found.total > 0 => return Ok(found),
                _ => {}
            }
        }
        Ok(found)
    }

    /// Whether a device file of the driver is among the descriptors; `None` for an empty folder.
    pub(crate) fn holds_device(&mut self, folder: &OwnedFd) -> Result<Option<bool>, Errno> {
        let mut any = None;
        let Self { prefixes, list, target } = self;
        let mut entries = RawDir::new(folder, list.spare_capacity_mut());
        for _ in 0..MOST_DESCRIPTORS {
            let Some(entry) = entries.next() else { break };
            let entry = entry?;
            let name = entry.file_name();
            if name.to_bytes().first().is_none_or(|b| !b.is_ascii_digit()) {
                continue;
            }
            any = Some(false);
            let length = rustix::fs::readlinkat_raw(folder, name, target.as_mut_slice());
            let Ok(length) = length else { continue };
            let path = &target[..length.min(TARGET_BYTES)];
            // Sockets, pipes and the like have no slash in front.
            if path.starts_with(b"/") && parse_device(path, prefixes).is_some() {
                return Ok(Some(true));
            }
        }
        Ok(any)
    }

    /// The first descriptors in an open folder; the kernel lists the lowest first.
    fn read_folder(&mut self, folder: &OwnedFd, most: usize) -> Result<Descriptors, Errno> {
        let mut found = Descriptors::default();
        let mut nodes: BTreeMap<String, u32> = BTreeMap::new();
        let Self { prefixes, list, target } = self;
        let mut entries = RawDir::new(folder, list.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_bytes().first().is_none_or(|b| !b.is_ascii_digit()) {
                continue;
            }
            found.total += 1;
            if found.total > most {
                break;
            }
            // A descriptor that was closed meanwhile has no target any more.
            let Ok(length) = rustix::fs::readlinkat_raw(folder, name, target.as_mut_slice()) else {
                continue;
            };
            match parse_target(&target[..length.min(TARGET_BYTES)], prefixes) {
                Target::Device(node) => *nodes.entry(node).or_default() += 1,
                Target::Socket(inode) => found.sockets.push(inode),
                Target::Other => {}
            }
        }
        found.sockets.sort_unstable();
        found.devices =
            nodes.into_iter().map(|(node, count)| DeviceCount { node, count }).collect();
        Ok(found)
    }
}

/// The numbers among a folder's names, in the folder's order: processes, threads, descriptors.
pub(crate) fn numbers_in(
    folder: impl AsFd,
    list: &mut Vec<u8>,
    mut each: impl FnMut(u32),
) -> Result<(), Errno> {
    list.clear();
    list.reserve(LIST_BYTES);
    let mut entries = RawDir::new(folder, list.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if let Some(number) = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok()) {
            each(number);
        }
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Device(String),
    Socket(u64),
    Other,
}

pub(super) fn parse_target(target: &[u8], prefixes: &[Vec<u8>]) -> Target {
    if let Some(inode) = target.strip_prefix(b"socket:[").and_then(|t| t.strip_suffix(b"]")) {
        let inode = std::str::from_utf8(inode).ok().and_then(|inode| inode.parse().ok());
        return inode.map_or(Target::Other, Target::Socket);
    }
    parse_device(target, prefixes).map_or(Target::Other, Target::Device)
}

/// The roots that paths may start with, longest first; the empty one is the usual.
pub(crate) fn root_prefixes(machine: &Machine) -> Vec<Vec<u8>> {
    let root = machine.rootfs.as_os_str().as_encoded_bytes();
    let root = root.strip_suffix(b"/").unwrap_or(root);
    let mut prefixes = Vec::new();
    if !root.is_empty() {
        prefixes.push([root, DRIVER_ROOT].concat());
        prefixes.push(root.to_vec());
    }
    prefixes.push(DRIVER_ROOT.to_vec());
    prefixes.push(Vec::new());
    prefixes
}

/// The driver's node in a path, as it is named below `/dev`.
pub(crate) fn parse_device(path: &[u8], prefixes: &[Vec<u8>]) -> Option<String> {
    let node = prefixes
        .iter()
        .find_map(|prefix| path.strip_prefix(prefix.as_slice())?.strip_prefix(b"/dev/"))?;
    if !node.starts_with(b"nvidia") {
        return None;
    }
    let node = node.strip_suffix(b" (deleted)").unwrap_or(node);
    let named = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'/');
    // A cut or strange name is no node.
    if node.len() > 64 || !node.iter().all(named) {
        return None;
    }
    String::from_utf8(node.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefixes(root: &str) -> Vec<Vec<u8>> {
        root_prefixes(&Machine { rootfs: root.into(), ..Machine::default() })
    }

    #[test]
    fn device_nodes_are_told_from_the_rest() {
        let device = |path: &str| parse_device(path.as_bytes(), &prefixes("/"));
        assert_eq!(device("/dev/nvidia0").as_deref(), Some("nvidia0"));
        assert_eq!(device("/dev/nvidia-uvm").as_deref(), Some("nvidia-uvm"));
        assert_eq!(
            device("/dev/nvidia-caps/nvidia-cap3").as_deref(),
            Some("nvidia-caps/nvidia-cap3")
        );
        assert_eq!(device("/dev/nvidia1 (deleted)").as_deref(), Some("nvidia1"));
        assert_eq!(device("/run/nvidia/driver/dev/nvidiactl").as_deref(), Some("nvidiactl"));
        assert_eq!(device("/dev/null"), None);
        assert_eq!(device("/home/me/dev/nvidia0"), None);
        assert_eq!(device("/dev/nvidia0\u{1b}[2J"), None);
    }

    #[test]
    fn a_root_mounted_elsewhere_is_taken_off() {
        let device = |path: &str| parse_device(path.as_bytes(), &prefixes("/host/"));
        assert_eq!(device("/host/dev/nvidia0").as_deref(), Some("nvidia0"));
        assert_eq!(device("/host/run/nvidia/driver/dev/nvidia0").as_deref(), Some("nvidia0"));
        assert_eq!(device("/dev/nvidia0").as_deref(), Some("nvidia0"));
        assert_eq!(device("/hostel/dev/nvidia0"), None);
    }

    #[test]
    fn a_socket_is_known_by_its_inode() {
        assert_eq!(parse_target(b"socket:[81234]", &[]), Target::Socket(81234));
        assert_eq!(parse_target(b"socket:[x]", &[]), Target::Other);
        assert_eq!(parse_target(b"pipe:[81234]", &[]), Target::Other);
    }

    proptest! {
        #[test]
        fn garbage_is_no_device(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_target(&bytes, &prefixes("/host"));
        }
    }
}

//! Device nodes, and whether we may open them.
//!
//! Asked with `access`, which opens nothing: opening a GPU's node starts the GPU. The kernel applies
//! the device rules of a control group there as well, and answers them with `EPERM`, where owner
//! and permission bits are answered with `EACCES`.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::Access;
use rustix::io::Errno;

use super::DeviceNode;
use crate::machine::{Machine, read_text};
use crate::reading::{Absence, Reading};

/// More nodes than any box needs to be described; MIG makes many.
const MAX_NODES: usize = 128;

pub(super) fn read_device_nodes(machine: &Machine) -> Reading<Vec<DeviceNode>> {
    let entries = match std::fs::read_dir(machine.device("")) {
        Ok(entries) => entries,
        Err(error) => return Reading::Absent(Absence::from_io(&error)),
    };
    let mut names: Vec<String> = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with("nvidia") && name != "dxg" {
            continue;
        }
        match std::fs::read_dir(entry.path()) {
            Ok(inner) => names.extend(
                inner.flatten().map(|e| format!("{name}/{}", e.file_name().to_string_lossy())),
            ),
            Err(_) => names.push(name),
        }
    }
    names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    names.truncate(MAX_NODES);
    if names.is_empty() {
        return Vec::new().into();
    }
    let groups = parse_groups(&read_text(&machine.root("etc/group")).unwrap_or_default());
    names.iter().filter_map(|name| read_node(machine, name, &groups)).collect::<Vec<_>>().into()
}

fn read_node(machine: &Machine, name: &str, groups: &BTreeMap<u32, String>) -> Option<DeviceNode> {
    let path = machine.device(name);
    let metadata = std::fs::metadata(&path).ok()?;
    let refused_by = refused_by(&path);
    Some(DeviceNode {
        node: name.to_string(),
        mode: format!("{:03o}", metadata.mode() & 0o7777),
        uid: metadata.uid(),
        gid: metadata.gid(),
        group: groups.get(&metadata.gid()).cloned().unwrap_or_default(),
        usable: refused_by.is_empty(),
        refused_by,
    })
}

fn refused_by(path: &Path) -> String {
    match rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK) {
        Ok(()) => String::new(),
        Err(Errno::ACCESS) => "mode".into(),
        Err(Errno::PERM) => "cgroup".into(),
        Err(error) => std::io::Error::from(error).to_string(),
    }
}

/// Names of groups by number.
pub(super) fn parse_groups(text: &str) -> BTreeMap<u32, String> {
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            Some((fields.nth(1)?.parse().ok()?, name.to_string()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tree::FakeTree;

    #[test]
    fn nodes_are_listed_with_those_of_the_capabilities_folder() {
        let tree = FakeTree::new(&[
            ("dev/nvidia10", ""),
            ("dev/nvidia2", ""),
            ("dev/nvidiactl", ""),
            ("dev/nvidia-caps/nvidia-cap1", ""),
            ("dev/null", ""),
            ("etc/group", "root:x:0:\nvideo:x:44:ubuntu\nbroken\n"),
        ]);
        let nodes = read_device_nodes(&tree.machine);
        let names: Vec<&str> =
            nodes.value().unwrap().iter().map(|node| node.node.as_str()).collect();
        assert_eq!(names, ["nvidia2", "nvidia10", "nvidiactl", "nvidia-caps/nvidia-cap1"]);
        assert!(nodes.value().unwrap()[0].usable);
    }

    #[test]
    fn a_box_without_nodes_has_an_empty_list() {
        let tree = FakeTree::new(&[("dev/null", "")]);
        assert_eq!(read_device_nodes(&tree.machine), Vec::new().into());
    }

    #[test]
    fn groups_are_known_by_number() {
        assert_eq!(parse_groups("video:x:44:ubuntu\nx\n:::\n")[&44], "video");
    }
}

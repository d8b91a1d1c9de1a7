//! Who has a device file of the driver open, in one go through `/proc`: asked when the GPUs are
//! about to be reset or the module unloaded, which whoever holds one prevents.
//!
//! The table of processes finds them too, in a minute and with all that there is to know; this takes
//! what time it needs, up to a deadline. A file that is mapped and no longer open is not seen: that
//! would need the mappings of every process, which can block.

use std::time::Instant;

use super::fds::{DescriptorReader, MOST_DESCRIPTORS, numbers_in};
use super::stat::{Stat, parse_stat};
use super::task::ProcRoot;
use crate::machine::Machine;
use crate::reading::Absence;

/// More than anybody reads; a box with so many has one answer only, to be booted again.
const MOST_HOLDERS: usize = 1024;

/// A process with device files of the driver open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// Its short name.
    pub name: String,
    /// Nodes below `/dev`: `nvidia0`, `nvidiactl`, `nvidia-uvm`.
    pub nodes: Vec<String>,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// In the order of their numbers.
    pub holders: Vec<Holder>,
    /// Processes whose descriptors we may not see: needs their uid or `CAP_SYS_PTRACE`.
    pub denied: u32,
    /// Whether everybody was looked at before the deadline.
    pub complete: bool,
}

/// Looks at every process until the deadline.
pub fn find_holders(machine: &Machine, deadline: Instant) -> Result<Holders, Absence> {
    let root = ProcRoot::open(machine)?;
    let (mut buffer, mut pids) = (Vec::new(), Vec::new());
    numbers_in(root.list()?, &mut buffer, |pid| pids.push(pid)).map_err(super::task::absence)?;
    pids.sort_unstable();
    let mut found = Holders { complete: true, ..Holders::default() };
    let mut descriptors = DescriptorReader::new(machine);
    for pid in pids {
        if Instant::now() >= deadline || found.holders.len() >= MOST_HOLDERS {
            found.complete = false;
            break;
        }
        // One that has ended meanwhile holds nothing.
        let Ok(task) = root.task(pid) else { continue };
        let stat = || -> Option<Stat> {
            let mut line = Vec::new();
            root.read_stat(pid, &mut line).ok()?;
            parse_stat(&line)
        };
        let read = match descriptors.read(&task, false, MOST_DESCRIPTORS) {
            // A zombie whose threads live on.
            Ok(none) if none.total == 0 => match stat() {
                Some(stat) if stat.state == 'Z' && stat.threads > 1 => {
                    descriptors.read(&task, true, MOST_DESCRIPTORS)
                }
                _ => continue,
            },
            read => read,
        };
        match read {
            Ok(read) if !read.devices.is_empty() => found.holders.push(Holder {
                pid,
                name: stat().map(|stat| stat.comm).unwrap_or_default(),
                nodes: read.devices.into_iter().map(|device| device.node).collect(),
            }),
            Err(Absence::Denied { .. }) if !stat().is_none_or(|stat| stat.kernel_thread) => {
                found.denied += 1;
            }
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::{Fake, FakeBox};
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    #[test]
    fn who_has_a_device_file_open_is_found_and_the_rest_is_not() {
        let fake = FakeBox::new();
        fake.process(&Fake { pid: 100, comm: b"vllm", ..Fake::default() });
        fake.link(100, "fd/3", "/dev/nvidia3");
        fake.link(100, "fd/4", "/dev/nvidiactl");
        fake.link(100, "fd/5", "/dev/nvidia3");
        fake.process(&Fake { pid: 101, comm: b"bash", ..Fake::default() });
        fake.link(101, "fd/0", "/dev/null");
        let found = find_holders(&fake.machine(), soon()).unwrap();
        let vllm = Holder {
            pid: 100,
            name: "vllm".into(),
            nodes: vec!["nvidia3".into(), "nvidiactl".into()],
        };
        assert_eq!(found, Holders { holders: vec![vllm], denied: 0, complete: true });
    }

    #[test]
    fn what_was_not_looked_at_in_time_is_said() {
        let fake = FakeBox::new();
        fake.process(&Fake::default());
        let found = find_holders(&fake.machine(), Instant::now()).unwrap();
        assert!(!found.complete);
        let nowhere = Machine { procfs: "/nowhere".into(), ..Machine::default() };
        assert!(find_holders(&nowhere, soon()).is_err());
    }
}

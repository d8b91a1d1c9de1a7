//! From where we see processes: whether our procfs and our control groups are the host's.
//!
//! In the host's PID namespace number 2 is the kernel's `kthreadd`; a namespace of its own has no
//! kernel threads. That holds for a procfs of the host mounted in a container too, and needs no
//! rights. Such a mount also tells how deep we are ourselves: `NSpid` of `self` then has several
//! numbers. Where `hidepid` hides foreign processes, nothing can be said. The host's cgroup namespace
//! has a fixed inode number.

use crate::reading::Absence;

use super::stat::parse_stat;
use super::status::read_status;
use super::task::ProcRoot;

/// Inode of the first cgroup namespace, `PROC_CGROUP_INIT_INO`.
const HOST_CGROUPS: &str = "cgroup:[4026531835]";

/// How we see processes; does not change while we run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Whether procfs shows the host's processes; `None`: cannot tell.
    pub(crate) host_pids: Option<bool>,
    /// Control group paths start at a namespace's root, or may do so.
    pub(crate) relative_cgroups: bool,
    /// How many PID namespaces we are below the one of our procfs.
    pub(crate) own_depth: usize,
    /// Our own PID namespace, as the link names it.
    pub(crate) own_namespace: Option<String>,
}

pub(crate) fn read_view(root: &ProcRoot) -> View {
    let mut buffer = Vec::new();
    let second = root.read_stat(2, &mut buffer).ok().and_then(|()| parse_stat(&buffer));
    let has_first = root.read_stat(1, &mut buffer).is_ok();
    let host_pids = match second {
        Some(stat) => Some(stat.kernel_thread),
        None if has_first => Some(false),
        None => None,
    };
    let own = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    // `self` is resolved by the kernel for the reader's place in that very procfs.
    let own = root.link("self").ok().and_then(|link| link.parse().ok()).unwrap_or(own);
    let task = root.task(own).ok();
    let depth = task
        .as_ref()
        .and_then(|task| read_status(task, &mut buffer).namespace_pids.value().map(Vec::len));
    let cgroups = root.link("self/ns/cgroup");
    View {
        host_pids,
        relative_cgroups: cgroups.ok().is_none_or(|link| link != HOST_CGROUPS),
        own_depth: depth.map_or(0, |depth| depth.saturating_sub(1)),
        own_namespace: task.and_then(|task| task.link("ns/pid").ok()),
    }
}

impl View {
    /// Whether the driver may give numbers that this procfs does not know.
    pub(crate) fn may_differ(&self) -> bool {
        self.host_pids == Some(false)
    }

    /// Why a process that the driver lists was never seen here.
    pub(crate) fn unseen(&self) -> Absence {
        let what = match self.host_pids {
            Some(true) => "no such process in this /proc: ended, or in another PID namespace",
            Some(false) => "our /proc shows one container only: it runs elsewhere, or has ended",
            None => "our /proc hides other users' processes: it is one of those, or has ended",
        };
        Absence::NotHere { what: what.into() }
    }
}

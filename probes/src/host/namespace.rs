//! Whether our `/proc` is the whole host's.
//!
//! Kernel threads live in the host's PID namespace only, so a procfs in which process 2 is
//! `kthreadd` is the host's, wherever it is mounted. `hidepid` can hide that process, and all
//! others of other users, even on the host.

use crate::machine::{Machine, read_line, read_text};
use crate::reading::{Absence, Reading};

/// The kernel's fixed inode number of the first PID namespace.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// What our `/proc` shows.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Host,
    /// The host's, without processes of others, by this mount option.
    OwnProcesses(String),
    WslDistribution,
    Container,
    NothingRecorded,
}

fn read_shown(machine: &Machine) -> Shown {
    let second = read_line(&machine.proc("2/comm")).ok();
    if second.as_deref() == Some("kthreadd") {
        return Shown::Host;
    }
    let mounts = read_text(&machine.proc("self/mounts")).unwrap_or_default();
    if let Some(hidden) = parse_hidepid(&mounts, &machine.procfs.to_string_lossy()) {
        return Shown::OwnProcesses(hidden);
    }
    let namespace = std::fs::read_link(machine.proc("self/ns/pid")).ok();
    if namespace.is_some_and(|link| link.as_os_str() == FIRST_PID_NAMESPACE) {
        return Shown::Host;
    }
    if second.is_none() && !machine.proc("1").exists() {
        return Shown::NothingRecorded;
    }
    let kernel = read_line(&machine.proc("sys/kernel/osrelease")).unwrap_or_default();
    if is_wsl_kernel(&kernel) { Shown::WslDistribution } else { Shown::Container }
}

pub(super) fn read_pid_namespace(machine: &Machine) -> Reading<String> {
    match read_shown(machine) {
        Shown::Host => "host".to_string(),
        Shown::OwnProcesses(hidden) => {
            format!("processes of other users are hidden here (/proc is mounted with {hidden})")
        }
        Shown::WslDistribution => {
            "inside WSL: /proc shows this distribution's processes only".to_string()
        }
        Shown::Container => {
            let kind = read_mark(machine).map_or(String::new(), |kind| format!(" ({kind})"));
            format!("inside a container{kind}: /proc shows this container's processes only")
        }
        Shown::NothingRecorded => return Reading::Absent(Absence::NoData),
    }
    .into()
}

/// Whether a kernel release is that of Windows' subsystem for Linux.
pub(crate) fn is_wsl_kernel(release: &str) -> bool {
    release.to_ascii_lowercase().contains("microsoft")
}

/// The kind of container that we are in; `None` on a host, or where it cannot be told.
pub(crate) fn read_container(machine: &Machine) -> Option<&'static str> {
    let unmarked = || (read_shown(machine) == Shown::Container).then_some("of unknown kind");
    read_mark(machine).or_else(unmarked)
}

/// The kind of container by the marks that runtimes leave in its root.
fn read_mark(machine: &Machine) -> Option<&'static str> {
    // Kubernetes first: its pods may carry the runtime's mark too.
    [
        ("run/secrets/kubernetes.io", "kubernetes"),
        ("var/run/secrets/kubernetes.io", "kubernetes"),
        ("run/.containerenv", "podman"),
        (".dockerenv", "docker"),
        ("singularity.d", "apptainer"),
        (".singularity.d", "apptainer"),
    ]
    .into_iter()
    .find(|(mark, _)| machine.root(mark).exists())
    .map(|(_, kind)| kind)
}

/// The `hidepid=` option of a procfs mount, where it hides anything.
pub(super) fn parse_hidepid(mounts: &str, procfs: &str) -> Option<String> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind, options) = (words.next()?, words.next()?, words.next()?);
        let hidden = options.split(',').find(|option| option.starts_with("hidepid="))?;
        let hides = !matches!(hidden, "hidepid=0" | "hidepid=off");
        (place == procfs && kind == "proc" && hides).then(|| hidden.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tree::FakeTree;

    #[test]
    fn kernel_threads_tell_the_hosts_processes() {
        let tree = FakeTree::new(&[("proc/2/comm", "kthreadd\n")]);
        assert_eq!(read_pid_namespace(&tree.machine).text(), "host");
    }

    #[test]
    fn a_container_is_named_in_one_line() {
        let tree = FakeTree::new(&[("proc/1/comm", "vllm\n"), (".dockerenv", "")]);
        tree.link("proc/self/ns/pid", "pid:[4026532201]");
        assert_eq!(
            read_pid_namespace(&tree.machine).text(),
            "inside a container (docker): /proc shows this container's processes only"
        );
    }

    #[test]
    fn a_container_without_a_mark_and_wsl_are_told_apart() {
        let tree = FakeTree::new(&[("proc/1/comm", "bash\n")]);
        assert_eq!(read_container(&tree.machine), Some("of unknown kind"));
        tree.write("proc/sys/kernel/osrelease", b"5.15.167.4-microsoft-standard-WSL2\n");
        assert_eq!(read_container(&tree.machine), None);
    }

    #[test]
    fn hidden_processes_are_not_taken_for_a_container() {
        let mounts = "sysfs /sys sysfs rw 0 0\nproc /proc proc rw,nosuid,hidepid=invisible 0 0\n";
        assert_eq!(parse_hidepid(mounts, "/proc").as_deref(), Some("hidepid=invisible"));
        assert_eq!(parse_hidepid("proc /proc proc rw,hidepid=0 0 0", "/proc"), None);
    }

    #[test]
    fn nothing_recorded_is_not_called_a_container() {
        assert!(read_pid_namespace(&FakeTree::new(&[]).machine).absence().is_some());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_in_stride(text in "(.|\n){0,80}") {
            parse_hidepid(&text, "/proc");
        }
    }
}

//! Whether our `/proc` is the whole host's.
//!
//! Kernel threads live in the host's PID namespace only, so a procfs in which process 2 is
//! `kthreadd` is the host's, wherever it is mounted. `hidepid` can hide that process, and all
//! others of other users, even on the host.

use crate::machine::{Machine, read_line, read_text};
use crate::reading::{Absence, Reading};

/// The kernel's fixed inode number of the first PID namespace.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

pub(super) fn read_pid_namespace(machine: &Machine) -> Reading<String> {
    let mounts = read_text(&machine.proc("self/mounts")).unwrap_or_default();
    let second = read_line(&machine.proc("2/comm")).ok();
    let namespace = std::fs::read_link(machine.proc("self/ns/pid")).ok();
    let is_first = namespace.is_some_and(|link| link.as_os_str() == FIRST_PID_NAMESPACE);
    if second.as_deref() == Some("kthreadd") {
        return "host".to_string().into();
    }
    if let Some(hidden) = parse_hidepid(&mounts, &machine.procfs.to_string_lossy()) {
        return format!(
            "processes of other users are hidden here (/proc is mounted with {hidden})"
        )
        .into();
    }
    if is_first {
        return "host".to_string().into();
    }
    if second.is_none() && !machine.proc("1").exists() {
        return Reading::Absent(Absence::NoData);
    }
    let kind = read_container(machine).map_or(String::new(), |kind| format!(" ({kind})"));
    format!("inside a container{kind}: /proc shows this container's processes only").into()
}

/// What kind of container the root file system belongs to, by the marks that runtimes leave.
pub(crate) fn read_container(machine: &Machine) -> Option<&'static str> {
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

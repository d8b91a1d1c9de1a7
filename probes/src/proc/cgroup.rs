//! `/proc/PID/cgroup`: container, pod, systemd unit and batch job, from the names of the groups.
//!
//! Version 2 has one line `0::<path>`, version 1 one line for each hierarchy, mixed boxes both. The
//! path that names a container counts, else the longest. Read from inside a cgroup namespace the
//! paths start at that namespace's root, and a container that looks at itself sees `/`: then there
//! is nothing to learn, which is said, because "no container" would be wrong.

use crate::reading::{Absence, Reading};

use super::task::{Task, clean};

const LIMIT_BYTES: usize = 64 << 10;

/// How many digits of a container id people and runtimes show.
const SHORT_ID: usize = 12;

/// Names in front of a container's id, and the runtime that writes them.
const RUNTIMES: &[(&str, &str)] = &[
    ("docker", "docker"),
    ("cri-containerd", "containerd"),
    ("containerd", "containerd"),
    ("crio", "cri-o"),
    ("crio-conmon", "cri-o"),
    ("libpod", "podman"),
    ("libpod-payload", "podman"),
    ("libpod-conmon", "podman"),
    ("nerdctl", "nerdctl"),
    ("buildkit", "buildkit"),
];

/// What the control group says of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cgroup {
    pub(crate) path: Reading<String>,
    /// Runtime and full id.
    pub(crate) container: Reading<(String, String)>,
    pub(crate) pod: Reading<String>,
    pub(crate) unit: Reading<String>,
    pub(crate) slurm_job: Reading<String>,
}

impl Cgroup {
    /// All of it absent for one reason.
    pub(crate) fn absent(why: &Absence) -> Self {
        Self {
            path: Reading::Absent(why.clone()),
            container: Reading::Absent(why.clone()),
            pod: Reading::Absent(why.clone()),
            unit: Reading::Absent(why.clone()),
            slurm_job: Reading::Absent(why.clone()),
        }
    }
}

/// `docker 4f5c…`: the runtime and twelve digits.
pub(crate) fn container_label(runtime: &str, id: &str) -> String {
    format!("{runtime} {}", id.get(..SHORT_ID).unwrap_or(id))
}

/// `relative`: our own view starts below the root, or we cannot tell that it does not.
pub(crate) fn read_cgroup(task: &Task, relative: bool, buffer: &mut Vec<u8>) -> Cgroup {
    match task.read("cgroup", LIMIT_BYTES, buffer) {
        Ok(()) => parse_cgroup(buffer, relative),
        Err(why) => Cgroup::absent(&why),
    }
}

pub(crate) fn parse_cgroup(text: &[u8], relative: bool) -> Cgroup {
    let text = String::from_utf8_lossy(text);
    let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let best = paths.max_by_key(|path| (find_container(path).is_some(), path.len()));
    let Some(path) = best.filter(|path| path.starts_with('/')) else {
        return Cgroup::absent(&Absence::Failed { what: "its cgroup file names no group".into() });
    };
    if relative && (path == "/" || path.starts_with("/..")) && find_container(path).is_none() {
        return Cgroup {
            path: clean(path.as_bytes()).into(),
            ..Cgroup::absent(&Absence::Failed { what: "inside a cgroup namespace".into() })
        };
    }
    Cgroup {
        path: clean(path.as_bytes()).into(),
        container: known(find_container(path)),
        pod: known(find_pod(path)),
        unit: known(find_unit(path)),
        slurm_job: known(find_slurm_job(path)),
    }
}

fn known<T>(found: Option<T>) -> Reading<T> {
    found.map_or(Reading::UNSUPPORTED, Reading::Value)
}

/// The innermost component that ends in 64 hex digits. A container in a container has two.
fn find_container(path: &str) -> Option<(String, String)> {
    let mut below: Option<&str> = None;
    let mut found = None;
    // The `:` is how a runtime writes a systemd group when it was told to use plain folders.
    for part in path.split(['/', ':']) {
        if let Some((prefix, id)) = split_id(part) {
            let runtime = match (prefix, below) {
                ("", Some("docker")) => "docker",
                ("", Some("libpod_parent" | "libpod")) => "podman",
                ("", Some("crio")) => "cri-o",
                ("", Some("cri-containerd" | "containerd")) => "containerd",
                ("", Some(parent)) if parent.starts_with("pod") => "kubernetes",
                ("", _) => "container",
                (prefix, _) => RUNTIMES
                    .iter()
                    .find_map(|&(name, runtime)| (name == prefix).then_some(runtime))
                    .unwrap_or(prefix),
            };
            found = Some((clean(runtime.as_bytes()), id.to_string()));
        }
        below = Some(part);
    }
    found
}

/// `docker-<id>.scope` as prefix and id; the prefix is empty for a bare id.
fn split_id(part: &str) -> Option<(&str, &str)> {
    let part =
        part.strip_suffix(".scope").or_else(|| part.strip_suffix(".service")).unwrap_or(part);
    let (prefix, id) = part.split_at_checked(part.len().checked_sub(64)?)?;
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if !id.bytes().all(hex) {
        return None;
    }
    match prefix.strip_suffix('-') {
        Some(prefix) if !prefix.is_empty() => Some((prefix, id)),
        None if prefix.is_empty() => Some(("", id)),
        _ => None,
    }
}

/// `pod<uid>` alone or at the end of a slice's name, where `_` stands for `-`. Static pods have 32
/// digits without dashes.
fn find_pod(path: &str) -> Option<String> {
    path.split(['/', ':']).rev().find_map(|part| {
        let part = part.strip_suffix(".slice").unwrap_or(part);
        let uid = part.strip_prefix("pod").or_else(|| Some(part.rsplit_once("-pod")?.1))?;
        let uid = uid.replace('_', "-");
        let digits = uid.bytes().filter(u8::is_ascii_hexdigit).count();
        let dashes = uid.bytes().filter(|&b| b == b'-').count();
        (digits == 32 && digits + dashes == uid.len()).then_some(uid)
    })
}

/// The innermost service, else the innermost scope, that is not a container. A user's own manager
/// (`user@1000.service`) only counts where nothing is named below it.
fn find_unit(path: &str) -> Option<String> {
    let units = || {
        path.split('/')
            .rev()
            .filter(|part| split_id(part).is_none())
            .map(|part| part.trim_matches(':'))
    };
    let manager = |unit: &&str| unit.starts_with("user@");
    let service = units().find(|unit| unit.strip_suffix(".service").is_some() && !manager(unit));
    let scope = || units().find(|unit| unit.strip_suffix(".scope").is_some());
    service.or_else(scope).or_else(|| units().find(manager)).map(|unit| clean(unit.as_bytes()))
}

fn find_slurm_job(path: &str) -> Option<String> {
    if !path.contains("slurm") {
        return None;
    }
    let job = path.split('/').find_map(|part| part.strip_prefix("job_"))?;
    (!job.is_empty() && job.bytes().all(|b| b.is_ascii_digit())).then(|| job.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: &str = "4f5c0e9d1b7a4f5c0e9d1b7a4f5c0e9d1b7a4f5c0e9d1b7a4f5c0e9d1b7a0123";
    const UID: &str = "8c1f2b3a-0d4e-4f5a-9b6c-7d8e9f0a1b2c";

    /// Container, pod, unit and job of one path of version 2; empty for none.
    fn check(path: &str, expected: [&str; 4]) {
        let path = path.replace("<id>", ID).replace("<uid>", UID);
        let path = path.replace("<u_id>", &UID.replace('-', "_"));
        let group = parse_cgroup(format!("0::{path}\n").as_bytes(), false);
        let container = group.container.value();
        let label = container.map(|(runtime, id)| container_label(runtime, id)).unwrap_or_default();
        let got = [&label, group.pod.text(), group.unit.text(), group.slurm_job.text()];
        assert_eq!(got, expected, "{path}");
    }

    #[test]
    fn each_runtime_is_recognised() {
        let kube = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<u_id>.slice";
        check("/system.slice/docker-<id>.scope", ["docker 4f5c0e9d1b7a", "", "", ""]);
        check("/docker/<id>", ["docker 4f5c0e9d1b7a", "", "", ""]);
        check(
            &format!("{kube}/cri-containerd-<id>.scope"),
            ["containerd 4f5c0e9d1b7a", UID, "", ""],
        );
        check(&format!("{kube}/crio-<id>.scope"), ["cri-o 4f5c0e9d1b7a", UID, "", ""]);
        check(&format!("{kube}/crio-<id>.scope/container"), ["cri-o 4f5c0e9d1b7a", UID, "", ""]);
        check("/kubepods/burstable/pod<uid>/<id>", ["kubernetes 4f5c0e9d1b7a", UID, "", ""]);
        check(
            "/system.slice/containerd.service/kubepods-besteffort-pod<u_id>.slice:cri-containerd:<id>",
            ["containerd 4f5c0e9d1b7a", UID, "containerd.service", ""],
        );
        check("/machine.slice/libpod-<id>.scope/container", ["podman 4f5c0e9d1b7a", "", "", ""]);
        check("/system.slice/nerdctl-<id>.scope", ["nerdctl 4f5c0e9d1b7a", "", "", ""]);
        check("/lxc/box/docker/<id>", ["docker 4f5c0e9d1b7a", "", "", ""]);
    }

    #[test]
    fn rootless_podman_keeps_the_unit_that_started_it() {
        check(
            "/user.slice/user-1000.slice/user@1000.service/app.slice/vllm.service/libpod-payload-<id>",
            ["podman 4f5c0e9d1b7a", "", "vllm.service", ""],
        );
        check(
            "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-<id>.scope/container",
            ["podman 4f5c0e9d1b7a", "", "user@1000.service", ""],
        );
    }

    #[test]
    fn units_and_jobs_are_named() {
        check("/system.slice/vllm.service", ["", "", "vllm.service", ""]);
        check(
            "/system.slice/system-vllm.slice/vllm@llama.service",
            ["", "", "vllm@llama.service", ""],
        );
        check("/user.slice/user-0.slice/session-3.scope", ["", "", "session-3.scope", ""]);
        check("/slurm/uid_1000/job_88123/step_0/task_2", ["", "", "", "88123"]);
        check(
            "/system.slice/slurmstepd.scope/job_88123/step_0/user/task_0",
            ["", "", "slurmstepd.scope", "88123"],
        );
        check("/", ["", "", "", ""]);
    }

    #[test]
    fn version_one_takes_the_line_with_the_container() {
        let text = format!(
            "12:pids:/system.slice/containerd.service/a/very/long/path/that/is/longer/than/the/other/one/indeed/it/is\n\
             5:memory:/docker/{ID}\n1:name=systemd:/docker/{ID}\n0::/system.slice/containerd.service\n"
        );
        let group = parse_cgroup(text.as_bytes(), false);
        assert_eq!(group.path.text(), format!("/docker/{ID}"));
        assert_eq!(group.container.value().map(|c| c.0.as_str()), Some("docker"));
    }

    #[test]
    fn a_relative_path_says_so_instead_of_no_container() {
        for path in ["0::/\n", "0::/../other\n", "9:memory:/\n0::/\n"] {
            let group = parse_cgroup(path.as_bytes(), true);
            let why = group.container.absence().map(ToString::to_string);
            assert_eq!(why.as_deref(), Some("inside a cgroup namespace"));
        }
        // A neighbour seen through its id is still a container.
        let group = parse_cgroup(format!("0::/../docker-{ID}.scope").as_bytes(), true);
        assert!(group.container.value().is_some());
    }

    proptest! {
        #[test]
        fn garbage_is_no_container(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_cgroup(&bytes, false);
        }

        #[test]
        fn any_path_of_parts_is_read(parts in prop::collection::vec("[a-f0-9.:_-]{0,70}|é|pod", 0..6)) {
            let _ = parse_cgroup(format!("0::/{}", parts.join("/")).as_bytes(), true);
        }
    }
}

//! Causes why a loaded module cannot be reached: nodes missing, or not ours to open.

use super::{module_line, problem};
use crate::driver::{DeviceNode, Driver, DriverProblem};

/// The node that every program opens first.
const CONTROL: &str = "nvidiactl";
const SHOWN_NODES: usize = 3;

pub(super) fn refused(driver: &Driver) -> Option<DriverProblem> {
    if driver.wsl {
        return None;
    }
    driver.module_version.value()?;
    let nodes = driver.device_nodes.value()?;
    if !nodes.iter().any(|node| node.node == CONTROL) {
        return Some(missing(driver));
    }
    let mut refused: Vec<&DeviceNode> =
        nodes.iter().filter(|node| is_needed(node) && !node.usable).collect();
    refused.sort_by_key(|node| node.node != CONTROL);
    let control = refused.iter().find(|node| node.node == CONTROL);
    // Without the control node nothing works; without every GPU's node there is no GPU.
    let gpus = || nodes.iter().filter(|node| is_needed(node) && node.node != CONTROL);
    let no_gpu = gpus().count() > 0 && gpus().all(|node| !node.usable);
    let first = control.or_else(|| refused.first().filter(|_| no_gpu))?;
    Some(if first.refused_by == "cgroup" {
        by_cgroup(driver, &refused)
    } else {
        by_mode(driver, &refused, first)
    })
}

/// The control node and the GPUs' own, which NVML opens.
fn is_needed(node: &DeviceNode) -> bool {
    let number = node.node.strip_prefix("nvidia").unwrap_or_default();
    node.node == CONTROL || (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn missing(driver: &Driver) -> DriverProblem {
    if let Some(kind) = &driver.container {
        return problem("container_without_gpu_flag", "this container was started without GPUs")
            .found(format!("inside a container ({kind})"))
            .found_all(module_line(driver))
            .found("/dev/nvidiactl is missing here")
            .help("a running container cannot be given GPUs: start a new one with --gpus all, or in Kubernetes with a limit for nvidia.com/gpu");
    }
    problem("missing_device_nodes", "the kernel module is loaded and /dev/nvidiactl is missing")
        .found_all(module_line(driver))
        .help("as root run nvidia-modprobe -c 0 -u, which makes the nodes and disturbs nobody; nvidia-persistenced, once enabled, does so at every boot")
}

fn by_cgroup(driver: &Driver, refused: &[&DeviceNode]) -> DriverProblem {
    let lines = describe(refused);
    match &driver.container {
        Some(kind) => problem("nvml_cgroup_lost", "the device rules of this container do not allow the GPUs")
            .found(format!("inside a container ({kind})"))
            .found_all(lines)
            .help("look on the host whether systemctl daemon-reload ran since this container started, which drops such rules; then start the container anew, which ends its processes; so that it does not happen again, pass the GPUs by CDI or run nvidia-ctk system create-dev-char-symlinks on the host"),
        None => problem("device_node_permission", "the device rules of this control group do not allow the GPUs")
            .found_all(lines)
            .help("look at DevicePolicy and DeviceAllow of the unit that we run in (systemctl status shows it), or at the GPUs that the job was given"),
    }
}

fn by_mode(driver: &Driver, refused: &[&DeviceNode], first: &DeviceNode) -> DriverProblem {
    let title = format!("this user may not open /dev/{}", first.node);
    let group = if first.group.is_empty() { first.gid.to_string() } else { first.group.clone() };
    let by_group = first.gid != 0 && matches!(first.mode.as_bytes(), [_, b'6' | b'7', _]);
    let help = match (by_group, &driver.container) {
        (true, Some(_)) => format!("give the container the host's group {group}: --group-add {}, or keep-groups with rootless podman", first.gid),
        (true, None) => format!("add the user to group {group} (usermod -aG {group} USER) and log in again; until then run infertop as root"),
        (false, _) => "run it as root, or let the module open its nodes to all users (NVreg_DeviceFileMode=0666), which takes effect when the module is loaded next: every GPU process has to stop for that".into(),
    };
    problem("device_node_permission", title).found_all(describe(refused)).help(help)
}

fn describe(nodes: &[&DeviceNode]) -> Vec<String> {
    let line = |node: &&DeviceNode| {
        let why = match node.refused_by.as_str() {
            "cgroup" => "refused by device rules".to_string(),
            "mode" => "refused".to_string(),
            other => format!("refused: {other}"),
        };
        let group = if node.group.is_empty() {
            node.gid.to_string()
        } else {
            format!("{} ({})", node.group, node.gid)
        };
        format!("/dev/{}: mode {}, owner {}, group {group}: {why}", node.node, node.mode, node.uid)
    };
    let mut lines: Vec<String> = nodes.iter().take(SHOWN_NODES).map(line).collect();
    if nodes.len() > SHOWN_NODES {
        lines.push(format!("and {} more nodes", nodes.len() - SHOWN_NODES));
    }
    lines
}

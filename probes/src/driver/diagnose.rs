//! Names the one cause that keeps the whole driver from answering, from files and numbers alone.
//!
//! The order matters: what explains the rest is asked first. No hardware explains a missing module,
//! a missing module explains missing nodes, missing nodes explain the library's answer. Where the
//! cause cannot be told, a neutral id stands with what is known. Advice looks before it mends, and
//! whatever stops servers says so before it is advised.

mod access;
mod hardware;
mod library;
mod module;

use super::{Driver, DriverProblem, PciGpu, Session};

/// NVML's numbers that name a cause of their own.
mod code {
    pub(super) const NO_LIBRARY: u32 = 0;
    pub(super) const NO_PERMISSION: u32 = 4;
    pub(super) const DRIVER_NOT_LOADED: u32 = 9;
    pub(super) const LIBRARY_NOT_FOUND: u32 = 12;
    pub(super) const FUNCTION_NOT_FOUND: u32 = 13;
    pub(super) const GPU_IS_LOST: u32 = 15;
    pub(super) const RESET_REQUIRED: u32 = 16;
    pub(super) const LIB_RM_VERSION_MISMATCH: u32 = 18;
    pub(super) const GPU_NOT_FOUND: u32 = 28;
}

/// The problem of the driver as a whole; `None` when there is none, or while it is still starting.
pub fn diagnose(driver: &Driver) -> Option<DriverProblem> {
    match &driver.session {
        Session::Starting => None,
        Session::Open if driver.gpu_count.get() == Some(0) => Some(no_gpu_counted(driver)),
        Session::Open => library::mismatch_before_it_bites(driver),
        Session::NoAnswer { call, since_ms } => Some(no_answer(driver, call, *since_ms)),
        Session::Failed { code, answer } => Some(failed(driver, *code, answer)),
    }
}

fn failed(driver: &Driver, code: u32, answer: &str) -> DriverProblem {
    let causes: [fn(&Driver, u32) -> Option<DriverProblem>; 8] = [
        hardware::wsl,
        |driver, _| hardware::all_lost(driver),
        hardware::named_by_code,
        |driver, _| hardware::none_here(driver),
        |driver, _| module::not_loaded(driver),
        library::not_found,
        |driver, _| access::refused(driver),
        library::unusable,
    ];
    let cause = causes.iter().find_map(|cause| cause(driver, code));
    let problem = cause.unwrap_or_else(|| unexplained(driver, code));
    if problem.by_design { problem } else { problem.found(said(code, answer)) }
}

/// The library works and counts no GPU.
fn no_gpu_counted(driver: &Driver) -> DriverProblem {
    let known = hardware::all_lost(driver)
        .or_else(|| hardware::none_here(driver))
        .or_else(|| access::refused(driver));
    known.unwrap_or_else(|| {
        let title = match gpus(driver).len() {
            0 => "the driver is loaded and finds no GPU".to_string(),
            count => format!("the driver finds none of the {} on the bus", count_gpus(count)),
        };
        problem("no_gpu_visible", title)
            .found_all(bound_drivers(driver))
            .found_all(module_line(driver))
            .help("look in the kernel log for NVRM lines about these GPUs: RmInitAdapter says that one could not be started, \"not supported\" that it needs another driver")
    })
}

fn no_answer(driver: &Driver, call: &str, since_ms: u64) -> DriverProblem {
    let waited_ms = driver.read.at_ms.saturating_sub(since_ms);
    let title = format!("the driver does not answer: {call} has not returned");
    let problem = problem("driver_call_stuck", title);
    let problem = if waited_ms >= 1000 {
        problem.found(format!("waiting for {} s", waited_ms / 1000))
    } else {
        problem
    };
    problem
        .found_all(module_line(driver))
        .help("look in the kernel log for the first Xid (79, 119 and 120 have this effect); servers that still work can be drained now; a driver in this state is mended by a reboot, which ends every process on the machine")
}

fn unexplained(driver: &Driver, code: u32) -> DriverProblem {
    if let Some(version) = driver.module_version.value()
        && code == code::DRIVER_NOT_LOADED
    {
        let title = format!("NVML says that no driver is loaded, though module {version} is");
        return problem("driver_not_loaded", title)
            .found_all(node_count(driver))
            .help("look in the kernel log for NVRM lines: the module may be on its way in or out, or may have failed at its start");
    }
    problem("driver_init_failed", "NVML cannot be started, and no file shows why")
        .found_all(library::figures(driver))
        .found_all(node_count(driver))
        .found_all(driver.container.as_ref().map(|kind| format!("inside a container ({kind})")))
        .help(if driver.wsl {
            "look whether nvidia-smi works on the Windows side; if it does, wsl --shutdown starts WSL anew and ends everything in it"
        } else if driver.container.is_some() {
            "look whether nvidia-smi works on the host: if it does, start this container anew, which ends its processes; if not, look in the host's kernel log"
        } else if code == code::NO_PERMISSION {
            "look in the kernel log for refusals of SELinux, AppArmor or seccomp, which file modes do not show"
        } else {
            "look in the kernel log for NVRM and Xid lines: the first one names the cause"
        })
}

fn problem(cause: &str, title: impl Into<String>) -> DriverProblem {
    DriverProblem {
        cause: cause.into(),
        title: title.into(),
        blocking: true,
        ..DriverProblem::default()
    }
}

impl DriverProblem {
    fn found(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    fn found_all(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(lines);
        self
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

fn said(code: u32, answer: &str) -> String {
    match code {
        // Not a number of NVML's: the caller's for a library that could not be loaded.
        code::NO_LIBRARY => format!("loading the library: {answer}"),
        // An answer in our own words carries its number already.
        code => {
            let words = answer.strip_suffix(&format!(" (NVML {code})")).unwrap_or(answer);
            format!("NVML answered {code}: {words}")
        }
    }
}

fn gpus(driver: &Driver) -> &[PciGpu] {
    driver.pci_gpus.value().map_or(&[], Vec::as_slice)
}

fn count_gpus(count: usize) -> String {
    if count == 1 { "1 NVIDIA GPU".into() } else { format!("{count} NVIDIA GPUs") }
}

fn module_line(driver: &Driver) -> Option<String> {
    let version = driver.module_version.value()?;
    let flavour = driver.module_flavour.value().map_or(String::new(), |f| format!(", {f}"));
    Some(format!("kernel module {version} is loaded{flavour}"))
}

fn node_count(driver: &Driver) -> Option<String> {
    let nodes = driver.device_nodes.value()?;
    let usable = nodes.iter().filter(|node| node.usable).count();
    Some(format!("{usable} of {} NVIDIA device nodes can be opened", nodes.len()))
}

/// One line for each kernel driver that has GPUs.
fn bound_drivers(driver: &Driver) -> Vec<String> {
    let mut names: Vec<&str> = gpus(driver).iter().map(|gpu| gpu.driver.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let line = |name: &str| {
        let who = addresses(gpus(driver).iter().filter(|gpu| gpu.driver == name));
        if name.is_empty() {
            format!("no kernel driver is bound to {who}")
        } else {
            format!("{name} is bound to {who}")
        }
    };
    names.into_iter().map(line).collect()
}

/// Up to four addresses, and how many more there are.
fn addresses<'a>(gpus: impl Iterator<Item = &'a PciGpu>) -> String {
    let all: Vec<&str> = gpus.map(|gpu| gpu.pci.as_str()).collect();
    let shown = all.iter().take(4).copied().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(4) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests;

//! Causes that lie with the library's file.

use super::{code, module_line, problem};
use crate::driver::{Driver, DriverProblem};
use crate::reading::Absence;

/// Library and module are of different releases while the session still works: the library that we
/// hold is the old one, and the next process gets the new one.
pub(super) fn mismatch_before_it_bites(driver: &Driver) -> Option<DriverProblem> {
    let (module, disk) = versions(driver)?;
    if module == disk {
        return None;
    }
    let title = "every GPU process that is started from now on will fail: the library on disk is of another release than the loaded module";
    let problem = problem("driver_library_mismatch", title)
        .found_all(figures(driver))
        .help("running servers go on while nobody restarts them; look which processes hold the GPUs and plan a window: drain and stop every one of them, then reload the module or reboot, which ends everything else on the machine too");
    Some(DriverProblem { blocking: false, ..problem })
}

/// NVML itself says so.
pub(super) fn mismatch(driver: &Driver) -> DriverProblem {
    let problem = problem(
        "driver_library_mismatch",
        "the loaded kernel module and the driver's library are of different releases",
    )
    .found_all(figures(driver));
    let agree = versions(driver).is_some_and(|(module, disk)| module == disk);
    match (&driver.container, agree) {
        (_, true) => problem
            .found("the two versions above agree, so a second library was loaded")
            .help("look for other copies with ldconfig -p and in LD_LIBRARY_PATH, and remove the one of the wrong release"),
        (Some(_), false) => problem
            .help("look at the module's version on the host; a container keeps the libraries it was started with: start it anew, which ends its processes, and use an image without driver libraries of its own"),
        (None, false) => problem
            .help("servers that still run go on while nobody restarts them; look which processes hold the GPUs, stop every one of them, then reload the module or reboot, which ends everything else on the machine too"),
    }
}

/// The library is not there, or what is there cannot be one.
pub(super) fn not_found(driver: &Driver, code: u32) -> Option<DriverProblem> {
    if code != code::NO_LIBRARY {
        return None;
    }
    let absence = driver.library_path.absence()?;
    let detail = match absence {
        Absence::Failed { what } => Some(what.clone()),
        _ => None,
    };
    let nodes = driver.device_nodes.value();
    let without_gpus = nodes.is_some_and(|nodes| nodes.iter().all(|node| node.node != "nvidiactl"));
    if driver.container.is_some() && without_gpus {
        // Started without GPUs: the missing nodes tell more than the missing library.
        return None;
    }
    let version = driver.module_version.value();
    let help = match (&driver.container, version) {
        (Some(_), _) => "the container's runtime brings the library: look whether NVIDIA_DRIVER_CAPABILITIES has utility, then start the container anew, which ends its processes".to_string(),
        (None, Some(version)) => format!("install the driver's libraries of exactly {version}, the version of the loaded module; if they lie elsewhere, tell infertop the file"),
        (None, None) => "look where libnvidia-ml.so.1 lies (ldconfig -p) and tell infertop the file".to_string(),
    };
    Some(
        problem("missing_nvml_library", "the driver's library libnvidia-ml.so.1 is not found")
            .found_all(module_line(driver))
            .found_all(detail)
            .help(help),
    )
}

/// The library is there and cannot be loaded, or lacks a function.
pub(super) fn unusable(driver: &Driver, code: u32) -> Option<DriverProblem> {
    if !matches!(code, code::NO_LIBRARY | code::FUNCTION_NOT_FOUND) {
        return None;
    }
    let path = driver.library_path.value()?;
    if versions(driver).is_some_and(|(module, disk)| module != disk) {
        return Some(mismatch(driver));
    }
    let title = if code == code::FUNCTION_NOT_FOUND {
        format!("{path} lacks a function that it should have")
    } else {
        format!("{path} cannot be loaded")
    };
    let wanted = driver.module_version.value().map_or(String::new(), |v| format!(" of {v}"));
    Some(
        problem("nvml_library_unusable", title)
            .found_all(figures(driver))
            .help(format!("look whether the file is whole and from NVIDIA's package (dpkg -S or rpm -qf names it, dpkg -V or rpm -V checks it); then install the driver's libraries{wanted} again")),
    )
}

fn versions(driver: &Driver) -> Option<(&str, &str)> {
    Some((driver.module_version.value()?, driver.library_on_disk.value()?))
}

pub(super) fn figures(driver: &Driver) -> Vec<String> {
    let users = driver.module_users.get().map(|users| format!(", in use {users} times"));
    let module = module_line(driver).map(|line| line + &users.unwrap_or_default());
    let library = driver.library_path.value().map(|path| match driver.library_on_disk.value() {
        Some(version) => format!("library {version} on disk: {path}"),
        None => format!("library on disk, without a version in its name: {path}"),
    });
    module.into_iter().chain(library).collect()
}

//! Causes why no NVIDIA module is loaded although there are GPUs.

use super::{bound_drivers, count_gpus, gpus, problem};
use crate::driver::{Built, Driver, DriverProblem};
use crate::reading::{Absence, Reading};

pub(super) fn not_loaded(driver: &Driver) -> Option<DriverProblem> {
    // Under WSL no module is ever loaded here.
    if driver.module_version.absence() != Some(&Absence::NoDriver) || driver.wsl {
        return None;
    }
    let modules = driver.modules.value().map_or(&[][..], Vec::as_slice);
    let rival = ["nouveau", "nova_core"].into_iter().find(|rival| {
        let bound = |gpu: &crate::pci::PciGpu| gpu.driver.replace('-', "_") == *rival;
        gpus(driver).iter().any(bound) || modules.iter().any(|module| module == rival)
    });
    if let Some(rival) = rival {
        return Some(
            problem("nouveau_conflict", format!("the kernel's own driver {rival} is loaded where NVIDIA's is needed"))
                .found_all(bound_drivers(driver))
                .found("no nvidia module is loaded")
                .help(format!("look whether the NVIDIA driver is installed (modinfo nvidia); then blacklist {rival}, rebuild the initramfs and reboot, which ends every process on the machine")),
        );
    }
    Some(explain_by_disk(driver).unwrap_or_else(|| {
        let help = match driver.container {
            Some(_) => "this is a container and the module belongs to the host: look there with modinfo nvidia and in its kernel log",
            None => "look with modinfo nvidia whether a module for this kernel is installed, and in the kernel log why it is not loaded",
        };
        missing(driver).found_all(bound_drivers(driver)).help(help)
    }))
}

fn missing(driver: &Driver) -> DriverProblem {
    let here = match driver.pci_gpus.value() {
        Some(gpus) => format!("{} on the PCI bus", count_gpus(gpus.len())),
        None => "whether there is a GPU cannot be told from here".into(),
    };
    problem("driver_not_loaded", "no NVIDIA kernel module is loaded").found(here)
}

/// What the files for the running kernel say about the reason.
fn explain_by_disk(driver: &Driver) -> Option<DriverProblem> {
    let (built, kernel) = (driver.built.as_ref()?, driver.kernel.value()?);
    match &built.module_file {
        Reading::Value(file) => Some(not_inserted(driver, built, kernel, file)),
        Reading::Absent(Absence::NoData) => Some(not_built(driver, built, kernel)),
        Reading::Absent(_) => None,
    }
}

fn not_inserted(driver: &Driver, built: &Built, kernel: &str, file: &str) -> DriverProblem {
    let secure_boot = built.secure_boot.get() == Some(true);
    let problem =
        missing(driver).found(format!("a module for kernel {kernel} is installed: {file}"));
    if secure_boot {
        return problem
            .found("Secure Boot is on, which refuses modules without a trusted signature")
            .help("look in the kernel log whether the signature was refused; if so, enrol the key that signed the module (mokutil --import) and reboot, which ends every process on the machine; if not, load it: modprobe nvidia");
    }
    problem.help("look in the kernel log for NVRM lines that say why it is not loaded; then load it: modprobe nvidia")
}

fn not_built(driver: &Driver, built: &Built, kernel: &str) -> DriverProblem {
    let no_module = format!("no nvidia module is installed for kernel {kernel}");
    let sources = built.dkms_versions.join(", ");
    if sources.is_empty() {
        return missing(driver)
            .found(no_module)
            .help("look whether a driver is installed and for which kernel (find /lib/modules -name 'nvidia.ko*'); then install the driver for this kernel");
    }
    let dkms = format!("DKMS has the source of {sources}");
    if built.headers.get() == Some(false) {
        let title =
            format!("the NVIDIA module was not built: headers of kernel {kernel} are missing");
        return problem("kernel_headers_missing", title)
            .found(no_module)
            .found(dkms)
            .found(format!("/lib/modules/{kernel}/build leads nowhere"))
            .help(format!("install the headers of the running kernel (linux-headers-{kernel} or kernel-devel-{kernel}), then dkms autoinstall, then modprobe nvidia"));
    }
    missing(driver)
        .found(no_module)
        .found(dkms)
        .help(format!("look with dkms status and in the newest make.log below /var/lib/dkms/nvidia why it was not built; then dkms autoinstall -k {kernel} and modprobe nvidia"))
}

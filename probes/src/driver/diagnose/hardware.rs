//! Causes that lie with the GPUs themselves: none here, given away, lost, or behind WSL.

use super::{addresses, code, count_gpus, gpus, problem};
use crate::driver::{Driver, DriverProblem};

/// No GPU that this system could use.
pub(super) fn none_here(driver: &Driver) -> Option<DriverProblem> {
    let gpus = driver.pci_gpus.value()?;
    if gpus.is_empty() && driver.module_version.value().is_some() {
        let title = "the driver is loaded and the PCI bus shows no NVIDIA GPU";
        return Some(
            problem("no_gpu_visible", title)
                .found("no NVIDIA display controller on the PCI bus")
                .help("look whether the GPUs are passed through to this virtual machine, or powered and seated (lspci -d 10de:); look in the kernel log of the last boots for one that was lost"),
        );
    }
    if gpus.is_empty() {
        let calm = problem("no_gpu_visible", "this machine has no NVIDIA GPU")
            .found("no NVIDIA display controller on the PCI bus")
            .help("nothing is broken; run infertop on the GPU server");
        return Some(DriverProblem { by_design: true, ..calm });
    }
    let given_away = gpus.iter().all(|gpu| gpu.driver.starts_with("vfio"));
    if !given_away {
        return None;
    }
    let title = match gpus.len() {
        1 => "the NVIDIA GPU is given to a virtual machine".to_string(),
        count => {
            format!("{} are given to virtual machines and none is left here", count_gpus(count))
        }
    };
    let calm = problem("no_gpu_visible", title)
        .found(format!("vfio-pci is bound to {}", addresses(gpus.iter())))
        .help("nothing is broken; run infertop inside the guests");
    Some(DriverProblem { by_design: true, ..calm })
}

/// Every GPU of the bus is gone from it.
pub(super) fn all_lost(driver: &Driver) -> Option<DriverProblem> {
    let gpus = gpus(driver);
    if gpus.is_empty() || !gpus.iter().all(|gpu| gpu.on_bus.get() == Some(false)) {
        return None;
    }
    let title = match gpus.len() {
        1 => "the GPU is lost: it does not answer on the PCI bus".to_string(),
        count => format!("{count} of {count} GPUs are lost: none answers on the PCI bus"),
    };
    Some(lost(title).found(format!("no answer from {}", addresses(gpus.iter()))))
}

fn lost(title: impl Into<String>) -> DriverProblem {
    problem("gpu_fell_off_bus", title).help("look in the kernel log for the first Xid and for messages about PCIe and power before it; only a power cycle brings a lost GPU back for sure, and it ends every process on the machine; when it happens again, check power, seating and temperature")
}

/// What NVML's number says by itself.
pub(super) fn named_by_code(driver: &Driver, code: u32) -> Option<DriverProblem> {
    match code {
        code::GPU_IS_LOST | code::GPU_NOT_FOUND => {
            Some(lost("the driver says that the GPUs are lost"))
        }
        code::RESET_REQUIRED => Some(
            problem("gpu_reset_required", "the driver says that the GPUs need a reset").help("look in the kernel log for the Xid that led here; then stop every process that uses these GPUs, monitors included, and reset them with nvidia-smi --gpu-reset"),
        ),
        code::LIBRARY_NOT_FOUND => Some(
            problem("missing_libcuda", "libcuda.so.1, which NVML asks for, is not found").help(
                match driver.container {
                    Some(_) => "look whether NVIDIA_DRIVER_CAPABILITIES of this container has compute and utility, then start it anew",
                    None => "look for libcuda.so.1 with ldconfig -p, and install the driver's compute libraries of the module's version",
                },
            ),
        ),
        code::LIB_RM_VERSION_MISMATCH => Some(super::library::mismatch(driver)),
        _ => None,
    }
}

/// Under WSL the GPUs are Windows': module and nodes of our own never exist.
pub(super) fn wsl(driver: &Driver, _code: u32) -> Option<DriverProblem> {
    if !driver.wsl {
        return None;
    }
    let adapter = driver.device_nodes.value()?.iter().find(|node| node.node == "dxg");
    if adapter.is_some() && driver.library_path.value().is_some() {
        return None;
    }
    let missing_adapter = adapter.is_none().then(|| "/dev/dxg is missing".to_string());
    let missing_library =
        driver.library_path.absence().map(|_| "Windows provides no libnvidia-ml.so.1".to_string());
    Some(
        problem("wsl_no_gpu_adapter", "WSL shows no NVIDIA GPU")
            .found_all(missing_adapter)
            .found_all(missing_library)
            .help("look on the Windows side: has the machine an NVIDIA GPU and a current driver, and is this distribution of version 2 (wsl -l -v)? After a change there, wsl --shutdown starts WSL anew and ends everything in it"),
    )
}

//! Reads the driver's files: the loaded version at each tick, the rest every ten seconds, and at
//! once when the version changes.

use std::time::Instant;

use super::{Driver, PciGpu, files, library, nodes};
use crate::host::{is_wsl_kernel, read_container};
use crate::machine::{Machine, read_line, read_text};
use crate::pci::{merge_vanished, read_pci_gpus};
use crate::reading::{Absence, Reading};
use crate::snapshot::Stamp;

const FULL_EVERY_MS: u64 = 10_000;

/// Reads what files tell about the driver.
#[derive(Debug)]
pub struct DriverProbe {
    machine: Machine,
    driver: Driver,
    full_read_at_ms: Option<u64>,
    /// Every GPU that was on the bus since the start.
    seen: Vec<PciGpu>,
}

impl DriverProbe {
    /// A probe that has read nothing yet.
    pub fn new(machine: Machine) -> Self {
        Self { machine, driver: Driver::default(), full_read_at_ms: None, seen: Vec::new() }
    }

    /// The driver by its files. How the library answers, and the problem that follows from both,
    /// is left for the caller to fill in.
    pub fn read(&mut self, now_ms: u64) -> Driver {
        let start = Instant::now();
        let version = files::read_module_version(&self.machine);
        let due = match self.full_read_at_ms {
            None => true,
            // A clock set back makes the age unknown: read again.
            Some(at_ms) => now_ms < at_ms || now_ms - at_ms >= FULL_EVERY_MS,
        };
        if due || version != self.driver.module_version {
            self.driver.module_version = version;
            self.read_all();
            self.full_read_at_ms = Some(now_ms);
        }
        let took_us = u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX);
        self.driver.read = Stamp { at_ms: now_ms, took_us };
        self.driver.clone()
    }

    fn read_all(&mut self) {
        let (machine, driver) = (&self.machine, &mut self.driver);
        driver.kernel = read_line(&machine.proc("sys/kernel/osrelease")).into();
        driver.module_flavour = files::read_version_file(machine).map(|(_, flavour)| flavour);
        driver.module_users = match read_line(&machine.sys("module/nvidia/refcnt")) {
            Ok(text) => text.parse().map_or_else(
                |_| Reading::Absent(Absence::Failed { what: format!("no count: {text:?}") }),
                Reading::Value,
            ),
            Err(error) => Reading::Absent(files::module_absence(&error)),
        };
        driver.modules = match read_text(&machine.proc("modules")) {
            Ok(text) => files::parse_modules(&text).into(),
            Err(error) => Reading::Absent(Absence::from_io(&error)),
        };
        driver.device_nodes = nodes::read_device_nodes(machine);
        driver.pci_gpus = read_pci_gpus(machine);
        if let Reading::Value(gpus) = &mut driver.pci_gpus {
            merge_vanished(&self.seen, gpus);
            self.seen.clone_from(gpus);
        }
        (driver.library_path, driver.library_on_disk) =
            library::as_readings(library::read_library(machine));
        driver.wsl = is_wsl(machine, driver.kernel.text());
        driver.container = read_container(machine).map(String::from);
        driver.built = driver
            .module_version
            .value()
            .is_none()
            .then(|| files::read_built(machine, driver.kernel.text()));
        read_params(machine, driver);
    }
}

fn read_params(machine: &Machine, driver: &mut Driver) {
    let text = match read_text(&machine.proc("driver/nvidia/params")) {
        Ok(text) => text,
        Err(error) => {
            driver.gsp_enabled = Reading::Absent(files::module_absence(&error));
            driver.profiling_admin_only = Reading::Absent(files::module_absence(&error));
            return;
        }
    };
    let param = |name: &str| {
        files::parse_params(&text).find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    driver.profiling_admin_only = match param("RmProfilingAdminOnly").map(str::parse::<u32>) {
        Some(Ok(value)) => (value != 0).into(),
        _ => Reading::Absent(Absence::NoData),
    };
    let by_gpus = || {
        let gpus = driver.pci_gpus.value()?;
        if gpus.iter().any(|gpu| gpu.firmware.value().is_some()) {
            return Some(true);
        }
        let none_runs = gpus.iter().all(|gpu| gpu.firmware == Reading::UNSUPPORTED);
        (none_runs && !gpus.is_empty()).then_some(false)
    };
    let enabled = param("EnableGpuFirmware").and_then(files::firmware_mode).or_else(by_gpus);
    driver.gsp_enabled = enabled.map_or(Reading::Absent(Absence::NoData), Reading::Value);
}

/// WSL: the kernel carries Microsoft's name, or the node of their paravirtual GPU is there.
fn is_wsl(machine: &Machine, kernel: &str) -> bool {
    is_wsl_kernel(kernel) || machine.device("dxg").exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tree::FakeTree;

    const GPU: &str = "sys/bus/pci/devices/0000:83:00.0";

    fn a_box() -> FakeTree {
        FakeTree::new(&[
            ("sys/module/nvidia/version", "590.48.01\n"),
            ("sys/module/nvidia/refcnt", "31\n"),
            (
                "proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build\n",
            ),
            ("proc/driver/nvidia/params", "EnableGpuFirmware: 18\nRmProfilingAdminOnly: 1\n"),
            ("proc/driver/nvidia/gpus/0000:83:00.0/information", "GPU Firmware: 590.48.01\n"),
            ("proc/modules", "nvidia_uvm 1 0 - Live\nnvidia 1 31 - Live\n"),
            ("proc/sys/kernel/osrelease", "6.8.0-71-generic\n"),
            (&format!("{GPU}/class"), "0x030200\n"),
            (&format!("{GPU}/vendor"), "0x10de\n"),
            ("dev/nvidiactl", ""),
            ("dev/nvidia0", ""),
            ("usr/lib64/libnvidia-ml.so.590.48.01", "\x7fELF\x02"),
        ])
    }

    #[test]
    fn a_working_driver_is_read_whole() {
        let tree = a_box();
        tree.link("usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.590.48.01");
        let driver = DriverProbe::new(tree.machine.clone()).read(1000);
        assert_eq!(driver.module_version.text(), "590.48.01");
        assert_eq!(driver.module_flavour.text(), "open");
        assert_eq!(driver.module_users, 31.into());
        assert_eq!(driver.gsp_enabled, true.into());
        assert_eq!(driver.profiling_admin_only, true.into());
        assert_eq!(driver.library_on_disk.text(), "590.48.01");
        assert_eq!(driver.device_nodes.value().unwrap().len(), 2);
        assert_eq!(driver.pci_gpus.value().unwrap().len(), 1);
        assert_eq!(driver.built, None);
        assert!(!driver.wsl);
    }

    #[test]
    fn an_unloaded_module_is_seen_at_the_next_tick() {
        let tree = a_box();
        let mut probe = DriverProbe::new(tree.machine.clone());
        probe.read(1000);
        std::fs::remove_dir_all(tree.path("sys/module/nvidia")).unwrap();
        std::fs::remove_dir_all(tree.path("proc/driver/nvidia")).unwrap();
        let driver = probe.read(2000);
        assert_eq!(driver.module_version.absence(), Some(&Absence::NoDriver));
        assert_eq!(driver.module_users.absence(), Some(&Absence::NoDriver));
        assert_eq!(driver.gsp_enabled.absence(), Some(&Absence::NoDriver));
        assert!(driver.built.is_some());
    }

    #[test]
    fn a_gpu_that_leaves_the_bus_is_still_counted() {
        let tree = a_box();
        let mut probe = DriverProbe::new(tree.machine.clone());
        probe.read(1000);
        std::fs::remove_dir_all(tree.path(GPU)).unwrap();
        for now_ms in [11_000, 21_000] {
            let driver = probe.read(now_ms);
            let gpus = driver.pci_gpus.value().unwrap();
            assert_eq!((gpus.len(), &gpus[0].on_bus), (1, &false.into()));
        }
    }

    #[test]
    fn an_empty_tree_gives_reasons() {
        let driver = DriverProbe::new(FakeTree::new(&[]).machine.clone()).read(1000);
        assert_eq!(driver.module_version.absence(), Some(&Absence::NoDriver));
        assert!(driver.library_path.absence().is_some());
        assert!(driver.device_nodes.absence().is_some());
        assert!(driver.pci_gpus.absence().is_some());
    }
}

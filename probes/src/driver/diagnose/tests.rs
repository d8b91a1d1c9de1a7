//! All texts stand in one golden file, to be read as prose.

use std::fmt::Write as _;

use super::*;
use crate::driver::{Built, DeviceNode};
use crate::reading::{Absence, Reading};

fn text(text: &str) -> Reading<String> {
    text.to_string().into()
}

fn failed_with(code: u32, answer: &str) -> Session {
    Session::Failed { code, answer: answer.into() }
}

fn gpu(pci: &str, driver: &str) -> PciGpu {
    PciGpu { pci: pci.into(), driver: driver.into(), on_bus: true.into(), ..PciGpu::default() }
}

fn node(name: &str, refused_by: &str) -> DeviceNode {
    DeviceNode {
        node: name.into(),
        mode: if refused_by == "mode" { "660" } else { "666" }.into(),
        gid: 44,
        group: "video".into(),
        usable: refused_by.is_empty(),
        refused_by: refused_by.into(),
        ..DeviceNode::default()
    }
}

/// Two GPUs, module and library of one release, everything as it should be.
fn healthy() -> Driver {
    Driver {
        module_version: text("590.48.01"),
        module_flavour: text("open"),
        module_users: 31.into(),
        library_path: text("/usr/lib64/libnvidia-ml.so.590.48.01"),
        library_on_disk: text("590.48.01"),
        modules: vec!["nvidia_uvm".to_string(), "nvidia".to_string()].into(),
        pci_gpus: vec![gpu("0000:83:00.0", "nvidia"), gpu("0000:84:00.0", "nvidia")].into(),
        device_nodes: nodes(""),
        session: Session::Open,
        gpu_count: 2.into(),
        kernel: text("6.8.0-71-generic"),
        ..Driver::default()
    }
}

fn nodes(refused_by: &str) -> Reading<Vec<DeviceNode>> {
    ["nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"]
        .map(|name| node(name, refused_by))
        .to_vec()
        .into()
}

/// The same two GPUs without a module.
fn unloaded() -> Driver {
    Driver {
        module_version: Reading::Absent(Absence::NoDriver),
        module_flavour: Reading::Absent(Absence::NoDriver),
        module_users: Reading::Absent(Absence::NoDriver),
        modules: Vec::new().into(),
        pci_gpus: vec![gpu("0000:83:00.0", ""), gpu("0000:84:00.0", "")].into(),
        device_nodes: Vec::new().into(),
        session: failed_with(9, "Driver Not Loaded"),
        gpu_count: Reading::default(),
        ..healthy()
    }
}

fn without_library(driver: Driver) -> Driver {
    Driver {
        library_path: Reading::UNSUPPORTED,
        library_on_disk: Reading::UNSUPPORTED,
        session: failed_with(0, "libnvidia-ml.so.1: cannot open shared object file"),
        ..driver
    }
}

fn built(module_file: Reading<String>, headers: bool, dkms: &[&str], secure_boot: bool) -> Built {
    Built {
        module_file,
        headers: headers.into(),
        dkms_versions: dkms.iter().map(ToString::to_string).collect(),
        secure_boot: secure_boot.into(),
    }
}

/// Its name, the driver, the cause that must be named.
type Case = (&'static str, Driver, &'static str);

fn cases() -> Vec<Case> {
    [hardware_cases(), module_cases(), access_cases(), library_cases(), driver_cases(), wsl_cases()]
        .concat()
}

fn docker() -> String {
    "docker".into()
}

fn hardware_cases() -> Vec<Case> {
    let laptop = Driver { pci_gpus: Vec::new().into(), ..unloaded() };
    vec![
        ("a laptop without the driver", without_library(laptop.clone()), "no_gpu_visible"),
        ("a laptop with the library", laptop, "no_gpu_visible"),
        (
            "the driver loaded on a box whose GPUs are gone",
            Driver {
                pci_gpus: Vec::new().into(),
                session: Session::Open,
                gpu_count: 0.into(),
                ..healthy()
            },
            "no_gpu_visible",
        ),
        (
            "all GPUs given to guests",
            Driver {
                pci_gpus: vec![gpu("0000:83:00.0", "vfio-pci"), gpu("0000:84:00.0", "vfio-pci")]
                    .into(),
                ..unloaded()
            },
            "no_gpu_visible",
        ),
        (
            "the library counts none of the GPUs",
            Driver { gpu_count: 0.into(), ..healthy() },
            "no_gpu_visible",
        ),
    ]
}

fn module_cases() -> Vec<Case> {
    let none = || Reading::Absent(Absence::NoData);
    vec![
        (
            "nouveau has the GPU",
            Driver {
                modules: vec!["nouveau".to_string()].into(),
                pci_gpus: vec![gpu("0000:83:00.0", "nouveau")].into(),
                ..unloaded()
            },
            "nouveau_conflict",
        ),
        ("no module and nothing known about the disk", unloaded(), "driver_not_loaded"),
        ("no module and no library", without_library(unloaded()), "driver_not_loaded"),
        (
            "no module and the bus cannot be read",
            Driver { pci_gpus: Reading::UNSUPPORTED, ..unloaded() },
            "driver_not_loaded",
        ),
        (
            "no module, seen from a container",
            Driver { container: Some(docker()), ..unloaded() },
            "driver_not_loaded",
        ),
        (
            "a module is on disk and not loaded",
            Driver {
                built: Some(built(text("updates/dkms/nvidia.ko.zst"), true, &[], false)),
                ..unloaded()
            },
            "driver_not_loaded",
        ),
        (
            "a module is on disk and Secure Boot is on",
            Driver {
                built: Some(built(text("updates/dkms/nvidia.ko.zst"), true, &[], true)),
                ..unloaded()
            },
            "driver_not_loaded",
        ),
        (
            "no driver is installed",
            Driver { built: Some(built(none(), true, &[], false)), ..unloaded() },
            "driver_not_loaded",
        ),
        (
            "headers are missing",
            Driver { built: Some(built(none(), false, &["580.119.02"], false)), ..unloaded() },
            "kernel_headers_missing",
        ),
        (
            "the module was not built for another reason",
            Driver { built: Some(built(none(), true, &["580.119.02"], false)), ..unloaded() },
            "driver_not_loaded",
        ),
    ]
}

fn access_cases() -> Vec<Case> {
    vec![
        (
            "module without nodes",
            Driver {
                device_nodes: Vec::new().into(),
                session: failed_with(9, "Driver Not Loaded"),
                ..healthy()
            },
            "missing_device_nodes",
        ),
        (
            "a container without GPUs",
            Driver {
                device_nodes: Vec::new().into(),
                container: Some(docker()),
                ..without_library(healthy())
            },
            "container_without_gpu_flag",
        ),
        (
            "nodes refused by their mode",
            Driver {
                device_nodes: nodes("mode"),
                session: failed_with(4, "Insufficient Permissions"),
                ..healthy()
            },
            "device_node_permission",
        ),
        (
            "nodes refused by their mode in a container",
            Driver {
                device_nodes: nodes("mode"),
                session: failed_with(4, "Insufficient Permissions"),
                container: Some("podman".into()),
                ..healthy()
            },
            "device_node_permission",
        ),
        (
            "nodes for root only",
            Driver {
                device_nodes: vec![DeviceNode {
                    mode: "600".into(),
                    gid: 0,
                    group: "root".into(),
                    ..node("nvidiactl", "mode")
                }]
                .into(),
                session: failed_with(4, "Insufficient Permissions"),
                ..healthy()
            },
            "device_node_permission",
        ),
        (
            "no permission and the nodes look fine",
            Driver { session: failed_with(4, "Insufficient Permissions"), ..healthy() },
            "driver_init_failed",
        ),
        (
            "a container that lost its device rules",
            Driver {
                device_nodes: nodes("cgroup"),
                session: failed_with(999, "Unknown Error"),
                container: Some(docker()),
                ..healthy()
            },
            "nvml_cgroup_lost",
        ),
        (
            "device rules of a unit or job",
            Driver {
                device_nodes: nodes("cgroup"),
                session: failed_with(999, "Unknown Error"),
                ..healthy()
            },
            "device_node_permission",
        ),
        (
            "unknown error in a container whose nodes look fine",
            Driver {
                session: failed_with(999, "Unknown Error"),
                container: Some(docker()),
                ..healthy()
            },
            "driver_init_failed",
        ),
        (
            "unknown error on the host",
            Driver { session: failed_with(999, "Unknown Error"), ..healthy() },
            "driver_init_failed",
        ),
    ]
}

fn library_cases() -> Vec<Case> {
    let newer = Driver {
        library_path: text("/usr/lib64/libnvidia-ml.so.595.45.04"),
        library_on_disk: text("595.45.04"),
        ..healthy()
    };
    vec![
        ("module without library", without_library(healthy()), "missing_nvml_library"),
        (
            "a library that is a link to nothing",
            Driver {
                library_path: Reading::Absent(Absence::Failed {
                    what: "/usr/lib64/libnvidia-ml.so.1 points to /usr/lib64/libnvidia-ml.so.570.86.15, which does not exist".into(),
                }),
                ..without_library(healthy())
            },
            "missing_nvml_library",
        ),
        (
            "a container without the utility capability",
            Driver { container: Some(docker()), ..without_library(healthy()) },
            "missing_nvml_library",
        ),
        (
            "a library without a symbol",
            Driver { session: failed_with(13, "Function Not Found"), ..healthy() },
            "nvml_library_unusable",
        ),
        (
            "a library that cannot be loaded",
            Driver { session: failed_with(0, "file too short"), ..healthy() },
            "nvml_library_unusable",
        ),
        (
            "libcuda is missing",
            Driver { session: failed_with(12, "Library Not Found"), ..healthy() },
            "missing_libcuda",
        ),
        ("an upgrade under running servers", newer.clone(), "driver_library_mismatch"),
        (
            "an upgrade, seen by a new process",
            Driver { session: failed_with(18, "Driver/library version mismatch"), ..newer.clone() },
            "driver_library_mismatch",
        ),
        (
            "an upgrade of the host, seen in a container",
            Driver {
                session: failed_with(18, "Driver/library version mismatch"),
                container: Some(docker()),
                ..newer
            },
            "driver_library_mismatch",
        ),
        (
            "a mismatch that the files do not show",
            Driver { session: failed_with(18, "Driver/library version mismatch"), ..healthy() },
            "driver_library_mismatch",
        ),
    ]
}

fn driver_cases() -> Vec<Case> {
    let lost = |pci: &str| PciGpu { on_bus: false.into(), ..gpu(pci, "nvidia") };
    vec![
        (
            "every GPU off the bus",
            Driver {
                pci_gpus: vec![lost("0000:83:00.0"), lost("0000:84:00.0")].into(),
                session: failed_with(999, "Unknown Error"),
                ..healthy()
            },
            "gpu_fell_off_bus",
        ),
        (
            "the driver says lost",
            Driver { session: failed_with(15, "GPU is lost"), ..healthy() },
            "gpu_fell_off_bus",
        ),
        (
            "the driver wants a reset",
            Driver { session: failed_with(16, "GPU requires restart"), ..healthy() },
            "gpu_reset_required",
        ),
        (
            "driver not loaded, against the files",
            Driver { session: failed_with(9, "Driver Not Loaded"), ..healthy() },
            "driver_not_loaded",
        ),
        (
            "the first call does not return",
            Driver {
                session: Session::NoAnswer { call: "nvmlInit_v2".into(), since_ms: 1000 },
                read: crate::snapshot::Stamp { at_ms: 43_000, took_us: 1 },
                ..healthy()
            },
            "driver_call_stuck",
        ),
    ]
}

fn wsl_cases() -> Vec<Case> {
    let dxg = || vec![node("dxg", "")].into();
    let wsl = Driver { wsl: true, pci_gpus: Reading::UNSUPPORTED, ..unloaded() };
    vec![
        ("WSL without a GPU", without_library(wsl.clone()), "wsl_no_gpu_adapter"),
        (
            "WSL whose Windows has no NVIDIA driver",
            Driver { device_nodes: dxg(), ..without_library(wsl.clone()) },
            "wsl_no_gpu_adapter",
        ),
        (
            "WSL where NVML fails",
            Driver { device_nodes: dxg(), session: failed_with(999, "Unknown Error"), ..wsl },
            "driver_init_failed",
        ),
    ]
}

#[test]
fn each_case_has_its_cause_and_its_words() {
    let mut texts = String::new();
    for (name, driver, cause) in cases() {
        let problem = diagnose(&driver).unwrap_or_else(|| panic!("{name}: no problem found"));
        assert_eq!(problem.cause, cause, "{name}");
        writeln!(texts, "# {name}\n{problem}\n").unwrap();
    }
    insta::assert_snapshot!(texts);
}

#[test]
fn every_text_keeps_to_the_house_rules() {
    for (name, driver, _) in cases() {
        let problem = diagnose(&driver).unwrap();
        let lines = [&problem.title, &problem.help].into_iter().chain(&problem.evidence);
        for line in lines {
            assert!(!line.is_empty() && !line.ends_with(['.', '!']), "{name}: {line}");
        }
        assert!(!problem.evidence.is_empty(), "{name}: a claim without evidence");
        // Whoever is told to reboot, reload or reset is told what that ends.
        let disturbs = ["reboot", "reload", "reset", "power cycle", "--shutdown"];
        let help = problem.help.replace("daemon-reload", "");
        if disturbs.iter().any(|word| help.contains(word)) {
            let says = ["ends every", "ends everything", "stop every"];
            assert!(
                says.iter().any(|words| problem.help.contains(words)),
                "{name}: {}",
                problem.help
            );
        }
        assert!(!problem.help.contains("rmmod"), "{name}");
    }
}

#[test]
fn a_healthy_driver_and_one_that_starts_have_no_problem() {
    assert_eq!(diagnose(&healthy()), None);
    assert_eq!(diagnose(&Driver { session: Session::Starting, ..unloaded() }), None);
    assert_eq!(diagnose(&Driver::default()), None);
    let no_version = Driver { library_on_disk: Reading::Absent(Absence::NoData), ..healthy() };
    assert_eq!(diagnose(&no_version), None);
}

#[test]
fn a_mismatch_is_told_before_it_bites_and_does_not_block() {
    let driver = Driver { library_on_disk: text("595.45.04"), ..healthy() };
    let problem = diagnose(&driver).unwrap();
    assert!(!problem.blocking && !problem.by_design);
}

#[test]
fn a_machine_without_hardware_is_no_error() {
    let driver = Driver { pci_gpus: Vec::new().into(), ..unloaded() };
    assert!(diagnose(&driver).unwrap().by_design);
}

#[test]
fn a_gpu_whose_node_a_job_may_not_open_is_no_problem_of_the_driver() {
    let some = vec![node("nvidia0", ""), node("nvidia1", "cgroup"), node("nvidiactl", "")];
    assert_eq!(diagnose(&Driver { device_nodes: some.into(), ..healthy() }), None);
}

#[test]
fn the_number_of_an_answer_is_said_once() {
    let session = Session::Failed { code: 9, answer: crate::nvml::codes::words(9) };
    let problem = diagnose(&Driver { session, ..Driver::default() }).unwrap();
    assert_eq!(problem.evidence.last().unwrap(), "NVML answered 9: driver not loaded");
}

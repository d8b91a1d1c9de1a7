//! The library as `nvml-wrapper` sees it: loaded from its path, read through its methods.
//!
//! One process has one box, so every test runs in a child: this program again, with the
//! scenario in the environment and the test's name as the filter.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::disallowed_methods, reason = "the stand-in works in real time")]

use std::path::Path;
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::NvmlError;

/// Runs the body on a box with the library initialised.
fn on_box(name: &str, scenario: &Path, extra: &[(&str, &str)], body: impl FnOnce(&Nvml)) {
    gpubox::on_box(name, scenario, extra, || body(&load().expect("the library initialises")));
}

fn load() -> Result<Nvml, NvmlError> {
    Nvml::builder().lib_path(gpubox::nvml_library().as_os_str()).init()
}

const FROZEN: &[(&str, &str)] = &[("GPUBOX_CLOCK", "frozen:5")];

#[test]
fn eight_h100_are_read() {
    on_box("eight_h100_are_read", &gpubox::scenario("eight-h100"), FROZEN, |nvml| {
        assert_eq!(nvml.device_count().unwrap(), 8);
        assert_eq!(nvml.sys_driver_version().unwrap(), "590.48.01");
        assert_eq!(nvml.sys_nvml_version().unwrap(), "13.590.48.01");
        let gpu = nvml.device_by_index(0).unwrap();
        assert_eq!(gpu.name().unwrap(), "NVIDIA H100 80GB HBM3");
        let memory = gpu.memory_info().unwrap();
        assert_eq!(memory.total, 81559 << 20);
        assert_eq!(memory.reserved, 479 << 20);
        assert_eq!(memory.used, ((68 << 10) + 498 + 20) << 20);
        assert_eq!(memory.total, memory.used + memory.free + memory.reserved);
        let busy = gpu.utilization_rates().unwrap();
        assert_eq!(busy.gpu, 100);
        let processes = gpu.running_compute_processes().unwrap();
        assert_eq!(processes.iter().map(|p| p.pid).collect::<Vec<_>>(), [41000, 40990]);
        assert!(gpu.running_graphics_processes().unwrap().is_empty());
        assert_eq!(gpu.clock_info(Clock::SM).unwrap(), 1980);
        assert_eq!(gpu.temperature(TemperatureSensor::Gpu).unwrap(), 59);
        assert_eq!(gpu.power_usage().unwrap(), 630_000);
        assert_eq!(gpu.current_pcie_link_gen().unwrap(), 5);
        assert!(gpu.is_ecc_enabled().unwrap().currently_enabled);
        assert_eq!(gpu.mig_mode().unwrap().current, 0);
        assert!(matches!(gpu.fan_speed(0), Err(NvmlError::NotSupported)));
        assert_eq!(
            gpu.uuid().unwrap(),
            nvml.device_by_uuid(gpu.uuid().unwrap()).unwrap().uuid().unwrap()
        );
        let pci = gpu.pci_info().unwrap();
        assert_eq!(pci.bus_id, "00000000:19:00.0");
        assert!(gpu.process_utilization_stats(0).unwrap().iter().any(|p| p.pid == 41000));
    });
}

#[test]
fn a_gpu_is_lost_and_the_others_go_on() {
    let name = "a_gpu_is_lost_and_the_others_go_on";
    on_box(name, &gpubox::scenario("lost-one"), &[("GPUBOX_CLOCK", "frozen:60")], |nvml| {
        assert_eq!(nvml.device_count().unwrap(), 8);
        let mut lost = 0;
        for index in 0..8 {
            match nvml.device_by_index(index).map(|gpu| gpu.memory_info().unwrap()) {
                Ok(memory) => assert!(memory.total > 0),
                Err(NvmlError::GpuLost) => lost += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(lost, 1);
    });
}

#[test]
fn a_hanging_gpu_hangs_only_its_callers() {
    let scenario = gpubox::written(
        "hang",
        "[[gpu]]\nmodel = 'L4'\ncount = 2\n[[fault]]\nsymbol = 'nvmlDeviceGetU*'\ngpu = 1\nhang = true\n",
    );
    on_box("a_hanging_gpu_hangs_only_its_callers", &scenario, &[], |nvml| {
        let well = nvml.device_by_index(0).unwrap();
        let sick = nvml.device_by_index(1).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            // The hanging thread is never joined: the child ends with its process.
            scope.spawn(move || {
                let _ = sick.utilization_rates();
                let _ = sender.send(());
            });
            let waited = receiver.recv_timeout(Duration::from_millis(300));
            assert_eq!(waited, Err(std::sync::mpsc::RecvTimeoutError::Timeout));
            assert!(well.utilization_rates().is_ok());
            std::process::exit(0);
        });
    });
}

#[test]
fn an_xid_wakes_who_waits_for_it() {
    let scenario =
        gpubox::written("xid", "[[gpu]]\nmodel = 'H200'\n[[xid]]\nat = 0.4\ngpu = 0\ncode = 79\n");
    on_box("an_xid_wakes_who_waits_for_it", &scenario, &[], |nvml| {
        use nvml_wrapper::bitmasks::event::EventTypes;
        let gpu = nvml.device_by_index(0).unwrap();
        let set = nvml.create_event_set().unwrap();
        let set = gpu.register_events(EventTypes::CRITICAL_XID_ERROR, set).unwrap();
        assert!(matches!(set.wait(20), Err(NvmlError::Timeout)));
        let begun = Instant::now();
        let event = set.wait(5000).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(3));
        assert!(format!("{:?}", event.event_data).contains("79"), "{:?}", event.event_data);
        assert!(matches!(set.wait(20), Err(NvmlError::Timeout)), "an event comes once");
    });
}

#[test]
fn a_mismatched_library_does_not_initialise() {
    let name = "a_mismatched_library_does_not_initialise";
    gpubox::on_box(name, &gpubox::scenario("mismatch"), &[], || {
        assert!(matches!(load(), Err(NvmlError::LibRmVersionMismatch)));
    });
}

#[test]
fn a_driver_reload_ends_every_handle() {
    let scenario = gpubox::written(
        "reload",
        "[[gpu]]\nmodel = 'T4'\n[[reload]]\nat = 0.3\ngone_seconds = 0.3\nnew_version = '595.45.04'\n",
    );
    on_box("a_driver_reload_ends_every_handle", &scenario, &[], |nvml| {
        let gpu = nvml.device_by_index(0).unwrap();
        assert!(gpu.power_usage().is_ok());
        let mut seen = Vec::new();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(3) {
            let word = match gpu.power_usage() {
                Ok(_) => "well",
                Err(NvmlError::DriverNotLoaded) => "gone",
                Err(NvmlError::Uninitialized) => "stale",
                Err(other) => panic!("{other}"),
            };
            if seen.last() != Some(&word) {
                seen.push(word);
            }
            if word == "stale" {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(seen, ["well", "gone", "stale"]);
        let again = load().unwrap();
        assert_eq!(again.sys_driver_version().unwrap(), "595.45.04");
        assert!(matches!(gpu.power_usage(), Err(NvmlError::Uninitialized)));
        assert!(again.device_by_index(0).unwrap().power_usage().is_ok());
    });
}

#[test]
fn a_missing_symbol_fails_when_called() {
    let name = "a_missing_symbol_fails_when_called";
    gpubox::on_box(name, &gpubox::scenario("eight-h100"), &[], || {
        let library = gpubox::without_symbols(
            &gpubox::nvml_library(),
            &["nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetTemperature"],
        );
        let nvml = Nvml::builder().lib_path(library.as_os_str()).init().unwrap();
        let gpu = nvml.device_by_index(0).unwrap();
        assert!(matches!(gpu.memory_info(), Err(NvmlError::FailedToLoadSymbol(_))));
        assert!(gpu.temperature(TemperatureSensor::Gpu).is_err());
        assert!(gpu.power_usage().is_ok());
        let _ = std::fs::remove_dir_all(library.parent().unwrap());
    });
}

#[test]
fn calls_are_counted_for_all_processes() {
    let name = "calls_are_counted_for_all_processes";
    on_box(name, &gpubox::scenario("eight-h100"), &[], |nvml| {
        for _ in 0..5 {
            nvml.device_by_index(3).unwrap().power_usage().unwrap();
        }
        let state = std::env::var_os("GPUBOX_STATE").unwrap();
        let counts = gpubox::call_counts(Path::new(&state)).unwrap();
        let of = |symbol: &str| counts.iter().find(|(name, _)| name == symbol).map(|(_, n)| *n);
        assert_eq!(of("nvmlDeviceGetPowerUsage"), Some(5));
        assert_eq!(of("nvmlInit_v2"), Some(1));
        assert_eq!(of("nvmlDeviceGetSerial"), None);
    });
}

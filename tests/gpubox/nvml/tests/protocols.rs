//! The manners of the C interface: versions, lists, buffers, handles, per-value codes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::disallowed_methods, reason = "the stand-in works in real time")]
#![allow(clippy::borrow_as_ptr, reason = "out parameters of a C interface")]
#![allow(clippy::cast_possible_truncation, reason = "words are taken apart")]

use std::mem::zeroed;
use std::path::Path;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use nvml_wrapper_sys::bindings::*;

/// Calls a function of the library, which is present.
macro_rules! ask {
    ($nvml:ident.$name:ident($($arg:expr),*)) => {{
        let function = $nvml.$name.as_ref().expect(stringify!($name));
        // SAFETY: the arguments are what the generated signature says, and live.
        unsafe { function($($arg),*) }
    }};
}

fn on_box(name: &str, scenario: &Path, extra: &[(&str, &str)], body: impl FnOnce(&NvmlLib)) {
    gpubox::on_box(name, scenario, extra, || {
        // SAFETY: a stand-in runs nothing when it is loaded.
        let nvml = unsafe { NvmlLib::new(gpubox::nvml_library()) }.expect("the library loads");
        assert_eq!(ask!(nvml.nvmlDeviceGetCount_v2(&mut 0)), 1, "nothing works before init");
        assert_eq!(ask!(nvml.nvmlInit_v2()), 0);
        body(&nvml);
        assert_eq!(ask!(nvml.nvmlShutdown()), 0);
        assert_eq!(ask!(nvml.nvmlShutdown()), 1);
    });
}

fn handle(nvml: &NvmlLib, index: u32) -> nvmlDevice_t {
    let mut device = null_mut();
    assert_eq!(ask!(nvml.nvmlDeviceGetHandleByIndex_v2(index, &mut device)), 0);
    device
}

const FROZEN: &[(&str, &str)] = &[("GPUBOX_CLOCK", "frozen:5")];

#[test]
fn handles_and_pointers_are_checked() {
    on_box("handles_and_pointers_are_checked", &gpubox::scenario("eight-h100"), FROZEN, |nvml| {
        let (mut device, mut value) = (null_mut(), 0);
        assert_eq!(ask!(nvml.nvmlDeviceGetHandleByIndex_v2(8, &mut device)), 2);
        assert_eq!(ask!(nvml.nvmlDeviceGetPowerUsage(null_mut(), &mut value)), 2);
        assert_eq!(ask!(nvml.nvmlDeviceGetPowerUsage(0x1234_usize as nvmlDevice_t, &mut value)), 2);
        assert_eq!(ask!(nvml.nvmlDeviceGetPowerUsage(handle(nvml, 0), null_mut())), 2);
        let mut short = [0; 10];
        assert_eq!(ask!(nvml.nvmlDeviceGetName(handle(nvml, 0), short.as_mut_ptr(), 10)), 7);
        assert_eq!(short, [0; 10]);
        assert_eq!(ask!(nvml.nvmlDeviceGetHandleByUUID(c"GPU-nobody".as_ptr(), &mut device)), 6);
        assert_eq!(
            ask!(nvml.nvmlDeviceGetHandleByPciBusId_v2(c"0000:3b:00.0".as_ptr(), &mut device)),
            0
        );
        assert_eq!(device, handle(nvml, 1));
    });
}

#[test]
fn struct_versions_are_checked() {
    on_box("struct_versions_are_checked", &gpubox::scenario("eight-h100"), FROZEN, |nvml| {
        let device = handle(nvml, 0);
        // SAFETY: plain numbers.
        let mut memory: nvmlMemory_v2_t = unsafe { zeroed() };
        for (version, code) in [(0, 25), (2, 25), (0x0100_0028, 25), (0x0200_0028, 0)] {
            memory.version = version;
            assert_eq!(ask!(nvml.nvmlDeviceGetMemoryInfo_v2(device, &mut memory)), code);
        }
        let mut old = nvmlMemory_t { total: 0, free: 0, used: 0 };
        assert_eq!(ask!(nvml.nvmlDeviceGetMemoryInfo(device, &mut old)), 0);
        assert_eq!(old.used, memory.used + memory.reserved);
        assert_eq!(old.total, old.used + old.free);
        let mut temperature =
            nvmlTemperature_v1_t { version: 0x0100_000c, sensorType: 0, temperature: 0 };
        assert_eq!(ask!(nvml.nvmlDeviceGetTemperatureV(device, &mut temperature)), 0);
        assert_eq!(temperature.temperature, 59);
    });
}

#[test]
fn lists_tell_their_length_and_touch_only_what_is_there() {
    let name = "lists_tell_their_length_and_touch_only_what_is_there";
    on_box(name, &gpubox::scenario("eight-h100"), FROZEN, |nvml| {
        let device = handle(nvml, 0);
        let list = nvml.nvmlDeviceGetComputeRunningProcesses_v3.as_ref().unwrap();
        let mut rows = [[0xEEEE_u64; 3]; 4];
        let mut count = 0;
        // SAFETY: 24-byte rows, as many as the count says.
        assert_eq!(unsafe { list(device, &mut count, null_mut()) }, 7);
        assert_eq!(count, 2);
        count = 1;
        // SAFETY: as above.
        assert_eq!(unsafe { list(device, &mut count, rows.as_mut_ptr().cast()) }, 7);
        assert_eq!((count, rows[0]), (2, [0xEEEE; 3]));
        count = 4;
        // SAFETY: as above.
        assert_eq!(unsafe { list(device, &mut count, rows.as_mut_ptr().cast()) }, 0);
        assert_eq!((count, rows[0][0] as u32, rows[2]), (2, 41000, [0xEEEE; 3]));
        assert_eq!(rows[0][2], u64::MAX, "no MIG instance");
        count = 0;
        let empty =
            ask!(nvml.nvmlDeviceGetGraphicsRunningProcesses_v3(device, &mut count, null_mut()));
        assert_eq!((empty, count), (0, 0));
    });
}

#[test]
fn each_field_has_its_own_code_and_type() {
    on_box(
        "each_field_has_its_own_code_and_type",
        &gpubox::scenario("eight-h100"),
        FROZEN,
        |nvml| {
            let device = handle(nvml, 0);
            let wanted = [
                (83, 0, 0, 3),
                (186, 0, 0, 1),
                (186, 1, 3, 0),
                (193, 0, 0, 5),
                (138, 3, 0, 3),
                (138, 40, 2, 0),
                (91, 0, 0, 1),
                (7, 0, 3, 0),
                (11, 0, 0, 3),
                (269, 0, 0, 3),
                (251, 0, 3, 0),
                (230, 0, 0, 1),
                (9999, 0, 3, 0),
            ];
            // SAFETY: plain numbers.
            let mut values = wanted.map(|_| unsafe { zeroed::<nvmlFieldValue_t>() });
            for (value, (id, scope, ..)) in values.iter_mut().zip(wanted) {
                (value.fieldId, value.scopeId) = (id, scope);
            }
            let count = i32::try_from(wanted.len()).unwrap();
            assert_eq!(ask!(nvml.nvmlDeviceGetFieldValues(device, count, values.as_mut_ptr())), 0);
            for (value, (id, scope, code, kind)) in values.iter().zip(wanted) {
                assert_eq!(value.nvmlReturn, code, "field {id} of {scope}");
                assert!(code != 0 || value.valueType == kind, "field {id} of {scope}");
            }
            // SAFETY: type 5 is the signed member.
            assert_eq!(unsafe { values[3].value.siVal }, -8);
        },
    );
}

#[test]
fn gpm_touches_only_the_metrics_asked_for() {
    let name = "gpm_touches_only_the_metrics_asked_for";
    on_box(name, &gpubox::scenario("eight-h100"), FROZEN, |nvml| {
        let device = handle(nvml, 0);
        let mut support = nvmlGpmSupport_t { version: 1, isSupportedDevice: 0 };
        assert_eq!(ask!(nvml.nvmlGpmQueryDeviceSupport(device, &mut support)), 0);
        assert_eq!(support.isSupportedDevice, 1);
        let mut samples = [null_mut(); 2];
        for sample in &mut samples {
            assert_eq!(ask!(nvml.nvmlGpmSampleAlloc(sample)), 0);
            assert_eq!(ask!(nvml.nvmlGpmSampleGet(device, *sample)), 0);
        }
        // A caller whose header has room for three metrics only.
        let mut request = [0x7777_u64; 3 + 5 * 4];
        request[0] = 1 | 3 << 32;
        request[1] = samples[0] as u64;
        request[2] = samples[1] as u64;
        for (position, id) in [2, 164, 20].into_iter().enumerate() {
            request[3 + position * 5] = id;
        }
        assert_eq!(ask!(nvml.nvmlGpmMetricsGet(request.as_mut_ptr().cast())), 0);
        assert_eq!(request[3 + 15..], [0x7777; 5]);
        assert_eq!(request[3] >> 32, 0, "metric 2 answers");
        assert!((f64::from_bits(request[4]) - 92.0).abs() < 0.5);
        for sample in samples {
            assert_eq!(ask!(nvml.nvmlGpmSampleFree(sample)), 0);
            assert_eq!(ask!(nvml.nvmlGpmSampleFree(sample)), 2);
        }
        assert_eq!(ask!(nvml.nvmlGpmMetricsGet(request.as_mut_ptr().cast())), 2);
    });
}

#[test]
fn mig_takes_the_parents_utilisation_away() {
    on_box(
        "mig_takes_the_parents_utilisation_away",
        &gpubox::scenario("mig-h200"),
        FROZEN,
        |nvml| {
            let (device, mut child) = (handle(nvml, 0), null_mut());
            // SAFETY: plain numbers.
            let mut busy: nvmlUtilization_t = unsafe { zeroed() };
            assert_eq!(ask!(nvml.nvmlDeviceGetUtilizationRates(device, &mut busy)), 3);
            assert_eq!(ask!(nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, 2, &mut child)), 6);
            assert_eq!(ask!(nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, 3, &mut child)), 0);
            let mut id = 0;
            assert_eq!(ask!(nvml.nvmlDeviceGetGpuInstanceId(child, &mut id)), 0);
            assert_eq!(id, 9);
            let mut row = [[0_u64; 3]; 4];
            let mut count = 4;
            let list = nvml.nvmlDeviceGetComputeRunningProcesses_v3.as_ref().unwrap();
            // SAFETY: 24-byte rows, as many as the count says.
            assert_eq!(unsafe { list(device, &mut count, row.as_mut_ptr().cast()) }, 0);
            assert_eq!(count, 2);
            assert_eq!(row[0][2] as u32, 1, "the GPU instance of the first tenant");
        },
    );
}

#[test]
fn unified_memory_answers_not_supported_but_lists_processes() {
    let name = "unified_memory_answers_not_supported_but_lists_processes";
    on_box(name, &gpubox::scenario("gb10"), FROZEN, |nvml| {
        let device = handle(nvml, 0);
        let mut memory = nvmlMemory_t { total: 0, free: 0, used: 0 };
        assert_eq!(ask!(nvml.nvmlDeviceGetMemoryInfo(device, &mut memory)), 3);
        let mut count = 0;
        let code =
            ask!(nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &mut count, null_mut()));
        assert_eq!((code, count), (7, 1));
    });
}

#[test]
fn slow_calls_wait_side_by_side() {
    on_box("slow_calls_wait_side_by_side", &gpubox::scenario("sixty-four"), &[], |nvml| {
        let devices: Vec<usize> = (0..64).map(|index| handle(nvml, index) as usize).collect();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for device in devices {
                scope.spawn(move || {
                    for _ in 0..20 {
                        let mut power = 0;
                        let device = device as nvmlDevice_t;
                        assert_eq!(ask!(nvml.nvmlDeviceGetPowerUsage(device, &mut power)), 0);
                    }
                });
            }
        });
        // One after the other they would take 1.28 seconds.
        assert!(begun.elapsed() < Duration::from_millis(700), "{:?}", begun.elapsed());
    });
}

#[test]
fn counters_never_run_backwards() {
    on_box("counters_never_run_backwards", &gpubox::scenario("eight-h100"), &[], |nvml| {
        let device = handle(nvml, 2);
        let mut last = 0;
        for _ in 0..200 {
            let mut energy = 0;
            assert_eq!(ask!(nvml.nvmlDeviceGetTotalEnergyConsumption(device, &mut energy)), 0);
            assert!(energy >= last);
            last = energy;
            std::thread::sleep(Duration::from_micros(200));
        }
    });
}

#[test]
fn a_lying_driver_is_played() {
    let scenario = gpubox::written(
        "lies",
        "[[gpu]]\nmodel = 'H100 80GB HBM3'\n\
         [[fault]]\nsymbol = 'nvmlDeviceGetPowerUsage'\nvalue = 'max'\n\
         [[fault]]\nsymbol = 'nvmlDeviceGetTemperature'\ncode = 15\nafter_calls = 2\n\
         [[fault]]\nsymbol = 'nvmlDeviceGetFanSpeed'\ncode = 999\n",
    );
    on_box("a_lying_driver_is_played", &scenario, &[], |nvml| {
        let (device, mut value) = (handle(nvml, 0), 0);
        assert_eq!(ask!(nvml.nvmlDeviceGetPowerUsage(device, &mut value)), 0);
        assert_eq!(value, u32::MAX);
        let codes = [0; 4].map(|_| ask!(nvml.nvmlDeviceGetTemperature(device, 0, &mut value)));
        assert_eq!(codes, [0, 0, 15, 15]);
    });
}

#[test]
fn a_list_may_grow_between_two_calls() {
    let scenario = gpubox::written(
        "grow",
        "[[gpu]]\nmodel = 'L40S'\n\
         [[process]]\ngpu = 0\nper_gpu = 1\npid = 10\nbytes = 1\n\
         [[process]]\ngpu = 0\nper_gpu = 1\npid = 11\nbytes = 1\n\
         [[process]]\ngpu = 0\nper_gpu = 1\npid = 12\nbytes = 'unavailable'\n\
         [[fault]]\nsymbol = 'nvmlDeviceGetComputeRunningProcesses_v3'\ngrow = 1\n",
    );
    on_box("a_list_may_grow_between_two_calls", &scenario, &[], |nvml| {
        let (device, mut count, mut rows) = (handle(nvml, 0), 0, [[0_u64; 3]; 3]);
        let list = nvml.nvmlDeviceGetComputeRunningProcesses_v3.as_ref().unwrap();
        let mut told = Vec::new();
        for _ in 0..2 {
            // SAFETY: 24-byte rows, at most as many as there are.
            let code = unsafe { list(device, &mut count, rows.as_mut_ptr().cast()) };
            told.push((code, count));
        }
        assert_eq!(told, [(7, 2), (7, 2)]);
        count = 3;
        // SAFETY: as above.
        assert_eq!(unsafe { list(device, &mut count, rows.as_mut_ptr().cast()) }, 0);
        assert_eq!(rows[2][1], u64::MAX);
    });
}

#[test]
fn early_r535_rows_are_longer() {
    let scenario = gpubox::written(
        "r535",
        "[box]\nprocess_row_bytes = 32\n[[gpu]]\nmodel = 'L4'\n\
         [[process]]\ngpu = 0\npid = 10\nbytes = 5\n[[process]]\ngpu = 0\npid = 11\nbytes = 6\n\
         [[fault]]\nsymbol = 'nvmlDeviceGetRunningProcessDetailList'\nmissing = true\n",
    );
    on_box("early_r535_rows_are_longer", &scenario, &[], |nvml| {
        let (device, mut count, mut rows) = (handle(nvml, 0), 2, [[0_u64; 4]; 2]);
        let list = nvml.nvmlDeviceGetComputeRunningProcesses_v3.as_ref().unwrap();
        // SAFETY: 32-byte rows, as this driver writes them.
        assert_eq!(unsafe { list(device, &mut count, rows.as_mut_ptr().cast()) }, 0);
        assert_eq!((rows[1][0] as u32, rows[1][1]), (11, 6));
        let library =
            gpubox::nvml_library_for(Path::new(&std::env::var("GPUBOX_SCENARIO").unwrap()));
        // SAFETY: a stand-in runs nothing when it is loaded.
        let older = unsafe { NvmlLib::new(&library) }.unwrap();
        assert!(older.nvmlDeviceGetRunningProcessDetailList.is_err());
        assert!(older.nvmlDeviceGetConfComputeMemSizeInfo.is_ok());
        let _ = std::fs::remove_dir_all(library.parent().unwrap());
    });
}

#[test]
fn pids_come_from_a_file_and_go_with_their_processes() {
    let scenario = gpubox::written(
        "pids",
        "[[gpu]]\nmodel = 'H200'\ncount = 2\n\
         [[process]]\ngpu = 'all'\nper_gpu = 2\npid_file = 'pids'\nbytes = '1GiB'\n",
    );
    on_box("pids_come_from_a_file_and_go_with_their_processes", &scenario, &[], |nvml| {
        let pids = |gpu| {
            let (mut count, mut rows) = (4, [[0_u64; 3]; 4]);
            let list = nvml.nvmlDeviceGetComputeRunningProcesses_v3.as_ref().unwrap();
            // SAFETY: 24-byte rows, as many as the count says.
            assert_eq!(unsafe { list(handle(nvml, gpu), &mut count, rows.as_mut_ptr().cast()) }, 0);
            rows[..count as usize].iter().map(|row| row[0] as u32).collect::<Vec<_>>()
        };
        assert!(pids(0).is_empty());
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let us = std::process::id();
        let state = std::env::var("GPUBOX_STATE").unwrap();
        let lines = format!("{us}\n{}\n{us}\n", sleeper.id());
        std::fs::write(Path::new(&state).join("pids"), lines).unwrap();
        assert_eq!(pids(0), [us, sleeper.id()]);
        assert_eq!(pids(1), [us]);
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        let begun = Instant::now();
        while pids(0) != [us] {
            assert!(begun.elapsed() < Duration::from_secs(5));
            std::thread::sleep(Duration::from_millis(20));
        }
    });
}

#[test]
fn looking_up_a_hanging_gpu_hangs_too() {
    let scenario = gpubox::written(
        "lookup",
        "[[gpu]]\nmodel = 'L4'\ncount = 2\n[[fault]]\nsymbol = '*'\ngpu = 1\nhang = true\n",
    );
    on_box("looking_up_a_hanging_gpu_hangs_too", &scenario, &[], |nvml| {
        let address = std::ptr::from_ref(nvml) as usize;
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            // SAFETY: the library outlives the wait below; the thread ends with the process.
            let nvml = unsafe { &*(address as *const NvmlLib) };
            handle(nvml, 1);
            let _ = sender.send(());
        });
        assert!(receiver.recv_timeout(Duration::from_millis(200)).is_err());
        handle(nvml, 0);
    });
}

//! A driver that is missing, broken, refused or replaced is told by its cause, on screen and in
//! `once`; never by an empty table, never by leaving.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use probes::driver::Session;
use probes::snapshot::Gpu;
use serde_json::Value;

use crate::frames::Sampler;
use crate::gpu_box::GpuBox;
use crate::terminal::Terminal;
use crate::tree::Tree;
use crate::waiting::until;

const TWO: &str = "[[gpu]]\nmodel = 'H100 80GB HBM3'\ncount = 2\nutilization = 50\n\
    [[process]]\ngpu = 'all'\nper_gpu = 1\npid = 4100000\nbytes = '10GiB'\n";

fn init_answers(code: u32) -> String {
    format!("[box]\ninit_code = {code}\n{TWO}")
}

/// The cause is named by `once`, by `once --json` and on the screen.
fn names(gpu_box: &GpuBox, cause: &str) {
    let (code, text) = gpu_box.once();
    assert_eq!(code, 3, "{text}");
    assert!(text.contains(cause), "{cause} is not in:\n{text}");
    let advice = text.split_whitespace().any(|word| word == "help:");
    assert!(advice, "no next step in:\n{text}");

    let (code, document) = gpu_box.json();
    assert_eq!(code, 3);
    assert_eq!(document["driver"]["problem"]["cause"], cause);
    assert_eq!(document["findings"][0]["cause"], cause);

    let mut terminal = Terminal::start(gpu_box, (24, 80), &[]);
    terminal.wait_for(cause, |text| text.contains(cause) && text.contains("help"));
    terminal.keys("q");
    assert!(terminal.wait_for_end().0.success());
}

#[test]
fn a_machine_without_nvidia_hardware_says_so() {
    let tree = Tree::bare();
    names(&GpuBox::of("empty").without_library().in_tree(&tree), "no_gpu_visible");
}

#[test]
fn gpus_without_a_module_are_a_driver_that_is_not_loaded() {
    let tree = Tree::with_gpus(2);
    names(&GpuBox::of("empty").without_library().in_tree(&tree), "driver_not_loaded");
}

#[test]
fn a_module_without_a_library_is_told() {
    let tree = Tree::with_driver(2, "590.48.01");
    names(&GpuBox::of("empty").without_library().in_tree(&tree), "missing_nvml_library");
}

#[test]
fn a_library_path_that_leads_nowhere_is_told() {
    let tree = Tree::with_driver(2, "590.48.01");
    let gpu_box = GpuBox::of("empty").with_library("/nowhere/libnvidia-ml.so.1").in_tree(&tree);
    names(&gpu_box, "missing_nvml_library");
}

#[test]
fn a_library_that_is_a_text_file_is_told_with_its_path() {
    let tree = Tree::with_driver(2, "590.48.01");
    tree.write("opt/libnvidia-ml.so.1", "this is no library\n");
    let path = tree.path("opt/libnvidia-ml.so.1");
    let gpu_box = GpuBox::of("empty").with_library(&path).in_tree(&tree);
    names(&gpu_box, "nvml_library_unusable");
    let (_, text) = gpu_box.once();
    assert!(text.contains("opt/libnvidia-ml.so.1"), "{text}");
}

#[test]
fn a_library_that_is_cut_off_is_told() {
    let tree = Tree::with_driver(2, "590.48.01");
    let whole = std::fs::read(gpubox::nvml_library()).unwrap();
    tree.write("opt/libnvidia-ml.so.1", &whole[..4096]);
    let path = tree.path("opt/libnvidia-ml.so.1");
    names(&GpuBox::of("empty").with_library(path).in_tree(&tree), "nvml_library_unusable");
}

#[test]
fn a_module_and_a_library_of_two_releases_are_told_with_both_versions() {
    let tree = Tree::with_driver(2, "580.65.06");
    tree.install(&gpubox::nvml_library(), "usr/lib64", "590.48.01");
    let gpu_box = GpuBox::written(&init_answers(18)).without_library().in_tree(&tree);
    names(&gpu_box, "driver_library_mismatch");
    let (_, text) = gpu_box.once();
    assert!(text.contains("580.65.06") && text.contains("590.48.01"), "{text}");
}

#[test]
fn a_mismatch_is_told_without_any_file_to_compare() {
    names(&GpuBox::of("mismatch"), "driver_library_mismatch");
}

#[test]
fn no_permission_is_told_by_what_is_missing() {
    let tree = Tree::with_driver(2, "590.48.01");
    let gpu_box = GpuBox::written(&init_answers(4)).in_tree(&tree);
    names(&gpu_box, "driver_init_failed");
    let (_, text) = gpu_box.once();
    assert!(text.to_lowercase().contains("permission"), "{text}");

    for node in ["nvidiactl", "nvidia0", "nvidia1", "nvidia-uvm"] {
        std::fs::remove_file(tree.path("dev").join(node)).unwrap();
    }
    names(&gpu_box, "missing_device_nodes");
    tree.write(".dockerenv", "");
    names(&gpu_box, "container_without_gpu_flag");
}

#[test]
fn an_unknown_error_is_told_with_its_number() {
    let tree = Tree::with_driver(2, "590.48.01");
    let gpu_box = GpuBox::written(&init_answers(999)).in_tree(&tree);
    names(&gpu_box, "driver_init_failed");
    assert!(gpu_box.once().1.contains("999"));
}

#[test]
fn a_number_that_nobody_knows_yet_is_told_as_well() {
    let tree = Tree::with_driver(2, "590.48.01");
    let gpu_box = GpuBox::written(&init_answers(77)).in_tree(&tree);
    names(&gpu_box, "driver_init_failed");
    assert!(gpu_box.once().1.contains("77"));
}

#[test]
fn a_driver_that_was_unloaded_and_loaded_again_is_taken_anew() {
    let scenario = format!(
        "[box]\ndriver_version = '580.65.06'\n{TWO}\
         [[reload]]\nat = 3\ngone_seconds = 3\nnew_version = '590.48.01'\n"
    );
    let tree = Tree::with_driver(2, "580.65.06");
    let gpu_box = GpuBox::written(&scenario).in_tree(&tree);
    let mut terminal = Terminal::start(&gpu_box, (24, 80), &["--interval", "500ms"]);
    terminal.wait_for("the old driver", |text| {
        text.contains("580.65.06") && text.contains("2×H100") && text.contains("50%")
    });
    tree.unload();
    terminal.wait_for("the loss", |text| text.contains("driver_not_loaded"));
    // The stand-in's driver comes back by its own clock; the module's files follow.
    until("the driver's return", || terminal.started.elapsed() > Duration::from_secs(7));
    tree.load("590.48.01");
    terminal.wait_for("the new driver", |text| {
        text.contains("590.48.01") && !text.contains("driver_not_loaded") && text.contains("50%")
    });
    terminal.keys("q");
    assert!(terminal.wait_for_end().0.success());
}

#[test]
fn a_reload_raises_the_generation_and_the_sampler_never_ends() {
    let scenario = format!("{TWO}[[reload]]\nat = 2\ngone_seconds = 1\n");
    let tree = Tree::with_driver(2, "590.48.01");
    let gpu_box = GpuBox::written(&scenario).in_tree(&tree);
    let begun = Instant::now();
    let mut sampler = Sampler::start(&gpu_box, "500ms");
    let (first, _) = sampler.find("values", |frame| frame.find_gpu(1).is_some_and(Gpu::answers));
    assert_eq!(first.snapshot.generation, 1);
    let (gone, _) = sampler.find("no session", |frame| {
        frame.snapshot.driver.session != Session::Open && !frame.gpu(0).answers()
    });
    assert_eq!(gone.gpu(0).utilization.gpu_ratio.get(), Some(0.5), "the last value is kept");
    // As the module does: it goes and comes.
    tree.unload();
    until("the driver's return", || begun.elapsed() > Duration::from_secs(4));
    tree.load("590.48.01");
    let (back, _) = sampler.find("both back", |frame| {
        frame.snapshot.generation > 1 && frame.snapshot.gpus.iter().all(Gpu::answers)
    });
    assert_eq!(back.snapshot.gpus.len(), 2);
    assert!(back.gpu(0).utilization.read.at_ms > gone.gpu(0).utilization.read.at_ms);
    assert_eq!(back.gpu(0).uuid, first.gpu(0).uuid);
    assert!(sampler.child.try_wait().unwrap().is_none());
}

/// The stand-in library without the symbols that are named, as an older driver has it.
struct Older {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Older {
    fn without(is_missing: impl Fn(&str) -> bool) -> Self {
        let mut bytes = std::fs::read(gpubox::nvml_library()).unwrap();
        // In one pass over the string table: names stand between zeroes there.
        let (mut from, mut hits) = (0, 0);
        while let Some(length) = bytes[from..].iter().position(|byte| *byte == 0) {
            let word = std::str::from_utf8(&bytes[from..from + length]).unwrap_or_default();
            if word.starts_with("nvml") && is_missing(word) {
                bytes[from] = b'#';
                hits += 1;
            }
            from += length + 1;
        }
        assert!(hits > 0, "the stand-in has no such symbol");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnvidia-ml.so.1");
        std::fs::write(&path, bytes).unwrap();
        Self { _folder: folder, path }
    }

    fn gpu_box(&self, tree: &Tree) -> GpuBox {
        GpuBox::written(TWO).with_library(&self.path).in_tree(tree)
    }
}

/// What `once --json` says with a library without some symbols.
fn without(is_missing: impl Fn(&str) -> bool) -> (i32, Value) {
    Older::without(is_missing).gpu_box(&Tree::with_driver(2, "590.48.01")).json()
}

#[test]
fn an_older_library_without_the_newer_memory_call_still_tells_the_memory() {
    let (code, document) = without(|name| name == "nvmlDeviceGetMemoryInfo_v2");
    assert_eq!(code, 0);
    for gpu in document["gpus"].as_array().unwrap() {
        let memory = &gpu["memory"];
        assert!(memory["total_bytes"].as_u64().unwrap() > 70 << 30, "{memory}");
        assert!(memory["used_bytes"].as_u64().unwrap() >= 10 << 30, "{memory}");
        // The older call adds the reserve to what is used, and cannot tell it.
        assert_eq!(memory["reserved_bytes"], Value::Null);
        assert_eq!(gpu["absent"]["memory.reserved_bytes"], "needs a newer driver library");
    }
}

#[test]
fn a_library_without_shutdown_is_refused_with_its_cause_and_nothing_crashes() {
    let older = Older::without(|name| name == "nvmlShutdown");
    names(&older.gpu_box(&Tree::with_driver(2, "590.48.01")), "nvml_library_unusable");
}

#[test]
fn a_library_without_init_is_refused_with_its_cause() {
    let older = Older::without(|name| name == "nvmlInit_v2");
    names(&older.gpu_box(&Tree::with_driver(2, "590.48.01")), "nvml_library_unusable");
}

#[test]
fn whole_groups_that_an_older_library_lacks_leave_the_rest_as_it_was() {
    let groups = [
        ("nvmlGpm", "gpm.tensor_ratio"),
        ("nvmlEvent", ""),
        ("nvmlDeviceGetFieldValues", ""),
        ("nvmlDeviceGetNvLink", ""),
        ("nvmlDeviceGetGpuFabricInfo", ""),
        ("nvmlDeviceGetPcie", ""),
        ("nvmlDeviceGetProcess", ""),
        ("nvmlDeviceGetComputeRunningProcesses", ""),
        ("nvmlDeviceGetTemperature", "temperature.gpu_celsius"),
        ("nvmlDeviceGetPower", ""),
        ("nvmlSystem", ""),
    ];
    for (group, absent) in groups {
        let (code, document) = without(|name| name.starts_with(group));
        assert_eq!(code, 0, "without {group}");
        let gpus = document["gpus"].as_array().unwrap();
        assert_eq!(gpus.len(), 2, "without {group}");
        for gpu in gpus {
            assert_eq!(gpu["health"]["state"], "answering", "without {group}");
            assert!(gpu["memory"]["used_bytes"].is_u64(), "without {group}");
            assert_eq!(gpu["utilization"]["gpu_ratio"], 0.5, "without {group}");
            if !absent.is_empty() {
                assert!(
                    gpu["absent"][absent].is_string(),
                    "{absent} without {group}: {}",
                    gpu["absent"]
                );
            }
        }
    }
}

#[test]
fn no_single_missing_symbol_ends_in_a_crash_or_an_empty_table() {
    let tree = Tree::with_driver(2, "590.48.01");
    let gpu_box = GpuBox::written(TWO).in_tree(&tree);
    assert_eq!(gpu_box.json().0, 0);
    let called: Vec<String> = gpubox::call_counts(gpu_box.state())
        .unwrap()
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| !matches!(name.as_str(), "nvmlInit_v2" | "nvmlShutdown"))
        .collect();
    assert!(called.len() > 30, "{called:?}");
    let next = std::sync::Mutex::new(called.iter());
    std::thread::scope(|scope| {
        // Most of the time each one waits for the second sample.
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(name) = next.lock().unwrap().next() else { return };
                    let (code, document) = without(|symbol| symbol == name);
                    match code {
                        0 => assert_eq!(document["gpus"].as_array().unwrap().len(), 2, "{name}"),
                        3 => assert!(document["driver"]["problem"]["cause"].is_string(), "{name}"),
                        other => panic!("exit code {other} without {name}"),
                    }
                }
            });
        }
    });
}

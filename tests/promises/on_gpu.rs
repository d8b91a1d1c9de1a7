//! The script for machines with a GPU: it keeps working while none is at hand.

use std::path::Path;
use std::process::{Command, Output};

use crate::gpu_box::GpuBox;

fn script(folder: &Path, variables: &[(String, String)]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/on-gpu.sh");
    Command::new(script)
        .args([Path::new(env!("CARGO_BIN_EXE_infertop")), folder])
        .env_remove("INFERTOP_NVML_LIB")
        .envs(variables.iter().cloned())
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("ON_GPU_SECONDS", "2")
        .output()
        .unwrap()
}

#[test]
fn without_a_driver_it_says_so_and_ends_with_success() {
    if Path::new("/proc/driver/nvidia/version").exists() {
        eprintln!("skipped: this machine has a driver");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = script(&folder.path().join("never"), &[]);
    assert!(output.status.success(), "{}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "skipped: no NVIDIA driver here\n");
    assert!(!folder.path().join("never").exists());
}

#[test]
fn with_a_driver_it_fills_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let gpu_box = GpuBox::of("eight-h100");
    let output = script(folder.path(), &gpu_box.environment());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    assert!(errors.is_empty(), "{errors}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let document: serde_json::Value = serde_json::from_str(&read("later.json")).unwrap();
    assert_eq!(document["gpus"].as_array().unwrap().len(), 8);
    assert!(read("once.txt").contains("H100"));
    let summary = read("summary.md");
    for part in [
        "H100 80GB HBM3 (8 rows)",
        "## Memory, MiB",
        "## Processes",
        "## GPM, and L2 through metrics 160 to 165",
        "fields 197 and 198",
        "margin (its sign!)",
        "nvmlDeviceGetMemoryInfo_v2",
        "q took",
    ] {
        assert!(summary.contains(part), "no {part:?} in\n{summary}");
    }
    let screens = std::fs::read_dir(folder.path().join("screens")).unwrap();
    let names: Vec<String> =
        screens.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    assert!(names.iter().any(|name| name.starts_with("1-overview")), "{names:?}");
}

//! `once --json`: schema 1, its keys, and a reason wherever there is no value, on every box.

use std::sync::Mutex;

use serde_json::{Map, Value};

use crate::gpu_box::GpuBox;

fn scenarios() -> Vec<String> {
    let directory = gpubox::scenario("empty").parent().unwrap().to_path_buf();
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_string())
        .collect();
    names.sort();
    names
}

/// The value at a dotted path; the key must be there.
fn at<'a>(subject: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(subject, |value, key| match key.parse::<usize>() {
        Ok(position) if value.is_array() => value.get(position),
        _ => value.get(key),
    })
}

/// Paths of all nulls below a value.
fn nulls(value: &Value, path: &str, found: &mut Vec<String>) {
    let below = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
    match value {
        Value::Null => found.push(path.to_string()),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, item)| nulls(item, &below(&at.to_string()), found));
        }
        Value::Object(map) => map.iter().for_each(|(key, item)| nulls(item, &below(key), found)),
        _ => {}
    }
}

fn has(subject: &Value, name: &str, keys: &[&str]) {
    let reasons = subject["absent"].as_object().unwrap_or_else(|| panic!("{name} has no `absent`"));
    for key in keys {
        let value = at(subject, key).unwrap_or_else(|| panic!("{name} has no {key}"));
        if value.is_null() {
            let reason = reasons.get(*key).and_then(Value::as_str).unwrap_or_default();
            assert!(!reason.is_empty(), "{name}: {key} is null without a reason");
        }
    }
    for (path, reason) in reasons {
        assert_eq!(at(subject, path), Some(&Value::Null), "{name}: {path} is absent and there");
        assert!(reason.as_str().is_some_and(|reason| !reason.is_empty()), "{name}: {path}");
    }
}

const GPU: &[&str] = &[
    "index",
    "uuid",
    "name",
    "pci",
    "memory.total_bytes",
    "memory.used_bytes",
    "memory.reserved_bytes",
    "memory.free_bytes",
    "memory.unattributed_bytes",
    "utilization.gpu_ratio",
    "health.state",
];

const PROCESS: &[&str] =
    &["pid", "gpu_index", "gpu_bytes", "command", "user", "container", "state", "started_at_ms"];

fn check(scenario: &str) {
    let gpu_box = GpuBox::of(scenario);
    let (code, document) = gpu_box.json();
    assert!(matches!(code, 0 | 3), "{scenario}: exit code {code}");
    assert_eq!(document["schema"], 1, "{scenario}");
    for key in ["host", "driver", "gpus", "processes", "self", "findings"] {
        assert!(document.get(key).is_some(), "{scenario}: no {key}");
    }
    assert_eq!(code == 3, document["driver"]["problem"]["blocking"] == true, "{scenario}");
    has(&document["host"], scenario, &["name", "kernel", "memory_total_bytes"]);
    has(
        &document["driver"],
        scenario,
        &["module_version", "version", "cuda_version", "library_path"],
    );
    has(&document["self"], scenario, &["nvml_calls_total", "cpu_ratio", "rss_bytes", "spread_us"]);
    for gpu in document["gpus"].as_array().unwrap() {
        has(gpu, &format!("{scenario}, GPU {}", gpu["index"]), GPU);
        let memory = &gpu["memory"];
        let bytes = |key: &str| memory[key].as_u64();
        if let (Some(total), Some(used), Some(reserved), Some(free)) = (
            bytes("total_bytes"),
            bytes("used_bytes"),
            bytes("reserved_bytes"),
            bytes("free_bytes"),
        ) {
            assert!(used + reserved + free <= total, "{scenario}: {memory}");
        }
    }
    for process in document["processes"].as_array().unwrap() {
        has(process, &format!("{scenario}, process {}", process["pid"]), PROCESS);
    }
}

#[test]
fn every_box_gives_valid_json_with_all_keys_and_reasons() {
    let names = scenarios();
    assert!(names.len() >= 13, "{names:?}");
    let next = Mutex::new(names.iter());
    std::thread::scope(|scope| {
        // Some wait for seconds for a driver that does not answer.
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(name) = next.lock().unwrap().next() else { return };
                    check(name);
                }
            });
        }
    });
}

#[test]
fn a_null_has_its_reason_in_the_map_of_its_subject() {
    let (_, document) = GpuBox::of("gb10").json();
    let gpu = &document["gpus"][0];
    let reasons: &Map<String, Value> = gpu["absent"].as_object().unwrap();
    assert!(!reasons.is_empty());
    let mut found = Vec::new();
    nulls(gpu, "", &mut found);
    // What is optional and no reading: a whole GPU and its processes are in no MIG instance.
    found.retain(|path| path != "mig" && !path.ends_with("_instance"));
    for path in found {
        assert!(reasons.contains_key(&path), "{path} is null without a reason: {reasons:?}");
    }
}

#[test]
fn the_sums_of_the_memory_close() {
    let (_, document) = GpuBox::of("eight-h100").frozen_at(5.0).json();
    let gpus = document["gpus"].as_array().unwrap();
    assert_eq!(gpus.len(), 8);
    for gpu in gpus {
        let memory = |key: &str| gpu["memory"][key].as_u64().unwrap();
        let processes = document["processes"].as_array().unwrap().iter();
        let held: u64 = processes
            .filter(|process| process["gpu_index"] == gpu["index"])
            .filter_map(|process| process["gpu_bytes"].as_u64())
            .sum();
        let sum =
            memory("reserved_bytes") + held + memory("unattributed_bytes") + memory("free_bytes");
        assert_eq!(sum, memory("total_bytes"), "GPU {}", gpu["index"]);
        assert_eq!(memory("unattributed_bytes"), 20 << 20);
    }
}

#[test]
fn instances_of_a_gpu_are_rows_of_their_own() {
    let (code, document) = GpuBox::of("mig-h200").json();
    assert_eq!(code, 0);
    let gpus = document["gpus"].as_array().unwrap();
    let instances: Vec<&Value> = gpus.iter().filter(|gpu| !gpu["mig"].is_null()).collect();
    assert_eq!((gpus.len(), instances.len()), (5, 3));
    for instance in instances {
        assert_eq!(instance["index"], 0);
        assert!(instance["uuid"].as_str().unwrap().starts_with("MIG-"), "{}", instance["uuid"]);
        assert!(instance["memory"]["total_bytes"].is_u64());
    }
}

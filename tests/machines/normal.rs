//! The one place that takes out what differs from run to run: times of this run, durations, own
//! cost, paths and owners of the copy. All else is compared as it is.
//!
//! Times that a recording itself holds (starts of processes, lines of the kernel's log) stay; they
//! are before [`NOW_MS`], the moment at which all pictures are drawn.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use probes::self_cost::{CallCost, SelfCost, Source};
use probes::snapshot::Snapshot;
use serde_json::{Map, Value};

/// 2026-12-01 03:12:07 UTC, as in `make.py`.
pub const NOW_MS: u64 = 1_796_094_727_000;

/// The library's folder in the copy of a root, and as the box itself names it.
const COPY: (&str, &str) = ("root/usr/lib", "/usr/lib");

/// A frame of the sampler.
pub fn snapshot(snapshot: &Snapshot, start_ms: u64) -> Snapshot {
    let mut value = serde_json::to_value(snapshot).unwrap();
    value["self"] = Value::Null;
    value["sequence"] = 100.into();
    walk("", &mut value, start_ms);
    value.as_object_mut().unwrap().remove("self");
    let mut out: Snapshot = serde_json::from_value(value).unwrap();
    out.self_cost = own_cost(&snapshot.self_cost);
    out
}

/// Own cost, with names as they are and round figures.
fn own_cost(real: &SelfCost) -> SelfCost {
    SelfCost {
        pid: 61_990,
        nvml_calls_total: 4_200,
        nvml_seconds_total: 0.21,
        nvml_calls_per_gpu: 14,
        cpu_seconds_total: 0.4.into(),
        cpu_ratio: 0.004.into(),
        rss_bytes: (16 << 20).into(),
        threads: 12.into(),
        sources: real.sources.iter().map(|s| Source { took_us: 100, ..s.clone() }).collect(),
        calls: vec![CallCost {
            call: "nvmlDeviceGetFieldValues".into(),
            count: 60,
            mean_us: 50.0,
            max_us: 90,
        }],
        ..SelfCost::default()
    }
}

/// A document of `once --json` in lines of `path = value`, so that a change is a line.
///
/// Left out are our own cost and how many snapshots it took.
pub fn document(mut document: Value, start_ms: u64) -> String {
    let root = document.as_object_mut().unwrap();
    root.remove("self");
    root.remove("sequence");
    walk("", &mut document, start_ms);
    let mut out = String::new();
    for (name, value) in document.as_object().unwrap() {
        match value {
            Value::Array(items) if matches!(name.as_str(), "gpus" | "processes" | "findings") => {
                let mut before = BTreeMap::new();
                for (at, item) in items.iter().enumerate() {
                    let mut lines = BTreeMap::new();
                    flatten("", item, &mut lines);
                    let _ = writeln!(
                        out,
                        "\n{name}[{at}]{}",
                        if at == 0 { "" } else { ", where it differs from the one before" }
                    );
                    for (path, text) in &lines {
                        if before.get(path) != Some(text) {
                            let _ = writeln!(out, "  {path} = {text}");
                        }
                    }
                    for path in before.keys().filter(|path| !lines.contains_key(*path)) {
                        let _ = writeln!(out, "  {path} is not there");
                    }
                    before = lines;
                }
            }
            value => {
                let mut lines = BTreeMap::new();
                flatten("", value, &mut lines);
                let _ = writeln!(out, "\n{name}");
                for (path, text) in lines {
                    let _ = writeln!(out, "  {path} = {text}");
                }
            }
        }
    }
    out
}

/// The lines of one frame that are not in another.
pub fn difference(one: &Snapshot, other: &Snapshot) -> Vec<String> {
    let lines = |snapshot: &Snapshot| {
        let mut lines = BTreeMap::new();
        flatten("", &serde_json::to_value(snapshot).unwrap(), &mut lines);
        lines
    };
    let before = lines(one);
    let changed = |(path, text): &(String, String)| before.get(path) != Some(text);
    lines(other)
        .into_iter()
        .filter(changed)
        .map(|(path, text)| format!("{path} = {text}"))
        .collect()
}

fn flatten(path: &str, value: &Value, out: &mut BTreeMap<String, String>) {
    let below =
        |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
    match value {
        // A null's reason stands under `absent`; when it was read is a time of this run.
        Value::Null if path != "problem" => {}
        Value::Object(map) if path.ends_with("read") && map.contains_key("took_us") => {}
        Value::Object(map) if path == "absent" => {
            for (name, why) in map {
                out.insert(name.clone(), format!("none: {}", why.as_str().unwrap_or("?")));
            }
        }
        Value::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(name, value)| flatten(&below(name), value, out));
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (at, item) in items.iter().enumerate() {
                flatten(&below(&at.to_string()), item, out);
            }
        }
        value => {
            out.insert(path.to_string(), value.to_string());
        }
    }
}

fn walk(key: &str, value: &mut Value, start_ms: u64) {
    match value {
        Value::Object(map) => {
            if map.contains_key("node") && map.contains_key("gid") {
                own_nothing(map);
            }
            for (key, value) in map {
                walk(key, value, start_ms);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(key, item, start_ms)),
        Value::Number(_) if key == "took_us" => *value = 1.into(),
        Value::Number(number)
            if key.ends_with("_ms")
                && number.as_u64().is_some_and(|ms| ms >= start_ms.saturating_sub(10_000)) =>
        {
            *value = NOW_MS.into();
        }
        Value::String(text) if text.contains(COPY.0) => *text = self::text(text),
        _ => {}
    }
}

/// A device node belongs to whoever made the copy.
fn own_nothing(node: &mut Map<String, Value>) {
    for key in ["uid", "gid"] {
        node.insert(key.into(), 0.into());
    }
    node.insert("group".into(), "root".into());
}

/// A text for people: only paths of the copy vary.
pub fn text(text: &str) -> String {
    text.replace(COPY.0, COPY.1)
}

//! One snapshot as a JSON document, schema 1.
//!
//! Made from the snapshot itself, so that a new reading is in it without an edit here: a value
//! stands under its name, an absence becomes `null` with its reason under the same path in the map
//! `absent` of its subject. Only ever extended.

use probes::ledger::{Ledger, ledgers};
use probes::reading::{Absence, Reading};
use probes::snapshot::Snapshot;
use serde_json::{Map, Value, json};

/// The document, indented.
pub(crate) fn document(snapshot: &Snapshot) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(&value(snapshot)?)?;
    text.push('\n');
    Ok(text)
}

/// The document in one line.
pub(crate) fn line(snapshot: &Snapshot) -> anyhow::Result<String> {
    let mut text = serde_json::to_string(&value(snapshot)?)?;
    text.push('\n');
    Ok(text)
}

fn value(snapshot: &Snapshot) -> anyhow::Result<Value> {
    let mut root = serde_json::to_value(snapshot)?;
    let ledgers = ledgers(snapshot);
    if let Some(gpus) = root["gpus"].as_array_mut() {
        for (gpu, ledger) in gpus.iter_mut().zip(&ledgers) {
            add_ledger(gpu, ledger)?;
            lift_absences(gpu);
        }
    }
    let processes = root["processes"].take();
    root["processes"] = processes.as_array().into_iter().flatten().flat_map(rows).collect();
    for subject in ["host", "driver", "self", "kernel_log"] {
        lift_absences(&mut root[subject]);
    }
    root["findings"] = serde_json::to_value(playbooks::judge(snapshot))?;
    Ok(root)
}

fn add_ledger(gpu: &mut Value, ledger: &Ledger) -> anyhow::Result<()> {
    gpu["memory"]["unattributed_bytes"] = serde_json::to_value(&ledger.unattributed_bytes)?;
    gpu["memory"]["shared_bytes"] = ledger.shared_bytes.into();
    Ok(())
}

/// One row for each GPU that a process is on; one row alone for a process on none.
fn rows(process: &Value) -> Vec<Value> {
    let mut common = process.clone();
    let uses = common.as_object_mut().and_then(|common| common.remove("gpus"));
    let uses = uses.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
    let none =
        [json!({ "gpu_index": absent(&Absence::NoData), "gpu_bytes": absent(&Absence::NoData) })];
    let uses = if uses.is_empty() { none.to_vec() } else { uses };
    uses.into_iter()
        .map(|part| {
            let mut row = common.clone();
            if let (Some(row), Value::Object(part)) = (row.as_object_mut(), part) {
                row.extend(part);
            }
            lift_absences(&mut row);
            row
        })
        .collect()
}

fn absent(absence: &Absence) -> Value {
    serde_json::to_value(Reading::<u64>::Absent(absence.clone())).unwrap_or(Value::Null)
}

/// Turns absences below a subject into `null`, and lists them under `absent` by dotted path.
fn lift_absences(subject: &mut Value) {
    let mut reasons = Map::new();
    walk(subject, "", &mut reasons);
    if let Value::Object(subject) = subject {
        subject.insert("absent".into(), Value::Object(reasons));
    }
}

fn walk(value: &mut Value, path: &str, reasons: &mut Map<String, Value>) {
    let below =
        |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
    if let Some(absence) = as_absence(value) {
        reasons.insert(path.to_string(), absence.to_string().into());
        *value = Value::Null;
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, child) in map {
                walk(child, &below(name), reasons);
            }
        }
        Value::Array(items) => {
            for (at, child) in items.iter_mut().enumerate() {
                walk(child, &below(&at.to_string()), reasons);
            }
        }
        _ => {}
    }
}

/// The absence that stands for a reading; a subject that has a field of that name is none.
fn as_absence(value: &Value) -> Option<Absence> {
    let map = value.as_object()?;
    let has_only_its_own = map.keys().all(|key| matches!(key.as_str(), "absent" | "need" | "what"));
    let tag = map.get("absent").filter(|tag| tag.is_string() && has_only_its_own);
    tag.and_then(|_| serde_json::from_value(value.clone()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use probes::proc::{GpuUse, Process};
    use probes::snapshot::Gpu;

    #[test]
    fn a_source_that_says_why_it_gave_nothing_is_no_absent_reading() {
        let sources = vec![probes::self_cost::Source {
            name: "kernel log".into(),
            absent: Some("no permission".into()),
            ..Default::default()
        }];
        let self_cost = probes::self_cost::SelfCost { sources, ..Default::default() };
        let snapshot = Snapshot { self_cost, ..Snapshot::default() };
        let json: Value = serde_json::from_str(&document(&snapshot).unwrap()).unwrap();
        assert_eq!(json["self"]["sources"][0]["absent"], "no permission");
    }

    #[test]
    fn an_absent_reading_is_null_with_its_reason_beside_it() {
        let mut gpu = Gpu { uuid: "GPU-1".to_string().into(), ..Gpu::default() };
        gpu.memory.used_bytes = 5.into();
        let part = |gpu_index| GpuUse { gpu_index, gpu_bytes: 7.into(), ..GpuUse::default() };
        let process = Process { pid: 9, gpus: vec![part(0), part(1)], ..Process::default() };
        let snapshot = Snapshot {
            schema: 1,
            gpus: vec![gpu],
            processes: vec![process, Process { pid: 10, ..Process::default() }],
            ..Snapshot::default()
        };
        let json: Value = serde_json::from_str(&document(&snapshot).unwrap()).unwrap();
        assert_eq!(json["schema"], 1);
        let gpu = &json["gpus"][0];
        assert_eq!((&gpu["uuid"], &gpu["memory"]["used_bytes"]), (&json!("GPU-1"), &json!(5)));
        assert_eq!(gpu["memory"]["total_bytes"], Value::Null);
        assert_eq!(gpu["absent"]["memory.total_bytes"], "not read yet");
        assert_eq!(gpu["absent"]["memory.unattributed_bytes"], "not read yet");
        let rows: Vec<_> = json["processes"].as_array().unwrap().iter().collect();
        assert_eq!(rows.iter().map(|row| &row["pid"]).collect::<Vec<_>>(), [9, 9, 10]);
        assert_eq!((&rows[1]["gpu_index"], &rows[1]["gpu_bytes"]), (&json!(1), &json!(7)));
        assert_eq!(rows[2]["gpu_index"], Value::Null);
        assert!(rows[2]["absent"]["gpu_index"].is_string());
    }
}

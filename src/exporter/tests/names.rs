//! Names are spelled alike, and whoever uses one uses one that there is. The GPU's and the host's rows
//! are held to the same by `tests/architecture.rs`.

use std::collections::BTreeSet;
use std::path::Path;

use probes::host::HOST_METRICS;
use probes::nvml;
use prometheus_client::metrics::MetricType;

use crate::exporter::own::ROWS;

/// Base units, and what is counted.
const UNITS: [&str; 3] = ["bytes", "seconds", "info"];

/// Numbers that are no quantity of a unit.
const UNITLESS: [&str; 11] = [
    // Yes or no.
    "infertop_config_broken",
    "infertop_finding_active",
    "infertop_gpu_up",
    "infertop_released",
    "infertop_sampler_up",
    "infertop_store_up",
    // Counts of what the name says.
    "infertop_findings",
    "infertop_gpu_holders",
    "infertop_gpus_expected",
    "infertop_gpus_visible",
    "infertop_snapshots",
];

/// Labels whose values are bounded by the hardware, by the rule book or by this program. What a
/// process or a user brings in never is.
const BOUNDED: [&str; 11] = [
    "cause",
    "cuda_version",
    "gpu",
    "mig",
    "module_version",
    "name",
    "pci",
    "severity",
    "uuid",
    "version",
    "",
];

/// Every exported name.
fn all() -> BTreeSet<&'static str> {
    let own = ROWS.iter().map(|row| row.name);
    let names = nvml::metrics().map(|metric| metric.name).chain(own);
    let names: Vec<_> = names.chain(HOST_METRICS.iter().map(|metric| metric.name)).collect();
    let known: BTreeSet<_> = names.iter().copied().collect();
    assert_eq!(known.len(), names.len(), "a name stands twice");
    known
}

#[test]
fn own_rows_say_what_they_are_in_a_sentence_and_have_their_unit_in_their_name() {
    for row in ROWS {
        let name = row.name;
        let rest = name.strip_prefix("infertop_").unwrap();
        assert!(rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert_eq!(rest.ends_with("_total"), row.kind == MetricType::Counter, "{name}");
        assert_eq!(rest.ends_with("_info"), row.kind == MetricType::Info, "{name}");
        if row.kind == MetricType::Gauge {
            let unit = UNITS.iter().any(|unit| rest.ends_with(unit));
            assert!(unit || UNITLESS.contains(&name), "{name} has no unit: one of {UNITS:?}");
        }
        let starts = row.help.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
        assert!(starts && row.help.ends_with('.') && row.help.len() > 10, "{name}: {}", row.help);
        assert!(row.help.len() <= 110, "{name}: {}", row.help);
        for label in row.labels {
            assert!(BOUNDED.contains(label), "{name}: is {label} bounded?");
        }
    }
    all();
}

/// Words of a text that look like our metrics.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("infertop_")).map(String::from).collect()
}

#[test]
fn alerts_and_dashboard_use_only_metrics_that_are_exported() {
    let known = all();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging");
    for file in ["alerts.yml", "alerts_test.yml", "grafana/infertop.json"] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let named = named(&text);
        assert!(named.len() > 8, "{file}: {named:?}");
        for name in named {
            assert!(known.contains(&*name), "packaging/{file}: there is no metric {name}");
        }
    }
}

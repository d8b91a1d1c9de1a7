//! The table.

use std::collections::BTreeSet;

use probes::finding::Severity;
use prometheus_client::metrics::MetricType;

use super::facts::{Facts, gpu_of};
use super::{Pick, Row};
use crate::exporter::tables::labels;
use crate::store::StoreState;

const fn one(
    name: &'static str,
    kind: MetricType,
    help: &'static str,
    pick: fn(&Facts) -> Option<f64>,
) -> Row {
    Row { name, kind, labels: &[], help, pick: Pick::One(pick) }
}

const fn gauge(name: &'static str, help: &'static str, pick: fn(&Facts) -> Option<f64>) -> Row {
    one(name, MetricType::Gauge, help, pick)
}

const fn counter(name: &'static str, help: &'static str, pick: fn(&Facts) -> Option<f64>) -> Row {
    one(name, MetricType::Counter, help, pick)
}

const fn each(
    name: &'static str,
    kind: MetricType,
    labels: &'static [&'static str],
    help: &'static str,
    pick: fn(&Facts) -> Vec<(Vec<String>, f64)>,
) -> Row {
    Row { name, kind, labels, help, pick: Pick::Each(pick) }
}

const SEVERITIES: [(Severity, &str); 3] =
    [(Severity::Critical, "critical"), (Severity::Warning, "warning"), (Severity::Info, "info")];

/// What the daemon says besides the metric tables.
pub(in crate::exporter) const ROWS: &[Row] = &[
    each("infertop_build_info", MetricType::Info, &["version"], "Version of the daemon.", |_| {
        vec![(vec![env!("CARGO_PKG_VERSION").into()], 1.0)]
    }),
    gauge("infertop_start_time_seconds", "When the daemon started, since 1970.", |facts| {
        Some(facts.started_ms as f64 / 1000.0)
    }),
    each(
        "infertop_driver_info",
        MetricType::Info,
        &["version", "module_version", "cuda_version"],
        "Versions of the driver: of its library, of its kernel module, and of the newest CUDA it runs.",
        |facts| {
            let driver = facts.last().map(|snapshot| &snapshot.driver);
            let versions = driver.map(|driver| {
                [&driver.version, &driver.module_version, &driver.cuda_version]
                    .map(|reading| reading.text().to_string())
            });
            let known = versions.filter(|versions| versions.iter().any(|text| !text.is_empty()));
            known.map(|versions| (versions.into(), 1.0)).into_iter().collect()
        },
    ),
    each(
        "infertop_gpu_info",
        MetricType::Info,
        &["gpu", "mig", "uuid", "name", "pci"],
        "Who a GPU or MIG instance is; it stays while the GPU does not answer.",
        |facts| {
            let mut seen = BTreeSet::new();
            let gpus = facts.last().into_iter().flat_map(|snapshot| &snapshot.gpus);
            let described = gpus.map(|gpu| {
                let [(_, index), (_, mig)] = labels(gpu);
                let [uuid, name, pci] =
                    [&gpu.uuid, &gpu.name, &gpu.pci].map(|reading| reading.text().to_string());
                (vec![index, mig, uuid, name, pci], 1.0)
            });
            described.filter(|(labels, _)| seen.insert(labels[..2].to_vec())).collect()
        },
    ),
    each(
        "infertop_gpu_up",
        MetricType::Gauge,
        &["gpu"],
        "1 when the GPU answers; 0 when it is lost, stuck or refuses, and while nobody asks it.",
        |facts| facts.gpus().map(|(gpu, up)| (vec![gpu.index.to_string()], truth(up))).collect(),
    ),
    gauge(
        "infertop_gpus_expected",
        "GPUs that this box should have: on its bus or counted by the driver, lost ones included.",
        |facts| facts.expected().map(|count| count as f64),
    ),
    gauge("infertop_gpus_visible", "GPUs that answer.", |facts| {
        facts.last()?;
        Some(facts.gpus().filter(|(_, up)| *up).count() as f64)
    }),
    each(
        "infertop_gpu_memory_held_bytes",
        MetricType::Gauge,
        &["gpu", "mig"],
        "Device memory that the driver counts for the processes that are seen.",
        |facts| {
            let sums = facts.ledgers().filter(|(_, ledger)| {
                ledger.holders.iter().all(|holder| holder.bytes.value().is_some())
            });
            sums.map(|(gpu, ledger)| (gpu_labels(gpu), ledger.held_bytes() as f64)).collect()
        },
    ),
    each(
        "infertop_gpu_memory_unattributed_bytes",
        MetricType::Gauge,
        &["gpu", "mig"],
        "Device memory in use that no process accounts for.",
        |facts| {
            let sums = facts.ledgers();
            sums.filter_map(|(gpu, ledger)| {
                Some((gpu_labels(gpu), ledger.unattributed_bytes.get()? as f64))
            })
            .collect()
        },
    ),
    each(
        "infertop_gpu_holders",
        MetricType::Gauge,
        &["gpu", "mig"],
        "Processes that hold memory of the GPU.",
        |facts| {
            let sums = facts.ledgers().filter(|(gpu, _)| gpu.processes.list.value().is_some());
            sums.map(|(gpu, ledger)| (gpu_labels(gpu), ledger.holders.len() as f64)).collect()
        },
    ),
    each(
        "infertop_findings",
        MetricType::Gauge,
        &["severity"],
        "What is wrong, counted; left out while nobody looks.",
        |facts| {
            let Some(findings) = facts.findings() else { return Vec::new() };
            let count = |severity| findings.iter().filter(|f| f.severity == severity).count();
            let counted = SEVERITIES.iter();
            counted
                .map(|(severity, name)| (vec![(*name).into()], count(*severity) as f64))
                .collect()
        },
    ),
    each(
        "infertop_finding_active",
        MetricType::Gauge,
        &["cause", "severity", "gpu"],
        "1 for each cause that is found now; gpu is empty for what is not of one GPU.",
        |facts| {
            let findings = facts.findings().into_iter().flatten();
            let known: BTreeSet<[String; 3]> = findings
                .map(|finding| {
                    let named =
                        SEVERITIES.iter().find(|(severity, _)| *severity == finding.severity);
                    let severity = named.map_or("", |(_, name)| name);
                    [finding.cause.clone(), severity.into(), gpu_of(finding)]
                })
                .collect();
            known.into_iter().map(|labels| (labels.into(), 1.0)).collect()
        },
    ),
    gauge(
        "infertop_sampler_up",
        "1 while snapshots come; 0 when none is new or wanted.",
        |facts| Some(truth(facts.fresh().is_some())),
    ),
    counter("infertop_sampler_starts_total", "Times that the sampler was started.", |facts| {
        Some(facts.sampler_starts as f64)
    }),
    gauge("infertop_released", "1 while the GPUs are let go on request.", |facts| {
        Some(truth(facts.is_released()))
    }),
    gauge(
        "infertop_snapshot_age_seconds",
        "Time since the newest snapshot came; beyond three intervals and 2 s what it says is left out.",
        |facts| facts.age.map(|age| age.as_secs_f64()),
    ),
    counter("infertop_snapshots_total", "Snapshots that have come.", |facts| {
        Some(facts.frames() as f64)
    }),
    gauge(
        "infertop_config_broken",
        "1 while the configuration on disk has a mistake and an older one holds.",
        |facts| Some(truth(facts.config_broken)),
    ),
    gauge("infertop_store_up", "1 while the history is written.", |facts| {
        Some(truth(facts.store.state == StoreState::Ok))
    }),
    gauge("infertop_store_bytes", "Size of the history.", |facts| Some(facts.store.bytes as f64)),
    gauge(
        "infertop_store_span_seconds",
        "Stretch of time that whole snapshots are kept of.",
        |facts| {
            let span = facts.store.span?;
            Some(span.to_ms.saturating_sub(span.from_ms) as f64 / 1000.0)
        },
    ),
    counter("infertop_store_snapshots_total", "Snapshots written to the history.", |facts| {
        Some(facts.store.frames_kept as f64)
    }),
    counter(
        "infertop_store_snapshots_lost_total",
        "Snapshots that could not be written to the history.",
        |facts| Some(facts.store.frames_lost as f64),
    ),
    gauge("infertop_store_longest_write_seconds", "Longest write to the history.", |facts| {
        Some(facts.store.longest_write_ms / 1000.0)
    }),
    counter("infertop_daemon_cpu_seconds_total", "CPU time of the daemon.", |facts| {
        Some(facts.cpu_seconds)
    }),
    gauge("infertop_daemon_resident_bytes", "Resident memory of the daemon.", |facts| {
        facts.rss_bytes.map(|bytes| bytes as f64)
    }),
    counter("infertop_sampler_cpu_seconds_total", "CPU time of the sampler.", |facts| {
        facts.sampler()?.cpu_seconds_total.get()
    }),
    gauge("infertop_sampler_resident_bytes", "Resident memory of the sampler.", |facts| {
        facts.sampler()?.rss_bytes.get().map(|bytes| bytes as f64)
    }),
    counter("infertop_sampler_driver_calls_total", "Calls into the driver's library.", |facts| {
        Some(facts.sampler()?.nvml_calls_total as f64)
    }),
    counter(
        "infertop_sampler_driver_call_seconds_total",
        "Time spent in calls into the driver's library, of all threads.",
        |facts| Some(facts.sampler()?.nvml_seconds_total),
    ),
    counter(
        "infertop_sampler_dropped_values_total",
        "Values from the driver that could not be and were dropped.",
        |facts| Some(facts.sampler()?.dropped_values_total as f64),
    ),
    counter("infertop_scrapes_total", "Answers to scrapes, this one included.", |facts| {
        Some(facts.scrapes as f64)
    }),
    counter("infertop_scrape_seconds_total", "Time spent making those before this one.", |facts| {
        Some(facts.scrape_seconds)
    }),
];

fn truth(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

fn gpu_labels(gpu: &probes::snapshot::Gpu) -> Vec<String> {
    labels(gpu).into_iter().map(|(_, value)| value).collect()
}

//! What the metric tables pick from a snapshot, as roll-ups and charts see it: a GPU by its UUID, and
//! only while it answers, because the last values of one that does not are not from now.

use probes::host::HOST_METRICS;
use probes::metric::{Metric, Pick};
use probes::nvml;
use probes::snapshot::{Gpu, Snapshot};

/// One value.
pub(super) struct Value<'a> {
    /// Name of the metric.
    pub(super) metric: &'static str,
    /// UUID of the GPU or instance; empty for the host.
    pub(super) subject: &'a str,
    /// Position of the subject: the host, then the GPUs in their order.
    pub(super) rank: usize,
    /// Value of the metric's own label; empty where it has none.
    pub(super) label: &'a str,
    pub(super) number: f64,
}

/// Tells every value of a snapshot, or those of one metric.
pub(super) fn each(snapshot: &Snapshot, only: Option<&str>, mut tell: impl FnMut(&Value<'_>)) {
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    for row in HOST_METRICS.iter().filter(|row| wanted(row.name)) {
        pick(&row.pick, &snapshot.host, |label, number| {
            tell(&Value { metric: row.name, subject: "", rank: 0, label, number });
        });
    }
    for (index, gpu) in snapshot.gpus.iter().enumerate().filter(|(_, gpu)| gpu.answers()) {
        let Some(subject) = gpu.uuid.value() else { continue };
        for row in nvml::metrics().filter(|row| wanted(row.name)) {
            pick(&row.pick, gpu, |label, number| {
                tell(&Value { metric: row.name, subject, rank: index + 1, label, number });
            });
        }
    }
}

fn pick<S>(pick: &Pick<S>, subject: &S, mut tell: impl FnMut(&str, f64)) {
    let mut tell = |label: &str, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            tell(label, value);
        }
    };
    match pick {
        Pick::One(pick) => tell("", pick(subject).get()),
        Pick::Each { pick, .. } => {
            for (label, value) in pick(subject) {
                tell(&label, value.get());
            }
        }
    }
}

/// Which field of a GPU each group of metrics picks from.
const GROUPS: [(&str, &[Metric<Gpu>]); 10] = [
    ("memory", nvml::memory::METRICS),
    ("utilization", nvml::utilization::METRICS),
    ("gpm", nvml::gpm::METRICS),
    ("clocks", nvml::clocks::METRICS),
    ("power", nvml::power::METRICS),
    ("temperature", nvml::temperature::METRICS),
    ("ecc", nvml::ecc::METRICS),
    ("pcie", nvml::pcie::METRICS),
    ("nvlink", nvml::nvlink::METRICS),
    ("fabric", nvml::fabric::METRICS),
];

/// What a snapshot has that none of these metrics is picked from: most of it.
pub(super) fn unused(metrics: &[&str]) -> Vec<(usize, &'static str)> {
    let mut unused = vec![
        (1, "driver"),
        (1, "processes"),
        (1, "kernel_log"),
        (1, "self"),
        (3, "identity"),
        (3, "topology"),
        (3, "processes"),
    ];
    let is_used = |rows: &[Metric<Gpu>]| rows.iter().any(|row| metrics.contains(&row.name));
    let groups = GROUPS.iter().filter(|(_, rows)| !is_used(rows));
    unused.extend(groups.map(|(field, _)| (3, *field)));
    unused
}

/// Whether a metric is in the tables.
pub(super) fn is_known(metric: &str) -> bool {
    HOST_METRICS.iter().any(|row| row.name == metric)
        || nvml::metrics().any(|row| row.name == metric)
}

/// What people call a subject.
pub(super) fn name(snapshot: &Snapshot, rank: usize) -> String {
    match rank.checked_sub(1).and_then(|index| snapshot.gpus.get(index)) {
        Some(gpu) => format!("GPU {}", gpu.label()),
        None => "host".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::chunk::{self, Chunk};

    /// All values, as bits.
    fn told(snapshot: &Snapshot, metric: &str) -> Vec<(String, String, u64)> {
        let mut told = Vec::new();
        each(snapshot, Some(metric), |value| {
            told.push((value.subject.into(), value.label.into(), value.number.to_bits()));
        });
        told
    }

    #[test]
    fn what_is_left_out_for_a_metric_is_not_what_it_is_picked_from() {
        let seeds =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds/snapshot");
        let mut seen = 0;
        for seed in std::fs::read_dir(seeds).unwrap() {
            let bytes = std::fs::read(seed.unwrap().path()).unwrap();
            let Ok(whole) = Snapshot::decode(&bytes) else { continue };
            let bytes = whole.encode().unwrap();
            let packed = chunk::pack(1, |_| Ok(bytes.clone())).unwrap();
            let gpu = nvml::metrics().map(|row| row.name);
            for metric in gpu.chain(HOST_METRICS.iter().map(|row| row.name)) {
                let mut chunk = Chunk::open(packed.clone(), &unused(&[metric])).unwrap();
                let part = Snapshot::decode(&chunk.frame(0).unwrap()).unwrap();
                assert_eq!(told(&part, metric), told(&whole, metric), "{metric}");
                seen += told(&whole, metric).len();
            }
        }
        assert!(seen > 500, "{seen}");
    }

    #[test]
    fn every_metric_of_a_gpu_is_in_a_group() {
        let known =
            |name: &str| GROUPS.iter().any(|(_, rows)| rows.iter().any(|row| row.name == name));
        assert!(nvml::metrics().all(|row| known(row.name)));
    }
}

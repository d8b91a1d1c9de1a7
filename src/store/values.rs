//! What the metric tables pick from a snapshot, as roll-ups and charts see it: a GPU by its UUID, and
//! only while it answers, because the last values of one that does not are not from now.

use probes::host::HOST_METRICS;
use probes::metric::Pick;
use probes::nvml;
use probes::snapshot::Snapshot;

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

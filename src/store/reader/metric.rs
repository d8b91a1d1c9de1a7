//! A metric over a stretch of time.

use std::collections::BTreeMap;

use anyhow::Context as _;
use probes::host::HOST_METRICS;
use probes::metric::Pick;
use probes::nvml;
use probes::past::{MetricPast, Series};
use probes::snapshot::Snapshot;

use super::Reader;

/// Steps that are answered at most; a longer stretch gets longer steps.
const MOST_STEPS: u64 = 20_000;
/// The shortest step.
const SHORTEST_MS: u64 = 250;

impl Reader {
    /// A metric's smallest, mean and largest value in each step of a stretch.
    pub(crate) fn metric(
        &mut self,
        metric: &str,
        from_ms: u64,
        to_ms: u64,
        step_ms: u64,
    ) -> anyhow::Result<MetricPast> {
        anyhow::ensure!(from_ms <= to_ms, "the stretch ends before it begins");
        let length = to_ms - from_ms;
        let step_ms = step_ms.max(SHORTEST_MS).max(length / MOST_STEPS + 1);
        let steps = usize::try_from(length / step_ms + 1).context("too many steps")?;
        let mut found: BTreeMap<Key, Steps> = BTreeMap::new();
        self.frames(from_ms, to_ms, |stored| {
            let snapshot = Snapshot::decode(&stored.bytes)?;
            let at = usize::try_from((stored.at_ms - from_ms) / step_ms)?;
            pick(&snapshot, metric, |key, value| {
                found.entry(key).or_insert_with(|| Steps::new(steps)).add(at, value);
            })
        })?;
        let series = found.into_iter().map(|(key, steps)| steps.series(key)).collect();
        Ok(MetricPast { metric: metric.into(), from_ms, step_ms, series })
    }
}

/// What a series is of, in the order in which they are answered.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    order: usize,
    subject: String,
    label: String,
    name: String,
}

/// The values of a metric in a snapshot.
fn pick(snapshot: &Snapshot, metric: &str, mut tell: impl FnMut(Key, f64)) -> anyhow::Result<()> {
    let mut tell_all =
        |order: usize, subject: &str, name: &str, values: Vec<(String, Option<f64>)>| {
            for (label, value) in values {
                if let Some(value) = value {
                    let (subject, name) = (subject.to_string(), name.to_string());
                    tell(Key { order, subject, label, name }, value);
                }
            }
        };
    if let Some(row) = HOST_METRICS.iter().find(|row| row.name == metric) {
        tell_all(0, "", "host", values(&row.pick, &snapshot.host));
        return Ok(());
    }
    let row = nvml::metrics().find(|row| row.name == metric);
    let row = row.with_context(|| format!("there is no metric {metric}"))?;
    for (order, gpu) in snapshot.gpus.iter().enumerate().filter(|(_, gpu)| gpu.answers()) {
        let name = format!("GPU {}", gpu.label());
        tell_all(order, gpu.uuid.text(), &name, values(&row.pick, gpu));
    }
    Ok(())
}

fn values<S>(pick: &Pick<S>, subject: &S) -> Vec<(String, Option<f64>)> {
    match pick {
        Pick::One(pick) => vec![(String::new(), pick(subject).get())],
        Pick::Each { pick, .. } => {
            pick(subject).into_iter().map(|(label, value)| (label, value.get())).collect()
        }
    }
}

/// Smallest, sum, count and largest of each step.
struct Steps(Vec<Option<(f64, f64, f64, f64)>>);

impl Steps {
    fn new(steps: usize) -> Self {
        Self(vec![None; steps])
    }

    fn add(&mut self, at: usize, value: f64) {
        if let Some(step) = self.0.get_mut(at) {
            let (min, sum, count, max) = step.unwrap_or((value, 0.0, 0.0, value));
            *step = Some((min.min(value), sum + value, count + 1.0, max.max(value)));
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "24 bits are enough for a chart")]
    fn series(self, key: Key) -> Series {
        let each = |pick: fn((f64, f64, f64, f64)) -> f64| {
            self.0.iter().map(|step| step.map(|step| pick(step) as f32)).collect()
        };
        Series {
            subject: key.subject,
            name: key.name,
            label: key.label,
            min: each(|(min, ..)| min),
            mean: each(|(_, sum, count, _)| sum / count),
            max: each(|(.., max)| max),
        }
    }
}

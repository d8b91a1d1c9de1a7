//! What the metric tables pick from a snapshot.
//!
//! A sample names its GPU by the number that people use, and a MIG instance besides; what else is
//! known of a GPU stands once, in `infertop_gpu_info`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use probes::host::HOST_METRICS;
use probes::metric::{Kind, Metric, Pick};
use probes::nvml;
use probes::snapshot::{Gpu, Snapshot};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::family::{Sample, write};
use crate::moment::Moment;

/// The tables of a moment.
pub(super) struct Tables(pub(super) Arc<Moment>);

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the tables of moment {}", self.0.number)
    }
}

impl Collector for Tables {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let gpus = answering(&self.0.snapshot);
        for metric in nvml::metrics() {
            let subjects = gpus.iter().map(|gpu| (&gpu.labels[..], gpu.gpu));
            family(&mut encoder, metric, subjects)?;
        }
        for metric in HOST_METRICS {
            family(&mut encoder, metric, [(&[][..], &self.0.snapshot.host)].into_iter())?;
        }
        Ok(())
    }
}

/// A GPU or MIG instance and what its samples are labelled with.
pub(super) struct Subject<'a> {
    pub(super) labels: Labels,
    pub(super) gpu: &'a Gpu,
}

type Labels = [(&'static str, String); 2];

/// Those whose values are from now. Two of one name would make two samples of one series, which
/// takes the whole scrape down, so the first one stands.
fn answering(snapshot: &Snapshot) -> Vec<Subject<'_>> {
    let mut seen = HashSet::new();
    let gpus = snapshot.gpus.iter().filter(|gpu| gpu.answers());
    let subjects = gpus.map(|gpu| Subject { labels: labels(gpu), gpu });
    subjects.filter(|subject| seen.insert(subject.labels.clone())).collect()
}

/// The labels of a GPU or MIG instance.
pub(super) fn labels(gpu: &Gpu) -> Labels {
    let mig = gpu.mig.as_ref().map(nvml::mig::MigInstance::label);
    [("gpu", gpu.index.to_string()), ("mig", mig.unwrap_or_default())]
}

fn family<'a, S: 'static>(
    encoder: &mut DescriptorEncoder<'_>,
    metric: &Metric<S>,
    subjects: impl Iterator<Item = (&'a [(&'static str, String)], &'a S)>,
) -> fmt::Result {
    let mut samples = Vec::new();
    let mut put = |of: &'a [(&'static str, String)], own: Option<(&'static str, String)>, value| {
        let Some(value) = Option::filter(value, |value: &f64| value.is_finite()) else { return };
        let of = of.iter().map(|(key, value)| (*key, Cow::Borrowed(value.as_str())));
        let own = own.into_iter().map(|(key, value)| (key, Cow::Owned(value)));
        samples.push(Sample { labels: of.chain(own).collect(), value });
    };
    for (labels, subject) in subjects {
        match &metric.pick {
            Pick::One(pick) => put(labels, None, pick(subject).get()),
            Pick::Each { label, pick } => {
                for (value, reading) in pick(subject) {
                    put(labels, Some((label, value)), reading.get());
                }
            }
        }
    }
    let kind = match metric.kind {
        Kind::Gauge => MetricType::Gauge,
        Kind::Counter => MetricType::Counter,
    };
    write(encoder, (metric.name, metric.help, kind), &mut samples)
}

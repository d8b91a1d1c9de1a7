//! What the daemon says of itself and of what it makes of a snapshot: a table of rows of the same
//! form as the metric tables. No row has a process, a user or a command in its labels.

mod facts;
mod rows;

use std::collections::HashSet;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::family::{Sample, write};
pub(super) use facts::Facts;
pub(super) use rows::ROWS;

/// One row.
pub(super) struct Row {
    /// The exported name.
    pub(super) name: &'static str,
    /// Gauge, counter or info, whose value is always 1.
    pub(super) kind: MetricType,
    /// Labels of its samples.
    pub(super) labels: &'static [&'static str],
    /// One sentence for people.
    pub(super) help: &'static str,
    /// How to take it: values of the labels, and a number.
    pub(super) pick: Pick,
}

/// How a row is taken.
pub(super) enum Pick {
    /// One number without labels, or none.
    One(fn(&Facts) -> Option<f64>),
    /// Values of the labels in their order, and a number.
    Each(fn(&Facts) -> Vec<(Vec<String>, f64)>),
}

/// The rows of some facts.
pub(super) struct Own(pub(super) Facts);

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the daemon's own rows")
    }
}

impl Collector for Own {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for row in ROWS {
            let picked = match row.pick {
                Pick::One(pick) => {
                    pick(&self.0).map(|value| (Vec::new(), value)).into_iter().collect()
                }
                Pick::Each(pick) => pick(&self.0),
            };
            // A series that stands twice takes the whole scrape down.
            let mut seen = HashSet::new();
            let mut samples: Vec<Sample<'_>> = picked
                .into_iter()
                .filter(|(values, _)| seen.insert(values.clone()))
                .map(|(values, value)| {
                    let labels = row.labels.iter().copied().zip(values.into_iter().map(Into::into));
                    Sample { labels: labels.collect(), value }
                })
                .collect();
            write(&mut encoder, (row.name, row.help, row.kind), &mut samples)?;
        }
        Ok(())
    }
}

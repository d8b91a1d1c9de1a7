//! The newest moment as metrics for Prometheus, made by walking the metric tables.
//!
//! What a snapshot says is encoded once a moment and format, however many ask; what the daemon says
//! of itself ([`own`]) is made with every answer. A reading without a value is left out, and so is
//! every reading of a GPU that does not answer, and all of a snapshot that is old: Prometheus then
//! ends those series by itself, while `infertop_gpu_up` and the like stay and say why.
//!
//! Counters are handed on as the driver counts them, without times of creation: nobody knows those.
//! After a reload of the driver or a reset of the GPU they begin lower, which is what `rate` knows a
//! restart by.

mod accept;
mod family;
mod own;
mod tables;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;

use crate::daemon::hub::Hub;
use crate::moment::Moment;

pub(crate) use accept::Format;
use own::{Facts, Own};
use tables::Tables;

/// Room for an answer: eight GPUs with eighteen links each take less.
const USUAL_BYTES: usize = 96 << 10;

/// The tables of a moment in each format, once somebody has asked.
#[derive(Default)]
pub(crate) struct Encoded([OnceLock<String>; 2]);

/// Makes answers.
pub(crate) struct Exporter {
    hub: Arc<Hub>,
    scrapes: Scrapes,
}

/// What answering has cost.
#[derive(Default)]
pub(crate) struct Scrapes {
    answers: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Exporter {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Self { hub, scrapes: Scrapes::default() }
    }

    /// All metrics as they are now.
    pub(crate) fn answer(&self, format: Format) -> String {
        let begin = Instant::now();
        self.scrapes.answers.fetch_add(1, Relaxed);
        let facts = Facts::gather(&self.hub, &self.scrapes);
        let mut body = String::with_capacity(USUAL_BYTES);
        if let Some(moment) = facts.fresh() {
            body.push_str(encoded(moment, format));
        }
        encode(Own(facts), format, &mut body);
        if format == Format::OpenMetrics {
            body.push_str("# EOF\n");
        }
        let took = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.scrapes.nanoseconds.fetch_add(took, Relaxed);
        body
    }
}

/// The tables of a moment.
fn encoded(moment: &Arc<Moment>, format: Format) -> &str {
    let Encoded(formats) = &moment.metrics;
    formats[format as usize].get_or_init(|| {
        let mut body = String::with_capacity(USUAL_BYTES);
        encode(Tables(Arc::clone(moment)), format, &mut body);
        body.shrink_to_fit();
        body
    })
}

fn encode(collector: impl Collector, format: Format, body: &mut String) {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(collector));
    // Writing to a string does not fail.
    let _ = match format {
        Format::Text => prometheus_text::encode(body, &registry),
        Format::OpenMetrics => text::encode_registry(body, &registry),
    };
}

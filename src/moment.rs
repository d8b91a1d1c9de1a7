//! One tick as the daemon keeps it: what the sampler sent, what was made of it, and the encodings
//! that clients ask for, each made once and only when somebody asks.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use probes::finding::Finding;
use probes::snapshot::Snapshot;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use crate::exporter;

/// One tick.
pub(crate) struct Moment {
    /// Counts up by one with each tick of this daemon, whatever sampler it came from.
    pub(crate) number: u64,
    /// When it came.
    pub(crate) came: Instant,
    /// The snapshot as the sampler encoded it; what is stored and streamed.
    pub(crate) bytes: Bytes,
    /// The same, decoded.
    pub(crate) snapshot: Snapshot,
    /// What is wrong, worst first.
    pub(crate) findings: Vec<Finding>,
    /// The same as metrics.
    pub(crate) metrics: exporter::Encoded,
    json: OnceCell<Bytes>,
}

impl Moment {
    /// A tick, judged.
    pub(crate) fn new(number: u64, bytes: Bytes, snapshot: Snapshot) -> Self {
        let findings = playbooks::judge(&snapshot);
        Self {
            number,
            came: Instant::now(),
            bytes,
            snapshot,
            findings,
            metrics: exporter::Encoded::default(),
            json: OnceCell::new(),
        }
    }

    /// The document of `infertop once --json`, in one line. Made beside by the first who asks, since
    /// that takes longer than all else that is done with a moment; the others wait for the same.
    pub(crate) async fn json(self: &Arc<Self>) -> Bytes {
        let make = || async {
            let moment = Arc::clone(self);
            let line = spawn_blocking(move || crate::json::line(&moment.snapshot));
            line.await.ok().and_then(Result::ok).unwrap_or_default().into()
        };
        self.json.get_or_init(make).await.clone()
    }
}

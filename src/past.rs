//! What is remembered, wherever it is: behind a daemon's socket or in a file. Who asks cannot tell
//! which, and never waits for a disk on its own thread.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use probes::history::History;
use probes::past::{Mark, MetricPast, Span};
use probes::snapshot::Snapshot;

use crate::client::Client;
use crate::store::{Reader, Stored};

/// Something that remembers.
#[derive(Clone)]
pub(crate) enum Past {
    /// A daemon, asked over its socket.
    Daemon(Client),
    /// A store or a recording.
    File(Arc<Mutex<Reader>>),
}

impl Past {
    /// A file that remembers.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        Ok(Self::File(Arc::new(Mutex::new(Reader::open(path)?))))
    }

    /// The stretch that is recorded; `None` when nothing is.
    pub(crate) async fn span(&self) -> anyhow::Result<Option<Span>> {
        match self {
            Self::Daemon(client) => client.get_json("/v1/span").await,
            Self::File(reader) => on_disk(reader, |reader| reader.span()).await,
        }
    }

    /// The newest snapshot not younger than this, or else the oldest, with its time.
    pub(crate) async fn at(&self, at_ms: u64) -> anyhow::Result<Option<(u64, Snapshot)>> {
        match self {
            Self::Daemon(client) => client.snapshot(&format!("/v1/snapshot?at={at_ms}")).await,
            Self::File(reader) => {
                on_disk(reader, move |reader| reader.at(at_ms)?.as_ref().map(decoded).transpose())
                    .await
            }
        }
    }

    /// The snapshot after this time, or the one before it; `None` where there is none.
    pub(crate) async fn neighbour(
        &self,
        at_ms: u64,
        forward: bool,
    ) -> anyhow::Result<Option<(u64, Snapshot)>> {
        match self {
            Self::Daemon(client) => {
                client.snapshot(&format!("/v1/neighbour?at={at_ms}&forward={forward}")).await
            }
            Self::File(reader) => {
                on_disk(reader, move |reader| {
                    reader.neighbour(at_ms, forward)?.as_ref().map(decoded).transpose()
                })
                .await
            }
        }
    }

    /// What so many snapshots up to this time say.
    pub(crate) async fn window(&self, until_ms: u64, ticks: usize) -> anyhow::Result<History> {
        match self {
            Self::Daemon(client) => {
                let target = format!("/v1/window?until={until_ms}&ticks={ticks}");
                let bytes = client.get_bytes(&target).await?;
                rmp_serde::from_slice(&bytes).context("the daemon sent a history in unknown words")
            }
            Self::File(reader) => {
                on_disk(reader, move |reader| reader.window(until_ms, ticks)).await
            }
        }
    }

    /// A metric in steps of about this length.
    pub(crate) async fn metric(
        &self,
        metric: &str,
        from_ms: u64,
        to_ms: u64,
        step_ms: u64,
    ) -> anyhow::Result<MetricPast> {
        match self {
            Self::Daemon(client) => {
                // Names of the tables need no escapes; of any other the daemon says what is wrong.
                let metric: String =
                    metric.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                let target = format!(
                    "/v1/history?metric={metric}&from={from_ms}&to={to_ms}&step={step_ms}ms"
                );
                client.get_json(&target).await
            }
            Self::File(reader) => {
                let metric = metric.to_string();
                on_disk(reader, move |reader| reader.metric(&metric, from_ms, to_ms, step_ms)).await
            }
        }
    }

    /// What happened in a stretch, oldest first.
    pub(crate) async fn marks(&self, from_ms: u64, to_ms: u64) -> anyhow::Result<Vec<Mark>> {
        match self {
            Self::Daemon(client) => {
                client.get_json(&format!("/v1/marks?from={from_ms}&to={to_ms}")).await
            }
            Self::File(reader) => on_disk(reader, move |reader| reader.marks(from_ms, to_ms)).await,
        }
    }
}

fn decoded(stored: &Stored) -> anyhow::Result<(u64, Snapshot)> {
    let snapshot = Snapshot::decode(&stored.bytes).context("cannot read a stored snapshot")?;
    Ok((stored.at_ms, snapshot))
}

/// Reads beside the task that asks.
async fn on_disk<T: Send + 'static>(
    reader: &Arc<Mutex<Reader>>,
    look: impl FnOnce(&mut Reader) -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let reader = Arc::clone(reader);
    let looked = tokio::task::spawn_blocking(move || {
        look(&mut reader.lock().unwrap_or_else(PoisonError::into_inner))
    });
    looked.await.context("reading the recording broke off")?
}

//! The past, wherever it is kept: a daemon's socket or a file. The answers are the same.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use probes::history::History;
use probes::past::{Mark, MetricPast, Span};
use probes::snapshot::Snapshot;

use crate::client::Client;
use crate::store::{Reader, Stored};

/// Where to ask.
#[derive(Clone)]
pub(crate) enum Past {
    /// A daemon.
    Daemon(Client),
    /// A store or a recording.
    File(Arc<Mutex<Reader>>),
}

impl Past {
    /// The past in a file.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        Ok(Self::File(Arc::new(Mutex::new(Reader::open(path)?))))
    }

    /// The stretch that is kept; none where nothing is.
    pub(crate) async fn span(&self) -> anyhow::Result<Option<Span>> {
        match self {
            Self::Daemon(client) => client.get_json("/v1/span").await,
            Self::File(reader) => read(reader, |reader| reader.span()).await,
        }
    }

    /// The newest snapshot at or before this time, or else the oldest; and when it was taken.
    pub(crate) async fn at(&self, at_ms: u64) -> anyhow::Result<Option<(u64, Snapshot)>> {
        match self {
            Self::Daemon(client) => one(client, &format!("/v1/snapshot?at={}", sent(at_ms))).await,
            Self::File(reader) => read(reader, move |reader| decode(reader.at(at_ms)?)).await,
        }
    }

    /// The snapshot after this time, or the one before it.
    pub(crate) async fn neighbour(
        &self,
        at_ms: u64,
        forward: bool,
    ) -> anyhow::Result<Option<(u64, Snapshot)>> {
        match self {
            Self::Daemon(client) => {
                let at_ms = sent(at_ms);
                one(client, &format!("/v1/neighbour?at={at_ms}&forward={forward}")).await
            }
            Self::File(reader) => {
                read(reader, move |reader| decode(reader.neighbour(at_ms, forward)?)).await
            }
        }
    }

    /// What so many snapshots up to this time say.
    pub(crate) async fn window(&self, until_ms: u64, ticks: usize) -> anyhow::Result<History> {
        match self {
            Self::Daemon(client) => {
                let until_ms = sent(until_ms);
                let target = format!("/v1/window?until={until_ms}&ticks={ticks}");
                rmp_serde::from_slice(&client.get_bytes(&target).await?)
                    .context("cannot read the daemon's history")
            }
            Self::File(reader) => read(reader, move |reader| reader.window(until_ms, ticks)).await,
        }
    }

    /// A metric over time.
    pub(crate) async fn metric(
        &self,
        metric: &str,
        from_ms: u64,
        to_ms: u64,
        step_ms: u64,
    ) -> anyhow::Result<MetricPast> {
        match self {
            Self::Daemon(client) => {
                let (from_ms, to_ms) = (sent(from_ms), sent(to_ms));
                let target = format!(
                    "/v1/history?metric={metric}&from={from_ms}&to={to_ms}&step={step_ms}ms"
                );
                client.get_json(&target).await
            }
            Self::File(reader) => {
                let metric = metric.to_string();
                read(reader, move |reader| reader.metric(&metric, from_ms, to_ms, step_ms)).await
            }
        }
    }

    /// What happened, oldest first.
    pub(crate) async fn marks(&self, from_ms: u64, to_ms: u64) -> anyhow::Result<Vec<Mark>> {
        match self {
            Self::Daemon(client) => {
                let (from_ms, to_ms) = (sent(from_ms), sent(to_ms));
                client.get_json(&format!("/v1/marks?from={from_ms}&to={to_ms}")).await
            }
            Self::File(reader) => read(reader, move |reader| reader.marks(from_ms, to_ms)).await,
        }
    }
}

/// The socket takes times as people write them, and no person means 1970.
fn sent(at_ms: u64) -> u64 {
    at_ms.clamp(crate::when::LEAST_MS, crate::when::MOST_MS)
}

async fn one(client: &Client, target: &str) -> anyhow::Result<Option<(u64, Snapshot)>> {
    let bytes = client.get_bytes(target).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let snapshot = Snapshot::decode(&bytes).context("cannot read the daemon's snapshot")?;
    Ok(Some((snapshot.taken_at_ms, snapshot)))
}

fn decode(stored: Option<Stored>) -> anyhow::Result<Option<(u64, Snapshot)>> {
    let Some(stored) = stored else { return Ok(None) };
    let snapshot = Snapshot::decode(&stored.bytes).context("cannot read a stored snapshot")?;
    Ok(Some((stored.at_ms, snapshot)))
}

/// A disk may be slow, and whoever asks has a screen to draw meanwhile.
async fn read<T: Send + 'static>(
    reader: &Arc<Mutex<Reader>>,
    look: impl FnOnce(&mut Reader) -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let reader = Arc::clone(reader);
    let looked = tokio::task::spawn_blocking(move || {
        look(&mut reader.lock().unwrap_or_else(PoisonError::into_inner))
    });
    looked.await.context("looking into the past did not end")?
}

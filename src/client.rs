//! The other end of the daemon's socket: questions with a deadline, and the stream of frames.
//!
//! Every question has a connection of its own, as the daemon serves them; on a unix socket that
//! costs a fraction of a millisecond, and a daemon that was restarted is simply met anew.

mod connection;
mod frames;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use hyper::body::Bytes;
use hyper::{HeaderMap, Method, StatusCode};
use probes::snapshot::Snapshot;
use serde::de::DeserializeOwned;

use crate::api::{AT_HEADER, Health, JSON_TYPE, MESSAGEPACK_TYPE};

use connection::Refusal;
pub(crate) use frames::Frames;

/// A question must have been answered by then.
const WITHIN: Duration = Duration::from_secs(15);
/// The stream must have begun by then.
const BEGIN_WITHIN: Duration = Duration::from_secs(5);

/// A daemon that answers.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    socket: PathBuf,
}

impl Client {
    /// The daemon behind a socket, whether or not it answers.
    pub(crate) fn new(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into() }
    }

    /// The first of these sockets behind which a daemon answers so soon.
    pub(crate) async fn attach(sockets: &[PathBuf], within: Duration) -> Option<Self> {
        for socket in sockets {
            let client = Self::new(socket);
            // What it says may be of another version; that it answers is enough.
            let health = client.ask(Method::GET, "/v1/health", JSON_TYPE);
            if let Ok(Ok(_)) = tokio::time::timeout(within, health).await {
                return Some(client);
            }
        }
        None
    }

    /// How the daemon is.
    pub(crate) async fn health(&self) -> anyhow::Result<Health> {
        self.get_json("/v1/health").await
    }

    /// Asks for a JSON document.
    pub(crate) async fn get_json<T: DeserializeOwned>(&self, target: &str) -> anyhow::Result<T> {
        let (_, bytes) = self.ask(Method::GET, target, JSON_TYPE).await?;
        self.read(target, &bytes)
    }

    /// Asks for the stored form.
    pub(crate) async fn get_bytes(&self, target: &str) -> anyhow::Result<Bytes> {
        self.ask(Method::GET, target, MESSAGEPACK_TYPE).await.map(|(_, bytes)| bytes)
    }

    /// Asks for a stored snapshot, with its time; `None` when there is none.
    pub(crate) async fn snapshot(&self, target: &str) -> anyhow::Result<Option<(u64, Snapshot)>> {
        let (headers, bytes) = match self.ask(Method::GET, target, MESSAGEPACK_TYPE).await {
            Ok(found) => found,
            Err(error) => {
                let refusal = error.downcast_ref::<Refusal>();
                let is_none = refusal.is_some_and(|it| it.status == StatusCode::NOT_FOUND);
                return if is_none { Ok(None) } else { Err(error) };
            }
        };
        let snapshot = Snapshot::decode(&bytes).with_context(|| self.unknown_words(target))?;
        let at_ms = headers.get(AT_HEADER).and_then(|at| at.to_str().ok()?.parse().ok());
        Ok(Some((at_ms.unwrap_or(snapshot.taken_at_ms), snapshot)))
    }

    /// Asks for a change.
    pub(crate) async fn post<T: DeserializeOwned>(&self, target: &str) -> anyhow::Result<T> {
        let (_, bytes) = self.ask(Method::POST, target, JSON_TYPE).await?;
        self.read(target, &bytes)
    }

    /// Opens the stream of frames; the newest comes at once.
    pub(crate) async fn frames(&self) -> anyhow::Result<Frames> {
        let opened = tokio::time::timeout(BEGIN_WITHIN, Frames::open(&self.socket)).await;
        opened.unwrap_or_else(|_| Err(self.silent(BEGIN_WITHIN)))
    }

    async fn ask(
        &self,
        method: Method,
        target: &str,
        accept: &str,
    ) -> anyhow::Result<(HeaderMap, Bytes)> {
        let asked = connection::ask(&self.socket, method, target, accept);
        tokio::time::timeout(WITHIN, asked).await.unwrap_or_else(|_| Err(self.silent(WITHIN)))
    }

    fn read<T: DeserializeOwned>(&self, target: &str, bytes: &[u8]) -> anyhow::Result<T> {
        serde_json::from_slice(bytes).with_context(|| self.unknown_words(target))
    }

    fn unknown_words(&self, target: &str) -> String {
        format!("the daemon on {} answers {target} in unknown words", self.socket.display())
    }

    fn silent(&self, within: Duration) -> anyhow::Error {
        let socket = self.socket.display();
        anyhow::anyhow!("the daemon on {socket} has not answered for {} s", within.as_secs())
    }
}

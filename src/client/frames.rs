//! The stream of frames, as a client hears it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::body::Incoming;
use probes::snapshot::Snapshot;
use tokio::time::{Instant, timeout_at};

use crate::api::{FRAMES_TYPE, Pending, Told};
use crate::daemon::hub::Sampling;

use super::connection::{self, Driver};

/// The daemon tells something each 5 s; after so long without a word it is stuck or stopped.
const SILENCE: Duration = Duration::from_secs(12);

/// What the daemon told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heard {
    /// Number of the newest tick; 0 before the first.
    pub(crate) number: u64,
    /// Frames that were missed right before this one.
    pub(crate) lost: u64,
    /// How sampling stands.
    pub(crate) sampling: Sampling,
    /// A snapshot; absent where only sampling is told of.
    pub(crate) snapshot: Option<Box<Snapshot>>,
}

impl Heard {
    fn understand(told: Told) -> anyhow::Result<Self> {
        let Told { number, lost, sampling, snapshot } = told;
        let snapshot = snapshot.map(|bytes| Snapshot::decode(&bytes).map(Box::new)).transpose()?;
        Ok(Self { number, lost, sampling, snapshot })
    }
}

/// The open stream. It ends when this is dropped.
pub(crate) struct Frames {
    socket: PathBuf,
    body: Incoming,
    pending: Pending,
    /// Kept here, because a wait that is dropped half way must not begin anew.
    heard: Instant,
    _driver: Driver,
}

impl Frames {
    pub(super) async fn open(socket: &Path) -> anyhow::Result<Self> {
        let (response, driver) =
            connection::begin(socket, Method::GET, "/v1/frames", FRAMES_TYPE).await?;
        let (body, pending) = (response.into_body(), Pending::default());
        Ok(Self { socket: socket.into(), body, pending, heard: Instant::now(), _driver: driver })
    }

    /// What is told next, or why there is no more. May be dropped half way.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Heard> {
        loop {
            let broke = || format!("the daemon on {} broke off", self.socket.display());
            if let Some(told) = self.pending.next().with_context(broke)? {
                return Heard::understand(told).with_context(broke);
            }
            let Ok(part) = timeout_at(self.heard + SILENCE, self.body.frame()).await else {
                let socket = self.socket.display();
                let silence = SILENCE.as_secs();
                anyhow::bail!("the daemon on {socket} has said nothing for {silence} s");
            };
            self.heard = Instant::now();
            match part {
                Some(part) => {
                    if let Ok(bytes) = part.with_context(broke)?.into_data() {
                        self.pending.push(&bytes);
                    }
                }
                None => anyhow::bail!("the daemon on {} has ended", self.socket.display()),
            }
        }
    }
}

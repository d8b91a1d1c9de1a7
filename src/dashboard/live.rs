//! What arrives by itself: snapshots of an own sampler or of a daemon.
//!
//! A daemon that answers is preferred. When it goes away it is looked for again at once and for some
//! seconds, as when it restarts; then an own sampler takes its place, so that there is a picture
//! whatever happens, and the daemon is taken again when it is back.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use panels::view::Source;
use probes::snapshot::Snapshot;

use crate::cli::Roots;
use crate::client::{Client, Frames};
use crate::daemon::hub::Sampling;
use crate::feed::child::ChildFeed;
use crate::past::Past;

/// A socket that does not answer so soon is not waited for, unless it was asked for by name.
const ATTACH_WITHIN: Duration = Duration::from_millis(50);
const ASKED_WITHIN: Duration = Duration::from_secs(2);
/// Wait before a sampler that ended is started again, doubling up to the second.
const RESTART: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// A daemon that went away is looked for so often, and for so long before an own sampler starts.
const LOOK_FOR_DAEMON: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(4));
/// How often a daemon is looked for beside an own sampler.
const LOOK_BESIDE: Duration = Duration::from_secs(5);

/// What comes.
pub(super) enum Arrival {
    /// A snapshot, and how many a daemon could not send before it.
    Snapshot { snapshot: Box<Snapshot>, lost: u64 },
    /// Nothing comes at present, and why.
    Trouble(String),
    /// Nothing came for so long that the picture's age must be shown.
    Silence,
    /// Snapshots come from somewhere else from now on, with the past that goes with it.
    Attached(Option<Past>),
}

enum Connection {
    /// A recording is shown: nothing comes by itself.
    None,
    Child(Box<ChildFeed>),
    Daemon(Box<Frames>),
    /// Until when to wait before the next try.
    Waiting(Instant),
}

/// The live feed and how to get it back.
pub(super) struct Live {
    roots: Option<Roots>,
    sockets: Vec<PathBuf>,
    interval: Duration,
    connection: Connection,
    restart: Duration,
    /// Since when the daemon is gone, while it is looked for.
    daemon_gone: Option<Instant>,
    looked_beside: Instant,
    lost: u64,
}

impl Live {
    /// Attaches to a daemon, or starts a sampler; with the daemon's past.
    pub(super) async fn start(
        roots: &Roots,
        sockets: Vec<PathBuf>,
        is_asked_for: bool,
    ) -> anyhow::Result<(Self, Option<Past>)> {
        let mut live = Self {
            roots: Some(roots.clone()),
            sockets,
            interval: roots.interval(),
            ..Self::none()
        };
        let within = if is_asked_for { ASKED_WITHIN } else { ATTACH_WITHIN };
        let past = live.attach(within).await;
        if past.is_none() {
            live.connection =
                Connection::Child(Box::new(ChildFeed::start(roots, roots.interval())?));
        }
        Ok((live, past))
    }

    /// Nothing that arrives by itself.
    pub(super) fn none() -> Self {
        Self {
            roots: None,
            sockets: Vec::new(),
            interval: Duration::from_secs(1),
            connection: Connection::None,
            restart: RESTART.0,
            daemon_gone: None,
            looked_beside: Instant::now(),
            lost: 0,
        }
    }

    pub(super) fn source(&self) -> Source {
        match &self.connection {
            Connection::None => Source::Recording,
            Connection::Daemon(_) => Source::Daemon,
            Connection::Waiting(_) if self.daemon_gone.is_some() => Source::Daemon,
            Connection::Child(_) | Connection::Waiting(_) => Source::Live,
        }
    }

    /// Looks for a daemon. Nothing is changed before it answers, so this may be dropped half way.
    async fn attach(&mut self, within: Duration) -> Option<Past> {
        self.looked_beside = Instant::now();
        let client = Client::attach(&self.sockets, within).await?;
        let frames = tokio::time::timeout(within, client.frames()).await.ok()?.ok()?;
        let daemon = Connection::Daemon(Box::new(frames));
        if let Connection::Child(mut child) = std::mem::replace(&mut self.connection, daemon) {
            tokio::spawn(async move { child.finish().await });
        }
        self.daemon_gone = None;
        self.lost = 0;
        Some(Past::Daemon(client))
    }

    /// The next arrival. May be dropped half way.
    pub(super) async fn next(&mut self) -> Arrival {
        let patience = self.interval.max(Duration::from_secs(1)) + Duration::from_millis(300);
        let is_child = matches!(self.connection, Connection::Child(_));
        if is_child
            && !self.sockets.is_empty()
            && self.looked_beside.elapsed() > LOOK_BESIDE
            && let Some(past) = self.attach(ATTACH_WITHIN).await
        {
            return Arrival::Attached(Some(past));
        }
        match &mut self.connection {
            Connection::None => {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Arrival::Silence
            }
            Connection::Waiting(until) => {
                tokio::time::sleep_until((*until).into()).await;
                self.again().await
            }
            Connection::Child(child) => match tokio::time::timeout(patience, child.next()).await {
                Ok(Ok(frame)) => {
                    self.restart = RESTART.0;
                    Arrival::Snapshot { snapshot: Box::new(frame.snapshot), lost: 0 }
                }
                Ok(Err(error)) => self.sampler_ended(&error),
                Err(_) => Arrival::Silence,
            },
            Connection::Daemon(frames) => match tokio::time::timeout(patience, frames.next()).await
            {
                Ok(Ok(told)) => {
                    self.lost += told.lost;
                    match told.snapshot {
                        Some(snapshot) => Arrival::Snapshot { snapshot, lost: self.lost },
                        None => why_nothing_comes(&told.sampling),
                    }
                }
                Ok(Err(_)) => {
                    self.daemon_gone = Some(Instant::now());
                    self.connection = Connection::Waiting(Instant::now());
                    Arrival::Trouble("the daemon has gone; looking for it".into())
                }
                Err(_) => Arrival::Silence,
            },
        }
    }

    fn sampler_ended(&mut self, error: &anyhow::Error) -> Arrival {
        let wait = self.restart;
        self.restart = (wait * 2).min(RESTART.1);
        self.connection = Connection::Waiting(Instant::now() + wait);
        Arrival::Trouble(format!("{error:#}; starting it again in {} s", wait.as_secs()))
    }

    async fn again(&mut self) -> Arrival {
        if let Some(past) = self.attach(ATTACH_WITHIN).await {
            return Arrival::Attached(Some(past));
        }
        if self.daemon_gone.is_some_and(|then| then.elapsed() < LOOK_FOR_DAEMON.1) {
            self.connection = Connection::Waiting(Instant::now() + LOOK_FOR_DAEMON.0);
            return Arrival::Silence;
        }
        let Some(roots) = &self.roots else { return Arrival::Silence };
        match ChildFeed::start(roots, self.interval) {
            Ok(child) => {
                self.daemon_gone = None;
                self.connection = Connection::Child(Box::new(child));
                Arrival::Attached(None)
            }
            Err(error) => self.sampler_ended(&error),
        }
    }

    /// Asks for another pace; false where the pace is not ours.
    pub(super) async fn set_interval(&mut self, interval: Duration) -> bool {
        match &mut self.connection {
            Connection::Child(child) => {
                child.set_interval(interval).await;
                self.interval = interval;
                true
            }
            Connection::None | Connection::Daemon(_) => false,
            Connection::Waiting(_) => {
                self.interval = interval;
                true
            }
        }
    }

    pub(super) async fn finish(&mut self) {
        if let Connection::Child(child) = &mut self.connection {
            child.finish().await;
        }
    }
}

/// Why a daemon sends no snapshot.
fn why_nothing_comes(sampling: &Sampling) -> Arrival {
    match sampling {
        Sampling::Running | Sampling::Starting | Sampling::Silent { .. } | Sampling::Unknown => {
            Arrival::Silence
        }
        Sampling::Ended { why, .. } => Arrival::Trouble(why.clone()),
        Sampling::Releasing { .. } | Sampling::Released { .. } => {
            Arrival::Trouble("GPUs let go on request: infertop daemon resume".into())
        }
    }
}

//! `infertop daemon`: supervises the sampler, keeps history, judges, serves.
//!
//! It never calls the driver. One task on one thread waits for snapshots, clients and signals; the
//! store has a thread of its own, and whatever may block (looking into the past, searching `/proc`)
//! runs beside. Nothing that a client, a disk or a sick GPU does delays the next snapshot.

pub(crate) mod hub;
pub(crate) mod lock;
pub(crate) mod log;
pub(crate) mod server;
pub(crate) mod supervisor;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use probes::finding::Severity;
use probes::machine::Machine;
use probes::past::MarkKind;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::config::{Config, Layers};
use crate::feed::child::Frame;
use crate::moment::Moment;
use crate::store::{Start, StoreHandle};

use hub::{Hub, Paths, Released, Request};
use supervisor::Supervisor;

/// At the end the store gets so long to write what waits.
const STORE_ENDS_WITHIN: Duration = Duration::from_secs(1);

/// What a daemon begins with.
pub(crate) struct Begin {
    pub(crate) config: Config,
    /// From which the configuration is read again.
    pub(crate) layers: Layers,
    pub(crate) paths: Paths,
    /// Started as the sampler.
    pub(crate) sampler: PathBuf,
}

/// Runs until a signal ends it.
pub(crate) async fn run(begin: Begin) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let Begin { config, layers, paths, sampler } = begin;
    let started_ms = Machine::default().now_ms();
    let start = Start {
        version: env!("CARGO_PKG_VERSION").into(),
        boot_id: probes::host::read_boot_id(&config.roots().machine()).text().into(),
        pid: std::process::id(),
        at_ms: started_ms,
    };
    let store = StoreHandle::start(&paths.state, config.limits(), start);
    let (hub, asked) = Hub::new(paths, store, started_ms);
    let hub = Arc::new(hub);
    serve(&hub, &config)?;
    let supervisor = Supervisor::new(Arc::clone(&hub), sampler, config.roots(), config.interval());
    let mut daemon = Daemon { hub, config, layers, number: 0, asked, supervisor };
    let signal = daemon.work(&mut signals).await;
    log::info(&format!("ending on {signal}"));
    daemon.end().await;
    Ok(())
}

/// Everything that runs beside the supervisor.
fn serve(hub: &Arc<Hub>, config: &Config) -> anyhow::Result<()> {
    let socket = server::bind(&hub.paths.socket, Some(&config.group))?;
    if let Some(note) = &socket.note {
        log::warning(note);
    }
    tokio::spawn(server::serve(Arc::clone(hub), socket));
    Ok(())
}

struct Daemon {
    hub: Arc<Hub>,
    config: Config,
    layers: Layers,
    /// Of the newest moment.
    number: u64,
    asked: mpsc::Receiver<Request>,
    supervisor: Supervisor,
}

impl Daemon {
    /// Does what comes, until a signal that ends it.
    async fn work(&mut self, signals: &mut Signals) -> &'static str {
        loop {
            tokio::select! {
                _ = signals.terminate.recv() => return "SIGTERM",
                _ = signals.interrupt.recv() => return "SIGINT",
                _ = signals.hang_up.recv() => {
                    let _ = self.reload().await;
                }
                Some(request) = self.asked.recv() => self.obey(request).await,
                frame = self.supervisor.frame() => self.keep(frame),
            }
        }
    }

    fn keep(&mut self, frame: Frame) {
        self.number += 1;
        let moment = Arc::new(Moment::new(self.number, frame.bytes.into(), frame.snapshot));
        self.hub.store.keep(&moment);
        self.hub.newest.send_replace(Some(moment));
    }

    async fn obey(&mut self, request: Request) {
        match request {
            Request::Release { until_ms, answer } => {
                self.supervisor.release(until_ms);
                let _ = answer.send(Released::default());
            }
            Request::Resume { answer } => {
                let _ = answer.send(self.supervisor.resume());
            }
            Request::Reload { answer } => {
                let _ = answer.send(self.reload().await);
            }
        }
    }

    /// Reads the configuration again: what changed, or why the old one stays.
    async fn reload(&mut self) -> Result<Vec<String>, String> {
        let config = self.layers.load().map_err(|problems| problems.to_string())?;
        self.config = config;
        self.supervisor.set_interval(self.config.interval()).await;
        Ok(Vec::new())
    }

    async fn end(self) {
        self.hub.mark(MarkKind::DaemonEnd, Severity::Info, "the daemon ended");
        self.supervisor.finish().await;
        self.hub.store.finish(STORE_ENDS_WITHIN);
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind, name| signal(kind).with_context(|| format!("cannot listen for {name}"));
        Ok(Self {
            terminate: listen(SignalKind::terminate(), "SIGTERM")?,
            interrupt: listen(SignalKind::interrupt(), "SIGINT")?,
            hang_up: listen(SignalKind::hangup(), "SIGHUP")?,
        })
    }
}

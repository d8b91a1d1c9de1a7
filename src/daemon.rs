//! `infertop daemon`: supervises the sampler, keeps history, judges, serves.
//!
//! It never calls the driver. One task on one thread waits for snapshots, clients and signals; the
//! store has a thread of its own, and whatever may block (looking into the past, searching `/proc`)
//! runs beside. Nothing that a client, a disk or a sick GPU does delays the next snapshot.

pub(crate) mod hub;
pub(crate) mod listen;
pub(crate) mod lock;
pub(crate) mod log;
mod release;
mod reload;
pub(crate) mod server;
pub(crate) mod sight;
mod store_words;
pub(crate) mod supervisor;
mod systemd;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use probes::finding::Severity;
use probes::machine::Machine;
use probes::past::MarkKind;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, mpsc, oneshot, watch as channel};

use crate::config::{Config, Layers};
use crate::feed::child::{Frame, Program};
use crate::moment::Moment;
use crate::store::{Start, StoreHandle};

use hub::{Hub, Paths, Request, Sampling};
use reload::Reload;
use sight::Sight;
use store_words::StoreWords;
use supervisor::Supervisor;
use systemd::Service;
use watch::{Changed, Places};

/// At the end the store gets so long to write what waits.
const STORE_ENDS_WITHIN: Duration = Duration::from_secs(1);

/// What a daemon begins with.
pub(crate) struct Begin {
    pub(crate) config: Config,
    /// From which the configuration is read again.
    pub(crate) layers: Layers,
    pub(crate) paths: Paths,
    /// Started as the sampler.
    pub(crate) sampler: Program,
    /// Whether no snapshot may be left out, for benchmarks; else the store never holds us up.
    pub(crate) waits_for_store: bool,
}

/// Runs until a signal ends it.
pub(crate) async fn run(begin: Begin) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let mut service = Service::from_environment();
    let Begin { config, layers, paths, sampler, waits_for_store } = begin;
    let machine = config.roots().machine();
    // Before anything is written: whose socket is taken ends here.
    let socket = server::bind(&paths.socket, Some(&config.group))?;
    if let Some(note) = &socket.note {
        log::warning(note);
    }
    let (hub, asked) = Hub::new(store(&paths, &config, &machine), machine.now_ms());
    let hub = Arc::new(hub);
    tokio::spawn(server::serve(Arc::clone(&hub), socket));
    tokio::spawn(listen::serve(Arc::clone(&hub), config.metrics.clone()));

    let places = Places {
        configuration: layers.files.clone(),
        playbooks: layers.playbooks.clone(),
        machine: machine.clone(),
    };
    let (changes, mut noticed) = mpsc::channel(1);
    tokio::spawn(watch::watch(places, changes));
    let mut sampling = hub.sampling.subscribe();
    let mut daemon = Daemon {
        supervisor: Supervisor::new(Arc::clone(&hub), sampler, config.roots(), config.interval()),
        searching: Arc::new(Semaphore::new(1)),
        applied: config.clone(),
        reload: Reload::new(config, layers),
        sight: Sight::default(),
        store_words: StoreWords::default(),
        number: 0,
        waits_for_store,
        machine,
        asked,
        hub,
    };
    log::info(&format!(
        "infertop {} serves on {} and keeps its history in {}",
        env!("CARGO_PKG_VERSION"),
        paths.socket.display(),
        paths.state.display()
    ));
    service.ready();
    let signal = daemon.work(&mut signals, &mut service, &mut noticed, &mut sampling).await;
    log::info(&format!("ending on {signal}"));
    service.stopping();
    daemon.end().await;
    Ok(())
}

/// The store, with this start noted in it.
fn store(paths: &Paths, config: &Config, machine: &Machine) -> StoreHandle {
    let start = Start {
        version: env!("CARGO_PKG_VERSION").into(),
        boot_id: probes::host::read_boot_id(machine).text().into(),
        pid: std::process::id(),
        at_ms: machine.now_ms(),
    };
    StoreHandle::start(&paths.state, config.limits(), start)
}

struct Daemon {
    hub: Arc<Hub>,
    machine: Machine,
    supervisor: Supervisor,
    reload: Reload,
    /// The configuration that supervisor, store and log have.
    applied: Config,
    sight: Sight,
    store_words: StoreWords,
    /// Searches for holders of device files, one at a time.
    searching: Arc<Semaphore>,
    /// Of the newest moment.
    number: u64,
    /// Whether no snapshot may be left out, for benchmarks.
    waits_for_store: bool,
    asked: mpsc::Receiver<Request>,
}

impl Daemon {
    /// Does what comes, until a signal that ends it.
    async fn work(
        &mut self,
        signals: &mut Signals,
        service: &mut Service,
        noticed: &mut mpsc::Receiver<Changed>,
        sampling: &mut channel::Receiver<Sampling>,
    ) -> &'static str {
        loop {
            tokio::select! {
                _ = signals.terminate.recv() => return "SIGTERM",
                _ = signals.interrupt.recv() => return "SIGINT",
                _ = signals.hang_up.recv() => self.read_again(None, service),
                () = self.reload.done(&self.hub.config_trouble) => self.apply(service).await,
                Some(request) = self.asked.recv() => self.obey(request, service),
                Some(changed) = noticed.recv() => self.notice(changed, service),
                () = service.watchdog() => service.alive(),
                Ok(()) = sampling.changed() => service.status(self.status()),
                frame = self.supervisor.frame() => {
                    let gpus = frame.snapshot.gpus.len();
                    self.keep(frame).await;
                    if gpus > 0 {
                        service.status(self.status());
                    }
                }
            }
        }
    }

    async fn keep(&mut self, frame: Frame) {
        self.number += 1;
        self.sight.look(&frame.snapshot);
        self.store_words.look(&self.hub.store.status());
        let moment = Arc::new(Moment::new(self.number, frame.bytes.into(), frame.snapshot));
        if self.waits_for_store {
            let (store, moment) = (self.hub.store.clone(), Arc::clone(&moment));
            let _ = tokio::task::spawn_blocking(move || store.keep_patiently(&moment)).await;
        } else {
            self.hub.store.keep(&moment);
        }
        self.hub.newest.send_replace(Some(moment));
    }

    fn obey(&mut self, request: Request, service: &mut Service) {
        match request {
            Request::Release { until_ms, answer } => {
                let sampler = self.supervisor.pid();
                self.supervisor.release(until_ms);
                let (hub, machine) = (Arc::clone(&self.hub), self.machine.clone());
                let searching = Arc::clone(&self.searching);
                tokio::spawn(release::answer(hub, machine, sampler, searching, answer));
            }
            Request::Resume { answer } => {
                let _ = answer.send(self.supervisor.resume());
            }
            Request::Reload { answer } => {
                self.read_again(Some(answer), service);
            }
        }
    }

    fn read_again(
        &mut self,
        answer: Option<oneshot::Sender<Result<Vec<String>, String>>>,
        service: &mut Service,
    ) {
        service.reloading();
        self.reload.begin(answer);
    }

    /// Does what a configuration that was read again says.
    async fn apply(&mut self, service: &mut Service) {
        let config = &self.reload.config;
        if *config != self.applied {
            log::set_level(config.log_level);
            self.hub.store.set_limits(config.limits());
            self.supervisor.set_interval(config.interval()).await;
            self.hub.mark(MarkKind::Reload, Severity::Info, "the configuration was read again");
            self.applied = config.clone();
        }
        service.ready();
        service.status(self.status());
    }

    fn notice(&mut self, changed: Changed, service: &mut Service) {
        if changed.configuration {
            self.read_again(None, service);
        }
        if changed.playbooks {
            log::debug("the user's playbooks have changed");
        }
        for news in changed.driver {
            let help = if news.help.is_empty() { "" } else { "\n  help: " };
            log::warning(&format!("{}{help}{}", news.what, news.help));
            self.hub.mark(MarkKind::DriverChange, Severity::Warning, &news.what);
        }
    }

    /// For `systemctl status`.
    fn status(&self) -> String {
        match &*self.hub.sampling.borrow() {
            Sampling::Starting | Sampling::Unknown => "the sampler is starting".into(),
            Sampling::Running => {
                let newest = self.hub.newest.borrow();
                let gpus = newest.as_ref().map_or(0, |moment| moment.snapshot.gpus.len());
                let interval = self.reload.config.interval().as_secs_f64();
                format!("watching {gpus} GPUs every {interval} s")
            }
            Sampling::Silent { .. } => "the sampler is silent, asked to finish".into(),
            Sampling::Ended { why, .. } => why.clone(),
            Sampling::Releasing { .. } => "letting go of the GPUs".into(),
            Sampling::Released { .. } => "the GPUs are let go on request".into(),
        }
    }

    async fn end(self) {
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

//! Starts the sampler, listens to it, lets it go.
//!
//! A sampler that ends is started again, the later the more often it ends. One that is silent is
//! asked to finish, and another one is started only when it is gone: two of them in a driver that
//! does not answer would be one more stuck process. It is never killed for that; what a driver call
//! holds, no signal ends. All times here are monotonic: a clock that is set and a machine that slept
//! make nobody silent.

mod earlier;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use probes::finding::Severity;
use probes::machine::Machine;
use probes::past::MarkKind;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::cli::Roots;
use crate::feed::child::{ChildFeed, Frame, Program};

use super::hub::{Hub, Sampling};
use super::lock::Peek;
use super::log::{self, Level};
use earlier::{Earlier, InTheWay};

/// Wait before a sampler that ended is started again, doubling up to the second.
const RESTART: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// A sampler that ran so long was a good one.
const SETTLED: Duration = Duration::from_mins(1);
/// Without a frame for so many intervals, and so long at least, a sampler is silent.
const SILENT: (u32, Duration) = (10, Duration::from_secs(10));
/// That time is counted in so many steps: a daemon that was itself stopped for long, with the
/// sampler or without, loses one of them, and then hears what was sent meanwhile.
const STEPS: u32 = 4;
/// A sampler that was asked to finish and is there after so long is worth a word.
const OVERDUE: Duration = Duration::from_secs(3);
/// A command to the sampler that does not fit into its pipe by then is left out.
const COMMAND: Duration = Duration::from_millis(50);

/// Keeps one sampler running, or none.
pub(crate) struct Supervisor {
    hub: Arc<Hub>,
    program: Program,
    roots: Roots,
    interval: Duration,
    state: State,
    released: Option<Release>,
    wait: Duration,
    trouble: log::State,
    earlier: Earlier,
}

enum State {
    Runs {
        feed: ChildFeed,
        since: Instant,
        heard: Heard,
    },
    /// Was asked to finish, or has ended and is not reaped yet.
    Leaves {
        feed: ChildFeed,
        /// When a word is due; none: it was said.
        overdue: Option<Instant>,
        /// When another one may be started.
        next: Instant,
    },
    /// Waits to be started.
    Rests {
        until: Instant,
    },
    /// Let go on request.
    Away,
}

/// When the sampler was last heard of.
struct Heard {
    ever: bool,
    at_ms: u64,
    quiet_steps: u32,
    next_step: Instant,
}

/// The GPUs are let go.
struct Release {
    since_ms: u64,
    until: Option<(Instant, u64)>,
}

impl Supervisor {
    /// Starts the first sampler with the first call of [`Self::frame`].
    pub(crate) fn new(hub: Arc<Hub>, program: Program, roots: Roots, interval: Duration) -> Self {
        Self {
            // Opened once: looking at it later touches no disk.
            earlier: Earlier::new(program.lock.as_deref().and_then(Peek::open)),
            hub,
            program,
            roots,
            interval,
            state: State::Rests { until: Instant::now() },
            released: None,
            wait: RESTART.0,
            trouble: log::State::default(),
        }
    }

    /// The next frame, however long it takes and through however many samplers. May be dropped half
    /// way.
    pub(crate) async fn frame(&mut self) -> Frame {
        loop {
            let step = self.step();
            match &mut self.state {
                State::Runs { feed, heard, .. } => {
                    match timeout_at(heard.next_step, feed.next()).await {
                        Ok(Ok(frame)) => {
                            heard.quiet_steps = 0;
                            heard.next_step = Instant::now() + step;
                            heard.at_ms = now_ms();
                            if !std::mem::replace(&mut heard.ever, true) {
                                self.first_frame();
                            }
                            return frame;
                        }
                        Ok(Err(error)) => self.ended(&format!("{error:#}")),
                        Err(_) => {
                            heard.quiet_steps += 1;
                            heard.next_step = Instant::now() + step;
                            if heard.quiet_steps >= STEPS {
                                self.silent();
                            }
                        }
                    }
                }
                State::Leaves { feed, overdue: Some(at), .. } => {
                    if timeout_at(*at, feed.gone()).await.is_ok() {
                        self.gone();
                    } else {
                        self.overdue();
                    }
                }
                State::Leaves { feed, overdue: None, .. } => {
                    feed.gone().await;
                    self.gone();
                }
                State::Rests { until } => {
                    sleep_until(*until).await;
                    self.start();
                }
                State::Away => match self.released.as_ref().and_then(|release| release.until) {
                    Some((at, _)) => {
                        sleep_until(at).await;
                        self.resume();
                    }
                    None => std::future::pending().await,
                },
            }
        }
    }

    fn step(&self) -> Duration {
        (self.interval * SILENT.0).max(SILENT.1) / STEPS
    }

    fn start(&mut self) {
        if let Some(earlier) = self.earlier.look() {
            self.wait_for_earlier(&earlier);
            return;
        }
        match ChildFeed::start_program(&self.program, &self.roots, self.interval) {
            Ok(feed) => {
                let now = Instant::now();
                let pid = feed.pid().unwrap_or_default();
                self.hub.sampler_starts.fetch_add(1, Relaxed);
                self.hub.mark(MarkKind::SamplerStart, Severity::Info, "the sampler was started");
                log::debug(&format!("started the sampler, process {pid}"));
                let next_step = now + self.step();
                let heard = Heard { ever: false, at_ms: now_ms(), quiet_steps: 0, next_step };
                self.state = State::Runs { feed, since: now, heard };
                // What went wrong stands until the new one has said something.
                self.hub.sampling.send_if_modified(|sampling| {
                    let was = matches!(sampling, Sampling::Released { .. });
                    if was {
                        *sampling = Sampling::Starting;
                    }
                    was
                });
            }
            Err(error) => {
                let why = format!("{error:#}");
                self.set(Sampling::Ended { since_ms: now_ms(), why: why.clone() });
                let wait = self.back_off();
                self.trouble.say(Level::Error, &format!("{why}\n  help: it is tried again"));
                self.state = State::Rests { until: Instant::now() + wait };
            }
        }
    }

    fn wait_for_earlier(&mut self, earlier: &InTheWay) {
        self.state = State::Rests { until: earlier.again };
        if !earlier.is_stuck {
            return;
        }
        let pid = earlier.pid.map_or_else(String::new, |pid| format!(", process {pid},"));
        let why = format!("the sampler of an earlier daemon{pid} has not ended");
        let help = "a driver call holds it; another one is started once it is gone";
        self.trouble.say(Level::Error, &format!("{why}\n  help: {help}"));
        self.hub.sampling.send_if_modified(|sampling| {
            let is_news = !matches!(sampling, Sampling::Ended { why: said, .. } if *said == why);
            if is_news {
                *sampling = Sampling::Ended { since_ms: now_ms(), why };
            }
            is_news
        });
    }

    fn first_frame(&mut self) {
        let before = self.hub.sampling.send_replace(Sampling::Running);
        match before {
            Sampling::Starting => log::info("snapshots come"),
            _ => log::info("snapshots come again"),
        }
    }

    fn back_off(&mut self) -> Duration {
        let wait = self.wait;
        self.wait = (wait * 2).min(RESTART.1);
        wait
    }

    fn ended(&mut self, why: &str) {
        let State::Runs { feed, since, .. } = self.take_state() else { return };
        if since.elapsed() > SETTLED {
            self.wait = RESTART.0;
            self.trouble.clear();
        }
        let wait = self.back_off();
        self.trouble.say(Level::Error, &format!("{why}\n  help: it is started again"));
        self.hub.mark(MarkKind::SamplerEnd, Severity::Warning, why);
        self.set(Sampling::Ended { since_ms: now_ms(), why: why.into() });
        self.leave(feed, Instant::now() + wait);
    }

    fn silent(&mut self) {
        let State::Runs { feed, heard, .. } = self.take_state() else { return };
        let pid = feed.pid().unwrap_or_default();
        let seconds = (self.step() * STEPS).as_secs();
        let why = format!("the sampler, process {pid}, has sent nothing for {seconds} s");
        let help = "it was asked to finish; another one is started once it is gone";
        self.trouble.say(Level::Error, &format!("{why}\n  help: {help}"));
        self.hub.mark(MarkKind::SamplerEnd, Severity::Warning, &why);
        self.set(Sampling::Silent { since_ms: heard.at_ms });
        self.leave(feed, Instant::now());
    }

    fn leave(&mut self, mut feed: ChildFeed, next: Instant) {
        feed.ask_to_finish();
        self.state = State::Leaves { feed, overdue: Some(Instant::now() + OVERDUE), next };
    }

    fn overdue(&mut self) {
        let State::Leaves { feed, overdue, .. } = &mut self.state else { return };
        *overdue = None;
        let pid = feed.pid().unwrap_or_default();
        let what = format!("the sampler, process {pid}, was asked to finish and has not");
        let help = "a driver call holds it; its device files stay open until the driver lets go, \
                    or until the GPU is reset or the machine is booted again";
        log::error(&format!("{what}\n  help: {help}"));
    }

    fn gone(&mut self) {
        let State::Leaves { overdue, next, .. } = self.take_state() else { return };
        if overdue.is_none() {
            log::info("the sampler that had not finished is gone");
        }
        let is_released = self.released.as_ref().is_some_and(Release::holds);
        if is_released {
            self.away();
        } else {
            self.state = State::Rests { until: next };
            if self.released.take().is_some() {
                self.taken_again();
            }
        }
    }

    fn away(&mut self) {
        self.state = State::Away;
        let Some(release) = &self.released else { return };
        let until_ms = release.until.map(|(_, at_ms)| at_ms);
        self.set(Sampling::Released { since_ms: release.since_ms, until_ms });
    }

    /// Leaves nothing behind that would run.
    fn take_state(&mut self) -> State {
        std::mem::replace(&mut self.state, State::Away)
    }

    fn set(&self, sampling: Sampling) {
        self.hub.sampling.send_replace(sampling);
    }

    /// Lets the GPUs go, until this time or for good. Whether they are gone is told by the hub.
    pub(crate) fn release(&mut self, until_ms: Option<u64>) {
        let since_ms = self.released.as_ref().map_or_else(now_ms, |release| release.since_ms);
        let until = until_ms.map(|at_ms| {
            let stretch = Duration::from_millis(at_ms.saturating_sub(now_ms()));
            (Instant::now() + stretch, at_ms)
        });
        if self.released.replace(Release { since_ms, until }).is_none() {
            log::info("the GPUs are let go on request");
            self.hub.mark(MarkKind::Release, Severity::Info, "the GPUs were let go on request");
        }
        match self.take_state() {
            State::Runs { feed, .. } => {
                self.set(Sampling::Releasing { since_ms });
                self.leave(feed, Instant::now());
            }
            leaves @ State::Leaves { .. } => {
                self.set(Sampling::Releasing { since_ms });
                self.state = leaves;
            }
            State::Rests { .. } | State::Away => self.away(),
        }
    }

    /// Takes the GPUs again. Whether they were let go.
    pub(crate) fn resume(&mut self) -> bool {
        if self.released.take().is_none() {
            return false;
        }
        self.taken_again();
        match &self.state {
            State::Away => self.start(),
            // One that is stuck must be gone first.
            State::Leaves { .. } => self.set(Sampling::Silent { since_ms: now_ms() }),
            State::Runs { .. } | State::Rests { .. } => {}
        }
        true
    }

    fn taken_again(&self) {
        log::info("the GPUs are taken again");
        self.hub.mark(MarkKind::Resume, Severity::Info, "the GPUs were taken again");
    }

    /// Sets the pace of this sampler and of those to come.
    pub(crate) async fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
        if let State::Runs { feed, .. } = &mut self.state {
            let _ = timeout(COMMAND, feed.set_interval(interval)).await;
        }
    }

    /// The process that runs, or that has not finished yet.
    pub(crate) fn pid(&self) -> Option<u32> {
        match &self.state {
            State::Runs { feed, .. } | State::Leaves { feed, .. } => feed.pid(),
            State::Rests { .. } | State::Away => None,
        }
    }

    /// Ends the sampler, as far as the driver lets it.
    pub(crate) async fn finish(mut self) {
        if let State::Runs { feed, .. } | State::Leaves { feed, .. } = &mut self.state {
            feed.finish().await;
        }
    }
}

impl Release {
    fn holds(&self) -> bool {
        self.until.is_none_or(|(at, _)| Instant::now() < at)
    }
}

fn now_ms() -> u64 {
    Machine::default().now_ms()
}

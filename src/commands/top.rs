//! `infertop` alone: the dashboard.
//!
//! One task waits for whatever comes first: a snapshot, a key, a signal, the next second. It never
//! calls the driver, so it always answers.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyModifiers};
use panels::theme::{Depth, Theme, ascii_from_env};
use panels::ui::{Action, Ui};
use panels::view::{Feed, Past, View};
use probes::finding::Finding;
use probes::history::History;
use probes::ledger::{Ledger, ledgers};
use probes::machine::Machine;
use probes::snapshot::Snapshot;
use ratatui::layout::Rect;
use tokio::signal::unix::{SignalKind, signal};
use tokio_stream::StreamExt as _;

use crate::cli::{self, Color, Roots};
use crate::feed::child::ChildFeed;
use crate::own_cost;
use crate::terminal::Screen;

/// Snapshots whose figures are kept for sparklines.
const KEPT: usize = 300;
/// Wait before a sampler that ended is started again, doubling up to the second.
const RESTART: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How often own CPU time and memory are looked at.
const OWN_COST_EVERY: Duration = Duration::from_secs(5);

/// Shows the dashboard until the person leaves or the terminal goes away.
pub(crate) fn run(roots: &Roots, screen: &cli::Screen) -> anyhow::Result<ExitCode> {
    require_terminal()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(show(roots, screen))?;
    // A thread that reads the terminal must not hold the program up.
    runtime.shutdown_background();
    Ok(code)
}

fn require_terminal() -> anyhow::Result<()> {
    const HELP: &str =
        "\n  help: infertop once prints a table, infertop once --json is for programs";
    anyhow::ensure!(
        std::io::stdout().is_terminal(),
        "the dashboard needs a terminal, and standard output is none{HELP}"
    );
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    anyhow::ensure!(
        !dumb,
        "the dashboard needs a terminal that can place its cursor, and TERM is dumb{HELP}"
    );
    Ok(())
}

async fn show(roots: &Roots, options: &cli::Screen) -> anyhow::Result<ExitCode> {
    // The sampler starts while the terminal is taken.
    let feed = ChildFeed::start(roots, roots.interval())?;
    let mut app = App::new(roots, options, feed)?;
    let mut screen = Screen::take(!options.no_mouse)?;
    app.draw(&mut screen)?;
    let mut events = EventStream::new();
    let mut hang_up = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    loop {
        tokio::select! {
            biased;
            event = events.next() => match event {
                Some(Ok(event)) => match app.event(&event, &mut screen).await? {
                    Flow::Quit => break,
                    Flow::Draw => app.draw(&mut screen)?,
                    Flow::Keep => {}
                },
                // The terminal is gone.
                Some(Err(_)) | None => break,
            },
            _ = hang_up.recv() => break,
            _ = terminate.recv() => break,
            arrived = app.arrival() => {
                app.take(arrived);
                app.draw(&mut screen)?;
            }
        }
    }
    drop(screen);
    if let Some(feed) = &mut app.feed {
        feed.finish().await;
    }
    Ok(ExitCode::SUCCESS)
}

enum Flow {
    Quit,
    Draw,
    Keep,
}

/// What ended a wait.
enum Arrival {
    Snapshot(Box<Snapshot>),
    /// The sampler ended, with the reason.
    Ended(String),
    /// Nothing came for so long that the picture's age must be shown.
    Silence,
    /// Time to start a sampler again.
    Restart,
}

struct App {
    roots: Roots,
    machine: Machine,
    feed: Option<ChildFeed>,
    restart: (Instant, Duration),
    ui: Ui,
    picture: Picture,
    interval: Duration,
    own: (Instant, f64),
    area: Rect,
}

/// What is shown, apart from how.
struct Picture {
    snapshot: Snapshot,
    ledgers: Vec<Ledger>,
    findings: Vec<Finding>,
    history: History,
    /// The history as it stood when the picture was held.
    held: Option<History>,
    feed: Feed,
    past: Past,
    utc_offset_seconds: i32,
}

impl Picture {
    fn view(&self, now_ms: u64) -> View<'_> {
        View {
            snapshot: &self.snapshot,
            ledgers: &self.ledgers,
            history: self.held.as_ref().unwrap_or(&self.history),
            findings: &self.findings,
            feed: &self.feed,
            past: &self.past,
            now_ms,
            utc_offset_seconds: self.utc_offset_seconds,
        }
    }

    fn show(&mut self, snapshot: Snapshot) {
        self.ledgers = ledgers(&snapshot);
        self.findings = playbooks::judge(&snapshot);
        self.snapshot = snapshot;
    }
}

impl App {
    fn new(roots: &Roots, options: &cli::Screen, feed: ChildFeed) -> anyhow::Result<Self> {
        let mut ui = Ui::new(theme(options));
        if let Some(name) = &options.panel {
            let names: Vec<&str> = panels::panels::PANELS.iter().map(|entry| entry.name).collect();
            anyhow::ensure!(
                ui.show(name),
                "there is no panel {name}\n  help: the panels are {}",
                names.join(", ")
            );
        }
        let now = jiff::Timestamp::now();
        Ok(Self {
            machine: roots.machine(),
            roots: roots.clone(),
            feed: Some(feed),
            restart: (Instant::now(), RESTART.0),
            ui,
            picture: Picture {
                snapshot: Snapshot::default(),
                ledgers: Vec::new(),
                findings: Vec::new(),
                history: History::new(KEPT),
                held: None,
                feed: Feed { interval_ms: millis(roots.interval()), ..Feed::default() },
                past: Past::default(),
                utc_offset_seconds: jiff::tz::TimeZone::system().to_offset(now).seconds(),
            },
            interval: roots.interval(),
            own: (Instant::now(), own_cost::cpu_seconds()),
            area: Rect::default(),
        })
    }

    /// Waits for a snapshot, or for a reason to draw without one.
    async fn arrival(&mut self) -> Arrival {
        let patience = self.interval.max(Duration::from_secs(1)) + Duration::from_millis(300);
        let Some(feed) = &mut self.feed else {
            let wait = self.restart.0.saturating_duration_since(Instant::now());
            tokio::time::sleep(wait).await;
            return Arrival::Restart;
        };
        match tokio::time::timeout(patience, feed.next()).await {
            Ok(Ok(frame)) => Arrival::Snapshot(Box::new(frame.snapshot)),
            Ok(Err(error)) => Arrival::Ended(format!("{error:#}")),
            Err(_) => Arrival::Silence,
        }
    }

    fn take(&mut self, arrival: Arrival) {
        let picture = &mut self.picture;
        match arrival {
            Arrival::Snapshot(snapshot) => {
                picture.feed.trouble = None;
                picture.feed.last_ms = Some(self.machine.now_ms());
                picture.history.push(&snapshot);
                picture.feed.lost = picture.history.lost();
                if !picture.feed.paused {
                    picture.show(*snapshot);
                }
                self.look_at_own_cost();
            }
            Arrival::Silence => {}
            Arrival::Ended(why) => {
                self.feed = None;
                let wait = self.restart.1;
                self.restart = (Instant::now() + wait, (wait * 2).min(RESTART.1));
                let again = format!("{why}; starting it again in {} s", wait.as_secs());
                picture.feed.trouble = Some(again);
            }
            Arrival::Restart => match ChildFeed::start(&self.roots, self.interval) {
                Ok(feed) => {
                    picture.history.new_feed();
                    self.feed = Some(feed);
                }
                Err(error) => self.take(Arrival::Ended(format!("{error:#}"))),
            },
        }
    }

    fn look_at_own_cost(&mut self) {
        let (then, before) = self.own;
        let feed = &mut self.picture.feed;
        if then.elapsed() < OWN_COST_EVERY && feed.own_cpu_ratio.is_some() {
            return;
        }
        let seconds = own_cost::cpu_seconds();
        feed.own_cpu_ratio = Some((seconds - before) / then.elapsed().as_secs_f64());
        feed.own_rss_bytes = own_cost::memory().0.get();
        self.own = (Instant::now(), seconds);
    }

    fn draw(&mut self, screen: &mut Screen) -> anyhow::Result<()> {
        let view = self.picture.view(self.machine.now_ms());
        let drawn = screen.terminal.draw(|frame| {
            self.area = frame.area();
            self.ui.draw(&view, self.area, frame.buffer_mut());
        });
        drawn.map(|_| ()).context("cannot write to the terminal")
    }

    async fn event(&mut self, event: &Event, screen: &mut Screen) -> anyhow::Result<Flow> {
        let action = match event {
            Event::Key(key) if is_suspend(key) => {
                screen.suspend()?;
                return Ok(Flow::Draw);
            }
            Event::Key(key) => self.ui.key(*key, &self.picture.view(self.machine.now_ms())),
            Event::Mouse(mouse) => {
                self.ui.mouse(*mouse, &self.picture.view(self.machine.now_ms()), self.area)
            }
            // Pasted text is never taken for commands.
            Event::Paste(text) => self.ui.paste(text, &self.picture.view(self.machine.now_ms())),
            Event::Resize(..) => Action::Redraw,
            _ => Action::None,
        };
        Ok(match action {
            Action::None => Flow::Keep,
            Action::Redraw => Flow::Draw,
            Action::Quit => Flow::Quit,
            Action::TogglePause => {
                let picture = &mut self.picture;
                picture.feed.paused = !picture.feed.paused;
                picture.held = picture.feed.paused.then(|| picture.history.clone());
                Flow::Draw
            }
            Action::Interval { ms } => {
                self.interval = Duration::from_millis(ms);
                self.picture.feed.interval_ms = ms;
                if let Some(feed) = &mut self.feed {
                    feed.set_interval(self.interval).await;
                }
                Flow::Draw
            }
            Action::Kill { pid, start_ticks, signal } => {
                let answer = crate::kill::end(&self.machine, pid, start_ticks, signal);
                self.ui.notice(answer, self.machine.now_ms());
                Flow::Draw
            }
            Action::Travel(_) | Action::Chart(_) => Flow::Keep,
            Action::Copy(text) => {
                Screen::copy(&text).context("cannot write to the terminal")?;
                self.ui.notice("copied", self.machine.now_ms());
                Flow::Draw
            }
        })
    }
}

fn is_suspend(key: &KeyEvent) -> bool {
    key.code == KeyCode::Char('z') && key.modifiers == KeyModifiers::CONTROL
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn theme(options: &cli::Screen) -> Theme {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let term = variable("TERM");
    let no_color = match options.color {
        Color::Never => "1".into(),
        Color::Always => String::new(),
        Color::Auto => variable("NO_COLOR"),
    };
    let depth = match Depth::from_env(&no_color, &variable("COLORTERM"), &term) {
        Depth::None if options.color == Color::Always => Depth::Sixteen,
        depth => depth,
    };
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable).into_iter().find(|l| !l.is_empty());
    Theme::new(depth, options.ascii || ascii_from_env(&locale.unwrap_or_default(), &term))
}

//! The dashboard: the same panels on an own sampler, on a daemon, or on a recording.
//!
//! One task waits for whatever comes first: a snapshot, a key, an answer about the past, a signal,
//! the next second. It never calls the driver and never reads a recording itself, so it always
//! answers.

mod live;
mod picture;
mod travel;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyModifiers};
use panels::theme::{Depth, Theme, ascii_from_env};
use panels::ui::{Action, Travel, Ui};
use probes::machine::Machine;
use ratatui::layout::Rect;
use tokio::signal::unix::{SignalKind, signal};
use tokio_stream::StreamExt as _;

use crate::cli::{self, Color, Roots};
use crate::terminal::Screen;

use live::{Arrival, Live};
use picture::Picture;
use travel::{Answer, Traveller};

/// The first snapshots of a recording were taken before the driver had answered.
const FIRST_ANSWERS_MS: u64 = 1000;

/// What the dashboard shows.
pub(crate) enum Subject {
    /// This box: a daemon's socket when one of these answers, else an own sampler.
    Live {
        /// Where a daemon may be.
        sockets: Vec<PathBuf>,
        /// Whether a daemon is meant, and worth waiting for.
        is_asked_for: bool,
    },
    /// A recording.
    File(PathBuf),
}

/// Shows the dashboard until the person leaves or the terminal goes away.
pub(crate) fn run(
    subject: Subject,
    roots: &Roots,
    options: &cli::Screen,
    at: Option<&str>,
) -> anyhow::Result<ExitCode> {
    require_terminal()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(show(subject, roots, options, at))?;
    // A thread that reads the terminal, or a slow disk, must not hold the program up.
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

async fn show(
    subject: Subject,
    roots: &Roots,
    options: &cli::Screen,
    at: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let mut app = App::start(subject, roots, options).await?;
    if let Some(text) = at {
        app.begin_at(text).await?;
    }
    // The sampler starts while the terminal is taken.
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
            answer = app.traveller.next() => {
                app.answered(answer);
                app.draw(&mut screen)?;
            }
            arrival = app.live.next() => {
                app.arrived(arrival);
                app.draw(&mut screen)?;
            }
        }
    }
    drop(screen);
    app.live.finish().await;
    Ok(ExitCode::SUCCESS)
}

enum Flow {
    Quit,
    Draw,
    Keep,
}

struct App {
    machine: Machine,
    live: Live,
    traveller: Traveller,
    ui: Ui,
    picture: Picture,
    area: Rect,
}

impl App {
    async fn start(subject: Subject, roots: &Roots, options: &cli::Screen) -> anyhow::Result<Self> {
        let mut ui = Ui::new(theme(options));
        if let Some(name) = &options.panel {
            let names: Vec<&str> = panels::panels::PANELS.iter().map(|entry| entry.name).collect();
            anyhow::ensure!(
                ui.show(name),
                "there is no panel {name}\n  help: the panels are {}",
                names.join(", ")
            );
        }
        let (live, past) = match subject {
            Subject::Live { sockets, is_asked_for } => {
                Live::start(roots, sockets, is_asked_for).await?
            }
            Subject::File(path) => (Live::none(), Some(crate::past::Past::open(&path)?)),
        };
        let picture = Picture::new(live.source(), roots.interval());
        let mut traveller = Traveller::new(past);
        traveller.look_around();
        let mut app =
            Self { machine: roots.machine(), live, traveller, ui, picture, area: Rect::default() };
        if app.picture.is_recording() {
            let ms = app.traveller.span().await?.from_ms.saturating_add(FIRST_ANSWERS_MS);
            app.traveller.go(Travel::To { ms }, &app.picture);
        }
        Ok(app)
    }

    /// Shows a moment of the past first, as the command line asks.
    async fn begin_at(&mut self, text: &str) -> anyhow::Result<()> {
        let span = self.traveller.span().await?;
        let offset = self.picture.utc_offset_seconds;
        let now_ms = if self.picture.is_recording() { span.to_ms } else { self.machine.now_ms() };
        let ms = probes::moment_text::parse_moment(text, now_ms, offset)
            .map_err(|why| anyhow::anyhow!("cannot read the time {text}: {why}"))?;
        anyhow::ensure!(
            ms >= span.from_ms,
            "nothing is recorded at {text}\n  found: the record begins at {}\n  help: give a time from then on",
            probes::units::moment(span.from_ms, now_ms, offset)
        );
        self.traveller.go(Travel::To { ms }, &self.picture);
        Ok(())
    }

    fn arrived(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Snapshot { snapshot, lost } => {
                self.picture.arrived(*snapshot, lost, self.machine.now_ms());
                self.traveller.look_around_again();
            }
            Arrival::Silence => self.traveller.look_around_again(),
            Arrival::Trouble(why) => self.picture.feed.trouble = Some(why),
            Arrival::Attached(past) => {
                self.picture.other_source(self.live.source());
                self.traveller.attach(past);
                self.traveller.look_around();
            }
        }
        self.picture.feed.source = self.live.source();
        if let Some(until_ms) = self.picture.wants_older() {
            self.traveller.fetch_older(until_ms);
        }
    }

    fn answered(&mut self, answer: Answer) {
        if let Some(words) = self.traveller.apply(answer, &mut self.picture) {
            self.ui.notice(words, self.machine.now_ms());
        }
    }

    fn draw(&mut self, screen: &mut Screen) -> anyhow::Result<()> {
        let view = self.picture.view(self.machine.now_ms());
        let drawn = screen.terminal.draw(|frame| {
            self.area = frame.area();
            self.ui.draw(&view, self.area, frame.buffer_mut());
        });
        drawn.map(|_| ()).context("cannot write to the terminal")?;
        // The width decides how many points can be seen.
        if let Some(request) = self.ui.wants(&self.picture.view(self.machine.now_ms())) {
            self.traveller.chart(request, &mut self.picture);
        }
        Ok(())
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
        self.act(action).await
    }

    async fn act(&mut self, action: Action) -> anyhow::Result<Flow> {
        let now_ms = self.machine.now_ms();
        Ok(match action {
            Action::None => Flow::Keep,
            Action::Redraw => Flow::Draw,
            Action::Quit => Flow::Quit,
            Action::TogglePause => {
                self.picture.toggle_pause();
                Flow::Draw
            }
            Action::Interval { ms } => {
                if self.live.set_interval(Duration::from_millis(ms)).await {
                    self.picture.feed.interval_ms = ms;
                } else {
                    let words = "the pace is the daemon's: interval_ms in its configuration";
                    self.ui.notice(words, now_ms);
                }
                Flow::Draw
            }
            Action::Kill { pid, start_ticks, signal } => {
                let answer = if self.picture.travels() {
                    "this picture is of the past: nothing was sent".to_string()
                } else {
                    crate::kill::end(&self.machine, pid, start_ticks, signal)
                };
                self.ui.notice(answer, now_ms);
                Flow::Draw
            }
            Action::Copy(text) => {
                Screen::copy(&text).context("cannot write to the terminal")?;
                self.ui.notice("copied", now_ms);
                Flow::Draw
            }
            Action::Travel(travel) => {
                self.traveller.go(travel, &self.picture);
                self.traveller.show_state(&mut self.picture);
                Flow::Draw
            }
        })
    }
}

fn is_suspend(key: &KeyEvent) -> bool {
    key.code == KeyCode::Char('z') && key.modifiers == KeyModifiers::CONTROL
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

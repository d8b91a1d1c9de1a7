//! The whole picture: takes keys and mouse, gives an [`Action`], draws a [`View`].
//!
//! It holds nothing but what the eye chose: panel, selection, open windows. What must be done in the
//! world (quit, signal, copy) is returned, never done.

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use crate::canvas::Canvas;
use crate::dialog::{Closing, Dialog};
use crate::frame;
use crate::keys::{self, Command};
use crate::panels::{self, Focus, PANELS, Panel, Reply};
use crate::text;
use crate::theme::Theme;
use crate::view::{ChartRequest, View};

mod travel;

/// What the program shall do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    None,
    /// Draw again.
    Redraw,
    /// Leave.
    Quit,
    /// Hold the picture, or go on.
    TogglePause,
    /// Read this often.
    Interval {
        /// The new distance of two snapshots.
        ms: u64,
    },
    /// Send a signal, after checking again that pid and start still name the same process.
    Kill {
        /// The process.
        pid: u32,
        /// Its start in clock ticks after boot, as it was when it was shown.
        start_ticks: u64,
        /// Which signal.
        signal: Signal,
    },
    /// Put a text on the clipboard of the terminal.
    Copy(String),
    /// Show another moment.
    Travel(Travel),
}

/// Which other moment to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Travel {
    /// The snapshot before this one, or after it.
    Step {
        /// Towards now.
        forward: bool,
    },
    /// So much earlier (negative) or later.
    By {
        /// The distance.
        ms: i64,
    },
    /// This moment, or the nearest before it.
    To {
        /// Milliseconds since 1970.
        ms: u64,
    },
    /// The thing that happened before this moment, or after it.
    Mark {
        /// Towards now.
        forward: bool,
    },
    /// The oldest moment.
    Oldest,
    /// The newest: live again, or the end of the recording.
    Newest,
    /// Let the time run, or stop it.
    TogglePlay,
}

/// A signal that ends a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Asks it to end.
    Term,
    /// Ends it without asking.
    Kill,
}

/// The refresh intervals that can be chosen.
pub const INTERVALS_MS: &[u64] = &[250, 500, 1000, 2000, 5000, 10_000];

/// How long a notice stays.
const NOTICE_MS: u64 = 6000;

/// State of the picture.
pub struct Ui {
    theme: Theme,
    panels: Vec<Box<dyn Panel>>,
    current: usize,
    came_from: Vec<usize>,
    focus: Focus,
    dialog: Option<Dialog>,
    notice: Option<(String, u64)>,
    tabs: Vec<(u16, u16, usize)>,
}

impl Ui {
    /// The picture at the start: the first panel.
    pub fn new(theme: Theme) -> Self {
        Self {
            theme,
            panels: PANELS.iter().map(|entry| (entry.make)()).collect(),
            current: 0,
            came_from: Vec::new(),
            focus: Focus::default(),
            dialog: None,
            notice: None,
            tabs: Vec::new(),
        }
    }

    /// Shows a panel by its name; false when there is none.
    pub fn show(&mut self, name: &str) -> bool {
        let Some(at) = panels::place(name) else { return false };
        self.go(at);
        true
    }

    /// The name of the panel that is shown.
    pub fn panel(&self) -> &'static str {
        PANELS[self.current].name
    }

    /// Shows the result of an action for some seconds.
    pub fn notice(&mut self, words: impl Into<String>, now_ms: u64) {
        self.notice = Some((words.into(), now_ms.saturating_add(NOTICE_MS)));
    }

    fn go(&mut self, at: usize) {
        if at != self.current && at < self.panels.len() {
            self.came_from.push(self.current);
            if self.came_from.len() > 32 {
                self.came_from.remove(0);
            }
            self.current = at;
        }
        self.panels[self.current].enter(&self.focus);
    }

    /// Takes a press.
    pub fn key(&mut self, event: KeyEvent, view: &View) -> Action {
        if event.kind == KeyEventKind::Release {
            return Action::None;
        }
        let tense = view.tense();
        if keys::command(event, &[], tense) == Some(Command::Quit) && !is_letter(event) {
            return Action::Quit;
        }
        if let Some(dialog) = &mut self.dialog {
            return match dialog.key(event, view) {
                Closing::Stay => Action::Redraw,
                Closing::Close => {
                    self.dialog = None;
                    Action::Redraw
                }
                Closing::Do(action) => {
                    self.dialog = None;
                    action
                }
            };
        }
        if let Some(reply) = self.panels[self.current].typed(event) {
            return self.answer(reply, view);
        }
        match keys::command(event, self.answers(), tense) {
            Some(command) => self.command(command, view),
            None => Action::None,
        }
    }

    /// Takes a pasted text where text is typed; anywhere else a paste does nothing, since its letters
    /// were not meant as keys.
    pub fn paste(&mut self, words: &str, view: &View) -> Action {
        for c in words.chars().filter(|c| !c.is_control()) {
            let event = KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
            match &mut self.dialog {
                Some(dialog) if dialog.takes_text() => drop(dialog.key(event, view)),
                Some(_) => return Action::None,
                None => {
                    if self.panels[self.current].typed(event).is_none() {
                        return Action::None;
                    }
                }
            }
        }
        Action::Redraw
    }

    fn answers(&self) -> &'static [Command] {
        self.panels[self.current].answers().unwrap_or(PANELS[self.current].answers)
    }

    fn command(&mut self, command: Command, view: &View) -> Action {
        match self.panels[self.current].command(command, view, &mut self.focus) {
            Reply::Ignored => {}
            reply => return self.answer(reply, view),
        }
        let count = self.panels.len();
        match command {
            Command::Quit => return Action::Quit,
            Command::Pause => return Action::TogglePause,
            Command::Slower | Command::Faster => return interval(view, command),
            Command::Help => self.dialog = Some(Dialog::help(&PANELS[self.current])),
            Command::Back => match self.came_from.pop() {
                Some(at) => self.current = at,
                None => self.current = 0,
            },
            Command::NextPanel => self.go((self.current + 1) % count),
            Command::PreviousPanel => self.go((self.current + count - 1) % count),
            Command::Panel(at) => self.go(at.min(count - 1)),
            Command::TypeTime => return self.type_time(view),
            _ => {
                let travel = travel::meant(command);
                return travel.map_or(Action::None, |travel| self.travel(travel, view));
            }
        }
        Action::Redraw
    }

    fn answer(&mut self, reply: Reply, view: &View) -> Action {
        match reply {
            Reply::Ignored => Action::None,
            Reply::Redraw => Action::Redraw,
            Reply::Go(name) => {
                self.show(name);
                Action::Redraw
            }
            Reply::EndProcess(process) => {
                self.dialog = Some(Dialog::end(process));
                Action::Redraw
            }
            Reply::Finding(finding) => {
                self.dialog = Some(Dialog::finding(finding));
                Action::Redraw
            }
            Reply::Copy(words) => Action::Copy(words),
            Reply::Travel(travel) => self.travel(travel, view),
        }
    }

    /// Takes a mouse event; `area` is the one that was drawn into.
    pub fn mouse(&mut self, event: MouseEvent, view: &View, area: Rect) -> Action {
        let scroll = match event.kind {
            MouseEventKind::ScrollUp => Some(Command::Up),
            MouseEventKind::ScrollDown => Some(Command::Down),
            _ => None,
        };
        if let Some(command) = scroll {
            for _ in 0..3 {
                match &mut self.dialog {
                    Some(dialog) => dialog.scroll(command),
                    None => {
                        self.command(command, view);
                    }
                }
            }
            return Action::Redraw;
        }
        if event.kind != MouseEventKind::Down(MouseButton::Left) || self.dialog.is_some() {
            return Action::None;
        }
        if event.row + 1 == area.bottom() {
            let x = event.column.saturating_sub(area.x);
            if let Some((_, _, at)) =
                self.tabs.iter().find(|(from, to, _)| (*from..*to).contains(&x))
            {
                self.go(*at);
                return Action::Redraw;
            }
            return Action::None;
        }
        let at = Position { x: event.column, y: event.row };
        let reply = self.panels[self.current].click(at, view, &mut self.focus);
        self.answer(reply, view)
    }

    /// The metric over time that the panel on the screen needs and does not have. To be asked after
    /// each draw, since the width decides how many points can be seen; `None` when nothing is needed
    /// or the request in the view is the same.
    pub fn wants(&self, view: &View) -> Option<ChartRequest> {
        let wanted = self.panels[self.current].wants(view)?;
        let asked = view.past.chart.as_ref().map(|chart| &chart.request);
        (asked != Some(&wanted)).then_some(wanted)
    }

    /// Draws everything.
    pub fn draw(&mut self, view: &View, area: Rect, buf: &mut Buffer) {
        let theme = self.theme;
        let mut canvas = Canvas::new(buf, area, theme);
        let (width, height) = (canvas.width(), canvas.height());
        if width < frame::LEAST_WIDTH || height < frame::LEAST_HEIGHT {
            frame::too_small(&mut canvas);
        } else {
            let entry = &PANELS[self.current];
            let panel = &mut self.panels[self.current];
            frame::header(&mut canvas, view, &panel.subject(view, &self.focus));
            panel.draw(view, &self.focus, &mut canvas.part(0, 1, width, height - 2));
            let answers = panel.answers().unwrap_or(entry.answers);
            self.tabs = frame::footer(&mut canvas, height - 1, entry, answers, view.tense());
            let notice = self.notice.as_ref().filter(|(_, until)| view.now_ms < *until);
            if let Some((words, _)) = notice {
                line_above_footer(&mut canvas, height - 2, words, theme.strong());
            } else if let Some(words) = trouble(view) {
                line_above_footer(&mut canvas, height - 2, &words, theme.warning());
            } else if let Some(words) = panel.reason(view) {
                line_above_footer(&mut canvas, height - 2, &words, theme.dim());
            }
            if let Some(dialog) = &mut self.dialog {
                dialog.draw(view, &mut canvas);
            }
        }
        if theme.is_ascii() {
            to_ascii(buf, area);
        }
    }
}

/// Why no other moment comes, if so. What the live feed lacks is of no concern to a picture of the
/// past.
fn trouble(view: &View) -> Option<String> {
    if view.travels() {
        let trouble = view.past.trouble.as_ref()?;
        return Some(format!("● no other moment can be read: {trouble}"));
    }
    let trouble = view.feed.trouble.as_ref()?;
    Some(format!("● nothing comes any more: {trouble}"))
}

fn is_letter(event: KeyEvent) -> bool {
    event.modifiers.is_empty() || event.modifiers == KeyModifiers::SHIFT
}

fn interval(view: &View, command: Command) -> Action {
    let now = view.feed.interval_ms;
    let next = if command == Command::Slower {
        INTERVALS_MS.iter().find(|ms| **ms > now)
    } else {
        INTERVALS_MS.iter().rev().find(|ms| **ms < now)
    };
    next.map_or(Action::None, |ms| Action::Interval { ms: *ms })
}

fn line_above_footer(canvas: &mut Canvas, y: u16, words: &str, style: Style) {
    let width = canvas.width();
    for x in 0..width {
        canvas.glyph(x, y, ' ', Style::reset());
    }
    canvas.text_in(1, y, width.saturating_sub(2), words, style);
}

/// Nothing but ASCII is left after this; a wide letter becomes one mark and a blank.
fn to_ascii(buf: &mut Buffer, area: Rect) {
    let area = area.intersection(buf.area);
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            if let Some(cell) = buf.cell_mut((x, y))
                && !cell.symbol().is_ascii()
            {
                let twin = cell.symbol().chars().next().map_or(' ', text::ascii_twin);
                cell.set_char(twin);
            }
        }
    }
}

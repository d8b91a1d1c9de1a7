//! Any metric over any stretch that is remembered, with what happened on its time axis.
//!
//! The values are asked for and come with a later view; what is here meanwhile is shown as it is.
//! A line is the mean of a step, the shade behind it reaches from the smallest to the largest value;
//! a step without a value is a gap. Curves cannot be told by colour: the selected one is bold, with
//! its figures beside it, and the others are its surroundings.

use crossterm::event::KeyEvent;
use ratatui::layout::Position;

use crate::canvas::Canvas;
use crate::keys::Command;
use crate::list::List;
use crate::panels::{Entry, Focus, Panel, Reply};
use crate::ui::Travel;
use crate::view::{ChartRequest, View};
use crate::words;

mod axis;
mod chart;
mod choice;
mod curves;
mod draw;
mod legend;
mod marks;
mod plot;
mod state;
mod unit;
mod window;

use choice::{Choice, Chosen};
use curves::CurveKey;
use marks::MarkKey;
use window::Window;

/// This panel in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "history",
    purpose: "Any metric over the time that infertop daemon remembers, with what happened in it.",
    answers: &[Command::Metric, Command::ZoomIn, Command::Only, Command::Open, Command::Copy],
    explains: &[
        (
            "line and shade",
            "The line is the mean of each step of time, the shade reaches from the smallest to the \
             largest value in it. The selected subject is bold, the others are dim.",
        ),
        ("gap", "Nothing was stored then, or there was no value: a gap is never 0."),
        (
            "scale",
            "Shares begin at 0. Other values begin near the lowest one when all lie close \
             together: read the numbers at the left.",
        ),
        (
            "counters",
            "What only rises is drawn as what was added since the left edge; TOTAL is the \
             counter itself.",
        ),
        (
            "LAST or AT",
            "The last value of the stretch, or the one at the moment that is shown, which is the \
             marked column.",
        ),
        ("▲ ● · ━", "A finding was opened, and how long it lasted."),
        ("X S D V", "Xid; sampler started or ended; daemon started or ended; driver changed."),
        (
            "R C T Z N",
            "GPUs released or taken again; configuration read again; clock set; machine slept; \
             snapshots not stored.",
        ),
        (
            "stretch",
            "Long stretches come from roll-ups of a minute, which are kept longer than the \
             snapshots themselves.",
        ),
    ],
    make: || Box::<History>::default(),
};

/// A row that can be selected.
#[derive(Clone, Debug, PartialEq)]
enum Row {
    Curve(CurveKey),
    Mark(MarkKey),
}

struct History {
    metric: &'static str,
    window: Window,
    list: List<Row>,
    /// The curve that is bold, also while a mark is selected.
    curve: Option<CurveKey>,
    /// Only that curve is drawn.
    only: bool,
    offsets: [usize; 2],
    choice: Option<Choice>,
    /// The GPU that all panels looked at when this one was drawn last.
    focused: Option<String>,
    /// The values are on their way; the selection waits for them.
    waits: bool,
    /// What was drawn last: the chart, for the mouse, and what it needs.
    drawn: chart::Drawn,
    hits: Vec<(Position, u16, Row)>,
    wanted: Option<ChartRequest>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            metric: "infertop_gpu_busy_ratio",
            window: Window::default(),
            list: List::default(),
            curve: None,
            only: false,
            offsets: [0, 0],
            choice: None,
            focused: None,
            waits: false,
            drawn: chart::Drawn::default(),
            hits: Vec::new(),
            wanted: None,
        }
    }
}

impl Panel for History {
    fn subject(&self, view: &View, _focus: &Focus) -> String {
        let stretch = window::STRETCHES[self.window.stretch(view)].0;
        format!("history · {} · {stretch}", unit::title(self.metric))
    }

    fn draw(&mut self, view: &View, focus: &Focus, canvas: &mut Canvas) {
        self.hits.clear();
        self.wanted = None;
        if view.past.span.is_none() {
            self.list.set(Vec::new());
            state::no_past(canvas, view);
        } else {
            self.window.place(view);
            self.draw_past(view, focus, canvas);
        }
        if let Some(choice) = &mut self.choice {
            choice.draw(canvas);
        }
    }

    fn command(&mut self, command: Command, view: &View, focus: &mut Focus) -> Reply {
        if let Some(choice) = &mut self.choice {
            return if choice.command(command) { Reply::Redraw } else { Reply::Ignored };
        }
        if self.list.command(command) {
            self.follow(view, focus);
            return Reply::Redraw;
        }
        let column = self.drawn.column_ms(&self.window).max(window::interval_ms(view));
        let long = self.window.length_ms() / 10;
        match command {
            Command::Earlier => by(column, false),
            Command::Later => by(column, true),
            Command::JumpEarlier => by(long, false),
            Command::JumpLater => by(long, true),
            Command::ZoomIn | Command::ZoomOut => {
                self.window.zoom(view, command == Command::ZoomIn);
                Reply::Redraw
            }
            Command::Metric => self.choose_metric(),
            Command::Only => {
                self.only = !self.only;
                Reply::Redraw
            }
            Command::Open => self.open(view),
            Command::Copy => Reply::Copy(self.copied(view)),
            _ => Reply::Ignored,
        }
    }

    fn click(&mut self, at: Position, view: &View, focus: &mut Focus) -> Reply {
        if self.choice.is_some() {
            return Reply::Ignored;
        }
        if let Some(ms) = self.drawn.moment(at, &self.window) {
            return Reply::Travel(Travel::To { ms: ms.min(view.newest_ms()) });
        }
        let hit = self.hits.iter().find(|(begin, width, _)| {
            begin.y == at.y && (begin.x..begin.x.saturating_add(*width)).contains(&at.x)
        });
        let Some((_, _, row)) = hit.cloned() else { return Reply::Ignored };
        if self.list.selected() == Some(&row) {
            return self.open(view);
        }
        self.list.choose(row);
        self.follow(view, focus);
        Reply::Redraw
    }

    fn typed(&mut self, event: KeyEvent) -> Option<Reply> {
        match self.choice.as_mut()?.key(event) {
            Chosen::Open => {}
            Chosen::Closed => self.choice = None,
            Chosen::Metric(name) => {
                self.metric = name;
                self.choice = None;
            }
        }
        Some(Reply::Redraw)
    }

    fn wants(&self, _view: &View) -> Option<ChartRequest> {
        self.wanted.clone()
    }
}

fn by(ms: u64, forward: bool) -> Reply {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    Reply::Travel(Travel::By { ms: if forward { ms } else { -ms } })
}

impl History {
    /// Takes the rows of this frame; a GPU that was chosen on another panel is the selected curve.
    fn set_rows(
        &mut self,
        keys: &[CurveKey],
        marks: &[(MarkKey, &probes::past::Mark)],
        focus: &Focus,
    ) {
        if self.focused != focus.gpu {
            self.focused.clone_from(&focus.gpu);
            let key = keys.iter().find(|key| Some(&key.subject) == focus.gpu.as_ref());
            if let Some(key) = key {
                self.list.choose(Row::Curve(key.clone()));
            }
        }
        let rows = keys.iter().cloned().map(Row::Curve);
        self.list.set(rows.chain(marks.iter().map(|(key, _)| Row::Mark(*key))).collect());
        if let Some(Row::Curve(key)) = self.list.selected() {
            self.curve = Some(key.clone());
        }
        if self.curve.as_ref().is_none_or(|key| !keys.contains(key)) {
            self.curve = keys.first().cloned();
        }
    }

    /// The GPU that other panels show is the one whose curve is selected here.
    fn follow(&mut self, view: &View, focus: &mut Focus) {
        if let Some(Row::Curve(key)) = self.list.selected() {
            self.curve = Some(key.clone());
            if view.snapshot.gpus.iter().any(|gpu| words::gpu_key(gpu) == key.subject) {
                focus.gpu = Some(key.subject.clone());
                self.focused.clone_from(&focus.gpu);
            }
        }
    }

    fn choose_metric(&mut self) -> Reply {
        self.choice = Some(Choice::at(self.metric));
        Reply::Redraw
    }

    fn open(&mut self, view: &View) -> Reply {
        match self.list.selected() {
            // To the first snapshot that could show it.
            Some(Row::Mark(key)) => {
                let ms = key.at_ms().saturating_add(window::interval_ms(view));
                Reply::Travel(Travel::To { ms: ms.min(view.newest_ms()) })
            }
            _ => self.choose_metric(),
        }
    }

    fn copied(&self, view: &View) -> String {
        if let Some(Row::Mark(key)) = self.list.selected() {
            let marks = marks::within(view, self.window.ends());
            if let Some((_, mark)) = marks.iter().find(|(known, _)| known == key) {
                return marks::full(mark, view);
            }
        }
        self.metric.into()
    }
}

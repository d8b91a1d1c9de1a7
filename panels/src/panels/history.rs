//! Any metric over any stretch that is remembered, with what happened on its time axis.
//!
//! The values are asked for and come with a later view; what is here meanwhile is shown as it is.
//! A line is the mean of a step, the shade behind it reaches from the smallest to the largest value;
//! a step without a value is a gap. Curves cannot be told by colour: the selected one is bold, with
//! its figures beside it, and the others are its surroundings.

use crossterm::event::KeyEvent;
use probes::past::MetricPast;
use ratatui::layout::Position;

use crate::canvas::Canvas;
use crate::keys::Command;
use crate::list::{self, List};
use crate::panels::{Entry, Focus, Panel, Reply};
use crate::ui::Travel;
use crate::view::{ChartRequest, View};
use crate::words;

mod axis;
mod chart;
mod choice;
mod curves;
mod legend;
mod marks;
mod plot;
mod state;
mod unit;
mod window;

use choice::{Choice, Chosen};
use curves::{CurveKey, Curves};
use marks::MarkKey;
use unit::Unit;
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
            Command::Open => self.open(),
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
            return self.open();
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

/// How the rows are shared out.
struct Rows {
    /// Of the chart itself.
    chart: u16,
    /// Of the lists below, heads included.
    lists: u16,
    /// One for words at the bottom.
    words: u16,
}

impl Rows {
    /// The chart keeps half of what there is; the lists get what they need, on large screens more
    /// for what happened.
    fn share(height: u16, curves: usize, marks: usize) -> Self {
        let words = u16::from(height >= 10);
        // Title above, axis and times below.
        let rest = height.saturating_sub(3 + words);
        let head = u16::from(height >= 10);
        let count = |rows: usize| u16::try_from(rows).unwrap_or(u16::MAX);
        let wanted = count(curves).max(count(marks).min(height / 4)).max(1);
        let lists = wanted.saturating_add(head).min(rest / 2);
        Self { chart: rest - lists, lists, words }
    }
}

/// Columns from which both lists have room side by side.
const SIDE_BY_SIDE: u16 = 72;

impl History {
    fn draw_past(&mut self, view: &View, focus: &Focus, canvas: &mut Canvas) {
        let row = choice::find(self.metric);
        let unit = Unit::of(self.metric);
        let known = self.known(view);
        let curves = match (known, row) {
            (Ok(Some(past)), Some(row)) => Some(Curves::new(past, unit, row.kind, row.label)),
            _ => None,
        };
        let marks = marks::within(view, self.window.ends());
        let keys: Vec<CurveKey> =
            curves.iter().flat_map(|curves| &curves.all).map(|curve| curve.key.clone()).collect();
        self.waits = matches!(known, Ok(None));
        if !self.waits {
            self.set_rows(&keys, &marks, focus);
        }

        let rows = Rows::share(canvas.height(), keys.len(), marks.len());
        chart::title(canvas, row.map_or("", |row| row.help), unit, self.window.stretch(view));
        let picture = chart::Picture {
            curves: curves.as_ref(),
            selected: self.curve.as_ref(),
            only: self.only,
            unit,
            window: &self.window,
            marks: &marks,
        };
        self.drawn = picture.draw(canvas, 1, rows.chart, view);
        if curves.as_ref().is_none_or(|curves| {
            curves.all.iter().all(|curve| curve.points.iter().all(Option::is_none))
        }) {
            state::no_values(
                canvas,
                (self.drawn.left() + 2, 1 + rows.chart / 2),
                view,
                self.metric,
                known,
            );
        }
        self.wanted = Some(self.window.request(self.metric, self.drawn.dots(), view));

        let top = rows.chart + 3;
        let width = canvas.width();
        let legend = legend::width(curves.as_ref()).min(width);
        if width >= SIDE_BY_SIDE {
            let legend = legend.min(width / 2 + 4);
            self.draw_curves(canvas, (0, top, legend, rows.lists), view, curves.as_ref(), unit);
            let left = legend + 2;
            self.draw_marks(canvas, (left, top, width - left, rows.lists), view, &marks);
        } else {
            let below = if marks.is_empty() { 0 } else { rows.lists / 3 };
            let above = rows.lists - below;
            self.draw_curves(canvas, (0, top, width, above), view, curves.as_ref(), unit);
            self.draw_marks(canvas, (0, top + above, width, below), view, &marks);
        }
        if rows.words > 0 {
            let words = self.words(view, &marks, curves.as_ref());
            let y = canvas.height() - 1;
            canvas.text_in(1, y, width.saturating_sub(2), &words, canvas.theme.dim());
        }
    }

    /// What came back for this metric: nothing yet, values, or why there are none.
    fn known<'a>(&self, view: &View<'a>) -> Result<Option<&'a MetricPast>, &'a str> {
        let chart = view.past.chart.as_ref().filter(|chart| chart.request.metric == self.metric);
        match chart.and_then(|chart| chart.answer.as_ref()) {
            None => Ok(None),
            Some(Ok(past)) => Ok(Some(past)),
            Some(Err(why)) => Err(why),
        }
    }

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

    fn draw_curves(
        &mut self,
        canvas: &mut Canvas,
        (x, y, width, height): (u16, u16, u16, u16),
        view: &View,
        curves: Option<&Curves>,
        unit: Unit,
    ) {
        let Some(curves) = curves else { return };
        let mut part = canvas.part(x, y, width, height);
        let plan = legend::Plan::new(curves, unit, view, self.window.ends(), width);
        let head = u16::from(height > 2);
        let count = curves.all.len();
        let place = Some(self.list.place()).filter(|at| *at < count);
        let rows = usize::from(height.saturating_sub(head));
        let shown = list::window(&mut self.offsets[0], place, count, rows);
        if head > 0 {
            plan.head(&mut part, view, &shown);
        }
        for (at, y) in shown.zip(head..) {
            let curve = &curves.all[at];
            plan.row(&mut part, y, curve, self.curve.as_ref() == Some(&curve.key));
            self.row_drawn(&mut part, y, x, at, Row::Curve(curve.key.clone()));
        }
    }

    fn draw_marks(
        &mut self,
        canvas: &mut Canvas,
        (x, y, width, height): (u16, u16, u16, u16),
        view: &View,
        marks: &[(MarkKey, &probes::past::Mark)],
    ) {
        let mut part = canvas.part(x, y, width, height);
        let theme = part.theme;
        let head = u16::from(height > 2);
        if head > 0 {
            let words =
                if marks.is_empty() { "nothing happened in this stretch" } else { "WHAT HAPPENED" };
            let style = if marks.is_empty() { theme.dim() } else { theme.heading() };
            part.text(1, 0, words, style);
        }
        let curves = self.list.len().saturating_sub(marks.len());
        let place = self.list.place().checked_sub(curves).filter(|_| !self.waits);
        let rows = usize::from(height.saturating_sub(head));
        let shown = list::window(&mut self.offsets[1], place, marks.len(), rows);
        if head > 0 && shown.len() < marks.len() {
            let words = format!("{}–{} of {}", shown.start + 1, shown.end, marks.len());
            part.right(16, 0, width.saturating_sub(17), &words, theme.dim());
        }
        let time_width = marks::time_width(&marks[shown.clone()], view);
        for (at, y) in shown.zip(head..) {
            marks::draw_row(&mut part, y, time_width, marks[at].1, view);
            self.row_drawn(&mut part, y, x, curves + at, Row::Mark(marks[at].0));
        }
    }

    fn row_drawn(&mut self, part: &mut Canvas, y: u16, x: u16, at: usize, row: Row) {
        if let Some(screen) = part.screen_row(y) {
            self.hits.push((Position { x, y: screen }, part.width(), row));
        }
        if self.list.is_at(at) && !self.waits {
            part.select(y);
        }
    }

    /// One line of words: the selected mark in full, why a curve has no value, else how to read it.
    fn words(
        &self,
        view: &View,
        marks: &[(MarkKey, &probes::past::Mark)],
        curves: Option<&Curves>,
    ) -> String {
        match self.list.selected() {
            Some(Row::Mark(key)) => {
                let found = marks.iter().find(|(known, _)| known == key);
                found.map_or(String::new(), |(_, mark)| marks::full(mark, view))
            }
            Some(Row::Curve(key)) => {
                let curve =
                    curves.and_then(|curves| curves.all.iter().find(|curve| curve.key == *key));
                let empty = curve.filter(|curve| curve.points.iter().all(Option::is_none));
                match empty.and_then(|_| choice::absence(view, self.metric, &key.subject)) {
                    Some(why) => format!("no value here: {why}"),
                    None => state::reading(view, curves),
                }
            }
            None => state::reading(view, curves),
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

    fn open(&mut self) -> Reply {
        match self.list.selected() {
            Some(Row::Mark(key)) => Reply::Travel(Travel::To { ms: key.at_ms() }),
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

//! How the parts of the panel are laid out: the chart above, the subjects and what happened below.

use probes::past::{Mark, MetricPast};
use ratatui::layout::Position;

use super::curves::{CurveKey, Curves};
use super::marks::{self, MarkKey};
use super::unit::Unit;
use super::{History, Row, chart, choice, legend, state};
use crate::canvas::Canvas;
use crate::list;
use crate::panels::Focus;
use crate::view::View;
use crate::words;

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
    /// Draws what is remembered.
    pub(super) fn draw_past(&mut self, view: &View, focus: &Focus, canvas: &mut Canvas) {
        let row = choice::find(self.metric);
        let unit = Unit::of(self.metric);
        let known = self.known(view);
        let mut curves = match (known, row) {
            (Ok(Some(past)), Some(row)) => {
                Some(Curves::new(past, unit, (row.kind, row.label), focus.gpu.as_deref()))
            }
            _ => None,
        };
        if let Some(curves) = &mut curves
            && choice::is_of_gpus(self.metric)
            && curves.left_out == 0
        {
            let gpus = view.snapshot.gpus.iter();
            let names = gpus.map(|gpu| (words::gpu_key(gpu), format!("GPU {}", gpu.label())));
            curves.add_missing(&names.collect::<Vec<_>>());
        }
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
            let missing = || choice::why_missing(view, self.metric, &curve.key.subject).text;
            plan.row(&mut part, y, curve, self.curve.as_ref() == Some(&curve.key), missing);
            self.row_drawn(&mut part, y, x, at, Row::Curve(curve.key.clone()));
        }
    }

    fn draw_marks(
        &mut self,
        canvas: &mut Canvas,
        (x, y, width, height): (u16, u16, u16, u16),
        view: &View,
        marks: &[(MarkKey, &Mark)],
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
    fn words(&self, view: &View, marks: &[(MarkKey, &Mark)], curves: Option<&Curves>) -> String {
        match self.list.selected() {
            Some(Row::Mark(key)) => {
                let found = marks.iter().find(|(known, _)| known == key);
                found.map_or(String::new(), |(_, mark)| marks::full(mark, view))
            }
            Some(Row::Curve(key)) => {
                let curve =
                    curves.and_then(|curves| curves.all.iter().find(|curve| curve.key == *key));
                let empty = curve.is_some_and(|curve| curve.points.iter().all(Option::is_none));
                if !empty {
                    return state::reading(view, curves);
                }
                let why = choice::why_missing(view, self.metric, &key.subject).reason;
                let name = curve.map_or("", |curve| curve.name.as_str());
                format!("{name} has no value here: {why}")
            }
            None => state::reading(view, curves),
        }
    }
}

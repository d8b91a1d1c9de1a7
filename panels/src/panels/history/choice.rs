//! Which metric to draw: all rows of the metric tables, narrowed by what is typed.

use crossterm::event::{KeyCode, KeyEvent};
use probes::history::TRACKED;
use probes::host::HOST_METRICS;
use probes::metric::{Kind, Metric, Pick};
use probes::nvml;
use probes::reading::Absence;

use super::unit::{self, Unit};
use crate::canvas::Canvas;
use crate::dialog;
use crate::input::{Input, Typed};
use crate::keys::Command;
use crate::list::List;
use crate::text;
use crate::value::Value;
use crate::view::View;
use crate::words;

/// A row of the tables, whatever it is about.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
    /// What its label is called, where it has one.
    pub(super) label: Option<&'static str>,
}

fn row<S>(metric: &'static Metric<S>) -> Row {
    let label = match metric.pick {
        Pick::One(_) => None,
        Pick::Each { label, .. } => Some(label),
    };
    Row { name: metric.name, kind: metric.kind, help: metric.help, label }
}

/// All rows: those that are looked at most, then the GPU's, then the host's.
pub(super) fn rows() -> Vec<Row> {
    let tracked = |name: &str| TRACKED.contains(&name);
    let first = nvml::metrics().filter(|metric| tracked(metric.name)).map(row);
    let others = nvml::metrics().filter(|metric| !tracked(metric.name)).map(row);
    first.chain(others).chain(HOST_METRICS.iter().map(row)).collect()
}

/// The row with this name.
pub(super) fn find(name: &str) -> Option<Row> {
    let gpu = nvml::metrics().find(|metric| metric.name == name).map(row);
    gpu.or_else(|| HOST_METRICS.iter().find(|metric| metric.name == name).map(row))
}

/// Whether a metric is about GPUs.
pub(super) fn is_of_gpus(name: &str) -> bool {
    nvml::metrics().any(|metric| metric.name == name)
}

/// Why a subject has no value of a metric, as far as the snapshot tells.
pub(super) fn why_missing(view: &View, name: &str, subject: &str) -> Value {
    let gpu = view.snapshot.gpus.iter().find(|gpu| words::gpu_key(gpu) == subject);
    let absence = absence(view, name, subject);
    let never = matches!(absence, Some(Absence::Unsupported | Absence::TooOld));
    let silence = gpu.and_then(|gpu| words::silence(gpu, view.at_ms())).filter(|_| !never);
    let stored = || "nothing was stored in this stretch".to_string();
    match (silence, absence) {
        (Some(reason), _) => Value { reason, ..Value::absent(&Absence::NoAnswer) },
        (None, Some(why)) => Value::absent(&why),
        (None, None) => Value { reason: stored(), ..Value::absent(&Absence::NotRead) },
    }
}

/// Why a subject has no value of a metric now, as far as the snapshot tells.
pub(super) fn absence(view: &View, name: &str, subject: &str) -> Option<Absence> {
    if let Some(metric) = HOST_METRICS.iter().find(|metric| metric.name == name) {
        let Pick::One(pick) = metric.pick else { return None };
        return pick(&view.snapshot.host).absence().cloned();
    }
    let metric = nvml::metrics().find(|metric| metric.name == name)?;
    let gpus = &view.snapshot.gpus;
    let gpu = gpus.iter().find(|gpu| words::gpu_key(gpu) == subject).or_else(|| gpus.first())?;
    let Pick::One(pick) = metric.pick else { return None };
    pick(gpu).absence().cloned()
}

/// The open list.
#[derive(Default)]
pub(super) struct Choice {
    filter: Input,
    list: List<&'static str>,
}

/// What a press came to.
pub(super) enum Chosen {
    /// The list stays.
    Open,
    /// It closes, and nothing changes.
    Closed,
    /// It closes with this metric.
    Metric(&'static str),
}

impl Choice {
    /// The list with this metric selected.
    pub(super) fn at(name: &'static str) -> Self {
        let mut choice = Self::default();
        choice.list.choose(name);
        choice
    }

    fn rows(&self) -> Vec<Row> {
        let wanted = self.filter.text.trim().to_lowercase();
        let fits = |row: &Row| {
            let all = format!("{} {} {}", unit::title(row.name), row.name, row.help).to_lowercase();
            wanted.split(' ').all(|word| all.contains(word))
        };
        rows().into_iter().filter(fits).collect()
    }

    /// Takes a press; letters narrow the list.
    pub(super) fn key(&mut self, event: KeyEvent) -> Chosen {
        let moves = match event.code {
            KeyCode::Up => Some(Command::Up),
            KeyCode::Down => Some(Command::Down),
            KeyCode::PageUp => Some(Command::PageUp),
            KeyCode::PageDown => Some(Command::PageDown),
            KeyCode::Home => Some(Command::First),
            KeyCode::End => Some(Command::Last),
            _ => None,
        };
        if let Some(command) = moves {
            self.list.command(command);
            return Chosen::Open;
        }
        match self.filter.key(event) {
            Typed::Dropped => Chosen::Closed,
            Typed::Done => {
                // What is typed may be newer than what was drawn.
                self.list.set(self.rows().iter().map(|row| row.name).collect());
                self.list.selected().map_or(Chosen::Open, |name| Chosen::Metric(name))
            }
            Typed::Text => {
                self.list = List::default();
                Chosen::Open
            }
            Typed::Other => Chosen::Open,
        }
    }

    /// Moves with the wheel.
    pub(super) fn command(&mut self, command: Command) -> bool {
        self.list.command(command)
    }

    /// Draws the list over the canvas.
    pub(super) fn draw(&mut self, canvas: &mut Canvas) {
        let rows = self.rows();
        self.list.set(rows.iter().map(|row| row.name).collect());
        let width = canvas.width().min(110);
        let height = canvas.height();
        let left = (canvas.width() - width) / 2;
        let mut window = canvas.part(left, 0, width, height);
        dialog::border(
            &mut window,
            "metric over time",
            "enter shows it   letters narrow   esc leaves",
        );
        let theme = window.theme;
        let mut inside = window.part(2, 1, width.saturating_sub(4), height.saturating_sub(2));
        let end = inside.text(0, 0, &format!("filter {}▏", self.filter.text), theme.strong());
        let count = format!("{} of {}", rows.len(), self::rows().len());
        let room = inside.width().saturating_sub(end + 2);
        inside.right(end + 2, 0, room, &count, theme.dim());
        if rows.is_empty() {
            inside.text(1, 1, "no metric fits the filter", theme.dim());
        }
        let widest = rows.iter().map(|row| text::width(&unit::title(row.name))).max().unwrap_or(0);
        let named = widest.min(inside.width() / 2);
        let mut list = inside.part(0, 1, width, height);
        for (at, y) in self.list.window(height.saturating_sub(3)).zip(0..) {
            let row = &rows[at];
            list.text_in(1, y, named, &unit::title(row.name), theme.text());
            list.text(named + 3, y, Unit::of(row.name).name, theme.dim());
            list.text(named + 9, y, row.help, theme.dim());
            if self.list.is_at(at) {
                list.select(y);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_of_the_tables_can_be_chosen_once() {
        let rows = rows();
        assert_eq!(rows.len(), nvml::metrics().count() + HOST_METRICS.len());
        let mut names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows.len());
        assert!(rows.iter().all(|row| find(row.name).is_some()));
        let mut titles: Vec<String> = rows.iter().map(|row| unit::title(row.name)).collect();
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), rows.len(), "two metrics are called alike");
    }
}

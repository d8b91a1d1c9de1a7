//! A metric over a stretch of time: from whole snapshots where it is short, else from the roll-ups.

use std::collections::HashMap;

use anyhow::Context as _;
use probes::past::{MetricPast, Series};
use rusqlite::{OptionalExtension as _, Row, params};

use super::{Reader, signed};
use crate::store::minute::unsigned;
use crate::store::rollup::{hour, minute};
use crate::store::values;

/// The shortest step.
const SHORTEST_MS: u64 = 250;
/// What roll-ups know.
const MINUTE_MS: u64 = 60_000;
/// Whole snapshots are looked through for a stretch of this length at most.
const MOST_RAW_MS: u64 = 30 * MINUTE_MS;
/// Steps that are answered at most; a longer stretch gets longer steps.
const MOST_STEPS: u64 = 20_000;
/// Steps of all series together.
const MOST_CELLS: usize = 2_000_000;
/// A minute of an hour counts as much as so many snapshots.
const MINUTE_WEIGHT: f64 = 60.0;

impl Reader {
    /// A metric's smallest, mean and largest value in each step of a stretch. Steps get longer where
    /// nothing finer is known, or where there would be too many.
    pub(crate) fn metric(
        &mut self,
        metric: &str,
        from_ms: u64,
        to_ms: u64,
        step_ms: u64,
    ) -> anyhow::Result<MetricPast> {
        anyhow::ensure!(from_ms <= to_ms, "the stretch ends before it begins");
        let length = to_ms - from_ms;
        let step_ms = step_ms.max(SHORTEST_MS).max(length / MOST_STEPS + 1);
        let has_raw = || -> anyhow::Result<bool> {
            Ok(self.span()?.is_some_and(|span| span.from_ms <= to_ms))
        };
        if step_ms < MINUTE_MS && length <= MOST_RAW_MS && has_raw()? {
            anyhow::ensure!(values::is_known(metric), no_metric(metric));
            let mut chart = Chart::new(metric, from_ms, to_ms, step_ms)?;
            self.values(&[metric], from_ms, to_ms, |at_ms, snapshot| {
                chart.snapshot(at_ms, snapshot);
            })?;
            return chart.finish();
        }
        let mut chart = Chart::new(metric, from_ms, to_ms, step_ms.max(MINUTE_MS))?;
        self.snapshot_in(|reader| reader.roll_ups(&mut chart))?;
        chart.finish()
    }

    fn roll_ups(&mut self, chart: &mut Chart) -> anyhow::Result<()> {
        const ID: &str = "SELECT id FROM names WHERE name = ?";
        const HOURS: &str =
            "SELECT hour, data FROM hours WHERE metric = ? AND hour BETWEEN ? AND ? ORDER BY hour";
        const MINUTES: &str = "SELECT minute, data FROM minutes WHERE minute BETWEEN ? AND ?";
        let id: Option<u32> =
            self.db.query_row(ID, [&chart.metric], |row| row.get(0)).optional()?;
        if let Some(id) = id {
            let mut known = HashMap::new();
            let (from, to) = (signed(chart.from_ms / MINUTE_MS), signed(chart.to_ms / MINUTE_MS));
            let mut hours = self.db.prepare(HOURS)?;
            let mut hours = hours.query(params![id, from / 60, to / 60])?;
            while let Some(row) = hours.next()? {
                let (at, data): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
                for (subject, minutes) in hour::unpack(&data)?.0 {
                    let series = self.series(chart, &mut known, subject)?;
                    for (minute, figures) in (at * 60..).zip(minutes) {
                        let inside = (from..=to).contains(&minute);
                        if let Some(figures) = figures.filter(|_| inside) {
                            let cell = chart.cell(series, unsigned(minute) * MINUTE_MS);
                            cell.add(figures.map(f64::from), MINUTE_WEIGHT);
                        }
                    }
                }
            }
            let mut rows = self.db.prepare(MINUTES)?;
            let mut rows = rows.query([from, to])?;
            while let Some(row) = rows.next()? {
                let (at, data): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
                let sums = minute::unpack(&data)?;
                for (key, sum) in sums.into_iter().filter(|(key, _)| key.metric == id) {
                    let series = self.series(chart, &mut known, key.subject)?;
                    if let Some(figures) = sum.figures() {
                        let cell = chart.cell(series, unsigned(at) * MINUTE_MS);
                        cell.add(figures, f64::from(sum.count()));
                    }
                }
            }
        } else {
            anyhow::ensure!(values::is_known(&chart.metric), no_metric(&chart.metric));
        }
        self.running_minute(chart)
    }

    /// The snapshots that are in no roll-up yet.
    fn running_minute(&mut self, chart: &mut Chart) -> anyhow::Result<()> {
        for (row, tick) in crate::store::minute::rows(&self.db)? {
            if (chart.from_ms..=chart.to_ms).contains(&tick.at_ms) {
                let bytes = self.tail.frame(&self.db, row)?;
                let snapshot = probes::snapshot::Snapshot::decode(&bytes);
                chart.snapshot(tick.at_ms, &snapshot.context("cannot read a stored snapshot")?);
            }
        }
        Ok(())
    }

    /// The series of a number that the file gave.
    fn series(
        &self,
        chart: &mut Chart,
        known: &mut HashMap<u32, usize>,
        number: u32,
    ) -> anyhow::Result<usize> {
        const ONE: &str = "SELECT rank, subject, label, name FROM subjects WHERE id = ?";
        if let Some(series) = known.get(&number) {
            return Ok(*series);
        }
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        let (rank, subject, label, name): (i64, String, String, String) =
            self.db.query_row(ONE, [number], row)?;
        let series = chart.series(&subject, &label, || (rank, name))?;
        known.insert(number, series);
        Ok(series)
    }
}

fn no_metric(metric: &str) -> String {
    format!("there is no metric {metric}\n  help: docs/metrics.md lists them")
}

/// What is answered, as it fills.
struct Chart {
    metric: String,
    from_ms: u64,
    to_ms: u64,
    step_ms: u64,
    steps: usize,
    /// By subject and label.
    places: HashMap<(String, String), usize>,
    series: Vec<Line>,
    /// Not everything found room.
    is_full: bool,
}

struct Line {
    rank: i64,
    name: String,
    cells: Vec<Cell>,
}

#[derive(Clone, Copy)]
struct Cell {
    min: f32,
    max: f32,
    sum: f64,
    weight: f64,
}

impl Cell {
    #[expect(clippy::cast_possible_truncation, reason = "24 bits are enough for a chart")]
    fn add(&mut self, [min, mean, max]: [f64; 3], weight: f64) {
        self.min = self.min.min(min as f32);
        self.max = self.max.max(max as f32);
        self.sum += mean * weight;
        self.weight += weight;
    }
}

const EMPTY: Cell = Cell { min: f32::INFINITY, max: f32::NEG_INFINITY, sum: 0.0, weight: 0.0 };

impl Chart {
    fn new(metric: &str, from_ms: u64, to_ms: u64, step_ms: u64) -> anyhow::Result<Self> {
        let steps = usize::try_from((to_ms - from_ms) / step_ms + 1)?;
        let (places, series) = (HashMap::new(), Vec::new());
        let metric = metric.into();
        Ok(Self { metric, from_ms, to_ms, step_ms, steps, places, series, is_full: false })
    }

    /// The number of a series; new ones as long as there is room.
    fn series(
        &mut self,
        subject: &str,
        label: &str,
        named: impl FnOnce() -> (i64, String),
    ) -> anyhow::Result<usize> {
        let key = (subject.to_string(), label.to_string());
        if let Some(place) = self.places.get(&key) {
            return Ok(*place);
        }
        let cells = (self.series.len() + 1).saturating_mul(self.steps);
        anyhow::ensure!(
            cells <= MOST_CELLS,
            "{} has too many series for {} steps\n  help: ask for longer steps",
            self.metric,
            self.steps
        );
        self.places.insert(key, self.series.len());
        let (rank, name) = named();
        self.series.push(Line { rank, name, cells: vec![EMPTY; self.steps] });
        Ok(self.series.len() - 1)
    }

    /// The step in which a time lies; what began before the stretch lies in the first.
    fn cell(&mut self, series: usize, at_ms: u64) -> &mut Cell {
        let step = at_ms.saturating_sub(self.from_ms) / self.step_ms;
        let step = usize::try_from(step).unwrap_or(usize::MAX).min(self.steps - 1);
        &mut self.series[series].cells[step]
    }

    fn snapshot(&mut self, at_ms: u64, snapshot: &probes::snapshot::Snapshot) {
        let metric = self.metric.clone();
        values::each(snapshot, Some(&metric), |value| {
            let named = || {
                let rank = i64::try_from(value.rank).unwrap_or(i64::MAX);
                (rank, values::name(snapshot, value.rank))
            };
            match self.series(value.subject, value.label, named) {
                Ok(series) => self.cell(series, at_ms).add([value.number; 3], 1.0),
                Err(_) => self.is_full = true,
            }
        });
    }

    #[expect(clippy::cast_possible_truncation, reason = "24 bits are enough for a chart")]
    fn finish(mut self) -> anyhow::Result<MetricPast> {
        anyhow::ensure!(
            !self.is_full,
            "{} has too many series for {} steps\n  help: ask for longer steps",
            self.metric,
            self.steps
        );
        let each = |cells: &[Cell], pick: fn(&Cell) -> f64| {
            let value = |cell: &Cell| (cell.weight > 0.0).then(|| pick(cell) as f32);
            cells.iter().map(value).collect()
        };
        // GPUs in their order, links by their number.
        let mut order: Vec<_> = std::mem::take(&mut self.places).into_iter().collect();
        order.sort_by_cached_key(|((subject, label), place)| {
            let number = label.parse().unwrap_or(u64::MAX);
            (self.series[*place].rank, subject.clone(), number, label.clone())
        });
        let mut series = Vec::with_capacity(self.series.len());
        for ((subject, label), place) in order {
            let Line { name, cells, .. } = &mut self.series[place];
            let cells = std::mem::take(cells);
            series.push(Series {
                subject,
                name: std::mem::take(name),
                label,
                min: each(&cells, |cell| cell.min.into()),
                mean: each(&cells, |cell| cell.sum / cell.weight),
                max: each(&cells, |cell| cell.max.into()),
            });
        }
        Ok(MetricPast { metric: self.metric, from_ms: self.from_ms, step_ms: self.step_ms, series })
    }
}

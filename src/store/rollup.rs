//! Minimum, mean and maximum of every metric in every minute, for charts over days.
//!
//! What is summed up here are the snapshots of the running chunk; with the chunk it is written, into
//! the row of its minute. Minutes stand together as rows while their hour lasts; then the hour is
//! turned around, into one row a metric, so that a metric over a week is 168 rows. A minute that is
//! told twice (a daemon that started again in it, a clock that was set back) is joined.
//!
//! A value that is missing leaves no trace: a minute without one has no minimum, mean and maximum.

pub(super) mod hour;
pub(super) mod minute;

use std::collections::{BTreeSet, HashMap};

use probes::snapshot::Snapshot;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::values::{self, Value};
use hour::Hour;
use minute::Sum;

/// Minutes of an hour.
pub(super) const MINUTES: usize = 60;

/// What the snapshots since the last flush say.
#[derive(Default)]
pub(super) struct Rollup {
    series: Vec<(Key, Sum)>,
    places: HashMap<Key, usize>,
    /// The series in the order in which the last snapshot told them: the next one tells the same.
    order: Vec<usize>,
    subjects: Subjects,
}

/// What a series is of, by the numbers that the file gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) metric: u32,
    pub(super) subject: u32,
}

impl Rollup {
    /// Takes a snapshot in.
    pub(super) fn add(
        &mut self,
        db: &Transaction<'_>,
        snapshot: &Snapshot,
    ) -> rusqlite::Result<()> {
        let mut result = Ok(());
        let mut at = 0;
        let order = &mut self.order;
        let (series, places, subjects) = (&mut self.series, &mut self.places, &mut self.subjects);
        values::each(snapshot, None, |value| {
            let expected = order.get(at).copied();
            let place = match expected {
                Some(place) if subjects.is(series[place].0, value) => place,
                _ => {
                    let key = match subjects.key(db, snapshot, value) {
                        Ok(key) => key,
                        Err(error) => {
                            result = Err(error);
                            return;
                        }
                    };
                    *places.entry(key).or_insert_with(|| {
                        series.push((key, Sum::default()));
                        series.len() - 1
                    })
                }
            };
            match order.get_mut(at) {
                Some(known) => *known = place,
                None => order.push(place),
            }
            at += 1;
            series[place].1.add(value.number);
        });
        result
    }

    /// Writes what was summed up into the row of its minute, and turns around the hours that are over.
    pub(super) fn flush(&mut self, db: &Transaction<'_>, at_ms: u64) -> anyhow::Result<()> {
        const KNOWN: &str = "SELECT data FROM minutes WHERE minute = ?";
        const PUT: &str = "INSERT OR REPLACE INTO minutes (minute, data) VALUES (?, ?)";
        let minute = (at_ms / 60_000).cast_signed();
        let mut sums: Vec<(Key, Sum)> = Vec::with_capacity(self.series.len());
        for (key, sum) in &mut self.series {
            let sum = std::mem::take(sum);
            if sum.count() > 0 {
                sums.push((*key, sum));
            }
        }
        sums.sort_unstable_by_key(|(key, _)| *key);
        let known: Option<Vec<u8>> = db.query_row(KNOWN, [minute], |row| row.get(0)).optional()?;
        if let Some(known) = known {
            sums = minute::join(minute::unpack(&known)?, sums);
        }
        if !sums.is_empty() {
            db.execute(PUT, params![minute, minute::pack(&sums)?])?;
        }
        turn_hours(db, minute / 60)
    }
}

/// Turns around each hour but the running one.
fn turn_hours(db: &Transaction<'_>, running: i64) -> anyhow::Result<()> {
    const OTHERS: &str = "SELECT minute FROM minutes WHERE minute NOT BETWEEN ? AND ?";
    let mut others = db.prepare(OTHERS)?;
    let others = others.query_map([running * 60, running * 60 + 59], |row| row.get::<_, i64>(0))?;
    let hours: BTreeSet<i64> =
        others.map(|minute| minute.map(|minute| minute / 60)).collect::<Result<_, _>>()?;
    for hour in hours {
        turn(db, hour)?;
    }
    Ok(())
}

fn turn(db: &Transaction<'_>, hour: i64) -> anyhow::Result<()> {
    const MINUTES: &str = "SELECT minute, data FROM minutes WHERE minute BETWEEN ? AND ?";
    const PUT: &str = "INSERT OR REPLACE INTO hours (metric, hour, data) VALUES (?, ?, ?)";
    const OVER: &str = "DELETE FROM minutes WHERE minute BETWEEN ? AND ?";
    let span = [hour * 60, hour * 60 + 59];
    let mut metrics: HashMap<u32, Hour> = HashMap::new();
    let mut rows = db.prepare(MINUTES)?;
    let mut rows = rows.query(span)?;
    while let Some(row) = rows.next()? {
        let (minute, data): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        let at = usize::try_from(minute - span[0])?;
        for (key, sum) in minute::unpack(&data)? {
            metrics.entry(key.metric).or_default().put(key.subject, at, &sum);
        }
    }
    for (metric, mut found) in metrics {
        if let Some(known) = hour_of(db, metric, hour)? {
            found.join(hour::unpack(&known)?);
        }
        db.execute(PUT, params![metric, hour, hour::pack(&found)?])?;
    }
    db.execute(OVER, span)?;
    Ok(())
}

fn hour_of(db: &Connection, metric: u32, hour: i64) -> rusqlite::Result<Option<Vec<u8>>> {
    const ONE: &str = "SELECT data FROM hours WHERE metric = ? AND hour = ?";
    db.query_row(ONE, params![metric, hour], |row| row.get(0)).optional()
}

/// The numbers that the file gives to metrics and subjects.
#[derive(Default)]
struct Subjects {
    metrics: HashMap<&'static str, u32>,
    /// By subject and label; with the rank and name that the file knows.
    numbers: HashMap<(String, String), (u32, usize)>,
    /// What a number stands for.
    names: HashMap<Key, (&'static str, String, String, usize)>,
}

impl Subjects {
    /// Whether a series is that of a value.
    fn is(&self, key: Key, value: &Value<'_>) -> bool {
        self.names.get(&key).is_some_and(|(metric, subject, label, rank)| {
            std::ptr::eq(*metric, value.metric)
                && subject == value.subject
                && label == value.label
                && *rank == value.rank
        })
    }

    /// The numbers for a value; new ones where there are none.
    fn key(
        &mut self,
        db: &Transaction<'_>,
        snapshot: &Snapshot,
        value: &Value<'_>,
    ) -> rusqlite::Result<Key> {
        let metric = if let Some(metric) = self.metrics.get(value.metric) {
            *metric
        } else {
            const NEW: &str = "INSERT OR IGNORE INTO names (name) VALUES (?)";
            const ONE: &str = "SELECT id FROM names WHERE name = ?";
            db.execute(NEW, [value.metric])?;
            let metric = db.query_row(ONE, [value.metric], |row| row.get(0))?;
            self.metrics.insert(value.metric, metric);
            metric
        };
        let both = (value.subject.to_string(), value.label.to_string());
        let subject = match self.numbers.get(&both) {
            Some((subject, rank)) if *rank == value.rank => *subject,
            _ => {
                const NEW: &str = "INSERT INTO subjects (subject, label, name, rank)
                     VALUES (?, ?, ?, ?) ON CONFLICT (subject, label)
                     DO UPDATE SET name = excluded.name, rank = excluded.rank";
                const ONE: &str = "SELECT id FROM subjects WHERE subject = ? AND label = ?";
                let name = values::name(snapshot, value.rank);
                let rank = i64::try_from(value.rank).unwrap_or(i64::MAX);
                db.execute(NEW, params![value.subject, value.label, name, rank])?;
                let subject = db.query_row(ONE, [value.subject, value.label], |row| row.get(0))?;
                self.numbers.insert(both, (subject, value.rank));
                subject
            }
        };
        let key = Key { metric, subject };
        let (subject, label) = (value.subject.to_string(), value.label.to_string());
        self.names.insert(key, (value.metric, subject, label, value.rank));
        Ok(key)
    }
}

#[cfg(test)]
mod tests;

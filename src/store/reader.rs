//! Looking into the past: of a daemon's store while it is written, and of recordings.
//!
//! A place in time is found by the times beside the chunks; then one chunk is opened, and kept open
//! for the next step. The clock may have been set back: chunks can overlap, each of them runs forward
//! and spans less than a minute.

mod metric;
mod past;

use std::path::Path;

use anyhow::Context as _;
use probes::history::{History, TRACKED};
use probes::past::Span;
use probes::snapshot::Snapshot;
use rusqlite::Connection;

use super::chunk::{self, Chunk, Hidden, times::Tick};
use super::minute::{Tail, unsigned};
use super::{file, open, values};

/// A snapshot as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// When it was taken, milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// Its number in the daemon that kept it.
    pub(crate) number: u64,
    /// The snapshot as the sampler encoded it.
    pub(crate) bytes: Vec<u8>,
}

/// A file that is read.
pub(crate) struct Reader {
    db: Connection,
    /// The chunk last looked into.
    open: Option<(i64, Chunk)>,
    /// The one last looked through for values alone.
    values: Option<(i64, Chunk)>,
    tail: Tail,
}

/// Where a snapshot stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    tick: Tick,
    row: Row,
}

#[derive(Clone, Copy, Debug)]
enum Row {
    Chunk { id: i64, index: usize },
    Tail { id: i64 },
}

impl Reader {
    /// Opens a store or a recording to read.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        anyhow::ensure!(
            path.is_file(),
            "cannot read {}: there is no such file\n  help: infertop daemon keeps one, infertop \
             record makes one",
            path.display()
        );
        let db = open::open_to_read(path).map_err(|unusable| {
            let (why, help) = unusable.words(path);
            anyhow::anyhow!("{why}\n  help: {help}")
        })?;
        Ok(Self { db, open: None, values: None, tail: Tail::default() })
    }

    /// The stretch from the oldest snapshot to the one written last.
    pub(crate) fn span(&self) -> anyhow::Result<Option<Span>> {
        Ok(file::span(&self.db)?)
    }

    /// The newest snapshot that is not younger than this, or else the oldest.
    pub(crate) fn at(&mut self, at_ms: u64) -> anyhow::Result<Option<Stored>> {
        self.one(|reader| match reader.last_until(at_ms)? {
            Some(place) => Ok(Some(place)),
            None => reader.first_from(0),
        })
    }

    /// The snapshot after this time, or the one before it.
    pub(crate) fn neighbour(
        &mut self,
        at_ms: u64,
        forward: bool,
    ) -> anyhow::Result<Option<Stored>> {
        self.one(|reader| match (forward, at_ms) {
            (true, _) => reader.first_from(at_ms.saturating_add(1)),
            (false, 0) => Ok(None),
            (false, _) => reader.last_until(at_ms - 1),
        })
    }

    /// What so many snapshots up to this time say.
    pub(crate) fn window(&mut self, until_ms: u64, ticks: usize) -> anyhow::Result<History> {
        let mut history = History::new(ticks.max(1));
        let from_ms = self.snapshot_in(|reader| reader.begin_of(until_ms, ticks))?;
        if let Some(from_ms) = from_ms {
            self.values(TRACKED, from_ms, until_ms, |_, snapshot| history.push(snapshot))?;
        }
        Ok(history)
    }

    /// Every snapshot of a stretch, oldest first.
    pub(crate) fn frames(
        &mut self,
        from_ms: u64,
        to_ms: u64,
        mut look: impl FnMut(Stored) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.each(from_ms, to_ms, |reader, place| look(reader.read(place)?))
    }

    /// Every snapshot of a stretch, as far as these metrics are picked from it.
    fn values(
        &mut self,
        metrics: &[&str],
        from_ms: u64,
        to_ms: u64,
        mut look: impl FnMut(u64, &Snapshot),
    ) -> anyhow::Result<()> {
        let hidden = values::unused(metrics);
        self.each(from_ms, to_ms, |reader, place| {
            let bytes = match place.row {
                Row::Tail { id } => reader.tail.frame(&reader.db, id)?,
                Row::Chunk { id, index } => {
                    chunk(&reader.db, &mut reader.values, id, &hidden)?.frame(index)?
                }
            };
            let snapshot = Snapshot::decode(&bytes).context("cannot read a stored snapshot")?;
            look(place.tick.at_ms, &snapshot);
            Ok(())
        })
    }

    /// Goes through the places of a stretch, oldest first.
    fn each(
        &mut self,
        from_ms: u64,
        to_ms: u64,
        mut look: impl FnMut(&mut Self, Place) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut next_ms = Some(from_ms);
        // A step at a time, so that the writer's log is not held for the whole stretch.
        while let Some(from_ms) = next_ms.filter(|from_ms| *from_ms <= to_ms) {
            next_ms = self.snapshot_in(|reader| {
                let Some(first) = reader.first_from(from_ms)? else { return Ok(None) };
                let until_ms = first.tick.at_ms.saturating_add(chunk::SPAN_MS - 1).min(to_ms);
                for place in reader.places(first.tick.at_ms, until_ms)? {
                    look(reader, place)?;
                }
                Ok(until_ms.checked_add(1))
            })?;
        }
        Ok(())
    }

    fn one(
        &mut self,
        find: impl Fn(&mut Self) -> anyhow::Result<Option<Place>>,
    ) -> anyhow::Result<Option<Stored>> {
        self.snapshot_in(|reader| find(reader)?.map(|place| reader.read(place)).transpose())
    }

    /// Does something on one state of the file: between two looks a minute may move into its chunk.
    fn snapshot_in<T>(
        &mut self,
        look: impl FnOnce(&mut Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.db.execute_batch("BEGIN")?;
        let result = look(self);
        self.db.execute_batch("COMMIT")?;
        result
    }

    fn read(&mut self, place: Place) -> anyhow::Result<Stored> {
        let Place { tick: Tick { at_ms, number }, row } = place;
        let bytes = match row {
            Row::Tail { id } => self.tail.frame(&self.db, id)?,
            Row::Chunk { id, index } => chunk(&self.db, &mut self.open, id, &[])?.frame(index)?,
        };
        Ok(Stored { at_ms, number, bytes })
    }

    /// The newest snapshot up to this time.
    fn last_until(&mut self, at_ms: u64) -> anyhow::Result<Option<Place>> {
        const NEAREST: &str = "SELECT max(from_ms) FROM chunks WHERE from_ms <= ?";
        let at = signed(at_ms);
        let nearest: Option<i64> = self.db.query_row(NEAREST, [at], |row| row.get(0))?;
        let mut places = self.tail_places("at_ms <= ? ORDER BY at_ms DESC, id DESC LIMIT 1", at)?;
        if let Some(nearest) = nearest {
            places.extend(self.chunk_places(nearest - SPAN, at, |tick| tick.at_ms <= at_ms)?);
        }
        // Of two of the same time the one written last, which stands in the younger row.
        Ok(places.into_iter().max_by_key(|place| (place.tick.at_ms, place.order())))
    }

    /// The oldest snapshot from this time on.
    fn first_from(&mut self, at_ms: u64) -> anyhow::Result<Option<Place>> {
        const NEXT: &str = "SELECT min(from_ms) FROM chunks WHERE from_ms > ?";
        let at = signed(at_ms);
        let next: Option<i64> = self.db.query_row(NEXT, [at], |row| row.get(0))?;
        let mut places = self.tail_places("at_ms >= ? ORDER BY at_ms, id DESC LIMIT 1", at)?;
        let until = next.unwrap_or(at);
        places.extend(self.chunk_places(at - SPAN, until, |tick| tick.at_ms >= at_ms)?);
        let order = |place: &Place| (place.tick.at_ms, std::cmp::Reverse(place.order()));
        Ok(places.into_iter().min_by_key(order))
    }

    /// All snapshots of a stretch, oldest first.
    fn places(&mut self, from_ms: u64, to_ms: u64) -> anyhow::Result<Vec<Place>> {
        let inside = |tick: &Tick| (from_ms..=to_ms).contains(&tick.at_ms);
        let mut places = self.tail_places("at_ms >= ?", signed(from_ms))?;
        places.retain(|place| inside(&place.tick));
        places.extend(self.chunk_places(signed(from_ms) - SPAN, signed(to_ms), inside)?);
        places.sort_by_key(|place| (place.tick.at_ms, place.order()));
        Ok(places)
    }

    fn begin_of(&mut self, until_ms: u64, ticks: usize) -> anyhow::Result<Option<u64>> {
        let mut left = ticks;
        let mut until = until_ms;
        let mut begin = None;
        while left > 0 {
            let Some(last) = self.last_until(until)? else { break };
            let from = last.tick.at_ms.saturating_sub(chunk::SPAN_MS - 1);
            let places = self.places(from, last.tick.at_ms)?;
            let take = left.min(places.len());
            let Some(first) = take.checked_sub(1).and_then(|back| places.iter().rev().nth(back))
            else {
                break;
            };
            begin = Some(first.tick.at_ms);
            left -= take;
            let Some(before) = first.tick.at_ms.checked_sub(1) else { break };
            until = before;
        }
        Ok(begin)
    }

    fn tail_places(&self, which: &str, at: i64) -> anyhow::Result<Vec<Place>> {
        let mut rows =
            self.db.prepare(&format!("SELECT id, at_ms, number FROM tail WHERE {which}"))?;
        let places = rows.query_map([at], |row| {
            let tick = Tick { at_ms: unsigned(row.get(1)?), number: unsigned(row.get(2)?) };
            Ok(Place { tick, row: Row::Tail { id: row.get(0)? } })
        })?;
        Ok(places.collect::<Result<_, _>>()?)
    }

    /// Places in the chunks that begin in a stretch.
    fn chunk_places(
        &self,
        from: i64,
        to: i64,
        wanted: impl Fn(&Tick) -> bool,
    ) -> anyhow::Result<Vec<Place>> {
        const BEGUN: &str = "SELECT id, frames FROM chunks WHERE from_ms BETWEEN ? AND ?";
        let mut rows = self.db.prepare(BEGUN)?;
        let mut rows = rows.query([from, to])?;
        let mut places = Vec::new();
        while let Some(row) = rows.next()? {
            let (id, frames): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
            let ticks = chunk::times::decode(&frames)?;
            let ticks = ticks.into_iter().enumerate().filter(|(_, tick)| wanted(tick));
            places.extend(ticks.map(|(index, tick)| Place { tick, row: Row::Chunk { id, index } }));
        }
        Ok(places)
    }
}

/// The chunk with this number, opened where it is not.
fn chunk<'a>(
    db: &Connection,
    open: &'a mut Option<(i64, Chunk)>,
    id: i64,
    hidden: &Hidden,
) -> anyhow::Result<&'a mut Chunk> {
    const ONE: &str = "SELECT data FROM chunks WHERE id = ?";
    let known = open.take().filter(|(known, chunk)| *known == id && chunk.hides(hidden));
    let opened = if let Some(known) = known {
        known
    } else {
        let data: Vec<u8> = db.query_row(ONE, [id], |row| row.get(0))?;
        let chunk = Chunk::open(data, hidden);
        (id, chunk.with_context(|| format!("chunk {id} of the store cannot be read"))?)
    };
    Ok(&mut open.insert(opened).1)
}

const SPAN: i64 = chunk::SPAN_MS.cast_signed();

impl Place {
    /// What was written later counts more.
    fn order(&self) -> (bool, i64, usize) {
        match self.row {
            Row::Chunk { id, index } => (false, id, index),
            Row::Tail { id } => (true, id, 0),
        }
    }
}

/// A time as SQLite takes it.
fn signed(at_ms: u64) -> i64 {
    i64::try_from(at_ms).unwrap_or(i64::MAX)
}

//! The running minute: a row each snapshot, small because the minute's first one is its dictionary;
//! then all of them moved into a chunk.

use anyhow::Context as _;
use rusqlite::{Connection, Transaction, params};
use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::EncoderDictionary;

use super::chunk::{self, times::Tick};
use crate::sampler::MOST_FRAME_BYTES;

const LEVEL: i32 = 3;

/// What is known of the rows of the running minute.
#[derive(Default)]
pub(super) struct Minute {
    begun: Option<Begun>,
    last_row: i64,
}

struct Begun {
    row: i64,
    dictionary: EncoderDictionary<'static>,
    last_ms: u64,
    ends_ms: u64,
    frames: usize,
}

impl Minute {
    /// Whether a snapshot of this time belongs to another chunk: in the next minute, or before the
    /// last one because the clock was set.
    pub(super) fn is_over(&self, at_ms: u64) -> bool {
        self.begun.as_ref().is_some_and(|begun| {
            at_ms >= begun.ends_ms || at_ms < begun.last_ms || begun.frames >= chunk::MOST_FRAMES
        })
    }

    /// Adds a row.
    pub(super) fn add(
        &mut self,
        db: &Transaction<'_>,
        tick: Tick,
        bytes: &[u8],
    ) -> anyhow::Result<()> {
        const ADD: &str = "INSERT INTO tail (id, at_ms, number, dictionary, data)
             VALUES (?, ?, ?, ?, ?)";
        let mut packer = match &self.begun {
            Some(begun) => Compressor::with_prepared_dictionary(&begun.dictionary)?,
            None => Compressor::new(LEVEL)?,
        };
        packer.include_checksum(true)?;
        let data = packer.compress(bytes)?;
        drop(packer);
        // A number is never given twice, for those who read and keep a dictionary by its row.
        let row = (self.last_row + 1).max(tick.at_ms.cast_signed());
        let dictionary = self.begun.as_ref().map(|begun| begun.row);
        let (at_ms, number) = (tick.at_ms.cast_signed(), tick.number.cast_signed());
        db.execute(ADD, params![row, at_ms, number, dictionary, data])?;
        self.last_row = row;
        if let Some(begun) = &mut self.begun {
            begun.last_ms = tick.at_ms;
            begun.frames += 1;
        } else {
            self.begun = Some(Begun {
                row,
                dictionary: EncoderDictionary::try_copy(bytes, LEVEL)?,
                last_ms: tick.at_ms,
                ends_ms: (tick.at_ms / chunk::SPAN_MS + 1) * chunk::SPAN_MS,
                frames: 1,
            });
        }
        Ok(())
    }

    /// Moves all rows into a chunk and begins anew. A row that cannot be read is left out. The last
    /// snapshot of the chunk, if there is one.
    pub(super) fn seal(&mut self, db: &Transaction<'_>) -> anyhow::Result<Option<Tick>> {
        self.begun = None;
        let mut rows = rows(db)?;
        let Some((row, _)) = rows.last() else { return Ok(None) };
        self.last_row = self.last_row.max(*row);
        let mut tail = Tail::default();
        let whole = chunk::pack(rows.len(), |index| tail.frame(db, rows[index].0));
        let data = if let Ok(data) = whole {
            data
        } else {
            rows.retain(|(row, _)| tail.frame(db, *row).is_ok());
            chunk::pack(rows.len(), |index| tail.frame(db, rows[index].0))?
        };
        let ticks: Vec<Tick> = rows.iter().map(|(_, tick)| *tick).collect();
        add_chunk(db, &ticks, &data)?;
        db.execute("DELETE FROM tail", ())?;
        Ok(ticks.last().copied())
    }
}

fn add_chunk(db: &Transaction<'_>, ticks: &[Tick], data: &[u8]) -> rusqlite::Result<()> {
    const ADD: &str = "INSERT INTO chunks (from_ms, to_ms, frames, data) VALUES (?, ?, ?, ?)";
    let (Some(first), Some(last)) = (ticks.first(), ticks.last()) else { return Ok(()) };
    let (from_ms, to_ms) = (first.at_ms.cast_signed(), last.at_ms.cast_signed());
    db.execute(ADD, params![from_ms, to_ms, chunk::times::encode(ticks), data]).map(|_| ())
}

/// The rows of the running minute, in order.
pub(super) fn rows(db: &Connection) -> rusqlite::Result<Vec<(i64, Tick)>> {
    let mut rows = db.prepare("SELECT id, at_ms, number FROM tail ORDER BY id")?;
    let rows = rows.query_map((), |row| {
        let tick = Tick { at_ms: unsigned(row.get(1)?), number: unsigned(row.get(2)?) };
        Ok((row.get(0)?, tick))
    })?;
    rows.collect()
}

/// Reads rows of a minute; keeps the dictionary, which many share.
#[derive(Default)]
pub(super) struct Tail {
    dictionary: Option<(i64, Vec<u8>)>,
}

impl Tail {
    /// The snapshot in this row.
    pub(super) fn frame(&mut self, db: &Connection, row: i64) -> anyhow::Result<Vec<u8>> {
        let (dictionary, data) = read(db, row)?;
        let Some(dictionary) = dictionary else { return unpack(&[], &data) };
        match &self.dictionary {
            Some((known, bytes)) if *known == dictionary => unpack(bytes, &data),
            _ => {
                let bytes = unpack(&[], &read(db, dictionary)?.1)?;
                let frame = unpack(&bytes, &data);
                self.dictionary = Some((dictionary, bytes));
                frame
            }
        }
    }
}

fn read(db: &Connection, row: i64) -> anyhow::Result<(Option<i64>, Vec<u8>)> {
    const ONE: &str = "SELECT dictionary, data FROM tail WHERE id = ?";
    db.query_row(ONE, [row], |row| Ok((row.get(0)?, row.get(1)?)))
        .with_context(|| format!("cannot read row {row} of the running minute"))
}

fn unpack(dictionary: &[u8], data: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut unpacker = Decompressor::with_dictionary(dictionary)?;
    unpacker.decompress(data, MOST_FRAME_BYTES).context("cannot unpack a snapshot")
}

/// SQLite has no unsigned numbers; a time before 1970 is none of ours.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

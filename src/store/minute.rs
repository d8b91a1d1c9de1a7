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
        let row = |dictionary: Option<i64>, data: Vec<u8>| -> rusqlite::Result<i64> {
            const ADD: &str =
                "INSERT INTO tail (at_ms, number, dictionary, data) VALUES (?, ?, ?, ?)";
            let (at_ms, number) = (tick.at_ms.cast_signed(), tick.number.cast_signed());
            db.execute(ADD, params![at_ms, number, dictionary, data])?;
            Ok(db.last_insert_rowid())
        };
        match &mut self.begun {
            Some(begun) => {
                let mut packer = Compressor::with_prepared_dictionary(&begun.dictionary)?;
                packer.include_checksum(true)?;
                row(Some(begun.row), packer.compress(bytes)?)?;
                begun.last_ms = tick.at_ms;
                begun.frames += 1;
            }
            None => {
                let mut packer = Compressor::new(LEVEL)?;
                packer.include_checksum(true)?;
                self.begun = Some(Begun {
                    row: row(None, packer.compress(bytes)?)?,
                    dictionary: EncoderDictionary::try_copy(bytes, LEVEL)?,
                    last_ms: tick.at_ms,
                    ends_ms: (tick.at_ms / chunk::SPAN_MS + 1) * chunk::SPAN_MS,
                    frames: 1,
                });
            }
        }
        Ok(())
    }

    /// Moves all rows into a chunk and begins anew. A row that cannot be read is left out.
    pub(super) fn seal(&mut self, db: &Transaction<'_>) -> anyhow::Result<()> {
        self.begun = None;
        let mut rows = db.prepare("SELECT id, at_ms, number FROM tail ORDER BY id")?;
        let rows = rows.query_map((), |row| {
            let tick = Tick { at_ms: unsigned(row.get(1)?), number: unsigned(row.get(2)?) };
            Ok((row.get::<_, i64>(0)?, tick))
        })?;
        let mut rows: Vec<(i64, Tick)> = rows.collect::<Result<_, _>>()?;
        if !rows.is_empty() {
            let mut tail = Tail::default();
            let whole = chunk::pack(rows.len(), |index| tail.frame(db, rows[index].0));
            let data = if let Ok(data) = whole {
                data
            } else {
                rows.retain(|(id, _)| tail.frame(db, *id).is_ok());
                chunk::pack(rows.len(), |index| tail.frame(db, rows[index].0))?
            };
            add_chunk(db, &rows, data)?;
        }
        db.execute("DELETE FROM tail", ())?;
        Ok(())
    }
}

fn add_chunk(db: &Transaction<'_>, rows: &[(i64, Tick)], data: Vec<u8>) -> rusqlite::Result<()> {
    const ADD: &str = "INSERT INTO chunks (from_ms, to_ms, frames, data) VALUES (?, ?, ?, ?)";
    let (Some((_, first)), Some((_, last))) = (rows.first(), rows.last()) else { return Ok(()) };
    let (from_ms, to_ms) = (first.at_ms.cast_signed(), last.at_ms.cast_signed());
    let ticks: Vec<Tick> = rows.iter().map(|(_, tick)| *tick).collect();
    db.execute(ADD, params![from_ms, to_ms, chunk::times::encode(&ticks), data]).map(|_| ())
}

/// Reads rows of a minute; keeps the dictionary, which many share.
#[derive(Default)]
pub(super) struct Tail {
    dictionary: Option<(i64, Vec<u8>)>,
}

impl Tail {
    /// The snapshot in this row.
    pub(super) fn frame(&mut self, db: &Connection, id: i64) -> anyhow::Result<Vec<u8>> {
        let (dictionary, data) = row(db, id)?;
        let Some(dictionary) = dictionary else { return unpack(&[], &data) };
        match &self.dictionary {
            Some((known, bytes)) if *known == dictionary => unpack(bytes, &data),
            _ => {
                let bytes = unpack(&[], &row(db, dictionary)?.1)?;
                let frame = unpack(&bytes, &data);
                self.dictionary = Some((dictionary, bytes));
                frame
            }
        }
    }
}

fn row(db: &Connection, id: i64) -> anyhow::Result<(Option<i64>, Vec<u8>)> {
    const ONE: &str = "SELECT dictionary, data FROM tail WHERE id = ?";
    db.query_row(ONE, [id], |row| Ok((row.get(0)?, row.get(1)?)))
        .with_context(|| format!("cannot read row {id} of the running minute"))
}

fn unpack(dictionary: &[u8], data: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut unpacker = Decompressor::with_dictionary(dictionary)?;
    unpacker.decompress(data, MOST_FRAME_BYTES).context("cannot unpack a snapshot")
}

/// SQLite has no unsigned numbers; a time before 1970 is none of ours.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

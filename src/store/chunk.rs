//! The snapshots of a minute as one blob. The first byte says how:
//!
//! | byte | what follows |
//! |---:|---|
//! | 0 | zstd of the snapshots one after the other, each after its length (u32, little endian) |
//! | 1 | their values in columns, see [`columns`] and [`sections`] |
//!
//! Columns are a third of what plain zstd makes at its highest level, for a fraction of the time. They
//! are tried first and unpacked at once: where a single byte of a snapshot does not come back (no
//! encoder of ours writes such), the chunk is plain. A chunk tells its own layout, so that snapshots
//! of any version, and what no version knows yet, are packed alike.
//!
//! Numbers and times of the snapshots stand beside the blob, see [`times`], so that a place in time
//! is found without opening it.

mod columns;
mod decimal;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod msgpack;
mod packer;
mod plain;
mod sections;
pub(super) mod times;
mod tree;
mod unpacker;
mod varint;

use anyhow::Context as _;

use packer::Packer;
use plain::Plain;
use unpacker::Unpacker;

const PLAIN: u8 = 0;
const COLUMNS: u8 = 1;

/// What is left out where not everything is wanted: keys, each with how deep it stands (1: a field of
/// the snapshot; 3: a field of a GPU).
pub(super) type Hidden = [(usize, &'static str)];

/// Snapshots in a chunk at most: what lies before the one that is sought is unpacked on the way.
pub(super) const MOST_FRAMES: usize = 60;
/// A chunk ends with its minute of the wall clock.
pub(super) const SPAN_MS: u64 = 60_000;

/// Packs so many snapshots, which are asked for one by one, and once more if need be: all of them at
/// once would take more memory than the rest of the daemon.
pub(super) fn pack(
    frames: usize,
    mut frame: impl FnMut(usize) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<Vec<u8>> {
    if let Some(chunk) = pack_columns(frames, &mut frame)? {
        return Ok(chunk);
    }
    let mut chunk = vec![PLAIN];
    plain::pack(&mut chunk, frames, frame)?;
    Ok(chunk)
}

/// `None`: these cannot be packed so.
fn pack_columns(
    frames: usize,
    mut frame: impl FnMut(usize) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<Option<Vec<u8>>> {
    let mut packer = Packer::new();
    let mut hashes = Vec::with_capacity(frames);
    for index in 0..frames {
        let frame = frame(index)?;
        hashes.push(hash(&frame));
        if packer.add(&frame).is_err() {
            return Ok(None);
        }
    }
    let Ok(columns) = packer.finish() else { return Ok(None) };
    let comes_back = || -> anyhow::Result<bool> {
        let mut unpacker = Unpacker::open(&columns, &[])?;
        for wanted in &hashes {
            if hash(&unpacker.read()?) != *wanted {
                return Ok(false);
            }
        }
        Ok(true)
    };
    if !comes_back().unwrap_or(false) {
        return Ok(None);
    }
    let mut chunk = vec![COLUMNS];
    chunk.extend_from_slice(&columns);
    Ok(Some(chunk))
}

/// Tells two snapshots apart; against mistakes, not against malice.
fn hash(frame: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = frame.as_chunks::<8>();
    let rest = rest.iter().fold(1, |rest, byte| rest << 8 | u64::from(*byte));
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    words
        .chain([rest, frame.len() as u64])
        .fold(ODD, |hash, word| (hash.rotate_left(29) ^ word).wrapping_mul(ODD))
}

/// An opened chunk. Going forward is cheap; going back begins anew.
pub(super) struct Chunk {
    bytes: Vec<u8>,
    hidden: Vec<(usize, &'static str)>,
    frames: Frames,
}

enum Frames {
    Plain(Plain),
    Columns(Box<Unpacker>),
}

impl Chunk {
    /// Opens any bytes. What is hidden is left out of the snapshots, if they are in columns.
    pub(super) fn open(bytes: Vec<u8>, hidden: &Hidden) -> anyhow::Result<Self> {
        let frames = Frames::open(&bytes, hidden)?;
        Ok(Self { bytes, hidden: hidden.to_vec(), frames })
    }

    /// Whether the same is left out.
    pub(super) fn hides(&self, hidden: &Hidden) -> bool {
        self.hidden == hidden
    }

    /// The snapshot at this place.
    pub(super) fn frame(&mut self, index: usize) -> anyhow::Result<Vec<u8>> {
        if index < self.frames.position() {
            self.frames = Frames::open(&self.bytes, &self.hidden)?;
        }
        while self.frames.position() < index {
            match &mut self.frames {
                Frames::Plain(plain) => plain.read().map(|_| ())?,
                Frames::Columns(unpacker) => unpacker.skip()?,
            }
        }
        match &mut self.frames {
            Frames::Plain(plain) => plain.read(),
            Frames::Columns(unpacker) => unpacker.read(),
        }
    }
}

impl Frames {
    fn open(bytes: &[u8], hidden: &Hidden) -> anyhow::Result<Self> {
        let (format, packed) = bytes.split_first().context("a chunk is empty")?;
        match *format {
            PLAIN => Ok(Self::Plain(Plain::open(packed.to_vec())?)),
            COLUMNS => Ok(Self::Columns(Box::new(Unpacker::open(packed, hidden)?))),
            format => anyhow::bail!("a chunk has the unknown format {format}"),
        }
    }

    fn position(&self) -> usize {
        match self {
            Self::Plain(plain) => plain.position(),
            Self::Columns(unpacker) => unpacker.position(),
        }
    }
}

#[cfg(test)]
mod tests;

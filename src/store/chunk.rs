//! The snapshots of a minute as one blob. The first byte says how:
//!
//! | byte | what follows |
//! |---:|---|
//! | 0 | zstd of the snapshots one after the other, each after its length (u32, little endian) |
//!
//! Numbers and times of the snapshots stand beside the blob, see [`times`], so that a place in time
//! is found without opening it.

pub(super) mod times;

use anyhow::Context as _;

use crate::sampler::MOST_FRAME_BYTES;

const PLAIN: u8 = 0;
const LEVEL: i32 = 3;
/// Larger than what a chunk ever holds: a snapshot a quarter of a second of the largest box.
const MOST_BYTES: usize = 512 << 20;

/// Snapshots in a chunk at most: what lies before the one that is sought is unpacked on the way.
pub(super) const MOST_FRAMES: usize = 60;
/// A chunk ends with its minute of the wall clock.
pub(super) const SPAN_MS: u64 = 60_000;

/// Packs snapshots.
pub(super) fn encode(frames: &[Vec<u8>]) -> anyhow::Result<Vec<u8>> {
    let mut plain = Vec::new();
    for frame in frames {
        plain.extend(u32::try_from(frame.len())?.to_le_bytes());
        plain.extend_from_slice(frame);
    }
    let mut chunk = vec![PLAIN];
    chunk.append(&mut zstd::bulk::compress(&plain, LEVEL).context("cannot compress a chunk")?);
    Ok(chunk)
}

/// An opened chunk.
pub(super) struct Chunk {
    frames: Vec<Vec<u8>>,
}

impl Chunk {
    /// Opens any bytes.
    pub(super) fn open(bytes: &[u8]) -> anyhow::Result<Self> {
        let (format, packed) = bytes.split_first().context("a chunk is empty")?;
        anyhow::ensure!(*format == PLAIN, "a chunk has the unknown format {format}");
        let plain = zstd::bulk::decompress(packed, MOST_BYTES).context("cannot unpack a chunk")?;
        let mut rest = plain.as_slice();
        let mut frames = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length) as usize;
            anyhow::ensure!(
                length <= MOST_FRAME_BYTES && length <= after.len(),
                "a chunk ends within a snapshot"
            );
            let (frame, after) = after.split_at(length);
            frames.push(frame.to_vec());
            rest = after;
        }
        Ok(Self { frames })
    }

    /// The snapshot at this place.
    pub(super) fn frame(&mut self, index: usize) -> anyhow::Result<Vec<u8>> {
        self.frames.get(index).cloned().with_context(|| format!("a chunk has no snapshot {index}"))
    }
}

//! Snapshots one after the other, compressed as one stream.

use std::io::{Cursor, Read as _, Write as _};

use anyhow::Context as _;
use zstd::stream::{read, write};

use crate::sampler::MOST_FRAME_BYTES;

const LEVEL: i32 = 3;
/// Enough to see what is the same in the snapshot before.
const WINDOW_BITS: u32 = 24;

/// Packs snapshots behind what is there.
pub(super) fn pack(
    chunk: &mut Vec<u8>,
    frames: usize,
    mut frame: impl FnMut(usize) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<()> {
    let mut packer = write::Encoder::new(chunk, LEVEL)?;
    packer.include_checksum(true)?;
    packer.window_log(WINDOW_BITS)?;
    for index in 0..frames {
        let frame = frame(index)?;
        packer.write_all(&u32::try_from(frame.len())?.to_le_bytes())?;
        packer.write_all(&frame)?;
    }
    packer.finish()?;
    Ok(())
}

/// A chunk that is unpacked.
pub(super) struct Plain {
    stream: read::Decoder<'static, Cursor<Vec<u8>>>,
    done: usize,
}

impl Plain {
    /// Opens any bytes.
    pub(super) fn open(packed: Vec<u8>) -> anyhow::Result<Self> {
        let mut stream = read::Decoder::with_buffer(Cursor::new(packed))?;
        stream.window_log_max(WINDOW_BITS)?;
        Ok(Self { stream, done: 0 })
    }

    /// How many snapshots were read.
    pub(super) fn position(&self) -> usize {
        self.done
    }

    /// Reads the next snapshot.
    pub(super) fn read(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).context("a chunk ends too early")?;
        let length = u32::from_le_bytes(length) as usize;
        anyhow::ensure!(length <= MOST_FRAME_BYTES, "a chunk has a snapshot too large");
        let mut frame = Vec::new();
        let read = (&mut self.stream).take(length as u64).read_to_end(&mut frame);
        anyhow::ensure!(read.context("cannot unpack a chunk")? == length, "a chunk ends too early");
        self.done += 1;
        Ok(frame)
    }
}

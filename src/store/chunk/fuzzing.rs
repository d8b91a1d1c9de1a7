//! The fuzz target's door to chunks.
//!
//! The first byte says what the others are: a chunk as it lies in the file; the parts of one before
//! they are compressed, because a fuzzer hardly ever writes what a checksum accepts; snapshots that
//! are to be packed.

use super::unpacker::Unpacker;
use super::{COLUMNS, Chunk, PLAIN, hash, pack};

/// Snapshots that are looked at.
const MOST: usize = 8;

/// Any bytes are snapshots or an error. What was unpacked can be packed and comes back.
pub(crate) fn store_chunk(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 3 {
        0 => {
            let Ok(mut chunk) = Chunk::open(bytes.to_vec(), &[]) else { return };
            let frames = (0..MOST).map_while(|index| chunk.frame(index).ok());
            comes_back(&frames.collect::<Vec<_>>());
        }
        1 => {
            let Ok(mut unpacker) = Unpacker::of_parts(bytes, &[(1, "a")]) else { return };
            let mut frames = Vec::new();
            for _ in 0..MOST {
                // A part of each is left out: what is left is a snapshot all the same.
                let Ok(frame) = unpacker.read() else { break };
                frames.push(frame);
            }
            comes_back(&frames);
        }
        _ => {
            let mut frames: Vec<Vec<u8>> = Vec::new();
            let mut rest = bytes;
            while let Some((length, after)) = rest.split_first_chunk::<2>() {
                let length = usize::from(u16::from_le_bytes(*length)).min(after.len());
                let (frame, after) = after.split_at(length);
                frames.push(frame.to_vec());
                rest = after;
            }
            frames.truncate(MOST);
            comes_back(&frames);
        }
    }
}

fn comes_back(frames: &[Vec<u8>]) {
    let Ok(chunk) = pack(frames.len(), |index| Ok(frames[index].clone())) else {
        panic!("snapshots cannot be packed")
    };
    assert!(matches!(chunk.first(), Some(&PLAIN | &COLUMNS)));
    let Ok(mut chunk) = Chunk::open(chunk, &[]) else { panic!("its own chunk cannot be opened") };
    for (index, frame) in frames.iter().enumerate() {
        let Ok(back) = chunk.frame(index) else { panic!("snapshot {index} does not come back") };
        assert_eq!(hash(&back), hash(frame), "snapshot {index} comes back as another");
    }
}

/// Snapshots of a small box for the fuzzer to begin with, in each of the three ways:
/// `KEEP_SEEDS=1 cargo test --lib seeds_of_chunks`.
#[cfg(test)]
pub(super) fn keep_seeds(frames: &[Vec<u8>]) -> std::io::Result<()> {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds/store_chunk");
    std::fs::create_dir_all(&folder)?;
    let chunk = pack(frames.len(), |index| Ok(frames[index].clone())).unwrap();
    let mut whole = vec![0];
    whole.extend_from_slice(&chunk);
    std::fs::write(folder.join("columns"), whole)?;
    whole = vec![0, PLAIN];
    super::plain::pack(&mut whole, frames.len(), |index| Ok(frames[index].clone())).unwrap();
    std::fs::write(folder.join("plain"), whole)?;
    let mut packer = super::packer::Packer::new();
    for frame in frames {
        packer.add(frame).unwrap();
    }
    let mut parts = vec![1];
    parts.extend(packer.sections().uncompressed());
    std::fs::write(folder.join("parts"), parts)?;
    let mut snapshots = vec![2];
    for frame in &frames[..2] {
        snapshots.extend(u16::try_from(frame.len()).unwrap().to_le_bytes());
        snapshots.extend_from_slice(frame);
    }
    std::fs::write(folder.join("snapshots"), snapshots)
}

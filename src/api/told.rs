//! One piece of the binary stream of frames: a length of four bytes, little endian, then a
//! MessagePack map with names. The snapshot stands last, so that the bytes that the sampler sent go
//! to every reader as they are.

use serde::{Deserialize, Serialize};

use crate::daemon::hub::Sampling;
use crate::sampler::MOST_FRAME_BYTES;

/// What a reader of frames is told at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Told {
    /// Number of the newest tick; 0 before the first.
    pub(crate) number: u64,
    /// Frames that this reader missed right before this one.
    pub(crate) lost: u64,
    /// How sampling stands.
    pub(crate) sampling: Sampling,
    /// The snapshot as MessagePack; absent where only sampling is told of.
    #[serde(with = "serde_bytes")]
    pub(crate) snapshot: Option<Vec<u8>>,
}

/// Room for what stands around a snapshot.
const MOST_AROUND_BYTES: usize = 1 << 16;

/// MessagePack's mark of bytes whose length takes one byte, and four.
const BIN_8: u8 = 0xc4;
const BIN_32: u8 = 0xc6;

impl Told {
    /// All that stands before the bytes of a snapshot of this length.
    pub(crate) fn head(
        number: u64,
        lost: u64,
        sampling: &Sampling,
        snapshot: Option<usize>,
    ) -> anyhow::Result<Vec<u8>> {
        let sampling = sampling.clone();
        let told = Self { number, lost, sampling, snapshot: snapshot.map(|_| Vec::new()) };
        let mut piece = vec![0; 4];
        rmp_serde::encode::write_named(&mut piece, &told)?;
        let length = snapshot.unwrap_or(0);
        if snapshot.is_some() {
            anyhow::ensure!(piece.ends_with(&[BIN_8, 0]), "the snapshot does not stand last");
            piece.truncate(piece.len() - 2);
            piece.push(BIN_32);
            piece.extend(u32::try_from(length)?.to_be_bytes());
        }
        let rest = u32::try_from(piece.len() - 4 + length)?;
        piece[..4].copy_from_slice(&rest.to_le_bytes());
        Ok(piece)
    }
}

/// Bytes of a stream that have come and are not yet a whole piece.
#[derive(Default)]
pub(crate) struct Pending {
    bytes: Vec<u8>,
}

impl Pending {
    /// Takes what came.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole piece, if it has come.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Told>> {
        let Some(length) = self.bytes.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        anyhow::ensure!(
            length <= MOST_FRAME_BYTES + MOST_AROUND_BYTES,
            "the daemon announced a frame of {length} bytes"
        );
        let Some(piece) = self.bytes.get(4..4 + length) else { return Ok(None) };
        let told = rmp_serde::from_slice(piece)?;
        self.bytes.drain(..4 + length);
        Ok(Some(told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(told: &Told) -> Vec<u8> {
        let length = told.snapshot.as_ref().map(Vec::len);
        let mut bytes = Told::head(told.number, told.lost, &told.sampling, length).unwrap();
        bytes.extend(told.snapshot.iter().flatten());
        bytes
    }

    #[test]
    fn what_is_told_comes_through_in_any_pieces() {
        let ended = Sampling::Ended { since_ms: 5, why: "signal 9".into() };
        let told = [
            Told::default(),
            Told { number: 7, lost: 3, sampling: Sampling::Running, snapshot: Some(vec![9; 300]) },
            Told { number: 8, lost: 0, sampling: ended, snapshot: None },
            Told { number: 9, snapshot: Some(Vec::new()), ..Told::default() },
        ];
        let bytes: Vec<u8> = told.iter().flat_map(piece).collect();
        for size in [1, 2, 3, 7, 100, bytes.len()] {
            let mut pending = Pending::default();
            let mut came = Vec::new();
            for part in bytes.chunks(size) {
                pending.push(part);
                while let Some(told) = pending.next().unwrap() {
                    came.push(told);
                }
            }
            assert_eq!(came, told, "in pieces of {size}");
        }
    }

    #[test]
    fn a_length_beyond_reason_is_refused_before_room_is_made_for_it() {
        let mut pending = Pending::default();
        pending.push(&u32::MAX.to_le_bytes());
        assert!(pending.next().is_err());
    }

    #[test]
    fn what_a_later_version_adds_is_passed_over() {
        #[derive(Serialize)]
        struct Later {
            number: u64,
            weather: &'static str,
            sampling: State,
        }
        #[derive(Serialize)]
        struct State {
            state: &'static str,
            dreams: Vec<u8>,
        }
        let sampling = State { state: "sleeping", dreams: vec![1, 2] };
        let later = Later { number: 4, weather: "fine", sampling };
        let map = rmp_serde::to_vec_named(&later).unwrap();
        let mut pending = Pending::default();
        pending.push(&u32::try_from(map.len()).unwrap().to_le_bytes());
        pending.push(&map);
        let told = pending.next().unwrap().unwrap();
        assert_eq!(told, Told { number: 4, sampling: Sampling::Unknown, ..Told::default() });
    }
}

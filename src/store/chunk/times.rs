//! When the snapshots of a chunk were taken and what their numbers are, as differences: about three
//! bytes a snapshot.

use anyhow::Context as _;

use super::varint::{put, take, unzigzag, zigzag};

/// A place in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Tick {
    /// Milliseconds since 1970.
    pub(in crate::store) at_ms: u64,
    /// Number of the moment.
    pub(in crate::store) number: u64,
}

/// Nobody packs more.
const MOST: usize = 4096;

/// Packs them.
pub(in crate::store) fn encode(ticks: &[Tick]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut before = Tick { at_ms: 0, number: 0 };
    for tick in ticks {
        put(&mut bytes, zigzag(tick.at_ms.wrapping_sub(before.at_ms)));
        put(&mut bytes, zigzag(tick.number.wrapping_sub(before.number)));
        before = *tick;
    }
    bytes
}

/// Opens any bytes.
pub(in crate::store) fn decode(bytes: &[u8]) -> anyhow::Result<Vec<Tick>> {
    let mut rest = bytes;
    let mut ticks = Vec::new();
    let mut last = Tick { at_ms: 0, number: 0 };
    while !rest.is_empty() {
        anyhow::ensure!(ticks.len() < MOST, "a chunk tells of more than {MOST} snapshots");
        let mut next = || take(&mut rest).context("the times of a chunk end within a number");
        let (at, number) = (unzigzag(next()?), unzigzag(next()?));
        last =
            Tick { at_ms: last.at_ms.wrapping_add(at), number: last.number.wrapping_add(number) };
        ticks.push(last);
    }
    Ok(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_gaps_and_steps_back() {
        let ticks = [(1_796_127_901_243, 7), (1_796_127_902_244, 8), (1_700_000_000_000, 1)]
            .map(|(at_ms, number)| Tick { at_ms, number });
        let bytes = encode(&ticks);
        assert_eq!(decode(&bytes).unwrap(), ticks);
        assert!(decode(&bytes[..bytes.len() - 1]).is_err());
        assert!(decode(&[0; 9000]).is_err());
    }
}

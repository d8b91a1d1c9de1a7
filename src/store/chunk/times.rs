//! When the snapshots of a chunk were taken and what their numbers are, as differences: about three
//! bytes a snapshot.

use anyhow::Context as _;

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

/// Small differences, up or down, as small numbers.
pub(super) fn zigzag(difference: u64) -> u64 {
    let signed = difference.cast_signed();
    ((signed << 1) ^ (signed >> 63)).cast_unsigned()
}

pub(super) fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

/// Seven bits a byte, the lowest first.
pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push((number & 0x7f) as u8);
}

pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
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

    #[test]
    fn every_number_survives() {
        for number in [0, 1, 127, 128, u64::MAX, u64::MAX / 2] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(take(&mut bytes.as_slice()), Some(number));
            assert_eq!(unzigzag(zigzag(number)), number);
        }
        assert_eq!(take(&mut [0xff; 12].as_slice()), None);
    }
}

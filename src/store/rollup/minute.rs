//! The roll-ups of one minute, as they wait for their hour.

use anyhow::Context as _;

use super::Key;

/// So many series are believed: 64 GPUs with everything have a tenth of that.
const MOST_BYTES: usize = 16 << 20;
const LEVEL: i32 = 3;
/// Metric, subject, count, and three doubles.
const BYTES: usize = 4 + 4 + 4 + 3 * 8;

/// What the values of a series were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::store) struct Sum {
    count: u32,
    min: f64,
    total: f64,
    max: f64,
}

impl Sum {
    pub(in crate::store) fn add(&mut self, value: f64) {
        self.join(Self { count: 1, min: value, total: value, max: value });
    }

    pub(in crate::store) fn join(&mut self, other: Self) {
        if self.count == 0 || other.count == 0 {
            *self = if self.count == 0 { other } else { *self };
            return;
        }
        self.count = self.count.saturating_add(other.count);
        self.min = self.min.min(other.min);
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    pub(in crate::store) fn count(&self) -> u32 {
        self.count
    }

    /// Minimum, mean and maximum; `None` of no values.
    pub(in crate::store) fn figures(&self) -> Option<[f64; 3]> {
        (self.count > 0).then(|| [self.min, self.total / f64::from(self.count), self.max])
    }
}

/// Two accounts of one minute as one; both sorted.
pub(super) fn join(known: Vec<(Key, Sum)>, more: Vec<(Key, Sum)>) -> Vec<(Key, Sum)> {
    let mut all = known;
    all.extend(more);
    all.sort_by_key(|(key, _)| *key);
    let mut joined: Vec<(Key, Sum)> = Vec::with_capacity(all.len());
    for (key, sum) in all {
        match joined.last_mut() {
            Some((last, into)) if *last == key => into.join(sum),
            _ => joined.push((key, sum)),
        }
    }
    joined
}

/// Packs a minute. Column by column, since what is alike compresses.
pub(super) fn pack(sums: &[(Key, Sum)]) -> anyhow::Result<Vec<u8>> {
    let mut plain = Vec::with_capacity(sums.len() * BYTES);
    for (key, _) in sums {
        plain.extend_from_slice(&key.metric.to_le_bytes());
    }
    for (key, _) in sums {
        plain.extend_from_slice(&key.subject.to_le_bytes());
    }
    for (_, sum) in sums {
        plain.extend_from_slice(&sum.count.to_le_bytes());
    }
    let figures: [fn(&Sum) -> f64; 3] = [|sum| sum.min, |sum| sum.total, |sum| sum.max];
    for figure in figures {
        for (_, sum) in sums {
            plain.extend_from_slice(&figure(sum).to_le_bytes());
        }
    }
    zstd::bulk::compress(&plain, LEVEL).context("cannot compress a minute")
}

/// Opens any bytes.
pub(in crate::store) fn unpack(data: &[u8]) -> anyhow::Result<Vec<(Key, Sum)>> {
    let plain = zstd::bulk::decompress(data, MOST_BYTES).context("cannot unpack a minute")?;
    let length = plain.len() / BYTES;
    anyhow::ensure!(plain.len() == length * BYTES, "a minute ends within a series");
    let word = |column: usize, at: usize| {
        let begin = (column * length + at) * 4;
        plain
            .get(begin..begin + 4)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u32::from_le_bytes)
    };
    let double = |column: usize, at: usize| {
        let begin = 12 * length + (column * length + at) * 8;
        let bytes = plain.get(begin..begin + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(f64::NAN, f64::from_le_bytes)
    };
    let series = |at| {
        let key = Key { metric: word(0, at), subject: word(1, at) };
        let sum = Sum {
            count: word(2, at),
            min: double(0, at),
            total: double(1, at),
            max: double(2, at),
        };
        (key, sum)
    };
    Ok((0..length).map(series).collect())
}

//! The roll-ups of one metric in one hour: of each subject, minimum, mean and maximum of each minute.
//!
//! 32-bit floats, each told against the one before by the bits that differ, byte by byte, because the
//! highest bytes hardly change; then compressed.

use std::collections::BTreeMap;

use anyhow::Context as _;

use super::MINUTES;
use super::minute::Sum;

/// A subject has 4 bytes for its number, 8 for the minutes that it has, and 12 a minute.
const HEAD: usize = 4 + 8;
const FIGURES: usize = 3 * MINUTES;
const BYTES: usize = HEAD + 4 * FIGURES;
/// So many subjects of one metric are believed: 64 GPUs with 18 links each have a sixteenth of that.
const MOST_BYTES: usize = BYTES << 14;
const LEVEL: i32 = 6;

/// Minimum, mean and maximum.
pub(in crate::store) type Figures = [f32; 3];

/// One metric in one hour, by the number of the subject.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::store) struct Hour(pub(in crate::store) BTreeMap<u32, [Option<Figures>; MINUTES]>);

impl Hour {
    /// Puts a minute in its place.
    #[expect(clippy::cast_possible_truncation, reason = "24 bits are enough for a chart")]
    pub(super) fn put(&mut self, subject: u32, minute: usize, sum: &Sum) {
        let figures = sum.figures().map(|figures| figures.map(|figure| figure as f32));
        if let Some(place) = self.0.entry(subject).or_insert([None; MINUTES]).get_mut(minute) {
            *place = figures;
        }
    }

    /// Takes in what was known of this hour before. Where both know a minute, it took both.
    pub(super) fn join(&mut self, known: Self) {
        for (subject, minutes) in known.0 {
            let own = self.0.entry(subject).or_insert([None; MINUTES]);
            for (own, known) in own.iter_mut().zip(minutes) {
                *own = match (*own, known) {
                    (Some([min, mean, max]), Some(other)) => {
                        Some([min.min(other[0]), f32::midpoint(mean, other[1]), max.max(other[2])])
                    }
                    (own, known) => own.or(known),
                };
            }
        }
    }
}

/// Packs an hour.
pub(super) fn pack(hour: &Hour) -> anyhow::Result<Vec<u8>> {
    let mut plain = Vec::with_capacity(hour.0.len() * BYTES);
    for subject in hour.0.keys() {
        plain.extend_from_slice(&subject.to_le_bytes());
    }
    for minutes in hour.0.values() {
        let has = minutes.iter().enumerate();
        let has = has.fold(0_u64, |has, (at, known)| has | u64::from(known.is_some()) << at);
        plain.extend_from_slice(&has.to_le_bytes());
    }
    let mut differences = Vec::with_capacity(hour.0.len() * FIGURES);
    for minutes in hour.0.values() {
        for figure in 0..3 {
            let mut before = 0;
            for minute in minutes {
                let bits = minute.map_or(before, |figures| figures[figure].to_bits());
                differences.push(bits ^ before);
                before = bits;
            }
        }
    }
    for byte in (0..4).rev() {
        plain.extend(differences.iter().map(|bits| bits.to_le_bytes()[byte]));
    }
    zstd::bulk::compress(&plain, LEVEL).context("cannot compress an hour")
}

/// Opens any bytes.
pub(in crate::store) fn unpack(data: &[u8]) -> anyhow::Result<Hour> {
    let plain = zstd::bulk::decompress(data, MOST_BYTES).context("cannot unpack an hour")?;
    let length = plain.len() / BYTES;
    anyhow::ensure!(plain.len() == length * BYTES, "an hour ends within a subject");
    let (subjects, rest) = plain.split_at(4 * length);
    let (has, planes) = rest.split_at(8 * length);
    let mut hour = Hour::default();
    for (at, (subject, has)) in subjects.chunks_exact(4).zip(has.chunks_exact(8)).enumerate() {
        let subject = u32::from_le_bytes(subject.try_into()?);
        let has = u64::from_le_bytes(has.try_into()?);
        let mut figures = [[0.0_f32; MINUTES]; 3];
        for (figure, minutes) in figures.iter_mut().enumerate() {
            let mut bits = 0;
            for (minute, value) in minutes.iter_mut().enumerate() {
                let place = at * FIGURES + figure * MINUTES + minute;
                let difference = (0..4).fold(0, |bits, plane| {
                    bits << 8 | u32::from(planes[plane * length * FIGURES + place])
                });
                bits ^= difference;
                *value = f32::from_bits(bits);
            }
        }
        let minutes = std::array::from_fn(|minute| {
            (has >> minute & 1 == 1).then(|| figures.map(|figure| figure[minute]))
        });
        hour.0.insert(subject, minutes);
    }
    Ok(hour)
}

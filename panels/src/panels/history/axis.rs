//! Where the numbers beside a chart stand: round values upwards, round local times along.

use probes::units;

use super::unit::{self, Unit};

/// The scale at the left.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    /// The value at the bottom.
    pub(super) low: f64,
    /// The value at the top.
    pub(super) high: f64,
    /// Values with their text, lowest first.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Scale {
    /// A scale that holds the values between `low` and `high`, in about so many ticks. Shares and
    /// sums are drawn from 0; other values from near the lowest when all lie close together, never
    /// so near that noise fills the chart.
    pub(super) fn new((low, high): (f64, f64), unit: Unit, from_zero: bool, most: u16) -> Self {
        let (mut low, mut high) = if low <= high { (low, high) } else { (0.0, 0.0) };
        let spread = (high - low).max(high.abs() * 0.05);
        if from_zero || unit.is_share || (low >= 0.0 && spread > high * 0.4) {
            low = low.min(0.0);
        } else {
            low = high - spread;
        }
        if high <= low {
            high = low + if unit.is_share { 100.0 } else { 1.0 };
        }
        let step = round_step((high - low) / f64::from(most.max(1)));
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        let decimals = decimals(step);
        let count = (last - first).clamp(1.0, f64::from(most) + 2.0);
        let ticks = (0..64)
            .map(f64::from)
            .take_while(|at| *at <= count)
            .map(|at| (first + at) * step)
            .map(|value| (value, unit::write(value, decimals)))
            .collect();
        Self { low: first * step, high: last * step, ticks }
    }

    /// Where a value lies, 0 at the top and 1 at the bottom.
    pub(super) fn place(&self, value: f64) -> f64 {
        ((self.high - value) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}

/// 1, 2 or 5 with noughts, not below what is asked.
fn round_step(least: f64) -> f64 {
    if !least.is_finite() || least <= 0.0 {
        return 1.0;
    }
    let noughts = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| digit * noughts >= least * 0.999);
    let step = step.unwrap_or(10.0) * noughts;
    if step.is_normal() { step } else { 1.0 }
}

fn decimals(step: f64) -> usize {
    (0..6)
        .find(|digits| step * 10_f64.powi(*digits) >= 0.999)
        .map_or(6, |digits| usize::try_from(digits).unwrap_or(0))
}

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Distances between times that people find round.
const DISTANCES: &[u64] = &[
    SECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    14 * DAY,
    28 * DAY,
];

/// Times to be written below a stretch of so many columns, oldest first. A midnight carries its date.
pub(super) fn times(
    from_ms: u64,
    to_ms: u64,
    columns: u16,
    utc_offset_seconds: i32,
) -> Vec<(u64, String)> {
    let length = to_ms.saturating_sub(from_ms);
    let most = u64::from(columns / 10).max(1);
    let fitting = DISTANCES.iter().copied().find(|distance| length / distance <= most);
    let Some(distance) = fitting else { return Vec::new() };
    let offset = i64::from(utc_offset_seconds) * 1000;
    let local = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX).min(i64::MAX / 4) + offset;
    let distance = i64::try_from(distance).unwrap_or(i64::MAX);
    let first = local(from_ms).div_euclid(distance).saturating_add(1).saturating_mul(distance);
    let mut out = Vec::new();
    for at in 0..i64::try_from(most).unwrap_or(0) + 2 {
        let Ok(ms) = u64::try_from(first + at * distance - offset) else { continue };
        if ms > to_ms {
            break;
        }
        out.push((ms, label(ms, distance, utc_offset_seconds)));
    }
    out
}

fn label(ms: u64, distance: i64, utc_offset_seconds: i32) -> String {
    let clock = units::clock(ms, utc_offset_seconds);
    if clock == "00:00:00" {
        // Seen from another day, a moment has its date.
        let date = units::moment(ms, ms.saturating_add(DAY), utc_offset_seconds);
        return date.rsplit_once(' ').map_or(date.clone(), |(date, _)| date.into());
    }
    let with_seconds = distance < i64::try_from(MINUTE).unwrap_or(0);
    clock[..if with_seconds { 8 } else { 5 }].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn values_are_round_and_shares_begin_at_zero() {
        let share = Unit::of("a_ratio");
        assert_eq!(labels(&Scale::new((91.0, 98.0), share, false, 4)), ["0", "50", "100"]);
        assert_eq!(labels(&Scale::new((0.0, 0.0), share, false, 4)), ["0", "50", "100"]);
        assert_eq!(labels(&Scale::new((0.1, 3.0), share, false, 4)), ["0", "1", "2", "3"]);
        let gib = Unit::of("a_bytes");
        assert_eq!(
            labels(&Scale::new((73.0, 73.1), gib, false, 4)),
            ["69", "70", "71", "72", "73", "74"]
        );
        assert_eq!(labels(&Scale::new((2.0, 73.1), gib, false, 4)), ["0", "20", "40", "60", "80"]);
        assert_eq!(
            labels(&Scale::new((0.0, 3.0), Unit::of("a_total"), true, 3)),
            ["0", "1", "2", "3"]
        );
    }

    #[test]
    fn any_values_have_a_scale() {
        let plain = Unit::of("");
        for ends in
            [(f64::MAX, f64::MIN), (-5.0, -5.0), (1e-300, 1e-300), (-1e30, 1e38), (7.0, 7.0)]
        {
            for most in [0, 1, 9] {
                let scale = Scale::new(ends, plain, false, most);
                assert!(scale.low < scale.high, "{ends:?}: {scale:?}");
                assert!((0.0..=1.0).contains(&scale.place(ends.0)), "{ends:?}: {scale:?}");
            }
        }
    }

    #[test]
    fn times_are_round_in_local_time_and_midnight_has_its_date() {
        const NOW: u64 = 1_764_558_727_000; // 2025-12-01 03:12:07 UTC
        let texts = |length: u64, columns, offset| -> Vec<String> {
            let all = times(NOW - length, NOW, columns, offset);
            all.into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(HOUR, 70, 0), ["02:20", "02:30", "02:40", "02:50", "03:00", "03:10"]);
        assert_eq!(texts(2 * MINUTE, 70, 0), ["03:10:30", "03:11:00", "03:11:30", "03:12:00"]);
        assert_eq!(texts(DAY, 70, 0), ["06:00", "12:00", "18:00", "1 Dec"]);
        assert_eq!(texts(DAY, 70, 3600 * 5 + 1800), ["12:00", "18:00", "1 Dec", "06:00"]);
        assert_eq!(texts(3 * DAY, 40, 0), ["29 Nov", "30 Nov", "1 Dec"]);
        assert!(times(0, u64::MAX, 10, i32::MIN).is_empty());
        assert!(times(5, 5, 0, 0).len() <= 1);
    }
}

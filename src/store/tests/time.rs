//! Clocks that are set, and what is too old.

use super::*;
use crate::store::file::File;

fn at(number: u64, after_ms: i64) -> Arc<Moment> {
    moment_of(number, snapshot(number, 10_000_000_u64.wrapping_add_signed(after_ms)))
}

#[test]
fn snapshots_of_a_clock_that_was_set_back_are_all_kept_and_found_by_their_time() {
    let place = Place::new();
    let mut moments: Vec<_> = (0..90).map(|n| at(n, n.cast_signed() * 1000)).collect();
    // Half a minute back, and the same seconds again.
    moments.extend((90..180).map(|n| at(n, n.cast_signed() * 1000 - 30_000 - 90_000 + 90_000)));
    place.keep(&moments);
    let mut reader = place.reader();
    let mut all = numbers(&mut reader);
    all.sort_unstable();
    assert_eq!(all, (0..180).collect::<Vec<_>>());
    let begin = BEGIN_MS + 10_000_000;
    // Seconds 60 to 89 came twice; the later one counts.
    assert_eq!(reader.at(begin + 59_500).unwrap().unwrap().number, 59);
    assert_eq!(reader.at(begin + 60_000).unwrap().unwrap().number, 90);
    assert_eq!(reader.at(begin + 89_000).unwrap().unwrap().number, 119);
    // Steps go through time, and end.
    let (mut steps, mut at_ms) = (0, begin);
    while let Some(next) = reader.neighbour(at_ms, true).unwrap() {
        assert!(next.at_ms > at_ms);
        (at_ms, steps) = (next.at_ms, steps + 1);
    }
    assert_eq!((at_ms, steps), (begin + 149_000, 149));
}

#[test]
fn a_clock_that_is_a_year_ahead_for_a_while_does_not_end_the_past() {
    const YEAR_MS: u64 = 365 * 86_400_000;
    let place = Place::new();
    // An hour, a minute in the next year, and then on.
    let minutes = |from: u64, count: u64| (from..from + count).map(|n| (n, n * 60_000));
    let mut file = File::open(&place.file(), LIMITS, &Start::default()).unwrap();
    for (number, after_ms) in
        minutes(0, 60).chain((60..62).map(|n| (n, n * 60_000 + YEAR_MS))).chain(minutes(62, 60))
    {
        file.keep(&moment_of(number, snapshot(number, after_ms)), None).unwrap();
    }
    file.finish(0).unwrap();
    let kept = numbers(&mut place.reader());
    assert!(kept.len() >= 100, "{kept:?}");
    // What was dated a year ahead goes, as what is too old.
    assert!(!kept.contains(&60) && !kept.contains(&61), "{kept:?}");
    assert!(kept.contains(&59) && kept.contains(&121), "{kept:?}");
}

/// Keeps a snapshot in so many minutes for so many days.
fn days(limits: Limits, days: u64, minutes: u64, size: usize) -> (Place, u64) {
    let place = Place::new();
    let mut file = File::open(&place.file(), limits, &Start::default()).unwrap();
    let mut largest = 0;
    for n in 0..days * 24 * 60 / minutes {
        let mut snapshot = snapshot(n, n * minutes * 60_000);
        // Noise does not compress.
        let noise = (0..size as u64).map(|at| (n * 7919 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let noise: Vec<String> = noise.map(|n| format!("{n:x}")).collect();
        snapshot.host.name = noise.concat().into();
        file.keep(&moment_of(n, snapshot), None).unwrap();
        largest = largest.max(file.bytes());
    }
    file.finish(0).unwrap();
    (place, largest)
}

#[test]
fn snapshots_go_by_age_and_roll_ups_stay_longer() {
    let (place, _) = days(Limits { raw_days: 1, rollup_days: 3, ..LIMITS }, 5, 5, 0);
    let mut reader = place.reader();
    let end = BEGIN_MS + 5 * 86_400_000;
    let span = reader.span().unwrap().unwrap();
    let age_ms = end - span.from_ms;
    assert!((86_400_000..86_400_000 + 1_200_000).contains(&age_ms), "{age_ms}");
    let metric = "infertop_gpu_power_draw_watts";
    let past = reader.metric(metric, BEGIN_MS, end, 3_600_000).unwrap();
    let known: Vec<bool> = past.series[0].mean.iter().map(Option::is_some).collect();
    let first = known.iter().position(|known| *known).unwrap();
    assert!((47..=49).contains(&first), "{known:?}");
    assert!(known[first..120].iter().all(|known| *known), "{known:?}");
}

#[test]
fn snapshots_go_when_the_file_is_too_large_and_the_disk_gets_its_space_back() {
    let limits = Limits { max_bytes: 3 << 20, ..LIMITS };
    let (place, largest) = days(limits, 1, 1, 200);
    assert!(largest < (3 << 20) + (256 << 10), "{largest}");
    let length = std::fs::metadata(place.file()).unwrap().len();
    assert!(length < 9 << 20, "{length}");
    let span = place.reader().span().unwrap().unwrap();
    assert_eq!(span.to_ms, BEGIN_MS + 86_400_000 - 60_000);
    assert!(span.from_ms > BEGIN_MS);
}

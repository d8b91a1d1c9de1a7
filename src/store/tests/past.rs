//! Metrics, marks and findings over time.

use probes::finding::Severity;
use probes::past::{Mark, MarkKind};

use super::*;

const WATTS: &str = "infertop_gpu_power_draw_watts";

/// Watts of second `n`.
fn watts(n: u64) -> f64 {
    300.0 + (n % 60) as f64
}

#[test]
fn a_metric_over_hours_is_minimum_mean_and_maximum_of_its_minutes() {
    let place = Place::new();
    // Three and a half hours, one snapshot in ten seconds; none in the second hour's first half.
    let moments: Vec<_> = (0..1260)
        .filter(|n| !(360..540).contains(n))
        .map(|n| moment_of(n, snapshot(n, n * 10_000)))
        .collect();
    let (first, second) = moments.split_at(700);
    place.keep(first);
    let store = place.start();
    keep_all(&store, second);
    // Part of the minute is in no roll-up yet.
    let past = place.reader().metric(WATTS, BEGIN_MS, BEGIN_MS + 12_600_000, 60_000).unwrap();
    store.finish(Duration::from_secs(20));
    assert_eq!((past.step_ms, past.series.len()), (60_000, 1));
    let series = &past.series[0];
    assert_eq!((series.subject.as_str(), series.name.as_str()), ("GPU-1", "GPU 0"));
    for minute in 0..210 {
        let numbers = minute * 6..minute * 6 + 6;
        let values: Vec<f64> =
            numbers.clone().filter(|n| !(360..540).contains(n)).map(watts).collect();
        let at = usize::try_from(minute).unwrap();
        let found = (series.min[at], series.mean[at], series.max[at]);
        if values.is_empty() {
            assert_eq!(found, (None, None, None), "minute {minute}");
            continue;
        }
        let close = |found: Option<f32>, wanted: f64| {
            let found = f64::from(found.unwrap_or_else(|| panic!("minute {minute} has no value")));
            assert!((found - wanted).abs() < 0.01, "minute {minute}: {found} {wanted}");
        };
        close(found.0, values.iter().copied().fold(f64::INFINITY, f64::min));
        close(found.1, values.iter().sum::<f64>() / values.len() as f64);
        close(found.2, values.iter().copied().fold(0.0, f64::max));
    }
    // Whole hours: the steps are joined.
    let hours = place.reader().metric(WATTS, BEGIN_MS, BEGIN_MS + 12_599_999, 3_600_000).unwrap();
    assert_eq!(hours.series[0].min.len(), 4);
    assert_eq!((hours.series[0].min[0], hours.series[0].max[3]), (Some(300.0), Some(359.0)));
}

#[test]
fn a_metric_over_minutes_is_told_second_by_second() {
    let place = Place::new();
    place.keep(&seconds(0, 150));
    let past = place.reader().metric(WATTS, BEGIN_MS + 50_000, BEGIN_MS + 79_999, 1000).unwrap();
    let wanted: Vec<_> = (50..80_u16).map(|n| Some(300.0 + f32::from(n % 60))).collect();
    assert_eq!(past.series[0].mean, wanted);
    assert_eq!(past.series[0].min, wanted);
    let host = place.reader().metric("infertop_host_processes", BEGIN_MS, BEGIN_MS + 9000, 1000);
    assert!(host.unwrap().series.is_empty());
}

#[test]
fn a_metric_that_is_none_is_told() {
    let place = Place::new();
    place.keep(&seconds(0, 2));
    for step_ms in [1000, 60_000] {
        let past = place.reader().metric("nothing", BEGIN_MS, BEGIN_MS + 60_000, step_ms);
        assert!(past.unwrap_err().to_string().starts_with("there is no metric nothing"));
    }
}

#[test]
fn a_gpu_that_does_not_answer_has_no_values() {
    let place = Place::new();
    let lost = |n: u64| {
        let mut snapshot = snapshot(n, n * 1000);
        if n >= 60 {
            snapshot.gpus[0].health = Health::Lost { since_ms: 1, answer: "gone".into() };
        }
        moment_of(n, snapshot)
    };
    place.keep(&(0..120).map(lost).collect::<Vec<_>>());
    for (step_ms, known) in [(60_000, 1), (1000, 60)] {
        let past = place.reader().metric(WATTS, BEGIN_MS, BEGIN_MS + 119_999, step_ms).unwrap();
        let found = past.series[0].mean.iter().flatten().count();
        assert_eq!((found, past.series[0].mean.last()), (known, Some(&None)));
    }
}

#[test]
fn findings_are_told_from_when_to_when_and_a_flicker_is_one() {
    let place = Place::new();
    let lost = |n: u64| {
        let mut snapshot = snapshot(n, n * 1000);
        // Away for three seconds in between, and gone for good at last.
        if (20..60).contains(&n) && !(30..33).contains(&n) {
            let since_ms = BEGIN_MS + 18_000;
            snapshot.gpus[0].health = Health::Lost { since_ms, answer: "gone".into() };
        }
        moment_of(n, snapshot)
    };
    let moments: Vec<_> = (0..100).map(lost).collect();
    place.keep(&moments);
    let found = |reader: &mut Reader| -> Vec<Mark> {
        let marks = reader.marks(0, u64::MAX).unwrap();
        marks.into_iter().filter(|mark| mark.kind == MarkKind::Finding).collect()
    };
    let marks = found(&mut place.reader());
    assert_eq!(marks.len(), 1, "{marks:?}");
    let Mark { at_ms, until_ms, severity, subject, text, .. } = &marks[0];
    assert_eq!((*at_ms, *until_ms), (BEGIN_MS + 18_000, Some(BEGIN_MS + 59_000)));
    assert_eq!((*severity, subject.as_str()), (Severity::Critical, "GPU 0"));
    assert_eq!(text, "the GPU is lost");
}

#[test]
fn a_finding_that_was_open_when_a_daemon_was_killed_ends_with_its_last_snapshot() {
    let place = Place::new();
    let lost = |n: u64| {
        let mut snapshot = snapshot(n, n * 1000);
        snapshot.gpus[0].health = Health::Lost { since_ms: BEGIN_MS, answer: "gone".into() };
        moment_of(n, snapshot)
    };
    let killed = place.start();
    keep_all(&killed, &(0..5).map(lost).collect::<Vec<_>>());
    let copy = Place::new();
    for name in [FILE.to_string(), format!("{FILE}-wal")] {
        std::fs::copy(place.path().join(&name), copy.path().join(&name)).unwrap();
    }
    copy.keep(&(20..25).map(lost).collect::<Vec<_>>());
    let marks = copy.reader().marks(0, u64::MAX).unwrap();
    let found: Vec<_> = marks
        .iter()
        .filter(|mark| mark.kind == MarkKind::Finding)
        .map(|mark| (mark.at_ms - BEGIN_MS, mark.until_ms.unwrap() - BEGIN_MS))
        .collect();
    assert_eq!(found, [(0, 4000), (20_000, 24_000)]);
    killed.finish(Duration::from_secs(20));
}

#[test]
fn marks_that_are_told_are_found_in_their_stretch() {
    let place = Place::new();
    let store = place.start();
    let told = |at_ms, until_ms| Mark {
        at_ms,
        until_ms,
        kind: MarkKind::Release,
        text: "let go".into(),
        ..Mark::default()
    };
    let marks = [told(BEGIN_MS + 1000, None), told(BEGIN_MS + 5000, Some(BEGIN_MS + 9000))];
    for mark in &marks {
        store.mark(mark.clone());
    }
    store.finish(Duration::from_secs(20));
    let found = |from: u64, to: u64| place.reader().marks(BEGIN_MS + from, BEGIN_MS + to).unwrap();
    assert_eq!(found(500, 4000), &marks[..1]);
    assert_eq!(found(8000, 8500), &marks[1..]);
    assert_eq!(found(9500, 10_000), []);
}

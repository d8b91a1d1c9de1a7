//! Which stretch of time is looked at, and what is asked for it.
//!
//! While the picture is live the stretch ends now, in small leaps: each leap is a new request, and
//! between two the curve stands still. While travelling it rests, and follows only when the moment
//! that is shown leaves it.

use crate::view::{ChartRequest, Source, View};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The stretches, shortest first; the last is all that is recorded.
pub(super) const STRETCHES: &[(&str, u64)] = &[
    ("2m", 2 * MINUTE),
    ("15m", 15 * MINUTE),
    ("1h", HOUR),
    ("6h", 6 * HOUR),
    ("24h", DAY),
    ("7d", 7 * DAY),
    ("all", 0),
];

const ALL: usize = STRETCHES.len() - 1;
/// A daemon's past is looked at an hour at a time, as long as nobody chose.
const USUAL: usize = 2;
/// No request more often than this.
const LEAST_LEAP_MS: u64 = 2000;

/// The stretch that is looked at.
#[derive(Default)]
pub(super) struct Window {
    /// Place in [`STRETCHES`]; `None` until somebody chose.
    chosen: Option<usize>,
    from_ms: u64,
    to_ms: u64,
}

impl Window {
    /// The place of the stretch in [`STRETCHES`].
    pub(super) fn stretch(&self, view: &View) -> usize {
        let usual = if view.feed.source == Source::Recording { ALL } else { USUAL };
        self.chosen.unwrap_or(usual)
    }

    /// A shorter or a longer stretch.
    pub(super) fn zoom(&mut self, view: &View, nearer: bool) {
        let now = self.stretch(view);
        self.chosen = Some(if nearer { now.saturating_sub(1) } else { (now + 1).min(ALL) });
    }

    /// Both ends of the stretch that is looked at now.
    pub(super) fn ends(&self) -> (u64, u64) {
        (self.from_ms, self.to_ms)
    }

    /// Its length, never 0.
    pub(super) fn length_ms(&self) -> u64 {
        self.to_ms.saturating_sub(self.from_ms).max(1)
    }

    /// Finds the stretch for this view.
    pub(super) fn place(&mut self, view: &View) {
        let newest = view.newest_ms();
        let oldest = view.past.span.map_or(newest, |span| span.from_ms.min(newest));
        let stretch = self.stretch(view);
        let length = if stretch == ALL { newest - oldest } else { STRETCHES[stretch].1 };
        let length = length.max(10_000);
        // A recording grows no more.
        let still = view.feed.source == Source::Recording;
        let leap = if still { 1 } else { (length / 200).max(LEAST_LEAP_MS) };
        let end = newest.div_ceil(leap).saturating_mul(leap);
        let cursor = view.past.cursor_ms.filter(|_| stretch != ALL);
        if stretch == ALL {
            (self.from_ms, self.to_ms) = (oldest / leap * leap, end);
        } else if let Some(cursor) = cursor {
            let rests = self.length_ms() == length && (self.from_ms..=self.to_ms).contains(&cursor);
            if !rests {
                // In the middle, but not beyond what is recorded.
                let from = cursor.saturating_sub(length / 2) / leap * leap;
                let latest = end.saturating_sub(length);
                self.from_ms = from.min(latest).max(oldest.min(latest) / leap * leap);
                self.to_ms = self.from_ms.saturating_add(length);
            }
        } else {
            (self.from_ms, self.to_ms) = (end.saturating_sub(length), end);
        }
    }

    /// What to ask for, so that no more comes than can be seen and no step is shorter than the
    /// distance of two snapshots.
    pub(super) fn request(&self, metric: &str, dots: usize, view: &View) -> ChartRequest {
        let most = self.length_ms() / interval_ms(view);
        let dots = u64::try_from(dots).unwrap_or(u64::MAX);
        let points = u32::try_from(dots.min(most).max(1)).unwrap_or(u32::MAX);
        ChartRequest { metric: metric.into(), from_ms: self.from_ms, to_ms: self.to_ms, points }
    }
}

/// The distance of two snapshots.
pub(super) fn interval_ms(view: &View) -> u64 {
    view.feed.interval_ms.max(view.snapshot.interval_ms).max(1)
}

#[cfg(test)]
mod tests {
    use probes::history::History;
    use probes::past::Span;
    use probes::snapshot::Snapshot;

    use super::*;
    use crate::view::{Feed, Past};

    const NOW: u64 = 1_764_558_727_000;

    fn with<T>(now_ms: u64, cursor_ms: Option<u64>, look: impl FnOnce(&View) -> T) -> T {
        let span = Some(Span { from_ms: NOW - 10 * DAY, to_ms: now_ms });
        let past = Past { span, cursor_ms, ..Past::default() };
        let feed = Feed { interval_ms: 1000, source: Source::Daemon, ..Feed::default() };
        look(&View {
            snapshot: &Snapshot::default(),
            ledgers: &[],
            history: &History::new(1),
            findings: &[],
            feed: &feed,
            past: &past,
            now_ms,
            utc_offset_seconds: 0,
        })
    }

    fn placed(window: &mut Window, now_ms: u64, cursor_ms: Option<u64>) -> (u64, u64) {
        with(now_ms, cursor_ms, |view| window.place(view));
        window.ends()
    }

    #[test]
    fn a_live_stretch_ends_now_and_leaps() {
        let mut window = Window::default();
        let first = placed(&mut window, NOW, None);
        assert!(first.1 >= NOW && first.1 - NOW < 18_000 && first.1 - first.0 == HOUR);
        let leaps: Vec<_> =
            (0..60).map(|second| placed(&mut window, NOW + second * 1000, None)).collect();
        let mut different = leaps.clone();
        different.dedup();
        assert!((3..=5).contains(&different.len()), "{different:?}");
    }

    #[test]
    fn a_stretch_rests_until_the_cursor_leaves_it() {
        let mut window = Window::default();
        let live = placed(&mut window, NOW, None);
        assert_eq!(placed(&mut window, NOW + MINUTE, Some(NOW - 30 * MINUTE)), live);
        let earlier = placed(&mut window, NOW, Some(NOW - 3 * HOUR));
        assert!(earlier.0 < NOW - 3 * HOUR && earlier.1 > NOW - 3 * HOUR);
        assert_eq!(earlier.1 - earlier.0, HOUR);
        assert_eq!(placed(&mut window, NOW, Some(NOW - 3 * HOUR - 20 * MINUTE)), earlier);
        let oldest = placed(&mut window, NOW, Some(NOW - 10 * DAY));
        assert!(
            oldest.0.abs_diff(NOW - 10 * DAY) < 20_000,
            "the stretch begins where the record does"
        );
    }

    #[test]
    fn no_more_is_asked_for_than_can_be_seen_or_was_read() {
        let mut window = Window::default();
        placed(&mut window, NOW, None);
        let points =
            |window: &Window, dots| with(NOW, None, |view| window.request("m", dots, view).points);
        assert_eq!(points(&window, 140), 140);
        assert_eq!(points(&window, 0), 1);
        for _ in 0..2 {
            with(NOW, None, |view| window.zoom(view, true));
        }
        placed(&mut window, NOW, None);
        assert_eq!(points(&window, 400), 120, "2 minutes have 120 snapshots");
    }
}

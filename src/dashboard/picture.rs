//! What is shown, apart from how: the newest snapshot or one of the past, what was made of it, and
//! how it comes.

use std::time::{Duration, Instant};

use panels::view::{Feed, Past, Source, View};
use probes::finding::Finding;
use probes::history::History;
use probes::ledger::{Ledger, ledgers};
use probes::snapshot::Snapshot;

use crate::own_cost;

/// Snapshots whose figures are kept for sparklines.
pub(super) const KEPT: usize = 300;
/// How often own CPU time and memory are looked at.
const OWN_COST_EVERY: Duration = Duration::from_secs(5);

/// One moment and its surroundings.
pub(super) struct Picture {
    snapshot: Snapshot,
    ledgers: Vec<Ledger>,
    findings: Vec<Finding>,
    /// Of what arrives live.
    history: History,
    /// The newest that arrived, while another moment is shown.
    newest: Option<Snapshot>,
    /// The history of the moment that is shown, where that is not the newest.
    held: Option<History>,
    pub(super) feed: Feed,
    pub(super) past: Past,
    pub(super) utc_offset_seconds: i32,
    /// When the first snapshot of this feed was taken, until what was before it has been asked for.
    begins_ms: Option<u64>,
    wants_older: bool,
    own: (Instant, f64),
}

impl Picture {
    pub(super) fn new(source: Source, interval: Duration) -> Self {
        let now = jiff::Timestamp::now();
        let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        Self {
            snapshot: Snapshot::default(),
            ledgers: Vec::new(),
            findings: Vec::new(),
            history: History::new(KEPT),
            newest: None,
            held: None,
            wants_older: source == Source::Daemon,
            feed: Feed { source, interval_ms, ..Feed::default() },
            past: Past::default(),
            utc_offset_seconds: jiff::tz::TimeZone::system().to_offset(now).seconds(),
            begins_ms: None,
            own: (Instant::now(), own_cost::cpu_seconds()),
        }
    }

    pub(super) fn view(&self, now_ms: u64) -> View<'_> {
        View {
            snapshot: &self.snapshot,
            ledgers: &self.ledgers,
            history: self.held.as_ref().unwrap_or(&self.history),
            findings: &self.findings,
            feed: &self.feed,
            past: &self.past,
            now_ms,
            utc_offset_seconds: self.utc_offset_seconds,
        }
    }

    pub(super) fn is_recording(&self) -> bool {
        self.feed.source == Source::Recording
    }

    /// Whether another moment than the newest is shown.
    pub(super) fn travels(&self) -> bool {
        self.view(0).travels()
    }

    /// When the snapshot that is shown was taken.
    pub(super) fn shown_ms(&self) -> u64 {
        self.snapshot.taken_at_ms
    }

    /// When the newest that arrived was taken; 0 in a recording.
    pub(super) fn newest_ms(&self) -> u64 {
        let newest = self.newest.as_ref().or_else(|| (!self.travels()).then_some(&self.snapshot));
        newest.map_or(0, |snapshot| snapshot.taken_at_ms)
    }

    /// The nominal distance of the snapshots that are shown.
    pub(super) fn step_ms(&self) -> u64 {
        self.snapshot.interval_ms.max(1)
    }

    /// A snapshot came from the live feed.
    pub(super) fn arrived(&mut self, snapshot: Snapshot, lost: u64, now_ms: u64) {
        self.feed.trouble = None;
        self.feed.last_ms = Some(now_ms);
        if self.feed.source == Source::Daemon {
            self.feed.interval_ms = snapshot.interval_ms;
        }
        self.begins_ms.get_or_insert(snapshot.taken_at_ms);
        // What a daemon sends it has handed to its store.
        if let Some(span) = &mut self.past.span {
            span.to_ms = span.to_ms.max(snapshot.taken_at_ms);
        }
        self.history.push(&snapshot);
        self.feed.lost = self.history.lost() + lost;
        if self.feed.paused || self.past.cursor_ms.is_some() {
            self.newest = Some(snapshot);
        } else {
            self.show(snapshot);
        }
        self.look_at_own_cost();
    }

    fn show(&mut self, snapshot: Snapshot) {
        self.ledgers = ledgers(&snapshot);
        self.findings = playbooks::judge(&snapshot);
        self.snapshot = snapshot;
    }

    /// Shows a moment of the past.
    pub(super) fn show_past(&mut self, at_ms: u64, snapshot: Snapshot) {
        if self.past.cursor_ms.is_none() && self.newest.is_none() {
            self.newest = Some(std::mem::take(&mut self.snapshot));
        }
        if self.is_recording() {
            self.feed.interval_ms = snapshot.interval_ms;
            self.feed.last_ms = Some(at_ms);
        }
        self.past.cursor_ms = Some(at_ms);
        self.feed.paused = false;
        self.show(snapshot);
    }

    /// What was before the moment that is shown has come.
    pub(super) fn hold_history(&mut self, history: History) {
        if self.past.cursor_ms.is_some() {
            self.held = Some(history);
        }
    }

    /// Back to what arrives.
    pub(super) fn go_live(&mut self) {
        self.past.cursor_ms = None;
        self.past.playing = false;
        self.held = None;
        if let Some(newest) = self.newest.take() {
            self.show(newest);
        }
    }

    pub(super) fn toggle_pause(&mut self) {
        self.feed.paused = !self.feed.paused;
        self.held = self.feed.paused.then(|| self.history.clone());
        if !self.feed.paused
            && let Some(newest) = self.newest.take()
        {
            self.show(newest);
        }
    }

    /// Snapshots come from somewhere else from now on.
    pub(super) fn other_source(&mut self, source: Source) {
        self.history.new_feed();
        // Another daemon remembers other things, and none remembers nothing.
        self.go_live();
        self.past = Past::default();
        self.begins_ms = None;
        self.wants_older = source == Source::Daemon;
        self.feed.source = source;
    }

    /// Until when the figures that a daemon remembers are wanted, once.
    pub(super) fn wants_older(&mut self) -> Option<u64> {
        let begins_ms = self.begins_ms.filter(|_| self.wants_older)?;
        self.wants_older = false;
        Some(begins_ms.saturating_sub(1))
    }

    /// What a daemon remembers from before the first snapshot came.
    pub(super) fn put_older(&mut self, older: &History) {
        self.history.put_before(older);
    }

    fn look_at_own_cost(&mut self) {
        let (then, before) = self.own;
        if then.elapsed() < OWN_COST_EVERY && self.feed.own_cpu_ratio.is_some() {
            return;
        }
        let seconds = own_cost::cpu_seconds();
        self.feed.own_cpu_ratio = Some((seconds - before) / then.elapsed().as_secs_f64());
        self.feed.own_rss_bytes = own_cost::memory().0.get();
        self.own = (Instant::now(), seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(source: Source) -> Picture {
        Picture::new(source, Duration::from_secs(1))
    }

    fn taken(at_ms: u64) -> Snapshot {
        Snapshot {
            sequence: at_ms / 1000,
            taken_at_ms: at_ms,
            interval_ms: 1000,
            ..Snapshot::default()
        }
    }

    #[test]
    fn what_arrives_does_not_push_a_moment_of_the_past_away_and_is_there_afterwards() {
        let mut picture = picture(Source::Daemon);
        picture.arrived(taken(9000), 0, 9000);
        picture.show_past(4000, taken(4000));
        picture.arrived(taken(10_000), 0, 10_000);
        assert_eq!((picture.shown_ms(), picture.newest_ms()), (4000, 10_000));
        assert!(picture.travels());
        picture.go_live();
        assert_eq!(picture.shown_ms(), 10_000);
        assert!(!picture.travels());
    }

    #[test]
    fn the_present_is_there_after_a_travel_in_which_nothing_arrived() {
        let mut picture = picture(Source::Daemon);
        picture.arrived(taken(9000), 0, 9000);
        for at_ms in [4000, 3000] {
            picture.show_past(at_ms, taken(at_ms));
        }
        picture.go_live();
        assert_eq!(picture.shown_ms(), 9000);
    }

    #[test]
    fn a_held_picture_goes_on_where_reading_is() {
        let mut picture = picture(Source::Live);
        picture.arrived(taken(1000), 0, 1000);
        picture.toggle_pause();
        picture.arrived(taken(2000), 0, 2000);
        assert_eq!(picture.shown_ms(), 1000);
        picture.toggle_pause();
        assert_eq!(picture.shown_ms(), 2000);
    }

    #[test]
    fn what_a_daemon_remembers_is_asked_for_once_and_ends_before_its_first_snapshot() {
        let mut picture = picture(Source::Daemon);
        assert_eq!(picture.wants_older(), None);
        picture.arrived(taken(9000), 0, 9000);
        assert_eq!(picture.wants_older(), Some(8999));
        assert_eq!(picture.wants_older(), None);
    }

    #[test]
    fn another_source_forgets_the_past_of_the_one_before() {
        let mut picture = picture(Source::Daemon);
        picture.arrived(taken(9000), 0, 9000);
        picture.past.span = Some(probes::past::Span { from_ms: 1, to_ms: 9000 });
        picture.show_past(4000, taken(4000));
        picture.other_source(Source::Live);
        assert_eq!(picture.past.span, None);
        assert!(!picture.travels());
    }
}

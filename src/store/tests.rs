//! The store from the outside: what is kept is read back, whatever happens to the file.

mod faults;
mod kept_file;
mod past;
mod replay;
mod time;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use probes::past::MarkKind;
use probes::snapshot::{Gpu, Health, Snapshot};

use super::*;
use crate::moment::Moment;

const LIMITS: Limits = Limits { raw_days: 7, rollup_days: 90, max_bytes: 1 << 30 };
/// An hour begins here.
const BEGIN_MS: u64 = 1_796_126_400_000;
/// A file that cannot be used is tried again so soon.
const RETRY: Duration = Duration::from_millis(50);

/// A folder for a store.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(FILE)
    }

    fn start(&self) -> StoreHandle {
        self.start_with(LIMITS)
    }

    fn start_with(&self, limits: Limits) -> StoreHandle {
        let start = Start { version: "0.0.0".into(), at_ms: BEGIN_MS, ..Start::default() };
        StoreHandle::start_with(self.folder.path(), limits, start, RETRY)
    }

    /// Starts a store, keeps these in it and ends it.
    fn keep(&self, moments: &[Arc<Moment>]) {
        let store = self.start();
        keep_all(&store, moments);
        store.finish(Duration::from_secs(20));
    }

    fn reader(&self) -> Reader {
        Reader::open(&self.file()).unwrap()
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Hands over one after the other, each when the one before is stored or lost.
fn keep_all(store: &StoreHandle, moments: &[Arc<Moment>]) {
    for moment in moments {
        let done = |status: &StoreStatus| status.frames_kept + status.frames_lost;
        let before = done(&store.status());
        store.keep(moment);
        until("a snapshot is stored or lost", || done(&store.status()) > before);
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        std::thread::park_timeout(Duration::from_micros(200));
    }
}

fn moment_of(number: u64, snapshot: Snapshot) -> Arc<Moment> {
    Arc::new(Moment::new(number, Bytes::from(snapshot.encode().unwrap()), snapshot))
}

/// A snapshot of a box with a GPU, so many milliseconds after the begin.
fn snapshot(number: u64, after_ms: u64) -> Snapshot {
    let mut gpu = Gpu {
        uuid: "GPU-1".to_string().into(),
        pci: "0000:19:00.0".to_string().into(),
        health: Health::Answering,
        ..Gpu::default()
    };
    gpu.power.draw_watts = (300.0 + (number % 60) as f64).into();
    Snapshot {
        sequence: number + 1,
        taken_at_ms: BEGIN_MS + after_ms,
        interval_ms: 1000,
        gpus: vec![gpu],
        ..Snapshot::default()
    }
}

/// Snapshots a second apart, from so many seconds after the begin.
fn seconds(from: u64, count: u64) -> Vec<Arc<Moment>> {
    (from..from + count).map(|n| moment_of(n, snapshot(n, n * 1000))).collect()
}

fn numbers(reader: &mut Reader) -> Vec<u64> {
    let mut numbers = Vec::new();
    reader
        .frames(0, u64::MAX, |stored| {
            numbers.push(stored.number);
            Ok(())
        })
        .unwrap();
    numbers
}

#[test]
fn what_is_kept_is_read_back_across_minutes_and_restarts() {
    let place = Place::new();
    let moments = seconds(30, 200);
    for part in moments.chunks(90) {
        place.keep(part);
    }
    let mut reader = place.reader();
    let span = reader.span().unwrap().unwrap();
    assert_eq!((span.from_ms, span.to_ms), (BEGIN_MS + 30_000, BEGIN_MS + 229_000));
    for moment in &moments {
        let stored = reader.at(moment.snapshot.taken_at_ms + 400).unwrap().unwrap();
        assert_eq!((stored.number, &stored.bytes), (moment.number, &moment.bytes.to_vec()));
    }
    assert_eq!(reader.at(0).unwrap().unwrap().number, 30);
    let mut at_ms = span.from_ms;
    for number in 31..230 {
        let next = reader.neighbour(at_ms, true).unwrap().unwrap();
        assert_eq!(next.number, number);
        assert_eq!(reader.neighbour(next.at_ms, false).unwrap().unwrap().number, number - 1);
        at_ms = next.at_ms;
    }
    assert!(reader.neighbour(span.to_ms, true).unwrap().is_none());
    assert_eq!(numbers(&mut reader), (30..230).collect::<Vec<_>>());
}

#[test]
fn what_is_being_written_is_read_while_it_is() {
    let place = Place::new();
    let store = place.start();
    let moments = seconds(0, 130);
    keep_all(&store, &moments[..1]);
    let mut reader = place.reader();
    for moment in &moments[1..] {
        keep_all(&store, std::slice::from_ref(moment));
        let newest = reader.at(u64::MAX).unwrap().unwrap();
        assert_eq!((newest.number, newest.bytes), (moment.number, moment.bytes.to_vec()));
    }
    assert_eq!(numbers(&mut reader).len(), 130);
    let status = store.status();
    assert_eq!((status.state, status.frames_kept, status.frames_lost), (StoreState::Ok, 130, 0));
    store.finish(Duration::from_secs(20));
}

#[test]
fn each_start_is_noted_with_its_end() {
    let place = Place::new();
    place.keep(&seconds(0, 2));
    let store = place.start();
    until("the store is open", || store.status().state == StoreState::Ok);
    let marks = place.reader().marks(0, u64::MAX).unwrap();
    let kinds: Vec<_> = marks.iter().map(|mark| mark.kind).collect();
    // The second start has the time and number of the first: it is the same one.
    assert_eq!(kinds, [MarkKind::DaemonStart, MarkKind::DaemonEnd]);
    store.finish(Duration::from_secs(20));
}

//! The store from the outside: what is kept is read back.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use probes::snapshot::Snapshot;

use super::*;
use crate::moment::Moment;

const LIMITS: Limits = Limits { raw_days: 7, rollup_days: 90, max_bytes: 1 << 30 };
/// A minute begins here.
const BEGIN_MS: u64 = 1_796_127_900_000;

fn moment(number: u64, at_ms: u64) -> Arc<Moment> {
    let snapshot = Snapshot { sequence: number, taken_at_ms: at_ms, ..Snapshot::default() };
    Arc::new(Moment::new(number, Bytes::from(snapshot.encode().unwrap()), snapshot))
}

#[test]
fn what_is_kept_is_read_back_across_minutes_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let moments: Vec<_> = (0..200).map(|n| moment(n, BEGIN_MS + 30_000 + n * 1000)).collect();
    for part in moments.chunks(90) {
        let store = StoreHandle::start(folder.path(), LIMITS, Start::default());
        for moment in part {
            let before = store.status().frames_kept;
            store.keep(moment);
            while store.status().frames_kept == before {
                std::thread::yield_now();
            }
        }
        store.finish(Duration::from_secs(5));
        assert_eq!(store.status().state, StoreState::Closed);
    }
    let mut reader = Reader::open(&folder.path().join(FILE)).unwrap();
    let span = reader.span().unwrap().unwrap();
    assert_eq!((span.from_ms, span.to_ms), (BEGIN_MS + 30_000, BEGIN_MS + 229_000));
    for moment in &moments {
        let stored = reader.at(moment.snapshot.taken_at_ms + 400).unwrap().unwrap();
        assert_eq!((stored.number, &stored.bytes), (moment.number, &moment.bytes.to_vec()));
    }
    assert_eq!(reader.at(0).unwrap().unwrap().number, 0);
    let mut at_ms = span.from_ms;
    for number in 1..200 {
        let next = reader.neighbour(at_ms, true).unwrap().unwrap();
        assert_eq!(next.number, number);
        assert_eq!(reader.neighbour(next.at_ms, false).unwrap().unwrap().number, number - 1);
        at_ms = next.at_ms;
    }
    assert!(reader.neighbour(span.to_ms, true).unwrap().is_none());
    let mut seen = Vec::new();
    reader
        .frames(0, u64::MAX, |stored| {
            seen.push(stored.number);
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, (0..200).collect::<Vec<_>>());
    assert_eq!(reader.window(span.to_ms, 150).unwrap().host_cpu().count(), 150);
}

//! Files that earlier versions wrote are read, and go on.

use super::*;

/// One file of each version of the layout.
fn kept(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/stores/v{version}.db"))
}

#[test]
fn a_store_of_version_1_is_read_and_goes_on() {
    let place = Place::new();
    std::fs::copy(kept(1), place.file()).unwrap();
    let check = |reader: &mut Reader, more: u64| {
        let found = numbers(reader);
        assert_eq!(found, (0..150 + more).collect::<Vec<_>>());
        let stored = reader.at(BEGIN_MS + 77_400).unwrap().unwrap();
        let snapshot = Snapshot::decode(&stored.bytes).unwrap();
        assert_eq!((stored.number, snapshot.gpus[0].power.draw_watts.get()), (77, Some(317.0)));
        let metric = "infertop_gpu_power_draw_watts";
        let past = reader.metric(metric, BEGIN_MS, BEGIN_MS + 120_000, 60_000).unwrap();
        assert_eq!(past.series[0].max[..2], [Some(359.0), Some(359.0)]);
        let marks = reader.marks(0, BEGIN_MS + 149_000).unwrap();
        let texts: Vec<_> = marks.iter().map(|mark| mark.text.as_str()).collect();
        assert_eq!(texts, ["infertop 0.0.0 started", "let go", "the GPU is lost"]);
    };
    check(&mut place.reader(), 0);
    place.keep(&seconds(150, 10));
    check(&mut place.reader(), 10);
}

/// Writes the file of today's version, for a layout that has changed:
/// `KEEP_STORE=1 cargo test --lib kept_file`.
#[test]
fn a_file_of_this_version_is_kept() {
    let version = u32::try_from(crate::store::schema::version()).unwrap();
    if std::env::var_os("KEEP_STORE").is_none() {
        assert!(kept(version).is_file(), "keep a file of layout {version}: see this test");
        return;
    }
    let place = Place::new();
    let store = place.start();
    store.mark(probes::past::Mark {
        at_ms: BEGIN_MS + 1000,
        kind: probes::past::MarkKind::Release,
        text: "let go".into(),
        ..Default::default()
    });
    let moments: Vec<_> = (0..150)
        .map(|n| {
            let mut snapshot = snapshot(n, n * 1000);
            if n >= 140 {
                let since_ms = BEGIN_MS + 140_000;
                snapshot.gpus[0].health = Health::Lost { since_ms, answer: "gone".into() };
            }
            moment_of(n, snapshot)
        })
        .collect();
    keep_all(&store, &moments);
    store.finish(Duration::from_secs(20));
    let db = rusqlite::Connection::open(place.file()).unwrap();
    db.execute_batch("PRAGMA journal_mode = DELETE; VACUUM").unwrap();
    drop(db);
    std::fs::create_dir_all(kept(version).parent().unwrap()).unwrap();
    std::fs::copy(place.file(), kept(version)).unwrap();
}

//! Files that cannot be used, are damaged, or are taken away.

use probes::past::{Mark, MarkKind};
use rusqlite::Connection;

use super::*;
use crate::store::file::File;
use crate::store::open::Unusable;

fn not_stored(place: &Place) -> Vec<Mark> {
    let mut marks = place.reader().marks(0, u64::MAX).unwrap();
    marks.retain(|mark| mark.kind == MarkKind::NotStored);
    marks
}

fn unavailable(store: &StoreHandle) -> (String, String) {
    until("the store says that it cannot be used", || {
        matches!(store.status().state, StoreState::Unavailable { .. })
    });
    match store.status().state {
        StoreState::Unavailable { why, help, .. } => (why, help),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_told_and_tried_again_and_what_was_lost_is_marked() {
    let place = Place::new();
    let blocked = place.path().join("folder");
    std::fs::write(&blocked, "").unwrap();
    let store = StoreHandle::start_with(&blocked, LIMITS, Start::default(), RETRY);
    let (why, help) = unavailable(&store);
    assert!(why.starts_with("cannot make the folder "), "{why}");
    assert!(help.contains("store.folder"), "{help}");
    let moments = seconds(0, 6);
    keep_all(&store, &moments[..3]);
    assert_eq!((store.status().frames_kept, store.status().frames_lost), (0, 3));
    std::fs::remove_file(&blocked).unwrap();
    until("the store is open", || store.status().state == StoreState::Ok);
    keep_all(&store, &moments[3..]);
    store.finish(Duration::from_secs(20));
    let mut reader = Reader::open(&blocked.join(FILE)).unwrap();
    assert_eq!(numbers(&mut reader), [3, 4, 5]);
    let marks = reader.marks(0, u64::MAX).unwrap();
    let mark = marks.iter().find(|mark| mark.kind == MarkKind::NotStored).unwrap();
    assert_eq!((mark.at_ms, mark.until_ms), (BEGIN_MS, Some(BEGIN_MS + 2000)));
    assert!(mark.text.starts_with("3 snapshots were not stored: cannot make"), "{}", mark.text);
}

#[test]
fn a_full_file_takes_no_more_and_loses_nothing_of_what_it_took() {
    let place = Place::new();
    let mut file = File::open(&place.file(), LIMITS, &Start::default()).unwrap();
    file.limit_pages(20).unwrap();
    let mut kept = 0;
    let error = loop {
        let moment = moment_of(kept, snapshot(kept, kept * 1000));
        match file.keep(&moment, None) {
            Ok(()) => kept += 1,
            Err(error) => break Unusable::from_any(error),
        }
    };
    assert!(kept > 5);
    let (why, help) = error.words(&place.file());
    assert!(why.contains("full"), "{why}");
    assert!(help.starts_with("free some space on the disk of "), "{help}");
    drop(file);
    place.keep(&seconds(kept, 3));
    assert_eq!(numbers(&mut place.reader()), (0..kept + 3).collect::<Vec<_>>());
}

#[test]
fn a_store_of_a_newer_version_is_left_as_it_is() {
    let place = Place::new();
    place.keep(&seconds(0, 3));
    let db = Connection::open(place.file()).unwrap();
    db.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA user_version = 999").unwrap();
    drop(db);
    let before = std::fs::read(place.file()).unwrap();
    let store = place.start();
    let (why, help) = unavailable(&store);
    assert!(why.contains("has layout 999, and this version knows "), "{why}");
    assert!(help.contains("newer infertop"), "{help}");
    keep_all(&store, &seconds(3, 2));
    store.finish(Duration::from_secs(20));
    assert_eq!(std::fs::read(place.file()).unwrap(), before);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    assert!(Reader::open(&place.file()).is_err());
}

#[test]
fn the_database_of_another_program_is_left_as_it_is() {
    let place = Place::new();
    Connection::open(place.file()).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    let before = std::fs::read(place.file()).unwrap();
    let store = place.start();
    assert!(unavailable(&store).0.contains("a database of another program"));
    store.finish(Duration::from_secs(20));
    assert_eq!(std::fs::read(place.file()).unwrap(), before);
}

/// A store that was damaged so is moved aside, and the next one works.
fn is_moved_aside(place: &Place, damage: impl FnOnce(&mut Vec<u8>)) {
    place.keep(&seconds(0, 70));
    let mut bytes = std::fs::read(place.file()).unwrap();
    damage(&mut bytes);
    std::fs::write(place.file(), &bytes).unwrap();
    let store = place.start();
    until("a new store is begun", || store.status().state == StoreState::Ok);
    keep_all(&store, &seconds(100, 3));
    let aside = store.status().moved_aside.expect("it does not say where the old one is");
    assert_eq!(std::fs::read(&aside).unwrap(), bytes);
    store.finish(Duration::from_secs(20));
    assert_eq!(numbers(&mut place.reader()), [100, 101, 102]);
    let marks = not_stored(place);
    assert!(marks[0].text.contains("is damaged: "), "{marks:?}");
    assert!(marks[0].text.contains(&aside), "{marks:?}");
}

#[test]
fn a_file_that_is_no_database_is_moved_aside() {
    is_moved_aside(&Place::new(), |bytes| bytes[..100].fill(b'x'));
}

#[test]
fn a_file_that_was_cut_is_moved_aside() {
    is_moved_aside(&Place::new(), |bytes| bytes.truncate(9000));
}

#[test]
fn a_file_with_bad_pages_is_moved_aside_and_of_several_the_newest_stays() {
    let place = Place::new();
    for at in 2..4 {
        is_moved_aside(&place, |bytes| bytes[at * 4096..(at + 1) * 4096].fill(0xa5));
        std::fs::remove_file(place.file()).unwrap();
    }
    let aside = std::fs::read_dir(place.path()).unwrap().filter(|entry| {
        entry.as_ref().unwrap().file_name().to_string_lossy().contains(".corrupt-")
    });
    assert_eq!(aside.count(), 1);
}

#[test]
fn a_damaged_chunk_is_told_and_harms_no_other() {
    let place = Place::new();
    place.keep(&seconds(0, 180));
    let db = Connection::open(place.file()).unwrap();
    let sql = "UPDATE chunks SET data = x'0102030405' WHERE from_ms = ?";
    assert_eq!(db.execute(sql, [(BEGIN_MS + 60_000).cast_signed()]).unwrap(), 1);
    drop(db);
    let mut reader = place.reader();
    assert_eq!(reader.at(BEGIN_MS + 10_000).unwrap().unwrap().number, 10);
    let error = format!("{:#}", reader.at(BEGIN_MS + 70_000).unwrap_err());
    assert!(error.starts_with("chunk 2 of the store cannot be read"), "{error}");
    assert_eq!(reader.at(BEGIN_MS + 130_000).unwrap().unwrap().number, 130);
}

#[test]
fn a_file_that_is_taken_away_is_begun_anew() {
    let place = Place::new();
    let store = place.start();
    keep_all(&store, &seconds(0, 3));
    std::fs::rename(place.file(), place.path().join("taken")).unwrap();
    keep_all(&store, &seconds(3, 3));
    assert_eq!(store.status().frames_lost, 0);
    store.finish(Duration::from_secs(20));
    assert_eq!(numbers(&mut place.reader()), [3, 4, 5]);
}

#[test]
fn someone_who_holds_the_file_holds_up_nobody_but_the_store() {
    let place = Place::new();
    let store = place.start();
    keep_all(&store, &seconds(0, 2));
    let db = Connection::open(place.file()).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    let moments = seconds(2, 200);
    let begin = Instant::now();
    for moment in &moments {
        store.keep(moment);
    }
    assert!(begin.elapsed() < Duration::from_millis(500), "{:?}", begin.elapsed());
    until(
        "the store says that it waits",
        || matches!(&store.status().state, StoreState::Unavailable { why, .. } if why.contains("locked")),
    );
    db.execute_batch("COMMIT").unwrap();
    until("the store takes snapshots again", || store.status().state == StoreState::Ok);
    keep_all(&store, &seconds(300, 2));
    let status = store.status();
    store.finish(Duration::from_secs(20));
    assert_eq!(status.frames_kept + status.frames_lost, 204);
    assert!(status.frames_lost > 100, "{status:?}");
    let stored = numbers(&mut place.reader());
    assert_eq!(stored.len() as u64, status.frames_kept);
    assert_eq!((&stored[..2], stored.last()), (&[0, 1][..], Some(&301)));
    let marked: u64 = not_stored(&place)
        .iter()
        .map(|mark| mark.text.split(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(marked, status.frames_lost);
}

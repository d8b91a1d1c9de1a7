//! A daemon that is killed at any instant loses at most the last two seconds, and what it leaves is
//! whole. `INFERTOP_KILLS` says how often; each round is another instant.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use crate::daemon_home::Home;
use crate::gpu_box::GpuBox;
use crate::running_daemon::Daemon;
use crate::waiting::{children, pause, until_gone};

/// Rounds unless more are asked for.
const ROUNDS: u32 = 20;
/// What may be lost.
const MOST_LOST_MS: u64 = 2000;

/// Instants that differ from run to run; a failure names its seed.
struct Instants(u64);

impl Instants {
    fn new() -> (u64, Self) {
        let micros = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_micros();
        let seed = u64::from(std::process::id()) << 20 | u64::from(micros);
        (seed, Self(seed))
    }

    fn next(&mut self, below_ms: u64) -> Duration {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis((self.0 >> 33) % below_ms)
    }
}

/// A snapshot as the store knows it: when it was taken, and its number in its daemon.
type Tick = (u64, u64);

#[test]
fn a_daemon_that_is_killed_leaves_a_whole_store_without_the_last_two_seconds_at_most() {
    let rounds = rounds();
    let gpu_box = GpuBox::of("eight-h100");
    let home = Home::new();
    home.configure("interval_ms = 250\n");
    let (seed, mut instants) = Instants::new();
    let (mut known, mut starts, mut seen_in) = (Vec::new(), 0, 0);
    for round in 0..rounds {
        // One in four while it opens the store and moves into a chunk what the last one left.
        let after = instants.next(if round % 4 == 0 { 200 } else { 2500 });
        let begin_ms = u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
        let (daemon, seen_ms) = kill_after(&home, &gpu_box, after);
        seen_in += u32::from(seen_ms.is_some());
        if !daemon.store().exists() {
            continue;
        }
        let told =
            |what: &str| format!("round {round}, seed {seed}, killed after {after:?}: {what}");
        let (ticks, daemons) = look(&daemon.store(), &known, &told);
        if let Some(seen_ms) = seen_ms {
            // Nobody sampled before this daemon.
            let newest_ms = ticks.last().map_or(0, |tick| tick.0).max(begin_ms);
            let lost_ms = seen_ms.saturating_sub(newest_ms);
            assert!(lost_ms <= MOST_LOST_MS, "{}", told(&format!("{lost_ms} ms are lost")));
        }
        assert!(daemons >= starts, "{}", told("a daemon's start is no more"));
        (known, starts) = (ticks, daemons);
    }
    println!(
        "killed {rounds} times, {seen_in} of them after snapshots were seen: {} are there",
        known.len()
    );
    assert!(seen_in > rounds / 4, "too few rounds had a snapshot: {seen_in} of {rounds}");
    // The next daemon goes on with it.
    let daemon = home.start(&gpu_box, &[]);
    daemon.wait_for("/v1/health", "a store that works", |health| {
        health["store"]["state"]["state"] == "ok"
            && health["store"]["moved_aside"].is_null()
            && health["store"]["frames_kept"].as_u64() > Some(2)
    });
    // Every snapshot that is left can be read.
    let (store, copy) = (daemon.store(), home.path("copy.db"));
    let paths = [copy.to_str().unwrap(), store.to_str().unwrap()];
    let output = gpu_box.run(&["export", paths[0], "--from", "-1d", "--store", paths[1]]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let exported = said.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    assert!(exported > Some(known.len()), "{} snapshots are there: {said}", known.len());
}

/// A minute of snapshots in a tenth of a second: chunks, roll-ups, hours and checkpoints without end,
/// and the kill falls among them.
#[test]
fn a_daemon_that_is_killed_while_it_moves_minutes_loses_nothing_that_it_has_stored() {
    let program = Path::new(env!("CARGO_BIN_EXE_infertop"));
    let day = program.with_file_name("examples").join("day");
    if !day.is_file() {
        eprintln!("skipped: there is no {}; cargo build --examples makes it", day.display());
        return;
    }
    let rounds = rounds();
    let gpu_box = GpuBox::of("empty");
    let home = Home::new();
    let (seed, mut instants) = Instants::new();
    let (mut known, mut minutes) = (Vec::new(), 0);
    for round in 0..rounds {
        let after = instants.next(3000);
        let begin = Instant::now();
        let arguments = ["--sampler-program", day.to_str().unwrap()];
        let mut daemon = home.spawn(&gpu_box, &mut home.command(&gpu_box, &arguments));
        let mut kept = 0;
        while begin.elapsed() < after {
            if daemon.socket().exists() && daemon.answers() {
                kept = daemon.json("/v1/self")["store"]["frames_kept"].as_u64().unwrap();
            }
            pause();
        }
        let samplers = children(daemon.pid());
        daemon.child.kill().unwrap();
        daemon.wait();
        samplers.into_iter().for_each(until_gone);
        if !daemon.store().exists() {
            continue;
        }
        let told =
            |what: &str| format!("round {round}, seed {seed}, killed after {after:?}: {what}");
        let (ticks, _) = look(&daemon.store(), &known, &told);
        let more = (ticks.len() - known.len()) as u64;
        assert!(more >= kept, "{}", told(&format!("{kept} were stored, {more} are there")));
        (known, minutes) = (ticks, minutes + more / 60);
    }
    println!("killed {rounds} times in {minutes} minutes of snapshots: {} are there", known.len());
}

fn rounds() -> u32 {
    std::env::var("INFERTOP_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(ROUNDS)
}

/// Starts a daemon and kills it after a while. Also when the newest snapshot was taken that it showed.
fn kill_after(home: &Home, gpu_box: &GpuBox, after: Duration) -> (Daemon, Option<u64>) {
    let begin = Instant::now();
    let mut daemon = home.spawn(gpu_box, &mut home.command(gpu_box, &[]));
    let mut seen_ms = None;
    while begin.elapsed() < after {
        if daemon.socket().exists() && daemon.answers() {
            let snapshot = daemon.get("/v1/snapshot");
            if snapshot.status == 200 {
                seen_ms = snapshot.json()["taken_at_ms"].as_u64();
            }
        }
        pause();
    }
    let samplers = children(daemon.pid());
    daemon.child.kill().unwrap();
    daemon.wait();
    samplers.into_iter().for_each(until_gone);
    (daemon, seen_ms)
}

/// Looks through a copy of the store, as it was left: its snapshots in the order in which they were
/// written, which go on without a hole where they were known to end, and how many daemons have noted
/// their start.
fn look(store: &Path, known: &[Tick], told: &impl Fn(&str) -> String) -> (Vec<Tick>, u64) {
    // Whoever opens the file mends it; the next daemon shall have to do so itself.
    let copy = tempfile::tempdir().unwrap();
    let file = copy.path().join("infertop.db");
    std::fs::copy(store, &file).unwrap();
    let log = store.with_extension("db-wal");
    if log.exists() {
        std::fs::copy(log, file.with_extension("db-wal")).unwrap();
    }
    let db = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    let answer: String = db.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(answer, "ok", "{}", told("the store is damaged"));
    if count(&db, "SELECT count(*) FROM sqlite_schema WHERE name = 'starts'") == 0 {
        // Killed while the file was made.
        return (Vec::new(), 0);
    }
    let mut ticks = Vec::new();
    let mut chunks = db.prepare("SELECT frames FROM chunks ORDER BY id").unwrap();
    let chunks = chunks.query_map((), |row| row.get::<_, Vec<u8>>(0)).unwrap();
    for chunk in chunks {
        ticks.extend(times(&chunk.unwrap()));
    }
    let mut tail = db.prepare("SELECT at_ms, number FROM tail ORDER BY id").unwrap();
    let tail =
        tail.query_map((), |row| Ok((unsigned(row.get(0)?), unsigned(row.get(1)?)))).unwrap();
    ticks.extend(tail.map(Result::unwrap));
    assert!(ticks.starts_with(known), "{}", told("what was there before is no more"));
    for two in ticks.windows(2) {
        // A number follows the one before, or begins anew with a daemon.
        let follows = two[1].1 == two[0].1 + 1 || two[1].1 == 1;
        assert!(follows, "{}", told(&format!("a hole: {two:?}")));
    }
    (ticks, count(&db, "SELECT count(*) FROM starts"))
}

fn count(db: &Connection, sql: &str) -> u64 {
    unsigned(db.query_row(sql, (), |row| row.get(0)).unwrap())
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap()
}

/// The times beside a chunk: differences of time and number, zigzag, seven bits a byte.
fn times(mut bytes: &[u8]) -> Vec<Tick> {
    let mut number = || {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (byte, rest) = bytes.split_first()?;
            bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some((number >> 1) ^ (number & 1).wrapping_neg());
            }
        }
    };
    let (mut ticks, mut last) = (Vec::new(), (0_u64, 0_u64));
    while let (Some(at_ms), Some(count)) = (number(), number()) {
        last = (last.0.wrapping_add(at_ms), last.1.wrapping_add(count));
        ticks.push(last);
    }
    ticks
}

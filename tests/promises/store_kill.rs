//! A daemon that is killed at any instant loses at most the last two seconds, and what it leaves is
//! whole. `INFERTOP_KILLS` says how often; each round is another instant.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use crate::daemon_home::Home;
use crate::gpu_box::GpuBox;
use crate::waiting::{pause, until_gone};

/// Rounds unless more are asked for.
const ROUNDS: u32 = 12;
/// Between two snapshots.
const INTERVAL_MS: u64 = 250;
/// What may be lost.
const MOST_LOST_MS: u64 = 2000;

/// Instants that differ from run to run; a failure names its seed.
struct Instants(u64);

impl Instants {
    fn next(&mut self) -> Duration {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis((self.0 >> 33) % 2500)
    }
}

#[test]
fn a_daemon_that_is_killed_leaves_a_whole_store_without_the_last_two_seconds_at_most() {
    let rounds =
        std::env::var("INFERTOP_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(ROUNDS);
    let gpu_box = GpuBox::of("eight-h100");
    let home = Home::new();
    home.configure(&format!("interval_ms = {INTERVAL_MS}\n"));
    let begun_with = u64::from(std::process::id()) << 20
        | u64::from(std::time::UNIX_EPOCH.elapsed().unwrap().subsec_micros());
    let mut instants = Instants(begun_with);
    let (mut sure, mut seen_in) = (0, 0);
    for round in 0..rounds {
        let after = instants.next();
        let begin = Instant::now();
        let mut daemon = home.spawn(&gpu_box, &mut home.command(&gpu_box, &[]));
        let mut seen = None;
        while begin.elapsed() < after {
            if daemon.socket().exists() && daemon.answers() {
                let snapshot = daemon.get("/v1/snapshot");
                if snapshot.status == 200 {
                    let number = snapshot.head.lines().find_map(|line| {
                        line.to_ascii_lowercase().strip_prefix("infertop-number: ")?.parse().ok()
                    });
                    seen = snapshot.json()["taken_at_ms"].as_u64().zip(number);
                }
            }
            pause();
        }
        let sampler = crate::waiting::children(daemon.pid());
        daemon.child.kill().unwrap();
        daemon.wait();
        sampler.into_iter().for_each(until_gone);
        if !daemon.store().exists() {
            continue;
        }
        let told = format!("round {round}, seed {begun_with}, killed after {after:?}");
        let newest_ms = newest(&daemon.store(), &told);
        if let Some((seen_ms, number)) = seen {
            seen_in += 1;
            let lost_ms = seen_ms.saturating_sub(newest_ms);
            assert!(lost_ms <= MOST_LOST_MS, "{told}: {lost_ms} ms are lost");
            let number: u64 = number;
            sure += number.saturating_sub(MOST_LOST_MS / INTERVAL_MS);
        }
    }
    println!("killed {rounds} times, {seen_in} of them after snapshots were seen");
    assert!(seen_in > rounds / 4, "too few rounds had a snapshot: {seen_in} of {rounds}");
    // The next daemon goes on with it.
    let daemon = home.start(&gpu_box, &[]);
    daemon.wait_for("/v1/health", "a store that works", |health| {
        health["store"]["state"]["state"] == "ok"
            && health["store"]["moved_aside"].is_null()
            && health["store"]["frames_kept"].as_u64() > Some(2)
    });
    // Every snapshot that is left can be read.
    let copy = home.path("copy.db");
    let (store, copy) = (daemon.store(), copy.to_str().unwrap());
    let output =
        gpu_box.run(&["export", copy, "--from", "-1d", "--store", store.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let exported = said.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    assert!(exported >= Some(sure), "{sure} snapshots were seen and kept: {said}");
}

const TABLES: &str = "SELECT count(*) FROM sqlite_schema WHERE name IN ('tail', 'chunks')";

const NEWEST: &str = "SELECT max(at_ms) FROM
    (SELECT at_ms FROM tail UNION ALL SELECT to_ms AS at_ms FROM chunks)";

/// When the newest snapshot was taken, after a check of the whole file.
fn newest(store: &Path, told: &str) -> u64 {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(store, flags).unwrap();
    let verdict: String = db.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok", "{told}");
    let tables: i64 = db.query_row(TABLES, (), |row| row.get(0)).unwrap();
    if tables < 2 {
        // Killed while the file was made.
        return 0;
    }
    let newest: Option<i64> = db.query_row(NEWEST, (), |row| row.get(0)).unwrap();
    newest.map_or(0, i64::cast_unsigned)
}

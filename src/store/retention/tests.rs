use super::*;

fn db() -> Connection {
    let mut db = Connection::open_in_memory().unwrap();
    super::super::schema::migrate(&mut db, 0).unwrap();
    db
}

fn count(db: &Connection, table: &str) -> i64 {
    db.query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get(0)).unwrap()
}

const LIMITS: Limits = Limits { raw_days: 1, rollup_days: 2, max_bytes: u64::MAX };
const DAY: i64 = 86_400_000;

#[test]
fn a_step_takes_no_more_than_a_few_and_the_oldest_first() {
    let mut db = db();
    for n in 0..100_i64 {
        let sql = "INSERT INTO chunks (from_ms, to_ms, frames, data) VALUES (?, ?, x'', x'')";
        db.execute(sql, [n * 60_000, n * 60_000 + 59_000]).unwrap();
    }
    let now_ms = u64::try_from(DAY + 50 * 60_000).unwrap();
    for left in [90, 80, 70, 60, 50, 50] {
        step(&mut db, LIMITS, now_ms).unwrap();
        assert_eq!(count(&db, "chunks"), left);
    }
    let oldest: i64 =
        db.query_row("SELECT min(from_ms) FROM chunks", (), |row| row.get(0)).unwrap();
    assert_eq!(oldest, 50 * 60_000);
}

#[test]
fn roll_ups_and_what_happened_go_later_and_our_own_start_never() {
    let mut db = db();
    for n in 0..5 {
        db.execute("INSERT INTO hours VALUES (1, ?, x'')", [n * 24]).unwrap();
        let sql = "INSERT INTO marks (at_ms, kind, severity, subject, text)
             VALUES (?, 'xid', 'info', '', '')";
        db.execute(sql, [n * DAY]).unwrap();
    }
    let sql = "INSERT INTO starts (version, boot_id, pid, at_ms) VALUES ('1', '', 1, 0)";
    db.execute(sql, ()).unwrap();
    step(&mut db, LIMITS, u64::try_from(4 * DAY).unwrap()).unwrap();
    assert_eq!((count(&db, "hours"), count(&db, "marks"), count(&db, "starts")), (3, 3, 1));
}

use probes::kernel_log::parse_line;
use probes::nvml::events::Xid;

use super::*;

fn db() -> Connection {
    let mut db = Connection::open_in_memory().unwrap();
    super::super::schema::migrate(&mut db, 0).unwrap();
    db
}

fn told(db: &Connection) -> Vec<(u64, String, String)> {
    let mut rows = db.prepare("SELECT at_ms, subject, text FROM marks ORDER BY id").unwrap();
    let rows = rows
        .query_map((), |row| {
            let at_ms: i64 = row.get(0)?;
            Ok((at_ms.cast_unsigned(), row.get(1)?, row.get(2)?))
        })
        .unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn snapshot(sequence: u64) -> Snapshot {
    let gpu = Gpu { index: 3, pci: "0000:9b:00.0".to_string().into(), ..Gpu::default() };
    Snapshot {
        sequence,
        taken_at_ms: 1_000_000 + sequence * 1000,
        gpus: vec![gpu],
        ..Snapshot::default()
    }
}

fn line(code: u32, at_ms: u64) -> KernelLine {
    let text = format!("NVRM: Xid (PCI:0000:9b:00): {code}, pid=7, name=x, something");
    KernelLine { at_ms: at_ms.into(), ..parse_line(&text).unwrap() }
}

#[test]
fn an_error_that_comes_through_both_doors_is_one_mark() {
    let db = db();
    let mut events = Events::default();
    let mut now = snapshot(1);
    now.gpus[0].xids.push(Xid { code: 79, at_ms: 1_001_000, gpu_instance: None });
    events.tell(&db, &now).unwrap();
    now.sequence = 2;
    now.kernel_log.lines.push(line(79, 1_000_400));
    events.tell(&db, &now).unwrap();
    events.tell(&db, &now).unwrap();
    let wanted = "Xid 79: GPU has fallen off the bus".to_string();
    assert_eq!(told(&db), [(1_001_000, "GPU 3".to_string(), wanted.clone())]);
    // The same an hour later is another.
    now.kernel_log.lines.push(line(79, 4_600_000));
    events.tell(&db, &now).unwrap();
    assert_eq!(told(&db).len(), 2);
}

#[test]
fn a_sampler_that_starts_anew_tells_nothing_twice_even_when_it_dates_it_anew() {
    let db = db();
    let mut now = snapshot(1);
    now.kernel_log.lines.push(line(31, 500_000));
    Events::default().tell(&db, &now).unwrap();
    now.kernel_log.lines[0].at_ms = 503_000.into();
    Events::default().tell(&db, &now).unwrap();
    assert_eq!(told(&db).len(), 1);
    assert_eq!(told(&db)[0].0, 500_000);
}

#[test]
fn another_driver_is_told_across_restarts_and_so_is_one_that_was_taken_anew() {
    let db = db();
    let with = |sequence, version: &str, library: &str, generation| {
        let mut now = snapshot(sequence);
        now.driver.version = version.to_string().into();
        now.driver.nvml_version = library.to_string().into();
        now.generation = generation;
        now
    };
    let mut events = Events::default();
    events.tell(&db, &snapshot(1)).unwrap();
    events.tell(&db, &with(2, "590.48.01", "13.590.48.01", 1)).unwrap();
    events.tell(&db, &with(3, "590.48.01", "13.590.48.01", 2)).unwrap();
    let mut events = Events::default();
    events.tell(&db, &with(1, "595.45.04", "13.595.45.04", 1)).unwrap();
    events.tell(&db, &with(2, "595.45.04", "13.595.45.04", 1)).unwrap();
    let texts: Vec<_> = told(&db).into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(
        texts,
        [
            "the driver was taken anew",
            "driver 595.45.04, library 13.595.45.04 instead of driver 590.48.01, library 13.590.48.01",
        ]
    );
}

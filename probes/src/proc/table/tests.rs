//! The table on a procfs of plain files.

use std::io::Write as _;

use super::super::testing::{Fake, FakeBox, gpu};
use super::*;

/// One tick a second, until what the threads read has come in.
fn settle(table: &mut ProcessTable, now_ms: &mut u64, gpus: &[Gpu]) -> Vec<Process> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        *now_ms += 1000;
        let rows = table.tick(*now_ms, gpus);
        let here = |row: &&Process| row.exists.value().is_some();
        let waits = |row: &Process| {
            row.libraries == Reading::default()
                || row.command == Reading::default()
                || row.listening_ports == Reading::default()
        };
        if !rows.iter().filter(here).any(waits) {
            return rows;
        }
        assert!(Instant::now() < deadline, "still waiting for {rows:?}");
        std::thread::yield_now();
    }
}

/// The same, until so many rows are there: the sweep has its own pace.
fn sweep_until(
    table: &mut ProcessTable,
    now_ms: &mut u64,
    gpus: &[Gpu],
    rows: usize,
) -> Vec<Process> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while table.tick(*now_ms, gpus).len() < rows || !table.coverage().complete {
        assert!(Instant::now() < deadline, "the sweep found too little");
        *now_ms += 1000;
    }
    settle(table, now_ms, gpus)
}

fn find(rows: &[Process], pid: u32) -> &Process {
    rows.iter().find(|row| row.pid == pid).expect("the process has a row")
}

#[test]
fn a_listed_process_is_read_in_full() {
    let fake = FakeBox::new();
    fake.process(&Fake { pid: 90, comm: b"bash", ..Fake::default() });
    fake.put("proc/90/cmdline", b"bash\0");
    fake.process(&Fake { pid: 100, parent: 90, ..Fake::default() });
    fake.link(100, "fd/3", "/dev/nvidia0");
    fake.link(100, "fd/4", "/dev/nvidia0");
    fake.link(100, "fd/5", "socket:[4242]");
    let mut table = ProcessTable::new(fake.machine());
    let rows = settle(&mut table, &mut 1_700_000_100_000, &[gpu(0, &[(100, 7)])]);
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(row.exists, true.into());
    assert_eq!(row.comm.text(), "python3");
    assert_eq!(row.command.text(), "vllm serve m --api-key [redacted]");
    assert_eq!(row.secret_exposed, true.into());
    assert_eq!(row.engine.text(), "vLLM server");
    assert_eq!((row.user.text(), row.uid.get()), ("vllm", Some(998)));
    assert_eq!(row.unit.text(), "vllm.service");
    assert_eq!(row.started_at_ms, 1_700_000_050_000.into());
    assert_eq!((row.rss_bytes.get(), row.pinned_bytes.get()), (Some(8 << 20), Some(64 << 10)));
    assert_eq!(row.listening_ports, vec![8000].into());
    assert_eq!(row.device_files.value().unwrap()[0].count, 2);
    assert_eq!(row.libraries.value().unwrap()[0].version, "570.86.15");
    assert_eq!(row.wchan.text(), "futex_do_wait");
    assert_eq!(row.threads, 3.into());
    let above: Vec<_> = row.ancestors.iter().map(|a| (a.pid, a.comm.as_str())).collect();
    assert_eq!(above, [(90, "bash"), (1, "systemd")]);
    assert_eq!(row.gpus[0].gpu_bytes, 7.into());
}

#[test]
fn a_pid_that_nobody_knows_stays_as_a_row() {
    let fake = FakeBox::new();
    let mut table = ProcessTable::new(fake.machine());
    let rows = table.tick(1_000, &[gpu(0, &[(4711, 7)])]);
    assert_eq!(rows[0].pid, 4711);
    assert!(rows[0].is_gone());
    for why in [rows[0].exists.absence(), rows[0].user.absence(), rows[0].libraries.absence()] {
        let why = why.unwrap();
        assert!(matches!(why, Absence::NotHere { .. }), "never seen is not ended: {why}");
        assert!(why.to_string().contains("ended, or in another PID namespace"), "{why}");
    }
    assert_eq!(rows[0].gpu_bytes(), 7);
    assert!(table.tick(2_000, &[gpu(0, &[])]).is_empty());
}

#[test]
fn where_processes_are_hidden_a_strange_pid_may_be_one_of_them() {
    let fake = FakeBox::new();
    fake.remove("proc/1");
    fake.remove("proc/2");
    let rows = ProcessTable::new(fake.machine()).tick(1_000, &[gpu(0, &[(4711, 7)])]);
    assert!(rows[0].is_gone());
    let why = rows[0].exists.absence().unwrap().to_string();
    assert!(why.contains("hides other users' processes"), "{why}");
}

#[test]
fn a_zombie_keeps_the_command_line_that_it_had() {
    let fake = FakeBox::new();
    fake.process(&Fake::default());
    let mut table = ProcessTable::new(fake.machine());
    let mut now = 1_000;
    let gpus = [gpu(0, &[(100, 7)])];
    settle(&mut table, &mut now, &gpus);
    fake.process(&Fake { state: 'Z', ..Fake::default() });
    fake.put("proc/100/cmdline", b"");
    for _ in 0..20 {
        now += 10_000;
        let rows = table.tick(now, &gpus);
        assert_eq!(rows[0].command.text(), "vllm serve m --api-key [redacted]");
    }
}

#[test]
fn inside_a_container_a_strange_pid_may_live_elsewhere() {
    let fake = FakeBox::new();
    fake.remove("proc/2");
    // Same number, other process: a shell that has nothing to do with a GPU.
    fake.process(&Fake { pid: 37, comm: b"bash", ..Fake::default() });
    fake.put("proc/37/maps", b"7f00-7f01 r-xp 0 0:0 1 /usr/lib/libc.so.6\n");
    let mut table = ProcessTable::new(fake.machine());
    let mut now = 1_000;
    let gpus = [gpu(0, &[(4711, 7), (37, 5)])];
    settle(&mut table, &mut now, &gpus);
    for _ in 0..3 {
        now += 1000;
        let rows = table.tick(now, &gpus);
        assert_eq!(rows.len(), 2);
        for pid in [4711, 37] {
            let row = find(&rows, pid);
            let reasons = [
                row.exists.absence(),
                row.user.absence(),
                row.rss_bytes.absence(),
                row.command.absence(),
            ];
            for why in reasons.map(|why| why.unwrap().to_string()) {
                assert!(why.contains("runs elsewhere"), "{why}");
            }
        }
        assert_eq!(find(&rows, 37).comm.text(), "");
    }
}

#[test]
fn numbers_of_our_own_container_are_translated_on_the_hosts_procfs() {
    let fake = FakeBox::new();
    fake.process(&Fake { pid: 5000, comm: b"infertop", ..Fake::default() });
    fake.put("proc/5000/status", b"Uid:\t0\t0\t0\t0\nNSpid:\t5000\t9\n");
    fake.link(5000, "ns/pid", "pid:[4026532999]");
    std::os::unix::fs::symlink("5000", fake.path("proc/self")).unwrap();
    fake.process(&Fake { pid: 5001, comm: b"python3", ..Fake::default() });
    fake.put("proc/5001/status", b"Uid:\t0\t0\t0\t0\nNSpid:\t5001\t37\n");
    fake.link(5001, "ns/pid", "pid:[4026532999]");
    fake.link(5001, "fd/3", "/dev/nvidia0");
    let mut table = ProcessTable::new(fake.machine());
    let mut now = 1_000;
    sweep_until(&mut table, &mut now, &[gpu(0, &[])], 1);
    now += 1000;
    let rows = table.tick(now, &[gpu(0, &[(37, 7)])]);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].pid, rows[0].gpu_bytes()), (5001, 7));
}

#[test]
fn a_process_that_ended_keeps_its_name_while_the_driver_lists_it() {
    let fake = FakeBox::new();
    fake.process(&Fake { comm: b"VLLM::Worker_TP", ..Fake::default() });
    let mut table = ProcessTable::new(fake.machine());
    let mut now = 1_000;
    let gpus = [gpu(0, &[(100, 7)])];
    settle(&mut table, &mut now, &gpus);
    fake.remove("proc/100");
    for _ in 0..3 {
        now += 1000;
        let rows = table.tick(now, &gpus);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].exists, Reading::Absent(Absence::Gone));
        assert_eq!(rows[0].comm.text(), "VLLM::Worker_TP");
        assert_eq!(rows[0].state, Reading::Absent(Absence::Gone));
        assert_eq!(rows[0].gpu_bytes(), 7);
    }
    assert!(table.tick(now + 1000, &[gpu(0, &[])]).is_empty());
}

#[test]
fn a_reused_number_is_another_process() {
    let fake = FakeBox::new();
    fake.process(&Fake::default());
    let mut table = ProcessTable::new(fake.machine());
    let mut now = 1_000;
    let gpus = [gpu(0, &[(100, 7)])];
    settle(&mut table, &mut now, &gpus);
    fake.remove("proc/100");
    fake.process(&Fake { comm: b"sleep", start: 9_000, cpu_ticks: 1, ..Fake::default() });
    fake.put("proc/100/cmdline", b"sleep\x001\0");
    let rows = settle(&mut table, &mut now, &gpus);
    assert_eq!(rows[0].start_ticks, 9_000.into());
    assert_eq!((rows[0].comm.text(), rows[0].command.text()), ("sleep", "sleep 1"));
    assert!(rows[0].cpu_ratio.get().is_none_or(|ratio| ratio < 0.1));
}

#[test]
fn a_holder_that_the_driver_does_not_list_is_found_and_forgotten() {
    let fake = FakeBox::new();
    fake.process(&Fake { comm: b"nvidia-persiste", ..Fake::default() });
    fake.put("proc/100/maps", b"");
    fake.link(100, "fd/3", "/dev/nvidia1");
    fake.process(&Fake { pid: 101, ..Fake::default() });
    let mut table = ProcessTable::new(fake.machine());
    let mut now = 1_000;
    let rows = sweep_until(&mut table, &mut now, &[gpu(0, &[])], 1);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].gpus[0].gpu_index, rows[0].gpus[0].kind.as_str()), (1, "open"));
    assert!(rows[0].gpus[0].gpu_bytes.value().is_none());
    let coverage = table.coverage();
    assert_eq!((coverage.processes, coverage.denied, coverage.complete), (3, 0, true));
    fake.remove("proc/100/fd/3");
    now += 20_000;
    table.tick(now, &[gpu(0, &[])]);
    assert!(table.tick(now + 1000, &[gpu(0, &[])]).is_empty());
}

#[test]
fn a_process_that_opens_a_gpu_later_is_found_within_the_round() {
    let fake = FakeBox::new();
    for pid in 100..200 {
        fake.process(&Fake { pid, ..Fake::default() });
    }
    let mut table = ProcessTable::new(fake.machine());
    let gpus = [gpu(0, &[])];
    assert!(table.tick(1_000, &gpus).is_empty());
    fake.link(150, "fd/3", "/dev/nvidiactl");
    let found = (2..70).find(|second| !table.tick(second * 1000, &gpus).is_empty());
    assert!(found.is_some());
    // In haste it takes a sixth of that.
    fake.link(160, "fd/3", "/dev/nvidiactl");
    table.hurry();
    let found = (71..84).find(|second| table.tick(second * 1000, &gpus).len() > 1);
    assert!(found.is_some());
}

#[test]
fn a_zombies_threads_are_asked_for_their_files() {
    let fake = FakeBox::new();
    fake.process(&Fake { state: 'Z', threads: 2, ..Fake::default() });
    fake.put("proc/100/task/100/comm", b"");
    fake.put("proc/100/task/101/comm", b"");
    fake.link(100, "task/100/fd/../comm2", "x");
    fake.link(100, "task/101/fd/9", "/dev/nvidia0");
    let mut table = ProcessTable::new(fake.machine());
    let mut now = 1_000;
    let rows = sweep_until(&mut table, &mut now, &[gpu(0, &[])], 1);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].state.text(), "Z");
    assert_eq!(rows[0].rss_bytes.value(), None);
    let since = rows[0].state_since_ms.get();
    let rows = table.tick(now + 5000, &[gpu(0, &[])]);
    assert_eq!(rows[0].state_since_ms.get(), since);
}

#[test]
fn shares_states_and_parents_follow_the_ticks() {
    let fake = FakeBox::new();
    fake.process(&Fake { pid: 90, comm: b"vllm", ..Fake::default() });
    fake.process(&Fake { parent: 90, ..Fake::default() });
    let mut table = ProcessTable::new(fake.machine());
    let gpus = [gpu(0, &[(100, 7)])];
    let rows = table.tick(10_000, &gpus);
    assert_eq!(rows[0].cpu_ratio, Reading::Absent(Absence::NoData));
    fake.process(&Fake { parent: 1, state: 'D', cpu_ticks: 250, ..Fake::default() });
    fake.put("proc/100/wchan", b"rpcRmApiControl_GSP");
    let rows = table.tick(11_000, &gpus);
    assert_eq!(rows[0].cpu_ratio, 1.5.into());
    assert_eq!((rows[0].state.text(), rows[0].state_since_ms.get()), ("D", Some(11_000)));
    assert_eq!(rows[0].wchan.text(), "rpcRmApiControl_GSP");
    assert_eq!(rows[0].ancestors.len(), 1);
    // While it hangs, where is read at each tick, and once more after that.
    fake.put("proc/100/wchan", b"os_acquire_rwlock_write");
    assert_eq!(table.tick(11_200, &gpus)[0].wchan.text(), "os_acquire_rwlock_write");
    fake.process(&Fake { parent: 1, state: 'S', cpu_ticks: 250, ..Fake::default() });
    fake.put("proc/100/wchan", b"futex_do_wait");
    assert_eq!(table.tick(11_400, &gpus)[0].wchan.text(), "futex_do_wait");
    fake.put("proc/100/wchan", b"do_epoll_wait");
    assert_eq!(table.tick(11_600, &gpus)[0].wchan.text(), "futex_do_wait");
    // The clock was set back: no share, and no panic.
    let rows = table.tick(5_000, &gpus);
    assert_eq!(rows[0].cpu_ratio, Reading::Absent(Absence::NoData));
}

#[test]
fn most_memory_comes_first_then_the_lower_number() {
    let fake = FakeBox::new();
    for pid in [100, 101, 102] {
        fake.process(&Fake { pid, ..Fake::default() });
    }
    let mut table = ProcessTable::new(fake.machine());
    let rows = table.tick(1_000, &[gpu(0, &[(102, 5), (100, 5)]), gpu(1, &[(101, 9), (7, 6)])]);
    let order: Vec<u32> = rows.iter().map(|row| row.pid).collect();
    assert_eq!(order, [101, 7, 100, 102]);
}

#[test]
fn garbage_in_every_file_costs_readings_and_no_rows() {
    let fake = FakeBox::new();
    fake.process(&Fake { comm: b"\xff\xfe) (\n", ..Fake::default() });
    let garbage: Vec<u8> = (0..2000_u32).map(|n| n.wrapping_mul(197).to_le_bytes()[0]).collect();
    for name in ["status", "cgroup", "cmdline", "maps", "wchan", "net/tcp"] {
        fake.put(&format!("proc/100/{name}"), &garbage);
    }
    fake.link(100, "fd/3", "/dev/nvidia0\u{1b}[2J");
    fake.put("proc/stat", &garbage);
    fake.put("proc/loadavg", &garbage);
    fake.put("root/etc/passwd", &garbage);
    let mut table = ProcessTable::new(fake.machine());
    let mut now = 1_000;
    let rows = settle(&mut table, &mut now, &[gpu(0, &[(100, 7)])]);
    assert_eq!(rows[0].comm.text(), "\u{fffd}\u{fffd}) (\u{fffd}");
    assert!(rows[0].started_at_ms.value().is_none());
    assert!(rows[0].device_files.value().unwrap().is_empty());
    fake.put("proc/100/stat", &garbage);
    let rows = table.tick(now + 1000, &[gpu(0, &[(100, 7)])]);
    assert!(matches!(rows[0].exists.absence(), Some(Absence::Failed { .. })));
}

#[test]
fn files_that_are_not_there_are_reasons() {
    let fake = FakeBox::new();
    fake.process(&Fake::default());
    for name in ["status", "cgroup", "cmdline", "maps", "wchan", "net", "ns", "fd"] {
        fake.remove(&format!("proc/100/{name}"));
    }
    let mut table = ProcessTable::new(fake.machine());
    let rows = settle(&mut table, &mut 1_000, &[gpu(0, &[(100, 7)])]);
    let row = &rows[0];
    assert_eq!(row.uid, Reading::UNSUPPORTED);
    assert_eq!(row.command, Reading::UNSUPPORTED);
    assert_eq!(row.container, Reading::UNSUPPORTED);
    assert_eq!(row.device_files, Reading::UNSUPPORTED);
    assert_eq!(row.libraries, Reading::UNSUPPORTED);
}

#[test]
fn without_procfs_the_drivers_lists_remain() {
    let machine = Machine { procfs: "/nonexistent/proc".into(), ..Machine::default() };
    let rows = ProcessTable::new(machine).tick(1_000, &[gpu(0, &[(100, 7)])]);
    assert_eq!((rows[0].pid, rows[0].gpu_bytes()), (100, 7));
    assert!(rows[0].exists.absence().is_some());
}

#[test]
fn a_command_line_that_never_comes_is_no_answer_and_holds_up_nobody() {
    let fake = FakeBox::new();
    for pid in 100..108 {
        fake.process(&Fake { pid, comm: b"VLLM::EngineCor", ..Fake::default() });
    }
    fake.fifo("proc/100/cmdline");
    fake.fifo("proc/101/maps");
    let deadline = Duration::from_millis(50);
    let mut table = ProcessTable::new(fake.machine()).with_deadline(deadline);
    let list: Vec<(u32, u64)> = (100..108).map(|pid| (pid, 1)).collect();
    let gpus = [gpu(0, &list)];
    let mut now = 1_000;
    let rows = settle(&mut table, &mut now, &gpus);
    assert_eq!(find(&rows, 100).command, Reading::Absent(Absence::NoAnswer));
    assert_eq!(find(&rows, 100).secret_exposed, Reading::Absent(Absence::NoAnswer));
    assert_eq!(find(&rows, 100).engine.text(), "vLLM engine core");
    assert_eq!(find(&rows, 101).libraries, Reading::Absent(Absence::NoAnswer));
    for pid in 102..108 {
        assert_eq!(find(&rows, pid).command.text(), "vllm serve m --api-key [redacted]");
        assert_eq!(find(&rows, pid).libraries.value().unwrap().len(), 1);
    }
    // Nobody waits for it again.
    let begin = Instant::now();
    for _ in 0..20 {
        now += 10_000;
        table.tick(now, &gpus);
    }
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    // When it comes after all, it is taken.
    let mut writer =
        std::fs::OpenOptions::new().write(true).open(fake.path("proc/100/cmdline")).unwrap();
    writer.write_all(b"vllm\0serve\0late\0").unwrap();
    drop(writer);
    let until = Instant::now() + Duration::from_secs(10);
    while find(&table.tick(now, &gpus), 100).command.text() != "vllm serve late" {
        assert!(Instant::now() < until);
        std::thread::yield_now();
        now += 10;
    }
    drop(std::fs::OpenOptions::new().write(true).open(fake.path("proc/101/maps")));
}

#[test]
fn with_every_thread_stuck_the_rest_is_no_answer_too() {
    let fake = FakeBox::new();
    let list: Vec<(u32, u64)> = (100..110).map(|pid| (pid, 1)).collect();
    for &(pid, _) in &list {
        fake.process(&Fake { pid, ..Fake::default() });
        fake.fifo(&format!("proc/{pid}/cmdline"));
    }
    let mut table = ProcessTable::new(fake.machine()).with_deadline(Duration::from_millis(20));
    let rows = settle(&mut table, &mut 1_000, &[gpu(0, &list)]);
    assert_eq!(rows.len(), 10);
    assert!(rows.iter().all(|row| row.command == Reading::Absent(Absence::NoAnswer)));
    drop(table);
    for (pid, _) in list {
        // Lets the threads that hang there end.
        let path = fake.path(format!("proc/{pid}/cmdline"));
        let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
        let _ = rustix::fs::open(path, flags, rustix::fs::Mode::empty());
    }
}

#[test]
fn a_child_without_a_title_is_named_by_its_parent() {
    let fake = FakeBox::new();
    fake.process(&Fake { pid: 90, comm: b"vllm", ..Fake::default() });
    fake.process(&Fake { parent: 90, ..Fake::default() });
    fake.put("proc/100/cmdline", b"/usr/bin/python3\0-c\0from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)\0");
    let mut table = ProcessTable::new(fake.machine());
    let mut now = 1_000;
    let gpus = [gpu(0, &[(100, 7)])];
    let rows = settle(&mut table, &mut now, &gpus);
    assert_eq!(rows[0].engine.text(), "vLLM child, starting");
    // A title comes with a name, and is seen at the next tick.
    fake.process(&Fake { parent: 90, comm: b"VLLM::EngineCor", ..Fake::default() });
    fake.put("proc/100/cmdline", b"VLLM::EngineCore          ");
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        now += 1000;
        let rows = table.tick(now, &gpus);
        if rows[0].engine.text() == "vLLM engine core" {
            assert_eq!(rows[0].command.text(), "VLLM::EngineCore");
            break;
        }
        assert!(Instant::now() < until, "{rows:?}");
    }
}

#[test]
fn a_process_that_is_moved_shows_its_new_unit_and_new_descriptors() {
    let fake = FakeBox::new();
    fake.process(&Fake::default());
    let mut table = ProcessTable::new(fake.machine());
    let mut now = 1_000;
    let gpus = [gpu(0, &[(100, 7)])];
    settle(&mut table, &mut now, &gpus);
    for unit in ["early", "later"] {
        let path = format!("0::/system.slice/{unit}.service\n");
        fake.put("proc/100/cgroup", path.as_bytes());
        fake.link(100, &format!("fd/{}", unit.len()), "/dev/nvidia0");
        // Soon after the start within one slow round, later within a minute and one.
        let limit = now + if unit == "early" { 20_000 } else { 80_000 };
        while table.tick(now, &gpus)[0].unit.text() != format!("{unit}.service") {
            now += 1000;
            assert!(now < limit, "{unit}");
        }
        assert_eq!(table.tick(now, &gpus)[0].device_files.value().map(Vec::len), Some(1));
    }
}

/// A shim, an init, a server that listens, its core and a worker that has a GPU, each below the one before.
fn served() -> FakeBox {
    let fake = FakeBox::new();
    let chain: [(u32, u32, &[u8], &[u8]); 5] = [
        (70, 1, b"containerd-shim", b"/usr/bin/containerd-shim-runc-v2\0-id\0a1\0"),
        (75, 70, b"tini", b"/usr/bin/tini\0--\0vllm\0serve\0m\0--port\08000\0"),
        (80, 75, b"vllm", b"vllm\0serve\0m\0--port\08000\0"),
        (90, 80, b"VLLM::EngineCor", b"VLLM::EngineCore      "),
        (100, 90, b"VLLM::Worker_TP", b"VLLM::Worker_TP0      "),
    ];
    for (pid, parent, comm, command) in chain {
        fake.process(&Fake { pid, parent, comm, ..Fake::default() });
        fake.put(&format!("proc/{pid}/cmdline"), command);
        fake.put(&format!("proc/{pid}/maps"), b"");
    }
    fake.link(80, "fd/5", "socket:[4242]");
    fake.link(100, "fd/3", "/dev/nvidia0");
    fake
}

#[test]
fn the_servers_above_a_worker_are_rows_on_no_gpu_behind_all_holders() {
    let fake = served();
    let mut table = ProcessTable::new(fake.machine());
    let mut now = 1_000;
    // The first picture has them already.
    let rows = table.tick(now, &[gpu(0, &[(100, 7)])]);
    let order = |rows: &[Process]| rows.iter().map(|row| row.pid).collect::<Vec<u32>>();
    assert_eq!(order(&rows), [100, 80, 90]);
    // A holder without figures stands before them too, whatever its number.
    let rows = settle(&mut table, &mut now, &[gpu(0, &[])]);
    assert_eq!(order(&rows), [100, 80, 90]);
    let server = find(&rows, 80);
    assert_eq!((server.gpus.len(), server.gpu_bytes()), (0, 0));
    assert_eq!(server.engine.text(), "vLLM server");
    assert_eq!(server.command.text(), "vllm serve m --port 8000");
    assert_eq!(server.listening_ports, vec![8000].into());
    assert_eq!(find(&rows, 90).engine.text(), "vLLM engine core");
}

#[test]
fn a_server_goes_with_its_last_worker_and_a_stranger_does_not_take_its_place() {
    let fake = served();
    let mut table = ProcessTable::new(fake.machine());
    let mut now = 1_000;
    let gpus = [gpu(0, &[(100, 7)])];
    assert_eq!(settle(&mut table, &mut now, &gpus).len(), 3);
    fake.process(&Fake { pid: 80, start: 9_000, comm: b"vllm", ..Fake::default() });
    fake.put("proc/80/cmdline", b"sleep\x001\0");
    for _ in 0..20 {
        now += 1000;
        let rows = table.tick(now, &gpus);
        assert!(rows.iter().all(|row| row.pid != 80), "{:?}", find(&rows, 80));
    }
    fake.remove("proc/100");
    for _ in 0..2 {
        now += 1000;
        table.tick(now, &[gpu(0, &[])]);
    }
    assert!(table.tick(now + 1000, &[gpu(0, &[])]).is_empty());
}

#[test]
fn what_takes_the_name_of_an_engine_later_becomes_a_row() {
    let fake = served();
    fake.process(&Fake { pid: 80, parent: 75, comm: b"python3", ..Fake::default() });
    fake.put("proc/80/cmdline", b"python3\0start.py\0");
    let mut table = ProcessTable::new(fake.machine());
    let mut now = 1_000;
    let gpus = [gpu(0, &[(100, 7)])];
    assert_eq!(settle(&mut table, &mut now, &gpus).len(), 2);
    fake.process(&Fake { pid: 80, parent: 75, comm: b"VLLM::APIServer", ..Fake::default() });
    fake.put("proc/80/cmdline", b"VLLM::APIServer_0   ");
    let appears = (0..20).any(|_| {
        now += 1000;
        table.tick(now, &gpus).iter().any(|row| row.engine.text() == "vLLM API server")
    });
    assert!(appears);
}

#[test]
fn our_own_children_are_followed_until_they_end() {
    let machine = Machine::default();
    if !machine.proc("self/stat").exists() {
        return;
    }
    let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let pid = child.id();
    let gpus = [gpu(0, &[(pid, 7)])];
    let mut table = ProcessTable::new(machine);
    let mut now = table.machine.now_ms();
    let rows = settle(&mut table, &mut now, &gpus);
    let row = find(&rows, pid);
    assert_eq!(row.command.text(), "sleep 600");
    assert_eq!(row.parent, std::process::id().into());
    assert!(row.started_at_ms.get().unwrap().abs_diff(now) < 600_000);
    assert!(row.rss_bytes.get().unwrap() > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let rows = table.tick(now + 1000, &gpus);
    assert!(find(&rows, pid).exists.absence().is_some());
    assert_eq!(find(&rows, pid).command.text(), "sleep 600");
}

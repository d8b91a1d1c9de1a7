//! Measures what following processes costs, in CPU time of the calling thread and of the process.
//!
//! `cargo run --release -p infertop-probes --example proc_cost` prints three tables: sixty-four listed
//! processes, a sweep over two thousand sleeping children of this box's real `/proc`, and a sweep over
//! ten thousand processes in a folder that looks like `/proc`. The clock is made up, so that minutes
//! pass at once; the work is real.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a tool for developers: it prints, and lets its children settle"
)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use probes::machine::Machine;
use probes::nvml::processes::{GpuProcess, GpuProcesses};
use probes::proc::table::ProcessTable;
use probes::snapshot::Gpu;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // A child that looks more like an engine than `sleep` does: many descriptors, many threads.
    if arguments.get(1).is_some_and(|word| word == "engine") {
        engine();
    }
    let own = std::env::current_exe().unwrap();

    let only = |part: &str| arguments.get(1).is_none_or(|word| word == part);
    if only("listed") {
        let engines = Children::start(64, || Command::new(&own).arg("engine").spawn());
        std::thread::sleep(Duration::from_secs(2));
        let pids: Vec<u32> = engines.0.iter().map(Child::id).collect();
        // Ten minutes, so that what is read again after five is in the mean.
        measure("64 listed processes, real /proc", Machine::default(), &pids, 600);
        drop(engines);
    }
    if only("sleepers") {
        let sleepers = Children::start(2000, || Command::new("sleep").arg("1000").spawn());
        measure("2,000 sleeping children, real /proc", Machine::default(), &[], 180);
        drop(sleepers);
    }
    if only("plain") {
        let folder = fake_procfs(10_000);
        let machine = Machine { procfs: folder.0.join("proc"), ..Machine::default() };
        measure("10,000 processes, plain files", machine, &[], 180);
    }
}

/// Ticks once a made-up second and prints what that took.
fn measure(title: &str, machine: Machine, pids: &[u32], ticks: u64) {
    let gpus = [gpu(pids)];
    let mut table = ProcessTable::new(machine);
    let mut now_ms = 1_700_000_000_000;
    let mut costs = Vec::new();
    let before = cpu("self/schedstat");
    let mut first = Duration::ZERO;
    for tick in 0..ticks {
        let begin = cpu("thread-self/schedstat");
        let rows = table.tick(now_ms, &gpus);
        let took = cpu("thread-self/schedstat").saturating_sub(begin);
        assert!(rows.len() >= pids.len());
        now_ms += 1000;
        if tick == 0 {
            first = took;
            // The mappings of new processes come from another thread.
            std::thread::sleep(Duration::from_secs(1));
        } else {
            costs.push(took);
        }
    }
    let all: Duration = costs.iter().sum();
    costs.sort_unstable();
    let at = |part: usize| costs[(costs.len() - 1) * part / 100].as_micros();
    let seconds = u32::try_from(costs.len()).unwrap();
    println!("{title}");
    println!("  first tick      {:>8} us", first.as_micros());
    println!(
        "  tick, mean      {:>8} us = {:.2} % of one core at one tick a second",
        (all / seconds).as_micros(),
        all.as_secs_f64() / f64::from(seconds) * 100.0
    );
    println!("  tick, 50/95/max {:>8} / {} / {} us", at(50), at(95), at(100));
    println!(
        "  all threads     {:>8} us a tick, first included",
        (cpu("self/schedstat").saturating_sub(before)).as_micros() / u128::from(ticks)
    );
    println!("  coverage        {:?}", table.coverage());
}

/// CPU time of a thread or process, in nanoseconds as the scheduler counts it.
fn cpu(file: &str) -> Duration {
    let machine = Machine::default();
    // The kernel brings the other file up to date only when this one is read.
    std::fs::read(machine.proc("self/stat")).unwrap();
    let text = std::fs::read_to_string(machine.proc(file)).unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

fn gpu(pids: &[u32]) -> Gpu {
    let list = pids.iter().map(|&pid| GpuProcess {
        pid,
        kind: "compute".into(),
        used_bytes: u64::from(pid).into(),
        ..GpuProcess::default()
    });
    let list: Vec<GpuProcess> = list.collect();
    Gpu { processes: GpuProcesses { list: list.into(), ..Default::default() }, ..Gpu::default() }
}

fn engine() -> ! {
    let files: Vec<_> = (0..150).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
    let sockets: Vec<_> =
        (0..30).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    for _ in 0..40 {
        std::thread::spawn(|| std::thread::sleep(Duration::from_secs(1000)));
    }
    std::thread::sleep(Duration::from_secs(1000));
    drop((files, sockets));
    std::process::exit(0)
}

struct Children(Vec<Child>);

impl Children {
    fn start(count: usize, mut one: impl FnMut() -> std::io::Result<Child>) -> Self {
        Self((0..count).map(|_| one().unwrap()).collect())
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
        }
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn fake_procfs(count: u32) -> Folder {
    let begin = Instant::now();
    let folder = Folder(std::env::temp_dir().join(format!("infertop-cost-{}", std::process::id())));
    let proc = folder.0.join("proc");
    for pid in 1..=count {
        let own = proc.join(pid.to_string());
        std::fs::create_dir_all(own.join("fd")).unwrap();
        let stat =
            format!("{pid} (sleep) S 1 1 1 0 -1 4194304 0 0 0 0 1 1 0 0 20 0 1 0 {pid} 1 1 0\n");
        std::fs::write(own.join("stat"), stat).unwrap();
        for (fd, target) in [
            "/dev/null",
            "pipe:[81234]",
            "socket:[912345]",
            "anon_inode:[eventpoll]",
            "/var/log/x.log",
            "socket:[912346]",
            "/usr/lib/x.so",
            "pipe:[81235]",
            "/dev/null",
            "/tmp/y",
        ]
        .iter()
        .enumerate()
        {
            std::os::unix::fs::symlink(target, own.join("fd").join(fd.to_string())).unwrap();
        }
    }
    std::os::unix::fs::symlink(Path::new("1"), proc.join("self")).unwrap();
    println!("(made {count} folders in {:?})", begin.elapsed());
    folder
}

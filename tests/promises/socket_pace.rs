//! How soon the socket answers. The figures are printed; `cargo test --release --test promises \
//! socket_pace -- --nocapture --test-threads 1` shows them for a build as it is installed.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use probes::snapshot::Snapshot;
use serde::Deserialize;

use crate::gpu_box::GpuBox;
use crate::running_daemon::Daemon;
use crate::stream::Lines;
use crate::waiting::patience;
use crate::workload::Workload;

/// What a dashboard is promised between connecting and its first frame.
const FIRST_FRAME: Duration = Duration::from_millis(100);

#[derive(Deserialize)]
struct Told {
    #[serde(with = "serde_bytes")]
    snapshot: Option<Vec<u8>>,
}

/// As a dashboard attaches: is there a daemon, and what does it see? Up to the decoded snapshot.
fn attach(socket: &Path) -> Duration {
    let began = Instant::now();
    let mut health = Vec::new();
    let mut asks = UnixStream::connect(socket).unwrap();
    asks.write_all(b"GET /v1/health HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    asks.read_to_end(&mut health).unwrap();
    assert!(health.starts_with(b"HTTP/1.1 200"));

    let mut stream = UnixStream::connect(socket).unwrap();
    // Without chunks between the pieces.
    let request = "GET /v1/frames HTTP/1.0\r\naccept: application/vnd.infertop.frames\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let (mut bytes, mut part) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let length = stream.read(&mut part).unwrap();
        assert!(length > 0, "the stream ended");
        bytes.extend_from_slice(&part[..length]);
        let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let Some(size) = bytes.get(head + 4..).and_then(<[u8]>::first_chunk) else { continue };
        let size = u32::from_le_bytes(*size) as usize;
        let Some(piece) = bytes.get(head + 8..head + 8 + size) else { continue };
        let told: Told = rmp_serde::from_slice(piece).unwrap();
        assert!(!Snapshot::decode(&told.snapshot.unwrap()).unwrap().gpus.is_empty());
        return began.elapsed();
    }
}

/// The benchmark's box with a process of this machine for each of its own.
fn bench() -> (GpuBox, Vec<Workload>) {
    let gpu_box = GpuBox::of("bench-8");
    let workloads: Vec<_> = std::iter::repeat_with(Workload::sleeping).take(64).collect();
    gpu_box.bind(&workloads.iter().map(Workload::pid).collect::<Vec<_>>());
    (gpu_box, workloads)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
fn a_dashboard_has_its_first_frame_at_once() {
    let (bench, _workloads) = bench();
    for (name, gpu_box) in [("8 GPUs", bench), ("64 GPUs", GpuBox::of("sixty-four"))] {
        let daemon = Daemon::start(&gpu_box, &[]);
        daemon.until_number(3);
        let times: Vec<_> = (0..21).map(|_| attach(&daemon.socket())).collect();
        let (median, longest) = (median(times.clone()), times.into_iter().max().unwrap());
        println!("{name}: attach to first frame {median:.1?}, at most {longest:.1?}");
        assert!(median < FIRST_FRAME * patience(), "{median:?}");
    }
}

#[test]
fn questions_are_answered_from_memory() {
    let (gpu_box, _workloads) = bench();
    let daemon = Daemon::start(&gpu_box, &[]);
    daemon.until_number(5);
    for target in [
        "health",
        "findings",
        "snapshot",
        "self",
        "span",
        "snapshot?at=now",
        "window",
        "marks?from=0",
    ] {
        let target = format!("/v1/{target}");
        let times = (0..21).map(|_| {
            let began = Instant::now();
            assert_eq!(daemon.get(&target).status, 200, "{target}");
            began.elapsed()
        });
        let median = median(times.collect());
        println!("{target}: {median:.1?}");
        assert!(median < Duration::from_millis(100) * patience(), "{target}: {median:?}");
    }
}

#[test]
fn twenty_readers_cost_little_more_than_one() {
    let (gpu_box, _workloads) = bench();
    let daemon = Daemon::start(&gpu_box, &[]);
    daemon.until_number(3);
    let cpu = || daemon.json("/v1/self")["daemon"]["cpu_seconds_total"].as_f64().unwrap();
    let mut spent = Vec::new();
    for count in [1, 20] {
        let readers: Vec<_> = (0..count)
            .map(|_| {
                let socket = daemon.socket();
                std::thread::spawn(move || Lines::open(&socket).take(6).count())
            })
            .collect();
        let before = cpu();
        let began = Instant::now();
        for reader in readers {
            assert_eq!(reader.join().unwrap(), 6);
        }
        let share = (cpu() - before) / began.elapsed().as_secs_f64();
        println!("{count} readers: {:.2} % of a core", share * 100.0);
        spent.push(share);
    }
    assert!(spent[1] < 0.10 * f64::from(patience()), "{spent:?}");
}

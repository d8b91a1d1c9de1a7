//! Slow and hostile clients of a daemon's socket cost it bounded memory and delay nobody: neither
//! those who ask nor the sampling.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::gpu_box::GpuBox;
use crate::running_daemon::Daemon;
use crate::stream::Lines;
use crate::waiting::{patience, pause, until};

/// What a crowd may cost, whatever it does. With 64 GPUs a moment and its document are 1.4 MB: five
/// hundred connections with one each would hold 700 MB.
const MOST_GROWTH_BYTES: u64 = 48 << 20;

/// A crowd at a time: what is measured is what it does to its daemon, not to this machine.
static ONE: Mutex<()> = Mutex::new(());

struct Busy {
    daemon: Daemon,
    _box: GpuBox,
    _one: MutexGuard<'static, ()>,
}

fn busy(scenario: &str, interval: &str) -> Busy {
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let gpu_box = GpuBox::of(scenario);
    let daemon = Daemon::start(&gpu_box, &["--interval", interval]);
    daemon.until_number(6);
    Busy { daemon, _box: gpu_box, _one: one }
}

/// A client that sends this and then hangs.
fn hangs(daemon: &Daemon, sends: &[u8]) -> UnixStream {
    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
    stream.set_nonblocking(true).unwrap();
    // What does not fit is not waited for.
    let _ = stream.write(sends);
    stream
}

/// Keeps a crowd there for some seconds: those that are let go come again. Meanwhile asks.
fn withstands(daemon: &Daemon, mut sends: impl FnMut(usize) -> Vec<u8>) {
    let before = daemon.json("/v1/self");
    let first = number(daemon);
    let began = Instant::now();
    let mut crowd: Vec<UnixStream> = Vec::new();
    let (mut slowest, mut asked) = (Duration::ZERO, 0);
    while began.elapsed() < Duration::from_secs(4) {
        crowd.retain_mut(is_open);
        // All at once at first, then as many as one that attacks can start between two questions.
        let coming = if crowd.is_empty() { 500 } else { 500 - crowd.len().max(480) };
        for at in 0..coming {
            crowd.push(hangs(daemon, &sends(at)));
        }
        let asks = Instant::now();
        assert_eq!(daemon.get("/v1/health").status, 200);
        slowest = slowest.max(asks.elapsed());
        asked += 1;
        pause();
    }
    let (passed, last) = (began.elapsed(), number(daemon));
    let after = daemon.json("/v1/self");
    assert!(asked > 10, "only {asked} answers");
    // The crowd, the daemon and this test share the cores.
    assert!(slowest < Duration::from_millis(500) * patience(), "an answer took {slowest:?}");
    let interval = interval(daemon);
    let due = u64::try_from(passed.as_millis() / interval.as_millis()).unwrap();
    assert!(last - first + 2 >= due, "{} snapshots in {passed:?}", last - first);
    let rss = |own: &serde_json::Value| own["daemon"]["rss_bytes"].as_u64().unwrap();
    let grown = rss(&after).saturating_sub(rss(&before));
    assert!(grown < MOST_GROWTH_BYTES, "grew by {grown} bytes: {after}");
    let connections = after["socket"]["connections"].as_u64().unwrap();
    assert!(connections <= 64, "{after}");
}

fn interval(daemon: &Daemon) -> Duration {
    Duration::from_millis(daemon.json("/v1/health")["interval_ms"].as_u64().unwrap())
}

fn number(daemon: &Daemon) -> u64 {
    daemon.json("/v1/health")["number"].as_u64().unwrap()
}

/// Whether the daemon has not let go of it. Reads nothing: whoever reads an answer does not hang.
fn is_open(stream: &mut UnixStream) -> bool {
    let mut looked = [PollFd::new(stream, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut looked, Some(&at_once)).unwrap();
    !looked[0].revents().contains(PollFlags::HUP)
}

#[test]
fn five_hundred_connections_that_say_nothing() {
    let busy = busy("eight-h100", "250ms");
    withstands(&busy.daemon, |_| Vec::new());
}

#[test]
fn five_hundred_halves_of_a_request() {
    let busy = busy("eight-h100", "250ms");
    withstands(&busy.daemon, |at| b"GET /v1/snapshot HTTP/1.1\r\nhost: x\r\n"[..=at % 36].into());
}

#[test]
fn five_hundred_readers_that_do_not_read() {
    let busy = busy("sixty-four", "1s");
    withstands(&busy.daemon, |at| match at % 3 {
        0 => b"GET /v1/frames HTTP/1.1\r\nhost: x\r\n\r\n".into(),
        1 => b"GET /v1/snapshot HTTP/1.1\r\nhost: x\r\n\r\n".into(),
        _ => b"GET /v1/frames HTTP/1.1\r\naccept: application/vnd.infertop.frames\r\n\r\n".into(),
    });
}

#[test]
fn five_hundred_that_send_without_end() {
    let busy = busy("eight-h100", "250ms");
    withstands(&busy.daemon, |at| match at % 4 {
        0 => format!("GET /v1/health HTTP/1.1\r\nx: {}", "y".repeat(100_000)).into(),
        1 => format!("GET /v1/health HTTP/1.1\r\n{}", "x: y\r\n".repeat(20_000)).into(),
        2 => {
            let head = "POST /v1/resume?x=1 HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n";
            format!("{head}{}", "z".repeat(100_000)).into()
        }
        _ => vec![0xff; 100_000],
    });
}

#[test]
fn five_hundred_that_ask_for_all_the_past_at_once() {
    let busy = busy("eight-h100", "250ms");
    withstands(&busy.daemon, |at| {
        let target = match at % 4 {
            0 => "/v1/history?metric=infertop_gpu_busy_ratio&from=0",
            1 => "/v1/window?ticks=1000",
            2 => "/v1/snapshot?at=-1h",
            _ => "/v1/marks?from=0",
        };
        format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n").into()
    });
}

#[test]
fn a_reader_that_never_reads_is_let_go() {
    let busy = busy("sixty-four", "500ms");
    let daemon = &busy.daemon;
    let mut reader = UnixStream::connect(daemon.socket()).unwrap();
    reader.write_all(b"GET /v1/frames HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    until("word that it was given up", || {
        daemon.json("/v1/self")["socket"]["stalled_total"].as_u64() > Some(0)
    });
    reader.set_read_timeout(Some(Duration::from_secs(5) * patience())).unwrap();
    let mut left = Vec::new();
    // What the kernel held for it is still there, then nothing more comes.
    let _ = reader.read_to_end(&mut left);
    assert!(left.len() < 4 << 20, "{} bytes were kept for it", left.len());
    assert_eq!(daemon.json("/v1/self")["socket"]["readers"], 0);
}

#[test]
fn twenty_readers_see_every_frame() {
    let busy = busy("eight-h100", "500ms");
    let daemon = &busy.daemon;
    let before = daemon.json("/v1/self");
    let socket = daemon.socket();
    let reads = |_| {
        let socket = socket.clone();
        std::thread::spawn(move || Lines::open(&socket).take(12).collect::<Vec<_>>())
    };
    let readers: Vec<_> = (0..20).map(reads).collect();
    for reader in readers {
        let lines = reader.join().unwrap();
        let number = |line: &serde_json::Value| line["number"].as_u64().unwrap();
        for pair in lines.windows(2) {
            assert_eq!(number(&pair[0]) + 1, number(&pair[1]));
            assert_eq!(pair[1]["lost"], 0);
        }
    }
    let cost = |own: &serde_json::Value| own["daemon"]["cpu_seconds_total"].as_f64().unwrap();
    let spent = cost(&daemon.json("/v1/self")) - cost(&before);
    assert!(spent < 3.0 * f64::from(patience()), "{spent} s for twelve frames to twenty readers");
}

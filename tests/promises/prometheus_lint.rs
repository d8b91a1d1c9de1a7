//! What the daemon exports is well formed in the eyes of Prometheus's own tool, small, quick, and
//! changes nothing of the pace.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::gpu_box::GpuBox;
use crate::prometheus_server::{address, get, scrape, tool};
use crate::running_daemon::Daemon;
use crate::waiting::until;
use crate::workload::Workload;

/// What `promtool check metrics` says of a page.
fn check(promtool: &std::path::Path, page: &str) {
    let mut child = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

fn sample(page: &str, name: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn promtool_finds_nothing_to_say_about_any_box() {
    let Some(promtool) = tool("promtool", "prometheus") else { return };
    for scenario in ["eight-h100", "mig-h200", "gb10", "lost-one", "mismatch", "empty"] {
        let gpu_box = GpuBox::of(scenario);
        let daemon = Daemon::start(&gpu_box, &["--listen", "127.0.0.1:0", "--interval", "250ms"]);
        let address = address(&daemon);
        daemon.until_number(8);
        let page = scrape(&address);
        assert!(page.contains("infertop_host_cpus "), "{scenario}: {page}");
        check(&promtool, &page);
    }
}

#[test]
fn eight_gpus_with_sixty_four_processes_take_less_than_eighty_kilobytes() {
    let workloads: Vec<Workload> = (0..64).map(|_| Workload::sleeping()).collect();
    let pids: Vec<u32> = workloads.iter().map(Workload::pid).collect();
    let gpu_box = GpuBox::of("bench-8");
    gpu_box.bind(&pids);
    let daemon = Daemon::start(&gpu_box, &["--listen", "127.0.0.1:0"]);
    let address = address(&daemon);
    until("all readings", || {
        let page = scrape(&address);
        page.contains("infertop_gpu_holders{gpu=\"7\"} 8\n") && page.contains("nvlink_crc")
    });
    for format in ["text/plain", "application/openmetrics-text;version=1.0.0"] {
        let answer = get(&address, "/metrics", &format!("accept: {format}\r\n")).unwrap();
        assert!(answer.head.contains(format.split(';').next().unwrap()), "{}", answer.head);
        let bytes = answer.body.len();
        assert!((40_000..=80_000).contains(&bytes), "{format}: {bytes} bytes");
    }
}

#[test]
fn twenty_scrapes_a_second_do_not_change_the_pace() {
    let gpu_box = GpuBox::of("eight-h100");
    let daemon = Daemon::start(&gpu_box, &["--listen", "127.0.0.1:0", "--interval", "500ms"]);
    let address = address(&daemon);
    daemon.until_number(8);
    let taken = |page: &str| sample(page, "infertop_snapshots_total").unwrap();
    let (before, begin) = (taken(&scrape(&address)), Instant::now());
    let mut after = before;
    for scrapes in 1..=100u32 {
        after = taken(&scrape(&address));
        let due = Duration::from_millis(50) * scrapes;
        std::thread::park_timeout(due.saturating_sub(begin.elapsed()));
    }
    let seconds = begin.elapsed().as_secs_f64();
    let wanted = seconds / 0.5;
    assert!((after - before - wanted).abs() <= 2.0, "{} of {wanted} snapshots", after - before);
}

#[test]
fn a_machine_without_a_driver_says_so_in_metrics() {
    let gpu_box = GpuBox::of("mismatch");
    let daemon = Daemon::start(&gpu_box, &["--listen", "127.0.0.1:0", "--interval", "250ms"]);
    let address = address(&daemon);
    until("the finding", || scrape(&address).contains("infertop_finding_active{cause=\"driver_"));
    let page = scrape(&address);
    assert_eq!(sample(&page, "infertop_gpus_visible"), Some(0.0), "{page}");
    assert_eq!(sample(&page, "infertop_sampler_up"), Some(1.0), "{page}");
}

//! `infertop daemon release`: every handle is gone within a second, who else is in the way is named,
//! and the GPUs come back by request or by time.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::daemon_ending::signal;
use crate::daemon_home::Home;
use crate::gpu_box::GpuBox;
use crate::tree::Tree;
use crate::waiting::{children, is_alive, patience, until, until_gone};

const TWO: &str = "[[gpu]]\nmodel = 'H100 80GB HBM3'\ncount = 2\nutilization = 50\n";

/// A process with a file open.
struct Holder(Child);

impl Holder {
    fn of(tree: &Tree, node: &str) -> Self {
        let child = Command::new("/bin/sh")
            .args(["-c", "exec 3<\"$0\"; read -r line"])
            .arg(tree.path(node))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let holder = Self(child);
        until("an open file", || {
            let link = format!("/proc/{}/fd/3", holder.0.id());
            std::fs::read_link(link).is_ok_and(|target| target == tree.path(node))
        });
        holder
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn every_handle_is_gone_within_a_second_and_comes_back_on_request() {
    let (home, gpu_box) = (Home::new(), GpuBox::written(TWO));
    let daemon = home.start(&gpu_box, &[]);
    daemon.wait_for_sampling("running");
    let sampler = daemon.sampler();
    let begin = Instant::now();
    let output = home.ask(&gpu_box, &["release"]);
    let took = begin.elapsed();
    assert!(output.status.success(), "{}", text(&output.stderr));
    // A process that is gone has nothing open.
    assert!(!std::path::Path::new("/proc").join(sampler.to_string()).join("fd").exists());
    assert!(children(daemon.pid()).is_empty());
    assert!(took < Duration::from_secs(1) * patience(), "it took {took:?}");
    assert!(text(&output.stdout).starts_with("the daemon has let go"), "{}", text(&output.stdout));

    let health = daemon.wait_for_sampling("released");
    assert_eq!(health["status"], "released");
    // The configuration is read again; the GPUs stay where they are.
    daemon.signal(Signal::HUP);
    assert_eq!(daemon.post("/v1/reload").0, 200);
    assert!(children(daemon.pid()).is_empty());
    assert_eq!(daemon.json("/v1/health")["sampling"]["state"], "released");

    let output = home.ask(&gpu_box, &["resume"]);
    assert_eq!(text(&output.stdout), "the GPUs are taken again\n");
    daemon.wait_for_sampling("running");
    let output = home.ask(&gpu_box, &["resume"]);
    assert_eq!(text(&output.stdout), "the GPUs had not been let go\n");
}

#[test]
fn they_come_back_by_themselves_when_the_time_is_over() {
    let (home, gpu_box) = (Home::new(), GpuBox::written(TWO));
    let daemon = home.start(&gpu_box, &[]);
    daemon.wait_for_sampling("running");
    let output = home.ask(&gpu_box, &["release", "--for", "2s"]);
    assert!(text(&output.stdout).contains("for 2 s"), "{}", text(&output.stdout));
    let begin = Instant::now();
    assert!(daemon.json("/v1/health")["sampling"]["until_ms"].as_u64().is_some());
    daemon.wait_for_sampling("running");
    assert!(begin.elapsed() >= Duration::from_secs(1), "{:?}", begin.elapsed());
    daemon.wait_for_log("the GPUs are taken again");
}

#[test]
fn who_else_has_a_device_file_open_is_named() {
    let tree = Tree::with_driver(2, "580.65.06");
    let (home, gpu_box) = (Home::new(), GpuBox::written(TWO));
    let holder = Holder::of(&tree, "dev/nvidia1");
    let root = tree.path("").display().to_string();
    let daemon = home.start(&gpu_box, &["--rootfs", &root]);
    daemon.wait_for_sampling("running");
    let output = home.ask(&gpu_box, &["release", "--json"]);
    let released: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(released["released"], true);
    assert_eq!(released["searched_all"], true);
    let holders = released["holders"].as_array().unwrap();
    assert_eq!(holders.len(), 1, "{released}");
    assert_eq!(holders[0]["pid"], holder.0.id());
    assert_eq!(holders[0]["devices"], serde_json::json!(["/dev/nvidia1"]));
    let words = text(&home.ask(&gpu_box, &["release"]).stdout);
    let line = format!("{:>9} sh /dev/nvidia1", holder.0.id());
    assert!(words.contains(&line), "{words}");
}

#[test]
fn a_sampler_that_is_stuck_is_not_said_to_be_gone_and_is_waited_for() {
    let (home, gpu_box) = (Home::new(), GpuBox::written(TWO));
    let daemon = home.start(&gpu_box, &[]);
    daemon.wait_for_sampling("running");
    let stuck = daemon.sampler();
    signal(stuck, Signal::STOP);
    let begin = Instant::now();
    let output = home.ask(&gpu_box, &["release", "--json"]);
    assert!(begin.elapsed() < Duration::from_secs(2) * patience(), "{:?}", begin.elapsed());
    assert_eq!(output.status.code(), Some(1));
    let released: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(released["released"], false);
    let why = released["why"].as_str().unwrap();
    assert!(why.contains(&format!("process {stuck}")), "{why}");
    assert!(is_alive(stuck));
    assert_eq!(daemon.json("/v1/health")["sampling"]["state"], "releasing");
    // Asked to resume meanwhile, it starts no second one beside the stuck one.
    assert_eq!(daemon.post("/v1/resume").1["resumed"], true);
    assert_eq!(children(daemon.pid()), [stuck]);
    assert_eq!(daemon.post("/v1/release").1["released"], false);
    signal(stuck, Signal::CONT);
    until_gone(stuck);
    daemon.wait_for_sampling("released");
    assert!(children(daemon.pid()).is_empty());
    assert_eq!(daemon.post("/v1/resume").1["resumed"], true);
    daemon.wait_for_sampling("running");
}

#[test]
fn a_driver_that_hangs_is_let_go_as_far_as_it_lets_us() {
    let (home, gpu_box) = (Home::new(), GpuBox::of("hang-from-start"));
    let daemon = home.start(&gpu_box, &[]);
    daemon.wait_for_sampling("running");
    let begin = Instant::now();
    let (status, released) = daemon.post("/v1/release");
    assert_eq!((status, &released["released"]), (200, &Value::Bool(true)), "{released}");
    assert!(begin.elapsed() < Duration::from_secs(1) * patience(), "{:?}", begin.elapsed());
    assert!(children(daemon.pid()).is_empty());
}

#[test]
fn without_a_daemon_it_says_where_it_was_looked_for() {
    let (home, gpu_box) = (Home::new(), GpuBox::of("empty"));
    let output = home.ask(&gpu_box, &["release"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    assert!(errors.contains(&home.path("infertop.sock").display().to_string()), "{errors}");
    assert!(errors.contains("help: start one with infertop daemon"), "{errors}");
}

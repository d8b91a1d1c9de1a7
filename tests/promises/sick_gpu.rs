//! One GPU whose calls never return harms nobody: the others keep their rate, the stuck one is
//! named with its call, and the program ends at once.

use std::collections::BTreeMap;
use std::time::Duration;

use probes::snapshot::Health;

use crate::frames::{Frame, Sampler};
use crate::gpu_box::GpuBox;
use crate::terminal::Terminal;
use crate::waiting::{only_child, patience, until_gone};

/// GPU 5 of eight stops answering two seconds after the start.
const SICK: &str = r#"
[[gpu]]
model = "H100 80GB HBM3"
count = 8
utilization = 90

[[process]]
gpu = "all"
per_gpu = 1
pid = 4100000
bytes = "66GiB"

[[fault]]
symbol = "*"
gpu = 5
at = 2
hang = true
"#;

fn is_stuck(frame: &Frame, index: u32) -> bool {
    frame.find_gpu(index).is_some_and(|gpu| matches!(gpu.health, Health::NoAnswer { .. }))
}

fn quit(mut terminal: Terminal, end: impl FnOnce(&Terminal)) {
    let sampler = only_child(terminal.child.id());
    end(&terminal);
    let (status, took) = terminal.wait_for_end();
    assert!(status.success(), "{status}");
    assert!(took < Duration::from_millis(200) * patience(), "ending took {took:?}");
    terminal.wait_until_given_back();
    until_gone(sampler);
}

fn press_q(terminal: &Terminal) {
    terminal.keys("q");
}

fn terminate(terminal: &Terminal) {
    let pid = rustix::process::Pid::from_child(&terminal.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

#[test]
fn a_driver_that_hangs_from_the_start_is_named_and_quitting_is_instant() {
    let gpu_box = GpuBox::of("hang-from-start");
    let terminal = Terminal::start(&gpu_box, (24, 80), &[]);
    terminal.wait_for("the stuck call", |text| text.contains("nvmlInit_v2 has not returned"));
    terminal.wait_for("the cause", |text| text.contains("driver_call_stuck"));
    quit(terminal, press_q);
}

#[test]
fn a_driver_that_hangs_from_the_start_does_not_hold_up_sigterm() {
    let gpu_box = GpuBox::of("hang-from-start");
    let terminal = Terminal::start(&gpu_box, (24, 80), &[]);
    terminal.wait_for("the stuck call", |text| text.contains("nvmlInit_v2"));
    quit(terminal, terminate);
}

#[test]
fn a_gpu_that_hangs_in_the_middle_is_named_with_its_call_and_quitting_is_instant() {
    let gpu_box = GpuBox::written(SICK);
    let terminal = Terminal::start(&gpu_box, (24, 80), &["--interval", "500ms"]);
    terminal.wait_for("GPU 5 with its call", |text| text.contains("no answer"));
    terminal.wait_for("the finding", |text| text.contains("a driver call does not return"));
    assert!(terminal.gpu_row(5).contains("no answer"), "{}", terminal.text());
    let text = terminal.text();
    for index in [0, 1, 2, 3, 4, 6, 7] {
        let row = terminal.gpu_row(index);
        assert!(row.contains("90%"), "GPU {index} is not as before:\n{text}");
    }
    quit(terminal, press_q);
}

#[test]
fn a_gpu_that_hangs_in_the_middle_does_not_hold_up_sigterm() {
    let gpu_box = GpuBox::written(SICK);
    let terminal = Terminal::start(&gpu_box, (24, 80), &["--interval", "500ms"]);
    terminal.wait_for("the stuck GPU", |text| text.contains("no answer"));
    quit(terminal, terminate);
}

#[test]
fn the_other_gpus_keep_their_full_rate_and_the_stuck_one_is_marked_within_two_intervals() {
    let gpu_box = GpuBox::written(SICK);
    let sampler = Sampler::start(&gpu_box, "500ms");
    let mut last_good = 0;
    let (marked, _) = sampler.find("GPU 5 stuck", |frame| {
        if let Some(gpu) = frame.find_gpu(5).filter(|gpu| gpu.answers()) {
            last_good = gpu.utilization.read.at_ms;
        }
        is_stuck(frame, 5)
    });
    let Health::NoAnswer { call, since_ms, .. } = &marked.gpu(5).health else { unreachable!() };
    assert!(call.starts_with("nvml"), "{call}");
    assert!(*since_ms >= last_good, "stuck before its last answer");
    let after = marked.snapshot.taken_at_ms - since_ms;
    assert!(after <= 1000 * u64::from(patience()), "marked only after {after} ms");
    // Its last values stay, with the time at which they were read.
    assert_eq!(marked.gpu(5).utilization.gpu_ratio.get(), Some(0.9));
    assert_eq!(marked.gpu(5).utilization.read.at_ms, last_good);

    let mut sequence = marked.snapshot.sequence;
    let advances = sampler.advances(6, |frame| {
        sequence += 1;
        assert_eq!(frame.snapshot.sequence, sequence, "a frame is missing");
        assert!(is_stuck(frame, 5));
        for gpu in frame.snapshot.gpus.iter().filter(|gpu| gpu.index != 5) {
            assert_eq!(gpu.health, Health::Answering, "GPU {}", gpu.index);
        }
    });
    go_on(&advances);
}

/// All GPUs but number 5 are read at every tick, or nearly so.
fn go_on(advances: &BTreeMap<u32, usize>) {
    for index in [0, 1, 2, 3, 4, 6, 7] {
        assert!(advances[&index] >= 4, "GPU {index} waited: {advances:?} of 6");
    }
}

#[test]
fn the_processes_of_a_stuck_gpu_stay_in_the_list() {
    let gpu_box = GpuBox::written(SICK);
    let sampler = Sampler::start(&gpu_box, "500ms");
    let (frame, _) = sampler.find("GPU 5 stuck", |frame| is_stuck(frame, 5));
    let pids: Vec<u32> = frame.snapshot.processes.iter().map(|process| process.pid).collect();
    assert!(pids.contains(&4_100_005), "{pids:?}");
    assert_eq!(pids.len(), 8, "{pids:?}");
}

#[test]
fn a_gpu_that_answers_slowly_does_not_slow_the_others() {
    let slow = SICK.replace("at = 2\nhang = true", "latency_us = 300000");
    assert_ne!(slow, SICK);
    let gpu_box = GpuBox::written(&slow);
    let sampler = Sampler::start(&gpu_box, "500ms");
    sampler.find("all other GPUs answering", |frame| {
        let gpus = &frame.snapshot.gpus;
        gpus.len() == 8 && gpus.iter().all(|gpu| gpu.index == 5 || gpu.answers())
    });
    // One round of calls to GPU 5 takes several ticks.
    go_on(&sampler.advances(6, |_| {}));
}

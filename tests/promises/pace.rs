//! The pace can be changed and the picture held; what looking costs is counted and stays small.

use std::collections::BTreeMap;
use std::time::Duration;

use probes::snapshot::Gpu;

use crate::frames::Sampler;
use crate::gpu_box::GpuBox;
use crate::terminal::Terminal;
use crate::waiting::{patience, pause, until};

/// A busy share that is another one every second.
const MOVING: &str = "
[[gpu]]
model = 'H100 80GB HBM3'
count = 2
utilization = { saw = { min = 0, max = 100, period = 20 } }
";

#[test]
fn plus_and_minus_change_the_interval_and_the_frames_follow() {
    let terminal = Terminal::start(&GpuBox::written(MOVING), (24, 80), &[]);
    terminal.wait_for("one second", |text| text.contains("live 1 s"));
    terminal.keys("-");
    terminal.wait_for("half a second", |text| text.contains("live 0.50 s"));
    terminal.keys("-");
    terminal.wait_for("a quarter", |text| text.contains("live 0.25 s"));
    // No shorter than that.
    terminal.keys("-");
    terminal.keys("++");
    terminal.wait_for("one second", |text| text.contains("live 1 s"));
    terminal.keys("+");
    terminal.wait_for("two seconds", |text| text.contains("live 2 s"));
}

#[test]
fn the_sampler_keeps_the_pace_that_it_is_told() {
    let mut sampler = Sampler::start(&GpuBox::written(MOVING), "10s");
    sampler.find("values", |frame| frame.find_gpu(1).is_some_and(Gpu::answers));
    sampler.command("interval 250");
    let (frame, _) = sampler.find("the new pace", |frame| frame.snapshot.interval_ms == 250);
    let begin = frame.snapshot.taken_at_ms;
    let mut last = frame;
    for _ in 0..4 {
        last = sampler.next();
    }
    let took = last.snapshot.taken_at_ms - begin;
    assert!((700..1000 * u64::from(patience())).contains(&took), "four frames in {took} ms");
    // Nonsense is not obeyed, and hurts nobody.
    for line in ["", "interval", "interval never", "interval -5", "quit now", "\u{0}\u{1}"] {
        sampler.command(line);
    }
    assert_eq!(sampler.next().snapshot.interval_ms, 250);
    sampler.close();
    until("the end of the sampler", || sampler.child.try_wait().unwrap().is_some());
}

/// The rows of the GPUs, without the header and its clock.
fn gpus(terminal: &Terminal) -> Vec<String> {
    (0..2).map(|index| terminal.gpu_row(index)).collect()
}

#[test]
fn a_pause_holds_the_picture_and_its_end_lets_it_go_on() {
    let gpu_box = GpuBox::written(MOVING);
    let terminal = Terminal::start(&gpu_box, (24, 80), &["--interval", "250ms"]);
    let empty = String::new();
    terminal.wait_for("two GPUs", |_| !gpus(&terminal).contains(&empty));
    let first = gpus(&terminal);
    until("another picture", || gpus(&terminal) != first);
    terminal.keys(" ");
    terminal.wait_for("the word", |text| text.contains("PAUSED"));
    let held = gpus(&terminal);
    let calls = || -> u64 {
        gpubox::call_counts(gpu_box.state()).unwrap().iter().map(|(_, count)| count).sum()
    };
    // Reading goes on: so many calls are several snapshots.
    let before = calls();
    until("more calls", || calls() > before + 100);
    assert_eq!(gpus(&terminal), held);
    terminal.keys(" ");
    terminal.wait_for("no such word", |text| !text.contains("PAUSED"));
    until("another picture", || gpus(&terminal) != held);
}

#[test]
fn snapshots_that_were_lost_are_counted() {
    let terminal = Terminal::start(&GpuBox::written(MOVING), (24, 80), &["--interval", "250ms"]);
    terminal.wait_for("values", |text| text.contains("live 0.25 s") && text.contains("2×H100"));
    let sampler = crate::waiting::only_child(terminal.child.id());
    let pid = rustix::process::Pid::from_raw(i32::try_from(sampler).unwrap()).unwrap();
    // A stopped sampler is one whose machine has no time for it.
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    terminal.wait_for("the age", |text| text.contains("old"));
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    terminal
        .wait_for("a fresh picture", |text| text.contains("live 0.25 s") && !text.contains("old"));
}

#[test]
fn a_gpu_costs_at_most_twelve_driver_calls_a_second() {
    const GPUS: u64 = 8;
    const SECONDS: u64 = 10;
    let gpu_box = GpuBox::of("eight-h100");
    let sampler = Sampler::start(&gpu_box, "1s");
    let counted = || -> BTreeMap<String, u64> {
        gpubox::call_counts(gpu_box.state()).unwrap().into_iter().collect()
    };
    // The first ticks ask what there is at all.
    let (start, _) = sampler.find("the third tick", |frame| frame.snapshot.sequence >= 5);
    let before = counted();
    let (end, _) = sampler.find("ten ticks more", |frame| {
        frame.snapshot.taken_at_ms >= start.snapshot.taken_at_ms + 1000 * SECONDS - 100
    });
    let mut made = counted();
    for (symbol, count) in &mut made {
        *count -= before.get(symbol).unwrap_or(&0);
    }
    made.retain(|_, count| *count > 0);
    let calls: u64 = made.values().sum();
    let seconds = (end.snapshot.taken_at_ms - start.snapshot.taken_at_ms) as f64 / 1000.0;
    let each = calls as f64 / GPUS as f64 / seconds;
    assert!(each <= 12.0, "{each:.1} calls a GPU and second: {made:?}");
    // What it says of itself is what was counted.
    let said = end.snapshot.self_cost.nvml_calls_total - start.snapshot.self_cost.nvml_calls_total;
    assert!(said <= calls + 20 && said + calls / 10 + 20 >= calls, "said {said}, counted {calls}");
}

#[test]
fn the_gpus_are_read_close_together() {
    let sampler = Sampler::start(&GpuBox::of("eight-h100"), "500ms");
    sampler.find("values", |frame| frame.find_gpu(7).is_some_and(Gpu::answers));
    let spreads: Vec<u32> = (0..5).map(|_| sampler.next().snapshot.self_cost.spread_us).collect();
    let least = spreads.iter().min().copied().unwrap();
    // Soft: on a loaded machine threads wait for their turn.
    let bound = u128::from(least) < Duration::from_millis(50 * u64::from(patience())).as_micros();
    assert!(bound, "{spreads:?} µs");
    pause();
}

//! Whatever a process calls itself and whatever `/proc` says: no secret and no control character
//! gets out, nothing stops the program.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use probes::snapshot::Gpu;
use serde_json::Value;

use crate::frames::Sampler;
use crate::gpu_box::GpuBox;
use crate::terminal::Terminal;
use crate::tree::Tree;
use crate::waiting::{pause, until};
use crate::workload::Workload;

/// One GPU with the processes of the test.
const BOUND: &str = "
[[gpu]]
model = 'H200'
utilization = 64

[[process]]
gpu = 0
per_gpu = 4
pid_file = 'pids'
bytes = '9GiB'
";

/// One GPU with a process of a made-up `/proc`.
const LISTED: &str = "
[[gpu]]
model = 'H200'
utilization = 64

[[process]]
gpu = 0
pid = 4000
bytes = '9GiB'
";

fn bound(workloads: &[&Workload]) -> GpuBox {
    let gpu_box = GpuBox::written(BOUND);
    gpu_box.bind(&workloads.iter().map(|workload| workload.pid()).collect::<Vec<_>>());
    gpu_box
}

fn process(document: &Value, pid: u32) -> &Value {
    let rows = document["processes"].as_array().unwrap();
    rows.iter().find(|row| row["pid"] == pid).unwrap_or_else(|| panic!("no {pid} in {rows:#?}"))
}

fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

/// Everything that ever leaves the program about a box: frames, both forms of `once`, every panel
/// at a width where nothing is cut off.
fn everything_said(gpu_box: &GpuBox, sign: &str) -> Vec<u8> {
    let mut said = Vec::new();
    let sampler = Sampler::start(gpu_box, "250ms");
    let (frame, _) = sampler.find("the command", |frame| contains(&frame.bytes, sign));
    said.extend(frame.bytes);
    for _ in 0..3 {
        said.extend(sampler.next().bytes);
    }
    for arguments in [&["once"][..], &["once", "--json"]] {
        let output = gpu_box.run(arguments);
        said.extend(output.stdout);
        said.extend(output.stderr);
    }
    let terminal = Terminal::start(gpu_box, (60, 250), &["--interval", "250ms"]);
    terminal.wait_for("the command", |text| text.contains(sign));
    terminal.keys("2");
    terminal.wait_for("memory", |text| text.contains("held"));
    terminal.keys("3");
    terminal.wait_for("the processes", |text| text.contains("PID") && text.contains(sign));
    terminal.keys("\r");
    terminal.wait_for("the process", |text| text.contains(sign));
    terminal.keys("\u{1b}[B");
    terminal.keys("k");
    terminal.wait_for("a question or a process", |text| text.contains(sign));
    said.extend(terminal.raw());
    said.extend(terminal.text().into_bytes());
    said
}

#[test]
fn a_secret_in_a_command_line_never_gets_out() {
    let secrets = [
        "sk-proj-Zb81kQmWx92LsVt47Yc0",
        "hf_QwErTyUiOpAsDfGhJkLzXcVbNm",
        "tk9-plain-word-secret",
        "hunter2hunter2",
        "p4ssw0rd-in-url",
    ];
    let workload = Workload::with_arguments(&[
        "serve",
        "SIGN/model-7B",
        "--api-key",
        secrets[0],
        &format!("HF_TOKEN={}", secrets[1]),
        &format!("--admin-api-key={}", secrets[2]),
        &format!("{{\"password\": \"{}\"}}", secrets[3]),
        &format!("postgres://user:{}@db/x", secrets[4]),
        "--port",
        "8000",
    ]);
    let said = everything_said(&bound(&[&workload]), "SIGN/model-7B");
    for secret in secrets {
        assert!(!contains(&said, secret), "{secret} got out");
        // Not in parts either.
        assert!(!contains(&said, &secret[secret.len() - 10..]), "the end of {secret} got out");
    }
    assert!(contains(&said, "--port 8000"), "too much was taken away");
}

#[test]
fn control_characters_of_a_command_line_never_reach_the_terminal() {
    let workload = Workload::with_arguments(&[
        "SIGN",
        "\u{1b}]0;taken over\u{7}",
        "\u{1b}[2J\u{1b}[31mred",
        "two\nlines\tand\r\u{8}\u{7f}",
        "\u{9b}31mc1",
        "\u{202e}backwards",
    ]);
    let gpu_box = bound(&[&workload]);
    let said = everything_said(&gpu_box, "SIGN");
    for raw in ["\u{1b}]0;taken over", "\u{1b}[31mred", "\u{9b}31m", "\u{202e}", "two\nlines"] {
        assert!(!contains(&said, raw), "{raw:?} got out");
    }
    let (code, document) = gpu_box.json();
    assert_eq!(code, 0);
    let command = process(&document, workload.pid())["command"].as_str().unwrap();
    assert!(!command.chars().any(char::is_control), "{command:?}");
}

#[test]
fn names_that_are_no_text_are_shown_as_far_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let shell = folder.path().join(OsString::from_vec(b"eng\xff\xfeine".to_vec()));
    std::os::unix::fs::symlink("/bin/sh", &shell).unwrap();
    let argument = OsString::from_vec(b"\xc3\x28 SIGN \xf0\x90".to_vec());
    assert!(std::str::from_utf8(argument.as_bytes()).is_err());
    let workload = Workload::running(&shell, &[argument]);
    let gpu_box = bound(&[&workload]);
    let (code, document) = gpu_box.json();
    assert_eq!(code, 0);
    let row = process(&document, workload.pid());
    assert!(row["command"].as_str().unwrap().contains("SIGN"), "{row}");
    assert!(row["comm"].as_str().unwrap().starts_with("eng"), "{row}");
    let terminal = Terminal::start(&gpu_box, (24, 200), &["-p", "processes"]);
    terminal.wait_for("the row", |text| {
        text.contains(&workload.pid().to_string()) && text.contains("SIGN")
    });
}

#[test]
fn a_huge_command_line_is_cut_and_costs_little() {
    // The kernel takes 128 KiB an argument and a quarter of the stack's limit in all.
    let argument = "x".repeat(120_000);
    let mut arguments = vec!["SIGN"];
    arguments.extend(std::iter::repeat_n(argument.as_str(), 14));
    let workload = Workload::with_arguments(&arguments);
    let gpu_box = bound(&[&workload]);
    let sampler = Sampler::start(&gpu_box, "250ms");
    let (frame, _) = sampler.find("the command", |frame| contains(&frame.bytes, "SIGN"));
    assert!(frame.bytes.len() < 200_000, "a frame of {} bytes", frame.bytes.len());
    assert_eq!(gpu_box.json().0, 0);
}

/// A made-up `/proc` with one process.
fn listed(start: u64, command: &[u8]) -> Tree {
    let tree = Tree::with_driver(1, "590.48.01");
    put_process(&tree, start, command);
    tree
}

fn put_process(tree: &Tree, start: u64, command: &[u8]) {
    tree.write("proc/4000/cmdline", command);
    tree.write("proc/4000/comm", "engine\n");
    tree.write("proc/4000/cgroup", "0::/system.slice/engine.service\n");
    tree.write(
        "proc/4000/status",
        "Name:\tengine\nUid:\t1000\t1000\t1000\t1000\nVmRSS:\t 100 kB\n",
    );
    tree.write("proc/4000/maps", "");
    tree.make("proc/4000/fd");
    let rest = "1 4000 4000 0 -1 4194304 10 0 0 0 5 3 0 0 20 0 1 0";
    tree.write(
        "proc/4000/stat",
        format!(
            "4000 (engine) S {rest} {start} 1000000 25 18446744073709551615 {}\n",
            "0 ".repeat(27)
        ),
    );
}

#[test]
fn a_command_line_of_five_megabytes_is_cut() {
    let mut command = b"engine\0SIGN\0".to_vec();
    command.resize(5 << 20, b'y');
    let tree = listed(500, &command);
    let gpu_box = GpuBox::written(LISTED).in_tree(&tree);
    let sampler = Sampler::start(&gpu_box, "250ms");
    let (frame, _) = sampler.find("the command", |frame| contains(&frame.bytes, "SIGN"));
    assert!(frame.bytes.len() < 200_000, "a frame of {} bytes", frame.bytes.len());
}

#[test]
fn a_number_that_passed_to_another_process_is_another_process() {
    let tree = listed(500, b"engine\0--first\0");
    let gpu_box = GpuBox::written(LISTED).in_tree(&tree);
    let sampler = Sampler::start(&gpu_box, "250ms");
    let found = |frame: &crate::frames::Frame, sign: &str| {
        let mut processes = frame.snapshot.processes.iter();
        processes.any(|process| process.pid == 4000 && process.command.text().contains(sign))
    };
    let (before, _) = sampler.find("the first", |frame| found(frame, "--first"));
    put_process(&tree, 900, b"engine\0--second\0");
    let (after, _) = sampler.find("the second", |frame| found(frame, "--second"));
    let start = |frame: &crate::frames::Frame| frame.snapshot.processes[0].start_ticks.get();
    assert_eq!((start(&before), start(&after)), (Some(500), Some(900)));
    assert_eq!(after.snapshot.processes.len(), 1);
}

#[test]
fn a_process_that_ends_while_it_is_shown_leaves_the_list() {
    let mut workload = Workload::with_arguments(&["SIGN"]);
    let other = Workload::with_arguments(&["STAYS"]);
    let gpu_box = bound(&[&workload, &other]);
    let terminal =
        Terminal::start(&gpu_box, (24, 160), &["-p", "processes", "--interval", "250ms"]);
    terminal.wait_for("both", |text| text.contains("SIGN") && text.contains("STAYS"));
    workload.end();
    terminal.wait_for("one of them", |text| !text.contains("SIGN") && text.contains("STAYS"));
}

#[test]
fn a_pid_that_is_not_here_is_said_in_words_and_keeps_its_memory() {
    let gpu_box = GpuBox::written(&LISTED.replace("4000", "4100000"));
    let (_, document) = gpu_box.json();
    let row = process(&document, 4_100_000);
    assert_eq!(row["gpu_bytes"], 9_u64 << 30);
    assert_eq!(row["command"], Value::Null);
    assert!(row["absent"]["command"].is_string(), "{row}");
    let (_, text) = gpu_box.once();
    assert!(text.contains("no such process in this /proc"), "{text}");
}

/// Bytes without a pattern, the same at every run.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
    .take(length)
    .collect()
}

#[test]
fn garbage_in_every_file_of_proc_and_sys_is_survived() {
    for seed in 1..4 {
        let tree = listed(500, b"engine\0");
        let files = [
            "stat",
            "meminfo",
            "loadavg",
            "uptime",
            "mounts",
            "modules",
            "self/cgroup",
            "self/status",
            "self/mountinfo",
            "self/stat",
            "net/tcp",
            "net/tcp6",
            "pressure/cpu",
            "pressure/memory",
            "pressure/io",
            "sys/kernel/osrelease",
            "sys/kernel/hostname",
            "driver/nvidia/version",
            "driver/nvidia/params",
            "driver/nvidia/gpus/0000:19:00.0/information",
            "4000/stat",
            "4000/status",
            "4000/cmdline",
            "4000/comm",
            "4000/cgroup",
            "4000/maps",
            "4000/wchan",
            "4000/net/tcp",
            "4000/environ",
            "1/stat",
            "1/cgroup",
            "vmstat",
            "cpuinfo",
            "version",
            "net/dev",
        ];
        for (at, file) in files.iter().enumerate() {
            let seed = seed * 1000 + at as u64;
            tree.write(
                &format!("proc/{file}"),
                noise(seed, 37 * at + usize::try_from(seed).unwrap() % 900),
            );
        }
        let device = "sys/bus/pci/devices/0000:19:00.0";
        for (at, file) in [
            "numa_node",
            "current_link_speed",
            "max_link_speed",
            "current_link_width",
            "aer_dev_fatal",
            "config",
            "local_cpulist",
        ]
        .iter()
        .enumerate()
        {
            tree.write(&format!("{device}/{file}"), noise(seed + at as u64, 300));
        }
        tree.write("sys/module/nvidia/refcnt", noise(seed, 40));
        tree.write("sys/devices/system/node/online", noise(seed, 40));
        tree.write("sys/devices/system/node/node0/meminfo", noise(seed, 400));
        // Things of the wrong kind.
        std::fs::remove_dir_all(tree.path("proc/4000/fd")).unwrap();
        tree.write("proc/4000/fd", noise(seed, 10));
        tree.make("proc/4001/stat");
        tree.link("proc/4002", "4002");
        tree.write("proc/4003", "no folder");
        tree.write("proc/99999999999999999999/stat", noise(seed, 100));

        let gpu_box = GpuBox::written(LISTED).in_tree(&tree);
        let sampler = Sampler::start(&gpu_box, "250ms");
        let (first, _) =
            sampler.find("the GPU", |frame| frame.find_gpu(0).is_some_and(Gpu::answers));
        let (later, passed) = sampler.find("later values", |frame| {
            frame.gpu(0).utilization.read.at_ms > first.gpu(0).utilization.read.at_ms + 1000
        });
        assert!(passed >= 2);
        assert_eq!(later.gpu(0).utilization.gpu_ratio.get(), Some(0.64));
        assert_eq!(later.snapshot.processes[0].gpu_bytes(), 9 << 30);
        let (code, text) = gpu_box.once();
        assert!(text.contains("H200"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
        // Garbage where the module's version stands may look like another release.
        assert!(matches!(code, 0 | 3), "{code}: {text}");
    }
}

#[test]
fn files_that_vanish_and_come_back_while_they_are_read_are_survived() {
    let tree = listed(500, b"engine\0--first\0");
    let gpu_box = GpuBox::written(LISTED).in_tree(&tree);
    let mut sampler = Sampler::start(&gpu_box, "250ms");
    let first = sampler.next().snapshot.sequence;
    let mut there = true;
    let mut last = first;
    until("ten more frames", || {
        if there {
            let _ = std::fs::remove_dir_all(tree.path("proc/4000"));
        } else {
            put_process(&tree, 500, b"engine\0--first\0");
        }
        there = !there;
        pause();
        if let Some(frame) = sampler.try_next() {
            last = frame.snapshot.sequence;
        }
        last >= first + 10
    });
    assert!(sampler.child.try_wait().unwrap().is_none());
}

//! Recordings: made without a daemon, shown by the same panels, handed on without names.

use std::path::Path;

use crate::gpu_box::GpuBox;
use crate::running_daemon::Daemon;
use crate::terminal::Terminal;
use crate::waiting::until;

const SIZE: (u16, u16) = (24, 80);

fn record(gpu_box: &GpuBox, file: &Path) {
    let file = file.to_str().unwrap();
    let output = gpu_box.run(&["record", file, "--for", "3s", "--interval", "250ms"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("infertop replay"), "{said}");
}

#[test]
fn what_was_recorded_is_one_file_and_is_shown_again() {
    let gpu_box = GpuBox::of("eight-h100");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("box.db");
    record(&gpu_box, &file);
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let terminal =
        Terminal::start(&gpu_box, SIZE, &["replay", file.to_str().unwrap(), "--at", "-1s"]);
    until("the recorded box", || {
        terminal.text().contains("recording") && terminal.text().contains("8×H100")
    });
    // Nobody reads the driver for a recording.
    assert_eq!(crate::waiting::children(terminal.child.id()), Vec::<u32>::new());
    terminal.keys("q");
    until("the end", || !crate::waiting::is_alive(terminal.child.id()));
}

#[test]
fn a_file_that_is_there_is_never_written_over() {
    let gpu_box = GpuBox::of("eight-h100");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("precious");
    std::fs::write(&file, "words").unwrap();
    for command in [&["record"][..], &["export", "--from", "-1h"]] {
        let mut arguments = command.to_vec();
        arguments.push(file.to_str().unwrap());
        let output = gpu_box.run(&arguments);
        assert!(!output.status.success(), "{command:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("help:"), "{output:?}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "words");
}

#[test]
fn an_export_of_a_running_daemon_holds_the_stretch_and_no_names() {
    let gpu_box = GpuBox::of("eight-h100");
    let daemon = Daemon::start(&gpu_box, &["--interval", "250ms"]);
    daemon.until_number(8);
    let name = daemon.json("/v1/snapshot")["host"]["name"].as_str().unwrap().to_string();
    let file = daemon.folder().path().join("slice.db");
    let store = daemon.store();
    let arguments =
        ["export", file.to_str().unwrap(), "--store", store.to_str().unwrap(), "--from", "-1h"];
    let output = gpu_box.run(&arguments);
    assert!(output.status.success(), "{output:?}");
    let terminal =
        Terminal::start(&gpu_box, SIZE, &["replay", file.to_str().unwrap(), "--at", "-0s"]);
    until("the exported box", || {
        terminal.text().contains("8×H100") && terminal.text().contains("host1")
    });
    assert!(!terminal.text().contains(&format!("infertop  {name} ")), "{}", terminal.text());
}

#[test]
fn a_stretch_that_was_not_recorded_says_what_was() {
    let gpu_box = GpuBox::of("eight-h100");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("box.db");
    record(&gpu_box, &file);
    let slice = folder.path().join("slice.db");
    let output = gpu_box.run(&[
        "export",
        slice.to_str().unwrap(),
        "--store",
        file.to_str().unwrap(),
        "--from",
        "2020-01-01 00:00",
        "--to",
        "2020-01-02 00:00",
    ]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("it goes from"), "{said}");
    assert!(!slice.exists(), "half a file is left");
}

#[test]
fn what_is_no_recording_is_refused_with_a_reason() {
    let gpu_box = GpuBox::of("eight-h100");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("words.txt");
    std::fs::write(&file, "these are words and no recording, whatever the name says\n").unwrap();
    let terminal = Terminal::start(&gpu_box, SIZE, &["replay", file.to_str().unwrap()]);
    until("the refusal", || terminal.text().contains("error:"));
    until("the end", || !crate::waiting::is_alive(terminal.child.id()));
    let text = terminal.text();
    assert!(text.contains("words.txt") && text.contains("help:"), "{text}");
}

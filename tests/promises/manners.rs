//! How the program treats a terminal, and the lack of one.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::gpu_box::GpuBox;
use crate::terminal::{Terminal, wait_for_end};
use crate::waiting::{is_alive, is_stopped, only_child, until, until_gone};

const TWO: &str = "[[gpu]]\nmodel = 'H100 80GB HBM3'\ncount = 2\nutilization = 50\n\
    [[process]]\ngpu = 'all'\nper_gpu = 1\npid = 4100000\nbytes = '10GiB'\n";

fn shown(gpu_box: &GpuBox) -> Terminal {
    let terminal = Terminal::start(gpu_box, (24, 80), &[]);
    terminal.wait_for("values", |text| text.contains("50%"));
    terminal
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
}

#[test]
fn a_terminal_that_goes_away_takes_everything_with_it() {
    let gpu_box = GpuBox::written(TWO);
    let terminal = shown(&gpu_box);
    let sampler = only_child(terminal.child.id());
    let mut child = terminal.hang_up();
    wait_for_end(&mut child);
    until_gone(sampler);
}

#[test]
fn a_hangup_signal_ends_it_and_gives_the_terminal_back() {
    let gpu_box = GpuBox::written(TWO);
    let mut terminal = shown(&gpu_box);
    let sampler = only_child(terminal.child.id());
    kill_process(Pid::from_child(&terminal.child), Signal::HUP).unwrap();
    let (status, _) = terminal.wait_for_end();
    assert!(status.success(), "{status}");
    terminal.wait_until_given_back();
    until_gone(sampler);
}

#[test]
fn a_dashboard_that_is_killed_leaves_no_sampler_behind() {
    let gpu_box = GpuBox::written(TWO);
    let mut terminal = shown(&gpu_box);
    let sampler = only_child(terminal.child.id());
    terminal.child.kill().unwrap();
    terminal.wait_for_end();
    until_gone(sampler);
}

#[test]
fn a_sampler_that_dies_is_said_and_replaced() {
    let gpu_box = GpuBox::written(TWO);
    let mut terminal = Terminal::start(&gpu_box, (24, 100), &["-p", "about"]);
    terminal.wait_for("the feed", |text| text.contains("an own sampler"));
    let first = only_child(terminal.child.id());
    kill_process(pid(first), Signal::KILL).unwrap();
    terminal.wait_for("the trouble", |text| text.contains("the sampler has ended"));
    terminal.wait_for("another sampler", |text| !text.contains("the sampler has ended"));
    let second = only_child(terminal.child.id());
    assert_ne!(first, second);
    terminal.keys("1");
    terminal.wait_for("values", |text| text.contains("50%"));
    terminal.keys("q");
    assert!(terminal.wait_for_end().0.success());
}

/// Parameters of every "select graphic rendition" in what was written.
fn renditions(raw: &[u8]) -> Vec<u32> {
    let text = String::from_utf8_lossy(raw);
    let mut found = Vec::new();
    for part in text.split("\u{1b}[").skip(1) {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':');
        if let Some(end) = end.filter(|end| part[*end..].starts_with('m')) {
            found.extend(part[..end].split([';', ':']).map(|word| word.parse().unwrap_or(0)));
        }
    }
    found
}

fn is_colour(parameter: u32) -> bool {
    // 39 and 49 take a colour away.
    matches!(parameter, 30..=38 | 40..=48 | 90..=97 | 100..=107)
}

#[test]
fn no_color_is_respected_and_without_it_there_are_colours() {
    let gpu_box = GpuBox::of("lost-one");
    for (value, coloured) in [("1", false), ("", true)] {
        let variables = [("NO_COLOR", value), ("COLORTERM", "truecolor")];
        let terminal = Terminal::start_with(&gpu_box, (24, 80), &[], &variables);
        terminal.wait_for("values", |text| text.contains("93%"));
        for key in ["2", "3", "4", "5", "6", "7", "1"] {
            terminal.keys(key);
        }
        terminal.wait_for("the first panel again", |text| text.contains("WHO"));
        let colours = renditions(&terminal.raw()).into_iter().any(is_colour);
        assert_eq!(colours, coloured, "NO_COLOR={value:?}");
    }
}

#[test]
fn a_terminal_that_cannot_place_its_cursor_is_refused_with_advice() {
    let gpu_box = GpuBox::written(TWO);
    let mut terminal = Terminal::start_with(&gpu_box, (24, 80), &[], &[("TERM", "dumb")]);
    let (status, _) = terminal.wait_for_end();
    assert_eq!(status.code(), Some(1));
    terminal.wait_for("advice", |text| text.contains("infertop once"));
    assert!(!terminal.raw().contains(&0x1b), "{}", terminal.text());
}

#[test]
fn output_that_is_no_terminal_gets_an_error_with_advice_and_no_escape_codes() {
    let output = GpuBox::written(TWO).run(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "{:?}", output.stdout);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.starts_with("error: "), "{errors}");
    assert!(errors.contains("help:") && errors.contains("infertop once"), "{errors}");
    assert!(!errors.contains('\u{1b}'), "{errors:?}");
}

#[test]
fn once_writes_no_escape_codes() {
    for arguments in [&["once"][..], &["once", "--json"], &["--help"]] {
        let output = GpuBox::written(TWO).run(arguments);
        assert!(output.status.success());
        assert!(!output.stdout.contains(&0x1b), "{arguments:?}");
        assert!(output.stderr.is_empty(), "{:?}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let gpu_box = GpuBox::written(TWO);
    for (command, reader) in [("once", "true"), ("once --json", "head -n 1"), ("--help", "true")] {
        let script = format!(
            "'{}' {command} | {reader}; exit \"${{PIPESTATUS[0]}}\"",
            env!("CARGO_BIN_EXE_infertop")
        );
        let output = Command::new("bash")
            .args(["-c", &script])
            .env_clear()
            .envs(gpu_box.environment())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}: {}", output.status);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.is_empty(), "{command}: {errors}");
    }
}

#[test]
fn control_z_stops_it_and_the_shell_brings_it_back() {
    let gpu_box = GpuBox::written(TWO);
    let arguments = ["--norc", "--noprofile", "-i"];
    let variables = [("PS1", "prompt: "), ("HISTFILE", "")];
    let terminal = Terminal::program("/bin/bash", &gpu_box, (24, 80), &arguments, &variables);
    terminal.wait_for("a prompt", |text| text.contains("prompt: "));
    terminal.keys(&format!("'{}'\r", env!("CARGO_BIN_EXE_infertop")));
    terminal.wait_for("values", |text| text.contains("50%"));
    let infertop = only_child(terminal.child.id());
    terminal.keys("\u{1a}");
    until("the stop", || is_stopped(infertop));
    terminal.wait_for("the shell's word", |text| text.contains("Stopped"));
    assert!(!terminal.is_taken());
    terminal.keys("fg\r");
    terminal.wait_for("the picture", |text| text.contains("50%") && text.contains("q quit"));
    assert!(terminal.is_taken());
    until("a process that runs", || is_alive(infertop) && !is_stopped(infertop));
    terminal.keys("q");
    until_gone(infertop);
    terminal.wait_until_given_back();
    terminal.keys("echo st$((40+2))ill\r");
    terminal.wait_for("a shell that echoes", |text| text.contains("st42ill"));
}

#[test]
fn control_c_leaves_at_any_moment() {
    let gpu_box = GpuBox::written(TWO);
    for before in ["", "?", "3/filter"] {
        let mut terminal = shown(&gpu_box);
        terminal.keys(before);
        terminal.keys("\u{3}");
        assert!(terminal.wait_for_end().0.success(), "after {before:?}");
        terminal.wait_until_given_back();
    }
}

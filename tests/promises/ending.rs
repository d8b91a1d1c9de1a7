//! Ending a process from the dashboard: it says what it hits, wants the pid typed, and never hits
//! anything else.

use crate::gpu_box::GpuBox;
use crate::terminal::Terminal;
use crate::workload::Workload;

const ONE: &str = "
[[gpu]]
model = 'H200'

[[process]]
gpu = 0
pid_file = 'pids'
bytes = '9GiB'
";

/// The question about a process of the test, asked.
fn asked(workload: &Workload) -> (GpuBox, Terminal) {
    let gpu_box = GpuBox::written(ONE);
    gpu_box.bind(&[workload.pid()]);
    let terminal =
        Terminal::start(&gpu_box, (30, 100), &["-p", "processes", "--interval", "250ms"]);
    terminal.wait_for("the process with its start", |text| {
        text.contains(&workload.pid().to_string())
            && text.contains("SIGN")
            && text.contains("sleeping")
    });
    terminal.keys("k");
    terminal.wait_for("the question", |text| text.contains("to confirm"));
    (gpu_box, terminal)
}

fn shows_question(text: &str) -> bool {
    text.contains("to confirm") || text.contains("cannot be ended")
}

#[test]
fn the_question_names_what_is_hit() {
    let workload = Workload::with_arguments(&["SIGN"]);
    let (_box, terminal) = asked(&workload);
    let text = terminal.text();
    let pid = workload.pid();
    for words in [
        format!("{pid}, started"),
        "read -r line sh SIGN".into(),
        "9.0 GiB on GPU 0".into(),
        "user".into(),
        "container".into(),
        "children".into(),
        format!("type {pid} to confirm"),
        "TERM".into(),
    ] {
        assert!(text.contains(&words), "{words:?} is not in\n{text}");
    }
}

#[test]
fn the_typed_pid_ends_it_softly() {
    let mut workload = Workload::with_arguments(&["SIGN"]);
    let (_box, terminal) = asked(&workload);
    terminal.keys(&format!("{}\r", workload.pid()));
    assert_eq!(workload.ended_by(), Some(15));
    terminal.wait_for("the answer", |text| text.contains("SIGTERM"));
    terminal.wait_for("an empty list", |text| !text.contains("SIGN"));
}

#[test]
fn the_second_choice_ends_it_at_once() {
    let mut workload = Workload::with_arguments(&["SIGN"]);
    let (_box, terminal) = asked(&workload);
    terminal.keys("\t");
    terminal.wait_for("the other signal", |text| text.contains("› KILL"));
    terminal.keys(&format!("{}\r", workload.pid()));
    assert_eq!(workload.ended_by(), Some(9));
}

#[test]
fn nothing_else_than_the_pid_will_do() {
    let mut workload = Workload::with_arguments(&["SIGN"]);
    let (_box, terminal) = asked(&workload);
    let pid = workload.pid().to_string();
    terminal.keys("\r");
    terminal.keys("y\r");
    terminal.wait_for("a refusal", |text| text.contains("that is not its pid"));
    // All but the last digit, and one digit too many.
    terminal.keys("\u{7f}");
    terminal.keys(&format!("{}\r", &pid[..pid.len() - 1]));
    terminal.keys(&format!("{}0\r", &pid[pid.len() - 1..]));
    terminal.wait_for("a refusal", |text| text.contains("that is not its pid"));
    assert!(workload.is_running());
    terminal.keys("\u{7f}\r");
    assert_eq!(workload.ended_by(), Some(15));
}

#[test]
fn escape_cancels() {
    let mut workload = Workload::with_arguments(&["SIGN"]);
    let (_box, mut terminal) = asked(&workload);
    terminal.keys(&workload.pid().to_string());
    terminal.keys("\u{1b}");
    terminal.wait_for("the panel", |text| !shows_question(text));
    terminal.keys("\r");
    terminal.keys("q");
    assert!(terminal.wait_for_end().0.success());
    assert!(workload.is_running());
}

#[test]
fn a_process_that_has_ended_meanwhile_is_not_asked_about_any_more() {
    let mut workload = Workload::with_arguments(&["SIGN"]);
    let (_box, terminal) = asked(&workload);
    let pid = workload.pid();
    workload.end();
    terminal.wait_for("the refusal", |text| text.contains("cannot be ended here"));
    terminal.keys(&format!("{pid}\r"));
    terminal.wait_for("the refusal still", |text| text.contains("cannot be ended here"));
}

#[test]
fn a_pid_that_only_the_driver_knows_cannot_be_ended() {
    let gpu_box = GpuBox::written(&ONE.replace("pid_file = 'pids'", "pid = 4100000"));
    let terminal = Terminal::start(&gpu_box, (30, 100), &["-p", "processes"]);
    terminal.wait_for("the process", |text| text.contains("4100000"));
    terminal.keys("k");
    terminal.wait_for("the refusal", |text| text.contains("cannot be ended here"));
}

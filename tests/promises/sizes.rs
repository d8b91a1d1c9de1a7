//! From no GPU to sixty-four, from one cell to a wide screen: what fits is shown whole, what does
//! not is said.

use crate::gpu_box::GpuBox;
use crate::terminal::Terminal;
use crate::waiting::pause;
use crate::workload::Workload;

/// Eight GPUs, each with one process of the test.
const EIGHT: &str = "
[[gpu]]
model = 'H100 80GB HBM3'
count = 8
utilization = 77

[[process]]
gpu = 'all'
per_gpu = 1
pid_file = 'pids'
bytes = '40GiB'
";

fn quit(mut terminal: Terminal) {
    terminal.keys("q");
    let (status, _) = terminal.wait_for_end();
    assert!(status.success(), "{status}");
    terminal.wait_until_given_back();
}

#[test]
fn eighty_by_twenty_four_shows_eight_gpus_and_eight_holders_at_once() {
    let gpu_box = GpuBox::written(EIGHT);
    let workloads: Vec<Workload> = (0..8).map(|_| Workload::sleeping()).collect();
    let pids: Vec<u32> = workloads.iter().map(Workload::pid).collect();
    gpu_box.bind(&pids);
    let terminal = Terminal::start(&gpu_box, (24, 80), &[]);
    terminal.wait_for("eight holders", |text| {
        pids.iter().all(|pid| text.contains(&format!(" {pid} ")))
    });
    let text = terminal.text();
    for index in 0..8 {
        let row = terminal.gpu_row(index);
        assert!(row.contains("77%") && row.contains("40.0"), "GPU {index}:\n{text}");
    }
    for pid in &pids {
        let row = terminal.rows().into_iter().find(|row| row.contains(&format!(" {pid} ")));
        let row = row.unwrap();
        assert!(row.contains("sleep 10000") && row.contains("40.0"), "{row}");
    }
    quit(terminal);
}

#[test]
fn no_gpu_is_said_in_words() {
    let terminal = Terminal::start(&GpuBox::of("empty"), (24, 80), &[]);
    terminal.wait_for("the cause", |text| text.contains("no_gpu_visible"));
    quit(terminal);
}

#[test]
fn sixty_four_gpus_are_counted_and_the_last_one_can_be_reached() {
    let gpu_box = GpuBox::of("sixty-four");
    let terminal = Terminal::start(&gpu_box, (24, 80), &[]);
    terminal.wait_for("the count", |text| text.contains("64×A100") && text.contains("of 64"));
    terminal.wait_for("values", |text| text.contains("61.0"));
    for _ in 0..63 {
        terminal.keys("j");
    }
    terminal.wait_for("GPU 63", |_| terminal.gpu_row(63).contains("61.0"));
    quit(terminal);
    let (code, text) = gpu_box.once();
    assert_eq!(code, 0);
    let rows = text.lines().filter(|line| line.contains("A100-SXM4")).count();
    assert_eq!(rows, 64, "{text}");
}

#[test]
fn sixty_by_fifteen_shows_gpus_holders_and_the_keys() {
    let gpu_box = GpuBox::written(EIGHT);
    let workload = Workload::sleeping();
    gpu_box.bind(&[workload.pid()]);
    let terminal = Terminal::start(&gpu_box, (15, 60), &[]);
    terminal.wait_for("GPUs and a holder", |text| {
        text.contains("77%") && text.contains(&workload.pid().to_string())
    });
    let rows = terminal.rows();
    assert!(rows[0].starts_with("infertop"), "{rows:?}");
    assert!(rows[14].contains("q quit"), "{rows:?}");
    let shown = (0..8).filter(|index| terminal.gpu_row(*index).contains("77%")).count();
    assert!(shown == 8 || terminal.text().contains("of 8"), "{}", terminal.text());
    quit(terminal);
}

#[test]
fn twenty_by_five_says_that_it_is_too_small_and_what_is_needed() {
    let terminal = Terminal::start(&GpuBox::written(EIGHT), (5, 20), &[]);
    terminal.wait_for("the words", |text| {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        words.contains("too small: 20×5, needs 40×8")
    });
    quit(terminal);
}

#[test]
fn one_cell_is_survived_and_a_larger_window_is_drawn_whole() {
    let terminal = Terminal::start(&GpuBox::written(EIGHT), (1, 1), &[]);
    terminal.wait_for("a sign of life", |text| !text.trim().is_empty());
    terminal.resize(24, 80);
    terminal.wait_for("all GPUs", |_| (0..8).all(|index| terminal.gpu_row(index).contains("77%")));
    quit(terminal);
}

/// Numbers without a pattern, the same at every run (xorshift).
fn numbers(mut state: u32) -> impl FnMut(u16) -> u16 {
    move |below| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        u16::try_from(state % u32::from(below)).unwrap()
    }
}

#[test]
fn two_hundred_resizes_while_it_draws_end_in_the_right_picture() {
    let terminal = Terminal::start(&GpuBox::written(EIGHT), (24, 80), &["--interval", "250ms"]);
    terminal.wait_for("values", |text| text.contains("77%"));
    let mut random = numbers(20_240_817);
    for round in 0..200 {
        terminal.resize(1 + random(90), 1 + random(250));
        if round % 7 == 0 {
            // Panels are drawn at odd sizes too.
            terminal.keys(["1", "2", "3", "4", "5", "6", "7", "?", "\u{1b}"][round % 9]);
        }
        pause();
    }
    terminal.resize(24, 80);
    // Out of whatever is open, then to the first panel; a pause tells Esc from a key sequence.
    for key in ["\u{1b}", "1"] {
        let before = std::time::Instant::now();
        while before.elapsed() < std::time::Duration::from_millis(150) {
            pause();
        }
        terminal.keys(key);
    }
    terminal.wait_for("the picture as before", |text| {
        let rows = terminal.rows();
        text.contains("8×H100")
            && rows.len() == 24
            && rows[23].contains("q quit")
            && (0..8).all(|index| terminal.gpu_row(index).contains("77%"))
    });
    quit(terminal);
}

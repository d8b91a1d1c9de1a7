//! Scripted keys: what is pressed, what is seen, what is asked of the program.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use panels::ui::{Action, Signal, Ui};
use probes::reading::{Absence, Reading};
use ratatui::layout::Rect;

use crate::boxes::{self, Shown};
use crate::picture;

/// A terminal of 80×24 with a hand on its keys.
pub(crate) struct Hand {
    pub(crate) ui: Ui,
    pub(crate) shown: Shown,
}

impl Hand {
    pub(crate) fn on(shown: Shown) -> Self {
        let mut hand = Self { ui: picture::ui(), shown };
        hand.look();
        hand
    }

    pub(crate) fn look(&mut self) -> String {
        picture::text(&picture::draw(&mut self.ui, &self.shown.view(), 80, 24))
    }

    pub(crate) fn press(&mut self, code: KeyCode) -> Action {
        let action = self.ui.key(KeyEvent::new(code, KeyModifiers::NONE), &self.shown.view());
        self.look();
        action
    }

    pub(crate) fn press_shift(&mut self, code: KeyCode) -> Action {
        let action = self.ui.key(KeyEvent::new(code, KeyModifiers::SHIFT), &self.shown.view());
        self.look();
        action
    }

    /// Presses each letter; gives the last answer.
    pub(crate) fn type_text(&mut self, text: &str) -> Action {
        text.chars().fold(Action::None, |_, c| self.press(KeyCode::Char(c)))
    }

    fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) -> Action {
        let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        let action = self.ui.mouse(event, &self.shown.view(), Rect::new(0, 0, 80, 24));
        self.look();
        action
    }
}

fn selected(text: &str) -> &str {
    text.lines().find(|line| line.starts_with('›')).unwrap_or("")
}

#[test]
fn digits_tab_and_esc_walk_through_the_panels() {
    let mut hand = Hand::on(boxes::busy_box());
    hand.type_text("3");
    assert_eq!(hand.ui.panel(), "processes");
    hand.press(KeyCode::Tab);
    assert_eq!(hand.ui.panel(), "bus");
    hand.press(KeyCode::BackTab);
    hand.press(KeyCode::Esc);
    hand.press(KeyCode::Esc);
    hand.press(KeyCode::Esc);
    assert_eq!(hand.ui.panel(), "overview");
    hand.type_text("9");
    assert_eq!(hand.ui.panel(), "help", "a digit beyond the last panel goes to the last");
}

#[test]
fn quit_pause_and_interval_are_asked_of_the_program() {
    let mut hand = Hand::on(boxes::busy_box());
    assert_eq!(hand.type_text("q"), Action::Quit);
    assert_eq!(hand.type_text(" "), Action::TogglePause);
    assert_eq!(hand.type_text("+"), Action::Interval { ms: 2000 });
    assert_eq!(hand.type_text("-"), Action::Interval { ms: 500 });
    hand.shown.feed.interval_ms = 250;
    assert_eq!(hand.type_text("-"), Action::None, "250 ms is the floor");
}

#[test]
fn control_c_quits_even_while_text_is_typed() {
    let mut hand = Hand::on(boxes::busy_box());
    hand.type_text("3/q");
    let event = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(hand.ui.key(event, &hand.shown.view()), Action::Quit);
}

#[test]
fn enter_on_a_gpu_opens_it_and_esc_returns() {
    let mut hand = Hand::on(boxes::sick_box());
    hand.press(KeyCode::Enter);
    assert!(hand.look().contains("gpu · GPU 3"));
    hand.press(KeyCode::Right);
    assert!(hand.look().contains("gpu · GPU 4"));
    hand.press(KeyCode::Esc);
    assert_eq!(hand.ui.panel(), "overview");
}

#[test]
fn enter_on_a_finding_shows_evidence_and_next_step() {
    let mut hand = Hand::on(boxes::sick_box());
    for _ in 0..8 {
        hand.press(KeyCode::Down);
    }
    hand.press(KeyCode::Enter);
    let text = hand.look();
    assert!(text.contains("orphaned_engine_process"), "{text}");
    assert!(text.contains("its parent 48190 ended"), "{text}");
    insta::assert_snapshot!("finding_80x24", text);
    let Action::Copy(words) = hand.type_text("y") else { panic!("y copies the finding") };
    assert!(words.starts_with("CRITICAL pid 48233: an engine"), "{words}");
}

#[test]
fn enter_on_a_holder_opens_its_process_and_esc_returns() {
    let mut hand = Hand::on(boxes::sick_box());
    for _ in 0..11 {
        hand.press(KeyCode::Down);
    }
    hand.press(KeyCode::Enter);
    let text = hand.look();
    assert!(text.contains("process 48233"), "{text}");
    assert!(text.contains("(replaced)"), "{text}");
    insta::assert_snapshot!("process_80x24", text);
    hand.press(KeyCode::Esc);
    assert_eq!(hand.ui.panel(), "overview");
}

#[test]
fn why_a_value_is_missing_is_said_when_its_row_is_selected() {
    let mut hand = Hand::on(boxes::sick_box());
    for _ in 0..7 {
        hand.press(KeyCode::Down);
    }
    assert!(hand.look().contains("GPU 6: MHz: code 999"));
}

#[test]
fn the_selection_stays_on_its_gpu_when_another_gets_worse() {
    let mut hand = Hand::on(boxes::busy_box());
    hand.press(KeyCode::Down);
    assert!(selected(&hand.look()).contains(" 1 "));
    hand.shown = boxes::sick_box();
    assert!(selected(&hand.look()).contains(" 1 "));
}

#[test]
fn a_filter_narrows_while_it_is_typed() {
    let mut hand = Hand::on(boxes::busy_box());
    hand.type_text("3/XORG");
    let text = hand.look();
    assert!(text.contains("filter XORG") && text.contains("2 rows"), "{text}");
    hand.press(KeyCode::Enter);
    assert_eq!(hand.type_text("q"), Action::Quit, "after Enter, keys are commands again");
    hand.press(KeyCode::Esc);
    assert!(!hand.look().contains("filter XORG"));
    hand.type_text("/4f5c1a");
    assert!(hand.look().contains("2 rows"), "any column is searched");
    hand.press(KeyCode::Esc);
    hand.type_text("/nothing like this");
    assert!(hand.look().contains("no process fits the filter"));
}

#[test]
fn sorting_goes_through_the_columns_and_turns_around() {
    let mut hand = Hand::on(boxes::busy_box());
    hand.type_text("3");
    assert!(hand.look().contains("HELD↓"));
    hand.type_text("r");
    assert!(hand.look().contains("HELD↑"));
    hand.type_text("rss");
    assert!(hand.look().contains("CPU↓"), "{}", hand.look());
}

#[test]
fn the_tree_shows_parents_that_use_no_gpu() {
    let mut hand = Hand::on(boxes::busy_box());
    let shim = probes::proc::Ancestor { pid: 47999, comm: "containerd-shim".into() };
    hand.shown.snapshot.processes[0].ancestors.insert(0, shim.clone());
    hand.shown.snapshot.processes[1].ancestors.insert(1, shim);
    hand.type_text("3t");
    let text = hand.look();
    assert!(text.contains("containerd-shim") && text.contains("  └ vLLM worker"), "{text}");
    insta::assert_snapshot!("tree_80x24", text);
}

fn to_process(hand: &mut Hand, pid: u32) {
    hand.type_text("3");
    while !selected(&hand.look()).contains(&pid.to_string()) {
        hand.press(KeyCode::Down);
    }
}

#[test]
fn ending_a_process_names_what_is_hit_and_wants_its_pid_typed() {
    let mut hand = Hand::on(boxes::busy_box());
    to_process(&mut hand, 48102);
    assert_eq!(hand.type_text("k"), Action::Redraw);
    let text = hand.look();
    for words in ["48102", "Qwen/Qwen3-32B", "docker 4f5c1a2b3c4d", "48110 VLLM::Worker_TP"] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
    insta::assert_snapshot!("end_process_80x24", text);
    hand.type_text("y");
    assert_eq!(hand.press(KeyCode::Enter), Action::Redraw, "y is not enough");
    hand.press(KeyCode::Backspace);
    hand.type_text("48102");
    assert_eq!(
        hand.press(KeyCode::Enter),
        Action::Kill { pid: 48102, start_ticks: 48_102_000, signal: Signal::Term }
    );
}

#[test]
fn kill_is_a_second_choice_and_asks_anew() {
    let mut hand = Hand::on(boxes::busy_box());
    to_process(&mut hand, 51977);
    hand.type_text("k51977");
    hand.press(KeyCode::Tab);
    assert_eq!(hand.press(KeyCode::Enter), Action::Redraw, "the pid is to be typed again");
    hand.type_text("51977");
    assert_eq!(
        hand.press(KeyCode::Enter),
        Action::Kill { pid: 51977, start_ticks: 51_977_000, signal: Signal::Kill }
    );
}

#[test]
fn a_pid_that_passed_to_another_process_is_not_ended() {
    let mut hand = Hand::on(boxes::busy_box());
    to_process(&mut hand, 51977);
    hand.type_text("k51977");
    for process in &mut hand.shown.snapshot.processes {
        if process.pid == 51977 {
            process.start_ticks = 99_999_999.into();
        }
    }
    assert!(hand.look().contains("cannot be ended here"), "{}", hand.look());
    assert_eq!(hand.press(KeyCode::Enter), Action::Redraw);
}

#[test]
fn a_process_that_is_not_here_or_has_no_start_time_is_not_ended() {
    let mut hand = Hand::on(boxes::sick_box());
    to_process(&mut hand, 47001);
    hand.type_text("k");
    assert!(hand.look().contains("another PID"), "{}", hand.look());
    hand.type_text("47001");
    assert_eq!(hand.press(KeyCode::Enter), Action::Redraw);

    let mut hand = Hand::on(boxes::busy_box());
    hand.shown.snapshot.processes[3].start_ticks =
        Reading::Absent(Absence::Denied { need: "root".into() });
    to_process(&mut hand, 51977);
    hand.type_text("k51977");
    assert!(hand.look().contains("start time is not known"), "{}", hand.look());
    assert_eq!(hand.press(KeyCode::Enter), Action::Redraw);
}

#[test]
fn k_ends_a_holder_on_memory_and_moves_up_on_the_overview() {
    let mut hand = Hand::on(boxes::sick_box());
    hand.type_text("jk");
    assert!(selected(&hand.look()).contains(" 3 "));
    hand.type_text("2k");
    assert!(hand.look().contains("type 48233 to confirm"), "{}", hand.look());
    hand.press(KeyCode::Esc);
    assert!(!hand.look().contains("to confirm"));
}

#[test]
fn arrows_step_through_the_gpus_on_memory() {
    let mut hand = Hand::on(boxes::busy_box());
    hand.type_text("2");
    assert!(hand.look().contains("memory · GPU 0"));
    hand.press(KeyCode::Left);
    assert!(hand.look().contains("memory · GPU 7"));
    hand.type_text("l");
    assert!(hand.look().contains("memory · GPU 0"));
}

#[test]
fn memory_shows_the_gpu_selected_on_the_overview() {
    let mut hand = Hand::on(boxes::busy_box());
    hand.type_text("jjjj2");
    assert!(hand.look().contains("memory · GPU 4"), "{}", hand.look());
    insta::assert_snapshot!("memory_gpu4_80x24", hand.look());
}

#[test]
fn the_question_mark_explains_the_panel() {
    let mut hand = Hand::on(boxes::busy_box());
    hand.type_text("2?");
    let text = hand.look();
    assert!(text.contains("memory in plain words") && text.contains("reserved"), "{text}");
    insta::assert_snapshot!("help_memory_80x24", text);
    hand.press(KeyCode::Esc);
    assert!(!hand.look().contains("plain words"));
}

#[test]
fn a_click_selects_a_second_one_opens_and_the_wheel_moves() {
    let mut hand = Hand::on(boxes::busy_box());
    let left = MouseEventKind::Down(MouseButton::Left);
    hand.mouse(left, 10, 4);
    assert!(selected(&hand.look()).contains(" 2 "), "{}", hand.look());
    hand.mouse(left, 10, 4);
    assert_eq!(hand.ui.panel(), "gpu");
    hand.mouse(left, 14, 23);
    hand.press(KeyCode::Esc);
    hand.type_text("1");
    hand.mouse(left, 14, 23);
    assert_eq!(hand.ui.panel(), "memory", "the tabs in the bottom bar can be clicked");
    hand.type_text("1");
    hand.mouse(MouseEventKind::ScrollDown, 10, 4);
    assert!(selected(&hand.look()).contains(" 5 "), "{}", hand.look());
}

#[test]
fn a_notice_stays_for_some_seconds() {
    let mut hand = Hand::on(boxes::busy_box());
    hand.ui.notice("sent TERM to 51977", boxes::NOW - 5_000);
    assert!(hand.look().contains("sent TERM to 51977"));
    hand.ui.notice("sent TERM to 51977", boxes::NOW - 7_000);
    assert!(!hand.look().contains("sent TERM"));
}

#[test]
fn the_header_says_where_data_comes_from_and_how_old_it_is() {
    let mut hand = Hand::on(boxes::busy_box());
    hand.shown.feed.last_ms = Some(boxes::NOW - 9_000);
    assert!(hand.look().contains("● live 9 s old"), "{}", hand.look());
    hand.shown.feed.paused = true;
    hand.shown.feed.lost = 3;
    let text = hand.look();
    assert!(text.contains("lost 3") && text.contains("PAUSED"), "{text}");
    hand.shown.feed.paused = false;
    hand.shown.feed.source = panels::view::Source::Recording;
    assert!(hand.look().contains("recording 03:12:06 ◂"), "{}", hand.look());
}

#[test]
fn a_paste_goes_into_text_and_never_into_keys() {
    let mut hand = Hand::on(boxes::busy_box());
    hand.type_text("3");
    assert_eq!(hand.ui.paste("qk", &hand.shown.view()), Action::None);
    hand.type_text("/");
    hand.ui.paste("xorg\n", &hand.shown.view());
    assert!(hand.look().contains("filter xorg"));
}

#[test]
fn a_feed_in_trouble_says_so_on_every_panel() {
    let mut hand = Hand::on(boxes::busy_box());
    hand.shown.feed.trouble = Some("the sampler ended with signal 9".into());
    for panel in ["overview", "memory", "help"] {
        hand.ui.show(panel);
        assert!(hand.look().contains("● nothing comes any more: the sampler ended"), "{panel}");
    }
}

#[test]
fn a_held_picture_does_not_grow_old() {
    let mut hand = Hand::on(boxes::sick_box());
    let picture = |hand: &mut Hand| {
        let buf = picture::draw(&mut hand.ui, &hand.shown.view(), 80, 24);
        picture::with_styles(&buf).lines().skip(2).map(String::from).collect::<Vec<_>>()
    };
    hand.shown.feed.paused = true;
    hand.shown.snapshot.taken_at_ms = boxes::NOW;
    let before = picture(&mut hand);
    let mut view = hand.shown.view();
    view.now_ms += 60_000;
    let buf = picture::draw(&mut hand.ui, &view, 80, 24);
    let after: Vec<String> = picture::with_styles(&buf).lines().skip(2).map(String::from).collect();
    assert_eq!(before, after);
}

#[test]
fn what_is_typed_is_seen_on_a_low_terminal() {
    let mut hand = Hand::on(boxes::busy_box());
    to_process(&mut hand, 51977);
    hand.type_text("k51");
    let buf = picture::draw(&mut hand.ui, &hand.shown.view(), 60, 12);
    hand.ui.key(KeyEvent::new(KeyCode::Char('9'), KeyModifiers::NONE), &hand.shown.view());
    let text = picture::text(&picture::draw(&mut hand.ui, &hand.shown.view(), 60, 12));
    assert!(text.contains("to confirm: 519"), "{text}");
    drop(buf);
}

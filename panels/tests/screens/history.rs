//! The history panel: its states as pictures, its keys, what it asks for.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use panels::theme::{Depth, Theme};
use panels::ui::{Action, Travel, Ui};
use panels::view::{Chart, Source};
use probes::past::{MetricPast, Series};
use ratatui::layout::Rect;

use crate::boxes::{self, NOW, Shown};
use crate::pasts::{self, HOUR, MINUTE};
use crate::picture;

/// The panel at 80×24 with a hand on its keys and a store behind it.
struct Hand {
    ui: Ui,
    shown: Shown,
}

impl Hand {
    fn on(shown: Shown) -> Self {
        let mut ui = picture::ui();
        ui.show("history");
        let mut hand = Self { ui, shown };
        hand.look();
        hand
    }

    fn look(&mut self) -> String {
        picture::text(&pasts::draw(&mut self.ui, &mut self.shown, 80, 24))
    }

    fn press(&mut self, code: KeyCode) -> Action {
        self.press_with(code, KeyModifiers::NONE)
    }

    fn press_with(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Action {
        let action = self.ui.key(KeyEvent::new(code, modifiers), &self.shown.view());
        self.look();
        action
    }

    fn type_text(&mut self, text: &str) -> Action {
        text.chars().fold(Action::None, |_, c| self.press(KeyCode::Char(c)))
    }

    /// What is asked for now, when nothing has come yet.
    fn wants(&mut self) -> panels::view::ChartRequest {
        self.shown.past.chart = None;
        picture::draw(&mut self.ui, &self.shown.view(), 80, 24);
        self.ui.wants(&self.shown.view()).expect("the panel needs values")
    }
}

/// The selected row: that of what happened, if there is one, else that of the bold curve.
fn selected(text: &str) -> String {
    let rows = || text.lines().skip_while(|line| !line.contains("WHO"));
    let right = |line: &str| line.chars().skip(30).collect::<String>();
    let mark = rows().map(right).find(|line| line.contains('›'));
    mark.or_else(|| rows().find(|line| line.starts_with('›')).map(String::from)).unwrap_or_default()
}

#[test]
fn an_hour_that_is_remembered_at_every_size() {
    for (width, height) in [(40, 8), (60, 15), (80, 24), (120, 40), (200, 50)] {
        let mut ui = picture::ui();
        ui.show("history");
        let buf = pasts::draw(&mut ui, &mut pasts::remembered(), width, height);
        insta::assert_snapshot!(format!("history_{width}x{height}"), picture::text(&buf));
    }
}

#[test]
fn a_moment_of_the_past_with_every_style() {
    let mut ui = picture::ui();
    ui.show("history");
    let buf =
        pasts::draw(&mut ui, &mut pasts::travelling(pasts::remembered(), 20 * MINUTE), 80, 24);
    insta::assert_snapshot!("history_travel_80x24", picture::with_styles(&buf));
}

#[test]
fn nothing_is_lost_without_colour_and_without_unicode() {
    for (name, ascii) in [("no_colour", false), ("ascii", true)] {
        let mut ui = Ui::new(Theme::new(Depth::None, ascii));
        ui.show("history");
        let mut shown = pasts::travelling(pasts::remembered(), 20 * MINUTE);
        let buf = pasts::draw(&mut ui, &mut shown, 80, 24);
        assert!(!ascii || picture::text(&buf).is_ascii());
        insta::assert_snapshot!(format!("history_{name}_80x24"), picture::with_styles(&buf));
    }
}

#[test]
fn a_metric_is_chosen_by_typing() {
    let mut hand = Hand::on(pasts::remembered());
    hand.type_text("mpcie");
    insta::assert_snapshot!("history_choice_80x24", hand.look());
    hand.type_text(" replays");
    hand.press(KeyCode::Enter);
    assert_eq!(hand.wants().metric, "infertop_gpu_pcie_replays_total");
    for _ in 0..3 {
        hand.press(KeyCode::Down);
    }
    insta::assert_snapshot!("history_counter_80x24", hand.look());
    hand.type_text("mq");
    hand.press(KeyCode::Esc);
    assert!(hand.look().contains("GPU PCIe replays"), "esc changes nothing");
    assert_eq!(hand.type_text("q"), Action::Quit);
}

#[test]
fn what_cannot_be_chosen_is_not_chosen() {
    let mut hand = Hand::on(pasts::remembered());
    hand.type_text("mnothing like this");
    hand.press(KeyCode::Enter);
    assert!(hand.look().contains("no metric fits the filter"), "{}", hand.look());
    hand.ui.paste("x", &hand.shown.view());
    assert!(hand.look().contains("nothing like thisx"));
    hand.press_with(KeyCode::Char('u'), KeyModifiers::CONTROL);
    hand.type_text("host cpu busy");
    hand.press(KeyCode::Enter);
    assert_eq!(hand.wants().metric, "infertop_host_cpu_busy_ratio");
}

#[test]
fn no_more_is_asked_for_than_the_width_shows_and_each_thing_once() {
    let mut hand = Hand::on(pasts::remembered());
    assert_eq!(hand.ui.wants(&hand.shown.view()), None, "it has come");
    let request = hand.wants();
    assert_eq!(request.points, 148, "two dots a column");
    assert!(request.to_ms >= NOW && request.to_ms - request.from_ms == HOUR);
    hand.shown.past.chart = Some(Chart { request, answer: None });
    hand.ui.show("overview");
    assert_eq!(hand.ui.wants(&hand.shown.view()), None, "nobody looks at it");
    hand.ui.show("history");
    assert_eq!(hand.ui.wants(&hand.shown.view()), None, "it is on its way");
}

#[test]
fn zooming_goes_from_two_minutes_to_all_that_is_remembered() {
    let mut hand = Hand::on(pasts::remembered());
    let length = |hand: &mut Hand| {
        let request = hand.wants();
        request.to_ms - request.from_ms
    };
    for (keys, wanted) in
        [("z", 15 * MINUTE), ("+", 2 * MINUTE), ("z", 2 * MINUTE), ("--Z-", 24 * HOUR)]
    {
        hand.type_text(keys);
        assert_eq!(length(&mut hand), wanted, "{keys}");
    }
    hand.type_text("ZZZ");
    assert!(length(&mut hand).abs_diff(26 * HOUR) < 20 * MINUTE);
    assert!(hand.look().contains("history · GPU busy · all"));
}

#[test]
fn a_recording_is_seen_whole_first() {
    let mut hand = Hand::on(pasts::recording());
    assert!(hand.look().contains("history · GPU busy · all"), "{}", hand.look());
    assert!(hand.look().contains("recorded 30 Nov 01:12 to"), "{}", hand.look());
}

#[test]
fn arrows_move_by_a_column_and_shift_by_a_tenth_of_the_stretch() {
    let column = i64::try_from(HOUR / 74).unwrap();
    let tenth = i64::try_from(HOUR / 10).unwrap();
    let by = |ms| Action::Travel(Travel::By { ms });
    let mut hand = Hand::on(pasts::remembered());
    assert_eq!(hand.press(KeyCode::Left), by(-column));
    assert_eq!(hand.press_with(KeyCode::Left, KeyModifiers::SHIFT), by(-tenth));
    let mut hand = Hand::on(pasts::travelling(pasts::remembered(), HOUR));
    assert_eq!(hand.press(KeyCode::Right), by(column));
    assert_eq!(hand.type_text(">"), by(tenth));
    assert_eq!(hand.type_text("."), Action::Travel(Travel::Step { forward: true }));
}

#[test]
fn enter_on_what_happened_travels_there() {
    let mut hand = Hand::on(pasts::remembered());
    for _ in 0..10 {
        hand.press(KeyCode::Down);
    }
    let text = hand.look();
    assert!(selected(&text).contains("process 48233"), "{text}");
    assert!(
        text.contains("since 02:51:07  process 48233: an engine whose server is gone holds 73.1"),
        "{text}"
    );
    assert_eq!(
        hand.press(KeyCode::Enter),
        Action::Travel(Travel::To { ms: NOW - 21 * MINUTE + 1000 }),
        "the first snapshot that could show it"
    );
    let Action::Copy(words) = hand.type_text("y") else { panic!("y copies it") };
    assert!(words.contains("73.1 GiB"), "{words}");
}

#[test]
fn the_curve_of_the_gpu_that_other_panels_look_at_is_the_bold_one() {
    let mut hand = Hand::on(pasts::remembered());
    hand.ui.show("overview");
    hand.type_text("j");
    hand.ui.show("history");
    assert!(selected(&hand.look()).contains("GPU 0"), "{}", hand.look());
    hand.press(KeyCode::Down);
    hand.ui.show("memory");
    assert!(hand.look().contains("memory · GPU 1"), "{}", hand.look());
}

#[test]
fn the_selection_rests_while_values_are_on_their_way() {
    let mut hand = Hand::on(pasts::remembered());
    hand.press(KeyCode::Down);
    hand.press(KeyCode::Down);
    hand.shown.past.chart = None;
    let text = picture::text(&picture::draw(&mut hand.ui, &hand.shown.view(), 80, 24));
    assert!(text.contains("reading …"), "{text}");
    assert!(selected(&hand.look()).contains("GPU 2"), "{}", hand.look());
}

#[test]
fn one_curve_alone_has_a_scale_of_its_own() {
    let mut hand = Hand::on(pasts::remembered());
    for _ in 0..4 {
        hand.press(KeyCode::Down);
    }
    assert!(hand.look().contains(" 100┤"));
    hand.type_text("o");
    assert!(hand.look().contains("   8┤"), "{}", hand.look());
    hand.type_text("o");
    assert!(hand.look().contains(" 100┤"));
}

#[test]
fn a_click_into_the_chart_travels_and_one_on_a_row_selects() {
    let mut hand = Hand::on(pasts::remembered());
    let request = hand.wants();
    hand.look();
    let mut click = |column, row| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        let action = hand.ui.mouse(event, &hand.shown.view(), Rect::new(0, 0, 80, 24));
        (action, picture::text(&pasts::draw(&mut hand.ui, &mut hand.shown, 80, 24)))
    };
    let (action, _) = click(5 + 37, 6);
    assert_eq!(action, Action::Travel(Travel::To { ms: request.from_ms + HOUR / 2 }));
    let (action, text) = click(60, 15);
    assert_eq!(action, Action::Redraw);
    assert!(selected(&text).contains("wall clock"), "{text}");
    let (_, text) = click(3, 15);
    assert!(selected(&text).contains("GPU 1"), "{text}");
    assert_eq!(click(1, 6).0, Action::None);
}

#[test]
fn without_a_past_it_says_why_and_what_to_do() {
    let mut shown = boxes::busy_box();
    let words = "no daemon answers at /run/infertop/infertop.sock";
    shown.past.trouble = Some(words.into());
    let mut hand = Hand::on(shown);
    insta::assert_snapshot!("history_no_past_80x24", hand.look());
    assert_eq!(hand.ui.wants(&hand.shown.view()), None);
    assert_eq!(hand.press(KeyCode::Left), Action::Redraw);
    assert!(hand.look().contains("no past to show"));

    hand.shown.past.trouble = None;
    hand.shown.feed.source = Source::Daemon;
    assert!(hand.look().contains("asking what is remembered"), "{}", hand.look());
}

#[test]
fn what_cannot_be_read_and_what_is_not_there_is_said() {
    let mut hand = Hand::on(pasts::remembered());
    let request = hand.wants();
    let empty =
        MetricPast { metric: request.metric.clone(), step_ms: 1000, ..MetricPast::default() };
    for (answer, words) in [
        (
            Err("the daemon did not answer within 2 s".to_string()),
            "● cannot be read: the daemon did",
        ),
        (Ok(empty), "no value in this stretch"),
    ] {
        let answer = Some(answer);
        hand.shown.past.chart = Some(Chart { request: request.clone(), answer });
        let text = picture::text(&picture::draw(&mut hand.ui, &hand.shown.view(), 80, 24));
        assert!(text.contains(words), "{text}");
        assert!(text.contains("WHAT HAPPENED"), "{text}");
    }
}

#[test]
fn a_subject_without_values_has_a_dash_and_a_reason() {
    let mut shown = pasts::remembered();
    for gpu in &mut shown.snapshot.gpus {
        gpu.utilization.gpu_ratio = probes::reading::Reading::UNSUPPORTED;
    }
    let mut hand = Hand::on(shown);
    let request = hand.wants();
    let nothing = vec![None; 10];
    let uuid = hand.shown.snapshot.gpus[0].uuid.value().cloned().unwrap();
    let series = Series {
        subject: uuid,
        name: "GPU 0".into(),
        min: nothing.clone(),
        mean: nothing.clone(),
        max: nothing,
        ..Series::default()
    };
    let past = MetricPast {
        metric: request.metric.clone(),
        from_ms: request.from_ms,
        step_ms: HOUR / 10,
        series: vec![series],
    };
    hand.shown.past.chart = Some(Chart { request, answer: Some(Ok(past)) });
    let text = picture::text(&picture::draw(&mut hand.ui, &hand.shown.view(), 80, 24));
    assert!(text.contains("›GPU 0       –"), "{text}");
    assert!(text.contains("GPU 0 has no value here: not supported"), "{text}");
}

#[test]
fn a_gpu_that_did_not_come_back_is_not_missing_unseen() {
    let mut hand = Hand::on(pasts::remembered());
    if let Some(Chart { answer: Some(Ok(past)), .. }) = &mut hand.shown.past.chart {
        past.series.remove(5);
    }
    for _ in 0..5 {
        hand.press(KeyCode::Down);
    }
    let text = picture::text(&picture::draw(&mut hand.ui, &hand.shown.view(), 80, 24));
    assert!(text.contains("›GPU 5       ?       ?       ?       ?"), "{text}");
    assert!(text.contains("GPU 5 has no value here: no answer for"), "{text}");
}

#[test]
fn a_subject_that_fell_silent_has_no_last_value() {
    let mut hand = Hand::on(pasts::remembered());
    hand.look();
    if let Some(Chart { answer: Some(Ok(past)), .. }) = &mut hand.shown.past.chart {
        let from = past.series[1].mean.len() * 3 / 4;
        past.series[1].mean[from..].fill(None);
    }
    let text = picture::text(&picture::draw(&mut hand.ui, &hand.shown.view(), 80, 24));
    let row = text.lines().find(|line| line.starts_with(" GPU 1")).unwrap();
    assert!(row.starts_with(" GPU 1       ?      59"), "{row}");
}

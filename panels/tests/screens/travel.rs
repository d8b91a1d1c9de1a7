//! Travelling in time: what keys ask for, what the header and the bar say, what is refused.

use crossterm::event::KeyCode;
use panels::ui::{Action, Travel};
use panels::view::Source;
use probes::past::Span;

use crate::boxes::{self, NOW, Shown};
use crate::keys::Hand;
use crate::pasts::{HOUR, MINUTE, travelling};
use crate::picture;

/// A live picture with a day behind it.
fn with_past() -> Shown {
    let mut shown = boxes::busy_box();
    shown.feed.source = Source::Daemon;
    shown.past.span = Some(Span { from_ms: NOW - 26 * HOUR, to_ms: NOW });
    shown
}

fn recording() -> Shown {
    let mut shown = travelling(with_past(), 20 * MINUTE);
    shown.feed.source = Source::Recording;
    shown
}

fn step(forward: bool) -> Action {
    Action::Travel(Travel::Step { forward })
}

fn by(ms: i64) -> Action {
    Action::Travel(Travel::By { ms })
}

#[test]
fn arrows_lead_from_the_live_picture_into_the_past() {
    let mut hand = Hand::on(with_past());
    assert_eq!(hand.press(KeyCode::Left), step(false));
    assert_eq!(hand.press_shift(KeyCode::Left), by(-60_000));
    assert_eq!(hand.type_text("<"), by(-60_000));
    assert_eq!(hand.type_text(","), step(false));
    assert_eq!(hand.type_text("["), Action::Travel(Travel::Mark { forward: false }));
    assert_eq!(hand.press(KeyCode::Right), Action::Redraw);
    assert!(hand.look().contains("this is live; nothing is newer"));
    hand.type_text("2");
    assert_eq!(hand.press(KeyCode::Left), Action::Redraw, "the GPU before");
    assert_eq!(hand.press_shift(KeyCode::Left), by(-60_000));
}

#[test]
fn while_travelling_arrows_step_on_every_panel_and_letters_change_the_gpu() {
    let mut hand = Hand::on(travelling(with_past(), HOUR));
    for panel in ["overview", "memory", "processes", "bus", "host", "gpu", "about", "help"] {
        hand.ui.show(panel);
        assert_eq!(hand.press(KeyCode::Left), step(false), "{panel}");
        assert_eq!(hand.press(KeyCode::Right), step(true), "{panel}");
        assert_eq!(hand.press_shift(KeyCode::Right), by(60_000), "{panel}");
        assert_eq!(hand.press(KeyCode::Home), Action::Travel(Travel::Oldest), "{panel}");
        assert_eq!(hand.press(KeyCode::End), Action::Travel(Travel::Newest), "{panel}");
        assert_eq!(hand.type_text(" "), Action::Travel(Travel::TogglePlay), "{panel}");
        assert_eq!(hand.type_text("]"), Action::Travel(Travel::Mark { forward: true }), "{panel}");
    }
    hand.ui.show("memory");
    hand.type_text("l");
    assert!(hand.look().contains("memory · GPU 1"), "{}", hand.look());
    assert!(hand.look().contains("h l GPU"), "{}", hand.look());
}

#[test]
fn esc_leads_back_to_the_present_first() {
    let mut hand = Hand::on(travelling(with_past(), HOUR));
    hand.type_text("3");
    hand.press(KeyCode::Enter);
    assert_eq!(hand.press(KeyCode::Esc), Action::Travel(Travel::Newest));
    hand.type_text("?");
    assert_eq!(hand.press(KeyCode::Esc), Action::Redraw, "closes the window");

    let mut hand = Hand::on(recording());
    hand.type_text("3");
    assert_eq!(hand.press(KeyCode::Esc), Action::Redraw);
    assert_eq!(hand.ui.panel(), "overview", "a recording has no present to go back to");
}

#[test]
fn without_a_past_the_keys_say_why() {
    let mut hand = Hand::on(boxes::busy_box());
    for _ in 0..2 {
        for key in [KeyCode::Left, KeyCode::Char('['), KeyCode::Char('@'), KeyCode::Char('<')] {
            assert_eq!(hand.press(key), Action::Redraw);
            let text = hand.look();
            assert!(text.contains("no past to show") && text.contains("infertop daemon"), "{text}");
        }
        hand.shown.past.trouble = Some("no daemon answers; start infertop daemon".into());
    }
    assert!(hand.look().contains("no daemon answers"), "{}", hand.look());
}

#[test]
fn a_time_is_typed_and_gone_to() {
    let mut hand = Hand::on(with_past());
    hand.type_text("@02:51:14");
    insta::assert_snapshot!("time_80x24", hand.look());
    let wanted = NOW - 20 * MINUTE - 53_000;
    assert_eq!(hand.press(KeyCode::Enter), Action::Travel(Travel::To { ms: wanted }));
    assert!(!hand.look().contains("go to a time"), "the window is closed");

    hand.type_text("@-30h");
    assert_eq!(hand.press(KeyCode::Enter), Action::Redraw);
    assert!(hand.look().contains("what is recorded begins 30 Nov 01:12"), "{}", hand.look());
    hand.type_text("@");
    assert!(hand.look().contains("30h@"), "keys are text here");
    hand.press(KeyCode::Enter);
    assert!(hand.look().contains("write 03:12, 03:12:07"), "{}", hand.look());
    hand.press(KeyCode::Esc);
    assert_eq!(hand.type_text("q"), Action::Quit);
}

#[test]
fn a_time_in_a_recording_counts_from_its_end() {
    let mut hand = Hand::on(recording());
    hand.shown.past.span = Some(Span { from_ms: NOW - 9 * HOUR, to_ms: NOW - HOUR });
    hand.type_text("@-2h");
    assert_eq!(hand.press(KeyCode::Enter), Action::Travel(Travel::To { ms: NOW - 3 * HOUR }));
}

#[test]
fn nothing_is_ended_from_a_picture_of_the_past() {
    let mut hand = Hand::on(travelling(with_past(), HOUR));
    hand.type_text("3k");
    assert!(hand.look().contains("picture of the past"), "{}", hand.look());
    hand.type_text("48102");
    assert_eq!(hand.press(KeyCode::Enter), Action::Redraw);
}

#[test]
fn a_question_that_was_opened_live_is_refused_once_the_picture_is_past() {
    let mut hand = Hand::on(with_past());
    hand.type_text("3");
    hand.press(KeyCode::Down);
    hand.type_text("k");
    let text = hand.look();
    let pid = text.split("type ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or("");
    hand.type_text(pid);
    hand.shown.past.cursor_ms = Some(NOW - HOUR);
    assert_eq!(hand.press(KeyCode::Enter), Action::Redraw);
}

#[test]
fn the_header_says_which_moment_is_shown_and_which_way_time_runs() {
    let head = |shown: Shown| {
        let mut hand = Hand::on(shown);
        hand.look().lines().next().map(str::to_string).unwrap_or_default()
    };
    assert!(head(with_past()).ends_with("daemon 1 s  03:12:07"));
    assert!(head(recording()).ends_with("recording 02:52:07 ◂  03:12:07"));
    let mut shown = travelling(with_past(), 25 * HOUR);
    assert!(head(shown).ends_with("daemon 30 Nov 02:12:07 ◂  03:12:07"));
    shown = travelling(with_past(), HOUR);
    shown.past.playing = true;
    assert!(head(shown).ends_with("daemon 02:12:07 ▸  03:12:07"));
}

#[test]
fn a_silent_feed_is_no_trouble_of_a_picture_of_the_past() {
    let mut shown = travelling(with_past(), HOUR);
    shown.feed.trouble = Some("the daemon ended".into());
    shown.feed.last_ms = Some(NOW - HOUR);
    let mut hand = Hand::on(shown);
    let text = hand.look();
    assert!(!text.contains("nothing comes any more") && !text.contains("old"), "{text}");
    hand.shown.past.trouble = Some("the daemon ended".into());
    assert!(hand.look().contains("● no other moment can be read: the daemon ended"));
}

#[test]
fn the_bar_of_a_picture_of_the_past() {
    for (name, panel, shown) in [
        ("travel_overview", "overview", travelling(with_past(), 25 * HOUR)),
        ("travel_memory", "memory", travelling(with_past(), HOUR)),
        ("travel_recording", "processes", recording()),
    ] {
        let mut ui = picture::ui();
        ui.show(panel);
        let buf = picture::draw(&mut ui, &shown.view(), 80, 24);
        let text = picture::with_styles(&buf);
        let lines: Vec<&str> = text.lines().collect();
        let ends = [&lines[..2], &lines[lines.len() - 2..]].concat().join("\n");
        insta::assert_snapshot!(format!("{name}_80x24"), ends);
    }
}

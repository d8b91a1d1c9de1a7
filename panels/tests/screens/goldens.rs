//! Whole screens, reviewed as pictures. Text and styles are both in them.

use panels::panels::PANELS;
use panels::theme::{Depth, Theme};
use panels::ui::Ui;
use ratatui::buffer::Buffer;

use crate::boxes::{self, Shown};
use crate::picture;

/// The one door: a box, a panel, a size.
fn screen(shown: &Shown, panel: &str, width: u16, height: u16) -> Buffer {
    let mut ui = picture::ui();
    assert!(ui.show(panel), "no panel {panel}");
    picture::draw(&mut ui, &shown.view(), width, height)
}

macro_rules! golden {
    ($name:expr, $buffer:expr) => {
        insta::assert_snapshot!($name, picture::with_styles(&$buffer))
    };
}

#[test]
fn the_overview_of_every_box_at_80x24() {
    for (name, shown) in boxes::all() {
        golden!(format!("overview_{name}_80x24"), screen(&shown, "overview", 80, 24));
    }
}

#[test]
fn every_panel_of_the_sick_box_at_every_size() {
    let shown = boxes::sick_box();
    for entry in PANELS {
        for (width, height) in [(60, 15), (80, 24), (120, 40), (200, 50)] {
            let name = format!("{}_sick_{width}x{height}", entry.name);
            golden!(name, screen(&shown, entry.name, width, height));
        }
    }
}

#[test]
fn memory_with_instances_and_without_memory_of_its_own() {
    golden!("memory_mig_80x24", screen(&boxes::mig_box(), "memory", 80, 24));
    golden!("memory_unified_80x24", screen(&boxes::unified_box(), "memory", 80, 24));
    golden!("bus_unified_80x24", screen(&boxes::unified_box(), "bus", 80, 24));
}

#[test]
fn nothing_is_lost_without_colour_and_without_unicode() {
    let shown = boxes::sick_box();
    for (name, depth, ascii) in [("no_colour", Depth::None, false), ("ascii", Depth::None, true)] {
        for panel in ["overview", "memory", "processes"] {
            let mut ui = Ui::new(Theme::new(depth, ascii));
            ui.show(panel);
            let buf = picture::draw(&mut ui, &shown.view(), 80, 24);
            if ascii {
                assert!(picture::text(&buf).is_ascii());
            }
            golden!(format!("{panel}_{name}_80x24"), buf);
        }
    }
}

#[test]
fn without_colour_no_cell_has_one() {
    let shown = boxes::sick_box();
    for entry in PANELS {
        let mut ui = Ui::new(Theme::new(Depth::None, false));
        ui.show(entry.name);
        let buf = picture::draw(&mut ui, &shown.view(), 120, 40);
        let plain = ratatui::style::Color::Reset;
        assert!(
            buf.content.iter().all(|cell| cell.fg == plain && cell.bg == plain),
            "{}",
            entry.name
        );
    }
}

#[test]
fn sixteen_and_256_colours_use_their_own_palette() {
    use ratatui::style::Color;
    let shown = boxes::sick_box();
    for (depth, fits) in [
        (
            Depth::Sixteen,
            (|c| !matches!(c, Color::Rgb(..) | Color::Indexed(_))) as fn(Color) -> bool,
        ),
        (Depth::Palette, |c| matches!(c, Color::Indexed(_) | Color::Reset)),
    ] {
        let mut ui = Ui::new(Theme::new(depth, false));
        let buf = picture::draw(&mut ui, &shown.view(), 80, 24);
        assert!(buf.content.iter().all(|cell| fits(cell.fg) && fits(cell.bg)));
    }
}

#[test]
fn all_gpus_and_eight_holders_are_on_the_first_screen() {
    let text = picture::text(&screen(&boxes::sick_box(), "overview", 80, 24));
    for gpu in 0..8 {
        let number = gpu.to_string();
        let mut rows = text.lines().skip(2).take(8);
        assert!(rows.any(|line| line.chars().nth(3) == number.chars().next()), "GPU {gpu}");
    }
    let holders = text.lines().skip_while(|line| !line.contains("WHO")).skip(1);
    assert!(holders.take_while(|line| !line.contains("overview")).count() >= 8);
}

#[test]
fn red_and_yellow_mean_something_wrong_and_nothing_else() {
    let text = |shown: &Shown, panel| picture::with_styles(&screen(shown, panel, 200, 50));
    for entry in PANELS {
        let drawn = text(&boxes::busy_box(), entry.name);
        let styles: String = drawn.lines().filter_map(|line| line.strip_suffix("    <")).collect();
        assert!(!styles.contains(['c', 'w', 'C', 'W']), "{}:\n{drawn}", entry.name);
    }
}

#[test]
fn a_control_character_in_a_name_never_reaches_a_cell() {
    let shown = boxes::hostile_box();
    for entry in PANELS {
        for (width, height) in [(60, 15), (80, 24), (200, 50)] {
            let buf = screen(&shown, entry.name, width, height);
            for cell in &buf.content {
                let bad = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
                assert!(!cell.symbol().contains(bad), "{}: {:?}", entry.name, cell.symbol());
            }
        }
    }
}

//! What surrounds every panel: the header that says what is looked at and how old it is, and the
//! bottom bar with the keys that work here.

use probes::reading::Reading;
use probes::units;

use crate::canvas::Canvas;
use crate::keys::{Command, KEYS, Key, Tense};
use crate::panels::{Entry, PANELS};
use crate::text;
use crate::view::{Source, View};

/// Columns below which no panel can be read.
pub(crate) const LEAST_WIDTH: u16 = 40;
/// Rows below which no panel can be read.
pub(crate) const LEAST_HEIGHT: u16 = 8;

/// Says that the terminal is too small, and what is needed.
pub(crate) fn too_small(canvas: &mut Canvas) {
    let (theme, width) = (canvas.theme, canvas.width());
    let words = format!(
        "too small: {width}×{}, needs {LEAST_WIDTH}×{LEAST_HEIGHT}. q quits.",
        canvas.height()
    );
    for (line, y) in text::wrap(&words, width).iter().zip(0..) {
        canvas.text(0, y, line, theme.text());
    }
}

/// Draws the header into row 0.
pub(crate) fn header(canvas: &mut Canvas, view: &View, subject: &str) {
    let theme = canvas.theme;
    let width = canvas.width();
    let clock = units::clock(view.now_ms, view.utc_offset_seconds);
    let parts = feed(view);
    let length: u16 = parts.iter().map(|(words, _)| text::width(words) + 2).sum();
    let mut x = width.saturating_sub(length + text::width(&clock));
    let room = x.saturating_sub(1);
    let mut end = canvas.text_in(0, 0, room, "infertop", theme.strong()) + 2;
    let host = view.snapshot.host.name.value().map_or("?", String::as_str);
    end = canvas.text_in(end, 0, room.saturating_sub(end), host, theme.strong());
    if !subject.is_empty() {
        let separator = if theme.is_ascii() { " - " } else { " · " };
        end = canvas.text_in(end, 0, room.saturating_sub(end), separator, theme.dim());
        let subject =
            if theme.is_ascii() { subject.replace(" · ", " - ") } else { subject.into() };
        canvas.text_in(end, 0, room.saturating_sub(end), &subject, theme.text());
    }
    for (words, alarm) in parts {
        let style = if alarm { theme.warning() } else { theme.dim() };
        x = canvas.text(x, 0, &words, style) + 2;
    }
    canvas.text(x, 0, &clock, theme.text());
}

/// How the data arrives: words, and whether they warn.
fn feed(view: &View) -> Vec<(String, bool)> {
    let feed = view.feed;
    let mut parts = Vec::new();
    let seconds = |ms: u64| {
        if ms.is_multiple_of(1000) {
            format!("{} s", ms / 1000)
        } else {
            format!("{:.2} s", ms as f64 / 1000.0)
        }
    };
    let source = match feed.source {
        Source::Live => "live",
        Source::Daemon => "daemon",
        Source::Recording => "recording",
    };
    if view.travels() {
        let arrow = if view.past.playing { '▸' } else { '◂' };
        return vec![(format!("{source} {} {arrow}", shown_moment(view)), false)];
    }
    let silent = feed.last_ms.map(|last| view.now_ms.saturating_sub(last));
    let late = silent.is_some_and(|ms| ms > 2 * feed.interval_ms + 1000);
    if feed.lost > 0 {
        parts.push((format!("lost {}", feed.lost), false));
    }
    match silent {
        None => parts.push((format!("{source}, waiting"), false)),
        Some(ms) if late && !feed.paused => {
            parts.push((format!("● {source} {} old", units::duration(ms / 1000)), true));
        }
        _ => parts.push((format!("{source} {}", seconds(feed.interval_ms)), false)),
    }
    if feed.paused {
        parts.push(("PAUSED".into(), true));
    }
    parts
}

/// The moment that is shown, to the second; its date before it when that is not today's.
fn shown_moment(view: &View) -> String {
    let at = match view.snapshot.taken_at_ms {
        0 => view.past.cursor_ms.unwrap_or(0),
        taken => taken,
    };
    let clock = units::clock(at, view.utc_offset_seconds);
    let moment = units::moment(at, view.now_ms, view.utc_offset_seconds);
    match moment.rsplit_once(' ') {
        Some((date, _)) => format!("{date} {clock}"),
        None => clock,
    }
}

fn count(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// Draws the bottom bar into row `y`. Returns where each tab went, for the mouse.
pub(crate) fn footer(
    canvas: &mut Canvas,
    y: u16,
    entry: &Entry,
    answers: &[Command],
    tense: Tense,
) -> Vec<(u16, u16, usize)> {
    let theme = canvas.theme;
    let width = canvas.width();
    let travels = matches!(tense, Tense::Past | Tense::Recording);
    let mut tabs = Vec::new();
    let mut x = 1;
    // Help and quit keep their place at the right end.
    let fixed: u16 = KEYS
        .iter()
        .filter(|key| is_fixed(key))
        .map(|key| text::width(key.shown) + text::width(key.label) + 3)
        .sum();
    let room = width.saturating_sub(fixed + 1);
    if entry.answers.is_empty() || entry.name == PANELS[0].name || width >= 150 {
        let here = PANELS.iter().position(|other| other.name == entry.name);
        let name = |at: usize| 1 + text::width(PANELS[at].name);
        // The panel on the screen has its name, and so have the others as far as there is room; what
        // is left is digits, so that none is out of the mouse's reach. Help, the last one, has its
        // place at the right anyway. The keys that move in time are worth more than names.
        let mut spare = room.saturating_sub(x + 2 * count(PANELS.len() - 2) + here.map_or(0, name));
        if travels && width < 150 {
            spare = 0;
        }
        for (at, other) in PANELS.iter().enumerate() {
            let is_here = Some(at) == here;
            let named = is_here || name(at) <= spare;
            if !is_here {
                spare = if named { spare - name(at) } else { 0 };
            }
            let end = x + 1 + if named { name(at) } else { 0 };
            let is_help = at + 1 == PANELS.len();
            if end > room || (is_help && !named) {
                break;
            }
            canvas.text(x, y, &(at + 1).to_string(), theme.text());
            if named {
                let style = if is_here { theme.strong() } else { theme.dim() };
                canvas.text(x + 2, y, other.name, style);
            }
            tabs.push((x, end, at));
            x = end + 1;
        }
        x += 1;
    }
    let kept = |time: bool, everywhere: bool| {
        KEYS.iter().filter(move |key| {
            let place = (key.is_of_time(), key.everywhere) == (time, everywhere);
            place && key.is_in_bar(answers, tense) && !is_fixed(key)
        })
    };
    for key in kept(true, true).chain(kept(false, false)).chain(kept(false, true)) {
        let end = x + text::width(key.shown) + 1 + text::width(key.label);
        if end > room {
            break;
        }
        let next = canvas.text(x, y, key.shown, theme.text());
        canvas.text(next + 1, y, key.label, theme.dim());
        x = end + 2;
    }
    x = room + 1;
    for key in KEYS.iter().filter(|key| is_fixed(key)) {
        let next = canvas.text(x, y, key.shown, theme.text());
        x = canvas.text(next + 1, y, key.label, theme.dim()) + 2;
    }
    tabs
}

fn is_fixed(key: &Key) -> bool {
    matches!(key.chords.first(), Some((_, Command::Help | Command::Quit)))
}

/// What the header says of the box as a whole: GPUs, driver, CUDA.
pub(crate) fn box_subject(view: &View) -> String {
    let driver = &view.snapshot.driver;
    let mut parts = vec![crate::words::gpu_names(view.snapshot)];
    match (&driver.version, &driver.module_version) {
        (Reading::Value(version), _) => parts.push(version.clone()),
        (_, Reading::Value(module)) => parts.push(format!("module {module}")),
        _ => {}
    }
    if let Reading::Value(cuda) = &driver.cuda_version {
        parts.push(format!("CUDA {cuda}"));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

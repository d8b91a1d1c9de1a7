//! No size and no reading makes a panel panic.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use panels::panels::PANELS;
use panels::theme::{Depth, Theme};
use panels::ui::Ui;
use panels::view::{Chart, ChartRequest, Past, Source, View};
use probes::finding::Severity;
use probes::past::{Mark, MarkKind, MetricPast, Series, Span};
use probes::reading::{Absence, Reading};
use probes::snapshot::{Gpu, Snapshot};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::boxes::{self, Shown};
use crate::picture;

const KEYS: &[KeyCode] = &[
    KeyCode::Enter,
    KeyCode::Esc,
    KeyCode::Down,
    KeyCode::Up,
    KeyCode::PageDown,
    KeyCode::End,
    KeyCode::Left,
    KeyCode::Right,
    KeyCode::Tab,
    KeyCode::Backspace,
    KeyCode::Char('k'),
    KeyCode::Char('t'),
    KeyCode::Char('s'),
    KeyCode::Char('/'),
    KeyCode::Char('?'),
    KeyCode::Char('推'),
    KeyCode::Char('m'),
    KeyCode::Char('z'),
    KeyCode::Char('Z'),
    KeyCode::Char('o'),
    KeyCode::Char('@'),
    KeyCode::Char('['),
    KeyCode::Char('<'),
    KeyCode::Char('1'),
    KeyCode::Char('2'),
    KeyCode::Char('3'),
    KeyCode::Char('7'),
];

fn listed<T>(reading: &mut Reading<Vec<T>>) -> &mut [T] {
    match reading {
        Reading::Value(list) => list,
        Reading::Absent(_) => &mut [],
    }
}

#[test]
fn sums_of_the_widest_figures_are_drawn() {
    let widest = || Reading::Value(u64::MAX);
    for (_, mut shown) in boxes::all() {
        for ledger in &mut shown.ledgers {
            (ledger.reserved_bytes, ledger.unattributed_bytes) = (widest(), widest());
        }
        for node in listed(&mut shown.snapshot.host.numa) {
            (node.total_bytes, node.is_device) = (u64::MAX, true);
        }
        for gpu in listed(&mut shown.snapshot.driver.pci_gpus) {
            (gpu.aer_fatal_total, gpu.aer_nonfatal_total) = (widest(), widest());
        }
        for entry in PANELS {
            let mut ui = Ui::new(Theme::new(Depth::True, false));
            ui.show(entry.name);
            picture::draw(&mut ui, &shown.view(), 120, 40);
        }
    }
}

#[test]
fn every_panel_of_every_box_draws_at_every_size() {
    for (name, shown) in boxes::all() {
        for entry in PANELS {
            let mut ui = Ui::new(Theme::new(Depth::True, false));
            ui.show(entry.name);
            for (width, height) in (0..70).map(|size| (size, size / 3)).chain([
                (40, 8),
                (41, 8),
                (39, 8),
                (500, 3),
                (1, 500),
                (300, 100),
                (60, 15),
            ]) {
                let buf = picture::draw(&mut ui, &shown.view(), width, height);
                assert_eq!(buf.area.width, width, "{name} {}", entry.name);
            }
        }
    }
}

#[test]
fn every_key_on_every_panel_of_every_box_is_no_panic() {
    for (_, shown) in boxes::all() {
        for entry in PANELS {
            let mut ui = Ui::new(Theme::new(Depth::Sixteen, true));
            ui.show(entry.name);
            for key in KEYS.iter().chain(KEYS.iter().rev()) {
                picture::draw(&mut ui, &shown.view(), 60, 15);
                ui.key(KeyEvent::new(*key, KeyModifiers::NONE), &shown.view());
            }
        }
    }
}

#[test]
fn a_terminal_that_is_too_small_says_what_is_needed() {
    let mut ui = picture::ui();
    let text = picture::text(&picture::draw(&mut ui, &boxes::busy_box().view(), 20, 5));
    assert_eq!(text.trim_end(), "too small: 20×5,\nneeds 40×8. q quits.");
}

#[test]
fn the_least_size_still_shows_a_gpu_a_finding_and_a_holder() {
    let shown = boxes::sick_box();
    for (panel, words) in [
        ("overview", ["3 ▲", "CRITICAL", "vLLM engine core"]),
        ("memory", ["79.65 GiB", "›█  73.14", "6.03"]),
    ] {
        let mut ui = picture::ui();
        ui.show(panel);
        let text = picture::text(&picture::draw(&mut ui, &shown.view(), 40, 8));
        assert!(words.iter().all(|words| text.contains(words)), "{text}");
    }
}

#[test]
fn an_area_beyond_the_buffer_is_no_panic() {
    let mut buf = Buffer::empty(Rect::new(0, 0, 50, 12));
    let shown = boxes::sick_box();
    for entry in PANELS {
        let mut ui = Ui::new(Theme::new(Depth::True, true));
        ui.show(entry.name);
        ui.draw(&shown.view(), Rect::new(5, 3, 200, 80), &mut buf);
    }
}

fn absence() -> impl Strategy<Value = Absence> {
    prop_oneof![
        Just(Absence::NotRead),
        Just(Absence::Unsupported),
        Just(Absence::NoAnswer),
        Just(Absence::Failed { what: "x\u{1b}y 推".repeat(9) }),
    ]
}

fn number() -> impl Strategy<Value = Reading<u64>> {
    prop_oneof![
        // Figures beyond what a machine can have are dropped where they are read.
        (0..1_u64 << 56).prop_map(Reading::Value),
        Just(Reading::Value(0)),
        absence().prop_map(Reading::Absent),
    ]
}

fn ratio() -> impl Strategy<Value = Reading<f64>> {
    prop_oneof![any::<f64>().prop_map(Reading::Value), absence().prop_map(Reading::Absent),]
}

prop_compose! {
    fn gpu()(
        index in any::<u32>(), total in number(), used in number(), free in number(),
        reserved in number(), busy in ratio(), rate in ratio(), clock in any::<u32>(),
        unified in any::<bool>(), at_ms in any::<u64>(),
    ) -> Gpu {
        let mut gpu = boxes::h100(0, 1, 0.5);
        gpu.index = index;
        gpu.uuid = Reading::Absent(Absence::NotRead);
        gpu.memory.total_bytes = total;
        gpu.memory.used_bytes = used;
        gpu.memory.free_bytes = free;
        gpu.memory.reserved_bytes = reserved;
        gpu.memory.unified = unified;
        gpu.memory.read.at_ms = at_ms;
        gpu.utilization.gpu_ratio = busy;
        gpu.pcie.tx_bytes_per_second = rate.clone();
        gpu.pcie.max_generation = clock.into();
        gpu.pcie.max_width = clock.into();
        gpu.power.draw_watts = rate;
        gpu.clocks.sm_mhz = clock.into();
        gpu.clocks.reasons = at_ms.into();
        gpu.ecc.recovery_action = clock.into();
        gpu
    }
}

prop_compose! {
    fn snapshot()(
        gpus in prop::collection::vec(gpu(), 0..12),
        names in prop::collection::vec(any::<String>(), 0..12),
        held in number(), since in any::<u64>(),
    ) -> Snapshot {
        let processes = (0..).zip(&names).map(|(pid, name)| {
            let mut process = boxes::process(pid, name, &[(pid % 4, 100)]);
            process.gpus[0].gpu_bytes = held.clone();
            process.state_since_ms = since.into();
            process.started_at_ms = since.into();
            process.user = name.clone().into();
            process
        }).collect();
        let mut snapshot = boxes::snapshot(gpus, processes);
        snapshot.taken_at_ms = since;
        snapshot
    }
}

fn moment() -> impl Strategy<Value = u64> {
    prop_oneof![
        boxes::NOW - 90_000_000..boxes::NOW + 90_000_000,
        Just(0),
        Just(u64::MAX),
        any::<u64>(),
    ]
}

fn values() -> impl Strategy<Value = Vec<Option<f32>>> {
    prop::collection::vec(prop::option::weighted(0.8, any::<f32>()), 0..60)
}

prop_compose! {
    fn series()(
        subject in "[ab]?", name in any::<String>(), label in ".{0,3}",
        min in values(), mean in values(), max in values(),
    ) -> Series {
        Series { subject, name, label, min, mean, max }
    }
}

prop_compose! {
    fn mark()(
        at_ms in moment(), until_ms in prop::option::of(moment()), kind in 0..KINDS.len(),
        severity in 0..3_usize, subject in any::<String>(), text in any::<String>(),
    ) -> Mark {
        let severity = [Severity::Info, Severity::Warning, Severity::Critical][severity];
        Mark { at_ms, until_ms, kind: KINDS[kind], severity, subject, text }
    }
}

const KINDS: &[MarkKind] =
    &[MarkKind::Finding, MarkKind::Xid, MarkKind::DaemonStart, MarkKind::ClockSet, MarkKind::Other];

const METRICS: &[&str] = &[
    "infertop_gpu_busy_ratio",
    "infertop_gpu_memory_used_bytes",
    "infertop_gpu_pcie_replays_total",
    "infertop_gpu_nvlink_replays_total",
    "infertop_host_cpu_busy_ratio",
    "of a newer version",
];

/// A chart of the metric that the panel shows first, or of another one.
fn chart() -> impl Strategy<Value = Chart> {
    let past = (moment(), any::<u64>(), 0..METRICS.len(), prop::collection::vec(series(), 0..12));
    (past, moment(), moment(), 0..4_u8).prop_map(
        |((from_ms, step_ms, metric, series), a, b, kind)| {
            let metric = METRICS[if kind == 0 { metric } else { 0 }].to_string();
            let request = ChartRequest { metric: metric.clone(), from_ms: a, to_ms: b, points: 10 };
            let step_ms = if kind == 1 { step_ms } else { step_ms % 100_000 };
            let answer = match kind {
                3 => Some(Err("y\u{1b}z".repeat(60))),
                _ => Some(Ok(MetricPast { metric, from_ms, step_ms, series })),
            };
            Chart { request, answer }
        },
    )
}

prop_compose! {
    fn past()(
        span in prop::option::weighted(0.9, (moment(), moment())),
        trouble in prop::option::of(any::<String>()),
        cursor_ms in prop::option::of(moment()),
        playing in any::<bool>(),
        marks in prop::collection::vec(mark(), 0..20),
        chart in prop::option::weighted(0.9, chart()),
    ) -> Past {
        let span = span.map(|(from_ms, to_ms)| Span { from_ms, to_ms });
        Past { span, trouble, cursor_ms, playing, marks, chart }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_reading_size_or_key_makes_a_panel_panic(
        snapshot in snapshot(),
        sizes in prop::collection::vec((0u16..220, 0u16..60), 1..4),
        keys in prop::collection::vec(0..KEYS.len(), 0..24),
        panel in 0..PANELS.len(),
        ascii in any::<bool>(),
    ) {
        let shown = Shown::new(snapshot, vec![]);
        let mut ui = Ui::new(Theme::new(Depth::Palette, ascii));
        ui.show(PANELS[panel].name);
        for (width, height) in sizes {
            let buf = picture::draw(&mut ui, &shown.view(), width, height);
            prop_assert!(!ascii || picture::text(&buf).is_ascii());
            for key in &keys {
                ui.key(KeyEvent::new(KEYS[*key], KeyModifiers::NONE), &shown.view());
                picture::draw(&mut ui, &shown.view(), width, height);
            }
        }
    }

    #[test]
    fn no_past_makes_a_panel_panic(
        past in past(),
        now_ms in moment(),
        recording in any::<bool>(),
        offset in any::<i32>(),
        size in (0u16..220, 0u16..60),
        keys in prop::collection::vec(0..KEYS.len(), 0..16),
        ascii in any::<bool>(),
    ) {
        let mut shown = boxes::mig_box();
        shown.snapshot.taken_at_ms = past.cursor_ms.unwrap_or(now_ms);
        shown.past = past;
        shown.feed.source = if recording { Source::Recording } else { Source::Daemon };
        let mut ui = Ui::new(Theme::new(Depth::Palette, ascii));
        ui.show("history");
        for key in std::iter::once(None).chain(keys.iter().map(Some)) {
            let view = View { now_ms, utc_offset_seconds: offset % 90_000, ..shown.view() };
            if let Some(key) = key {
                ui.key(KeyEvent::new(KEYS[*key], KeyModifiers::NONE), &view);
            }
            let buf = picture::draw(&mut ui, &view, size.0, size.1);
            prop_assert!(!ascii || picture::text(&buf).is_ascii());
            if let Some(request) = ui.wants(&view) {
                prop_assert!(request.points >= 1 && request.from_ms <= request.to_ms);
            }
        }
    }
}

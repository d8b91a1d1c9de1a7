//! Pasts to draw: a day that is remembered, with values for whatever is asked and what happened.
#![allow(dead_code, reason = "the bench and the tests each use a part")]

use panels::ui::Ui;
use panels::view::{Chart, ChartRequest, Source};
use probes::finding::Severity;
use probes::past::{Mark, MarkKind, MetricPast, Series, Span};
use probes::snapshot::Snapshot;
use ratatui::buffer::Buffer;

use crate::boxes::{self, NOW, Shown};
use crate::picture;

pub(crate) const MINUTE: u64 = 60_000;
pub(crate) const HOUR: u64 = 60 * MINUTE;

/// The sick box, live on a daemon that remembers 26 hours.
pub(crate) fn remembered() -> Shown {
    let mut shown = boxes::sick_box();
    shown.feed.source = Source::Daemon;
    shown.past.span = Some(Span { from_ms: NOW - 26 * HOUR, to_ms: NOW });
    shown.past.marks = marks();
    shown
}

/// The picture of an earlier moment.
pub(crate) fn travelling(mut shown: Shown, back_ms: u64) -> Shown {
    shown.snapshot.taken_at_ms = NOW - back_ms;
    shown.past.cursor_ms = Some(NOW - back_ms);
    shown
}

/// A recording of the same.
pub(crate) fn recording() -> Shown {
    let mut shown = travelling(remembered(), 20 * MINUTE);
    shown.feed.source = Source::Recording;
    shown
}

fn mark(back_ms: u64, kind: MarkKind, severity: Severity, subject: &str, text: &str) -> Mark {
    Mark {
        at_ms: NOW - back_ms,
        until_ms: None,
        kind,
        severity,
        subject: subject.into(),
        text: text.into(),
    }
}

fn marks() -> Vec<Mark> {
    use Severity::{Critical, Info, Warning};
    let mut marks = vec![
        mark(25 * HOUR, MarkKind::DaemonStart, Info, "", "daemon 0.1.0 started"),
        mark(5 * HOUR, MarkKind::DriverChange, Info, "", "driver 580.95.05 became 590.48.01"),
        mark(5 * HOUR - 1000, MarkKind::SamplerStart, Info, "", "sampler started anew"),
        mark(40 * MINUTE, MarkKind::Finding, Warning, "GPU 5", "the driver does not answer"),
        mark(33 * MINUTE, MarkKind::Xid, Critical, "GPU 3", "Xid 31, MMU fault of pid 48190"),
        mark(
            21 * MINUTE,
            MarkKind::Finding,
            Critical,
            "process 48233",
            "an engine whose server is gone holds 73.1 GiB",
        ),
        mark(8 * MINUTE, MarkKind::ClockSet, Warning, "", "the wall clock was set back by 3 s"),
        mark(3 * MINUTE, MarkKind::Release, Info, "", "the GPUs were let go for 1 m"),
    ];
    marks[3].until_ms = Some(NOW - 28 * MINUTE);
    marks
}

/// What a store would answer: eight GPUs that work, one that stops, one that is not there for a
/// while; nothing between 02:25 and 02:29.
pub(crate) fn answer(request: &ChartRequest, snapshot: &Snapshot) -> MetricPast {
    let points = u64::from(request.points.max(1));
    let step_ms = ((request.to_ms - request.from_ms) / points).max(1);
    let ratio = request.metric.ends_with("_ratio");
    let counter = request.metric.ends_with("_total");
    let full: f32 = if ratio {
        0.98
    } else if counter {
        1000.0
    } else if request.metric.ends_with("_bytes") {
        73.1 * (1_u64 << 30) as f32
    } else {
        600.0
    };
    let subject = |gpu: u64| {
        let gpu = snapshot.gpus.iter().find(|known| u64::from(known.index) == gpu);
        gpu.and_then(|gpu| gpu.uuid.value().cloned()).unwrap_or_default()
    };
    let series = |gpu: u64| {
        let mut series =
            Series { subject: subject(gpu), name: format!("GPU {gpu}"), ..Series::default() };
        for step in 0..points {
            let at = request.from_ms + step * step_ms;
            let back = NOW.saturating_sub(at);
            let nothing = at > NOW
                || back > 26 * HOUR
                || (43 * MINUTE..47 * MINUTE).contains(&back)
                || (gpu == 5 && (28 * MINUTE..40 * MINUTE).contains(&back));
            let wave = ((at / 20_000 * 7919 + gpu * 104_729) % 97) as f32 / 97.0;
            let level = match gpu {
                3 if back < 21 * MINUTE => 0.0,
                4 => 0.02 + 0.05 * wave,
                6 | 7 => 0.0,
                _ => 0.86 + 0.13 * wave,
            };
            let level = if counter {
                if gpu == 3 { 1.0 + (26 * HOUR - back.min(26 * HOUR)) as f32 / 1e8 } else { 1.0 }
            } else {
                level
            };
            let put = |value: f32| (!nothing).then_some(value * full);
            series.min.push(put(if counter { level } else { level * 0.7 }));
            series.mean.push(put(level));
            series.max.push(put(if counter { level } else { (level * 1.02).min(1.0) }));
        }
        series
    };
    MetricPast {
        metric: request.metric.clone(),
        from_ms: request.from_ms,
        step_ms,
        series: (0..8).map(series).collect(),
    }
}

/// Draws as the program does: what is needed is asked for, and what comes is drawn.
pub(crate) fn draw(ui: &mut Ui, shown: &mut Shown, width: u16, height: u16) -> Buffer {
    picture::draw(ui, &shown.view(), width, height);
    if let Some(request) = ui.wants(&shown.view()) {
        let answer = Some(Ok(answer(&request, &shown.snapshot)));
        shown.past.chart = Some(Chart { request, answer });
    }
    picture::draw(ui, &shown.view(), width, height)
}

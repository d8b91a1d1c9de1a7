//! The GPU rows of the overview: columns by what the width allows.

use std::ops::Range;

use probes::nvml::clocks;
use probes::reading::{Absence, Reading};
use probes::snapshot::Gpu;

use crate::canvas::Canvas;
use crate::panels::memory_bar;
use crate::table::{self, Column};
use crate::text;
use crate::value::{self, Known, Value};
use crate::view::View;
use crate::words;

const COLUMNS: &[Column<Gpu>] = &[
    Column::number("HELD", 5, 0, |g, v| Value::gib(&g.memory.used_bytes).read_at(g.memory.read, v)),
    Column::number("FREE", 5, 0, |g, v| Value::gib(&g.memory.free_bytes).read_at(g.memory.read, v)),
    Column::number("W", 4, 1, |g, v| Value::whole(&g.power.draw_watts).read_at(g.power.read, v)),
    Column::number("LIM", 4, 6, |g, v| {
        Value::whole(&g.power.limit_watts).read_at(g.power.read, v).quiet_if(true)
    }),
    Column::number("°C", 3, 1, |g, v| {
        Value::shown(&g.temperature.gpu_celsius).read_at(g.temperature.read, v)
    }),
    Column::number("MEM°C", 5, 7, |g, v| {
        Value::shown(&g.temperature.memory_celsius).read_at(g.temperature.read, v)
    }),
    Column::number("MHz", 4, 2, |g, v| Value::shown(&g.clocks.sm_mhz).read_at(g.clocks.read, v)),
    Column::number("BUS", 5, 3, |g, v| {
        let rate = value::sum(&g.pcie.tx_bytes_per_second, &g.pcie.rx_bytes_per_second);
        Value::rate(&rate).read_at(g.pcie.read, v)
    }),
    Column::number("NVL", 5, 5, |g, v| Value::rate(&value::nvlink(g)).read_at(g.nvlink.read, v)),
    Column::number("TENS", 4, 5, |g, v| counter(g, v, &g.gpm.tensor_ratio)),
    Column::number("DRAM", 4, 5, |g, v| counter(g, v, &g.gpm.dram_bandwidth_ratio)),
    Column::number("L2", 4, 6, |g, v| counter(g, v, &g.gpm.l2_dram_hit_ratio)),
    Column::number("PCIE", 4, 8, |g, _| link(g).quiet_if(true)),
    Column::number("ECC", 4, 8, |g, v| {
        let errors = &g.ecc.uncorrected_volatile_total;
        Value::shown(errors).quiet_if(errors.get() == Some(0)).read_at(g.ecc.read, v)
    }),
    Column::words("SLOWED BY", 24, 9, |g, v| {
        // Idle is not slowed.
        Value::of(&g.clocks.reasons, |mask| clocks::reason_names(mask & !1).join(", "))
            .quiet_if(g.clocks.reasons.get().is_none_or(|mask| mask & clocks::SLOWDOWN_MASK == 0))
            .read_at(g.clocks.read, v)
    }),
];

fn busy_value(gpu: &Gpu, view: &View) -> Value {
    Value::percent(&gpu.utilization.gpu_ratio).read_at(gpu.utilization.read, view)
}

fn counter(gpu: &Gpu, view: &View, reading: &Reading<f64>) -> Value {
    Value::percent(&value::counter(gpu, reading)).read_at(gpu.gpm.read, view)
}

fn link(gpu: &Gpu) -> Value {
    match (&gpu.pcie.generation, &gpu.pcie.width) {
        (Reading::Value(generation), Reading::Value(width)) => {
            Value::plain(format!("{generation}×{width}"))
        }
        (Reading::Absent(why), _) | (_, Reading::Absent(why)) => Value::absent(why),
    }
}

/// Marker, number, severity.
const LEFT: u16 = 6;
const BUSY: u16 = 4;

/// What a width shows.
pub(super) struct Plan {
    spark: u16,
    bar: u16,
    columns: Vec<&'static Column<Gpu>>,
}

impl Plan {
    fn bar_x(&self) -> u16 {
        LEFT + BUSY + 1 + self.spark + u16::from(self.spark > 0)
    }
}

/// The columns for a width: numbers by rank, what is left for sparkline and bar.
pub(super) fn columns(width: u16) -> Plan {
    let (least_spark, least_bar) = match width {
        0..60 => (0, 6),
        60..80 => (4, 8),
        80..110 => (6, 20),
        110..160 => (8, 18),
        _ => (16, 24),
    };
    let room = width.saturating_sub(LEFT + BUSY + 1 + least_spark + 1 + least_bar + 1);
    let (columns, left) = table::fitting(COLUMNS, room);
    let spark = if least_spark == 0 { 0 } else { least_spark + (left / 3).min(32) };
    Plan { spark, bar: (least_bar + left - (spark - least_spark)).min(60), columns }
}

/// Draws the heads.
pub(super) fn head(canvas: &mut Canvas, y: u16, plan: &Plan, rows: &Range<usize>, count: usize) {
    let theme = canvas.theme;
    let style = theme.heading();
    canvas.text(1, y, "GPU", style);
    canvas.right(LEFT, y, BUSY, "BUSY", style);
    let x = plan.bar_x();
    let end = canvas.text_in(x, y, plan.bar, "MEMORY GiB", style);
    if rows.len() < count {
        let note = format!("{}–{} of {count}", rows.start + 1, rows.end);
        canvas.text_in(end + 1, y, (x + plan.bar).saturating_sub(end + 1), &note, theme.dim());
    }
    table::heads(canvas, x + plan.bar + 1, y, &plan.columns, None);
}

/// The GPUs in the order shown: as the driver numbers them, worst first when something is wrong,
/// instances below their GPU.
pub(super) fn order(view: &View) -> Vec<usize> {
    let gpus = &view.snapshot.gpus;
    let mut places: Vec<usize> = (0..gpus.len()).collect();
    let worst = |at: usize| {
        // An instance goes where its GPU goes.
        let whole = gpus.iter().find(|gpu| gpu.index == gpus[at].index && gpu.mig.is_none());
        words::gpu_severity(view, whole.unwrap_or(&gpus[at]))
    };
    if !view.findings.is_empty() || gpus.iter().any(|gpu| !gpu.answers()) {
        places.sort_by_cached_key(|at| std::cmp::Reverse(worst(*at)));
    }
    places
}

/// Draws one GPU.
pub(super) fn draw(canvas: &mut Canvas, y: u16, plan: &Plan, view: &View, at: usize) {
    let theme = canvas.theme;
    let gpu = &view.snapshot.gpus[at];
    let severity = words::gpu_severity(view, gpu).filter(|_| gpu.mig.is_none());
    if gpu.mig.is_some() {
        canvas.text(2, y, theme.glyphs().tree[1], theme.dim());
    } else {
        let style = severity.map_or(theme.text(), |severity| theme.severity(severity));
        canvas.right(1, y, 3, &gpu.index.to_string(), style);
    }
    if let Some(severity) = severity {
        canvas.glyph(5, y, theme.severity_glyph(severity), theme.severity(severity));
    }
    let silence = words::silence(gpu, view.at_ms());
    if let Some(words) = &silence {
        let style = severity.map_or(theme.dim(), |severity| theme.severity(severity));
        let room = plan.bar_x() + plan.bar - LEFT - 1;
        // The call's prefix says nothing that the parentheses do not; without it the rest may fit.
        let short = words.replace("nvmlDeviceGet", "").replacen(" for ", " ", 1);
        let words = if text::width(words) > room { &short } else { words };
        canvas.text_in(LEFT + 1, y, room, words, style);
    } else {
        busy(canvas, y, plan, view, gpu);
        memory_bar::draw(canvas, plan.bar_x(), y, plan.bar, view, at);
    }
    let x = plan.bar_x() + plan.bar + 1;
    table::cells(canvas, x, y, &plan.columns, gpu, view, silence.is_none());
}

fn busy(canvas: &mut Canvas, y: u16, plan: &Plan, view: &View, gpu: &Gpu) {
    let theme = canvas.theme;
    if let Some(mig) = &gpu.mig {
        // The driver has no busy share for an instance; its name takes the place.
        let words = format!("{} {}", mig.profile.text(), mig.label());
        canvas.text_in(LEFT - 2, y, BUSY + plan.spark + 3, words.trim(), theme.text());
        return;
    }
    let value = busy_value(gpu, view);
    canvas.right(LEFT, y, BUSY, &value.text, value.style(theme, true));
    let series = view.history.series(gpu, "infertop_gpu_busy_ratio").rev();
    canvas.spark(LEFT + BUSY + 1, y, plan.spark, series, (0.0, 1.0), theme.dim());
}

/// Why a GPU's row has a `?`: each reason once, with what it hits.
pub(super) fn reason(gpu: &Gpu, view: &View) -> Option<String> {
    if let Some(words) = words::silence(gpu, view.at_ms()) {
        let thread = words::stuck_in(gpu).map_or(String::new(), |at| format!(", in {at}"));
        let standing = words::standing(gpu);
        return Some(format!("GPU {}: {words}{thread}{standing}", gpu.label()));
    }
    let busy = ("BUSY", busy_value(gpu, view));
    let cells = COLUMNS.iter().map(|column| (column.head, (column.pick)(gpu, view)));
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for (head, value) in std::iter::once(busy).chain(cells) {
        if value.known != Known::Missing || value.reason == Absence::NotRead.to_string() {
            continue;
        }
        match reasons.iter_mut().find(|(reason, _)| *reason == value.reason) {
            Some((_, heads)) => heads.push(head),
            None => reasons.push((value.reason, vec![head])),
        }
    }
    let mut parts: Vec<String> =
        reasons.iter().map(|(reason, heads)| format!("{}: {reason}", heads.join(" "))).collect();
    if gpu.memory.unified {
        parts.push("no memory of its own, the figures are the system's".into());
    }
    (!parts.is_empty()).then(|| format!("GPU {}: {}", gpu.label(), parts.join("; ")))
}

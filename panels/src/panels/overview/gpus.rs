//! The GPU rows of the overview: columns by what the width allows.

use std::ops::Range;

use probes::nvml::clocks;
use probes::reading::{Absence, Reading};
use probes::snapshot::{Gpu, Stamp};
use probes::units;

use crate::canvas::{Canvas, Part};
use crate::value::{self, Known, Value};
use crate::view::View;
use crate::words;

/// A column of numbers.
pub(super) struct Column {
    head: &'static str,
    width: u16,
    /// Order in which columns are taken as the width grows.
    rank: u8,
    pick: fn(&Gpu) -> (Value, Stamp),
}

fn whole(reading: &Reading<f64>) -> Value {
    Value::of(reading, |value| format!("{value:.0}"))
}

fn share(reading: &Reading<f64>) -> Value {
    Value::of(reading, |ratio| units::percent(*ratio))
}

fn rate(tx: &Reading<f64>, rx: &Reading<f64>) -> Value {
    Value::of(&value::sum(tx, rx), |rate| units::gigabytes_per_second(*rate))
}

const COLUMNS: &[Column] = &[
    Column {
        head: "HELD",
        width: 5,
        rank: 0,
        pick: |g| (Value::of(&g.memory.used_bytes, |b| units::gib(*b)), g.memory.read),
    },
    Column {
        head: "FREE",
        width: 5,
        rank: 0,
        pick: |g| (Value::of(&g.memory.free_bytes, |b| units::gib(*b)), g.memory.read),
    },
    Column { head: "W", width: 4, rank: 1, pick: |g| (whole(&g.power.draw_watts), g.power.read) },
    Column {
        head: "LIM",
        width: 4,
        rank: 6,
        pick: |g| (whole(&g.power.limit_watts), g.power.read),
    },
    Column {
        head: "°C",
        width: 3,
        rank: 1,
        pick: |g| (Value::shown(&g.temperature.gpu_celsius), g.temperature.read),
    },
    Column {
        head: "MEM°C",
        width: 5,
        rank: 7,
        pick: |g| (Value::shown(&g.temperature.memory_celsius), g.temperature.read),
    },
    Column {
        head: "MHz",
        width: 4,
        rank: 2,
        pick: |g| (Value::shown(&g.clocks.sm_mhz), g.clocks.read),
    },
    Column {
        head: "BUS",
        width: 5,
        rank: 3,
        pick: |g| (rate(&g.pcie.tx_bytes_per_second, &g.pcie.rx_bytes_per_second), g.pcie.read),
    },
    Column {
        head: "NVL",
        width: 5,
        rank: 5,
        pick: |g| {
            (rate(&g.nvlink.tx_bytes_per_second, &g.nvlink.rx_bytes_per_second), g.nvlink.read)
        },
    },
    Column { head: "TENS", width: 4, rank: 5, pick: |g| (share(&g.gpm.tensor_ratio), g.gpm.read) },
    Column {
        head: "DRAM",
        width: 4,
        rank: 5,
        pick: |g| (share(&g.gpm.dram_bandwidth_ratio), g.gpm.read),
    },
    Column {
        head: "L2",
        width: 4,
        rank: 6,
        pick: |g| (share(&g.gpm.l2_dram_hit_ratio), g.gpm.read),
    },
    Column {
        head: "PCIE",
        width: 4,
        rank: 8,
        pick: |g| {
            let link = match (&g.pcie.generation, &g.pcie.width) {
                (Reading::Value(generation), Reading::Value(width)) => {
                    Value::plain(format!("{generation}×{width}"))
                }
                (Reading::Absent(why), _) | (_, Reading::Absent(why)) => Value::absent(why),
            };
            (link, g.pcie.read)
        },
    },
    Column {
        head: "ECC",
        width: 4,
        rank: 8,
        pick: |g| (Value::shown(&g.ecc.uncorrected_volatile_total), g.ecc.read),
    },
    Column {
        head: "SLOWED BY",
        width: 24,
        rank: 9,
        pick: |g| {
            let reasons = Value::of(&g.clocks.reasons, |mask| {
                // Idle is not slowed.
                clocks::reason_names(mask & !1).join(", ")
            });
            (reasons, g.clocks.read)
        },
    },
];

/// Marker, number, severity.
const LEFT: u16 = 6;
const BUSY: u16 = 4;

/// What a width shows.
pub(super) struct Plan {
    spark: u16,
    bar: u16,
    columns: Vec<&'static Column>,
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
    let mut room = width.saturating_sub(LEFT + BUSY + 1 + least_spark + 1 + least_bar + 1);
    let mut ranked: Vec<&Column> = COLUMNS.iter().collect();
    ranked.sort_by_key(|column| column.rank);
    let mut taken: Vec<&str> = Vec::new();
    for column in ranked {
        let Some(left) = room.checked_sub(column.width + 1) else { break };
        room = left;
        taken.push(column.head);
    }
    let columns = COLUMNS.iter().filter(|column| taken.contains(&column.head)).collect();
    let spark = if least_spark == 0 { 0 } else { least_spark + (room / 3).min(32) };
    Plan { spark, bar: (least_bar + room - (spark - least_spark)).min(60), columns }
}

/// Draws the heads.
pub(super) fn head(canvas: &mut Canvas, y: u16, plan: &Plan, rows: &Range<usize>, count: usize) {
    let theme = canvas.theme;
    let style = theme.heading();
    canvas.text(1, y, "GPU", style);
    let mut x = LEFT;
    canvas.right(x, y, BUSY, "BUSY", style);
    x += BUSY + 1 + plan.spark + u16::from(plan.spark > 0);
    let end = canvas.text_in(x, y, plan.bar, "MEMORY GiB", style);
    if rows.len() < count {
        let note = format!("{}–{} of {count}", rows.start + 1, rows.end);
        canvas.text_in(end + 1, y, (x + plan.bar).saturating_sub(end + 1), &note, theme.dim());
    }
    x += plan.bar + 1;
    for column in &plan.columns {
        if is_words(column) {
            canvas.text_in(x, y, column.width, column.head, style);
        } else {
            canvas.right(x, y, column.width, column.head, style);
        }
        x += column.width + 1;
    }
}

fn is_words(column: &Column) -> bool {
    column.width > 8
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
    let severity = words::gpu_severity(view, gpu).filter(|_| !super::is_instance(gpu));
    if super::is_instance(gpu) {
        canvas.text(2, y, theme.glyphs().tree[1], theme.dim());
    } else {
        let style = severity.map_or(theme.text(), |severity| theme.severity(severity));
        canvas.right(1, y, 3, &gpu.index.to_string(), style);
    }
    if let Some(severity) = severity {
        canvas.glyph(5, y, theme.severity_glyph(severity), theme.severity(severity));
    }
    let bar_x = LEFT + BUSY + 1 + plan.spark + u16::from(plan.spark > 0);
    let silence = words::silence(gpu, view.now_ms);
    if let Some(words) = &silence {
        let style = severity.map_or(theme.dim(), |severity| theme.severity(severity));
        let room = bar_x + plan.bar - LEFT - 1;
        canvas.text_in(LEFT + 1, y, room, words, style);
    } else {
        busy(canvas, y, plan, view, gpu);
        bar(canvas, bar_x, y, plan.bar, view, at);
    }
    let mut x = bar_x + plan.bar + 1;
    for column in &plan.columns {
        let (value, stamp) = (column.pick)(gpu);
        let fresh = silence.is_none() && words::is_fresh(view, stamp);
        let style = value.style(theme, fresh);
        if is_words(column) {
            canvas.text_in(x, y, column.width, &value.text, theme.dim());
        } else {
            canvas.right(x, y, column.width, &value.text, style);
        }
        x += column.width + 1;
    }
}

fn busy(canvas: &mut Canvas, y: u16, plan: &Plan, view: &View, gpu: &Gpu) {
    let theme = canvas.theme;
    if let Some(mig) = &gpu.mig {
        // The driver has no busy share for an instance; its name takes the place.
        let profile = mig.profile.text();
        let words = format!("{profile} {}", mig.label());
        canvas.text_in(LEFT - 2, y, BUSY + plan.spark + 3, words.trim(), theme.text());
        return;
    }
    let value = share(&gpu.utilization.gpu_ratio);
    let fresh = words::is_fresh(view, gpu.utilization.read);
    canvas.right(LEFT, y, BUSY, &value.text, value.style(theme, fresh));
    let series = view.history.series(gpu, "infertop_gpu_busy_ratio").rev();
    canvas.spark(LEFT + BUSY + 1, y, plan.spark, series, (0.0, 1.0), theme.dim());
}

fn bar(canvas: &mut Canvas, x: u16, y: u16, columns: u16, view: &View, at: usize) {
    let theme = canvas.theme;
    let glyphs = theme.glyphs();
    let gpu = &view.snapshot.gpus[at];
    let Some(total) = gpu.memory.total_bytes.get() else {
        let value = Value::shown(&gpu.memory.total_bytes);
        canvas.text_in(x, y, columns, &value.reason, theme.dim());
        return;
    };
    let used = gpu.memory.used_bytes.get().unwrap_or(0);
    let ledger = view.ledgers.get(at);
    let held = ledger.map_or(0, probes::ledger::Ledger::held_bytes).min(used);
    let largest = ledger
        .and_then(|ledger| ledger.holders.first().and_then(|holder| holder.bytes.get()))
        .unwrap_or(0)
        .min(held);
    let part = |amount, glyph, style, must_show| Part { amount, glyph, style, must_show };
    let nobody = used - held;
    let parts = [
        part(largest, glyphs.held, theme.text(), false),
        part(held - largest, glyphs.others, theme.dim(), false),
        part(nobody, glyphs.nobody, theme.dim(), nobody > 256 * units::MIB),
        part(gpu.memory.reserved_bytes.get().unwrap_or(0), glyphs.reserved, theme.dim(), false),
        part(gpu.memory.free_bytes.get().unwrap_or(0), glyphs.free, theme.faint(), false),
    ];
    canvas.bar(x, y, columns, total, &parts);
}

/// Why a GPU's row has a `?`: each reason once, with what it hits.
pub(super) fn reason(gpu: &Gpu, view: &View) -> Option<String> {
    if let Some(words) = words::silence(gpu, view.now_ms) {
        return Some(format!("GPU {}: {words}; values are the last ones known", gpu.label()));
    }
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    let busy = Column {
        head: "BUSY",
        width: 0,
        rank: 0,
        pick: |g| (share(&g.utilization.gpu_ratio), g.utilization.read),
    };
    for column in std::iter::once(&busy).chain(COLUMNS) {
        let (value, _) = (column.pick)(gpu);
        if value.known != Known::Missing || value.reason == Absence::NotRead.to_string() {
            continue;
        }
        match reasons.iter_mut().find(|(reason, _)| *reason == value.reason) {
            Some((_, heads)) => heads.push(column.head),
            None => reasons.push((value.reason, vec![column.head])),
        }
    }
    let parts: Vec<String> =
        reasons.iter().map(|(reason, heads)| format!("{}: {reason}", heads.join(" "))).collect();
    (!parts.is_empty()).then(|| format!("GPU {}: {}", gpu.label(), parts.join("; ")))
}

//! The pictures of the memory panel: the bar with its scale, the past, and all GPUs in short.

use probes::snapshot::Gpu;
use probes::units;

use super::LEFT;
use crate::canvas::{self, Canvas};
use crate::panels::memory_bar;
use crate::text;
use crate::value::Value;
use crate::view::View;

/// Scale and bar.
pub(super) fn bar(canvas: &mut Canvas, y: u16, view: &View, at: usize) -> u16 {
    let theme = canvas.theme;
    let gpu = &view.snapshot.gpus[at];
    let columns = canvas.width().saturating_sub(LEFT + 2);
    let Some(total) = gpu.memory.total_bytes.get().filter(|total| *total > 0) else {
        memory_bar::draw(canvas, LEFT, y, columns, view, at);
        return y + 1;
    };
    let whole = total / units::GIB;
    let step = [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000]
        .into_iter()
        .find(|step| whole / step <= u64::from(columns / 7).max(1))
        .unwrap_or(1000);
    let mut end = 0;
    for tick in (0..=whole).step_by(usize::try_from(step).unwrap_or(1)) {
        let label = tick.to_string();
        let x = canvas::share(tick * units::GIB, total, columns);
        if x >= end && x + text::width(&label) <= columns {
            canvas.text(LEFT + x, y, &label, theme.dim());
            end = x + text::width(&label) + 1;
        }
    }
    canvas.text(2, y, "GiB", theme.dim());
    let rows = if canvas.height() >= 22 { 2 } else { 1 };
    for row in 0..rows {
        memory_bar::draw(canvas, LEFT, y + 1 + row, columns, view, at);
    }
    y + 1 + rows
}

/// The past of the memory in use.
pub(super) fn trend(canvas: &mut Canvas, y: u16, view: &View, gpu: &Gpu) {
    let theme = canvas.theme;
    if y >= canvas.height() {
        return;
    }
    let series = || view.history.series(gpu, "infertop_gpu_memory_used_bytes").rev();
    let columns = canvas.width().saturating_sub(36).min(120);
    let (mut low, mut high, mut count) = (f32::MAX, f32::MIN, 0_u16);
    for value in series().take(usize::from(columns)) {
        count += 1;
        if !value.is_nan() {
            low = low.min(value);
            high = high.max(value);
        }
    }
    if low > high {
        return;
    }
    let seconds = u64::from(count) * view.feed.interval_ms / 1000;
    let label = format!("in use, {}", units::duration(seconds));
    canvas.text(1, y, &label, theme.dim());
    let gib = |bytes: f32| format!("{:.1}", f64::from(bytes) / units::GIB as f64);
    canvas.right(18, y, 9, &format!("{} to", gib(low)), theme.dim());
    let end = canvas.text(28, y, &gib(high), theme.dim());
    // Less than half a GiB of change is drawn as the flat line that it is.
    let (low, high) = if high - low < units::GIB as f32 / 2.0 {
        (high - 2.0 * units::GIB as f32, high + 2.0 * units::GIB as f32)
    } else {
        (low, high)
    };
    canvas.spark(
        end + 1,
        y,
        columns.min(canvas.width().saturating_sub(end + 2)),
        series(),
        (low, high),
        theme.text(),
    );
}

/// All GPUs in short, where there is room for all of them.
pub(super) fn all(canvas: &mut Canvas, mut y: u16, view: &View, current: usize) {
    let theme = canvas.theme;
    let gpus = &view.snapshot.gpus;
    if gpus.len() < 2 || usize::from(canvas.height().saturating_sub(y + 1)) < gpus.len() {
        return;
    }
    let bar = canvas.width().saturating_sub(LEFT + 2 + 16);
    canvas.text(1, y, "ALL GPUS", theme.heading());
    canvas.right(LEFT + bar, y, 8, "HELD", theme.heading());
    canvas.right(LEFT + bar + 8, y, 8, "FREE", theme.heading());
    for (at, gpu) in gpus.iter().enumerate() {
        y += 1;
        let fresh = gpu.answers();
        let style = if at == current { theme.strong() } else { theme.dim() };
        let label = if at == current { format!("› {}", gpu.label()) } else { gpu.label() };
        canvas.right(0, y, LEFT - 2, &label, style);
        memory_bar::draw(canvas, LEFT, y, bar, view, at);
        let held = Value::gib(&gpu.memory.used_bytes);
        canvas.right(LEFT + bar, y, 8, &held.text, held.style(theme, fresh));
        let free = Value::gib(&gpu.memory.free_bytes);
        canvas.right(LEFT + bar + 8, y, 8, &free.text, free.style(theme, fresh));
    }
}

//! What fills the rows that GPUs, findings and holders leave: the host in one line, and the kernel's
//! last lines about GPUs.

use probes::reading::Reading;
use probes::units;

use crate::canvas::Canvas;
use crate::kernel_line;
use crate::text;
use crate::value::Value;
use crate::view::View;

/// Draws from row `y` on, where there is room for it.
pub(super) fn draw(canvas: &mut Canvas, mut y: u16, view: &View) {
    let theme = canvas.theme;
    let left = canvas.height().saturating_sub(y);
    // Its reason and the box have said all when there is no GPU.
    if left < 2 || view.snapshot.gpus.is_empty() {
        return;
    }
    canvas.text(3, y, "HOST", theme.heading());
    let room = canvas.width().saturating_sub(13).min(150);
    for line in rows(&host(view), room, left - 1) {
        canvas.text(12, y, &line, theme.dim());
        y += 1;
    }
    let log = &view.snapshot.kernel_log;
    if y >= canvas.height() {
        return;
    }
    canvas.text(3, y, "KERNEL", theme.heading());
    let lines: Vec<String> = match &log.source {
        Reading::Absent(why) => text::wrap(&format!("log cannot be read: {why}"), room),
        Reading::Value(_) if log.lines.is_empty() => vec!["nothing about GPUs".into()],
        Reading::Value(_) => log
            .lines
            .iter()
            .rev()
            .flat_map(|line| {
                let (at, words) = kernel_line::read_out(view, line);
                let margin = text::width(&at) + 2;
                let lines = text::wrap(&words, room.saturating_sub(margin));
                lines.into_iter().enumerate().map(move |(row, words)| {
                    let at = if row == 0 { at.as_str() } else { "" };
                    format!("{at:<width$}{words}", width = usize::from(margin))
                })
            })
            .collect(),
    };
    for line in lines.iter().take(usize::from(canvas.height().saturating_sub(y))) {
        canvas.text(12, y, line, theme.dim());
        y += 1;
    }
}

/// Parts side by side in rows of at most `room` columns, and at most so many rows.
fn rows(parts: &[String], room: u16, most: u16) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for part in parts {
        match rows.last_mut() {
            Some(row) if text::width(row) + 3 + text::width(part) <= room => {
                row.push_str("   ");
                row.push_str(part);
            }
            _ => rows.push(part.clone()),
        }
    }
    rows.truncate(usize::from(most));
    rows
}

fn host(view: &View) -> Vec<String> {
    let host = &view.snapshot.host;
    let mut parts = vec![format!("CPU {}", Value::percent(&host.cpu_ratio).text)];
    if let Some(load) = host.load.value().and_then(|load| load.first()) {
        parts.push(format!("load {load:.1}"));
    }
    let of = |name: &str, used: Option<u64>, total: &Reading<u64>| {
        let total = total.get().filter(|total| *total > 0)?;
        Some(format!("{name} {} of {}", units::bytes(used?), units::bytes(total)))
    };
    let used = match (&host.memory_total_bytes, &host.memory_available_bytes) {
        (Reading::Value(total), Reading::Value(free)) => Some(total.saturating_sub(*free)),
        _ => None,
    };
    parts.extend(of("memory", used, &host.memory_total_bytes));
    parts.extend(of("swap", host.swap_used_bytes.get(), &host.swap_total_bytes));
    parts.extend(of("/dev/shm", host.shm_used_bytes.get(), &host.shm_total_bytes));
    parts
}

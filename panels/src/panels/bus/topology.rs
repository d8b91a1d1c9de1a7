//! The matrix of ways between GPUs, and the NVSwitch fabric.

use probes::finding::Severity;
use probes::nvml::topology::Peer;
use probes::reading::Reading;
use probes::snapshot::Gpu;

use crate::canvas::Canvas;
use crate::text;
use crate::value::Value;
use crate::view::View;
use crate::words;

/// `NV18` where NVLinks lead there, else the PCIe way.
fn way(peer: &Peer) -> Value {
    match peer.nvlinks.get() {
        Some(links) if links > 0 => Value::plain(format!("NV{links}")),
        _ => Value::shown(&peer.path),
    }
}

/// Draws the matrix, with the CPUs near each GPU.
pub(super) fn draw(canvas: &mut Canvas, mut y: u16, view: &View) -> u16 {
    const CELL: u16 = 5;
    let theme = canvas.theme;
    let gpus: Vec<&Gpu> = view.snapshot.gpus.iter().filter(|gpu| gpu.mig.is_none()).collect();
    canvas.text(0, y, "WAYS BETWEEN GPUS", theme.strong());
    y += 1;
    let room = canvas.width().saturating_sub(8);
    let fits = usize::from(room.saturating_sub(18) / CELL).max(4);
    let shown = gpus.len().min(fits);
    canvas.right(0, y, 7, "GPU", theme.heading());
    for (at, gpu) in (0..).zip(&gpus[..shown]) {
        canvas.right(8 + at * CELL, y, CELL - 1, &gpu.index.to_string(), theme.heading());
    }
    let after = 8 + u16::try_from(shown).unwrap_or(0) * CELL + 1;
    canvas.right(after, y, 4, "NUMA", theme.heading());
    canvas.text(after + 5, y, "CPUS NEAR IT", theme.heading());
    y += 1;
    for gpu in &gpus {
        canvas.right(0, y, 7, &gpu.index.to_string(), theme.text());
        for (at, other) in (0..).zip(&gpus[..shown]) {
            let value = if other.index == gpu.index {
                Value::plain("·").quiet_if(true)
            } else {
                let peer = gpu.topology.peers.iter().find(|peer| peer.gpu_index == other.index);
                peer.map_or_else(|| Value::plain("?").quiet_if(true), way)
            };
            let style = value.style(theme, true);
            canvas.right(8 + at * CELL, y, CELL - 1, &value.text, style);
        }
        let near = Value::shown(&gpu.topology.memory_affinity);
        canvas.right(after, y, 4, &near.text, near.style(theme, true));
        let cpus = Value::shown(&gpu.topology.cpu_affinity);
        canvas.text(after + 5, y, &cpus.text, theme.dim());
        y += 1;
    }
    if shown < gpus.len() {
        let words = format!("{} more columns do not fit", gpus.len() - shown);
        canvas.text(4, y, &words, theme.dim());
        y += 1;
    }
    for line in refused(&gpus) {
        for line in text::wrap(&line, room) {
            canvas.text(4, y, &line, theme.text());
            y += 1;
        }
    }
    y
}

/// Pairs that cannot read each other's memory.
fn refused(gpus: &[&Gpu]) -> Vec<String> {
    let mut out = Vec::new();
    for gpu in gpus {
        for peer in gpu.topology.peers.iter().filter(|peer| peer.gpu_index > gpu.index) {
            if let Reading::Value(answer) = &peer.peer_access
                && answer != "ok"
            {
                out.push(format!(
                    "GPU {} to {}: no peer access, {answer}",
                    gpu.index, peer.gpu_index
                ));
            }
        }
    }
    out.truncate(8);
    out
}

/// Draws how the GPUs joined the fabric, alike ones together.
pub(super) fn fabric(canvas: &mut Canvas, mut y: u16, view: &View) -> u16 {
    let theme = canvas.theme;
    canvas.text(0, y, "NVSWITCH FABRIC", theme.strong());
    y += 1;
    let mut groups: Vec<(String, bool, Vec<u32>)> = Vec::new();
    for gpu in view.snapshot.gpus.iter().filter(|gpu| gpu.mig.is_none()) {
        let fabric = &gpu.fabric;
        let (words, bad) = match &fabric.state {
            Reading::Absent(why) => (why.to_string(), false),
            Reading::Value(state) => {
                let health = fabric.health.text();
                let mut parts = vec![state.as_str(), health];
                parts.extend(fabric.complaints.iter().map(String::as_str));
                parts.retain(|part| !part.is_empty());
                let clique = fabric.clique.get().map_or(String::new(), |n| format!(", clique {n}"));
                let bad = health == "unhealthy" || !fabric.complaints.is_empty();
                (format!("{}{clique}", parts.join(", ")), bad)
            }
        };
        match groups.iter_mut().find(|(known, _, _)| *known == words) {
            Some((_, _, gpus)) => gpus.push(gpu.index),
            None => groups.push((words, bad, vec![gpu.index])),
        }
    }
    for (words, bad, gpus) in groups {
        let label = format!("GPU {}", words::ranges(&gpus));
        let x = canvas.text(4, y, &label, theme.text()) + 2;
        let style = if bad { theme.severity(Severity::Warning) } else { theme.dim() };
        let words = if bad { format!("● {words}") } else { words };
        canvas.text(x, y, &words, style);
        y += 1;
    }
    y
}

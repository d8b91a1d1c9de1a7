//! The bar of one GPU's memory, with the same fills everywhere.

use probes::ledger::Ledger;
use probes::units;

use crate::canvas::{Canvas, Part};
use crate::value::Value;
use crate::view::View;
use crate::words;

/// Draws the bar of the GPU at this place of the snapshot.
pub(super) fn draw(canvas: &mut Canvas, x: u16, y: u16, columns: u16, view: &View, at: usize) {
    let theme = canvas.theme;
    let glyphs = theme.glyphs();
    let gpu = &view.snapshot.gpus[at];
    let Some(total) = gpu.memory.total_bytes.get() else {
        let value = Value::shown(&gpu.memory.total_bytes);
        let words = words::silence_short(gpu).unwrap_or(&value.reason);
        canvas.text_in(x, y, columns, words, theme.dim());
        return;
    };
    let used = gpu.memory.used_bytes.get().unwrap_or(0);
    let ledger = view.ledgers.get(at);
    let held = ledger.map_or(0, Ledger::held_bytes).min(used);
    let largest = ledger
        .and_then(|ledger| ledger.holders.first().and_then(|holder| holder.bytes.get()))
        .unwrap_or(0)
        .min(held);
    // Where the rest cannot be told from what holders have, it counts as other holders'.
    let nobody = ledger.and_then(|l| l.unattributed_bytes.get()).unwrap_or(0).min(used - held);
    let part = |amount, glyph, style, must_show| Part { amount, glyph, style, must_show };
    let parts = [
        part(largest, glyphs.held, theme.text(), false),
        part(used - largest - nobody, glyphs.others, theme.dim(), false),
        part(nobody, glyphs.nobody, theme.dim(), nobody > 256 * units::MIB),
        part(gpu.memory.reserved_bytes.get().unwrap_or(0), glyphs.reserved, theme.dim(), false),
        part(gpu.memory.free_bytes.get().unwrap_or(0), glyphs.free, theme.faint(), false),
    ];
    canvas.bar(x, y, columns, total, &parts);
}

//! The holder rows of the overview: who holds device memory, one row a process, then the sums that
//! belong to no process.

use std::cmp::Reverse;
use std::ops::Range;

use probes::proc::Process;
use probes::reading::{Absence, Reading};
use probes::units;

use crate::canvas::Canvas;
use crate::text;
use crate::view::View;
use crate::words::{self, ProcessKey};

/// A sum that is no process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    /// Used and in nobody's account.
    Nobody,
    /// The driver's reserve.
    Reserved,
}

/// One row.
pub(super) enum Holder<'a> {
    /// A process.
    Process(&'a Process),
    /// A sum over GPUs.
    Sum { sum: Sum, gpus: String, bytes: Option<u64> },
}

impl Holder<'_> {
    /// What the row is known by.
    pub(super) fn key(&self) -> super::Row {
        match self {
            Holder::Process(process) => super::Row::Holder(ProcessKey::of(process)),
            Holder::Sum { sum, .. } => super::Row::Sum(*sum),
        }
    }
}

/// Less than this in nobody's account is rounding and small change of the driver.
const WORTH_A_ROW: u64 = 128 * units::MIB;

/// The rows: what is wrong first, then by size; the driver's reserve last.
pub(super) fn rows<'a>(view: &View<'a>) -> Vec<Holder<'a>> {
    let mut processes: Vec<&Process> = view
        .snapshot
        .processes
        .iter()
        .filter(|process| process.gpus.iter().any(|part| part.kind != "open"))
        .collect();
    processes.sort_by_cached_key(|process| {
        (Reverse(words::process_severity(view, process)), Reverse(process.gpu_bytes()), process.pid)
    });
    let mut rows: Vec<Holder> = processes.into_iter().map(Holder::Process).collect();
    if let Some((gpus, bytes)) = nobody(view) {
        let place = rows.iter().position(|row| match row {
            Holder::Process(process) => {
                words::process_severity(view, process).is_none()
                    && process.gpu_bytes() < bytes.unwrap_or(0)
            }
            Holder::Sum { .. } => false,
        });
        let row = Holder::Sum { sum: Sum::Nobody, gpus, bytes };
        rows.insert(place.unwrap_or(rows.len()), row);
    }
    let reserved: Vec<u64> = ledgers(view).filter_map(|l| l.reserved_bytes.get()).collect();
    if !reserved.is_empty() {
        let row = Holder::Sum {
            sum: Sum::Reserved,
            gpus: "all".into(),
            bytes: Some(reserved.iter().sum()),
        };
        rows.push(row);
    }
    rows
}

/// The sums of whole GPUs; an instance's memory is part of its GPU's.
fn ledgers<'a>(view: &View<'a>) -> impl Iterator<Item = &'a probes::ledger::Ledger> + use<'a> {
    view.ledgers.iter().filter(|ledger| ledger.mig_uuid.is_none())
}

fn nobody(view: &View) -> Option<(String, Option<u64>)> {
    let known: Vec<(u32, u64)> = ledgers(view)
        .filter_map(|ledger| Some((ledger.gpu_index, ledger.unattributed_bytes.get()?)))
        .filter(|(_, bytes)| *bytes >= WORTH_A_ROW)
        .collect();
    if !known.is_empty() {
        let numbers: Vec<u32> = known.iter().map(|(index, _)| *index).collect();
        return Some((words::ranges(&numbers), Some(known.iter().map(|(_, bytes)| bytes).sum())));
    }
    let unknown: Vec<u32> = ledgers(view)
        .filter(|ledger| {
            !matches!(
                ledger.unattributed_bytes,
                Reading::Value(_) | Reading::Absent(Absence::Unsupported | Absence::NotRead)
            )
        })
        .map(|ledger| ledger.gpu_index)
        .collect();
    (!unknown.is_empty()).then(|| (words::ranges(&unknown), None))
}

/// Columns from the right edge: where each begins, and its width.
struct Places {
    gpus: (u16, u16),
    held: (u16, u16),
    state: (u16, u16),
    pid: (u16, u16),
    owner: (u16, u16),
}

fn places(width: u16) -> Places {
    let owner = match width {
        0..72 => 0,
        72..100 => 17,
        100..160 => 26,
        _ => 36,
    };
    let mut end = width;
    let mut take = |columns: u16| {
        end = end.saturating_sub(columns);
        let place = (end, columns.saturating_sub(1));
        (place.0, place.1)
    };
    let owner = take(owner);
    let pid = take(8);
    let state = take(12);
    let held = take(6);
    let gpus = take(7);
    Places { gpus, held, state, pid, owner }
}

/// Draws the heads.
pub(super) fn head(canvas: &mut Canvas, y: u16, rows: &Range<usize>, count: usize) {
    let theme = canvas.theme;
    let style = theme.heading();
    let at = places(canvas.width());
    let end = canvas.text(3, y, "WHO", style);
    if rows.len() < count {
        let note = format!("{}–{} of {count}", rows.start + 1, rows.end);
        canvas.text_in(end + 2, y, at.gpus.0.saturating_sub(end + 3), &note, theme.dim());
    }
    canvas.right(at.gpus.0, y, at.gpus.1, "GPU", style);
    canvas.right(at.held.0, y, at.held.1, "HELD", style);
    canvas.text_in(at.state.0 + 1, y, at.state.1, "STATE", style);
    canvas.right(at.pid.0, y, at.pid.1, "PID", style);
    if at.owner.1 > 0 {
        canvas.text_in(at.owner.0 + 1, y, at.owner.1, "USER CONTAINER", style);
    }
}

/// Draws one row.
pub(super) fn draw(canvas: &mut Canvas, y: u16, view: &View, holder: &Holder) {
    let theme = canvas.theme;
    let at = places(canvas.width());
    let who = at.gpus.0.saturating_sub(4);
    match holder {
        Holder::Process(process) => {
            let severity = words::process_severity(view, process);
            let style = severity.map_or(theme.text(), |severity| theme.severity(severity));
            if let Some(severity) = severity {
                canvas.glyph(1, y, theme.severity_glyph(severity), style);
            }
            let name_end = canvas.text_in(3, y, who, &words::who(process), theme.text());
            debug_assert!(name_end <= at.gpus.0 || who == 0);
            canvas.right(at.gpus.0, y, at.gpus.1, &words::gpus_of(process), theme.text());
            let held = held(process);
            canvas.right(at.held.0, y, at.held.1, &held, theme.text());
            let state = words::state(process, view.now_ms);
            let quiet = severity.is_none();
            let style = if quiet { theme.dim() } else { style };
            canvas.text_in(at.state.0 + 1, y, at.state.1, &state, style);
            canvas.right(at.pid.0, y, at.pid.1, &process.pid.to_string(), theme.text());
            if at.owner.1 > 0 {
                canvas.text_in(at.owner.0 + 1, y, at.owner.1, &owner(process), theme.dim());
            }
        }
        Holder::Sum { sum, gpus, bytes } => {
            let name = match sum {
                Sum::Nobody => "held by nobody visible",
                Sum::Reserved => "driver reserved",
            };
            let style = if *sum == Sum::Nobody { theme.text() } else { theme.dim() };
            canvas.text_in(3, y, who, name, style);
            canvas.right(at.gpus.0, y, at.gpus.1, gpus, style);
            let held = bytes.map_or("?".into(), units::gib);
            canvas.right(at.held.0, y, at.held.1, &held, style);
        }
    }
}

fn held(process: &Process) -> String {
    let known = process.gpus.iter().any(|part| part.gpu_bytes.value().is_some());
    if known { units::gib(process.gpu_bytes()) } else { "?".into() }
}

/// User, and container.
fn owner(process: &Process) -> String {
    let user = process.user.value().map_or("?", String::as_str);
    match process.container.value() {
        Some(place) => {
            let short = place.split_once(' ').map_or(place.as_str(), |(_, id)| id);
            format!("{} {short}", text::fit(user, 8))
        }
        None => user.into(),
    }
}

/// Why a process's row has a `?`.
pub(super) fn reason(process: &Process) -> Option<String> {
    let untold = process.gpus.iter().find_map(|part| part.gpu_bytes.absence());
    let mut parts: Vec<String> = untold.iter().map(|why| format!("HELD: {why}")).collect();
    if words::is_gone(process) {
        parts.push(
            "the driver lists it; here it has ended or lives in another PID namespace".into(),
        );
    } else if let Some(why) = process.state.absence().filter(|why| **why != Absence::NotRead) {
        parts.push(format!("STATE: {why}"));
    }
    (!parts.is_empty()).then(|| format!("pid {}: {}", process.pid, parts.join("; ")))
}

/// Why a sum is not known.
pub(super) fn sum_reason(view: &View, sum: Sum) -> Option<String> {
    if sum == Sum::Reserved {
        return None;
    }
    let ledger = ledgers(view).find(|ledger| ledger.unattributed_bytes.value().is_none())?;
    let why = ledger.unattributed_bytes.absence()?;
    Some(format!("GPU {}: {why}", ledger.gpu_index))
}

//! The holder rows of the overview: who holds device memory, one row a process, then the sums that
//! belong to no process.

use std::cmp::Reverse;
use std::ops::Range;

use probes::proc::Process;
use probes::reading::{Absence, Reading};
use probes::units;

use crate::canvas::Canvas;
use crate::table::{self, Column};
use crate::value::Value;
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
            bytes: Some(reserved.into_iter().fold(0, u64::saturating_add)),
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
        let bytes = known.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
        return Some((words::ranges(&numbers), Some(bytes)));
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

/// The columns behind the name.
const COLUMNS: &[Column<Process>] = &[
    Column::number("GPU", 6, 0, |p, _| Value::plain(words::gpus_of(p))),
    Column::number("HELD", 5, 0, |p, _| Value::plain(held(p))),
    Column::number("SM", 4, 3, |p, v| Value::percent(&words::busiest(p)).read_at(p.read, v)),
    Column::number("CPU", 5, 3, |p, v| Value::percent(&p.cpu_ratio).read_at(p.read, v)),
    Column::number("RSS", 6, 3, |p, v| Value::gib(&p.rss_bytes).read_at(p.read, v)),
    Column::number("AGE", 4, 4, |p, v| words::age(p, v).quiet_if(true)),
    Column::words("STATE", 10, 0, |p, v| {
        let severity = words::process_severity(v, p);
        let value = Value::plain(words::state(p, v.at_ms())).quiet_if(severity.is_none());
        value.alarm_if(severity.is_some(), severity.unwrap_or_default())
    }),
    Column::number("PID", 7, 0, |p, _| Value::plain(p.pid.to_string())),
];

/// Where the name begins.
const WHO: u16 = 3;

/// What a width shows.
pub(super) struct Plan {
    who: u16,
    columns: Vec<&'static Column<Process>>,
    /// Columns of user and place, behind the others; 0 for none.
    owner: u16,
}

/// The columns for a width; what they leave is the name's, as far as the eye follows a row.
pub(super) fn plan(width: u16) -> Plan {
    let least = match width {
        0..72 => 20,
        72..110 => 28,
        _ => 40,
    };
    let owner = match width {
        0..72 => 0,
        72..110 => 15,
        110..150 => 20,
        _ => 40,
    };
    let behind = owner + u16::from(owner > 0);
    let (columns, left) = table::fitting(COLUMNS, width.saturating_sub(WHO + least + 1 + behind));
    Plan { who: (least + left).min(76), columns, owner }
}

/// Draws the heads.
pub(super) fn head(canvas: &mut Canvas, y: u16, plan: &Plan, rows: &Range<usize>, count: usize) {
    let theme = canvas.theme;
    let end = canvas.text(WHO, y, "WHO", theme.heading());
    if rows.len() < count {
        let note = format!("{}–{} of {count}", rows.start + 1, rows.end);
        let room = (WHO + plan.who).saturating_sub(end + 2);
        canvas.text_in(end + 2, y, room, &note, theme.dim());
    }
    let x = table::heads(canvas, WHO + plan.who + 1, y, &plan.columns, None);
    canvas.text_in(x, y, plan.owner, "USER WHERE", theme.heading());
}

/// Draws one row.
pub(super) fn draw(canvas: &mut Canvas, y: u16, plan: &Plan, view: &View, holder: &Holder) {
    let theme = canvas.theme;
    let x = WHO + plan.who + 1;
    match holder {
        Holder::Process(process) => {
            if let Some(severity) = words::process_severity(view, process) {
                canvas.glyph(1, y, theme.severity_glyph(severity), theme.severity(severity));
            }
            canvas.text_in(WHO, y, plan.who, &words::who(view.snapshot, process), theme.text());
            let x = table::cells(canvas, x, y, &plan.columns, process, view, true);
            canvas.text_in(x, y, plan.owner, &words::owner(process, plan.owner), theme.dim());
        }
        Holder::Sum { sum, gpus, bytes } => {
            let (name, style) = match sum {
                Sum::Nobody => ("held by nobody visible", theme.text()),
                Sum::Reserved => ("driver reserved", theme.dim()),
            };
            canvas.text_in(WHO, y, plan.who, name, style);
            // GPU and HELD are the first two columns at every width.
            canvas.right(x, y, 6, gpus, style);
            canvas.right(x + 7, y, 5, &bytes.map_or("?".into(), units::gib), style);
        }
    }
}

fn held(process: &Process) -> String {
    let known = process.gpus.iter().any(|part| part.gpu_bytes.value().is_some());
    if known { units::gib(process.gpu_bytes()) } else { "?".into() }
}

/// Why a process's row has a `?`.
pub(super) fn reason(process: &Process) -> Option<String> {
    let untold = process.gpus.iter().find_map(|part| part.gpu_bytes.absence());
    let mut parts: Vec<String> = untold.iter().map(|why| format!("HELD: {why}")).collect();
    if process.is_gone() {
        parts.push(words::not_here(process));
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

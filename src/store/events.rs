//! What happened, as far as the snapshots tell: errors of the GPUs, and another driver.
//!
//! The same error comes through two doors, the driver's event and the kernel's line, and a sampler
//! that starts anew tells the kernel's lines again. It becomes one mark, at the time of whichever came
//! first; what the file holds already is not told twice.

use std::collections::HashSet;

use probes::finding::Severity;
use probes::kernel_log::{KernelLine, xid_name};
use probes::past::{Mark, MarkKind};
use probes::pci::same_pci_device;
use probes::snapshot::{Gpu, Snapshot};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::marks;

/// Two tellings of an error that lie closer together are one: the kernel's clock drifts, and the
/// event carries no time of its own.
const SAME_MS: u64 = 10_000;
/// A line of the kernel log that is read again may be dated anew by so much.
const DRIFT_MS: i64 = 60_000;
/// Where the last known driver stands among the facts.
const DRIVER: &str = "driver";

/// What is known of the box, to see what is new.
#[derive(Default)]
pub(super) struct Events {
    /// Errors and lines that were told and are still in the snapshots.
    told: HashSet<Seen>,
    /// Errors of late: subject, code, when.
    recent: Vec<(String, u32, u64)>,
    driver: Option<String>,
    taken: Option<(u64, u32)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Seen {
    Event { gpu: String, code: u32, at_ms: u64, instance: Option<u32> },
    Line { at_ms: Option<u64>, text: String },
}

impl Events {
    /// Marks what this snapshot tells and no one before it did.
    pub(super) fn tell(&mut self, db: &Connection, snapshot: &Snapshot) -> rusqlite::Result<()> {
        let mut now = HashSet::new();
        for line in snapshot.kernel_log.lines.iter().filter(|line| is_error(line)) {
            let at_ms = line.at_ms.get();
            let seen = Seen::Line { at_ms, text: line.text.clone() };
            if !self.told.contains(&seen) && !now.contains(&seen) {
                self.line(db, snapshot, line)?;
            }
            now.insert(seen);
        }
        for gpu in &snapshot.gpus {
            for xid in &gpu.xids {
                let (gpu_name, code, at_ms) = (gpu.label(), xid.code, xid.at_ms);
                let seen = Seen::Event { gpu: gpu_name, code, at_ms, instance: xid.gpu_instance };
                if !self.told.contains(&seen) && !now.contains(&seen) {
                    self.error(db, &name(gpu), code, at_ms, None)?;
                }
                now.insert(seen);
            }
        }
        self.told = now;
        self.driver(db, snapshot)
    }

    fn line(
        &mut self,
        db: &Connection,
        snapshot: &Snapshot,
        line: &KernelLine,
    ) -> rusqlite::Result<()> {
        let of_line = |gpu: &&Gpu| {
            gpu.mig.is_none()
                && line.pci.as_deref().is_some_and(|pci| same_pci_device(pci, gpu.pci.text()))
        };
        let subject = snapshot
            .gpus
            .iter()
            .find(of_line)
            .map_or_else(|| line.pci.clone().unwrap_or_default(), name);
        let at_ms = line.at_ms.get().unwrap_or(snapshot.taken_at_ms);
        match line.code {
            Some(code) if line.kind == "xid" => {
                self.error(db, &subject, code, at_ms, Some(&line.text))
            }
            _ => mark(db, &subject, at_ms, line.text.clone()),
        }
    }

    fn error(
        &mut self,
        db: &Connection,
        subject: &str,
        code: u32,
        at_ms: u64,
        line: Option<&str>,
    ) -> rusqlite::Result<()> {
        let is_same = |(other, same, when): &(String, u32, u64)| {
            other == subject && *same == code && when.abs_diff(at_ms) <= SAME_MS
        };
        if self.recent.iter().any(is_same) {
            return Ok(());
        }
        self.recent.retain(|(_, _, when)| when.abs_diff(at_ms) <= SAME_MS);
        self.recent.push((subject.into(), code, at_ms));
        let what = match (xid_name(code), line) {
            (Some(name), _) => format!(": {name}"),
            (None, Some(line)) => format!(": {line}"),
            (None, None) => String::new(),
        };
        mark(db, subject, at_ms, format!("Xid {code}{what}"))
    }

    /// Marks another version of the driver, and a driver that was taken anew.
    fn driver(&mut self, db: &Connection, snapshot: &Snapshot) -> rusqlite::Result<()> {
        const KNOWN: &str = "SELECT value FROM facts WHERE name = ?";
        const PUT: &str = "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)";
        let driver = &snapshot.driver;
        let at_ms = snapshot.taken_at_ms;
        let mark = |text: String| {
            let (kind, severity) = (MarkKind::DriverChange, Severity::Warning);
            marks::add(db, &Mark { at_ms, kind, severity, text, ..Mark::default() })
        };
        let mut changed = false;
        if let Some(version) = driver.version.value() {
            let library = driver.nvml_version.text();
            let now = format!("driver {version}, library {library}");
            if self.driver.is_none() {
                self.driver = db.query_row(KNOWN, [DRIVER], |row| row.get(0)).optional()?;
            }
            // The library tells its version a moment later than the driver's.
            if self.driver.as_ref() != Some(&now) && !library.is_empty() {
                if let Some(before) = &self.driver {
                    changed = true;
                    mark(format!("{now} instead of {before}"))?;
                }
                db.execute(PUT, params![DRIVER, now])?;
                self.driver = Some(now);
            }
        }
        let (sequence, generation) = (snapshot.sequence, snapshot.generation);
        let before = self.taken.replace((sequence, generation));
        // A sampler that was started anew counts from the beginning.
        let same_sampler = before.filter(|before| before.0 < sequence);
        if !changed && same_sampler.is_some_and(|before| before.1 != 0 && before.1 < generation) {
            mark("the driver was taken anew".into())?;
        }
        Ok(())
    }
}

fn is_error(line: &KernelLine) -> bool {
    matches!(line.kind.as_str(), "xid" | "sxid" | "fallen_off_bus")
}

fn name(gpu: &Gpu) -> String {
    format!("GPU {}", gpu.label())
}

/// Adds the mark of an error, unless the file has it.
fn mark(db: &Connection, subject: &str, at_ms: u64, text: String) -> rusqlite::Result<()> {
    const KNOWN: &str = "SELECT 1 FROM marks
         WHERE at_ms BETWEEN ? AND ? AND kind = ? AND subject = ? AND text = ? LIMIT 1";
    let kind = super::words::word(&MarkKind::Xid);
    let at = at_ms.cast_signed();
    let known = params![at - DRIFT_MS, at + DRIFT_MS, kind, subject, text];
    if db.query_row(KNOWN, known, |_| Ok(())).optional()?.is_some() {
        return Ok(());
    }
    let (kind, severity, subject) = (MarkKind::Xid, Severity::Critical, subject.to_string());
    marks::add(db, &Mark { at_ms, until_ms: None, kind, severity, subject, text })
}

#[cfg(test)]
mod tests;

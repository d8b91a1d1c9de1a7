//! What happened in a stretch of time.

use probes::finding::Severity;
use probes::past::{Mark, MarkKind};
use rusqlite::Row;

use super::{Reader, signed};
use crate::store::minute::unsigned;
use crate::store::words;

/// No axis shows more, and no answer gets larger.
const MOST_MARKS: u32 = 5000;

impl Reader {
    /// What happened in a stretch, findings and daemons included, oldest first; the newest where
    /// there are too many.
    pub(crate) fn marks(&mut self, from_ms: u64, to_ms: u64) -> anyhow::Result<Vec<Mark>> {
        let mut marks = self.query(MARKS, from_ms, to_ms, |row| {
            Ok(Mark {
                at_ms: unsigned(row.get(0)?),
                until_ms: row.get::<_, Option<i64>>(1)?.map(unsigned),
                kind: words::value(row.get(2)?),
                severity: words::value(row.get(3)?),
                subject: row.get(4)?,
                text: row.get(5)?,
            })
        })?;
        marks.extend(self.query(FINDINGS, from_ms, to_ms, |row| {
            Ok(Mark {
                at_ms: unsigned(row.get(0)?),
                until_ms: row.get::<_, Option<i64>>(1)?.map(unsigned),
                kind: MarkKind::Finding,
                severity: words::value(row.get(2)?),
                subject: row.get(3)?,
                text: row.get(4)?,
            })
        })?);
        let daemon = |kind, severity, at, text| Mark {
            at_ms: unsigned(at),
            until_ms: None,
            kind,
            severity,
            subject: String::new(),
            text,
        };
        marks.extend(self.query(STARTS, from_ms, to_ms, |row| {
            let version: String = row.get(1)?;
            let text = format!("infertop {version} started");
            Ok(daemon(MarkKind::DaemonStart, Severity::Info, row.get(0)?, text))
        })?);
        marks.extend(self.query(ENDS, from_ms, to_ms, |row| {
            let text = "infertop ended".to_string();
            Ok(daemon(MarkKind::DaemonEnd, Severity::Info, row.get(0)?, text))
        })?);
        marks.sort_by_key(|mark| mark.at_ms);
        Ok(marks)
    }

    fn query(
        &self,
        sql: &str,
        from_ms: u64,
        to_ms: u64,
        make: impl FnMut(&Row<'_>) -> rusqlite::Result<Mark>,
    ) -> anyhow::Result<Vec<Mark>> {
        let mut rows = self.db.prepare(sql)?;
        let marks = rows.query_map((signed(from_ms), signed(to_ms), MOST_MARKS), make)?;
        Ok(marks.collect::<Result<_, _>>()?)
    }
}

const MARKS: &str = "SELECT at_ms, until_ms, kind, severity, subject, text FROM marks
    WHERE coalesce(until_ms, at_ms) >= ?1 AND at_ms <= ?2 ORDER BY at_ms DESC LIMIT ?3";

const FINDINGS: &str = "SELECT opened_ms, closed_ms, severity, subject, title FROM findings
    WHERE coalesce(closed_ms, ?2) >= ?1 AND opened_ms <= ?2 ORDER BY opened_ms DESC LIMIT ?3";

const STARTS: &str = "SELECT at_ms, version FROM starts
    WHERE at_ms BETWEEN ?1 AND ?2 ORDER BY at_ms DESC LIMIT ?3";

const ENDS: &str = "SELECT ended_ms FROM starts
    WHERE ended_ms BETWEEN ?1 AND ?2 ORDER BY ended_ms DESC LIMIT ?3";

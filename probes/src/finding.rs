//! A finding: one cause seen on this box now, with its subject and evidence.
//!
//! Lives beside the snapshot so that what judges and what draws need not know each other.

use serde::{Deserialize, Serialize};

/// How bad it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    #[default]
    Info,
    /// Will hurt, or hurts a little.
    Warning,
    /// Hurts now.
    Critical,
}

/// What a finding is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "id")]
pub enum Subject {
    /// The box as a whole.
    #[default]
    Box,
    /// A GPU by its number.
    Gpu(u32),
    /// A process by its pid.
    Process(u32),
}

/// One cause, seen on this box now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// Stable id of the cause.
    pub cause: String,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub subject: Subject,
    /// What is wrong, in one line, without the subject.
    pub title: String,
    /// Since when, milliseconds since 1970; 0 where nothing tells.
    pub since_ms: u64,
    /// The figures that show it.
    pub evidence: Vec<String>,
    /// The next step.
    pub help: String,
}

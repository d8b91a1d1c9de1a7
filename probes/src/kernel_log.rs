//! What the kernel said about the GPUs: NVRM, Xid and SXid lines.

use serde::{Deserialize, Serialize};

use crate::reading::Reading;

/// The kernel's lines about GPUs, newest last, at most [`KEPT_LINES`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelLog {
    /// Where lines come from: `kmsg`, `journal`, `/var/log/kern.log`; absent with the reason.
    pub source: Reading<String>,
    /// The lines.
    pub lines: Vec<KernelLine>,
}

/// How many lines a snapshot carries.
pub const KEPT_LINES: usize = 64;

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelLine {
    /// Wall clock, milliseconds since 1970; absent where the log has no usable time.
    pub at_ms: Reading<u64>,
    /// The text without its time stamp.
    pub text: String,
    /// `xid`, `sxid`, `fallen_off_bus`, `api_mismatch`, `nvrm`, `oom_kill`.
    pub kind: String,
    /// Xid or SXid number.
    pub code: Option<u32>,
    /// `0000:9b:00`, without the function.
    pub pci: Option<String>,
    /// Process that the line names.
    pub pid: Option<u32>,
    /// Name of that process.
    pub process: Option<String>,
    /// MIG GPU instance in the bracket.
    pub gpu_instance: Option<u32>,
}

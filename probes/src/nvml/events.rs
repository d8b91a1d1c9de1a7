//! Xid events. The driver keeps no history: only what happens after registration is seen, so the
//! kernel log is read beside this.

use serde::{Deserialize, Serialize};

/// One error that the driver reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Xid {
    /// Number of the error; 999 is unknown.
    pub code: u32,
    /// When we received it, milliseconds since 1970; the event carries no time.
    pub at_ms: u64,
    /// MIG GPU instance, where one is named.
    pub gpu_instance: Option<u32>,
}

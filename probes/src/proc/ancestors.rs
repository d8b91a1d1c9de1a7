//! The chain from a process up to init, by number and short name.
//!
//! A worker whose chain leads straight to init has lost its server. The processes above are read once
//! in some seconds at most, however many workers share them and at whatever tick each of these is due;
//! that a process has another parent is seen at once, by its own `stat`. A chain is no promise: processes end while it is
//! followed, so it stops where one is gone.

use std::collections::HashMap;

use super::Ancestor;
use super::stat::parse_stat;
use super::task::ProcRoot;

/// Deeper trees than this do not occur; a cycle can, in a tree that changes while it is read.
const DEEPEST: usize = 64;

/// How old what is known of a process above may be.
const KEEP_MS: u64 = 5_000;

/// Short names and parents that were read in the last seconds.
#[derive(Debug, Default)]
pub(crate) struct Family {
    seen: HashMap<u32, Option<(String, u32)>>,
    since_ms: u64,
}

impl Family {
    /// Forgets what is too old by now.
    pub(crate) fn refresh(&mut self, now_ms: u64) {
        if now_ms.abs_diff(self.since_ms) >= KEEP_MS {
            self.seen.clear();
            self.since_ms = now_ms;
        }
    }

    /// From the parent up.
    pub(crate) fn read_ancestors(
        &mut self,
        root: &ProcRoot,
        parent: u32,
        buffer: &mut Vec<u8>,
    ) -> Vec<Ancestor> {
        let mut chain: Vec<Ancestor> = Vec::new();
        let mut pid = parent;
        while pid != 0 && chain.len() < DEEPEST && !chain.iter().any(|above| above.pid == pid) {
            let known = self.seen.entry(pid).or_insert_with(|| {
                root.read_stat(pid, buffer).ok()?;
                parse_stat(buffer).map(|stat| (stat.comm, stat.parent))
            });
            let Some((comm, next)) = known else { break };
            chain.push(Ancestor { pid, comm: comm.clone() });
            pid = *next;
        }
        chain
    }
}

//! The servers above the holders: what people started, and what opens no GPU file.
//!
//! vLLM's API server and the launchers of SGLang and TensorRT-LLM hold the port and the model's name;
//! their workers hold the GPUs. Who stands above a holder is asked once for its command line, and
//! again when its short name changes. One that looks like an engine is followed as holders are, on no
//! GPU; of the shells, container shims and init above it nothing is read any more. Which process
//! stands above which is taken from the chains of the holders, so that a front-end without a worker
//! is not looked for.

use std::collections::BTreeMap;

use crate::reading::Absence;

use super::Ancestor;
use super::blocking::{BlockingReads, Command, Question};
use super::engine::recognise;
use super::stat::parse_stat;
use super::task::ProcRoot;

/// Chains can be made long on purpose; an engine is two deep or three.
const MOST: usize = 512;

/// They carry the command line of the server that they started and are not it.
const WRAPPERS: [&str; 6] = ["sh", "bash", "dash", "tini", "dumb-init", "docker-init"];

/// One that did not answer is asked again only after this.
const NO_ANSWER_MS: u64 = 60_000;

/// Who stands above a holder, by number.
#[derive(Debug, Default)]
pub(crate) struct FrontEnds {
    seen: BTreeMap<u32, Above>,
}

#[derive(Debug)]
struct Above {
    start_ticks: u64,
    comm: String,
    /// What it was last taken for; a new name does not change that until the answer is there.
    is_engine: bool,
    due_ms: u64,
}

impl FrontEnds {
    /// Takes the chains of the holders as they are now; who is new is looked up.
    pub(crate) fn look_above<'a>(
        &mut self,
        chains: impl Iterator<Item = &'a Ancestor>,
        root: &ProcRoot,
        buffer: &mut Vec<u8>,
    ) {
        let mut before = std::mem::take(&mut self.seen);
        for Ancestor { pid, comm } in chains {
            if self.seen.contains_key(pid) || self.seen.len() >= MOST {
                continue;
            }
            let above = match before.remove(pid) {
                Some(known) if known.comm == *comm => known,
                Some(known) => Above { comm: comm.clone(), due_ms: 0, ..known },
                None => {
                    let read = root.read_stat(*pid, buffer);
                    let Some(stat) = read.ok().and_then(|()| parse_stat(buffer)) else { continue };
                    let start_ticks = stat.start_ticks;
                    Above { start_ticks, comm: comm.clone(), is_engine: false, due_ms: 0 }
                }
            };
            self.seen.insert(*pid, above);
        }
    }

    /// Asks those that are due; true if one of them is new.
    pub(crate) fn ask(&mut self, reads: &mut BlockingReads, now_ms: u64) -> bool {
        let mut asked = false;
        for (&pid, above) in &mut self.seen {
            if above.due_ms > now_ms {
                continue;
            }
            // Its own arguments alone decide: a nameless child of an engine is no front-end.
            let question = Question::Command { comm: above.comm.clone(), parent: 0, known: None };
            if reads.ask(pid, above.start_ticks, question) {
                // Nobody waits again for one that has not answered before.
                asked |= above.due_ms == 0;
                above.due_ms = u64::MAX;
            }
        }
        asked
    }

    /// Judges by a command line that has come in.
    pub(crate) fn answered(
        &mut self,
        pid: u32,
        start_ticks: u64,
        answer: &Result<Option<Command>, Absence>,
        now_ms: u64,
    ) {
        let above = self.seen.get_mut(&pid).filter(|above| above.start_ticks == start_ticks);
        let Some(above) = above else { return };
        match answer {
            Ok(Some(command)) => {
                let wraps = WRAPPERS.contains(&above.comm.as_str());
                above.is_engine = command.line.engine.is_some() && !wraps;
            }
            Ok(None) => {}
            Err(_) => {
                above.is_engine = recognise(&above.comm, &[]).is_some();
                above.due_ms = now_ms + NO_ANSWER_MS;
            }
        }
    }

    /// Those that look like an engine: number and start.
    pub(crate) fn engines(&self) -> impl Iterator<Item = (u32, u64)> {
        let engines = self.seen.iter().filter(|(_, above)| above.is_engine);
        engines.map(|(&pid, above)| (pid, above.start_ticks))
    }

    /// Whether this very process is one of them.
    pub(crate) fn is_engine(&self, pid: u32, start_ticks: u64) -> bool {
        let above = self.seen.get(&pid);
        above.is_some_and(|above| above.is_engine && above.start_ticks == start_ticks)
    }

    /// It has ended, or its number is another's.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.seen.remove(&pid);
    }
}

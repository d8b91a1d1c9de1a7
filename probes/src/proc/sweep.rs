//! The search for processes that hold a device file of the driver and are in none of its lists.
//!
//! Every process's descriptors are looked at once in about a minute, a few each tick; one that has
//! just started comes first and again after some seconds, since it is the likeliest to open a GPU
//! soon. Two limits hold: the share of a minute's work that belongs to the time since the last step,
//! and a share of one core. On a box where looking is dear the round takes longer; the cost does not
//! grow. `/proc` is listed when a round begins, and in between only when the kernel has given out a
//! new number since (last field of `loadavg`), and the less often the longer listing takes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::fds::{DescriptorReader, MOST_DESCRIPTORS, numbers_in};
use super::stat::parse_stat;
use super::task::ProcRoot;

/// In which all processes are looked at once, and when memory is unexplained.
const ROUND_MS: u64 = 60_000;
const HURRIED_ROUND_MS: u64 = 10_000;

/// Haste costs; someone whose memory stays unexplained gets one hurried round in this time.
const HURRY_AGAIN_MS: u64 = 120_000;

/// Share of one core that looking may take.
const CORE_RATIO: f64 = 0.010;

/// The first step sees whole boxes of ordinary size.
const FIRST_STEP: Duration = Duration::from_millis(20);

const LEAST_STEP: Duration = Duration::from_micros(100);

/// Listing may take a part of this of the time, and is not worth more than one in three ticks: the
/// driver itself tells of whoever computes, and who is new is looked at again later anyway.
const LIST_PART: u64 = 400;
const LIST_AGAIN_MS: u64 = 2_900;

/// When a new process is looked at again.
const AGAIN_MS: [u64; 2] = [5_000, 20_000];

/// New processes that are remembered; a build makes thousands that end at once.
const MOST_YOUNG: usize = 512;

/// How many processes could be looked at in the last round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Processes that were looked at or should have been; kernel threads are none.
    pub processes: u32,
    /// Those whose descriptors we may not see: needs their uid or `CAP_SYS_PTRACE`.
    pub denied: u32,
    /// Whether these are the figures of a whole round.
    pub complete: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// Ascending, as the kernel lists them.
    listing: Vec<u32>,
    listed_at_ms: Option<u64>,
    list_took: Duration,
    last_pid: Option<u32>,
    queue: VecDeque<u32>,
    fresh: VecDeque<u32>,
    /// When, who, and which time.
    young: VecDeque<(u64, u32, usize)>,
    credit: f64,
    stepped_at_ms: Option<u64>,
    hurried: bool,
    hurried_at_ms: Option<u64>,
    in_round: bool,
    /// The one that is looked at is counted; those that come out of turn are not.
    counts: bool,
    running: Coverage,
    last: Option<Coverage>,
    buffer: Vec<u8>,
}

impl Sweep {
    /// The figures of the last whole round, or of the first one so far.
    pub(crate) fn coverage(&self) -> Coverage {
        self.last.unwrap_or(self.running)
    }

    /// Memory is unexplained: starts a fast round, unless there was one lately.
    pub(crate) fn hurry(&mut self) {
        let now_ms = self.stepped_at_ms.unwrap_or(0);
        let lately = |at: u64| now_ms.saturating_sub(at) < HURRY_AGAIN_MS;
        if !self.hurried_at_ms.is_some_and(lately) {
            self.hurried_at_ms = Some(now_ms);
            self.hurried = true;
            self.running = Coverage::default();
            self.queue.clear();
            self.in_round = false;
        }
    }

    /// A part of the round; returns the holders that it met.
    pub(crate) fn step(
        &mut self,
        root: &ProcRoot,
        descriptors: &mut DescriptorReader,
        now_ms: u64,
        mut known: impl FnMut(u32) -> bool,
    ) -> Vec<u32> {
        let begin = Instant::now();
        let elapsed = self.stepped_at_ms.map(|at| now_ms.saturating_sub(at).min(10_000));
        self.stepped_at_ms = Some(now_ms);
        let (round_ms, haste) =
            if self.hurried { (HURRIED_ROUND_MS, 5.0) } else { (ROUND_MS, 1.0) };
        let budget = elapsed.map_or(FIRST_STEP, |elapsed| {
            Duration::from_secs_f64(elapsed as f64 / 1000.0 * CORE_RATIO * haste).max(LEAST_STEP)
        });
        if self.listed_at_ms.is_none() {
            self.list(root, now_ms);
        }
        self.notice_new(root, now_ms);
        let all = self.listing.len() as f64;
        let share = elapsed.map_or(1.0, |elapsed| elapsed as f64 / round_ms as f64);
        self.credit = (self.credit + all * share).min(all);

        let mut found = Vec::new();
        // At least one, whatever the budget: it has to get on.
        while let Some(pid) = self.next(root, now_ms) {
            if known(pid) {
                self.count(false);
            } else if self.look(root, descriptors, pid) {
                found.push(pid);
            }
            if self.in_round && self.queue.is_empty() {
                self.end_round();
            }
            if begin.elapsed() >= budget {
                break;
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Who is next, if the time since the last step allows one more.
    fn next(&mut self, root: &ProcRoot, now_ms: u64) -> Option<u32> {
        self.counts = false;
        if self.young.front().is_some_and(|&(due, ..)| due <= now_ms) {
            let (_, pid, time) = self.young.pop_front()?;
            self.remember(pid, time + 1, now_ms);
            return Some(pid);
        }
        if let Some(pid) = self.fresh.pop_front() {
            self.remember(pid, 0, now_ms);
            return Some(pid);
        }
        if self.credit < 1.0 {
            return None;
        }
        if self.queue.is_empty() {
            self.list(root, now_ms);
            self.queue.extend(&self.listing);
            self.running = Coverage::default();
            self.in_round = true;
        }
        self.credit -= 1.0;
        self.counts = true;
        self.queue.pop_front()
    }

    /// Notes the figures of a round that has come to its end.
    fn end_round(&mut self) {
        self.in_round = false;
        self.last = Some(Coverage { complete: true, ..self.running });
        self.hurried = false;
        // What is left of the credit is not for the next round, or a small box runs in circles.
        self.credit = 0.0;
    }

    fn remember(&mut self, pid: u32, time: usize, now_ms: u64) {
        let Some(after) = AGAIN_MS.get(time) else { return };
        if self.young.len() >= MOST_YOUNG {
            self.young.pop_front();
        }
        let due = now_ms + after;
        let at = self.young.partition_point(|&(other, ..)| other <= due);
        self.young.insert(at, (due, pid, time));
    }

    /// Lists `/proc` if there can be someone new.
    fn notice_new(&mut self, root: &ProcRoot, now_ms: u64) {
        let Some(listed_at) = self.listed_at_ms else { return };
        let pause = u64::try_from(self.list_took.as_millis()).unwrap_or(u64::MAX);
        if now_ms.saturating_sub(listed_at) < pause.saturating_mul(LIST_PART).max(LIST_AGAIN_MS) {
            return;
        }
        let last_pid = root.read("loadavg", 256, &mut self.buffer).ok();
        let last_pid = last_pid.and_then(|()| parse_last_pid(&self.buffer));
        if last_pid.is_some() && last_pid == self.last_pid {
            return;
        }
        self.list(root, now_ms);
        self.last_pid = last_pid;
    }

    fn list(&mut self, root: &ProcRoot, now_ms: u64) {
        let begin = Instant::now();
        let before = std::mem::take(&mut self.listing);
        if let Ok(folder) = root.list() {
            let listing = &mut self.listing;
            // A listing that breaks off is as good as a shorter one.
            let _ = numbers_in(&folder, &mut self.buffer, |pid| listing.push(pid));
        }
        self.listing.sort_unstable();
        if self.listed_at_ms.is_some() {
            // Both are sorted; who is only in the new one is new.
            let mut old = before.iter().copied().peekable();
            for &pid in &self.listing {
                while old.next_if(|&other| other < pid).is_some() {}
                if old.next_if_eq(&pid).is_none() {
                    self.fresh.push_back(pid);
                }
            }
        }
        self.listed_at_ms = Some(now_ms);
        self.list_took = begin.elapsed();
    }

    /// Whether this process holds a device file.
    fn look(&mut self, root: &ProcRoot, descriptors: &mut DescriptorReader, pid: u32) -> bool {
        let seen = match root.descriptors(pid) {
            Ok(folder) => descriptors.holds_device(&folder),
            Err(errno) => Err(errno),
        };
        match seen {
            Ok(Some(holds)) => {
                self.count(false);
                holds
            }
            Ok(None) => self.look_at_threads(root, descriptors, pid),
            Err(Errno::ACCESS | Errno::PERM) => {
                if !self.is_kernel_thread(root, pid) {
                    self.count(true);
                }
                false
            }
            // It has ended.
            Err(_) => false,
        }
    }

    fn count(&mut self, denied: bool) {
        let one = u32::from(self.counts);
        self.running.processes += one;
        self.running.denied += if denied { one } else { 0 };
    }

    fn is_kernel_thread(&mut self, root: &ProcRoot, pid: u32) -> bool {
        let read = root.read_stat(pid, &mut self.buffer).ok();
        read.and_then(|()| parse_stat(&self.buffer)).is_none_or(|stat| stat.kernel_thread)
    }

    /// No descriptors: a kernel thread, or a zombie whose threads may hold some.
    fn look_at_threads(
        &mut self,
        root: &ProcRoot,
        descriptors: &mut DescriptorReader,
        pid: u32,
    ) -> bool {
        let read = root.read_stat(pid, &mut self.buffer).ok();
        let Some(stat) = read.and_then(|()| parse_stat(&self.buffer)) else { return false };
        if stat.kernel_thread {
            return false;
        }
        self.count(false);
        stat.state == 'Z'
            && stat.threads > 1
            && root
                .task(pid)
                .and_then(|task| descriptors.read(&task, true, MOST_DESCRIPTORS))
                .is_ok_and(|found| !found.devices.is_empty())
    }
}

/// The number that the kernel gave out last in this namespace.
fn parse_last_pid(loadavg: &[u8]) -> Option<u32> {
    std::str::from_utf8(loadavg).ok()?.split_ascii_whitespace().nth(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_the_fifth_field() {
        assert_eq!(parse_last_pid(b"0.30 0.19 0.08 1/123 7585\n"), Some(7585));
        assert_eq!(parse_last_pid(b"garbage"), None);
    }
}

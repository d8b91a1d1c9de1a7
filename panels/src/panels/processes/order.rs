//! Which processes are shown and in what order: filter, sort, tree. Pure functions of the snapshot.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

use probes::proc::Process;

use super::{COLUMNS, known};
use crate::view::View;
use crate::words::{self, ProcessKey};

/// An order.
#[derive(Clone, Copy)]
pub(super) struct Sort {
    /// Head of the column that it goes by.
    pub(super) head: &'static str,
    /// Smallest first.
    pub(super) upwards: bool,
    compare: fn(&Process, &Process) -> Ordering,
}

const fn sort(
    head: &'static str,
    upwards: bool,
    compare: fn(&Process, &Process) -> Ordering,
) -> Sort {
    Sort { head, upwards, compare }
}

/// The orders that `s` goes through.
pub(super) const SORTS: &[Sort] = &[
    // What is on no GPU comes behind what holds an unknown amount on one.
    sort("HELD", false, |a, b| {
        (b.gpu_bytes(), !b.gpus.is_empty()).cmp(&(a.gpu_bytes(), !a.gpus.is_empty()))
    }),
    sort("SM", false, |a, b| busiest(b).total_cmp(&busiest(a))),
    sort("CPU", false, |a, b| {
        b.cpu_ratio.get().unwrap_or(-1.0).total_cmp(&a.cpu_ratio.get().unwrap_or(-1.0))
    }),
    sort("RSS", false, |a, b| known(&b.rss_bytes).cmp(&known(&a.rss_bytes))),
    sort("AGE", false, |a, b| known(&a.started_at_ms).cmp(&known(&b.started_at_ms))),
    sort("STATE", true, |a, b| a.state.text().cmp(b.state.text())),
    sort("USER", true, |a, b| a.user.text().cmp(b.user.text())),
    sort("PID", true, |a, b| a.pid.cmp(&b.pid)),
];

fn busiest(process: &Process) -> f64 {
    process.gpus.iter().filter_map(|part| part.sm_ratio.get()).fold(-1.0, f64::max)
}

/// What a row is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKey {
    /// A process.
    Process(ProcessKey),
    /// A parent that uses no GPU.
    Parent(u32),
}

/// A row.
pub(super) struct Row<'a> {
    /// The process; `None` for a parent that uses no GPU.
    pub(super) process: Option<&'a Process>,
    /// Its number.
    pub(super) pid: u32,
    /// Its short name, for a parent.
    pub(super) comm: String,
    /// For each level whether the branch there is the last one; empty at the root.
    last: Vec<bool>,
}

impl Row<'_> {
    /// What it is known by.
    pub(super) fn key(&self) -> RowKey {
        match self.process {
            Some(process) => RowKey::Process(ProcessKey::of(process)),
            None => RowKey::Parent(self.pid),
        }
    }

    /// The lines of the tree before its name.
    pub(super) fn branch(&self, glyphs: [&str; 3]) -> String {
        let Some((own, above)) = self.last.split_last() else { return String::new() };
        let mut out: String =
            above.iter().map(|last| if *last { "  " } else { glyphs[2] }).collect();
        out.push_str(if *own { glyphs[1] } else { glyphs[0] });
        out
    }
}

/// The rows to show.
pub(super) fn rows<'a>(
    view: &View<'a>,
    sort: Sort,
    reverse: bool,
    tree: bool,
    filter: &str,
) -> Vec<Row<'a>> {
    let needle = filter.to_lowercase();
    let mut found: Vec<&Process> = view
        .snapshot
        .processes
        .iter()
        .filter(|process| needle.is_empty() || matches(view, process, &needle))
        .collect();
    found.sort_by(|a, b| {
        let order = (sort.compare)(a, b);
        let order = if reverse { order.reverse() } else { order };
        order.then_with(|| a.pid.cmp(&b.pid))
    });
    if tree {
        return as_tree(&found);
    }
    found
        .into_iter()
        .map(|process| Row {
            process: Some(process),
            pid: process.pid,
            comm: String::new(),
            last: Vec::new(),
        })
        .collect()
}

fn matches(view: &View, process: &Process, needle: &str) -> bool {
    let has = |words: &str| words.to_lowercase().contains(needle);
    has(&words::who(view.snapshot, process))
        || has(process.command.text())
        || has(process.comm.text())
        || has(process.engine.text())
        || has(process.container.text())
        || has(process.pod.text())
        || has(process.unit.text())
        || has(process.slurm_job.text())
        || COLUMNS.iter().any(|column| has(&(column.pick)(process, view).text))
}

struct Node<'a> {
    process: Option<&'a Process>,
    comm: String,
    children: Vec<u32>,
}

/// Each process below its parent; parents that use no GPU come in as rows of their own, init does
/// not. The order among children is the order given.
fn as_tree<'a>(processes: &[&'a Process]) -> Vec<Row<'a>> {
    let mut nodes: BTreeMap<u32, Node> = BTreeMap::new();
    for process in processes {
        let node = Node { process: Some(process), comm: String::new(), children: Vec::new() };
        nodes.insert(process.pid, node);
    }
    let mut roots: Vec<u32> = Vec::new();
    let mut placed: HashSet<u32> = HashSet::new();
    for process in processes {
        let mut child = process.pid;
        for ancestor in process.ancestors.iter().filter(|ancestor| ancestor.pid > 1) {
            if !placed.insert(child) {
                break;
            }
            let parent = nodes.entry(ancestor.pid).or_insert_with(|| Node {
                process: None,
                comm: ancestor.comm.clone(),
                children: Vec::new(),
            });
            parent.children.push(child);
            child = ancestor.pid;
        }
        if placed.insert(child) {
            roots.push(child);
        }
    }
    let mut out = Vec::with_capacity(nodes.len());
    let mut seen = HashSet::new();
    for root in roots {
        descend(&nodes, root, &mut Vec::new(), &mut seen, &mut out);
    }
    out
}

fn descend<'a>(
    nodes: &BTreeMap<u32, Node<'a>>,
    pid: u32,
    last: &mut Vec<bool>,
    seen: &mut HashSet<u32>,
    out: &mut Vec<Row<'a>>,
) {
    // A reading across two moments may hold a circle.
    let Some(node) = nodes.get(&pid).filter(|_| seen.insert(pid) && last.len() < 40) else {
        return;
    };
    out.push(Row { process: node.process, pid, comm: node.comm.clone(), last: last.clone() });
    for (at, child) in node.children.iter().enumerate() {
        last.push(at + 1 == node.children.len());
        descend(nodes, *child, last, seen, out);
        last.pop();
    }
}

#[cfg(test)]
mod tests {
    use probes::proc::Ancestor;

    use super::*;

    fn process(pid: u32, ancestors: &[u32]) -> Process {
        Process {
            pid,
            ancestors: ancestors
                .iter()
                .map(|pid| Ancestor { pid: *pid, comm: format!("p{pid}") })
                .collect(),
            ..Process::default()
        }
    }

    #[test]
    fn a_process_stands_below_its_parent_even_if_that_uses_no_gpu() {
        let (a, b, c) = (process(30, &[20, 10, 1]), process(31, &[20, 10, 1]), process(40, &[1]));
        let rows = as_tree(&[&a, &c, &b]);
        let drawn: Vec<String> =
            rows.iter().map(|row| format!("{}{}", row.branch(["+", "`", "|"]), row.pid)).collect();
        assert_eq!(drawn, ["10", "`20", "  +30", "  `31", "40"]);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let (a, b) = (process(5, &[6, 5, 6]), process(6, &[5, 6, 5]));
        assert!(as_tree(&[&a, &b]).len() <= 2);
    }
}

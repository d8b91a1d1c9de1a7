//! What this daemon cannot see for want of rights, in words for the log and for whoever asks how it
//! is: an unprivileged one works, and its silence on the kernel's errors must not be taken for
//! health.

use probes::snapshot::Snapshot;

use super::log;

/// A source that gives nothing, or not all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unseen {
    /// What it is.
    pub(crate) source: String,
    /// Why, and what to grant.
    pub(crate) why: String,
}

/// Sources of a snapshot that gave nothing, or not all.
pub(crate) fn unseen(snapshot: &Snapshot) -> impl Iterator<Item = Unseen> + '_ {
    snapshot.self_cost.sources.iter().filter_map(|source| {
        let why = source.absent.clone()?;
        Some(Unseen { source: source.name.clone(), why })
    })
}

impl std::fmt::Display for Unseen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.source, self.why)
    }
}

/// The first snapshots of a sampler have not looked everywhere.
const SETTLED: u64 = 4;

/// Says what cannot be seen, when that changes. Counts in the reasons change all the time.
#[derive(Default)]
pub(crate) struct Sight {
    said: Vec<String>,
}

impl Sight {
    /// Looks at a snapshot.
    pub(crate) fn look(&mut self, snapshot: &Snapshot) {
        if snapshot.sequence < SETTLED {
            return;
        }
        let sources = || snapshot.self_cost.sources.iter().filter(|source| source.absent.is_some());
        if sources().map(|source| &source.name).eq(&self.said) {
            return;
        }
        for Unseen { source, why } in unseen(snapshot) {
            if !self.said.contains(&source) {
                log::warning(&format!("this daemon cannot see all: {source}\n  found: {why}"));
            }
        }
        for source in self.said.iter().filter(|name| !sources().any(|source| source.name == **name))
        {
            log::info(&format!("this daemon sees again: {source}"));
        }
        self.said = sources().map(|source| source.name.clone()).collect();
    }
}

#[cfg(test)]
mod tests {
    use probes::self_cost::{SelfCost, Source};

    use super::*;

    fn snapshot(absent: &[(&str, Option<&str>)]) -> Snapshot {
        let source = |(name, absent): &(&str, Option<&str>)| Source {
            name: (*name).into(),
            absent: absent.map(Into::into),
            ..Source::default()
        };
        let sources = absent.iter().map(source).collect();
        let self_cost = SelfCost { sources, ..SelfCost::default() };
        Snapshot { sequence: SETTLED, self_cost, ..Snapshot::default() }
    }

    #[test]
    fn only_what_gave_nothing_is_unseen() {
        let snapshot = snapshot(&[("host", None), ("kernel log", Some("no permission"))]);
        let words: Vec<String> = unseen(&snapshot).map(|unseen| unseen.to_string()).collect();
        assert_eq!(words, ["kernel log: no permission"]);
    }

    #[test]
    fn a_count_that_changes_is_no_news() {
        let mut sight = Sight::default();
        sight.look(&snapshot(&[("open device files", Some("no permission for 3 of 9"))]));
        assert_eq!(sight.said, ["open device files"]);
        sight.look(&snapshot(&[("open device files", Some("no permission for 4 of 9"))]));
        assert_eq!(sight.said, ["open device files"]);
        sight.look(&snapshot(&[]));
        assert!(sight.said.is_empty());
    }
}

//! Whether the wall clock was set, and whether the machine slept.
//!
//! Three clocks of the kernel are compared: the wall's, one that counts on while the machine sleeps,
//! and one that does not. A clock that is slewed, as time daemons do, moves too slowly to be seen.

use probes::finding::Severity;
use probes::past::{Mark, MarkKind};
use probes::units;
use rustix::time::{ClockId, clock_gettime};

/// A clock is read after the other, and between them we may have been stopped.
const NOTICED_MS: i64 = 2000;

/// The clocks at one instant, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clocks {
    pub(super) wall: i64,
    /// Counts on while the machine sleeps.
    pub(super) boot: i64,
    /// Stands still while the machine sleeps.
    pub(super) awake: i64,
}

impl Clocks {
    /// Reads them.
    pub(super) fn read() -> Self {
        let read = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
        };
        Self {
            wall: read(ClockId::Realtime),
            boot: read(ClockId::Boottime),
            awake: read(ClockId::Monotonic),
        }
    }

    /// What happened to them since `before`.
    pub(super) fn since(self, before: Self) -> Vec<Mark> {
        let mut marks = Vec::new();
        let boot = self.boot - before.boot;
        let slept = boot - (self.awake - before.awake);
        if slept >= NOTICED_MS {
            marks.push(Mark {
                at_ms: time(self.wall - slept),
                until_ms: Some(time(self.wall)),
                kind: MarkKind::Suspended,
                severity: Severity::Info,
                subject: String::new(),
                text: format!("the machine slept for {}", duration(slept)),
            });
        }
        let set = self.wall - before.wall - boot;
        if set.abs() >= NOTICED_MS {
            let way = if set > 0 { "forward" } else { "back" };
            marks.push(Mark {
                at_ms: time(self.wall),
                until_ms: None,
                kind: MarkKind::ClockSet,
                severity: Severity::Warning,
                subject: String::new(),
                text: format!("the clock was set {way} by {}", duration(set)),
            });
        }
        marks
    }
}

fn time(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or(0)
}

fn duration(ms: i64) -> String {
    units::duration(ms.unsigned_abs() / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Clocks = Clocks { wall: 1_796_127_900_000, boot: 90_000, awake: 50_000 };

    fn after(wall: i64, boot: i64, awake: i64) -> Vec<Mark> {
        let Clocks { wall: w, boot: b, awake: a } = BEFORE;
        Clocks { wall: w + wall, boot: b + boot, awake: a + awake }.since(BEFORE)
    }

    #[test]
    fn time_that_goes_by_is_nothing() {
        assert_eq!(after(60_000, 60_000, 60_000), []);
        assert_eq!(after(61_500, 60_000, 59_500), []);
    }

    #[test]
    fn a_clock_that_is_set_is_told_with_its_step() {
        let marks = after(3_600_000 + 1000, 1000, 1000);
        assert_eq!(marks.len(), 1);
        assert_eq!(marks[0].kind, MarkKind::ClockSet);
        assert_eq!(marks[0].text, "the clock was set forward by 1 h 0 m");
        assert_eq!(after(-4000, 1000, 1000)[0].text, "the clock was set back by 5 s");
    }

    #[test]
    fn a_machine_that_slept_is_told_from_when_to_when() {
        let marks = after(7_201_000, 7_201_000, 1000);
        assert_eq!(marks.len(), 1);
        assert_eq!(
            (marks[0].kind, marks[0].text.as_str()),
            (MarkKind::Suspended, "the machine slept for 2 h 0 m")
        );
        assert_eq!(marks[0].until_ms, Some(1_796_135_101_000));
        assert_eq!(marks[0].at_ms, 1_796_127_901_000);
    }

    #[test]
    fn clocks_that_are_read_twice_agree() {
        let first = Clocks::read();
        assert_eq!(Clocks::read().since(first), []);
    }
}

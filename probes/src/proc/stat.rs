//! `/proc/PID/stat`: what is read of each known process every tick.
//!
//! One line. The short name stands in brackets and may itself hold brackets, blanks, line ends and
//! bytes that are no UTF-8, so it reaches from the first `(` to the last `)`. Times are in units of
//! `USER_HZ`, which is 100 on every platform that has this driver, whatever the kernel's own rate.
//! Parsed here and not by a crate, because it runs for each GPU process every tick: this takes
//! seven fields out of fifty-two and allocates the name only.

use super::task::clean;

/// Ticks of a second in `stat`.
pub(crate) const TICKS_PER_SECOND: u64 = 100;

/// The flag of kernel threads, `PF_KTHREAD`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The fields that we use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) comm: String,
    /// One letter.
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) kernel_thread: bool,
    /// User and system time of all its threads.
    pub(crate) cpu_ticks: u64,
    pub(crate) threads: u32,
    /// After boot; with the pid this names a process for good.
    pub(crate) start_ticks: u64,
    /// Resident memory in pages.
    pub(crate) rss_pages: u64,
}

/// The line of one process; `None` for what is no such line.
pub(crate) fn parse_stat(line: &[u8]) -> Option<Stat> {
    let open = line.iter().position(|&b| b == b'(')?;
    let close = line.iter().rposition(|&b| b == b')')?;
    let comm = clean(line.get(open + 1..close)?);
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    // The first field after the name is number 3 in the manual page.
    let mut next = 3;
    let mut field = |number: usize| {
        let value = fields.nth(number.checked_sub(next)?);
        next = number + 1;
        value
    };
    let state = field(3)?.chars().next()?;
    let parent = field(4)?.parse().ok()?;
    let flags: u64 = field(9)?.parse().ok()?;
    let user: u64 = field(14)?.parse().ok()?;
    let system: u64 = field(15)?.parse().ok()?;
    let threads = field(20)?.parse().ok()?;
    let start_ticks = field(22)?.parse().ok()?;
    let rss_pages = field(24)?.parse().ok()?;
    Some(Stat {
        comm,
        state,
        parent,
        kernel_thread: flags & KERNEL_THREAD != 0,
        cpu_ticks: user.checked_add(system)?,
        threads,
        start_ticks,
        rss_pages,
    })
}

/// The wall clock at boot, in seconds since 1970, from `/proc/stat`.
pub(crate) fn parse_boot_time(stat: &[u8]) -> Option<u64> {
    let line = stat.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(b"btime "))?;
    std::str::from_utf8(line).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &[u8] = b"4711 (VLLM::EngineCor) S 4650 4650 4650 0 -1 4194560 2894561 0 812 0 \
        183245 20011 0 0 20 0 187 0 9382751 98273648640 1847563 18446744073709551615 1 1 0 0 0 0 0 \
        16781312 16384 0 0 0 17 31 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn an_engine_core_is_read() {
        let stat = parse_stat(LINE).unwrap();
        assert_eq!(stat.comm, "VLLM::EngineCor");
        assert_eq!((stat.state, stat.parent, stat.threads), ('S', 4650, 187));
        assert_eq!((stat.cpu_ticks, stat.start_ticks), (203_256, 9_382_751));
        assert_eq!(stat.rss_pages, 1_847_563);
        assert!(!stat.kernel_thread);
    }

    #[test]
    fn a_name_may_hold_brackets_line_ends_and_foreign_bytes() {
        let line =
            b"7 (a) R 1 (\xff\n\x1b[2J) D 2 0 0 0 -1 2129984 0 0 0 0 1 2 0 0 20 0 1 0 55 0 0 0";
        let stat = parse_stat(line).unwrap();
        assert_eq!(stat.comm, "a) R 1 (\u{fffd}\u{fffd}\u{fffd}[2J");
        assert_eq!((stat.state, stat.parent), ('D', 2));
        assert!(stat.kernel_thread);
    }

    #[test]
    fn the_boot_time_stands_after_the_long_interrupt_line() {
        assert_eq!(
            parse_boot_time(b"cpu 1 2\nintr 5 0 0\nctxt 9\nbtime 1790000000\n"),
            Some(1_790_000_000)
        );
        assert_eq!(parse_boot_time(b"btime never\n"), None);
    }

    proptest! {
        #[test]
        fn garbage_is_no_process(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_stat(&bytes);
            let _ = parse_boot_time(&bytes);
        }

        #[test]
        fn a_cut_line_is_read_or_refused(length in 0..LINE.len()) {
            let _ = parse_stat(&LINE[..length]);
        }
    }
}

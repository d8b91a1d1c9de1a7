//! `/proc/PID/status`: user, pinned and locked memory, the numbers in inner PID namespaces.
//!
//! A line a field, in an order and number that grows with the kernel; what is missing is absent and
//! takes nothing else with it. `Vm…` lines are missing for zombies and kernel threads, which have no
//! memory of their own any more. `VmPin` is what devices pin: RDMA, `GPUDirect`, vfio. What the NVIDIA
//! driver pins for CUDA is counted there by some versions only. The name is escaped by the kernel,
//! but may still hold bytes that are no UTF-8.

use crate::reading::{Absence, Reading};

use super::task::Task;

const LIMIT_BYTES: usize = 64 << 10;

/// The fields that we use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// Effective user number.
    pub(crate) uid: Reading<u32>,
    pub(crate) rss_bytes: Reading<u64>,
    pub(crate) pinned_bytes: Reading<u64>,
    pub(crate) locked_bytes: Reading<u64>,
    pub(crate) swap_bytes: Reading<u64>,
    pub(crate) namespace_pids: Reading<Vec<u32>>,
}

pub(crate) fn read_status(task: &Task, buffer: &mut Vec<u8>) -> Status {
    match task.read("status", LIMIT_BYTES, buffer) {
        Ok(()) => parse_status(buffer),
        Err(why) => Status {
            uid: Reading::Absent(why.clone()),
            rss_bytes: Reading::Absent(why.clone()),
            pinned_bytes: Reading::Absent(why.clone()),
            locked_bytes: Reading::Absent(why.clone()),
            swap_bytes: Reading::Absent(why.clone()),
            namespace_pids: Reading::Absent(why),
        },
    }
}

pub(crate) fn parse_status(text: &[u8]) -> Status {
    let mut status = Status {
        uid: Reading::UNSUPPORTED,
        rss_bytes: Reading::UNSUPPORTED,
        pinned_bytes: Reading::UNSUPPORTED,
        locked_bytes: Reading::UNSUPPORTED,
        swap_bytes: Reading::UNSUPPORTED,
        namespace_pids: Reading::UNSUPPORTED,
    };
    for line in text.split(|&b| b == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        let Some((name, value)) = line.split_once(':') else { continue };
        match name {
            "Uid" => status.uid = parse_number(value.split_ascii_whitespace().nth(1)),
            "VmRSS" => status.rss_bytes = parse_kilobytes(value),
            "VmPin" => status.pinned_bytes = parse_kilobytes(value),
            "VmLck" => status.locked_bytes = parse_kilobytes(value),
            "VmSwap" => status.swap_bytes = parse_kilobytes(value),
            "NSpid" => status.namespace_pids = parse_list(value),
            _ => {}
        }
    }
    status
}

fn parse_number<T: std::str::FromStr>(text: Option<&str>) -> Reading<T> {
    text.and_then(|text| text.parse().ok()).map_or_else(not_a_number, Reading::Value)
}

/// The kernel writes `kB` and means KiB.
fn parse_kilobytes(value: &str) -> Reading<u64> {
    let number = value.trim().strip_suffix("kB").map(str::trim_end);
    parse_number::<u64>(number).and_then(|kib| {
        kib.checked_mul(1024).map_or(Reading::Absent(Absence::OutOfRange), Reading::Value)
    })
}

fn parse_list(value: &str) -> Reading<Vec<u32>> {
    let numbers: Result<Vec<u32>, _> = value.split_ascii_whitespace().map(str::parse).collect();
    match numbers {
        Ok(numbers) if !numbers.is_empty() => numbers.into(),
        _ => not_a_number(),
    }
}

fn not_a_number<T>() -> Reading<T> {
    Reading::Absent(Absence::Failed { what: "a field of its status is not a number".into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] = b"Name:\tVLLM::Worker_TP\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t4711\n\
        Pid:\t4711\nPPid:\t4650\nUid:\t1001\t0\t1001\t1001\nGid:\t0\t0\t0\t0\nNSpid:\t4711\t73\n\
        VmLck:\t      64 kB\nVmPin:\t 2097152 kB\nVmRSS:\t 9437184 kB\nVmSwap:\t       0 kB\nThreads:\t187\n";

    #[test]
    fn a_worker_in_a_container_is_read() {
        let status = parse_status(TEXT);
        assert_eq!(status.uid, 0.into());
        assert_eq!(status.rss_bytes, (9_437_184 * 1024).into());
        assert_eq!(status.pinned_bytes, (2 << 30).into());
        assert_eq!(status.locked_bytes, (64 << 10).into());
        assert_eq!(status.swap_bytes, 0.into());
        assert_eq!(status.namespace_pids, vec![4711, 73].into());
    }

    #[test]
    fn a_zombie_has_no_memory_lines_and_no_zeros() {
        let status =
            parse_status(b"Name:\t\xff\xfe\nState:\tZ (zombie)\nUid:\t5\t5\t5\t5\nNSpid:\t9\n");
        assert_eq!(status.uid, 5.into());
        assert_eq!(status.rss_bytes, Reading::UNSUPPORTED);
        assert_eq!(status.pinned_bytes, Reading::UNSUPPORTED);
    }

    #[test]
    fn a_figure_that_is_none_is_said_to_be_none() {
        let status = parse_status(b"Uid:\tx\ty\nVmRSS:\t99999999999999999999 kB\nVmPin:\t18446744073709551615 kB\nNSpid:\t\n");
        assert!(matches!(status.uid.absence(), Some(Absence::Failed { .. })));
        assert!(matches!(status.rss_bytes.absence(), Some(Absence::Failed { .. })));
        assert_eq!(status.pinned_bytes.absence(), Some(&Absence::OutOfRange));
        assert!(status.namespace_pids.value().is_none());
    }

    proptest! {
        #[test]
        fn garbage_has_no_fields(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_status(&bytes);
        }
    }
}

//! What this process itself costs.

use probes::reading::Reading;

/// User and system time of this process, in seconds; asked of its own clock, which costs nothing.
pub(crate) fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Resident memory and threads of this process, whatever roots the machine has.
pub(crate) fn memory() -> (Reading<u64>, Reading<u32>) {
    let status: Reading<String> = std::fs::read_to_string("/proc/self/status").into();
    let field = |name: &str| -> Reading<u64> {
        status.as_ref().and_then(|text| {
            let value = text.lines().find_map(|line| line.strip_prefix(name));
            let number = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
            number.map_or(Reading::UNSUPPORTED, Reading::Value)
        })
    };
    let threads = field("Threads:").map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    (field("VmRSS:").map(|kib| kib * 1024), threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_own_size() {
        let (rss, threads) = memory();
        assert!(rss.get().is_some_and(|bytes| bytes > 1 << 20));
        assert!(threads.get().is_some_and(|threads| threads >= 1));
    }
}

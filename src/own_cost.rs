//! What this process itself costs.

use probes::reading::{Absence, Reading};

/// User and system time of this process, in seconds; asked of its own clock, which costs nothing.
pub(crate) fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Resident memory and threads of this process, whatever roots the machine has.
pub(crate) fn memory() -> (Reading<u64>, Reading<u32>) {
    match procfs::process::Process::myself().and_then(|own| own.status()) {
        Ok(status) => {
            let kib = status.vmrss.map_or(Reading::UNSUPPORTED, Reading::Value);
            let threads = u32::try_from(status.threads).unwrap_or(u32::MAX);
            (kib.map(|kib| kib.saturating_mul(1024)), threads.into())
        }
        Err(error) => {
            let why = Absence::Failed { what: error.to_string() };
            (Reading::Absent(why.clone()), Reading::Absent(why))
        }
    }
}

/// Resident memory of this process with shared pages counted in parts. The kernel walks all pages
/// for it, so it takes longer than the rest.
pub(crate) fn pss_bytes() -> Reading<u64> {
    let sums = procfs::process::Process::myself().and_then(|own| own.smaps_rollup());
    match sums {
        Ok(sums) => {
            let pss = sums
                .memory_map_rollup
                .into_iter()
                .find_map(|map| map.extension.map.get("Pss").copied());
            pss.map_or(Reading::UNSUPPORTED, Reading::Value)
        }
        Err(error) => Reading::Absent(Absence::Failed { what: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_own_size() {
        let (rss, threads) = memory();
        assert!(rss.get().is_some_and(|bytes| bytes > 1 << 20));
        assert!(threads.get().is_some_and(|threads| threads >= 1));
        assert!(
            pss_bytes().get().is_some_and(|pss| pss > 1 << 20 && pss <= rss.get().unwrap() * 2)
        );
    }
}

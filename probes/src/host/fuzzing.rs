//! The parsers of the box's files on any bytes, and what must hold.

use super::{cpu, memory, namespace, numa, probe};

/// CPU times, load, memory, NUMA nodes, huge pages, CPU lists, mounts, os-release.
pub(crate) fn host_files(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (first, second) = text.split_once("\n\n").unwrap_or((&text, &text));
    let times = (cpu::parse_cpu_times(first), cpu::parse_cpu_times(second));
    if let (Some(before), Some(now)) = times
        && let Some((busy, waiting)) = cpu::shares(before, now)
    {
        assert!((0.0..=1.0).contains(&busy) && (0.0..=1.0).contains(&waiting));
    }
    let _ = cpu::parse_load(&text);
    let _ = cpu::parse_cpu_list(&text);
    let _ = cpu::parse_cpu_model(&text);
    let _ = memory::parse_meminfo(&text);
    let _ = memory::parse_hugepage_size(&text);
    let _ = memory::parse_bracketed(&text);
    let _ = numa::parse_node_meminfo(&text);
    assert!(numa::parse_node_list(&text).len() <= 4096);
    let _ = numa::parse_numa_status(&text);
    let _ = namespace::parse_hidepid(&text, "/proc");
    let _ = namespace::is_wsl_kernel(&text);
    let _ = probe::parse_os_release(&text);
}

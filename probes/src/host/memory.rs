//! Main memory, swap, huge pages and `/dev/shm`.

use std::os::linux::fs::MetadataExt as _;

use crate::machine::{Machine, read_line, read_text};
use crate::reading::{Absence, Reading};

/// What we take from `meminfo`; each line may be missing by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Meminfo {
    pub(super) total: Reading<u64>,
    pub(super) available: Reading<u64>,
    pub(super) cached: Reading<u64>,
    pub(super) shared: Reading<u64>,
    pub(super) swap_total: Reading<u64>,
    pub(super) swap_free: Reading<u64>,
}

impl Meminfo {
    fn all_absent(absence: &Absence) -> Self {
        let absent = || Reading::Absent(absence.clone());
        Self {
            total: absent(),
            available: absent(),
            cached: absent(),
            shared: absent(),
            swap_total: absent(),
            swap_free: absent(),
        }
    }
}

pub(super) fn read_meminfo(machine: &Machine) -> Meminfo {
    match read_text(&machine.proc("meminfo")) {
        Ok(text) => parse_meminfo(&text),
        Err(error) => Meminfo::all_absent(&Absence::from_io(&error)),
    }
}

pub(super) fn parse_meminfo(text: &str) -> Meminfo {
    let mut meminfo = Meminfo::all_absent(&Absence::Unsupported);
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let field = match name {
            "MemTotal" => &mut meminfo.total,
            "MemAvailable" => &mut meminfo.available,
            "Cached" => &mut meminfo.cached,
            "Shmem" => &mut meminfo.shared,
            "SwapTotal" => &mut meminfo.swap_total,
            "SwapFree" => &mut meminfo.swap_free,
            _ => continue,
        };
        *field =
            parse_kib(value).map_or_else(|| Reading::Absent(not_understood(line)), Reading::Value);
    }
    meminfo
}

/// `24684084 kB` in bytes; the kernel's kB are 1024 bytes.
pub(super) fn parse_kib(text: &str) -> Option<u64> {
    let number = text.trim().strip_suffix("kB")?.trim_end();
    number.parse::<u64>().ok()?.checked_mul(1024)
}

fn not_understood(line: &str) -> Absence {
    let line: String = line.chars().take(60).collect();
    Absence::Failed { what: format!("line of meminfo not understood: {line:?}") }
}

/// Huge pages of all sizes: reserved and free bytes.
pub(super) fn read_hugepages(machine: &Machine) -> Result<(u64, u64), Absence> {
    let folder = std::fs::read_dir(machine.sys("kernel/mm/hugepages"))
        .map_err(|error| Absence::from_io(&error))?;
    let (mut total, mut free) = (0_u64, 0_u64);
    for entry in folder.flatten() {
        let name = entry.file_name();
        let Some(size) = name.to_str().and_then(parse_hugepage_size) else { continue };
        let count = |file: &str| {
            let path = entry.path().join(file);
            let text = read_line(&path).map_err(|error| Absence::from_io(&error))?;
            text.parse::<u64>().map_err(|error| Absence::Failed {
                what: format!("{}: {text:?}: {error}", path.display()),
            })
        };
        total = total.saturating_add(count("nr_hugepages")?.saturating_mul(size));
        free = free.saturating_add(count("free_hugepages")?.saturating_mul(size));
    }
    Ok((total, free))
}

/// `hugepages-2048kB` in bytes.
pub(super) fn parse_hugepage_size(folder: &str) -> Option<u64> {
    parse_kib(folder.strip_prefix("hugepages-")?)
}

/// The mode in brackets: `always [madvise] never`.
pub(super) fn parse_bracketed(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(mode, _)| mode)
}

/// Size and use of `/dev/shm`. Only of a mount: a plain folder there would show the size of the
/// file system below it.
pub(super) fn read_shm(machine: &Machine) -> Result<(u64, u64), Absence> {
    let path = machine.device("shm");
    let device_of = |path: &std::path::Path| std::fs::metadata(path).map(|meta| meta.st_dev());
    let shm = device_of(&path).map_err(|error| Absence::from_io(&error))?;
    let parent = device_of(&machine.device("")).map_err(|error| Absence::from_io(&error))?;
    if shm == parent {
        return Err(Absence::Unsupported);
    }
    let stat = rustix::fs::statvfs(&path).map_err(|error| Absence::from_io(&error.into()))?;
    let total = stat.f_blocks.saturating_mul(stat.f_frsize);
    Ok((total, total.saturating_sub(stat.f_bfree.saturating_mul(stat.f_frsize))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tree::FakeTree;

    #[test]
    fn each_line_of_meminfo_stands_alone() {
        let meminfo = parse_meminfo(
            "MemTotal:       24684084 kB\n\nCached:  lots\nOdd line\nHugePages_Total:       0\nSwapTotal:             0 kB\n",
        );
        assert_eq!(meminfo.total, (24_684_084 * 1024).into());
        assert_eq!(meminfo.swap_total, 0.into());
        assert_eq!(meminfo.available, Reading::UNSUPPORTED);
        assert!(matches!(meminfo.cached.absence(), Some(Absence::Failed { .. })));
    }

    #[test]
    fn huge_pages_of_all_sizes_are_added() {
        let tree = FakeTree::new(&[
            ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512\n"),
            ("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0\n"),
            ("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "2\n"),
            ("sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "1\n"),
        ]);
        assert_eq!(read_hugepages(&tree.machine), Ok((3 << 30, 1 << 30)));
        let none = FakeTree::new(&[]);
        assert_eq!(read_hugepages(&none.machine), Err(Absence::Unsupported));
    }

    #[test]
    fn a_plain_folder_is_not_taken_for_shared_memory() {
        let tree = FakeTree::new(&[("dev/shm/file", "")]);
        assert_eq!(read_shm(&tree.machine), Err(Absence::Unsupported));
    }

    #[test]
    fn the_mode_in_force_is_the_one_in_brackets() {
        assert_eq!(parse_bracketed("always [madvise] never\n"), Some("madvise"));
        assert_eq!(parse_bracketed("always"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_in_stride(text in "(MemTotal:)?(.|\n){0,80}") {
            parse_meminfo(&text);
            parse_hugepage_size(&text);
            parse_bracketed(&text);
        }
    }
}

//! Where the driver's library is, and which version lies there.
//!
//! The loader's search comes first, because it is what the next process will get. Containers of the
//! GPU operator, GKE, NixOS and WSL keep it where no loader looks by itself. A file that is empty
//! or a link to nothing is passed over: images that carry leftovers of a driver have such.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path, PathBuf};

use super::files::is_version;
use crate::machine::Machine;
use crate::reading::{Absence, Reading};

/// The name that programs ask the loader for.
const NAME: &str = "libnvidia-ml.so.1";

const FOLDERS: &[&str] = &[
    #[cfg(target_arch = "x86_64")]
    "usr/lib/x86_64-linux-gnu",
    #[cfg(target_arch = "aarch64")]
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "usr/lib/wsl/lib",
    "usr/local/nvidia/lib64",
    "usr/local/nvidia/lib",
    #[cfg(target_arch = "x86_64")]
    "run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    #[cfg(target_arch = "aarch64")]
    "run/nvidia/driver/usr/lib/aarch64-linux-gnu",
    "run/nvidia/driver/usr/lib64",
    "home/kubernetes/bin/nvidia/lib64",
    "run/opengl-driver/lib",
];

/// The library as it lies on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Where it was looked for.
    pub path: PathBuf,
    /// The file, with symbolic links followed.
    pub real_path: PathBuf,
    /// Version in the file's name, where it carries one.
    pub version_in_name: Option<String>,
}

/// What to try, in order. A library that was asked for is the only one: to load another instead
/// would show figures of something else. The last entry, a plain name, is the loader's own search.
pub fn library_candidates(machine: &Machine) -> Vec<PathBuf> {
    if let Some(path) = &machine.nvml_library {
        return vec![path.clone()];
    }
    let mut candidates: Vec<PathBuf> = loader_folders(machine)
        .into_iter()
        .chain(FOLDERS.iter().map(|folder| machine.root(folder)))
        .map(|folder| folder.join(NAME))
        .collect();
    candidates.push(NAME.into());
    candidates
}

/// The first candidate that is a usable file.
pub fn find_library(machine: &Machine) -> Option<Found> {
    read_library(machine).ok()
}

/// Every place whose change can mean another library: the candidates, whether or not they exist, and
/// what the links on the way to the one in use are called.
pub fn library_places(machine: &Machine) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> =
        library_candidates(machine).into_iter().filter(|path| path.is_absolute()).collect();
    if let Some(found) = find_library(machine) {
        let mut path = found.path;
        for _ in 0..MOST_LINKS {
            let Some(next) = next_link(machine, &path) else { break };
            places.push(next.clone());
            path = next;
        }
    }
    places
}

/// The first usable candidate, or why the first one that exists is not.
pub(super) fn read_library(machine: &Machine) -> Result<Found, Absence> {
    let mut reason = None;
    for path in library_candidates(machine) {
        if path.components().count() == 1 && machine.nvml_library.is_none() {
            // The plain name: where the loader looks besides the folders above cannot be told.
            continue;
        }
        if std::fs::symlink_metadata(&path).is_err() {
            continue;
        }
        let Some(real_path) = follow_links(machine, &path) else { continue };
        match check_file(&real_path) {
            Ok(()) => {
                let version_in_name = version_in_name(&real_path);
                return Ok(Found { path, real_path, version_in_name });
            }
            Err(what) => {
                reason.get_or_insert(Absence::Failed {
                    what: if path == real_path {
                        format!("{} {what}", path.display())
                    } else {
                        format!(
                            "{} points to {}, which {what}",
                            path.display(),
                            real_path.display()
                        )
                    },
                });
            }
        }
    }
    Err(reason.unwrap_or(Absence::Unsupported))
}

pub(super) fn as_readings(found: Result<Found, Absence>) -> (Reading<String>, Reading<String>) {
    match found {
        Ok(found) => (
            found.real_path.to_string_lossy().into_owned().into(),
            found.version_in_name.map_or(Reading::Absent(Absence::NoData), Reading::Value),
        ),
        Err(absence) => (Reading::Absent(absence.clone()), Reading::Absent(absence)),
    }
}

/// Folders that the loader was told to search, which hold for ourselves and our own root only.
fn loader_folders(machine: &Machine) -> Vec<PathBuf> {
    if machine.rootfs != Path::new("/") {
        return Vec::new();
    }
    let folders = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    std::env::split_paths(&folders).filter(|folder| folder.is_absolute()).collect()
}

/// Follows links as they would be followed inside the machine's root.
fn follow_links(machine: &Machine, path: &Path) -> Option<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match next_link(machine, &path) {
            Some(next) => path = next,
            None => return Some(path),
        }
    }
    None
}

/// Links in a row; more are a circle.
const MOST_LINKS: usize = 8;

/// Where a link points to; `None` for what is no link.
fn next_link(machine: &Machine, path: &Path) -> Option<PathBuf> {
    let target = std::fs::read_link(path).ok()?;
    if target.is_absolute() {
        return Some(machine.root(target));
    }
    Some(tidy(&path.parent()?.join(target)))
}

/// Takes `..` out of a path, for people to read.
fn tidy(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

fn check_file(path: &Path) -> Result<(), String> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err("does not exist".into());
        }
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    if !metadata.is_file() {
        return Err("is no file".into());
    }
    if metadata.len() == 0 {
        return Err("is empty".into());
    }
    let mut head = [0; 5];
    let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut head));
    match read {
        Err(error) => Err(format!("cannot be read: {error}")),
        // The fifth byte of a program file tells 32 from 64 bits; /usr/lib holds either.
        Ok(5) if head.starts_with(b"\x7fELF") && head[4] == 1 => Err("is a 32-bit library".into()),
        Ok(_) => Ok(()),
    }
}

/// The size of one entry of a 64-bit program file's table of parts.
const PART_BYTES: u64 = 56;

/// Why loading the file would end this process: it is shorter than the parts that it says it has.
/// The loader maps such a file without complaint, and the first touch beyond its end is SIGBUS. A
/// package that is being unpacked, or a full disk, leaves one.
pub(crate) fn cut_off(path: &Path) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut head = [0; 64];
    file.read_exact(&mut head).ok()?;
    // 64 bits, little end first; anything else the loader refuses by itself.
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let short = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let (table, size, count) = (word(&head, 32)?, short(54), short(56));
    if size != PART_BYTES {
        return None;
    }
    let mut parts = vec![0; usize::try_from(size * count).ok()?];
    let read = file.seek(SeekFrom::Start(table)).and_then(|_| file.read_exact(&mut parts));
    let end = match read {
        Ok(()) => parts
            .chunks_exact(usize::try_from(size).ok()?)
            .filter_map(|part| word(part, 8)?.checked_add(word(part, 32)?))
            .max()?,
        Err(_) => table.saturating_add(size * count),
    };
    (end > length).then(|| format!("{} is cut off: {length} of {end} bytes", path.display()))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// `590.48.01` of `libnvidia-ml.so.590.48.01`.
fn version_in_name(path: &Path) -> Option<String> {
    let version = path.file_name()?.to_str()?.strip_prefix("libnvidia-ml.so.")?;
    is_version(version).then(|| version.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tree::FakeTree;

    #[test]
    fn a_file_that_is_shorter_than_its_parts_is_cut_off_and_a_whole_one_is_not() {
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let tree = FakeTree::new(&[("notes", "no library\n")]);
        // Debug information, which no part is loaded from, may be most of the file.
        for kept in [64, 4096, 1 << 16] {
            tree.write("cut.so", &whole[..kept]);
            assert!(cut_off(&tree.path("cut.so")).unwrap().contains("cut off"), "{kept}");
        }
        assert_eq!(cut_off(&std::env::current_exe().unwrap()), None);
        for other in ["notes", "missing"] {
            assert_eq!(cut_off(&tree.path(other)), None);
        }
    }

    #[test]
    fn the_version_is_in_the_name_of_the_real_file() {
        let tree = FakeTree::new(&[("usr/lib64/libnvidia-ml.so.590.48.01", "\x7fELF\x02")]);
        tree.link("usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.590.48.01");
        let found = find_library(&tree.machine).unwrap();
        assert_eq!(found.path, tree.path("usr/lib64/libnvidia-ml.so.1"));
        assert_eq!(found.real_path, tree.path("usr/lib64/libnvidia-ml.so.590.48.01"));
        assert_eq!(found.version_in_name.as_deref(), Some("590.48.01"));
    }

    #[test]
    fn an_absolute_link_stays_inside_the_root() {
        let tree = FakeTree::new(&[("opt/nvidia/libnvidia-ml.so.580.95.05", "\x7fELF\x02")]);
        tree.link("usr/lib64/libnvidia-ml.so.1", "/opt/nvidia/libnvidia-ml.so.580.95.05");
        assert_eq!(find_library(&tree.machine).unwrap().version_in_name.unwrap(), "580.95.05");
    }

    #[test]
    fn leftovers_are_passed_over_and_named_when_there_is_nothing_else() {
        let tree = FakeTree::new(&[("usr/lib/libnvidia-ml.so.1", "\x7fELF\x01")]);
        tree.link("usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.570.86.15");
        let what = read_library(&tree.machine).unwrap_err().to_string();
        let what = what.replace(&tree.path("").to_string_lossy().into_owned(), "/");
        assert_eq!(
            what,
            "/usr/lib64/libnvidia-ml.so.1 points to /usr/lib64/libnvidia-ml.so.570.86.15, which does not exist"
        );
        tree.write("usr/local/nvidia/lib64/libnvidia-ml.so.1", b"\x7fELF\x02");
        let found = find_library(&tree.machine).unwrap();
        assert_eq!(found.real_path, tree.path("usr/local/nvidia/lib64/libnvidia-ml.so.1"));
        assert_eq!(found.version_in_name, None);
    }

    #[test]
    fn every_link_on_the_way_to_the_library_is_a_place_to_watch() {
        let tree =
            FakeTree::new(&[("usr/lib/nvidia/current/libnvidia-ml.so.590.48.01", "\x7fELF\x02")]);
        tree.link("usr/lib64/libnvidia-ml.so.1", "/etc/alternatives/glx--libnvidia-ml.so.1");
        tree.link(
            "etc/alternatives/glx--libnvidia-ml.so.1",
            "/usr/lib/nvidia/current/libnvidia-ml.so.590.48.01",
        );
        let places = library_places(&tree.machine);
        for place in [
            "usr/lib64/libnvidia-ml.so.1",
            "usr/local/nvidia/lib64/libnvidia-ml.so.1",
            "etc/alternatives/glx--libnvidia-ml.so.1",
            "usr/lib/nvidia/current/libnvidia-ml.so.590.48.01",
        ] {
            assert!(places.contains(&tree.path(place)), "{place} not in {places:?}");
        }
    }

    #[test]
    fn a_library_that_was_asked_for_is_the_only_one_tried() {
        let tree = FakeTree::new(&[("usr/lib64/libnvidia-ml.so.1", "\x7fELF\x02")]);
        let machine = Machine {
            nvml_library: Some(tree.path("other/libnvidia-ml.so.1")),
            ..tree.machine.clone()
        };
        assert_eq!(library_candidates(&machine), [tree.path("other/libnvidia-ml.so.1")]);
        assert_eq!(find_library(&machine), None);
    }

    #[test]
    fn the_loaders_own_search_comes_last() {
        let tree = FakeTree::new(&[]);
        let candidates = library_candidates(&tree.machine);
        assert_eq!(candidates.last().unwrap(), Path::new(NAME));
    }

    #[test]
    fn links_in_a_circle_end() {
        let tree = FakeTree::new(&[]);
        tree.link("usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.2");
        tree.link("usr/lib64/libnvidia-ml.so.2", "libnvidia-ml.so.1");
        assert_eq!(find_library(&tree.machine), None);
    }
}

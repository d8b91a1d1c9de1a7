//! The files of procfs and of one process in it.
//!
//! A process is opened once, as a descriptor of its folder, and its files are opened below that:
//! when the process ends and its number goes to another one, the descriptor answers "no such
//! process" instead of mixing two processes into one. The parsers of the `procfs` crate are not used
//! for processes: one line that they do not know, or one name that is no UTF-8, loses the whole file,
//! short addresses in `net/tcp` make them panic, and mappings are held as a list.

use std::fmt::Write as _;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use crate::machine::Machine;
use crate::reading::Absence;

/// Enough for every file that is not a list; a page is what the kernel prepares at once.
const CHUNK_BYTES: usize = 4096;

/// Files of a process that are read as far as this are one record: the kernel writes them at once.
const ONE_RECORD_BYTES: usize = 64 << 10;

/// The root of procfs, kept open so that paths stay short and nothing is allocated to open a file.
#[derive(Debug)]
pub(crate) struct ProcRoot {
    dir: OwnedFd,
}

/// One process; see the module's comment.
#[derive(Debug)]
pub(crate) struct Task {
    dir: OwnedFd,
}

impl ProcRoot {
    pub(crate) fn open(machine: &Machine) -> Result<Self, Absence> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&machine.procfs, flags, Mode::empty()).map_err(absence)?;
        Ok(Self { dir })
    }

    /// The folder itself, for listing; the file position is its own.
    pub(crate) fn list(&self) -> Result<OwnedFd, Absence> {
        folder(&self.dir, ".")
    }

    pub(crate) fn task(&self, pid: u32) -> Result<Task, Absence> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = openat(&self.dir, Name::new(pid, "").as_str(), flags, Mode::empty());
        // A process that is not there is gone; only its files can be unsupported.
        dir.map(|dir| Task { dir }).map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR => Absence::Gone,
            other => absence(other),
        })
    }

    /// `PID/stat` kept open: reading it again costs half of opening it again. Such a file stays with
    /// its process, and answers "no such process" when that has ended and another has its number.
    pub(crate) fn open_stat(&self, pid: u32) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        openat(&self.dir, Name::new(pid, "/stat").as_str(), flags, Mode::empty()).ok()
    }

    /// `PID/stat` in one open, for the part that is read every tick.
    pub(crate) fn read_stat(&self, pid: u32, into: &mut Vec<u8>) -> Result<(), Absence> {
        let name = Name::new(pid, "/stat");
        match read_at(&self.dir, name.as_str(), CHUNK_BYTES, into) {
            Err(Errno::NOENT | Errno::SRCH) => Err(Absence::Gone),
            Err(errno) => Err(absence(errno)),
            Ok(()) => Ok(()),
        }
    }

    /// The descriptors of a process, for listing.
    pub(crate) fn descriptors(&self, pid: u32) -> Result<OwnedFd, Errno> {
        openat(&self.dir, Name::new(pid, "/fd").as_str(), FOLDER, Mode::empty())
    }

    /// A file of procfs itself, such as `stat`, cut at `limit` bytes.
    pub(crate) fn read(&self, name: &str, limit: usize, into: &mut Vec<u8>) -> Result<(), Absence> {
        read_at(&self.dir, name, limit, into).map_err(absence)
    }

    /// What a link of procfs points to.
    pub(crate) fn link(&self, name: &str) -> Result<String, Absence> {
        link(&self.dir, name)
    }
}

impl Task {
    /// One of its files, cut at `limit` bytes.
    pub(crate) fn read(&self, name: &str, limit: usize, into: &mut Vec<u8>) -> Result<(), Absence> {
        read_at(&self.dir, name, limit, into).map_err(|errno| self.absence(errno))
    }

    /// One of its files, for those that are read as a stream.
    pub(crate) fn open_file(&self, name: &str) -> Result<File, Absence> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(&self.dir, name, flags, Mode::empty());
        file.map(File::from).map_err(|errno| self.absence(errno))
    }

    /// One of its folders, for listing.
    pub(crate) fn open_folder(&self, name: &str) -> Result<OwnedFd, Absence> {
        openat(&self.dir, name, FOLDER, Mode::empty()).map_err(|errno| self.absence(errno))
    }

    /// How many descriptors it has, from Linux 6.2 on; before that and elsewhere 0.
    pub(crate) fn descriptor_count(&self) -> u64 {
        let stat = rustix::fs::statat(&self.dir, "fd", rustix::fs::AtFlags::empty());
        stat.ok().and_then(|stat| u64::try_from(stat.st_size).ok()).unwrap_or(0)
    }

    /// What one of its links points to.
    pub(crate) fn link(&self, name: &str) -> Result<String, Absence> {
        link(&self.dir, name)
    }

    /// A missing file means that this kernel has none, unless the process is gone altogether.
    fn absence(&self, errno: Errno) -> Absence {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match errno {
            Errno::NOENT if openat(&self.dir, "stat", flags, Mode::empty()).is_err() => {
                Absence::Gone
            }
            other => absence(other),
        }
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn folder(at: &OwnedFd, name: &str) -> Result<OwnedFd, Absence> {
    openat(at, name, FOLDER, Mode::empty()).map_err(absence)
}

fn link(at: &OwnedFd, name: &str) -> Result<String, Absence> {
    let target = rustix::fs::readlinkat(at, name, Vec::new()).map_err(absence)?;
    Ok(target.to_string_lossy().into_owned())
}

/// Reads a file of [`ProcRoot::open_stat`] once more; false if its process is gone.
pub(crate) fn reread(file: &OwnedFd, into: &mut Vec<u8>) -> bool {
    into.clear();
    into.reserve(CHUNK_BYTES);
    rustix::io::pread(file, rustix::buffer::spare_capacity(into), 0).is_ok_and(|length| length > 0)
}

/// A reason from an error number.
pub(crate) fn absence(errno: Errno) -> Absence {
    Absence::from_io(&errno.into())
}

/// A whole file below a host path, as far as `limit`.
pub(crate) fn read_path(path: &Path, limit: usize, into: &mut Vec<u8>) -> Result<(), Absence> {
    read_at(rustix::fs::CWD, path, limit, into).map_err(absence)
}

/// Files of procfs have no size, and a read may stop at a record's end: read until nothing comes.
fn read_at(
    at: impl std::os::fd::AsFd,
    name: impl rustix::path::Arg,
    limit: usize,
    into: &mut Vec<u8>,
) -> Result<(), Errno> {
    into.clear();
    let file = openat(at, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    while into.len() < limit {
        into.reserve(CHUNK_BYTES.min(limit - into.len()));
        let before = into.len();
        let got = match rustix::io::read(&file, rustix::buffer::spare_capacity(into)) {
            Err(Errno::INTR) => continue,
            other => other?,
        };
        // A file of one record ends with a read that leaves room; this saves it the second call.
        if got == 0 || (before == 0 && got < CHUNK_BYTES / 2 && limit <= ONE_RECORD_BYTES) {
            break;
        }
    }
    into.truncate(limit);
    Ok(())
}

/// `PID/…` without an allocation.
struct Name {
    text: [u8; 24],
    length: usize,
}

impl Name {
    fn new(pid: u32, file: &str) -> Self {
        let mut name = Self { text: [0; 24], length: 0 };
        // Ten digits and the longest of our names fit.
        let _ = write!(name, "{pid}{file}");
        name
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[..self.length]).unwrap_or_default()
    }
}

impl std::fmt::Write for Name {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        let room = self.text.get_mut(self.length..end).ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// Text from the outside, for a terminal: bytes that are no UTF-8 become U+FFFD, and so do control
/// characters, with which a process could otherwise write on the screen of whoever looks at it, and
/// characters that turn the direction of writing or cannot be seen, with which it could look like
/// another one where somebody is about to end it.
pub(crate) fn clean(bytes: &[u8]) -> String {
    // Nearly all are plain; short names come here for each process at every tick.
    let is_plain = bytes.iter().all(|b| matches!(b, b' '..=b'~'));
    let text = String::from_utf8_lossy(bytes);
    if is_plain {
        return text.into_owned();
    }
    let plain = |c| if deceives(c) { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(plain).collect()
}

fn deceives(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Fake, FakeBox};
    use super::*;

    #[test]
    fn a_process_that_ends_while_it_is_read_is_gone_and_a_missing_file_unsupported() {
        let fake = FakeBox::new();
        fake.process(&Fake::default());
        let root = ProcRoot::open(&fake.machine()).unwrap();
        let task = root.task(100).unwrap();
        let mut buffer = Vec::new();
        task.read("status", 4096, &mut buffer).unwrap();
        assert_eq!(task.read("loginuid", 4096, &mut buffer), Err(Absence::Unsupported));
        fake.remove("proc/100");
        // Another one with its number is not mistaken for it.
        fake.process(&Fake { start: 9_000, ..Fake::default() });
        assert_eq!(task.read("status", 4096, &mut buffer), Err(Absence::Gone));
        assert_eq!(task.open_folder("fd").err(), Some(Absence::Gone));
        assert_eq!(root.task(101).err(), Some(Absence::Gone));
    }

    #[test]
    fn a_file_is_read_whole_or_cut_at_its_limit() {
        let fake = FakeBox::new();
        fake.put("proc/long", &vec![b'x'; 100_000]);
        let root = ProcRoot::open(&fake.machine()).unwrap();
        let mut buffer = Vec::new();
        root.read("long", 1 << 20, &mut buffer).unwrap();
        assert_eq!(buffer.len(), 100_000);
        root.read("long", 5_000, &mut buffer).unwrap();
        assert_eq!(buffer.len(), 5_000);
    }

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(clean(b"a\x1b[2J\n\xff\x07"), "a\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}");
    }
}

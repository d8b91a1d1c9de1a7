//! One daemon a state folder, and one sampler of it: locks that the kernel gives back however a
//! process ends, and not before the last thread of it is gone.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// In the state folder; its text is the number of the process that has it.
const DAEMON: &str = "daemon.lock";
const SAMPLER: &str = "sampler.lock";

/// Held while this lives.
pub(crate) struct Lock {
    _file: File,
}

/// What came of asking for it.
pub(crate) enum Asked {
    Taken(Lock),
    /// Another process has it: its number, where it can be read.
    Held(Option<u32>),
    /// The folder takes no lock.
    Impossible(std::io::Error),
}

/// Asks for the lock of a state folder, which is made if there is none.
pub(crate) fn take(folder: &Path) -> Asked {
    // What is remembered tells of command lines and users.
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o750).create(folder);
    match made {
        Ok(()) => Lock::of(&folder.join(DAEMON)),
        Err(error) => Asked::Impossible(error),
    }
}

/// The file that the samplers of a state folder lock.
pub(crate) fn of_sampler(folder: &Path) -> PathBuf {
    folder.join(SAMPLER)
}

impl Lock {
    /// Asks for the lock of a file, which is made if there is none.
    pub(crate) fn of(path: &Path) -> Asked {
        match open(path) {
            Ok((file, writable)) => lock(file, writable),
            Err(error) => Asked::Impossible(error),
        }
    }
}

/// Somebody that has a lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The number that stands in the file, where it can be read.
    pub(crate) pid: Option<u32>,
}

/// A look at a lock that others take.
pub(crate) struct Peek {
    file: File,
}

impl Peek {
    /// Opens the file; none where there is no folder to write in.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        open(path).ok().map(|(file, _)| Self { file })
    }

    /// Who has it, if anybody.
    pub(crate) fn holder(&self) -> Option<Holder> {
        match self.file.try_lock() {
            Err(TryLockError::WouldBlock) => Some(Holder { pid: number_in(&self.file) }),
            Ok(()) => {
                let _ = self.file.unlock();
                None
            }
            Err(TryLockError::Error(_)) => None,
        }
    }
}

fn number_in(file: &File) -> Option<u32> {
    let mut text = [0; 32];
    let length = file.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..length]).ok()?.trim().parse().ok()
}

/// Opened for writing, or for reading where the folder cannot be written.
fn open(path: &Path) -> std::io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o640);
    match options.open(path) {
        Ok(file) => Ok((file, true)),
        Err(error) => match File::open(path) {
            Ok(file) => Ok((file, false)),
            Err(_) => Err(error),
        },
    }
}

fn lock(mut file: File, writable: bool) -> Asked {
    match file.try_lock() {
        Ok(()) => {
            if writable {
                // Who has it is told to people only; the lock holds without.
                let _ = file.set_len(0);
                let _ = file.rewind();
                let _ = writeln!(file, "{}", std::process::id());
            }
            Asked::Taken(Lock { _file: file })
        }
        Err(TryLockError::WouldBlock) => Asked::Held(number_in(&file)),
        Err(TryLockError::Error(error)) => Asked::Impossible(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_is_told_who_has_it_until_the_first_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("state");
        let Asked::Taken(first) = take(&folder) else { panic!("not taken") };
        assert!(matches!(take(&folder), Asked::Held(Some(pid)) if pid == std::process::id()));
        drop(first);
        assert!(matches!(take(&folder), Asked::Taken(_)));
    }

    #[test]
    fn a_sampler_is_known_by_its_own_lock() {
        let folder = tempfile::tempdir().unwrap();
        let Asked::Taken(daemon) = take(folder.path()) else { panic!("not taken") };
        let path = of_sampler(folder.path());
        let Asked::Taken(sampler) = Lock::of(&path) else { panic!("not taken") };
        drop(daemon);
        assert!(matches!(Lock::of(&path), Asked::Held(Some(_))));
        let peek = Peek::open(&path).unwrap();
        assert_eq!(peek.holder(), Some(Holder { pid: Some(std::process::id()) }));
        drop(sampler);
        assert_eq!(peek.holder(), None);
        assert!(matches!(Lock::of(&path), Asked::Taken(_)));
    }

    #[test]
    fn a_folder_that_cannot_be_made_takes_none() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(take(&file.path().join("state")), Asked::Impossible(_)));
    }
}

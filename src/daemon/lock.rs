//! One daemon a state folder: a lock that the kernel gives back however the daemon ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// In the state folder; its text is the number of the daemon that has it.
const NAME: &str = "daemon.lock";

/// Held while this lives.
pub(crate) struct Lock {
    _file: File,
}

/// What came of asking for it.
pub(crate) enum Asked {
    Taken(Lock),
    /// Another daemon has it: its number, where it can be read.
    Held(Option<u32>),
    /// The folder takes no lock; that the socket is free must do.
    Impossible(std::io::Error),
}

/// Asks for the lock of a state folder, which is made if there is none.
pub(crate) fn take(folder: &Path) -> Asked {
    // What is remembered tells of command lines and users.
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o750).create(folder);
    match made.and_then(|()| open(&folder.join(NAME))) {
        Ok((file, writable)) => lock(file, writable),
        Err(error) => Asked::Impossible(error),
    }
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
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let read = file.take(32).read_to_string(&mut text);
            Asked::Held(read.ok().and_then(|_| text.trim().parse().ok()))
        }
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
    fn a_folder_that_cannot_be_made_takes_none() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(take(&file.path().join("state")), Asked::Impossible(_)));
    }
}

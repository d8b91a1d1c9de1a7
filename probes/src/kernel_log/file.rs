//! A log file: its last lines first, then what is added, across rotation.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::lines::Lines;
use super::parse::may_matter;
use crate::reading::Absence;

/// How much of the past is read.
const TAIL_BYTES: u64 = 256 << 10;
const BUFFER_BYTES: usize = 64 << 10;
/// How much is read in one poll.
const READS_PER_POLL: usize = 32;

#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    lines: Lines,
    offset: u64,
}

impl LogFile {
    /// Opens the file near its end.
    pub(super) fn open(path: &Path) -> Result<Self, Absence> {
        let io = |error: std::io::Error| Absence::from_io(&error);
        let mut file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(Absence::Unsupported);
        }
        let offset = metadata.len().saturating_sub(TAIL_BYTES);
        file.seek(SeekFrom::Start(offset)).map_err(io)?;
        let lines = if offset > 0 { Lines::from_the_middle() } else { Lines::default() };
        Ok(Self { path: path.into(), file, lines, offset })
    }

    /// Calls `each` with every line of the kernel that may matter; whether the end was reached.
    pub(super) fn poll(&mut self, mut each: impl FnMut(&str)) -> Result<bool, Absence> {
        let mut buffer = vec![0; BUFFER_BYTES];
        for _ in 0..READS_PER_POLL {
            match self.file.read(&mut buffer) {
                // The old file is read to its end before a new one is looked at.
                Ok(0) if !self.renew()? => return Ok(true),
                Ok(count) => {
                    self.offset += count as u64;
                    self.lines.feed(&buffer[..count], |line| {
                        let line = String::from_utf8_lossy(line);
                        if may_matter(&line) && is_from_kernel(&line) {
                            each(&line);
                        }
                    });
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Absence::from_io(&error)),
            }
        }
        Ok(false)
    }

    /// Starts over where the file was replaced or emptied; whether it was.
    fn renew(&mut self) -> Result<bool, Absence> {
        let io = |error: std::io::Error| Absence::from_io(&error);
        let ours = self.file.metadata().map_err(io)?;
        let Ok(named) = std::fs::metadata(&self.path) else {
            // Between the two steps of a rotation there is no file by this name.
            return Ok(false);
        };
        let replaced = (ours.dev(), ours.ino()) != (named.dev(), named.ino());
        let emptied = ours.len() < self.offset;
        if replaced {
            self.file = File::open(&self.path).map_err(io)?;
        } else if emptied {
            self.file.seek(SeekFrom::Start(0)).map_err(io)?;
        }
        if replaced || emptied {
            self.lines = Lines::default();
            self.offset = 0;
        }
        Ok(replaced || emptied)
    }
}

/// Whether the tag is the kernel's: the word after date and host, whose date is one word or three.
fn is_from_kernel(line: &str) -> bool {
    let full_date = line.starts_with(|c: char| c.is_ascii_digit());
    line.split_whitespace().nth(if full_date { 2 } else { 4 }) == Some("kernel:")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tree::FakeTree;

    const LOG: &str = "var/log/kern.log";

    fn poll(log: &mut LogFile) -> Vec<String> {
        let mut out = Vec::new();
        assert_eq!(log.poll(|line| out.push(line.rsplit(' ').next().unwrap().into())), Ok(true));
        out
    }

    #[test]
    fn growth_and_both_ways_of_rotation_are_followed() {
        let tree = FakeTree::new(&[(LOG, "Dec  1 03:56:57 node7 kernel: NVRM: a\n")]);
        let mut log = LogFile::open(&tree.path(LOG)).unwrap();
        assert_eq!(poll(&mut log), ["a"]);
        tree.append(LOG, b"Dec  1 03:56:58 node7 kernel: [ 5.1] NVRM: b\nDec  1 03:5");
        assert_eq!(poll(&mut log), ["b"]);
        tree.append(LOG, b"6:59 node7 kernel: NVRM: c\n");
        std::fs::rename(tree.path(LOG), tree.path("var/log/kern.log.1")).unwrap();
        assert_eq!(poll(&mut log), ["c"]);
        tree.write(LOG, b"2026-12-01T03:57:00+00:00 node7 kernel: NVRM: d\n");
        assert_eq!(poll(&mut log), ["d"]);
        tree.write(LOG, b"");
        assert_eq!(poll(&mut log), [""; 0]);
        tree.append(LOG, b"Dec  1 03:57:01 node7 kernel: NVRM: e\n");
        assert_eq!(poll(&mut log), ["e"]);
    }

    #[test]
    fn only_the_last_part_of_a_long_file_is_read() {
        let line = "Dec  1 03:56:57 node7 kernel: NVRM: x\n";
        let tree = FakeTree::new(&[(LOG, &line.repeat(20_000))]);
        let lines = poll(&mut LogFile::open(&tree.path(LOG)).unwrap());
        assert_eq!(lines.len() as u64, TAIL_BYTES / line.len() as u64);
    }

    #[test]
    fn a_process_that_imitates_the_kernel_is_left_out() {
        assert!(is_from_kernel("Dec  1 03:56:57 node7 kernel: NVRM: x"));
        assert!(is_from_kernel("2026-12-01T03:57:00Z node7 kernel: NVRM: x"));
        assert!(!is_from_kernel("Dec  1 03:56:57 node7 joker: kernel: NVRM: x"));
        assert!(!is_from_kernel("2026-12-01T03:57:00Z node7 joker: NVRM: kernel: x"));
    }
}

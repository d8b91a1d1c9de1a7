//! The kernel's ring: one record a read, `prio,seq,usec,flags;text`.
//!
//! Bytes that are not printable arrive as `\xNN`, line ends inside a message too. `EPIPE` says that
//! records were overwritten before they were read; the gap in the sequence says how many.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use rustix::fs::{Mode, OFlags};

use super::lines::Lines;
use super::parse::may_matter;
use crate::machine::Machine;
use crate::reading::Absence;

/// Larger than the kernel's largest record.
const BUFFER_BYTES: usize = 16 << 10;
/// Records at most in one poll; a full ring is read over several.
const READS_PER_POLL: usize = 4096;
const EPIPE: i32 = 32;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) facility: u32,
    pub(super) sequence: u64,
    /// Since boot, on the kernel's clock.
    pub(super) usec: u64,
    pub(super) text: String,
}

#[derive(Debug)]
pub(super) struct Kmsg {
    file: File,
    lines: Lines,
    next_sequence: Option<u64>,
    /// Records that were overwritten before they were read.
    pub(super) lost_total: u64,
}

impl Kmsg {
    pub(super) fn open(machine: &Machine) -> Result<Self, Absence> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(machine.device("kmsg"), flags, Mode::empty())
            .map(File::from)
            .map_err(|error| Absence::from_io(&error.into()))?;
        let metadata = file.metadata().map_err(|error| Absence::from_io(&error))?;
        // Some containers have a link to their console or to /dev/null here.
        let is_ring =
            metadata.file_type().is_char_device() && metadata.rdev() == rustix::fs::makedev(1, 11);
        if !is_ring && !metadata.is_file() {
            return Err(Absence::Unsupported);
        }
        Ok(Self { file, lines: Lines::default(), next_sequence: None, lost_total: 0 })
    }

    /// Calls `each` with every record of the kernel that may matter; whether the end was reached.
    pub(super) fn poll(&mut self, mut each: impl FnMut(&Record)) -> Result<bool, Absence> {
        let mut buffer = [0; BUFFER_BYTES];
        for _ in 0..READS_PER_POLL {
            match self.file.read(&mut buffer) {
                Ok(0) => return Ok(true),
                Ok(count) => {
                    let (next, lost) = (&mut self.next_sequence, &mut self.lost_total);
                    self.lines.feed(&buffer[..count], |line| {
                        let Some(record) = parse_record(line) else { return };
                        let expected = next.unwrap_or(record.sequence);
                        *lost += record.sequence.saturating_sub(expected);
                        *next = Some(record.sequence.saturating_add(1));
                        // Facility 0 is the kernel; the rest was written by processes.
                        if record.facility == 0 && may_matter(&record.text) {
                            each(&record);
                        }
                    });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error)
                    if error.kind() == ErrorKind::Interrupted
                        || error.raw_os_error() == Some(EPIPE) => {}
                Err(error) => return Err(Absence::from_io(&error)),
            }
        }
        Ok(false)
    }
}

/// One line of the ring; `None` for a record's dictionary, which follows it in indented lines.
pub(super) fn parse_record(line: &[u8]) -> Option<Record> {
    let split = line.iter().position(|byte| *byte == b';')?;
    let mut head = std::str::from_utf8(&line[..split]).ok()?.split(',');
    let priority: u32 = head.next()?.parse().ok()?;
    let sequence = head.next()?.parse().ok()?;
    let usec = head.next()?.parse().ok()?;
    Some(Record { facility: priority >> 3, sequence, usec, text: unescape(&line[split + 1..]) })
}

fn unescape(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let escaped = match after {
            [b'x', high, low, ..] if *first == b'\\' => hex(*high).zip(hex(*low)),
            _ => None,
        };
        if let Some((high, low)) = escaped {
            bytes.push((high << 4) | low);
            rest = &after[3..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tree::FakeTree;

    #[test]
    fn a_record_is_taken_apart() {
        assert_eq!(
            parse_record(b"4,1234,5212750000,-;NVRM: a\\x0aNVRM: b\\x5cx"),
            Some(Record {
                facility: 0,
                sequence: 1234,
                usec: 5_212_750_000,
                text: "NVRM: a\nNVRM: b\\x".into()
            })
        );
        assert_eq!(parse_record(b" SUBSYSTEM=pci"), None);
        assert_eq!(parse_record(b"x,y;z"), None);
    }

    #[test]
    fn records_of_processes_are_left_out_and_gaps_are_counted() {
        let tree = FakeTree::new(&[(
            "dev/kmsg",
            "4,10,1,-;NVRM: one\n SUBSYSTEM=pci\n12,11,2,-;NVRM: a process says so\n4,15,3,-;NVRM: two\n",
        )]);
        let mut kmsg = Kmsg::open(&tree.machine).unwrap();
        let mut texts = Vec::new();
        assert_eq!(kmsg.poll(|record| texts.push(record.text.clone())), Ok(true));
        assert_eq!(texts, ["NVRM: one", "NVRM: two"]);
        assert_eq!(kmsg.lost_total, 3);
    }

    #[test]
    fn a_link_to_nowhere_is_not_the_ring() {
        let tree = FakeTree::new(&[]);
        tree.link("dev/kmsg", "/dev/null");
        assert_eq!(Kmsg::open(&tree.machine).err(), Some(Absence::Unsupported));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_in_stride(head in "[0-9,]{0,20};?", bytes: Vec<u8>) {
            parse_record(&[head.as_bytes(), &bytes].concat());
            parse_record(&bytes);
        }
    }
}

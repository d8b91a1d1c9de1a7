//! What the daemon says: lines on standard error, with priorities for the journal where systemd
//! reads them, else with the time.
//!
//! Never waits: a journal that is stuck, or a pipe that nobody reads, loses lines and is told how
//! many once it takes them again. Whoever logs a state logs its change, not its every look.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What a line is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Error,
    Warning,
    Info,
    Debug,
}

const LEVELS: [(Level, &str); 4] = [
    (Level::Error, "error"),
    (Level::Warning, "warning"),
    (Level::Info, "info"),
    (Level::Debug, "debug"),
];

impl Level {
    /// The level of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        LEVELS.iter().find(|(_, known)| *known == name).map(|(level, _)| *level)
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        LEVELS.iter().find(|(level, _)| *level == self).map_or("info", |(_, name)| name)
    }

    /// The journal's number, as syslog has them.
    fn priority(self) -> u8 {
        match self {
            Self::Error => 3,
            Self::Warning => 4,
            Self::Info => 6,
            Self::Debug => 7,
        }
    }
}

/// A write of so much is taken as a whole by a pipe that says it has room.
const MOST_BYTES: usize = 4096;

static LEAST: AtomicU8 = AtomicU8::new(6);
static LOST: AtomicU64 = AtomicU64::new(0);

/// From here on lines below this level are left out.
pub(crate) fn set_level(level: Level) {
    LEAST.store(level.priority(), Relaxed);
}

/// Something is broken and somebody should look.
pub(crate) fn error(text: &str) {
    say(Level::Error, text);
}

/// Something is not as it should be; it goes on.
pub(crate) fn warning(text: &str) {
    say(Level::Warning, text);
}

/// Something happened.
pub(crate) fn info(text: &str) {
    say(Level::Info, text);
}

/// For those who look for a fault in this program.
pub(crate) fn debug(text: &str) {
    say(Level::Debug, text);
}

/// A line of this level; further lines of the text belong to it.
pub(crate) fn say(level: Level, text: &str) {
    if level.priority() > LEAST.load(Relaxed) {
        return;
    }
    let lost = LOST.load(Relaxed);
    if lost > 0 {
        let words = format!("{lost} lines were lost: nobody took them");
        if !write(&lines(Level::Warning, &words)) {
            LOST.fetch_add(1, Relaxed);
            return;
        }
        LOST.fetch_sub(lost, Relaxed);
    }
    if !write(&lines(level, text)) {
        LOST.fetch_add(1, Relaxed);
    }
}

fn lines(level: Level, text: &str) -> String {
    if is_journal() {
        return for_journal(level, text);
    }
    let now = jiff::Timestamp::now();
    let now = now.round(jiff::Unit::Second).unwrap_or(now);
    format!("{now} {}: {}\n", level.name(), printable(text))
}

/// The journal takes each line for an entry of its own.
fn for_journal(level: Level, text: &str) -> String {
    let priority = level.priority();
    let mut entries = String::new();
    for line in printable(text).lines() {
        let _ = writeln!(entries, "<{priority}>{line}");
    }
    entries
}

/// Names of foreign things may hold anything.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// Whether the text was taken.
fn write(text: &str) -> bool {
    let stderr = std::io::stderr();
    let mut end = text.len().min(MOST_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    has_room(&stderr) && stderr.lock().write_all(&text.as_bytes()[..end]).is_ok()
}

fn has_room(output: &impl AsFd) -> bool {
    let mut wait = [PollFd::new(output, PollFlags::OUT)];
    let ready = poll(&mut wait, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    ready.is_ok_and(|ready| ready > 0) && wait[0].revents().contains(PollFlags::OUT)
}

/// systemd tells a service which socket is the journal's: device and number of standard error.
fn is_journal() -> bool {
    static JOURNAL: OnceLock<bool> = OnceLock::new();
    *JOURNAL.get_or_init(|| {
        let told = std::env::var_os("JOURNAL_STREAM").unwrap_or_default();
        let stat = rustix::fs::fstat(std::io::stderr());
        stat.is_ok_and(|stat| is_stream(told.as_bytes(), stat.st_dev, stat.st_ino))
    })
}

fn is_stream(told: &[u8], device: u64, inode: u64) -> bool {
    told == format!("{device}:{inode}").as_bytes()
}

/// A state that may come again and again: said when it changes, and once an hour as long as it
/// lasts.
#[derive(Default)]
pub(crate) struct State {
    last: Option<(String, Instant, u32)>,
}

const AGAIN: Duration = Duration::from_hours(1);

impl State {
    /// Says it, unless it was said.
    pub(crate) fn say(&mut self, level: Level, text: &str) {
        if let Some(words) = self.words(text, Instant::now()) {
            say(level, &words);
        }
    }

    /// It is over; the next one is news.
    pub(crate) fn clear(&mut self) {
        self.last = None;
    }

    fn words(&mut self, text: &str, now: Instant) -> Option<String> {
        match &mut self.last {
            Some((last, since, times)) if last == text => {
                *times += 1;
                if now.duration_since(*since) < AGAIN {
                    return None;
                }
                let words = format!("{text} ({times} times in the last hour)");
                (*since, *times) = (now, 0);
                Some(words)
            }
            _ => {
                self.last = Some((text.to_string(), now, 0));
                Some(text.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_gets_the_priority_of_each_line() {
        let text = for_journal(Level::Warning, "cannot read x\n  found: \u{1b}[2Jy");
        assert_eq!(text, "<4>cannot read x\n<4>  found: \u{fffd}[2Jy\n");
    }

    #[test]
    fn the_journals_socket_is_known_by_device_and_number() {
        assert!(is_stream(b"8:4711", 8, 4711));
        assert!(!is_stream(b"8:4711", 8, 4712));
        assert!(!is_stream(b"", 8, 4711));
    }

    #[test]
    fn a_state_is_said_once_and_again_after_an_hour() {
        let (mut state, begin) = (State::default(), Instant::now());
        assert_eq!(state.words("down", begin).unwrap(), "down");
        assert_eq!(state.words("down", begin + Duration::from_secs(1)), None);
        assert_eq!(state.words("down, otherwise", begin).unwrap(), "down, otherwise");
        assert_eq!(state.words("down, otherwise", begin), None);
        let later = state.words("down, otherwise", begin + AGAIN).unwrap();
        assert!(later.ends_with("(2 times in the last hour)"), "{later}");
        state.clear();
        assert_eq!(state.words("down, otherwise", begin).unwrap(), "down, otherwise");
    }

    #[test]
    fn a_pipe_that_nobody_reads_has_no_room() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        assert!(has_room(&writer));
        rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
        let mut file = std::fs::File::from(writer.try_clone().unwrap());
        file.write_all(&[0; 4096]).unwrap();
        assert!(!has_room(&writer));
        drop(reader);
    }
}

//! Waiting for conditions, and what there is to wait for: processes that come and go.

use std::path::Path;
use std::time::{Duration, Instant};

/// Slow machines get so much longer.
pub fn patience() -> u32 {
    std::env::var("INFERTOP_TEST_PATIENCE").ok().and_then(|n| n.parse().ok()).unwrap_or(4)
}

/// A moment between two looks at a condition.
pub fn pause() {
    std::thread::park_timeout(Duration::from_millis(4));
}

/// Waits until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5) * patience();
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to {what}");
        pause();
    }
}

/// State letter and parent of a process.
fn state(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    let stat = stat.ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Whether a process of this number runs and is no zombie.
pub fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|(letter, _)| !matches!(letter, 'Z' | 'X'))
}

/// Whether a process is stopped, as Ctrl-Z does.
pub fn is_stopped(pid: u32) -> bool {
    state(pid).is_some_and(|(letter, _)| letter == 'T')
}

/// The numbers of the children of a process.
pub fn children(pid: u32) -> Vec<u32> {
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|child| state(*child).is_some_and(|(_, parent)| parent == pid)).collect()
}

/// Waits for the one child of a process.
pub fn only_child(pid: u32) -> u32 {
    let mut found = Vec::new();
    until("one child", || {
        found = children(pid);
        found.len() == 1
    });
    found[0]
}

/// Waits until a process is gone.
pub fn until_gone(pid: u32) {
    until("the end of a process", || !is_alive(pid));
}

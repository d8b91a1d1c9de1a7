//! Real processes that stand for those that hold GPU memory.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::waiting::until;

/// A process that waits until it is ended.
pub struct Workload {
    child: Child,
}

impl Workload {
    /// One that sleeps.
    pub fn sleeping() -> Self {
        Self::started(Command::new("sleep").arg("10000"))
    }

    /// One with these arguments, whatever they are.
    pub fn with_arguments<S: AsRef<OsStr>>(arguments: &[S]) -> Self {
        Self::running(Path::new("/bin/sh"), arguments)
    }

    /// A shell under any name with these arguments; it waits for a line that never comes, and starts
    /// nothing that could be left behind.
    pub fn running<S: AsRef<OsStr>>(shell: &Path, arguments: &[S]) -> Self {
        Self::started(Command::new(shell).args(["-c", "read -r line", "sh"]).args(arguments))
    }

    fn started(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        Self { child }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until something has ended it, and says which signal did.
    pub fn ended_by(&mut self) -> Option<i32> {
        let mut status = None;
        until("the end of the process", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.and_then(|status| status.signal())
    }

    /// Ends it, zombie and all.
    pub fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        self.end();
    }
}

//! A file of the same kind as the store, written by hand: a recording without a daemon, or a stretch
//! that is handed on. It is made anew, has no limits, and is one file when it is finished.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use probes::past::Mark;

use super::file::File;
use super::{Limits, Start};
use crate::moment::Moment;

/// A file that is being recorded.
pub(crate) struct Recording {
    path: PathBuf,
    file: File,
    frames: u64,
}

/// Whoever records says when to stop.
const NO_LIMITS: Limits = Limits { raw_days: u32::MAX, rollup_days: u32::MAX, max_bytes: u64::MAX };

impl Recording {
    /// Makes the file. One that is there already is left alone.
    pub(crate) fn create(path: &Path, start: &Start) -> anyhow::Result<Self> {
        std::fs::OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| {
            let help = match error.kind() {
                std::io::ErrorKind::AlreadyExists => "name a file that does not exist",
                _ => "name a file in a folder that exists and that you may write to",
            };
            anyhow::anyhow!("cannot make {}: {error}\n  help: {help}", path.display())
        })?;
        let file = File::open(path, NO_LIMITS, start).map_err(|unusable| {
            let (why, help) = unusable.words(path);
            anyhow::anyhow!("{why}\n  help: {help}")
        })?;
        Ok(Self { path: path.into(), file, frames: 0 })
    }

    /// Writes a moment.
    pub(crate) fn keep(&mut self, moment: &Moment) -> anyhow::Result<()> {
        self.file.keep(moment, None).with_context(|| self.cannot_write())?;
        self.frames += 1;
        Ok(())
    }

    /// Writes a mark.
    pub(crate) fn mark(&mut self, mark: &Mark) -> anyhow::Result<()> {
        self.file.mark(mark).with_context(|| self.cannot_write())
    }

    /// Moments written.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Closes the file, which is then one file. Gives its size in bytes.
    pub(crate) fn finish(self, now_ms: u64) -> anyhow::Result<u64> {
        let cannot_write = self.cannot_write();
        self.file.finish(now_ms).context(cannot_write.clone())?;
        // A log beside the file would be forgotten when it is handed on.
        let db = rusqlite::Connection::open(&self.path).context(cannot_write.clone())?;
        db.execute_batch("PRAGMA journal_mode = DELETE").context(cannot_write)?;
        drop(db);
        let path = self.path.display();
        Ok(std::fs::metadata(&self.path).with_context(|| format!("cannot look at {path}"))?.len())
    }

    fn cannot_write(&self) -> String {
        format!("cannot write the recording {}", self.path.display())
    }
}

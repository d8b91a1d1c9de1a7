//! The outside world in one value: where its files are, which driver library to load, what time it is.
//!
//! Nothing outside this file writes `/proc`, `/sys` or `/dev`: a container that mounts the host's
//! trees elsewhere, and a test on a recorded box, only hand over other roots.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Files of `/proc` and `/sys` are small; whatever is larger than this is cut, so that a lying or
/// hostile file (a 4 MB command line) costs bounded memory.
pub const TEXT_LIMIT_BYTES: u64 = 4 << 20;

/// Roots, library path and clock of the machine that is read.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Where procfs is mounted.
    pub procfs: PathBuf,
    /// Where sysfs is mounted.
    pub sysfs: PathBuf,
    /// The root of the host's own file system; its `dev` holds the device nodes.
    pub rootfs: PathBuf,
    /// The driver library asked for by flag or environment; `None` searches the usual places.
    pub nvml_library: Option<PathBuf>,
    /// A fixed wall clock in milliseconds since 1970, for tests; `None` is the real one.
    pub frozen_ms: Option<u64>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            procfs: "/proc".into(),
            sysfs: "/sys".into(),
            rootfs: "/".into(),
            nvml_library: None,
            frozen_ms: None,
        }
    }
}

impl Machine {
    /// A path below procfs.
    pub fn proc(&self, path: impl AsRef<Path>) -> PathBuf {
        self.procfs.join(path)
    }

    /// A path below sysfs.
    pub fn sys(&self, path: impl AsRef<Path>) -> PathBuf {
        self.sysfs.join(path)
    }

    /// A node in the device folder.
    pub fn device(&self, node: impl AsRef<Path>) -> PathBuf {
        self.rootfs.join("dev").join(node)
    }

    /// A path on the host's file system; a leading slash is taken as relative to its root.
    pub fn root(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.rootfs.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Whether procfs is the one of the running kernel, where facts about ourselves hold too.
    pub fn is_live(&self) -> bool {
        self.procfs == Path::new("/proc")
    }

    /// Wall clock in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.frozen_ms.unwrap_or_else(|| {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
        })
    }
}

/// A file as text, cut at [`TEXT_LIMIT_BYTES`]; bytes that are no UTF-8 become U+FFFD.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    Ok(String::from_utf8_lossy(&read_bytes(path)?).into_owned())
}

/// A file as bytes, cut at [`TEXT_LIMIT_BYTES`].
pub fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(TEXT_LIMIT_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file that holds one word or number, without the line end.
pub fn read_line(path: &Path) -> std::io::Result<String> {
    read_text(path).map(|text| text.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_root_can_be_moved() {
        let machine = Machine { rootfs: "/host".into(), ..Machine::default() };
        assert_eq!(machine.root("/etc/passwd"), Path::new("/host/etc/passwd"));
        assert_eq!(machine.proc("1/stat"), Path::new("/proc/1/stat"));
    }
}

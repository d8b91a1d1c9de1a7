//! A machine made of files in a temporary folder, for tests of everything that reads files.

use std::path::Path;

use crate::machine::Machine;

/// A folder that goes away with the value, and the machine whose roots lie in it.
pub(crate) struct FakeTree {
    folder: tempfile::TempDir,
    /// Reads below the folder: `proc`, `sys`, and the folder itself as root.
    pub(crate) machine: Machine,
}

impl FakeTree {
    /// The folder with these files in it, each given as path and content.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let machine = Machine {
            procfs: root.join("proc"),
            sysfs: root.join("sys"),
            rootfs: root.into(),
            nvml_library: None,
            frozen_ms: Some(1_800_000_000_000),
        };
        let tree = Self { folder, machine };
        for (path, content) in files {
            tree.write(path, content.as_bytes());
        }
        tree
    }

    /// Writes or replaces one file.
    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Adds to the end of one file.
    pub(crate) fn append(&self, path: &str, content: &[u8]) {
        use std::io::Write as _;
        let mut file = std::fs::OpenOptions::new().append(true).open(self.path(path)).unwrap();
        file.write_all(content).unwrap();
    }

    /// Makes a symbolic link.
    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    /// Where a path of the tree lies.
    pub(crate) fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }
}

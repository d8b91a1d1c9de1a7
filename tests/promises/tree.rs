//! The files of a machine, made up: what its kernel, its bus and its driver's package would show.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Where the stand-in puts the GPUs of one eight-GPU board.
const ADDRESSES: [&str; 8] = ["19", "3b", "4c", "5d", "9b", "bb", "cb", "db"];

/// A folder with `proc`, `sys` and the rest of a root.
pub struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    /// A host without anything of NVIDIA's.
    pub fn bare() -> Self {
        let tree = Self { folder: tempfile::tempdir().unwrap() };
        tree.write("proc/sys/kernel/osrelease", "6.8.0-71-generic\n");
        tree.write("proc/modules", "overlay 212992 1 - Live 0x0\n");
        tree.write("proc/meminfo", "MemTotal: 527927296 kB\nMemAvailable: 400000000 kB\n");
        tree.write("proc/stat", "cpu  1 0 1 100 0 0 0 0 0 0\nbtime 1780000000\n");
        // Kernel threads are seen from the host alone.
        tree.write("proc/2/comm", "kthreadd\n");
        tree.write("dev/null", "");
        tree.make("sys/bus/pci/devices");
        tree
    }

    /// A host with so many GPUs on its bus and no driver.
    pub fn with_gpus(count: usize) -> Self {
        let tree = Self::bare();
        for bus in &ADDRESSES[..count] {
            let device = format!("sys/bus/pci/devices/0000:{bus}:00.0");
            tree.write(&format!("{device}/class"), "0x030200\n");
            tree.write(&format!("{device}/vendor"), "0x10de\n");
            tree.write(&format!("{device}/device"), "0x2330\n");
            tree.write(&format!("{device}/config"), "\u{de}\u{10}");
        }
        tree
    }

    /// The same with a driver loaded and its nodes made, without a library.
    pub fn with_driver(count: usize, version: &str) -> Self {
        let tree = Self::with_gpus(count);
        tree.load(version);
        tree.write("dev/nvidiactl", "");
        tree.write("dev/nvidia-uvm", "");
        for (index, bus) in ADDRESSES[..count].iter().enumerate() {
            tree.write(&format!("dev/nvidia{index}"), "");
            tree.link(
                &format!("sys/bus/pci/devices/0000:{bus}:00.0/driver"),
                "../../../bus/pci/drivers/nvidia",
            );
        }
        tree
    }

    /// Loads the module in this version.
    pub fn load(&self, version: &str) {
        let line = format!(
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build\n"
        );
        self.write("proc/driver/nvidia/version", &line);
        self.write("proc/modules", "nvidia_uvm 1 0 - Live 0x0\nnvidia 1 31 - Live 0x0\n");
        self.write("sys/module/nvidia/refcnt", "31\n");
        self.write("sys/module/nvidia/version", format!("{version}\n"));
    }

    /// Unloads it.
    pub fn unload(&self) {
        std::fs::remove_dir_all(self.path("sys/module/nvidia")).unwrap();
        std::fs::remove_dir_all(self.path("proc/driver/nvidia")).unwrap();
    }

    /// Installs a library as the driver's package of this version would, below `folder`.
    pub fn install(&self, library: &Path, folder: &str, version: &str) {
        let name = format!("libnvidia-ml.so.{version}");
        self.make(folder);
        std::fs::copy(library, self.path(folder).join(&name)).unwrap();
        let _ = std::fs::remove_file(self.path(folder).join("libnvidia-ml.so.1"));
        self.link(&format!("{folder}/libnvidia-ml.so.1"), &name);
    }

    /// Where a path of the tree lies.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Makes a folder.
    pub fn make(&self, path: &str) {
        std::fs::create_dir_all(self.path(path)).unwrap();
    }

    /// Writes a file, replacing it in one step: readers see the old or the new one.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let fresh = path.with_extension("fresh");
        std::fs::write(&fresh, content).unwrap();
        std::fs::rename(fresh, path).unwrap();
    }

    /// Makes a symbolic link.
    pub fn link(&self, path: &str, target: impl AsRef<Path>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    /// The flags that make it the program's machine.
    pub fn arguments(&self) -> Vec<String> {
        [("--procfs", "proc"), ("--sysfs", "sys"), ("--rootfs", "")]
            .into_iter()
            .flat_map(|(flag, path)| [flag.to_string(), self.path(path).display().to_string()])
            .collect()
    }
}

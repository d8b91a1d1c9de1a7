//! A procfs made of plain files, for tests.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::machine::Machine;
use crate::nvml::processes::{GpuProcess, GpuProcesses};
use crate::snapshot::Gpu;

/// A folder with `proc` and `root` below it, removed at the end.
pub(crate) struct FakeBox {
    folder: PathBuf,
}

/// A process as its `stat` tells it.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) comm: &'static [u8],
    pub(crate) state: char,
    pub(crate) start: u64,
    pub(crate) cpu_ticks: u64,
    pub(crate) threads: u32,
    pub(crate) flags: u64,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            pid: 100,
            parent: 1,
            comm: b"python3",
            state: 'S',
            start: 5_000,
            cpu_ticks: 100,
            threads: 3,
            flags: 4_194_560,
        }
    }
}

impl FakeBox {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "infertop-proc-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let fake = Self { folder: std::env::temp_dir().join(name) };
        fake.put("proc/stat", b"cpu 1 2 3\nbtime 1700000000\n");
        fake.put("root/etc/passwd", b"root:x:0:0::/root:/bin/sh\nvllm:x:998:998::/srv:/bin/sh\n");
        fake.process(&Fake { pid: 1, parent: 0, comm: b"systemd", ..Fake::default() });
        fake.put("proc/1/cmdline", b"/sbin/init\0");
        // As on a host: number 2 is the kernel's.
        fake.process(&Fake {
            pid: 2,
            parent: 0,
            comm: b"kthreadd",
            flags: 0x0020_8040,
            ..Fake::default()
        });
        fake
    }

    pub(crate) fn machine(&self) -> Machine {
        Machine {
            procfs: self.folder.join("proc"),
            rootfs: self.folder.join("root"),
            ..Machine::default()
        }
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.join(path)
    }

    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// A whole process; its other files are ordinary ones.
    pub(crate) fn process(&self, fake: &Fake) {
        let Fake { pid, parent, state, start, cpu_ticks, threads, flags, .. } = *fake;
        let mut stat = format!("{pid} (").into_bytes();
        stat.extend_from_slice(fake.comm);
        stat.extend_from_slice(
            format!(") {state} {parent} 1 1 0 -1 {flags} 0 0 0 0 {cpu_ticks} 0 0 0 20 0 {threads} 0 {start} 1000000 2048 0\n").as_bytes(),
        );
        self.put(&format!("proc/{pid}/stat"), &stat);
        std::fs::create_dir_all(self.path(format!("proc/{pid}/fd"))).unwrap();
        if !self.path(format!("proc/{pid}/status")).exists() {
            self.put(&format!("proc/{pid}/status"), format!("Name:\tx\nUid:\t998\t998\t998\t998\nNSpid:\t{pid}\nVmRSS:\t8192 kB\nVmPin:\t64 kB\nVmLck:\t0 kB\nVmSwap:\t0 kB\n").as_bytes());
            self.put(&format!("proc/{pid}/cgroup"), b"0::/system.slice/vllm.service\n");
            self.put(&format!("proc/{pid}/cmdline"), b"vllm\0serve\0m\0--api-key\0abc\0");
            self.put(&format!("proc/{pid}/maps"), b"7f00-7f01 r-xp 0 0:0 1 /usr/lib/libcuda.so.570.86.15\n2000-3000 rw-s 0 0:6 8 /dev/nvidia0\n");
            self.put(&format!("proc/{pid}/wchan"), b"futex_do_wait");
            self.put(
                &format!("proc/{pid}/net/tcp"),
                b"head\n 0: 00000000:1F40 00000000:0000 0A 0:0 00:0 0 998 0 4242 1\n",
            );
            self.link(pid, "ns/net", "net:[4026531840]");
        }
    }

    pub(crate) fn link(&self, pid: u32, name: &str, target: &str) {
        let path = self.path(format!("proc/{pid}/{name}"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&path);
        symlink(target, path).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }

    /// Opening it for reading blocks until someone opens it for writing.
    pub(crate) fn fifo(&self, path: &str) {
        self.remove(path);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, self.path(path), mode).unwrap();
    }
}

impl Drop for FakeBox {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A GPU with processes of this much memory.
pub(crate) fn gpu(index: u32, processes: &[(u32, u64)]) -> Gpu {
    let list = processes
        .iter()
        .map(|&(pid, bytes)| GpuProcess {
            pid,
            kind: "compute".into(),
            used_bytes: bytes.into(),
            ..GpuProcess::default()
        })
        .collect::<Vec<_>>();
    Gpu {
        index,
        processes: GpuProcesses { list: list.into(), ..GpuProcesses::default() },
        ..Gpu::default()
    }
}

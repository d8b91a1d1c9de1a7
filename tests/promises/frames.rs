//! The sampler without a dashboard: its frames, as it writes them to its parent.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use probes::snapshot::{Gpu, Snapshot};

use crate::gpu_box::GpuBox;
use crate::waiting::patience;

/// A running sampler.
pub struct Sampler {
    pub child: Child,
    commands: Option<ChildStdin>,
    frames: Receiver<Frame>,
    _state: Arc<tempfile::TempDir>,
}

/// What came through the pipe.
pub struct Frame {
    pub bytes: Vec<u8>,
    pub snapshot: Snapshot,
}

impl Frame {
    /// The GPU of this number.
    pub fn gpu(&self, index: u32) -> &Gpu {
        self.find_gpu(index).unwrap_or_else(|| panic!("no GPU {index}"))
    }

    /// The GPU of this number, once there is one.
    pub fn find_gpu(&self, index: u32) -> Option<&Gpu> {
        self.snapshot.gpus.iter().find(|gpu| gpu.index == index && gpu.mig.is_none())
    }
}

impl Sampler {
    /// Starts one at an interval.
    pub fn start(gpu_box: &GpuBox, interval: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_infertop"))
            .arg("sampler")
            .args(gpu_box.arguments())
            .args(["--interval", interval])
            .env_clear()
            .envs(gpu_box.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let commands = child.stdin.take();
        let mut output = child.stdout.take().unwrap();
        let (sender, frames) = channel();
        std::thread::spawn(move || {
            let mut length = [0; 4];
            while output.read_exact(&mut length).is_ok() {
                let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
                if output.read_exact(&mut bytes).is_err() {
                    return;
                }
                let snapshot = Snapshot::decode(&bytes).unwrap();
                if sender.send(Frame { bytes, snapshot }).is_err() {
                    return;
                }
            }
        });
        Self { child, commands, frames, _state: gpu_box.keep() }
    }

    /// The next frame.
    pub fn next(&self) -> Frame {
        self.frames
            .recv_timeout(Duration::from_secs(5) * patience())
            .expect("the sampler is silent")
    }

    /// A frame that is there already.
    pub fn try_next(&self) -> Option<Frame> {
        self.frames.try_recv().ok()
    }

    /// The first frame from now on that is as wanted, and how many frames went by before it.
    pub fn find(&self, what: &str, mut wanted: impl FnMut(&Frame) -> bool) -> (Frame, usize) {
        let deadline = Instant::now() + Duration::from_secs(8) * patience();
        for passed in 0.. {
            let frame = self.next();
            if wanted(&frame) {
                return (frame, passed);
            }
            let gpus: Vec<_> = frame.snapshot.gpus.iter().map(|gpu| &gpu.health).collect();
            let session = &frame.snapshot.driver.session;
            assert!(Instant::now() < deadline, "never {what}: {session:?} {gpus:?}");
        }
        unreachable!()
    }

    /// How often each GPU's quick counters were read anew in so many frames. On a loaded machine a
    /// thread may come too late for a frame now and then.
    pub fn advances(&self, frames: usize, mut look: impl FnMut(&Frame)) -> BTreeMap<u32, usize> {
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        let mut advances: BTreeMap<u32, usize> = BTreeMap::new();
        for _ in 0..=frames {
            let frame = self.next();
            for gpu in frame.snapshot.gpus.iter().filter(|gpu| gpu.mig.is_none()) {
                let before = last.insert(gpu.index, gpu.utilization.read.at_ms);
                let is_new = before.is_some_and(|before| gpu.utilization.read.at_ms > before);
                *advances.entry(gpu.index).or_default() += usize::from(is_new);
            }
            look(&frame);
        }
        advances
    }

    /// Asks for another pace.
    pub fn command(&mut self, line: &str) {
        let commands = self.commands.as_mut().unwrap();
        writeln!(commands, "{line}").unwrap();
    }

    /// Goes away, as a parent that ends.
    pub fn close(&mut self) {
        self.commands = None;
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.commands = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

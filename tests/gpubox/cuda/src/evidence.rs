//! What `/proc` shows of a CUDA process: open descriptors and shared mappings of files called
//! `dev/nvidiactl`, `dev/nvidia0`, `dev/nvidia-uvm` below the state directory. A scanner whose
//! root for devices can be moved finds them there.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use gpubox::{Mapped, Site};

/// A file held open and mapped.
#[derive(Debug)]
struct Held {
    _file: File,
    _mapping: Mapped,
}

/// Per context; context 0 stands for the process itself.
static HELD: Mutex<BTreeMap<u64, Vec<Held>>> = Mutex::new(BTreeMap::new());

fn hold(path: &Path) -> Option<Held> {
    let mapping = Mapped::open(path, 4096).ok()?;
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    Some(Held { _file: file, _mapping: mapping })
}

/// Opens what a new context opens. Failing to is no reason to fail the context.
pub(crate) fn add(site: &'static Site, context: u64, gpu: usize) {
    let devices = site.state.join("dev");
    let _ = std::fs::create_dir_all(&devices);
    let minor = site.machine.gpus.get(gpu).map_or(0, |gpu| gpu.minor);
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    held.entry(0).or_insert_with(|| {
        ["nvidiactl", "nvidia-uvm"].iter().filter_map(|name| hold(&devices.join(name))).collect()
    });
    // A control mapping, and one doorbell page per channel group.
    let names = ["nvidiactl".to_owned(), format!("nvidia{minor}"), format!("nvidia{minor}")];
    held.insert(context, names.iter().filter_map(|name| hold(&devices.join(name))).collect());
}

/// Closes them.
pub(crate) fn remove(context: u64) {
    HELD.lock().unwrap_or_else(PoisonError::into_inner).remove(&context);
}

//! `/proc/PID/maps`: mapped device files, and libraries of the driver and of CUDA.
//!
//! An engine has ten thousand lines and more, so the file is read as a stream and only counts are
//! kept. Reading takes the process's memory lock: it can block behind a process that is stuck, and
//! therefore happens on a thread of its own. `libcuda.so.<version>` is the driver that the process
//! started with; ` (deleted)` behind it means that an upgrade replaced the file since. Wheels put a
//! hash into names (`libcudart-d0da41ae.so.11.0`), which is taken off.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};

use crate::reading::Absence;

use super::fds::parse_device;
use super::task::Task;
use super::{DeviceCount, Library};

/// Read at once; the kernel fills at most this much a call anyway.
const BUFFER_BYTES: usize = 64 << 10;

/// A line that is longer has a path that we do not look for.
const LINE_BYTES: usize = 4096;

/// The kernel's own default limit of mappings is 65,530; boxes raise it to 262,144.
const MOST_LINES: u32 = 1 << 20;

/// Far more than CUDA has; bounds what a hostile process can make us keep.
const MOST_NAMES: usize = 256;

/// Libraries by the start of their names. A stem stands for itself and for what follows it after
/// `_` or `-`, such as `libcudnn_ops`.
const LIBRARIES: &[&str] = &[
    "libcuda",
    "libnvidia-ml",
    "libnvidia-ptxjitcompiler",
    "libnvidia-nvvm",
    "libcudart",
    "libcublas",
    "libcublasLt",
    "libcudnn",
    "libcufft",
    "libcufile",
    "libcupti",
    "libcurand",
    "libcusolver",
    "libcusolverMg",
    "libcusparse",
    "libcusparseLt",
    "libnccl",
    "libnvJitLink",
    "libnvrtc",
    "libnvshmem",
    "libnvinfer",
    "libtensorrt_llm",
    "libtorch_cuda",
    "libggml-cuda",
];

/// What of a process's mappings matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mappings {
    pub(crate) devices: Vec<DeviceCount>,
    pub(crate) libraries: Vec<Library>,
}

pub(crate) fn read_maps(task: &Task, prefixes: &[Vec<u8>]) -> Result<Mappings, Absence> {
    let file = task.open_file("maps")?;
    parse_maps(BufReader::with_capacity(BUFFER_BYTES, file), prefixes)
        .map_err(|error| Absence::from_io(&error))
}

/// Counts in a listing of mappings, without holding more than a line of it.
pub(crate) fn parse_maps(
    mut reader: impl BufRead,
    prefixes: &[Vec<u8>],
) -> std::io::Result<Mappings> {
    let mut devices: BTreeMap<String, u32> = BTreeMap::new();
    let mut libraries = BTreeSet::new();
    let mut last: Vec<u8> = Vec::new();
    for_each_line(&mut reader, |line| {
        // Anonymous memory, the bulk of the lines, has no path.
        let Some(slash) = line.iter().position(|&b| b == b'/') else { return };
        let path = &line[slash..];
        if let Some(node) = parse_device(path, prefixes) {
            if devices.len() < MOST_NAMES || devices.contains_key(&node) {
                *devices.entry(node).or_default() += 1;
            }
        } else if path != last.as_slice() {
            // A library has a line for each of its segments, one after the other.
            last.clear();
            last.extend_from_slice(path);
            if libraries.len() < MOST_NAMES {
                libraries.extend(parse_library(path));
            }
        }
    })?;
    Ok(Mappings {
        devices: devices.into_iter().map(|(node, count)| DeviceCount { node, count }).collect(),
        libraries: libraries.into_iter().collect(),
    })
}

/// Calls with each line without its end; of a longer one only the first [`LINE_BYTES`].
fn for_each_line(reader: &mut impl BufRead, mut each: impl FnMut(&[u8])) -> std::io::Result<()> {
    let mut carried: Vec<u8> = Vec::new();
    let mut lines = 0;
    loop {
        let chunk = match reader.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let length = chunk.len();
        if length == 0 {
            if !carried.is_empty() {
                each(&carried);
            }
            return Ok(());
        }
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|&b| b == b'\n') {
            if carried.is_empty() {
                each(&rest[..end.min(LINE_BYTES)]);
            } else {
                carry(&mut carried, &rest[..end]);
                each(&carried);
                carried.clear();
            }
            rest = &rest[end + 1..];
            lines += 1;
            if lines >= MOST_LINES {
                return Ok(());
            }
        }
        carry(&mut carried, rest);
        reader.consume(length);
    }
}

fn carry(carried: &mut Vec<u8>, bytes: &[u8]) {
    let room = LINE_BYTES.saturating_sub(carried.len());
    carried.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

/// The library in a path, if it is one of ours.
fn parse_library(path: &[u8]) -> Option<Library> {
    let (path, deleted) =
        path.strip_suffix(b" (deleted)").map_or((path, false), |path| (path, true));
    let file = path.rsplit(|&b| b == b'/').next()?;
    if !file.starts_with(b"lib") {
        return None;
    }
    let file = std::str::from_utf8(file).ok()?;
    let (stem, version) = match file.split_once(".so.") {
        Some((stem, version)) => (stem, version),
        None => (file.strip_suffix(".so")?, ""),
    };
    let ours = |&&name: &&&str| {
        stem.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '-']))
    };
    LIBRARIES.iter().find(ours)?;
    let hash = |hash: &str| hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    let name = match stem.rsplit_once('-') {
        Some((name, end)) if hash(end) => name,
        _ => stem,
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+');
    let known = |text: &str| text.len() <= 64 && text.bytes().all(plain);
    (known(name) && known(version)).then(|| Library {
        name: name.to_string(),
        version: version.to_string(),
        deleted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAPS: &str = "\
200000000-200200000 ---p 00000000 00:00 0 \n\
200200000-200400000 rw-s 00000000 00:06 823                              /dev/nvidiactl\n\
200400000-200404000 rw-s 00000000 00:06 823                              /dev/nvidiactl\n\
203c00000-203c10000 rw-s 00000000 00:06 824                              /dev/nvidia0\n\
204000000-204200000 rw-s 204000000 00:06 827                             /dev/nvidia-uvm\n\
55d0c0a00000-55d0c0a01000 r--p 00000000 103:02 5243019                   /usr/bin/python3.12\n\
7f1000000000-7f1000200000 r--p 00000000 103:02 77                        /opt/venv/lib/python3.12/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12\n\
7f1000200000-7f1000400000 r-xp 00200000 103:02 77                        /opt/venv/lib/python3.12/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12\n\
7f2000000000-7f2000200000 r-xp 00000000 103:02 78                        /opt/venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so\n\
7f2000200000-7f2000400000 r-xp 00000000 103:02 79                        /opt/x.libs/libcudart-d0da41ae.so.11.0\n\
7f3000000000-7f3000200000 r-xp 00000000 103:02 80                        /usr/lib/x86_64-linux-gnu/libcuda.so.570.86.15 (deleted)\n\
7f3000200000-7f3000400000 r-xp 00000000 103:02 81                        /usr/lib/libcudnn_ops.so.9.1.0\n\
7f3000400000-7f3000600000 r-xp 00000000 103:02 82                        /usr/lib/libcudadebugger.so.1\n\
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]\n";

    fn library(name: &str, version: &str, deleted: bool) -> Library {
        Library { name: name.into(), version: version.into(), deleted }
    }

    #[test]
    fn devices_are_counted_and_libraries_named_once() {
        let maps = parse_maps(MAPS.as_bytes(), &[Vec::new()]).unwrap();
        let counts: Vec<_> = maps.devices.iter().map(|d| (d.node.as_str(), d.count)).collect();
        assert_eq!(counts, [("nvidia-uvm", 1), ("nvidia0", 1), ("nvidiactl", 2)]);
        assert_eq!(
            maps.libraries,
            [
                library("libcuda", "570.86.15", true),
                library("libcudart", "11.0", false),
                library("libcudart", "12", false),
                library("libcudnn_ops", "9.1.0", false),
                library("libtorch_cuda", "", false),
            ]
        );
    }

    #[test]
    fn lines_across_buffers_and_endless_lines_are_survived() {
        let reader = BufReader::with_capacity(7, MAPS.as_bytes());
        assert_eq!(
            parse_maps(reader, &[Vec::new()]).unwrap(),
            parse_maps(MAPS.as_bytes(), &[Vec::new()]).unwrap()
        );
        let endless = format!("0-1 r--p 0 0:0 1 /{}\n{MAPS}", "x".repeat(5 << 20));
        assert_eq!(parse_maps(endless.as_bytes(), &[Vec::new()]).unwrap().libraries.len(), 5);
    }

    proptest! {
        #[test]
        fn garbage_maps_nothing(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse_maps(&bytes[..], &[Vec::new()]);
        }
    }
}

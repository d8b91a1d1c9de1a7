//! Processes as the driver lists them: compute, graphics and MPS, merged by pid.
//!
//! One row a pid whatever number of contexts it has. Memory shared between processes counts in each
//! of them, managed memory in none. `u64::MAX` stands for "not available".

use std::time::Instant;

use nvml_wrapper_sys::bindings as sys;
use serde::{Deserialize, Serialize};

use super::codes::INSUFFICIENT_SIZE;
use super::memory::MOST_BYTES;
use super::session::{Device, Zeroed, call};
use crate::reading::{Absence, Reading};
use crate::snapshot::Stamp;

/// The driver's lists of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuProcesses {
    /// When the compute list was read.
    pub read: Stamp,
    /// Processes, merged over the lists; absent where none of them could be read.
    pub list: Reading<Vec<GpuProcess>>,
}

/// One process in the driver's lists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuProcess {
    /// Its number as the driver gives it: the host's, or translated to our namespace.
    pub pid: u32,
    /// `compute`, `graphics`, `mps`, joined by `+`.
    pub kind: String,
    /// Memory that the driver counts for it.
    pub used_bytes: Reading<u64>,
    /// MIG GPU instance.
    pub gpu_instance: Option<u32>,
    /// MIG compute instance.
    pub compute_instance: Option<u32>,
    /// Share of the last sample period with a kernel of its own.
    pub sm_ratio: Reading<f64>,
    /// The same for memory accesses.
    pub memory_ratio: Reading<f64>,
    /// The same for the encoder.
    pub encoder_ratio: Reading<f64>,
    /// The same for the decoder.
    pub decoder_ratio: Reading<f64>,
}

/// No instance; what the driver writes outside MIG.
const NO_INSTANCE: u32 = u32::MAX;
/// Rows that a list starts with room for; the kernel gives 950 at the most.
const FIRST_ROWS: usize = 64;

/// The driver's three lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Compute,
    Graphics,
    Mps,
}

/// Reads and merges the lists of one device.
pub(crate) struct ProcessReader {
    rows: Vec<sys::nvmlProcessInfo_t>,
    samples: Vec<sys::nvmlProcessUtilizationSample_t>,
    newer_samples: Vec<sys::nvmlProcessUtilizationInfo_v1_t>,
    graphics: Reading<Vec<GpuProcess>>,
    mps: Reading<Vec<GpuProcess>>,
    /// Time stamp of the newest utilisation sample seen.
    last_sample: u64,
    shares: Reading<Vec<Shares>>,
    /// Early R535 libraries fill 32-byte rows behind the name of the 24-byte call.
    wide_rows: bool,
}

#[derive(Clone, Copy, PartialEq)]
struct Shares {
    pid: u32,
    stamp: u64,
    /// Multiprocessors, memory, encoder, decoder, in per cent.
    percent: [u32; 4],
}

impl ProcessReader {
    /// A reader for this library.
    pub(crate) fn new(device: &Device) -> Self {
        Self {
            rows: Vec::with_capacity(FIRST_ROWS),
            samples: Vec::new(),
            newer_samples: Vec::new(),
            graphics: Reading::default(),
            mps: Reading::default(),
            last_sample: 0,
            shares: Reading::default(),
            wide_rows: device.exports("nvmlDeviceGetConfComputeMemSizeInfo")
                && !device.exports("nvmlDeviceGetRunningProcessDetailList"),
        }
    }

    /// Reads the compute list and merges the latest of the others.
    pub(crate) fn read(&mut self, device: &Device, processes: &mut GpuProcesses) {
        let start = Instant::now();
        let compute = self.list(device, Kind::Compute);
        let list = merge([&compute, &self.graphics, &self.mps]);
        processes.list = list.map(|mut list| {
            for process in &mut list {
                self.share(device, process);
            }
            list
        });
        processes.read = device.stamp(start);
    }

    /// Reads the graphics list.
    pub(crate) fn read_graphics(&mut self, device: &Device) {
        self.graphics = self.list(device, Kind::Graphics);
    }

    /// Reads the MPS list.
    pub(crate) fn read_mps(&mut self, device: &Device) {
        self.mps = self.list(device, Kind::Mps);
    }

    fn list(&mut self, device: &Device, kind: Kind) -> Reading<Vec<GpuProcess>> {
        let mut room = self.rows.capacity().max(FIRST_ROWS);
        // The list may grow between two calls.
        for _ in 0..3 {
            self.rows.clear();
            self.rows.resize_with(room, sys::nvmlProcessInfo_t::zeroed);
            let mut count = u32::try_from(room).unwrap_or(u32::MAX);
            match self.ask(device, kind, &mut count) {
                Ok(()) => {
                    self.rows.truncate(count as usize);
                    return self
                        .rows
                        .iter()
                        .map(|row| process(row, kind))
                        .collect::<Vec<_>>()
                        .into();
                }
                Err(_) if device.last_code() == Some(INSUFFICIENT_SIZE) => {
                    room = (room * 2).max(count as usize + 16).min(4096);
                }
                // Nothing found is an empty list.
                Err(Absence::NoData) => return vec![].into(),
                Err(absence) => return Reading::Absent(absence),
            }
        }
        Reading::Absent(Absence::Failed { what: "the list of processes kept growing".into() })
    }

    fn ask(&mut self, device: &Device, kind: Kind, count: &mut u32) -> Result<(), Absence> {
        let rows = self.rows.as_mut_ptr();
        let handle = device.handle();
        if !self.wide_rows {
            let answer = match kind {
                Kind::Compute => {
                    call!(
                        device,
                        nvmlDeviceGetComputeRunningProcesses_v3(handle, &raw mut *count, rows)
                    )
                }
                Kind::Graphics => {
                    call!(
                        device,
                        nvmlDeviceGetGraphicsRunningProcesses_v3(handle, &raw mut *count, rows)
                    )
                }
                Kind::Mps => {
                    call!(
                        device,
                        nvmlDeviceGetMPSComputeRunningProcesses_v3(handle, &raw mut *count, rows)
                    )
                }
            };
            if answer != Err(Absence::TooOld) {
                return answer;
            }
        }
        match kind {
            Kind::Compute => {
                call!(device, nvmlDeviceGetComputeRunningProcesses_v2(handle, count, rows))
            }
            Kind::Graphics => {
                call!(device, nvmlDeviceGetGraphicsRunningProcesses_v2(handle, count, rows))
            }
            Kind::Mps => {
                call!(device, nvmlDeviceGetMPSComputeRunningProcesses_v2(handle, count, rows))
            }
        }
    }

    /// Reads the shares of each process since the last time.
    pub(crate) fn read_shares(&mut self, device: &Device) {
        let answer = self.shares_of_samples(device);
        self.shares = match answer {
            Err(Absence::Unsupported | Absence::TooOld | Absence::Failed { .. }) => {
                self.shares_of_infos(device).into()
            }
            other => other.into(),
        };
        if let Reading::Value(shares) = &self.shares {
            let newest = shares.iter().map(|share| share.stamp).max();
            self.last_sample = self.last_sample.max(newest.unwrap_or(0));
        }
    }

    fn shares_of_samples(&mut self, device: &Device) -> Result<Vec<Shares>, Absence> {
        let mut count = 128;
        self.samples.resize_with(128, sys::nvmlProcessUtilizationSample_t::zeroed);
        let samples = self.samples.as_mut_ptr();
        let last = self.last_sample;
        let answer = call!(
            device,
            nvmlDeviceGetProcessUtilization(device.handle(), samples, &raw mut count, last)
        );
        told(answer, &self.samples, count, |s| Shares {
            pid: s.pid,
            stamp: s.timeStamp,
            percent: [s.smUtil, s.memUtil, s.encUtil, s.decUtil],
        })
    }

    fn shares_of_infos(&mut self, device: &Device) -> Result<Vec<Shares>, Absence> {
        self.newer_samples.resize_with(128, sys::nvmlProcessUtilizationInfo_v1_t::zeroed);
        let mut request = sys::nvmlProcessesUtilizationInfo_t::zeroed();
        request.version = super::session::version_word::<sys::nvmlProcessesUtilizationInfo_t>(1);
        request.processSamplesCount = 128;
        request.lastSeenTimeStamp = self.last_sample;
        request.procUtilArray = self.newer_samples.as_mut_ptr();
        let answer =
            call!(device, nvmlDeviceGetProcessesUtilizationInfo(device.handle(), &raw mut request));
        told(answer, &self.newer_samples, request.processSamplesCount, |s| Shares {
            pid: s.pid,
            stamp: s.timeStamp,
            percent: [s.smUtil, s.memUtil, s.encUtil, s.decUtil],
        })
    }

    /// Gives a listed process its shares. No sample of a listed process means that it did nothing:
    /// the driver leaves idle ones out.
    fn share(&self, device: &Device, process: &mut GpuProcess) {
        let shares = self.shares.as_ref().map(|shares| {
            let own = shares.iter().filter(|share| share.pid == process.pid);
            own.max_by_key(|share| share.stamp).map_or([0; 4], |share| share.percent)
        });
        let part = |at: usize| shares.as_ref().and_then(|percent| device.ratio(percent[at]));
        process.sm_ratio = part(0);
        process.memory_ratio = part(1);
        process.encoder_ratio = part(2);
        process.decoder_ratio = part(3);
    }
}

/// The rows that a call filled; nothing found is none.
fn told<T>(
    answer: Result<(), Absence>,
    rows: &[T],
    count: u32,
    share: impl Fn(&T) -> Shares,
) -> Result<Vec<Shares>, Absence> {
    match answer {
        Ok(()) => Ok(rows.iter().take(count as usize).map(share).collect()),
        Err(Absence::NoData) => Ok(vec![]),
        Err(absence) => Err(absence),
    }
}

fn process(row: &sys::nvmlProcessInfo_t, kind: Kind) -> GpuProcess {
    let instance = |id: u32| (id != NO_INSTANCE).then_some(id);
    GpuProcess {
        pid: row.pid,
        kind: match kind {
            Kind::Compute => "compute".into(),
            Kind::Graphics => "graphics".into(),
            Kind::Mps => "mps".into(),
        },
        used_bytes: match row.usedGpuMemory {
            u64::MAX => Reading::Absent(Absence::NoData),
            bytes if bytes > MOST_BYTES => Reading::Absent(Absence::OutOfRange),
            bytes => bytes.into(),
        },
        gpu_instance: instance(row.gpuInstanceId),
        compute_instance: instance(row.computeInstanceId),
        ..GpuProcess::default()
    }
}

/// One row a process: the same pid may stand in several lists, with the same memory in each.
fn merge(lists: [&Reading<Vec<GpuProcess>>; 3]) -> Reading<Vec<GpuProcess>> {
    if let Reading::Absent(absence) = lists[0]
        && lists.iter().all(|list| list.value().is_none())
    {
        return Reading::Absent(absence.clone());
    }
    let mut merged: Vec<GpuProcess> = Vec::new();
    for row in lists.into_iter().filter_map(Reading::value).flatten() {
        let same = merged.iter_mut().find(|known| {
            (known.pid, known.gpu_instance, known.compute_instance)
                == (row.pid, row.gpu_instance, row.compute_instance)
        });
        match same {
            Some(known) => {
                if !known.kind.split('+').any(|kind| kind == row.kind) {
                    known.kind = format!("{}+{}", known.kind, row.kind);
                }
                let larger = match (known.used_bytes.get(), row.used_bytes.get()) {
                    (Some(a), Some(b)) => a.max(b).into(),
                    (None, Some(b)) => b.into(),
                    _ => known.used_bytes.clone(),
                };
                known.used_bytes = larger;
            }
            None => merged.push(row.clone()),
        }
    }
    merged.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: u32, kind: Kind, bytes: u64) -> GpuProcess {
        let mut row = sys::nvmlProcessInfo_t::zeroed();
        row.pid = pid;
        row.usedGpuMemory = bytes;
        row.gpuInstanceId = NO_INSTANCE;
        row.computeInstanceId = NO_INSTANCE;
        process(&row, kind)
    }

    #[test]
    fn a_process_in_two_lists_is_one_row_and_counts_once() {
        let compute = vec![row(7, Kind::Compute, 100)].into();
        let graphics = vec![row(7, Kind::Graphics, 100), row(8, Kind::Graphics, 5)].into();
        let merged = merge([&compute, &graphics, &Reading::UNSUPPORTED]).value().cloned().unwrap();
        assert_eq!(merged.len(), 2);
        assert_eq!(
            (merged[0].kind.as_str(), merged[0].used_bytes.get()),
            ("compute+graphics", Some(100))
        );
    }

    #[test]
    fn the_sentinel_for_unavailable_memory_is_a_reason() {
        assert_eq!(row(7, Kind::Compute, u64::MAX).used_bytes.value(), None);
    }

    #[test]
    fn lists_that_all_fail_are_not_an_empty_list() {
        let failed = Reading::Absent(Absence::Denied { need: "root".into() });
        assert_eq!(merge([&failed, &Reading::UNSUPPORTED, &Reading::UNSUPPORTED]).value(), None);
    }
}

//! One GPU at one instant: every figure follows from the utilisation unless the scenario gives
//! it, so that power, clocks, temperature, bus and link traffic tell the same story, and counters
//! are the integrals of the rates beside them.

use crate::machine::{Gpu, Process};
use crate::series::Series;
use crate::site::Site;
use crate::spec::Kind;

/// Bytes in a MiB.
pub(crate) const MIB: u64 = 1 << 20;

/// A GPU (or one of its MIG instances) at second `t`.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The box.
    pub site: &'static Site,
    /// The GPU.
    pub gpu: &'static Gpu,
    /// The instance, when asked through its handle.
    pub mig: Option<usize>,
    /// The second.
    pub t: f64,
}

/// A row of a process list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessRow {
    /// The pid.
    pub pid: u32,
    /// Bytes, `u64::MAX` when not available.
    pub bytes: u64,
    /// Instance ids, when on MIG.
    pub instance: Option<(u32, u32)>,
    /// Per cent of the SMs.
    pub sm: f64,
    /// Per cent of memory time.
    pub mem: f64,
}

fn at(series: Option<&Series>, t: f64, otherwise: impl FnOnce() -> f64) -> f64 {
    series.map_or_else(otherwise, |series| series.at(t))
}

fn percent(value: f64) -> f64 {
    value.clamp(0.0, 100.0)
}

impl Now {
    /// MIG is on.
    pub fn mig_on(&self) -> bool {
        self.gpu.spec.mig_enabled || !self.gpu.spec.mig.is_empty()
    }

    /// Memory is the host's.
    pub fn is_unified(&self) -> bool {
        self.gpu.spec.memory.as_deref() == Some("unsupported")
    }

    fn listed(&self) -> impl Iterator<Item = (u32, &'static Process)> {
        let (site, t) = (self.site, self.t);
        self.gpu.processes.iter().filter_map(move |position| {
            let process = site.machine.processes.get(*position)?;
            Some((process.pid(t, &site.pid_lines)?, process))
        })
    }

    /// The processes of a kind, those of the scenario and, for compute, those of the CUDA
    /// stand-in. Through a MIG handle only that instance's.
    pub fn processes(&self, kind: Kind) -> Vec<ProcessRow> {
        let mut rows = Vec::new();
        for (pid, process) in self.listed().filter(|(_, process)| process.spec.kind == kind) {
            if self.mig.is_some() && process.spec.mig != self.mig {
                continue;
            }
            let instance = process.spec.mig.and_then(|slot| self.gpu.spec.mig.get(slot));
            rows.push(ProcessRow {
                pid,
                bytes: process.spec.bytes.at(self.t) as u64,
                instance: instance.map(|instance| (instance.gi, instance.ci)),
                sm: at(process.spec.sm.as_ref(), self.t, || 0.0),
                mem: at(process.spec.mem.as_ref(), self.t, || 0.0),
            });
        }
        if kind == Kind::Compute && self.mig.is_none() {
            for holder in self.holders().iter().filter(|holder| holder.is_listed(self.gpu.index)) {
                let bytes = holder.bytes(self.gpu.index).load(std::sync::atomic::Ordering::Relaxed);
                let pid = holder.pid();
                rows.push(ProcessRow { pid, bytes, instance: None, sm: 0.0, mem: 0.0 });
            }
        }
        rows
    }

    fn holders(&self) -> std::sync::Arc<Vec<std::sync::Arc<crate::Holder>>> {
        let epoch = self.site.holders_epoch().load(std::sync::atomic::Ordering::Relaxed);
        self.site.holders.list(epoch)
    }

    /// Total memory in bytes.
    pub fn memory_total(&self) -> u64 {
        let instance = self.mig.and_then(|slot| self.gpu.spec.mig.get(slot));
        instance.map_or(self.gpu.spec.memory_mib, |instance| instance.memory_mib) * MIB
    }

    /// The driver's own share, in bytes.
    pub fn memory_reserved(&self) -> u64 {
        if self.mig.is_some() { 0 } else { self.gpu.spec.reserved_mib * MIB }
    }

    /// What clients hold, in bytes; never more than there is.
    pub fn memory_used(&self) -> u64 {
        let limit = self.memory_total().saturating_sub(self.memory_reserved());
        if let (Some(used), None) = (&self.gpu.spec.used, self.mig) {
            return (used.at(self.t) as u64).min(limit);
        }
        let mut used = match self.mig.and_then(|slot| self.gpu.spec.mig.get(slot)) {
            Some(instance) => instance.base_mib * MIB,
            None => self.gpu.spec.mig.iter().map(|instance| instance.base_mib * MIB).sum::<u64>(),
        };
        if self.mig.is_none() {
            used += at(self.gpu.spec.unattributed.as_ref(), self.t, || 0.0) as u64;
        }
        let seen = |kind| self.processes(kind).into_iter().map(|row| row.bytes);
        let rows = seen(Kind::Compute).chain(seen(Kind::Graphics)).chain(seen(Kind::Mps));
        used += rows.filter(|bytes| *bytes != u64::MAX).sum::<u64>();
        used.min(limit)
    }

    /// Per cent of time in which a kernel ran.
    pub fn utilization(&self) -> f64 {
        if let Some(instance) = self.mig.and_then(|slot| self.gpu.spec.mig.get(slot)) {
            return percent(at(instance.utilization.as_ref(), self.t, || 0.0));
        }
        percent(at(self.gpu.spec.utilization.as_ref(), self.t, || {
            if self.mig_on() {
                return self.shares(|series| series.at(self.t));
            }
            self.listed().map(|(_, p)| at(p.spec.sm.as_ref(), self.t, || 0.0)).sum()
        }))
    }

    /// What the instances come to, each by its share of the multiprocessors.
    fn shares(&self, of: impl Fn(&Series) -> f64) -> f64 {
        let all = f64::from(self.gpu.spec.sm_count.max(1));
        let busy = self.gpu.spec.mig.iter().filter_map(|instance| {
            Some(of(instance.utilization.as_ref()?) * f64::from(instance.sm_count) / all)
        });
        busy.sum()
    }

    /// Per cent times seconds since the start, for the counters. Scenario processes count by
    /// their window; overlapping ones may add to more than 100 here, which keeps it monotone.
    pub fn busy(&self) -> f64 {
        if let Some(series) = &self.gpu.spec.utilization {
            return series.integral(self.t);
        }
        if self.mig_on() {
            return self.shares(|series| series.integral(self.t));
        }
        let processes = &self.site.machine.processes;
        let mine = self.gpu.processes.iter().filter_map(|position| processes.get(*position));
        mine.filter_map(|process| {
            let until = process.spec.end.map_or(self.t, |end| end.min(self.t));
            let sm = process.spec.sm.as_ref()?;
            Some(sm.integral(until) - sm.integral(process.spec.start.min(until)))
        })
        .sum()
    }

    /// Per cent of time in which memory was accessed.
    pub fn memory_utilization(&self) -> f64 {
        percent(at(self.gpu.spec.memory_utilization.as_ref(), self.t, || {
            let given =
                self.listed().filter_map(|(_, p)| p.spec.mem.as_ref()).map(|s| s.at(self.t));
            let sum: f64 = given.sum();
            if sum > 0.0 { sum } else { self.utilization() * 0.45 }
        }))
    }

    /// Encoder, per cent.
    pub fn encoder(&self) -> f64 {
        percent(at(self.gpu.spec.encoder.as_ref(), self.t, || 0.0))
    }

    /// Decoder, per cent.
    pub fn decoder(&self) -> f64 {
        percent(at(self.gpu.spec.decoder.as_ref(), self.t, || 0.0))
    }

    /// Watts at most by the limit in force.
    pub fn power_limit(&self) -> f64 {
        at(self.gpu.spec.power_limit.as_ref(), self.t, || self.gpu.spec.power_watts.max)
    }

    fn power_slope(&self) -> f64 {
        let watts = self.gpu.spec.power_watts;
        let full = if watts.max > 0.0 { watts.max } else { watts.idle * 15.0 };
        // Load captures of H100 and H200 draw 0.9 of the limit at 100 per cent.
        (full * 0.9 - watts.idle).max(0.0) / 100.0
    }

    /// Watts.
    pub fn power(&self) -> f64 {
        at(self.gpu.spec.power.as_ref(), self.t, || {
            let drawn = self.gpu.spec.power_watts.idle + self.power_slope() * self.utilization();
            if self.power_limit() > 0.0 { drawn.min(self.power_limit()) } else { drawn }
        })
    }

    /// Joules since the driver was loaded; the first time that was an hour before second 0.
    pub fn energy(&self) -> f64 {
        match self.site.machine.loaded_at(self.t) {
            None => 3600.0 * self.gpu.spec.power_watts.idle + self.drawn(),
            Some(loaded) => self.drawn() - Self { t: loaded, ..*self }.drawn(),
        }
    }

    /// Joules since second 0.
    fn drawn(&self) -> f64 {
        match &self.gpu.spec.power {
            Some(series) => series.integral(self.t),
            None => self.gpu.spec.power_watts.idle * self.t + self.power_slope() * self.busy(),
        }
    }

    /// Core, degrees Celsius.
    pub fn temperature(&self) -> f64 {
        at(self.gpu.spec.temperature.as_ref(), self.t, || {
            let celsius = self.gpu.spec.celsius;
            celsius.idle + (celsius.load - celsius.idle) * self.utilization() / 100.0
        })
    }

    /// Memory, degrees Celsius.
    pub fn memory_temperature(&self) -> f64 {
        self.gpu.spec.celsius.memory + self.utilization() * 0.06
    }

    /// Degrees until the GPU slows down.
    pub fn margin(&self) -> f64 {
        87.0 - self.temperature()
    }

    fn working(&self) -> bool {
        self.utilization() >= 1.0
    }

    /// SM and graphics clock, MHz.
    pub fn sm_clock(&self) -> f64 {
        at(self.gpu.spec.sm_clock.as_ref(), self.t, || {
            let clocks = self.gpu.spec.clocks;
            f64::from(if self.working() { clocks.graphics } else { clocks.idle })
        })
    }

    /// Memory clock, MHz.
    pub fn memory_clock(&self) -> f64 {
        at(self.gpu.spec.memory_clock.as_ref(), self.t, || {
            let clocks = self.gpu.spec.clocks;
            let idle = clocks.memory_idle.unwrap_or(clocks.memory);
            f64::from(if self.working() { clocks.memory } else { idle })
        })
    }

    /// Video clock, MHz.
    pub fn video_clock(&self) -> f64 {
        let clocks = self.gpu.spec.clocks;
        f64::from(if self.working() { clocks.video } else { clocks.idle.max(clocks.video / 3) })
    }

    /// Why the clocks are what they are: idle, or the power cap when it is reached.
    pub fn reasons(&self) -> u64 {
        at(self.gpu.spec.reasons.as_ref(), self.t, || {
            if !self.working() {
                1.0
            } else if self.power_limit() > 0.0 && self.power() >= self.power_limit() * 0.99 {
                4.0
            } else {
                0.0
            }
        }) as u64
    }

    /// Nanoseconds a reason bit was set.
    pub fn reason_nanoseconds(&self, bit: u64) -> u64 {
        let set = |mask: f64| f64::from(u8::from(mask as u64 & bit != 0));
        let seconds = self.gpu.spec.reasons.as_ref().map_or(0.0, |s| s.integral_where(self.t, set));
        (seconds * 1e9) as u64
    }

    /// P-state: data-centre parts stay in P0, the others rest in P8 and work in P2.
    pub fn pstate(&self) -> u32 {
        at(self.gpu.spec.pstate.as_ref(), self.t, || {
            match (self.gpu.spec.datacenter, self.working()) {
                (true, _) => 0.0,
                (false, true) => 2.0,
                (false, false) => 8.0,
            }
        }) as u32
    }

    /// The best generation of GPU and slot together.
    pub fn pcie_generation_max(&self) -> u32 {
        let pcie = self.gpu.spec.pcie;
        pcie.slot_generation.map_or(pcie.generation, |slot| slot.min(pcie.generation))
    }

    /// Link generation now; consumer parts fall to 1 at rest.
    pub fn pcie_generation(&self) -> u32 {
        at(self.gpu.spec.pcie_generation.as_ref(), self.t, || {
            let rests = !self.gpu.spec.datacenter && !self.working();
            f64::from(if rests {
                self.pcie_generation_max().min(1)
            } else {
                self.pcie_generation_max()
            })
        }) as u32
    }

    /// Link width now.
    pub fn pcie_width(&self) -> u32 {
        at(self.gpu.spec.pcie_width.as_ref(), self.t, || f64::from(self.gpu.spec.pcie.width)) as u32
    }

    /// From the GPU to the host, MiB/s.
    pub fn pcie_tx(&self) -> f64 {
        at(self.gpu.spec.pcie_tx.as_ref(), self.t, || 0.344 + self.utilization() * 1.8)
    }

    /// From the host to the GPU, MiB/s.
    pub fn pcie_rx(&self) -> f64 {
        at(self.gpu.spec.pcie_rx.as_ref(), self.t, || 0.321 + self.utilization() * 2.9)
    }

    /// Bytes sent and received since the driver loaded.
    pub fn pcie_bytes(&self) -> (u64, u64) {
        let sum = |given: Option<&Series>, rest: f64, slope: f64| {
            let mib = given.map_or_else(
                || rest * self.t + slope * self.busy(),
                |series| series.integral(self.t),
            );
            4_000_000_000 + (mib * MIB as f64) as u64
        };
        let spec = &self.gpu.spec;
        (sum(spec.pcie_tx.as_ref(), 0.344, 1.8), sum(spec.pcie_rx.as_ref(), 0.321, 2.9))
    }

    /// Replays since the reset.
    pub fn pcie_replays(&self) -> u64 {
        at(
            self.gpu.spec.pcie_replays.as_ref(),
            self.t,
            || if self.gpu.index == 0 { 9.0 } else { 0.0 },
        ) as u64
    }

    /// A link that works.
    pub fn nvlink_up(&self, link: u32) -> bool {
        link < self.gpu.spec.nvlink.links && !self.gpu.spec.nvlink_down.contains(&link)
    }

    fn nvlink_share(&self) -> f64 {
        let links = self.gpu.spec.nvlink.links;
        let up = (0..links).filter(|link| self.nvlink_up(*link)).count();
        if up == 0 { 0.0 } else { 1.0 / up as f64 }
    }

    /// MiB/s each way, of one link or of all.
    pub fn nvlink_rate(&self, link: Option<u32>) -> f64 {
        let slope = f64::from(self.gpu.spec.nvlink.links) * 20.0;
        let all =
            at(self.gpu.spec.nvlink_rate.as_ref(), self.t, || self.utilization() * slope / 10.0);
        match link {
            None => all,
            Some(link) if self.nvlink_up(link) => all * self.nvlink_share(),
            Some(_) => 0.0,
        }
    }

    /// KiB each way since the driver loaded, of one link or of all.
    pub fn nvlink_kib(&self, link: Option<u32>) -> f64 {
        let slope = f64::from(self.gpu.spec.nvlink.links) * 2.0;
        let mib = match &self.gpu.spec.nvlink_rate {
            Some(series) => series.integral(self.t),
            None => self.busy() * slope,
        };
        let all = 50_000_000.0 + mib * 1024.0;
        match link {
            None => all,
            Some(link) if self.nvlink_up(link) => (all * self.nvlink_share()).floor(),
            Some(_) => 0.0,
        }
    }

    /// CRC errors of a link since the driver loaded.
    pub fn nvlink_errors(&self, link: u32) -> u64 {
        self.value(self.gpu.nvlink_errors.get(&link))
    }

    /// A series of the scenario, 0 when absent.
    pub fn value(&self, series: Option<&Series>) -> u64 {
        at(series, self.t, || 0.0) as u64
    }
}

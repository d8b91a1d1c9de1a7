//! A sampler that invents: a day of snapshots at one a second, as fast as they are taken.
//!
//! Begins with a real snapshot of the stand-in box (8 GPUs, 64 GPU processes) and lets every value
//! move that moves on a busy box, with noise of the kind that its source has: shares that the driver
//! rounds to per cent stay round, averages of hardware counters carry all digits of a double,
//! counters are the sums of their rates, stamps jitter by milliseconds. Writes what
//! `infertop sampler` writes, and ends with its standard input like that one.
//!
//! ```sh
//! cargo run --release --example day -- --frames 3600 > hour.frames
//! ```

use std::io::{Read as _, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use probes::nvml::gpm::Gpm;
use probes::proc::Process;
use probes::reading::Reading;
use probes::snapshot::{Gpu, Snapshot, Stamp};

const BOX: &[u8] = include_bytes!("day/box.frame.zst");
const MOST_FRAME_BYTES: usize = 64 << 20;
/// The driver gives memory to processes in pieces of this size.
const PIECE: u64 = 2 << 20;

fn main() -> anyhow::Result<()> {
    let options = Options::parse()?;
    std::thread::spawn(|| {
        // The parent's end is ours.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        std::process::exit(0);
    });
    let mut day = Day::new(&options)?;
    let mut output = std::io::stdout().lock();
    for _ in 0..options.frames {
        let bytes = day.next().encode()?;
        output.write_all(&u32::try_from(bytes.len())?.to_le_bytes())?;
        output.write_all(&bytes)?;
    }
    output.flush()?;
    // Who reads has still to write; an end would be taken for a sampler that broke down.
    loop {
        std::thread::park();
    }
}

struct Options {
    frames: u64,
    start_ms: u64,
    /// Averages of hardware counters have six digits behind the point, rates none: to see what their
    /// last digits cost.
    rounded: bool,
}

impl Options {
    /// `--frames N`, `--start MS`, `--rounded`. What else a sampler is told (`sampler`, roots, `--interval`) is
    /// passed over, so that a parent can start this in its place.
    fn parse() -> anyhow::Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let start_ms = u64::try_from(since.as_millis())?;
        let mut options = Self { frames: 86_400, start_ms, rounded: false };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let target = match argument.as_str() {
                "--frames" => &mut options.frames,
                "--start" => &mut options.start_ms,
                "--rounded" => {
                    options.rounded = true;
                    continue;
                }
                _ => continue,
            };
            let value = arguments.next().with_context(|| format!("{argument} wants a number"))?;
            *target = value.parse().with_context(|| format!("{argument} {value} is no number"))?;
        }
        Ok(options)
    }
}

/// The box as it goes on.
struct Day {
    snapshot: Snapshot,
    chance: Chance,
    gpus: Vec<Load>,
    processes: Vec<Work>,
    rounded: bool,
}

/// What a GPU does, apart from noise.
struct Load {
    busy: f64,
    celsius: f64,
    pcie: (f64, f64),
    nvlink: (f64, f64),
    joules: f64,
}

/// What a process does.
#[derive(Clone, Copy)]
struct Work {
    pid: u32,
    pieces: u64,
    ticks: u64,
}

impl Day {
    fn new(options: &Options) -> anyhow::Result<Self> {
        let mut frame = Vec::new();
        zstd::stream::read::Decoder::new(BOX)?
            .take(MOST_FRAME_BYTES as u64)
            .read_to_end(&mut frame)?;
        let mut snapshot = Snapshot::decode(&frame)?;
        snapshot.taken_at_ms = options.start_ms;
        snapshot.sequence = 0;
        let gpus = snapshot.gpus.iter().map(Load::of).collect();
        let processes = snapshot.processes.iter().map(Work::of).collect();
        let (chance, rounded) = (Chance(0x9e37_79b9_7f4a_7c15), options.rounded);
        Ok(Self { snapshot, chance, gpus, processes, rounded })
    }

    /// A second later.
    fn next(&mut self) -> &Snapshot {
        let (snapshot, chance) = (&mut self.snapshot, &mut self.chance);
        snapshot.sequence += 1;
        let elapsed_ms = 1000 + chance.below(3) - 1;
        snapshot.taken_at_ms += elapsed_ms;
        let now_ms = snapshot.taken_at_ms;
        for work in &mut self.processes {
            work.go_on(chance);
        }
        for (gpu, load) in snapshot.gpus.iter_mut().zip(&mut self.gpus) {
            load.go_on(gpu, chance, self.rounded);
            let mut used = 0;
            let Reading::Value(list) = &mut gpu.processes.list else { continue };
            for process in list {
                if let Some(work) = self.processes.iter().find(|work| work.pid == process.pid) {
                    process.used_bytes = (work.pieces * PIECE).into();
                    used += work.pieces * PIECE;
                }
                process.sm_ratio = per_cent(0.11 * load.busy + 0.01 * chance.normal());
                process.memory_ratio = per_cent(0.05 * load.busy + 0.01 * chance.normal());
            }
            let memory = &mut gpu.memory;
            let (total, reserved) = (memory.total_bytes.get(), memory.reserved_bytes.get());
            let free = total.unwrap_or(0).saturating_sub(reserved.unwrap_or(0) + used);
            (memory.used_bytes, memory.free_bytes) = (used.into(), free.into());
            stamps(gpu, now_ms, chance);
        }
        for process in &mut snapshot.processes {
            let work = self.processes.iter().find(|work| work.pid == process.pid);
            if let Some(work) = work {
                work.show(process, elapsed_ms, now_ms, &snapshot.gpus, chance);
            }
        }
        // As the sampler sorts them.
        snapshot.processes.sort_by_key(|process| {
            (std::cmp::Reverse(process.gpu_bytes()), process.gpus.is_empty(), process.pid)
        });
        host(snapshot, chance);
        own_cost(snapshot, chance);
        snapshot
    }
}

impl Load {
    fn of(gpu: &Gpu) -> Self {
        Self {
            busy: 0.9,
            celsius: 60.0,
            pcie: (0.0, 0.0),
            nvlink: (0.0, 0.0),
            joules: gpu.power.energy_joules_total.get().unwrap_or(0.0),
        }
    }

    fn go_on(&mut self, gpu: &mut Gpu, chance: &mut Chance, rounded: bool) {
        self.busy =
            (self.busy + 0.02 * (0.85 - self.busy) + 0.02 * chance.normal()).clamp(0.0, 1.0);
        let busy = self.busy;
        gpu.utilization.gpu_ratio = per_cent(busy + 0.02 * chance.normal());
        gpu.utilization.memory_ratio = per_cent(0.45 * busy + 0.02 * chance.normal());
        averages(&mut gpu.gpm, busy, rounded, chance);
        let clocks = &mut gpu.clocks;
        let steps = chance.below(4) + if busy > 0.95 { 6 } else { 0 };
        clocks.sm_mhz = u32::try_from(1980 - 15 * steps).unwrap_or(0).into();
        clocks.graphics_mhz = clocks.sm_mhz.clone();
        let capped = chance.below(8) == 0;
        clocks.reasons = if capped { 4 } else { 0 }.into();
        if capped {
            let capped_ns = clocks.power_cap_ns_total.get().unwrap_or(0);
            clocks.power_cap_ns_total = (capped_ns + chance.below(1_000_000_000)).into();
        }
        let watts = 150.0 + 500.0 * busy + 8.0 * chance.normal();
        self.joules += watts;
        gpu.power.draw_watts = thousandths(watts);
        gpu.power.energy_joules_total = thousandths(self.joules);
        self.celsius += 0.1 * (35.0 + watts / 20.0 - self.celsius) + 0.3 * chance.normal();
        gpu.temperature.gpu_celsius = whole(self.celsius);
        gpu.temperature.memory_celsius = whole(self.celsius - 5.0 + 0.5 * chance.normal());
        gpu.temperature.margin_celsius = whole(87.0 - self.celsius);
        self.traffic(gpu);
    }

    /// Counters are the sums of the rates beside them.
    fn traffic(&mut self, gpu: &mut Gpu) {
        let rate = |reading: &Reading<f64>| reading.get().unwrap_or(0.0);
        let (pcie, nvlink) = (&mut gpu.pcie, &mut gpu.nvlink);
        pcie.tx_bytes_per_second = gpu.gpm.pcie_tx_bytes_per_second.clone();
        pcie.rx_bytes_per_second = gpu.gpm.pcie_rx_bytes_per_second.clone();
        self.pcie.0 += rate(&pcie.tx_bytes_per_second);
        self.pcie.1 += rate(&pcie.rx_bytes_per_second);
        pcie.tx_bytes_total = count(self.pcie.0);
        pcie.rx_bytes_total = count(self.pcie.1);
        nvlink.tx_bytes_per_second = gpu.gpm.nvlink_tx_bytes_per_second.clone();
        nvlink.rx_bytes_per_second = gpu.gpm.nvlink_rx_bytes_per_second.clone();
        self.nvlink.0 += rate(&nvlink.tx_bytes_per_second);
        self.nvlink.1 += rate(&nvlink.rx_bytes_per_second);
        nvlink.tx_kib_total = count(self.nvlink.0 / 1024.0);
        nvlink.rx_kib_total = count(self.nvlink.1 / 1024.0);
    }
}

/// Averages of hardware counters: quotients, with all their digits.
fn averages(gpm: &mut Gpm, busy: f64, rounded: bool, chance: &mut Chance) {
    let digits = |value: f64, ten: f64| if rounded { (value * ten).round() / ten } else { value };
    let mut share =
        |mean: f64| digits((busy * mean * (1.0 + 0.05 * chance.normal())).clamp(0.0, 1.0), 1e6);
    gpm.graphics_ratio = share(0.98).into();
    gpm.sm_active_ratio = share(0.92).into();
    gpm.sm_occupancy_ratio = share(0.41).into();
    gpm.integer_ratio = share(0.18).into();
    gpm.tensor_ratio = share(0.36).into();
    gpm.tensor_hmma_ratio = gpm.tensor_ratio.clone();
    gpm.dram_bandwidth_ratio = share(0.52).into();
    gpm.fp32_ratio = share(0.07).into();
    gpm.fp16_ratio = share(0.05).into();
    for (hit, miss) in [
        (&mut gpm.l2_host_hit_ratio, &mut gpm.l2_host_miss_ratio),
        (&mut gpm.l2_peer_hit_ratio, &mut gpm.l2_peer_miss_ratio),
        (&mut gpm.l2_dram_hit_ratio, &mut gpm.l2_dram_miss_ratio),
    ] {
        let per_cent = 60.0 * share(0.9);
        *hit = digits(per_cent / 100.0, 1e6).into();
        *miss = digits((100.0 - per_cent) / 100.0, 1e6).into();
    }
    // The driver tells MiB/s.
    let mut rate = |mean: f64| digits(1_048_576.0 * mean * share(1.0), 1.0).into();
    gpm.pcie_tx_bytes_per_second = rate(180.0);
    gpm.pcie_rx_bytes_per_second = rate(290.0);
    gpm.nvlink_tx_bytes_per_second = rate(3600.0);
    gpm.nvlink_rx_bytes_per_second = rate(3500.0);
}

fn stamps(gpu: &mut Gpu, now_ms: u64, chance: &mut Chance) {
    let begin_ms = now_ms - 2 - chance.below(2);
    for (stamp, mean_us) in [
        (&mut gpu.memory.read, 700.0),
        (&mut gpu.utilization.read, 200.0),
        (&mut gpu.clocks.read, 300.0),
        (&mut gpu.power.read, 60.0),
        (&mut gpu.temperature.read, 110.0),
        (&mut gpu.ecc.read, 20.0),
        (&mut gpu.gpm.read, 650.0),
        (&mut gpu.pcie.read, 12.0),
        (&mut gpu.nvlink.read, 3.0),
        (&mut gpu.processes.read, 330.0),
    ] {
        *stamp = Stamp { at_ms: begin_ms + chance.below(3), took_us: chance.duration_us(mean_us) };
    }
}

impl Work {
    fn of(process: &Process) -> Self {
        let pieces =
            process.gpus.iter().filter_map(|part| part.gpu_bytes.get()).sum::<u64>() / PIECE;
        Self { pid: process.pid, pieces, ticks: u64::from(process.pid) * 10 }
    }

    fn go_on(&mut self, chance: &mut Chance) {
        // A cache that grows and is emptied, in steps of the allocator.
        if chance.below(4) == 0 {
            self.pieces = (self.pieces + chance.below(9)).saturating_sub(chance.below(9)).max(64);
        }
        self.ticks += 60 + chance.below(40);
    }

    fn show(
        self,
        process: &mut Process,
        elapsed_ms: u64,
        now_ms: u64,
        gpus: &[Gpu],
        chance: &mut Chance,
    ) {
        process.read = Stamp { at_ms: now_ms, took_us: chance.duration_us(6.0) };
        let before = process.cpu_seconds_total.get().unwrap_or(0.0);
        let seconds = self.ticks as f64 / 100.0;
        process.cpu_seconds_total = seconds.into();
        // As the probe does it: whole clock ticks by whole milliseconds.
        let ticks = ((seconds - before) * 100.0).round() / 100.0;
        process.cpu_ratio = (ticks / (elapsed_ms as f64 / 1000.0)).into();
        let grown = chance.below(3) * 4096 * chance.below(64);
        let rss_bytes = process.rss_bytes.get().unwrap_or(0).max(900 << 20);
        process.rss_bytes = (rss_bytes + grown).saturating_sub(chance.below(64) * 4096).into();
        let letter = if chance.below(5) == 0 { "S" } else { "R" };
        if process.state.text() != letter {
            process.state = letter.to_string().into();
            process.state_since_ms = now_ms.into();
        }
        for part in &mut process.gpus {
            part.gpu_bytes = (self.pieces * PIECE).into();
            let gpu = gpus.iter().find(|gpu| gpu.index == part.gpu_index);
            let list = gpu.and_then(|gpu| gpu.processes.list.value());
            let row = list.into_iter().flatten().find(|row| row.pid == process.pid);
            if let Some(row) = row {
                part.sm_ratio = row.sm_ratio.clone();
                part.memory_ratio = row.memory_ratio.clone();
            }
        }
    }
}

fn host(snapshot: &mut Snapshot, chance: &mut Chance) {
    let now_ms = snapshot.taken_at_ms;
    let host = &mut snapshot.host;
    host.read = Stamp { at_ms: now_ms, took_us: chance.duration_us(260.0) };
    host.uptime_seconds =
        host.uptime_seconds.get().map_or(Reading::UNSUPPORTED, |s| (s + 1).into());
    // Clock ticks of all CPUs.
    let ticks = 6400 + chance.below(3);
    host.cpu_ratio = ((2200.0 + 300.0 * chance.normal()).round() / ticks as f64).into();
    host.iowait_ratio = (chance.below(20) as f64 / ticks as f64).into();
    if snapshot.sequence.is_multiple_of(5) {
        let mut load = |mean: f64| ((mean + chance.normal()) * 100.0).round() / 100.0;
        host.load = vec![load(40.0), load(39.0), load(38.0)].into();
    }
    let total = host.memory_total_bytes.get().unwrap_or(1 << 30);
    host.memory_available_bytes = (total / 2 + 4096 * chance.below(50_000)).into();
    host.memory_cached_bytes = (total / 4 + 4096 * chance.below(10_000)).into();
    host.processes = u32::try_from(2100 + chance.below(20)).unwrap_or(0).into();
    snapshot.driver.read = Stamp { at_ms: now_ms, took_us: chance.duration_us(28.0) };
}

fn own_cost(snapshot: &mut Snapshot, chance: &mut Chance) {
    let own = &mut snapshot.self_cost;
    own.nvml_calls_total += 90 + chance.below(20);
    own.nvml_seconds_total += 0.03 + 0.001 * chance.normal();
    own.nvml_calls_per_gpu = u32::try_from(11 + chance.below(5)).unwrap_or(0);
    let seconds = own.cpu_seconds_total.get().unwrap_or(0.0);
    let spent = ((0.004 + 0.0003 * chance.normal()) * 1e9).round() / 1e9;
    own.cpu_seconds_total = (seconds + spent).into();
    own.cpu_ratio = (spent / (1.0 + 0.0001 * chance.normal())).into();
    own.spread_us = chance.duration_us(400.0);
    for source in &mut own.sources {
        source.took_us = chance.duration_us(200.0);
    }
    if snapshot.sequence.is_multiple_of(5) {
        own.rss_bytes = (9_000_000 + 4096 * chance.below(60)).into();
        for call in &mut own.calls {
            call.count += 40;
            call.mean_us = 200.0 + 5.0 * chance.normal();
        }
    }
}

/// A share as the driver rounds it.
fn per_cent(share: f64) -> Reading<f64> {
    ((share.clamp(0.0, 1.0) * 100.0).round() / 100.0).into()
}

fn thousandths(number: f64) -> Reading<f64> {
    ((number * 1000.0).round() / 1000.0).into()
}

#[expect(clippy::cast_possible_truncation, reason = "temperatures are small")]
fn whole(number: f64) -> Reading<i32> {
    (number.round() as i32).into()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sums of positive rates over a day"
)]
fn count(number: f64) -> Reading<u64> {
    (number as u64).into()
}

/// Chance that is the same each time.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Mean 0, deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// About this long, now and then several times as long.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    fn duration_us(&mut self, mean_us: f64) -> u32 {
        let long = if self.below(40) == 0 { 4.0 } else { 1.0 };
        (mean_us * long * (1.0 + 0.25 * self.normal())).clamp(0.0, 1e6) as u32
    }
}

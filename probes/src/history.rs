//! What the last snapshots said, for sparklines and trends.
//!
//! Keeps a ring a GPU and tracked metric, as 32-bit floats; a missing value is NaN and stays a gap.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::metric::{Metric, Pick};
use crate::nvml;
use crate::snapshot::{Gpu, Snapshot};

/// Metrics of the table of which the past is kept.
pub const TRACKED: &[&str] = &[
    "infertop_gpu_busy_ratio",
    "infertop_gpu_memory_used_bytes",
    "infertop_gpu_memory_bandwidth_busy_ratio",
    "infertop_gpu_power_draw_watts",
    "infertop_gpu_temperature_celsius",
    "infertop_gpu_sm_clock_hertz",
    "infertop_gpu_pcie_tx_bytes_per_second",
    "infertop_gpu_pcie_rx_bytes_per_second",
    "infertop_gpu_pcie_replays_total",
    "infertop_gpu_nvlink_tx_bytes_per_second",
    "infertop_gpu_nvlink_rx_bytes_per_second",
    "infertop_gpu_dram_bandwidth_ratio",
    "infertop_gpu_l2_dram_hit_ratio",
    "infertop_gpu_tensor_pipe_ratio",
];

/// The last values of the tracked metrics.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "Sent", into = "Sent")]
pub struct History {
    capacity: usize,
    rows: Vec<&'static Metric<Gpu>>,
    /// By GPU (UUID, or number while the UUID is unknown); one ring a row of `rows`.
    gpus: HashMap<String, Vec<VecDeque<f32>>>,
    host_cpu: VecDeque<f32>,
    last_sequence: Option<u64>,
    lost: u64,
}

impl History {
    /// An empty history that keeps `capacity` snapshots.
    pub fn new(capacity: usize) -> Self {
        let rows = nvml::metrics().filter(|metric| TRACKED.contains(&metric.name)).collect();
        Self {
            capacity,
            rows,
            gpus: HashMap::new(),
            host_cpu: VecDeque::new(),
            last_sequence: None,
            lost: 0,
        }
    }

    /// Takes a snapshot in. A gap in its sequence counts as lost snapshots; a restart does not.
    pub fn push(&mut self, snapshot: &Snapshot) {
        if let Some(last) = self.last_sequence
            && snapshot.sequence > last
        {
            self.lost += snapshot.sequence - last - 1;
        }
        self.last_sequence = Some(snapshot.sequence);
        put(&mut self.host_cpu, self.capacity, snapshot.host.cpu_ratio.get().unwrap_or(f64::NAN));
        for gpu in &snapshot.gpus {
            let rings = self
                .gpus
                .entry(key(gpu))
                .or_insert_with(|| self.rows.iter().map(|_| VecDeque::new()).collect());
            for (ring, row) in rings.iter_mut().zip(&self.rows) {
                let value = match row.pick {
                    // The last values of a GPU that does not answer are not from now.
                    Pick::One(pick) if gpu.answers() => pick(gpu).get(),
                    _ => None,
                };
                put(ring, self.capacity, value.unwrap_or(f64::NAN));
            }
        }
    }

    /// Puts what another history knows of the time before in front of what this one has.
    pub fn put_before(&mut self, older: &Self) {
        prepend(&mut self.host_cpu, &older.host_cpu, self.capacity);
        for (gpu, theirs) in &older.gpus {
            let Some(own) = self.gpus.get_mut(gpu) else { continue };
            for (ring, row) in own.iter_mut().zip(&self.rows) {
                if let Some(at) = older.rows.iter().position(|other| other.name == row.name) {
                    prepend(ring, &theirs[at], self.capacity);
                }
            }
        }
    }

    /// A GPU's past values of a tracked metric, oldest first, NaN for gaps; empty when unknown.
    pub fn series(&self, gpu: &Gpu, metric: &str) -> impl DoubleEndedIterator<Item = f32> + '_ {
        let row = self.rows.iter().position(|row| row.name == metric);
        let ring = row.and_then(|row| self.gpus.get(&key(gpu)).map(|rings| &rings[row]));
        ring.into_iter().flatten().copied()
    }

    /// The host's CPU share, oldest first.
    pub fn host_cpu(&self) -> impl DoubleEndedIterator<Item = f32> + '_ {
        self.host_cpu.iter().copied()
    }

    /// Snapshots that never arrived.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Forgets the sequence: the next snapshot comes from another sampler.
    pub fn new_feed(&mut self) {
        self.last_sequence = None;
    }
}

/// Whatever is received, no ring is longer.
const LONGEST: usize = 100_000;

/// A history between two processes, which may know different metrics.
#[derive(Serialize, Deserialize)]
struct Sent {
    capacity: usize,
    metrics: Vec<String>,
    gpus: HashMap<String, Vec<VecDeque<f32>>>,
    host_cpu: VecDeque<f32>,
    last_sequence: Option<u64>,
    lost: u64,
}

impl From<History> for Sent {
    fn from(history: History) -> Self {
        let History { capacity, rows, gpus, host_cpu, last_sequence, lost } = history;
        let metrics = rows.iter().map(|row| row.name.to_string()).collect();
        Self { capacity, metrics, gpus, host_cpu, last_sequence, lost }
    }
}

impl From<Sent> for History {
    fn from(sent: Sent) -> Self {
        let mut history = Self::new(sent.capacity.clamp(1, LONGEST));
        let capacity = history.capacity;
        let cut = |mut ring: VecDeque<f32>| {
            ring.drain(..ring.len().saturating_sub(capacity));
            ring
        };
        for (gpu, mut rings) in sent.gpus {
            let longest = rings.iter().map(VecDeque::len).max().unwrap_or_default();
            let taken = history.rows.iter().map(|row| {
                let at = sent.metrics.iter().position(|name| name == row.name);
                let ring = at.and_then(|at| rings.get_mut(at)).map(std::mem::take);
                // A metric that the sender does not keep is a gap as long as the others.
                cut(ring.unwrap_or_else(|| vec![f32::NAN; longest].into()))
            });
            let taken = taken.collect();
            history.gpus.insert(gpu, taken);
        }
        history.host_cpu = cut(sent.host_cpu);
        history.last_sequence = sent.last_sequence;
        history.lost = sent.lost;
        history
    }
}

fn key(gpu: &Gpu) -> String {
    gpu.uuid.value().cloned().unwrap_or_else(|| gpu.label())
}

#[expect(clippy::cast_possible_truncation, reason = "24 bits are enough for a sparkline")]
fn put(ring: &mut VecDeque<f32>, capacity: usize, value: f64) {
    if ring.len() == capacity {
        ring.pop_front();
    }
    ring.push_back(value as f32);
}

fn prepend(ring: &mut VecDeque<f32>, older: &VecDeque<f32>, capacity: usize) {
    for value in older.iter().rev().take(capacity.saturating_sub(ring.len())) {
        ring.push_front(*value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvml::utilization::Utilization;
    use crate::snapshot::Health;

    fn tick(sequence: u64, busy: f64, health: Health) -> Snapshot {
        let utilization = Utilization { gpu_ratio: busy.into(), ..Utilization::default() };
        let gpu = Gpu { health, utilization, ..Gpu::default() };
        Snapshot { sequence, gpus: vec![gpu], ..Snapshot::default() }
    }

    #[test]
    fn every_tracked_metric_is_in_the_table() {
        let names: Vec<_> = nvml::metrics().map(|metric| metric.name).collect();
        assert!(TRACKED.iter().all(|name| names.contains(name)));
    }

    #[test]
    fn gaps_are_counted_and_stale_values_are_no_history() {
        let mut history = History::new(3);
        history.push(&tick(1, 0.5, Health::Answering));
        history.push(&tick(4, 0.6, Health::Lost { since_ms: 1, answer: String::new() }));
        let gpu = Gpu::default();
        let series: Vec<f32> = history.series(&gpu, "infertop_gpu_busy_ratio").collect();
        assert!((series[0] - 0.5).abs() < 1e-6 && series[1].is_nan());
        assert_eq!(history.lost(), 2);
        history.new_feed();
        history.push(&tick(1, 0.5, Health::Answering));
        assert_eq!(history.lost(), 2);
    }

    #[test]

    fn what_was_before_stands_in_front_and_the_newest_is_kept() {
        let (mut older, mut history) = (History::new(3), History::new(3));
        for (sequence, busy) in [(1, 0.1), (2, 0.2), (3, 0.3)] {
            older.push(&tick(sequence, busy, Health::Answering));
        }
        history.push(&tick(4, 0.4, Health::Answering));
        history.put_before(&older);
        let series: Vec<f32> = history.series(&Gpu::default(), "infertop_gpu_busy_ratio").collect();
        assert_eq!(series, [0.2, 0.3, 0.4]);
        assert_eq!(history.lost(), 0);
    }

    #[test]
    fn a_history_that_is_sent_goes_on_where_it_was() {
        let mut history = History::new(3);
        history.push(&tick(1, 0.5, Health::Answering));
        let bytes = rmp_serde::to_vec_named(&history).unwrap();
        let mut arrived: History = rmp_serde::from_slice(&bytes).unwrap();
        for history in [&mut history, &mut arrived] {
            for sequence in [3, 4, 5] {
                history.push(&tick(sequence, 0.1, Health::Answering));
            }
        }
        let series = |history: &History| -> Vec<f32> {
            history.series(&Gpu::default(), "infertop_gpu_busy_ratio").collect()
        };
        assert_eq!(series(&history), series(&arrived));
        assert_eq!((series(&arrived).len(), arrived.lost()), (3, 1));
    }

    #[test]
    fn a_sender_of_another_version_leaves_gaps_and_no_more_than_fits() {
        let busy = vec![VecDeque::from([0.1, 0.2, 0.3])];
        let sent = Sent {
            capacity: 2,
            metrics: vec!["infertop_gpu_busy_ratio".into()],
            gpus: HashMap::from([("0".to_string(), busy)]),
            host_cpu: VecDeque::new(),
            last_sequence: None,
            lost: 0,
        };
        let history = History::from(sent);
        let series = |metric| history.series(&Gpu::default(), metric).collect::<Vec<f32>>();
        assert_eq!(series("infertop_gpu_busy_ratio"), [0.2, 0.3]);
        let unknown = series("infertop_gpu_power_draw_watts");
        assert!(unknown.len() == 2 && unknown.iter().all(|value| value.is_nan()));
    }
}

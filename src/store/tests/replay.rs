//! What is computed from stored snapshots is what was computed when they came.

use probes::finding::Finding;
use probes::history::{History, TRACKED};
use probes::kernel_log::KernelLine;
use probes::proc::Process;
use proptest::prelude::*;

use super::*;

/// What a box does in one tick.
#[derive(Clone, Debug)]
struct Tick {
    after_ms: u64,
    lost: u64,
    restarts: bool,
    gpus: Vec<(u8, f64, Option<u64>)>,
    processes: Vec<u32>,
    line: Option<u64>,
}

fn tick() -> impl Strategy<Value = Tick> {
    let after = prop_oneof![8 => Just(1000_u64), 1 => 250..3000_u64, 1 => 60_000..200_000_u64];
    let lost = prop_oneof![9 => Just(0_u64), 1 => 1..5_u64];
    let gpu = (0..6_u8, 0.0..1.0_f64, proptest::option::of(any::<u64>()));
    (
        after,
        lost,
        prop::bool::weighted(0.03),
        prop::collection::vec(gpu, 0..4),
        prop::collection::vec(100..110_u32, 0..5),
        proptest::option::weighted(0.1, 0..3_u64),
    )
        .prop_map(|(after_ms, lost, restarts, gpus, processes, line)| Tick {
            after_ms,
            lost,
            restarts,
            gpus,
            processes,
            line,
        })
}

fn gpu(index: usize, (health, busy, bytes): &(u8, f64, Option<u64>), at_ms: u64) -> Gpu {
    let mut gpu = Gpu { index: u32::try_from(index).unwrap(), ..Gpu::default() };
    gpu.uuid = format!("GPU-{index}").into();
    gpu.health = match health {
        0 => Health::Lost { since_ms: at_ms / 7, answer: "gone".into() },
        1 => {
            Health::NoAnswer { call: "nvmlDeviceGetX".into(), since_ms: at_ms, thread: "D".into() }
        }
        _ => Health::Answering,
    };
    gpu.utilization.gpu_ratio = (*busy).into();
    gpu.gpm.l2_dram_hit_ratio = (busy / 3.0).into();
    if let Some(bytes) = bytes {
        gpu.memory.used_bytes = (*bytes).into();
    }
    gpu.ecc.remap_pending = (*health == 2).into();
    gpu
}

fn snapshots(ticks: &[Tick]) -> Vec<Arc<Moment>> {
    let (mut at_ms, mut sequence) = (BEGIN_MS, 0);
    let mut moments = Vec::new();
    let mut lines: Vec<KernelLine> = Vec::new();
    for tick in ticks {
        at_ms += tick.after_ms;
        sequence = if tick.restarts { 1 } else { sequence + 1 + tick.lost };
        if let Some(code) = tick.line {
            let text = format!("NVRM: Xid (PCI:0000:9b:00): {}, gone", 77 + code);
            lines.push(probes::kernel_log::parse_line(&text).unwrap());
        }
        let gpus = tick.gpus.iter().enumerate().map(|(index, told)| gpu(index, told, at_ms));
        let mut snapshot = Snapshot {
            sequence,
            taken_at_ms: at_ms,
            gpus: gpus.collect(),
            processes: tick
                .processes
                .iter()
                .map(|pid| Process { pid: *pid, ..Process::default() })
                .collect(),
            ..Snapshot::default()
        };
        snapshot.kernel_log.lines.clone_from(&lines);
        moments.push(moment_of(moments.len() as u64, snapshot));
    }
    moments
}

/// Every series of a history, as bits: a gap is equal to a gap.
fn series(history: &History, moments: &[Arc<Moment>]) -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    for gpu in moments.iter().flat_map(|moment| &moment.snapshot.gpus) {
        for metric in TRACKED {
            all.push(history.series(gpu, metric).map(f32::to_bits).collect());
        }
    }
    all.push(history.host_cpu().map(f32::to_bits).collect());
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn series_and_findings_of_a_replay_are_those_of_the_day(
        ticks in prop::collection::vec(tick(), 1..150),
        restart in any::<prop::sample::Index>(),
    ) {
        let moments = snapshots(&ticks);
        let place = Place::new();
        let (before, after) = moments.split_at(restart.index(moments.len()));
        place.keep(before);
        place.keep(after);
        let mut live = History::new(moments.len());
        let mut replayed = History::new(moments.len());
        let mut judged: Vec<Vec<Finding>> = Vec::new();
        for moment in &moments {
            live.push(&moment.snapshot);
        }
        let mut reader = place.reader();
        reader.frames(0, u64::MAX, |stored| {
            let snapshot = Snapshot::decode(&stored.bytes)?;
            judged.push(playbooks::judge(&snapshot));
            replayed.push(&snapshot);
            Ok(())
        }).unwrap();
        let findings: Vec<_> = moments.iter().map(|moment| moment.findings.clone()).collect();
        prop_assert_eq!(judged, findings);
        prop_assert_eq!(series(&replayed, &moments), series(&live, &moments));
        prop_assert_eq!(replayed.lost(), live.lost());
        let windowed = reader.window(u64::MAX, moments.len()).unwrap();
        prop_assert_eq!(series(&windowed, &moments), series(&live, &moments));
        prop_assert_eq!(windowed.lost(), live.lost());
    }
}

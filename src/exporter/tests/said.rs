//! Answers over a hub that the test moves.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use probes::finding::{Finding, Severity, Subject};
use probes::nvml::memory::Memory;
use probes::nvml::mig::MigInstance;
use probes::nvml::nvlink::{NvLink, NvLinks};
use probes::nvml::power::Power;
use probes::nvml::processes::GpuProcesses;
use probes::pci::PciGpu;
use probes::proc::{GpuUse, Process};
use probes::snapshot::{Gpu, Health, Snapshot};

use crate::daemon::hub::{Hub, Sampling};
use crate::exporter::{Exporter, Format};
use crate::moment::Moment;
use crate::store::{Limits, Start, StoreHandle};

struct Box {
    hub: Arc<Hub>,
    exporter: Exporter,
    _folder: tempfile::TempDir,
}

impl Box {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { raw_days: 1, rollup_days: 1, max_bytes: 64 << 20 };
        let store = StoreHandle::start(folder.path(), limits, Start::default());
        let hub = Arc::new(Hub::new(store, 1_000_500).0);
        Self { exporter: Exporter::new(Arc::clone(&hub)), hub, _folder: folder }
    }

    fn tick(&self, snapshot: Snapshot) {
        self.tick_of_age(snapshot, Duration::ZERO, Vec::new());
    }

    fn tick_of_age(&self, snapshot: Snapshot, age: Duration, findings: Vec<Finding>) {
        self.hub.sampling.send_replace(Sampling::Running);
        let snapshot = Snapshot { interval_ms: 1000, ..snapshot };
        let mut moment = Moment::new(7, Vec::new().into(), snapshot);
        moment.came = moment.came.checked_sub(age).unwrap();
        moment.findings.extend(findings);
        self.hub.newest.send_replace(Some(Arc::new(moment)));
    }

    /// Sample lines in the text format.
    fn samples(&self) -> BTreeSet<String> {
        let text = self.exporter.answer(Format::Text);
        text.lines().filter(|line| !line.starts_with('#')).map(String::from).collect()
    }

    /// Those of this metric, without its name.
    fn of(&self, name: &str) -> Vec<String> {
        let samples = self.samples();
        let of = samples.iter().filter_map(|line| line.strip_prefix(name));
        of.filter(|rest| rest.starts_with([' ', '{'])).map(String::from).collect()
    }
}

fn gpu(index: u32, health: Health) -> Gpu {
    Gpu {
        index,
        uuid: format!("GPU-{index}").into(),
        health,
        memory: Memory {
            used_bytes: (u64::from(index) + 1000).into(),
            reserved_bytes: 10.into(),
            ..Memory::default()
        },
        power: Power { energy_joules_total: 12.5.into(), ..Power::default() },
        ..Gpu::default()
    }
}

fn lost() -> Health {
    Health::Lost { since_ms: 1, answer: "GPU is lost".into() }
}

#[test]
fn a_lost_gpu_gives_no_readings_and_says_that_it_is_down() {
    let the_box = Box::new();
    let gpus = vec![gpu(0, Health::Answering), gpu(1, lost())];
    the_box.tick(Snapshot { gpus, ..Snapshot::default() });
    assert_eq!(the_box.of("infertop_gpu_memory_used_bytes"), ["{gpu=\"0\"} 1000"]);
    assert_eq!(the_box.of("infertop_gpu_energy_joules_total"), ["{gpu=\"0\"} 12.5"]);
    assert_eq!(the_box.of("infertop_gpu_up"), ["{gpu=\"0\"} 1", "{gpu=\"1\"} 0"]);
    assert_eq!(the_box.of("infertop_gpus_expected"), [" 2"]);
    assert_eq!(the_box.of("infertop_gpus_visible"), [" 1"]);
    let info = ["{gpu=\"0\",uuid=\"GPU-0\"} 1", "{gpu=\"1\",uuid=\"GPU-1\"} 1"];
    assert_eq!(the_box.of("infertop_gpu_info"), info);
    assert_eq!(
        the_box.of("infertop_finding_active"),
        ["{cause=\"gpu_fell_off_bus\",severity=\"critical\",gpu=\"1\"} 1"]
    );
    assert_eq!(
        the_box.of("infertop_findings"),
        ["{severity=\"critical\"} 1", "{severity=\"info\"} 0", "{severity=\"warning\"} 0"]
    );
    // Not read: no sample, rather than a 0.
    assert!(the_box.of("infertop_gpu_temperature_celsius").is_empty());
    assert!(the_box.of("infertop_host_cpus").is_empty());
}

#[test]
fn an_old_snapshot_tells_nothing_of_now_but_its_age() {
    let the_box = Box::new();
    let snapshot = Snapshot { gpus: vec![gpu(0, Health::Answering)], ..Snapshot::default() };
    the_box.tick_of_age(snapshot.clone(), Duration::from_millis(4900), Vec::new());
    assert_eq!(the_box.of("infertop_sampler_up"), [" 1"]);
    assert_eq!(the_box.of("infertop_gpu_memory_used_bytes").len(), 1);

    the_box.tick_of_age(snapshot, Duration::from_millis(5100), Vec::new());
    let samples = the_box.samples();
    let of_gpus = samples.iter().filter(|line| line.starts_with("infertop_gpu_"));
    let of_gpus: Vec<&String> = of_gpus.collect();
    assert_eq!(
        of_gpus,
        ["infertop_gpu_info{gpu=\"0\",uuid=\"GPU-0\"} 1", "infertop_gpu_up{gpu=\"0\"} 0"]
    );
    assert!(!samples.iter().any(|line| line.starts_with("infertop_host_")));
    assert_eq!(the_box.of("infertop_sampler_up"), [" 0"]);
    assert_eq!(the_box.of("infertop_gpus_expected"), [" 1"]);
    assert!(the_box.of("infertop_findings").is_empty());
    let age: f64 = the_box.of("infertop_snapshot_age_seconds")[0].trim().parse().unwrap();
    assert!(age > 5.0, "{age}");
}

#[test]
fn what_is_let_go_is_not_read_and_is_said_to_be_let_go() {
    let the_box = Box::new();
    the_box.tick(Snapshot { gpus: vec![gpu(0, Health::Answering)], ..Snapshot::default() });
    assert_eq!(the_box.of("infertop_released"), [" 0"]);
    the_box.hub.sampling.send_replace(Sampling::Released { since_ms: 1, until_ms: None });
    assert_eq!(the_box.of("infertop_released"), [" 1"]);
    assert_eq!(the_box.of("infertop_gpu_up"), ["{gpu=\"0\"} 0"]);
    assert!(the_box.of("infertop_gpu_memory_used_bytes").is_empty());
}

#[test]
fn before_the_first_snapshot_the_daemon_says_what_it_knows_of_itself() {
    let the_box = Box::new();
    assert_eq!(the_box.of("infertop_sampler_up"), [" 0"]);
    assert_eq!(the_box.of("infertop_snapshots_total"), [" 0"]);
    assert_eq!(the_box.of("infertop_start_time_seconds"), [" 1000.5"]);
    assert!(the_box.of("infertop_gpus_visible").is_empty());
    assert!(the_box.of("infertop_snapshot_age_seconds").is_empty());
}

#[test]
fn mig_instances_are_told_apart_and_no_series_stands_twice() {
    let instance = |compute: u32| Gpu {
        mig: Some(MigInstance {
            gpu_instance: 1.into(),
            compute_instance: compute.into(),
            ..MigInstance::default()
        }),
        ..gpu(0, Health::Answering)
    };
    let the_box = Box::new();
    let gpus = vec![gpu(0, Health::Answering), instance(0), instance(1), instance(1)];
    the_box.tick(Snapshot { gpus, ..Snapshot::default() });
    assert_eq!(
        the_box.of("infertop_gpu_memory_used_bytes"),
        ["{gpu=\"0\",mig=\"g1.c0\"} 1000", "{gpu=\"0\",mig=\"g1.c1\"} 1000", "{gpu=\"0\"} 1000"]
    );
    assert_eq!(the_box.of("infertop_gpus_visible"), [" 1"]);
    let text = the_box.exporter.answer(Format::Text);
    let series = text.lines().filter_map(|line| line.rsplit_once(' ').map(|(series, _)| series));
    let series: Vec<&str> = series.filter(|series| !series.starts_with('#')).collect();
    let different: BTreeSet<&&str> = series.iter().collect();
    assert_eq!(different.len(), series.len(), "{text}");
}

#[test]
fn gpus_that_are_passed_on_are_not_missed_and_those_that_are_gone_are() {
    let on_bus = |driver: &str| PciGpu { driver: driver.into(), ..PciGpu::default() };
    let mut snapshot = Snapshot { gpus: vec![gpu(0, Health::Answering)], ..Snapshot::default() };
    snapshot.driver.pci_gpus =
        vec![on_bus("nvidia"), on_bus("nvidia"), on_bus(""), on_bus("vfio-pci")].into();
    let the_box = Box::new();
    the_box.tick(snapshot.clone());
    assert_eq!(the_box.of("infertop_gpus_expected"), [" 3"]);
    snapshot.driver.container = Some("docker".into());
    the_box.tick(snapshot);
    assert_eq!(the_box.of("infertop_gpus_expected"), [" 1"]);
}

#[test]
fn what_a_process_brings_in_is_in_no_label() {
    let mut gpu = gpu(0, Health::Answering);
    gpu.processes = GpuProcesses { list: Vec::new().into(), ..GpuProcesses::default() };
    let process = Process {
        pid: 424_242,
        command: "tell-nobody".to_string().into(),
        user: "mallory".to_string().into(),
        gpus: vec![GpuUse { kind: "compute".into(), gpu_bytes: 400.into(), ..GpuUse::default() }],
        ..Process::default()
    };
    let finding = |pid| Finding {
        cause: "orphaned_engine_process".into(),
        severity: Severity::Warning,
        subject: Subject::Process(pid),
        title: "tell-nobody runs alone".into(),
        ..Finding::default()
    };
    let the_box = Box::new();
    let snapshot = Snapshot { gpus: vec![gpu], processes: vec![process], ..Snapshot::default() };
    let findings = vec![finding(424_242), finding(424_243)];
    the_box.tick_of_age(snapshot, Duration::ZERO, findings);
    assert_eq!(the_box.of("infertop_gpu_holders"), ["{gpu=\"0\"} 1"]);
    assert_eq!(the_box.of("infertop_gpu_memory_held_bytes"), ["{gpu=\"0\"} 400"]);
    assert_eq!(the_box.of("infertop_gpu_memory_unattributed_bytes"), ["{gpu=\"0\"} 600"]);
    let active = ["{cause=\"orphaned_engine_process\",severity=\"warning\"} 1"];
    assert_eq!(the_box.of("infertop_finding_active"), active);
    assert!(the_box.of("infertop_findings").contains(&"{severity=\"warning\"} 2".to_string()));
    for format in [Format::Text, Format::OpenMetrics] {
        let text = the_box.exporter.answer(format);
        for secret in ["424242", "424243", "tell-nobody", "mallory"] {
            assert!(!text.contains(secret), "{secret}");
        }
    }
}

#[test]
fn both_formats_say_the_same_and_openmetrics_says_that_it_is_whole() {
    let links = (0..3).map(|link| NvLink { link, replay_total: 4.into(), ..NvLink::default() });
    let mut gpu = gpu(3, Health::Answering);
    gpu.nvlink = NvLinks { links: links.collect(), ..NvLinks::default() };
    gpu.name = "H100 \"odd\\name\"\n".to_string().into();
    let the_box = Box::new();
    the_box.tick(Snapshot { gpus: vec![gpu], ..Snapshot::default() });
    // What is of this very answer differs.
    let samples = |format| -> Vec<String> {
        let text = the_box.exporter.answer(format);
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let of_the_tables = lines.filter(|line| line.starts_with("infertop_gpu_"));
        of_the_tables.map(String::from).collect()
    };
    assert_eq!(samples(Format::Text), samples(Format::OpenMetrics));
    assert!(
        the_box.samples().contains("infertop_gpu_nvlink_replays_total{gpu=\"3\",link=\"2\"} 4")
    );
    let text = the_box.exporter.answer(Format::Text);
    assert!(text.contains("# TYPE infertop_gpu_nvlink_replays_total counter\n"), "{text}");
    assert!(text.contains("# TYPE infertop_gpu_info gauge\n"));
    assert!(text.contains(r#"name="H100 \"odd\\name\"\n""#), "{text}");
    assert!(!text.contains("# EOF") && !text.contains("_created"));
    let open = the_box.exporter.answer(Format::OpenMetrics);
    assert!(open.contains("# TYPE infertop_gpu_nvlink_replays counter\n"), "{open}");
    assert!(open.contains("# TYPE infertop_gpu info\n"));
    assert!(open.ends_with("\n# EOF\n") && !open.contains("_created"));
}

#[test]
fn a_moment_is_encoded_once_however_many_ask() {
    let the_box = Box::new();
    the_box.tick(Snapshot { gpus: vec![gpu(0, Health::Answering)], ..Snapshot::default() });
    let moment = the_box.hub.newest.borrow().clone().unwrap();
    let place = |format| super::super::encoded(&moment, format).as_ptr();
    let first = place(Format::Text);
    the_box.exporter.answer(Format::Text);
    assert_eq!(place(Format::Text), first);
    assert_ne!(place(Format::OpenMetrics), first);
}

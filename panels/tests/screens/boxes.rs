//! Boxes to draw: snapshots built by hand, each with one thing to see. Shared by tests and bench.
#![allow(dead_code, reason = "the bench and the tests each use a part")]

use panels::view::{Feed, Past, View};
use probes::driver::{DeviceNode, Driver, DriverProblem, PciGpu, Session};
use probes::finding::{Finding, Severity, Subject};
use probes::history::History;
use probes::host::{Host, NumaNode};
use probes::kernel_log::{KernelLine, KernelLog};
use probes::ledger::{self, Ledger};
use probes::nvml::clocks::Clocks;
use probes::nvml::ecc::Ecc;
use probes::nvml::fabric::Fabric;
use probes::nvml::gpm::Gpm;
use probes::nvml::identity::Identity;
use probes::nvml::memory::Memory;
use probes::nvml::mig::MigInstance;
use probes::nvml::nvlink::{NvLink, NvLinks};
use probes::nvml::pcie::{Pcie, PcieErrors};
use probes::nvml::power::Power;
use probes::nvml::processes::GpuProcesses;
use probes::nvml::temperature::Temperature;
use probes::nvml::topology::{Peer, Topology};
use probes::nvml::utilization::Utilization;
use probes::proc::{Ancestor, DeviceCount, GpuUse, Library, Process};
use probes::reading::{Absence, Reading};
use probes::self_cost::{CallCost, SelfCost, Source};
use probes::snapshot::{Gpu, Health, Snapshot, Stamp};

/// The moment of all pictures: 2025-12-01 03:12:07 UTC.
pub(crate) const NOW: u64 = 1_764_558_727_000;
/// MiB in bytes.
pub(crate) const MIB: u64 = 1 << 20;
/// Total of an 80 GB part, as the driver counts it.
pub(crate) const H100: u64 = 81_559 * MIB;

/// A box with all that belongs to it.
pub(crate) struct Shown {
    pub(crate) snapshot: Snapshot,
    pub(crate) ledgers: Vec<Ledger>,
    pub(crate) history: History,
    pub(crate) findings: Vec<Finding>,
    pub(crate) feed: Feed,
    pub(crate) past: Past,
}

impl Shown {
    /// The snapshot with a past in which busy shares and memory moved.
    pub(crate) fn new(snapshot: Snapshot, findings: Vec<Finding>) -> Self {
        let mut history = History::new(300);
        for tick in 0..120_u64 {
            let mut past = snapshot.clone();
            past.sequence = tick;
            for gpu in &mut past.gpus {
                let wave = 1.0 - ((tick * 7 + u64::from(gpu.index) * 3) % 11) as f64 / 25.0;
                if let Reading::Value(ratio) = &mut gpu.utilization.gpu_ratio {
                    *ratio *= wave;
                }
                for rate in [&mut gpu.pcie.tx_bytes_per_second, &mut gpu.pcie.rx_bytes_per_second] {
                    if let Reading::Value(rate) = rate {
                        *rate *= wave;
                    }
                }
                if tick < 60 && gpu.index == 3 {
                    gpu.memory.used_bytes = (2 << 30).into();
                }
            }
            history.push(&past);
        }
        let ledgers = ledger::ledgers(&snapshot);
        let feed = Feed { interval_ms: 1000, last_ms: Some(NOW - 300), ..Feed::default() };
        Self { snapshot, ledgers, history, findings, feed, past: Past::default() }
    }

    pub(crate) fn view(&self) -> View<'_> {
        View {
            snapshot: &self.snapshot,
            ledgers: &self.ledgers,
            history: &self.history,
            findings: &self.findings,
            feed: &self.feed,
            past: &self.past,
            now_ms: NOW,
            utc_offset_seconds: 0,
        }
    }
}

pub(crate) fn text(words: &str) -> Reading<String> {
    words.to_string().into()
}

fn stamp() -> Stamp {
    Stamp { at_ms: NOW - 400, took_us: 210 }
}

pub(crate) fn host() -> Host {
    Host {
        read: stamp(),
        name: text("node-a"),
        kernel: text("6.8.0-48-generic"),
        os: text("Ubuntu 24.04.1 LTS"),
        boot_id: text("8d1c7a52"),
        uptime_seconds: (12 * 86400 + 3 * 3600).into(),
        cpus: 192.into(),
        cpu_model: text("Intel(R) Xeon(R) Platinum 8480C"),
        cpu_ratio: 0.173.into(),
        iowait_ratio: 0.002.into(),
        load: vec![33.1, 30.4, 29.9].into(),
        memory_total_bytes: (2048_u64 << 30).into(),
        memory_available_bytes: (1601_u64 << 30).into(),
        memory_cached_bytes: (377_u64 << 30).into(),
        memory_shared_bytes: (14_u64 << 30).into(),
        swap_total_bytes: 0.into(),
        swap_used_bytes: 0.into(),
        shm_total_bytes: (1024_u64 << 30).into(),
        shm_used_bytes: (14_u64 << 30).into(),
        hugepages_total_bytes: 0.into(),
        hugepages_free_bytes: 0.into(),
        transparent_hugepages: text("madvise"),
        numa: vec![
            NumaNode {
                node: 0,
                cpus: "0-47,96-143".into(),
                total_bytes: 1024 << 30,
                free_bytes: 611 << 30,
                is_device: false,
            },
            NumaNode {
                node: 1,
                cpus: "48-95,144-191".into(),
                total_bytes: 1024 << 30,
                free_bytes: 590 << 30,
                is_device: false,
            },
        ]
        .into(),
        processes: 2311.into(),
        pid_namespace: text("host"),
        ..Host::default()
    }
}

pub(crate) fn driver() -> Driver {
    Driver {
        read: stamp(),
        module_version: text("590.48.01"),
        module_flavour: text("open"),
        module_users: 214.into(),
        version: text("590.48.01"),
        nvml_version: text("13.590.48.01"),
        cuda_version: text("13.1"),
        branch: text("r590"),
        library_path: text("libnvidia-ml.so.590.48.01"),
        library_on_disk: text("590.48.01"),
        gsp_enabled: true.into(),
        profiling_admin_only: true.into(),
        modules: vec!["nvidia".to_string(), "nvidia_uvm".into(), "nvidia_modeset".into()].into(),
        pci_gpus: Reading::default(),
        device_nodes: ["nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1"]
            .iter()
            .map(|node| DeviceNode {
                node: (*node).into(),
                mode: "666".into(),
                usable: true,
                ..DeviceNode::default()
            })
            .collect::<Vec<_>>()
            .into(),
        session: Session::Open,
        gpu_count: 8.into(),
        problem: None,
        ..Driver::default()
    }
}

/// An H100 with `used` MiB in use and this busy share.
pub(crate) fn h100(index: u32, used_mib: u64, busy: f64) -> Gpu {
    let works = busy > 0.05;
    let used = used_mib * MIB;
    let reserved = 485 * MIB;
    Gpu {
        index,
        uuid: text(&format!("GPU-{index:08x}-1b2c-4d3e-8f90-a1b2c3d4e5f6")),
        name: text("H100 80GB HBM3"),
        pci: text(&format!("0000:{:02x}:00.0", 0x1a + index * 0x10)),
        health: Health::Answering,
        mig: None,
        identity: identity(index),
        memory: Memory {
            read: stamp(),
            unified: false,
            total_bytes: H100.into(),
            reserved_bytes: reserved.into(),
            used_bytes: used.into(),
            free_bytes: (H100 - used - reserved).into(),
            bar1_total_bytes: (128_u64 << 30).into(),
            bar1_used_bytes: (2_u64 << 20).into(),
        },
        utilization: Utilization {
            read: stamp(),
            gpu_ratio: busy.into(),
            memory_ratio: (busy * 0.6).into(),
            encoder_ratio: 0.0.into(),
            decoder_ratio: 0.0.into(),
            jpeg_ratio: 0.0.into(),
            optical_flow_ratio: 0.0.into(),
        },
        gpm: gpm(busy),
        clocks: Clocks {
            read: stamp(),
            sm_mhz: if works { 1980 } else { 345 }.into(),
            graphics_mhz: if works { 1980 } else { 345 }.into(),
            memory_mhz: 2619.into(),
            video_mhz: 1545.into(),
            sm_max_mhz: 1980.into(),
            memory_max_mhz: 2619.into(),
            performance_state: 0.into(),
            reasons: if works { 0x4 } else { 0x1 }.into(),
            reasons_supported: 0x1ff.into(),
            power_cap_ns_total: 9_123_000_000_000.into(),
            thermal_ns_total: 0.into(),
            board_limit_ns_total: 0.into(),
            reliability_ns_total: 0.into(),
            software_thermal_ns_total: 0.into(),
            hardware_thermal_ns_total: 0.into(),
            power_brake_ns_total: 0.into(),
        },
        power: Power {
            read: stamp(),
            draw_watts: (70.0 + 550.0 * busy).into(),
            module_watts: Reading::UNSUPPORTED,
            limit_watts: 700.0.into(),
            limit_default_watts: 700.0.into(),
            limit_min_watts: 200.0.into(),
            limit_max_watts: 700.0.into(),
            energy_joules_total: 1.2e9.into(),
        },
        temperature: Temperature {
            read: stamp(),
            gpu_celsius: if works { 61 } else { 33 }.into(),
            memory_celsius: if works { 72 } else { 41 }.into(),
            margin_celsius: 26.into(),
            slowdown_celsius: Reading::UNSUPPORTED,
            shutdown_celsius: Reading::UNSUPPORTED,
            fan_ratios: Reading::UNSUPPORTED,
            ..Temperature::default()
        },
        ecc: ecc(),
        pcie: pcie(busy),
        nvlink: nvlink(busy),
        fabric: Fabric {
            read: stamp(),
            state: text("completed"),
            status: 0.into(),
            clique: 0.into(),
            health_mask: 0.into(),
            health: text("healthy"),
            complaints: vec![],
        },
        topology: Topology {
            read: stamp(),
            cpu_affinity: text(if index < 4 { "0-47,96-143" } else { "48-95,144-191" }),
            memory_affinity: text(if index < 4 { "0" } else { "1" }),
            peers: (0..8)
                .filter(|other| *other != index)
                .map(|other| Peer {
                    gpu_index: other,
                    path: text(if (other < 4) == (index < 4) { "NODE" } else { "SYS" }),
                    nvlinks: 18.into(),
                    peer_access: text("ok"),
                })
                .collect(),
        },
        processes: GpuProcesses { read: stamp(), list: vec![].into() },
        xids: vec![],
    }
}

fn identity(index: u32) -> Identity {
    Identity {
        read: stamp(),
        serial: text(&format!("16512340{index:05}")),
        board_part_number: text("692-2G520-0200-000"),
        vbios: text("96.00.89.00.01"),
        pci_device_id: text("233010DE"),
        architecture: text("Hopper"),
        compute_capability: text("9.0"),
        cores: 16896.into(),
        memory_bus_bits: 5120.into(),
        minor: index.into(),
        module_id: (index + 1).into(),
        gsp_firmware: text("590.48.01"),
        gsp_enabled: true.into(),
        persistence: true.into(),
        compute_mode: text("default"),
        display_active: false.into(),
        addressing: text("HMM"),
        virtualization: text("none"),
        mig_enabled: false.into(),
        mig_pending: false.into(),
        confidential: false.into(),
    }
}

fn gpm(busy: f64) -> Gpm {
    Gpm {
        read: stamp(),
        supported: true.into(),
        graphics_ratio: busy.into(),
        sm_active_ratio: (busy * 0.9).into(),
        sm_occupancy_ratio: (busy * 0.3).into(),
        integer_ratio: (busy * 0.1).into(),
        tensor_ratio: (busy * 0.42).into(),
        tensor_dfma_ratio: 0.0.into(),
        tensor_hmma_ratio: (busy * 0.42).into(),
        tensor_imma_ratio: 0.0.into(),
        dram_bandwidth_ratio: (busy * 0.57).into(),
        fp64_ratio: 0.0.into(),
        fp32_ratio: (busy * 0.05).into(),
        fp16_ratio: (busy * 0.02).into(),
        l2_host_hit_ratio: Reading::Absent(Absence::NoData),
        l2_host_miss_ratio: Reading::Absent(Absence::NoData),
        l2_peer_hit_ratio: Reading::Absent(Absence::NoData),
        l2_peer_miss_ratio: Reading::Absent(Absence::NoData),
        l2_dram_hit_ratio: 0.61.into(),
        l2_dram_miss_ratio: 0.39.into(),
        ..Gpm::default()
    }
}

fn pcie(busy: f64) -> Pcie {
    Pcie {
        read: stamp(),
        generation: 5.into(),
        width: 16.into(),
        max_generation: 5.into(),
        max_width: 16.into(),
        gpu_max_generation: 5.into(),
        tx_bytes_per_second: (busy * 6.1e9).into(),
        rx_bytes_per_second: (busy * 12.5e9).into(),
        rate_source: text("gpm"),
        tx_bytes_total: Reading::UNSUPPORTED,
        rx_bytes_total: Reading::UNSUPPORTED,
        replay_total: 0.into(),
        errors: vec![PcieErrors { kind: "correctable".into(), total: 0 }],
    }
}

fn ecc() -> Ecc {
    Ecc {
        read: stamp(),
        enabled: true.into(),
        enabled_pending: true.into(),
        corrected_volatile_total: 0.into(),
        uncorrected_volatile_total: 0.into(),
        corrected_lifetime_total: 2.into(),
        uncorrected_lifetime_total: 0.into(),
        remapped_corrected_total: 0.into(),
        remapped_uncorrected_total: 0.into(),
        remap_pending: false.into(),
        remap_failed: false.into(),
        recovery_action: 0.into(),
        sram: Reading::Absent(Absence::Denied { need: "root".into() }),
        retired_corrected_total: Reading::UNSUPPORTED,
        retired_uncorrected_total: Reading::UNSUPPORTED,
        retirement_pending: Reading::UNSUPPORTED,
        ..Ecc::default()
    }
}

fn nvlink(busy: f64) -> NvLinks {
    NvLinks {
        read: stamp(),
        count: 18.into(),
        tx_bytes_per_second: (busy * 95e9).into(),
        rx_bytes_per_second: (busy * 95e9).into(),
        links: (0..18)
            .map(|link| NvLink {
                link,
                state: text("active"),
                speed_bytes_per_second: 26.562e9.into(),
                replay_total: 0.into(),
                recovery_total: 0.into(),
                crc_total: 0.into(),
            })
            .collect(),
        ..NvLinks::default()
    }
}

/// A process with so many MiB on each GPU.
pub(crate) fn process(pid: u32, command: &str, parts: &[(u32, u64)]) -> Process {
    Process {
        pid,
        read: stamp(),
        exists: true.into(),
        parent: 1.into(),
        ancestors: vec![Ancestor { pid: 1, comm: "systemd".into() }],
        user: text("ml"),
        uid: 1001.into(),
        comm: text(command.split(' ').next().unwrap_or("")),
        command: text(command),
        state: text("S"),
        state_since_ms: (NOW - 60_000).into(),
        wchan: Reading::Absent(Absence::Denied { need: "root".into() }),
        start_ticks: (u64::from(pid) * 1000).into(),
        started_at_ms: (NOW - 6 * 3_600_000).into(),
        cpu_seconds_total: 5412.0.into(),
        cpu_ratio: 1.04.into(),
        rss_bytes: (9_u64 << 30).into(),
        pinned_bytes: 0.into(),
        locked_bytes: (64 * MIB).into(),
        swap_bytes: 0.into(),
        threads: 212.into(),
        namespace_pids: vec![pid].into(),
        cgroup: text("/system.slice/vllm.service"),
        container: Reading::UNSUPPORTED,
        container_name: Reading::UNSUPPORTED,
        slurm_job: Reading::UNSUPPORTED,
        pod: Reading::UNSUPPORTED,
        unit: text("vllm.service"),
        engine: Reading::UNSUPPORTED,
        listening_ports: vec![].into(),
        device_files: vec![
            DeviceCount { node: "nvidiactl".into(), count: 3 },
            DeviceCount { node: "nvidia-uvm".into(), count: 2 },
        ]
        .into(),
        device_maps: Reading::Absent(Absence::Denied {
            need: "the owner's uid or CAP_SYS_PTRACE".into(),
        }),
        libraries: vec![
            Library { name: "libcuda".into(), version: "590.48.01".into(), deleted: false },
            Library { name: "libcudart".into(), version: "12.8.90".into(), deleted: false },
        ]
        .into(),
        gpus: parts
            .iter()
            .map(|(gpu_index, mib)| GpuUse {
                gpu_index: *gpu_index,
                kind: "compute".into(),
                gpu_bytes: (mib * MIB).into(),
                sm_ratio: 0.5.into(),
                ..GpuUse::default()
            })
            .collect(),
        ..Process::default()
    }
}

fn as_engine(mut process: Process, engine: &str, ports: &[u16]) -> Process {
    process.engine = text(engine);
    process.listening_ports = ports.to_vec().into();
    process
}

fn in_container(mut process: Process, id: &str) -> Process {
    process.container = text(&format!("docker {id}"));
    process.namespace_pids = vec![process.pid, 7].into();
    process
}

pub(crate) fn snapshot(gpus: Vec<Gpu>, processes: Vec<Process>) -> Snapshot {
    let mut driver = driver();
    driver.gpu_count = u32::try_from(gpus.len()).unwrap_or(0).into();
    Snapshot {
        schema: 1,
        sequence: 4711,
        taken_at_ms: NOW - 400,
        interval_ms: 1000,
        generation: 1,
        host: host(),
        driver,
        gpus,
        processes,
        kernel_log: KernelLog {
            source: text("kmsg"),
            lines: vec![KernelLine {
                at_ms: (NOW - 1_253_000).into(),
                text: "Out of memory: Killed process 48190 (vllm)".into(),
                kind: "oom_kill".into(),
                pid: Some(48190),
                ..KernelLine::default()
            }],
            ..KernelLog::default()
        },
        self_cost: SelfCost {
            pid: 60999,
            nvml_calls_total: 1_204_331,
            nvml_seconds_total: 31.7,
            nvml_calls_per_gpu: 14,
            dropped_values_total: 2,
            cpu_seconds_total: 40.1.into(),
            cpu_ratio: 0.0061.into(),
            rss_bytes: (21 * MIB).into(),
            threads: 12.into(),
            sources: vec![
                Source { name: "host".into(), took_us: 310, absent: None },
                Source { name: "processes".into(), took_us: 2200, absent: None },
                Source {
                    name: "kernel_log".into(),
                    took_us: 20,
                    absent: Some("no permission, needs root or group adm".into()),
                },
            ],
            calls: vec![
                CallCost {
                    call: "nvmlDeviceGetPcieThroughput".into(),
                    count: 480,
                    mean_us: 21044.0,
                    max_us: 23310,
                },
                CallCost {
                    call: "nvmlDeviceGetMemoryInfo_v2".into(),
                    count: 480,
                    mean_us: 11.4,
                    max_us: 88,
                },
            ],
            spread_us: 1800,
        },
    }
}

/// Eight H100 with servers, notebooks and small fry; nothing is wrong.
pub(crate) fn busy_box() -> Shown {
    let gpus = vec![
        h100(0, 74_950, 0.98),
        h100(1, 74_950, 0.97),
        h100(2, 74_950, 0.98),
        h100(3, 74_900, 0.81),
        h100(4, 13_200, 0.02),
        h100(5, 74_750, 0.96),
        h100(6, 2, 0.0),
        h100(7, 2, 0.0),
    ];
    let mut running = process(60112, "python health_check.py", &[(4, 540)]);
    running.state = text("R");
    let processes = vec![
        in_container(
            as_engine(
                process(48102, "vllm serve Qwen/Qwen3-32B --tensor-parallel-size 3", &[]),
                "vLLM API server",
                &[8000],
            ),
            "4f5c1a2b3c4d",
        ),
        in_container(
            as_engine(
                process(48110, "VLLM::Worker_TP", &[(0, 74_950), (1, 74_950), (2, 74_950)]),
                "vLLM worker",
                &[],
            ),
            "4f5c1a2b3c4d",
        ),
        as_engine(process(48233, "VLLM::EngineCore", &[(3, 74_900)]), "vLLM engine core", &[]),
        process(51977, "/home/ml/venv/bin/python notebook.ipynb", &[(4, 12_390)]),
        running,
        as_engine(
            process(48410, "vllm serve meta-llama/Llama-3-8B --port 8001", &[(5, 74_750)]),
            "vLLM engine core",
            &[8001],
        ),
        process(2104, "/usr/lib/xorg/Xorg -core :0", &[(6, 2)]),
        process(2105, "/usr/lib/xorg/Xorg -core :1", &[(7, 2)]),
        process(70001, "python -m 推理服务 --port 9000", &[(4, 10)]),
    ];
    let mut processes = processes;
    processes[1].parent = 48102.into();
    processes[1].ancestors.insert(0, Ancestor { pid: 48102, comm: "vllm".into() });
    Shown::new(snapshot(gpus, processes), vec![])
}

/// The same box on a bad night: an orphan, a stuck GPU, a lost GPU, memory held by nobody.
pub(crate) fn sick_box() -> Shown {
    let mut shown = busy_box();
    let snapshot = &mut shown.snapshot;
    snapshot.gpus[3].utilization.gpu_ratio = 0.0.into();
    snapshot.gpus[5].health = Health::NoAnswer {
        call: "nvmlDeviceGetUtilizationRates".into(),
        since_ms: NOW - 7_000,
        thread: "D rpcRmApiControl_GSP".into(),
    };
    snapshot.gpus[5].utilization.read.at_ms = NOW - 7_400;
    snapshot.gpus[7].health =
        Health::Lost { since_ms: NOW - 184_000, answer: "GPU is lost".into() };
    snapshot.gpus[6].clocks.sm_mhz = Reading::Absent(Absence::Failed { what: "code 999".into() });
    let stuck = snapshot.processes.iter_mut().find(|process| process.pid == 48410);
    if let Some(stuck) = stuck {
        stuck.state = text("D");
        stuck.state_since_ms = (NOW - 7_000).into();
    }
    let orphan = snapshot.processes.iter_mut().find(|process| process.pid == 48233);
    if let Some(orphan) = orphan {
        orphan.libraries =
            vec![Library { name: "libcuda".into(), version: "580.95.05".into(), deleted: true }]
                .into();
    }
    snapshot.kernel_log.lines.push(KernelLine {
        at_ms: (NOW - 184_000).into(),
        text: "NVRM: Xid (PCI:0000:8a:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen \
               off the bus."
            .into(),
        kind: "xid".into(),
        code: Some(79),
        pci: Some("0000:8a:00".into()),
        ..KernelLine::default()
    });
    let mut gone = process(47001, "", &[(6, 310)]);
    gone.exists = Reading::Absent(Absence::Gone);
    for reading in [&mut gone.command, &mut gone.comm, &mut gone.state, &mut gone.user] {
        *reading = Reading::Absent(Absence::Gone);
    }
    gone.start_ticks = Reading::Absent(Absence::Gone);
    snapshot.processes.push(gone);
    snapshot.gpus[6].memory.used_bytes = (312 * MIB).into();
    let findings = vec![
        Finding {
            cause: "orphaned_engine_process".into(),
            severity: Severity::Critical,
            subject: Subject::Process(48233),
            title: "an engine whose server is gone holds 73.1 GiB on GPU 3".into(),
            since_ms: NOW - 1_256_000,
            evidence: vec![
                "48233 VLLM::EngineCore holds 73.1 GiB on GPU 3".into(),
                "its parent 48190 ended at 02:51:14".into(),
            ],
            help: "end 48233; start the engine with --init".into(),
        },
        Finding {
            cause: "gpu_lost".into(),
            severity: Severity::Critical,
            subject: Subject::Gpu(7),
            title: "the GPU has fallen off the bus (Xid 79)".into(),
            since_ms: NOW - 184_000,
            evidence: vec!["kernel log: Xid 79".into()],
            help: "drain the node and power-cycle it".into(),
        },
        Finding {
            cause: "driver_call_stuck".into(),
            severity: Severity::Warning,
            subject: Subject::Gpu(5),
            title: "a driver call has not returned for 7 s".into(),
            since_ms: NOW - 7_000,
            evidence: vec![],
            help: String::new(),
        },
    ];
    Shown::new(shown.snapshot, findings)
}

/// Two A100, one of them cut into MIG instances.
pub(crate) fn mig_box() -> Shown {
    let a100 = |index| {
        let mut gpu = h100(index, 30_000, 0.5);
        gpu.name = text("A100-SXM4-80GB");
        gpu.gpm = Gpm { supported: false.into(), ..Gpm::default() };
        gpu
    };
    let mut whole = a100(0);
    whole.identity.mig_enabled = true.into();
    whole.utilization = Utilization {
        read: stamp(),
        gpu_ratio: Reading::UNSUPPORTED,
        memory_ratio: Reading::UNSUPPORTED,
        ..Utilization::default()
    };
    let instance = |number: u32, used: u64, total: u64| Gpu {
        uuid: text(&format!("MIG-{number}")),
        mig: Some(MigInstance {
            parent_uuid: "GPU-0".into(),
            gpu_instance: number.into(),
            compute_instance: 0.into(),
            compute_slices: 3.into(),
            profile: text(&format!("{number}g.{}gb", total / 1024)),
        }),
        memory: Memory {
            read: stamp(),
            total_bytes: (total * MIB).into(),
            reserved_bytes: 0.into(),
            used_bytes: (used * MIB).into(),
            free_bytes: ((total - used) * MIB).into(),
            ..Memory::default()
        },
        power: Power { draw_watts: Reading::UNSUPPORTED, ..whole.power.clone() },
        ..whole.clone()
    };
    let mut in_instance = process(3001, "python serve.py", &[(0, 20_000)]);
    in_instance.gpus[0].mig_uuid = Some("MIG-3".into());
    let gpus = vec![
        whole.clone(),
        instance(3, 20_000, 40_448),
        instance(2, 9_000, 20_224),
        instance(1, 13, 9_856),
        a100(1),
    ];
    let mut other = process(3002, "tritonserver --model-repository /models", &[(1, 29_900)]);
    other.engine = text("Triton");
    Shown::new(snapshot(gpus, vec![in_instance, other]), vec![])
}

/// A GB10: no memory of its own.
pub(crate) fn unified_box() -> Shown {
    let mut gpu = h100(0, 30_000, 0.4);
    gpu.name = text("GB10");
    gpu.memory = Memory {
        read: stamp(),
        unified: true,
        total_bytes: (119_u64 << 30).into(),
        reserved_bytes: Reading::UNSUPPORTED,
        used_bytes: (52_u64 << 30).into(),
        free_bytes: (67_u64 << 30).into(),
        bar1_total_bytes: Reading::UNSUPPORTED,
        bar1_used_bytes: Reading::UNSUPPORTED,
    };
    gpu.nvlink = NvLinks { count: Reading::UNSUPPORTED, ..NvLinks::default() };
    gpu.fabric = Fabric { state: Reading::UNSUPPORTED, ..Fabric::default() };
    gpu.gpm = Gpm { supported: false.into(), ..Gpm::default() };
    gpu.topology.peers.clear();
    let mut snapshot =
        snapshot(vec![gpu], vec![process(900, "ollama runner --port 3999", &[(0, 41_000)])]);
    snapshot.host.memory_total_bytes = (119_u64 << 30).into();
    snapshot.host.memory_available_bytes = (67_u64 << 30).into();
    Shown::new(snapshot, vec![])
}

/// The library and the loaded module are of two versions.
pub(crate) fn mismatch_box() -> Shown {
    let mut snapshot = snapshot(vec![], vec![]);
    snapshot.driver = Driver {
        module_version: text("570.86.15"),
        library_on_disk: text("575.51.03"),
        version: Reading::Absent(Absence::NoDriver),
        cuda_version: Reading::Absent(Absence::NoDriver),
        session: Session::Failed { code: 18, answer: "Driver/library version mismatch".into() },
        pci_gpus: vec![PciGpu {
            pci: "0000:1a:00.0".into(),
            device_id: "2330".into(),
            driver: "nvidia".into(),
            model: text("H100 80GB HBM3"),
            ..PciGpu::default()
        }]
        .into(),
        problem: Some(DriverProblem {
            cause: "driver_library_mismatch".into(),
            title: "the driver and its library are of two versions".into(),
            evidence: vec![
                "loaded kernel module 570.86.15".into(),
                "libnvidia-ml on disk 575.51.03".into(),
            ],
            help: "reboot, or end every GPU process and load the kernel module anew".into(),
            blocking: true,
            ..DriverProblem::default()
        }),
        ..driver()
    };
    Shown::new(snapshot, vec![])
}

/// Nothing has been read yet.
pub(crate) fn empty_box() -> Shown {
    let mut shown = Shown::new(Snapshot::default(), vec![]);
    shown.feed.last_ms = None;
    shown
}

/// Sixty-four GPUs with a process each.
pub(crate) fn large_box() -> Shown {
    let gpus = (0..64).map(|index| h100(index, 40_000 + u64::from(index) * 100, 0.9)).collect();
    let processes =
        (0..64).map(|index| process(1000 + index, "python train.py", &[(index, 39_000)])).collect();
    Shown::new(snapshot(gpus, processes), vec![])
}

/// A name that tries to take the terminal over.
pub(crate) fn hostile_box() -> Shown {
    let mut shown = busy_box();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J evil\u{202e}txt.exe\r\n\u{9b}31m 👩‍👩‍👧 é́́ 推理推理推理推理推理推理推理";
    for process in &mut shown.snapshot.processes {
        process.command = text(evil);
        process.user = text(evil);
        process.engine = text(evil);
        process.container = text(evil);
        process.state = text(evil);
    }
    shown.snapshot.host.name = text(evil);
    shown.snapshot.gpus[0].name = text(evil);
    shown.snapshot.gpus[1].health = Health::Failing { code: 0, since_ms: 0, answer: evil.into() };
    shown.findings = vec![Finding {
        title: evil.into(),
        cause: evil.into(),
        evidence: vec![evil.into()],
        help: evil.into(),
        severity: Severity::Warning,
        ..Finding::default()
    }];
    shown
}

/// All of them, with names.
pub(crate) fn all() -> Vec<(&'static str, Shown)> {
    vec![
        ("busy", busy_box()),
        ("sick", sick_box()),
        ("mig", mig_box()),
        ("unified", unified_box()),
        ("mismatch", mismatch_box()),
        ("empty", empty_box()),
        ("large", large_box()),
        ("hostile", hostile_box()),
    ]
}

//! A GPU that is gone from the bus keeps its number, its row says so, its last values stay and are
//! marked as old, and all others go on.

use probes::driver::Session;
use probes::snapshot::{Gpu, Health};

use crate::frames::{Frame, Sampler};
use crate::gpu_box::GpuBox;
use crate::terminal::Terminal;
use crate::tree::Tree;

/// GPU 3 of eight falls off the bus two seconds after the start.
const LOSING: &str = r#"
[[gpu]]
model = "H100 80GB HBM3"
count = 3
utilization = 93

[[gpu]]
model = "H100 80GB HBM3"
utilization = 41
lost_at = 2

[[gpu]]
model = "H100 80GB HBM3"
count = 4
utilization = 93

[[process]]
gpu = "all"
per_gpu = 1
pid = 4100000
bytes = "70GiB"

[[xid]]
at = 2
gpu = 3
code = 79
"#;

fn is_lost(frame: &Frame, index: u32) -> bool {
    frame.find_gpu(index).is_some_and(|gpu| matches!(gpu.health, Health::Lost { .. }))
}

#[test]
fn a_lost_gpu_keeps_its_number_and_its_last_values_and_the_others_go_on() {
    let gpu_box = GpuBox::written(LOSING);
    let sampler = Sampler::start(&gpu_box, "500ms");
    let mut last_good = None;
    let (found, _) = sampler.find("GPU 3 lost", |frame| {
        if let Some(gpu) = frame.find_gpu(3).filter(|gpu| gpu.answers()) {
            last_good = Some(gpu.clone());
        }
        is_lost(frame, 3)
    });
    let last_good = last_good.unwrap();
    let Health::Lost { answer, since_ms } = &found.gpu(3).health else { unreachable!() };
    assert!(answer.contains("lost"), "{answer}");
    let since_ms = *since_ms;
    let advances = sampler.advances(6, |frame| {
        let indices: Vec<u32> = frame.snapshot.gpus.iter().map(|gpu| gpu.index).collect();
        assert_eq!(indices, [0, 1, 2, 3, 4, 5, 6, 7]);
        let lost = frame.gpu(3);
        assert!(is_lost(frame, 3), "{:?}", lost.health);
        assert_eq!(lost.uuid, last_good.uuid);
        assert_eq!(lost.memory.used_bytes, last_good.memory.used_bytes);
        assert_eq!(lost.utilization.gpu_ratio.get(), Some(0.41));
        // Old and marked: no later than the loss.
        assert!(lost.utilization.read.at_ms <= since_ms, "read after it was lost");
        for gpu in frame.snapshot.gpus.iter().filter(|gpu| gpu.index != 3) {
            assert_eq!(gpu.health, Health::Answering, "GPU {}", gpu.index);
        }
        assert_eq!(frame.snapshot.driver.session, Session::Open);
    });
    for index in [0, 1, 2, 4, 5, 6, 7] {
        assert!(advances[&index] >= 4, "GPU {index} waited: {advances:?} of 6");
    }
}

#[test]
fn the_row_of_a_lost_gpu_says_so_and_the_finding_names_the_cause() {
    let gpu_box = GpuBox::written(LOSING);
    let terminal = Terminal::start(&gpu_box, (24, 80), &["--interval", "500ms"]);
    terminal.wait_for("all eight", |text| text.contains("8×H100"));
    terminal.wait_for("the loss", |_| terminal.gpu_row(3).contains("▲ lost"));
    terminal.wait_for("the finding", |text| text.contains("GPU 3: the GPU is lost"));
    let row = terminal.gpu_row(3);
    assert!(!row.contains("41%"), "{row}");
    // What it held when it was seen last.
    assert!(row.contains("70.0"), "{row}");
    for index in [0, 1, 2, 4, 5, 6, 7] {
        assert!(terminal.gpu_row(index).contains("93%"), "{}", terminal.text());
    }
}

#[test]
fn when_all_gpus_are_lost_every_row_says_so_and_the_program_stays() {
    let scenario = LOSING.replace("utilization = 93", "utilization = 93\nlost_at = 2");
    let gpu_box = GpuBox::written(&scenario);
    let mut terminal = Terminal::start(&gpu_box, (24, 80), &["--interval", "500ms"]);
    terminal.wait_for("eight losses", |_| {
        (0..8).all(|index| terminal.gpu_row(index).contains("▲ lost"))
    });
    terminal.keys("q");
    let (status, _) = terminal.wait_for_end();
    assert!(status.success(), "{status}");
}

/// Three GPUs; with `missing`, the driver comes back without the first one and counts anew.
fn renumbered(missing: bool) -> String {
    let first = if missing {
        String::new()
    } else {
        "[[gpu]]\nmodel = 'H200'\nuuid = 'GPU-a'\npci_bus_id = '00000000:19:00.0'\n".into()
    };
    format!(
        "{first}
[[gpu]]
model = 'H200'
uuid = 'GPU-b'
pci_bus_id = '00000000:3b:00.0'
utilization = 20

[[gpu]]
model = 'H200'
uuid = 'GPU-c'
pci_bus_id = '00000000:4c:00.0'
utilization = 30

[[reload]]
at = 2
gone_seconds = 0.5
"
    )
}

#[test]
fn gpus_that_the_driver_counts_anew_after_a_reload_keep_their_numbers() {
    let tree = Tree::with_driver(3, "590.48.01");
    let library = gpubox::nvml_library();
    tree.install(&library, "usr/lib64", "590.48.01");
    let gpu_box = GpuBox::written(&renumbered(false)).without_library().in_tree(&tree);
    let sampler = Sampler::start(&gpu_box, "500ms");
    sampler.find("three GPUs", |frame| {
        frame.snapshot.gpus.len() == 3 && frame.snapshot.gpus.iter().all(Gpu::answers)
    });
    sampler.find("the driver gone", |frame| frame.snapshot.driver.session != Session::Open);
    // The new package lies in another folder, so that it is another library to the loader: the old
    // one may still be in memory.
    std::fs::remove_dir_all(tree.path("usr/lib64")).unwrap();
    tree.install(&library, "usr/lib", "595.10");
    gpu_box.rewrite(&renumbered(true));
    tree.load("595.10");
    let (frame, _) = sampler.find("the others back", |frame| {
        frame.snapshot.generation == 2
            && [1, 2].iter().all(|index| frame.find_gpu(*index).is_some_and(Gpu::answers))
    });
    let uuids: Vec<&str> = frame.snapshot.gpus.iter().map(|gpu| gpu.uuid.text()).collect();
    assert_eq!(uuids, ["GPU-a", "GPU-b", "GPU-c"]);
    assert_eq!(frame.gpu(1).utilization.gpu_ratio.get(), Some(0.2));
    assert_eq!(frame.gpu(2).utilization.gpu_ratio.get(), Some(0.3));
    assert!(!frame.gpu(0).answers(), "{:?}", frame.gpu(0).health);
    sampler.find("GPU 0 lost", |frame| is_lost(frame, 0));
}

//! Reads the GPUs' folders in sysfs.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::{Information, PciGpu, normalize_pci, parse_information};
use crate::machine::{Machine, read_line, read_text};
use crate::reading::{Absence, Reading};

const NVIDIA: &str = "0x10de";
/// Display controllers: VGA (0x0300) and 3D (0x0302).
const DISPLAY_CLASS: &str = "0x03";
/// PCI Express knows up to 32 lanes.
const MAX_LANES: u32 = 32;

/// All NVIDIA GPUs on the bus, in the order of their addresses.
pub fn read_pci_gpus(machine: &Machine) -> Reading<Vec<PciGpu>> {
    let entries = match std::fs::read_dir(machine.sys("bus/pci/devices")) {
        Ok(entries) => entries,
        // A kernel without PCI, or a box without it: there is nothing to list.
        Err(error) => return Reading::Absent(Absence::from_io(&error)),
    };
    let mut gpus: Vec<PciGpu> = entries
        .flatten()
        .filter(|entry| is_gpu(&entry.path()))
        .map(|entry| read_pci_gpu(machine, &entry.path(), &entry.file_name().to_string_lossy()))
        .collect();
    gpus.sort_by(|a, b| a.pci.cmp(&b.pci));
    gpus.into()
}

fn is_gpu(device: &Path) -> bool {
    let starts = |file: &str, wanted: &str| {
        read_line(&device.join(file)).is_ok_and(|text| text.starts_with(wanted))
    };
    starts("class", DISPLAY_CLASS)
        && (starts("vendor", NVIDIA) || starts("vendor", "0xffff"))
        && !device.join("physfn").exists()
}

fn read_pci_gpu(machine: &Machine, device: &Path, address: &str) -> PciGpu {
    let Information { uuid, model, minor, firmware } = match read_information(machine, address) {
        Ok(information) => information,
        Err(absence) => Information {
            uuid: Reading::Absent(absence.clone()),
            model: Reading::Absent(absence.clone()),
            minor: Reading::Absent(absence.clone()),
            firmware: Reading::Absent(absence),
        },
    };
    let link = |file: &str| Reading::<String>::from(read_line(&device.join(file)));
    PciGpu {
        pci: normalize_pci(address),
        device_id: read_line(&device.join("device"))
            .map(|id| id.trim_start_matches("0x").to_string())
            .unwrap_or_default(),
        driver: std::fs::read_link(device.join("driver"))
            .ok()
            .and_then(|target| Some(target.file_name()?.to_string_lossy().into_owned()))
            .unwrap_or_default(),
        on_bus: read_on_bus(device),
        uuid,
        model,
        minor,
        firmware,
        link_generation: link("current_link_speed").and_then(|text| parse_link_speed(&text)),
        link_width: link("current_link_width").and_then(|text| parse_link_width(&text)),
        max_link_generation: link("max_link_speed").and_then(|text| parse_link_speed(&text)),
        max_link_width: link("max_link_width").and_then(|text| parse_link_width(&text)),
        numa_node: link("numa_node").and_then(|text| match text.parse::<i64>() {
            // -1: the firmware names no node.
            Ok(node) => u32::try_from(node).map_or(Reading::UNSUPPORTED, Reading::Value),
            Err(_) => Reading::Absent(not_understood("NUMA node", &text)),
        }),
        local_cpus: link("local_cpulist"),
        aer_correctable_total: read_aer(device, "aer_dev_correctable"),
        aer_nonfatal_total: read_aer(device, "aer_dev_nonfatal"),
        aer_fatal_total: read_aer(device, "aer_dev_fatal"),
    }
}

/// Marks GPUs that were seen before and are not on the bus now, and lists them again.
pub(crate) fn merge_vanished(before: &[PciGpu], now: &mut Vec<PciGpu>) {
    let present: HashSet<String> = now.iter().map(|gpu| gpu.pci.clone()).collect();
    for gone in before.iter().filter(|gpu| !present.contains(&gpu.pci)) {
        now.push(PciGpu {
            on_bus: false.into(),
            driver: String::new(),
            link_generation: Reading::Absent(Absence::Lost),
            link_width: Reading::Absent(Absence::Lost),
            ..gone.clone()
        });
    }
    now.sort_by(|a, b| a.pci.cmp(&b.pci));
}

fn read_information(machine: &Machine, address: &str) -> Result<Information, Absence> {
    let path = machine.proc("driver/nvidia/gpus").join(address).join("information");
    match read_text(&path) {
        Ok(text) => Ok(parse_information(&text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Absence::NoDriver),
        Err(error) => Err(Absence::from_io(&error)),
    }
}

fn read_on_bus(device: &Path) -> Reading<bool> {
    if read_line(&device.join("vendor")).is_ok_and(|vendor| vendor == "0xffff") {
        return false.into();
    }
    if read_line(&device.join("power/runtime_status")).is_ok_and(|status| status == "suspended") {
        return Reading::Absent(Absence::NoData);
    }
    let mut vendor = [0; 2];
    File::open(device.join("config"))
        .and_then(|mut config| config.read_exact(&mut vendor))
        .map(|()| vendor != [0xff, 0xff])
        .into()
}

fn read_aer(device: &Path, file: &str) -> Reading<u64> {
    Reading::<String>::from(read_text(&device.join(file))).and_then(|text| {
        parse_aer(&text)
            .map_or_else(|| Reading::Absent(not_understood("error counters", file)), Reading::Value)
    })
}

/// The sum at the end of an AER file, or the sum of its lines where a kernel writes none.
pub(super) fn parse_aer(text: &str) -> Option<u64> {
    let mut sum: Option<u64> = None;
    for line in text.lines() {
        let Some((name, count)) = line.trim().rsplit_once(' ') else { continue };
        let Ok(count) = count.parse::<u64>() else { continue };
        if name.starts_with("TOTAL_ERR") {
            return Some(count);
        }
        sum = Some(sum.unwrap_or(0).saturating_add(count));
    }
    sum
}

/// `32.0 GT/s PCIe` as generation 5.
pub(super) fn parse_link_speed(text: &str) -> Reading<u32> {
    let rate = text.split_whitespace().next().unwrap_or_default();
    match rate.strip_suffix(".0").unwrap_or(rate) {
        "2.5" => 1.into(),
        "5" => 2.into(),
        "8" => 3.into(),
        "16" => 4.into(),
        "32" => 5.into(),
        "64" => 6.into(),
        "Unknown" => Reading::Absent(Absence::NoData),
        _ => Reading::Absent(not_understood("link speed", text)),
    }
}

/// `16` as 16 lanes; 0 and what no link can have are dropped.
pub(super) fn parse_link_width(text: &str) -> Reading<u32> {
    match text.trim().parse() {
        Ok(0) => Reading::Absent(Absence::NoData),
        Ok(width) if width <= MAX_LANES => Reading::Value(width),
        Ok(_) => Reading::Absent(Absence::OutOfRange),
        Err(_) => Reading::Absent(not_understood("link width", text)),
    }
}

fn not_understood(what: &str, text: &str) -> Absence {
    let text: String = text.chars().take(40).collect();
    Absence::Failed { what: format!("{what} not understood: {text:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tree::FakeTree;

    const GPU: &str = "sys/bus/pci/devices/0000:83:00.0";

    fn box_with_one_gpu() -> FakeTree {
        let tree = FakeTree::new(&[
            ("sys/bus/pci/devices/0000:00:1f.0/class", "0x060100\n"),
            ("sys/bus/pci/devices/0000:00:1f.0/vendor", "0x8086\n"),
            ("sys/bus/pci/devices/0000:83:00.1/class", "0x040300\n"),
            ("sys/bus/pci/devices/0000:83:00.1/vendor", "0x10de\n"),
            (&format!("{GPU}/class"), "0x030200\n"),
            (&format!("{GPU}/vendor"), "0x10de\n"),
            (&format!("{GPU}/device"), "0x2330\n"),
            (&format!("{GPU}/current_link_speed"), "32.0 GT/s PCIe\n"),
            (&format!("{GPU}/current_link_width"), "16\n"),
            (&format!("{GPU}/max_link_speed"), "32.0 GT/s PCIe\n"),
            (&format!("{GPU}/max_link_width"), "16\n"),
            (&format!("{GPU}/numa_node"), "-1\n"),
            (&format!("{GPU}/local_cpulist"), "0-31,64-95\n"),
            (&format!("{GPU}/aer_dev_correctable"), "RxErr 1\nBadTLP 2\nTOTAL_ERR_COR 3\n"),
            ("proc/driver/nvidia/gpus/0000:83:00.0/information", "Device Minor: \t 3\n"),
        ]);
        tree.write(&format!("{GPU}/config"), &[0xde, 0x10, 0x30, 0x23]);
        tree.link(&format!("{GPU}/driver"), "../../../bus/pci/drivers/nvidia");
        tree
    }

    #[test]
    fn a_gpu_is_told_from_its_audio_function_and_other_devices() {
        let tree = box_with_one_gpu();
        let gpus = read_pci_gpus(&tree.machine);
        let [gpu] = &gpus.value().unwrap()[..] else { panic!("{gpus:?}") };
        assert_eq!((gpu.pci.as_str(), gpu.device_id.as_str()), ("0000:83:00.0", "2330"));
        assert_eq!(gpu.driver, "nvidia");
        assert_eq!(gpu.on_bus, true.into());
        assert_eq!(gpu.minor, 3.into());
        assert_eq!((gpu.link_generation.get(), gpu.link_width.get()), (Some(5), Some(16)));
        assert_eq!(gpu.numa_node, Reading::UNSUPPORTED);
        assert_eq!(gpu.aer_correctable_total, 3.into());
        assert!(gpu.aer_fatal_total.absence().is_some());
    }

    #[test]
    fn a_device_that_reads_as_all_ones_is_off_the_bus() {
        let tree = box_with_one_gpu();
        tree.write(&format!("{GPU}/config"), &[0xff; 64]);
        tree.write(&format!("{GPU}/current_link_width"), b"63\n");
        tree.write(&format!("{GPU}/current_link_speed"), b"Unknown\n");
        let gpus = read_pci_gpus(&tree.machine);
        let gpu = &gpus.value().unwrap()[0];
        assert_eq!(gpu.on_bus, false.into());
        assert_eq!(gpu.link_width.absence(), Some(&Absence::OutOfRange));
        assert_eq!(gpu.link_generation.absence(), Some(&Absence::NoData));
    }

    #[test]
    fn a_suspended_gpu_is_not_woken_by_looking() {
        let tree = box_with_one_gpu();
        tree.write(&format!("{GPU}/power/runtime_status"), b"suspended\n");
        tree.write(&format!("{GPU}/config"), &[0xff; 64]);
        let gpus = read_pci_gpus(&tree.machine);
        assert_eq!(gpus.value().unwrap()[0].on_bus.absence(), Some(&Absence::NoData));
    }

    #[test]
    fn a_gpu_that_leaves_the_bus_stays_listed_as_gone() {
        let before = vec![
            PciGpu { pci: "0000:83:00.0".into(), ..PciGpu::default() },
            PciGpu { pci: "0000:84:00.0".into(), ..PciGpu::default() },
        ];
        let mut now = vec![before[1].clone()];
        merge_vanished(&before, &mut now);
        assert_eq!(now[0].on_bus, false.into());
        assert_eq!(now[1].on_bus, Reading::default());
    }

    #[test]
    fn a_box_without_pci_has_a_reason_and_no_list() {
        let tree = FakeTree::new(&[]);
        assert_eq!(read_pci_gpus(&tree.machine).absence(), Some(&Absence::Unsupported));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_in_stride(text in "(.|\n){0,80}") {
            parse_aer(&text);
            parse_link_speed(&text);
            parse_link_width(&text);
        }
    }
}

//! What the module says about itself, and what is on disk for building and loading one.

use serde::{Deserialize, Serialize};

use crate::machine::{Machine, read_bytes, read_line, read_text};
use crate::reading::{Absence, Reading};

/// What is on disk for the running kernel while no module is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Built {
    /// The module's file, below the kernel's module folder; `NoData` where there is none.
    pub module_file: Reading<String>,
    /// Whether headers of the running kernel are there.
    pub headers: Reading<bool>,
    /// Versions of the module's source that DKMS knows.
    pub dkms_versions: Vec<String>,
    /// Whether the firmware checks signatures, so that an unsigned module is refused.
    pub secure_boot: Reading<bool>,
}

/// EFI's global variable; four bytes of attributes come before the value.
const SECURE_BOOT: &str = "firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

/// The absence of a file that the module makes: it is not loaded.
pub(super) fn module_absence(error: &std::io::Error) -> Absence {
    match error.kind() {
        std::io::ErrorKind::NotFound => Absence::NoDriver,
        _ => Absence::from_io(error),
    }
}

/// Version of the loaded kernel module; `NoDriver` where none is loaded.
pub fn read_module_version(machine: &Machine) -> Reading<String> {
    match read_line(&machine.sys("module/nvidia/version")) {
        Ok(version) if !version.is_empty() => version.into(),
        // Some recorded or cut-down trees have only the driver's own file.
        Ok(_) => read_version_file(machine).and_then(|(version, _)| version.into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            read_version_file(machine).and_then(|(version, _)| version.into())
        }
        Err(error) => Reading::Absent(module_absence(&error)),
    }
}

/// Version and flavour from the driver's own version file.
pub(super) fn read_version_file(machine: &Machine) -> Reading<(String, String)> {
    match read_text(&machine.proc("driver/nvidia/version")) {
        Ok(text) => parse_module_version(&text).map_or_else(
            || {
                let line: String = text.chars().take(80).collect();
                Reading::Absent(Absence::Failed { what: format!("no version in {line:?}") })
            },
            |(version, flavour)| Reading::Value((version, flavour.to_string())),
        ),
        Err(error) => Reading::Absent(module_absence(&error)),
    }
}

/// Version, and `open` or `proprietary`, from `NVRM version: NVIDIA UNIX Open Kernel Module for
/// x86_64  525.60.11  Release Build …`.
pub fn parse_module_version(text: &str) -> Option<(String, &'static str)> {
    let line = text.lines().find(|line| line.contains("Kernel Module"))?;
    let (_, rest) = line.split_once("Kernel Module")?;
    let version = rest.split_whitespace().find(|word| is_version(word))?;
    let flavour = if line.contains("Open Kernel Module") { "open" } else { "proprietary" };
    Some((version.to_string(), flavour))
}

/// Whether a word is digits and dots, such as `590.48.01`.
pub(super) fn is_version(word: &str) -> bool {
    word.contains('.')
        && word.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

/// The module's parameters: name and value of each line.
pub fn parse_params(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim(), value.trim()))
    })
}

/// The loaded modules that have to do with NVIDIA GPUs, nouveau and the kernel's own nova among
/// them.
pub fn parse_modules(text: &str) -> Vec<String> {
    let ours = |name: &&str| {
        name.starts_with("nvidia") || matches!(*name, "nouveau" | "nova_core" | "nova_drm")
    };
    let names = text.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(ours).map(String::from).collect()
}

/// Whether firmware runs on the GPUs, by the `EnableGpuFirmware` parameter: its low four bits say
/// off, on, or the driver's choice.
pub(super) fn firmware_mode(value: &str) -> Option<bool> {
    match value.parse::<u32>().ok()? & 0xf {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

pub(super) fn read_built(machine: &Machine, kernel: &str) -> Built {
    if kernel.is_empty() || kernel.contains('/') {
        return Built::default();
    }
    let folder = machine.root("lib/modules").join(kernel);
    let listed = match read_text(&folder.join("modules.dep")) {
        Ok(text) => find_module(&text).map_or(Reading::Absent(Absence::NoData), Reading::Value),
        Err(error) => Reading::Absent(Absence::from_io(&error)),
    };
    let headers = match std::fs::metadata(folder.join("build")) {
        Ok(_) => true.into(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder.exists() => {
            false.into()
        }
        Err(error) => Reading::Absent(Absence::from_io(&error)),
    };
    let mut dkms_versions: Vec<String> = std::fs::read_dir(machine.root("var/lib/dkms/nvidia"))
        .map(|entries| entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()))
        .map(|names| names.filter(|name| is_version(name)).collect())
        .unwrap_or_default();
    dkms_versions.sort();
    let secure_boot = match read_bytes(&machine.sys(SECURE_BOOT)) {
        Ok(bytes) => bytes.get(4).map_or(Reading::Absent(Absence::NoData), |on| (*on == 1).into()),
        Err(error) => Reading::Absent(Absence::from_io(&error)),
    };
    Built { module_file: listed, headers, dkms_versions, secure_boot }
}

/// The nvidia module in a `modules.dep`, whatever its folder and compression.
pub(super) fn find_module(modules_dep: &str) -> Option<String> {
    let mut files = modules_dep.lines().filter_map(|line| line.split(':').next());
    let is_module = |file: &&str| {
        let name = file.rsplit('/').next().unwrap_or_default();
        matches!(name, "nvidia.ko" | "nvidia.ko.zst" | "nvidia.ko.xz" | "nvidia.ko.gz")
    };
    files.find(is_module).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tree::FakeTree;

    #[test]
    fn both_flavours_of_the_module_tell_their_version() {
        for (text, wanted) in [
            (
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  384.98  Thu Oct 26 15:16:01 PDT 2017\nGCC version:  gcc 9.4.0\n",
                Some(("384.98".to_string(), "proprietary")),
            ),
            (
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build  (dvs-builder@U22)\n",
                Some(("590.48.01".to_string(), "open")),
            ),
            ("GCC version:  gcc 9.4.0\n", None),
            ("", None),
        ] {
            assert_eq!(parse_module_version(text), wanted);
        }
    }

    #[test]
    fn only_modules_of_our_gpus_are_listed() {
        let text = "nvidia_uvm 4218880 4 - Live 0x0\nsnd 1 0 - Live 0x0\nnvidia 1 31 nvidia_uvm, Live\nnouveau 1 0 - Live\n";
        assert_eq!(parse_modules(text), ["nvidia_uvm", "nvidia", "nouveau"]);
    }

    #[test]
    fn the_firmware_parameter_decides_only_where_it_is_set() {
        assert_eq!(firmware_mode("18"), None);
        assert_eq!(firmware_mode("17"), Some(true));
        assert_eq!(firmware_mode("0"), Some(false));
        assert_eq!(firmware_mode("x"), None);
    }

    #[test]
    fn what_is_on_disk_for_the_kernel_is_found() {
        let tree = FakeTree::new(&[
            (
                "lib/modules/6.8.0-71/modules.dep",
                "kernel/drivers/nvidia.ko.old: x\nupdates/dkms/nvidia-uvm.ko.zst: updates/dkms/nvidia.ko.zst\nupdates/dkms/nvidia.ko.zst:\n",
            ),
            ("var/lib/dkms/nvidia/580.119.02/source", ""),
            ("var/lib/dkms/nvidia/kernel-6.8-x86_64/x", ""),
        ]);
        tree.write(&format!("sys/{SECURE_BOOT}"), &[6, 0, 0, 0, 1]);
        let built = read_built(&tree.machine, "6.8.0-71");
        assert_eq!(built.module_file.text(), "updates/dkms/nvidia.ko.zst");
        assert_eq!(built.headers, false.into());
        assert_eq!(built.dkms_versions, ["580.119.02"]);
        assert_eq!(built.secure_boot, true.into());
        assert!(read_built(&tree.machine, "6.9").module_file.absence().is_some());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_in_stride(text in "(Kernel Module)?(.|\n){0,80}") {
            parse_module_version(&text);
            parse_params(&text).count();
            parse_modules(&text);
            firmware_mode(&text);
            find_module(&text);
        }
    }
}

//! The parsers' door for the fuzz targets: each entry takes any bytes and panics where something
//! does not hold.
//!
//! Built for fuzzing and for tests only. The fuzzer's seeds, and each input that once found a fault,
//! run with the other tests.

pub use crate::host::fuzzing::host_files;
pub use crate::kernel_log::fuzzing::kernel_log;
pub use crate::proc::fuzzing::{command_line, mappings, process_files};

use crate::snapshot::Snapshot;

/// Files of the bus and of the driver: a target each would learn nothing more.
pub fn driver_files(bytes: &[u8]) {
    crate::pci::fuzzing::pci_files(bytes);
    crate::driver::fuzzing::driver_files(bytes);
}

/// What is decoded is encoded and decoded again to the same.
pub fn snapshot(bytes: &[u8]) {
    let Ok(snapshot) = Snapshot::decode(bytes) else { return };
    let Ok(encoded) = snapshot.encode() else { panic!("a decoded snapshot cannot be encoded") };
    let Ok(again) = Snapshot::decode(&encoded) else { panic!("its own encoding is not decoded") };
    // NaN differs from itself; what is encoded does not.
    assert_eq!(again.encode().ok(), Some(encoded));
}

/// Text that reaches a snapshot must not move the cursor of whoever looks at it.
pub(crate) fn assert_plain(text: &str) {
    assert!(!text.chars().any(char::is_control), "control characters in {text:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOORS: &[(&str, fn(&[u8]))] = &[
        ("process_files", process_files),
        ("command_line", command_line),
        ("mappings", mappings),
        ("kernel_log", kernel_log),
        ("driver_files", driver_files),
        ("host_files", host_files),
        ("snapshot", snapshot),
    ];

    #[test]
    fn every_seed_holds() {
        let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
        for (name, door) in DOORS {
            let files = std::fs::read_dir(seeds.join(name)).unwrap();
            let paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
            assert!(!paths.is_empty(), "{name} has no seeds");
            for path in paths {
                door(&std::fs::read(path).unwrap());
            }
        }
    }
}

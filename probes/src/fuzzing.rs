//! The parsers' door for the fuzz targets: each entry takes any bytes and panics where something
//! does not hold.
//!
//! Built for fuzzing and for tests only. The fuzzer's seeds, and each input that once found a fault,
//! run with the other tests.

use crate::snapshot::Snapshot;
use crate::{driver, host, kernel_log, pci, proc};

/// A door by the name of its target.
pub type Door = (&'static str, fn(&[u8]));

/// One for each fuzz target but the panels, which stand in another crate.
pub const DOORS: &[Door] = &[
    ("process_files", proc::fuzzing::process_files),
    ("command_line", proc::fuzzing::command_line),
    ("mappings", proc::fuzzing::mappings),
    ("kernel_log", kernel_log::fuzzing::kernel_log),
    ("driver_files", driver_files),
    ("host_files", host::fuzzing::host_files),
    ("snapshot", snapshot),
];

/// Goes through the door of this name.
///
/// # Panics
/// When there is none, and when something does not hold: that is what the fuzzer looks for.
pub fn enter(name: &str, bytes: &[u8]) {
    let door = DOORS.iter().find(|(door, _)| *door == name);
    let (_, door) = door.unwrap_or_else(|| panic!("no door for {name}"));
    door(bytes);
}

/// Files of the bus and of the driver: a target each would learn nothing more.
fn driver_files(bytes: &[u8]) {
    pci::fuzzing::pci_files(bytes);
    driver::fuzzing::driver_files(bytes);
}

/// What is decoded is encoded and decoded again to the same.
fn snapshot(bytes: &[u8]) {
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

    #[test]
    fn every_seed_holds() {
        let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/seeds");
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

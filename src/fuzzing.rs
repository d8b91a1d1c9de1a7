//! The door for the fuzz targets of what the program itself reads; those of the machine stand in
//! `probes`. Each entry takes any bytes and panics where something does not hold.
//!
//! Built for fuzzing and for tests only. The fuzzer's seeds, and each input that once found a fault,
//! run with the other tests.

/// A door by the name of its target.
pub type Door = (&'static str, fn(&[u8]));

/// One for each fuzz target.
pub const DOORS: &[Door] = &[
    ("config", crate::config::fuzzing::config),
    ("requests", crate::daemon::server::fuzzing::requests),
    ("store_chunk", crate::store::fuzzing::store_chunk),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_holds() {
        let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds");
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

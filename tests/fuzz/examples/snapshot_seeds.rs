//! Writes the seeds of the targets `snapshot` and `panels` from the boxes of the panels' tests.

#[path = "../../../panels/tests/screens/boxes.rs"]
mod boxes;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds/snapshot");
    std::fs::create_dir_all(folder)?;
    // Small seeds are mutated where it matters; these two have nothing that the others have not.
    for (name, shown) in
        boxes::all().into_iter().filter(|(name, _)| !["busy", "large"].contains(name))
    {
        let mut snapshot = shown.snapshot;
        snapshot.gpus.truncate(2);
        snapshot.processes.truncate(4);
        let mut bytes = snapshot.encode()?;
        bytes.extend(b"\x78\x20\x01\t\t\t2\x01\x08?\tkf");
        std::fs::write(format!("{folder}/{name}"), bytes)?;
    }
    Ok(())
}

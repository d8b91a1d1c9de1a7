//! Where the built stand-in libraries are, and how to take symbols out of one.

use std::path::{Path, PathBuf};

/// The built `libnvidia-ml.so.1` stand-in, under that name (and as `libnvidia-ml.so`), so that
/// its directory can serve as `LD_LIBRARY_PATH`.
///
/// # Panics
/// When it was not built; the text says which command builds it.
pub fn nvml_library() -> PathBuf {
    library("gpubox-nvml", "libgpubox_nvml.so", &["libnvidia-ml.so.1", "libnvidia-ml.so"])
}

/// The built `libcuda.so.1` stand-in, likewise.
///
/// # Panics
/// When it was not built; the text says which command builds it.
pub fn cuda_library() -> PathBuf {
    library("gpubox-cuda", "libgpubox_cuda.so", &["libcuda.so.1", "libcuda.so"])
}

/// The NVML stand-in as a scenario wants it: without the symbols that its faults call `missing`.
///
/// # Panics
/// When the scenario cannot be read, or the library was not built or lacks such a symbol.
pub fn nvml_library_for(scenario: &Path) -> PathBuf {
    let text = std::fs::read_to_string(scenario)
        .unwrap_or_else(|why| panic!("cannot read {}: {why}", scenario.display()));
    let machine =
        crate::Machine::parse(&text).unwrap_or_else(|why| panic!("{}: {why}", scenario.display()));
    let missing: Vec<&str> = machine
        .faults
        .iter()
        .filter(|fault| fault.missing)
        .map(|fault| fault.symbol.as_str())
        .collect();
    let library = nvml_library();
    if missing.is_empty() { library } else { without_symbols(&library, &missing) }
}

/// A scenario of this directory, by name.
pub fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name).with_extension("toml")
}

fn library(package: &str, file: &str, names: &[&str]) -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    // target/<profile>/deps/test-hash or target/<profile>/program. Cargo puts a cdylib that is
    // built as a dependency into deps, and one that was asked for also beside the programs; the
    // newer of the two is meant.
    let mut found: Option<(std::time::SystemTime, PathBuf)> = None;
    for directory in program.ancestors().skip(1).take(2) {
        for candidate in [directory.join(file), directory.join("deps").join(file)] {
            if let Ok(built) = candidate.metadata().and_then(|meta| meta.modified())
                && found.as_ref().is_none_or(|(best, _)| *best < built)
            {
                found = Some((built, candidate));
            }
        }
    }
    let release = if program.components().any(|part| part.as_os_str() == "release") {
        " --release"
    } else {
        ""
    };
    let Some((_, built)) = found else {
        panic!(
            "no {file} near {}: build it with `cargo build -p {package}{release}`",
            program.display()
        );
    };
    named(&built, names).unwrap_or_else(|why| panic!("cannot name {}: {why}", built.display()))
}

/// Links the built file under its public names in a directory beside it.
fn named(built: &Path, names: &[&str]) -> std::io::Result<PathBuf> {
    let directory = built.parent().unwrap_or(Path::new(".")).join("gpubox-lib");
    std::fs::create_dir_all(&directory)?;
    for name in names {
        let link = directory.join(name);
        if std::fs::read_link(&link).is_ok_and(|target| target == built) {
            continue;
        }
        // Renamed into place, because tests run side by side.
        let fresh = directory.join(format!(".{name}.{}", unique()));
        std::os::unix::fs::symlink(built, &fresh)?;
        std::fs::rename(&fresh, &link)?;
    }
    Ok(directory.join(names[0]))
}

fn unique() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A copy of a library in which these symbols cannot be resolved, as on an older driver. The
/// names are overwritten in the dynamic string table: the hash tables still lead there, the
/// comparison of the name then fails, and `dlsym` finds nothing.
///
/// # Panics
/// When the library cannot be read, or a symbol is not in it.
pub fn without_symbols(library: &Path, symbols: &[&str]) -> PathBuf {
    let mut bytes = std::fs::read(library)
        .unwrap_or_else(|why| panic!("cannot read {}: {why}", library.display()));
    for symbol in symbols {
        // Strings in .dynstr stand between NULs; a linker may share a tail (`Count` inside
        // `DeviceGetCount`), so only the whole string is renamed.
        let wanted: Vec<u8> = [b"\0", symbol.as_bytes(), b"\0"].concat();
        let mut hits = 0;
        let mut from = 0;
        while let Some(at) = find(&bytes[from..], &wanted) {
            bytes[from + at + 1] = b'#';
            hits += 1;
            from += at + wanted.len() - 1;
        }
        assert!(hits > 0, "{symbol} is not in {}", library.display());
    }
    let name = library.file_name().unwrap_or_default();
    let directory = std::env::temp_dir().join(format!("gpubox-without-{}", unique()));
    let copy = directory.join(name);
    std::fs::create_dir_all(&directory)
        .and_then(|()| std::fs::write(&copy, bytes))
        .unwrap_or_else(|why| panic!("cannot write {}: {why}", copy.display()));
    copy
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

//! A box per test. The stand-ins read their environment once a process, so a test that needs a
//! box runs itself again in a child with the box in the environment.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs `body` in a child process on a box. `name` is the test's own name (with its module path),
/// `extra` more environment, such as `("GPUBOX_CLOCK", "frozen:5")`.
///
/// # Panics
/// When the child does, with its output.
pub fn on_box(name: &str, scenario: &Path, extra: &[(&str, &str)], body: impl FnOnce()) {
    if std::env::var("GPUBOX_TEST").as_deref() == Ok(name) {
        return body();
    }
    let state = fresh_state();
    let program = std::env::current_exe().unwrap_or_default();
    let output = Command::new(program)
        .args([name, "--exact", "--nocapture"])
        .env("GPUBOX_TEST", name)
        .env("GPUBOX_SCENARIO", scenario)
        .env("GPUBOX_STATE", &state)
        .envs(extra.iter().copied())
        .output();
    let _ = std::fs::remove_dir_all(&state);
    let output = output.unwrap_or_else(|why| panic!("{name}: cannot start the child: {why}"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    // A misspelt name would run no test and pass.
    assert!(!said.contains("running 0 tests"), "no test is called {name}");
}

/// A new state directory.
///
/// # Panics
/// When it cannot be made.
pub fn fresh_state() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let state = std::env::temp_dir().join(format!("gpubox-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&state);
    std::fs::create_dir_all(&state)
        .unwrap_or_else(|why| panic!("cannot make {}: {why}", state.display()));
    state
}

/// A scenario written for one test, beside the state directories.
///
/// # Panics
/// When it cannot be written, or says something that is no scenario.
pub fn written(name: &str, text: &str) -> PathBuf {
    if let Err(why) = crate::Machine::parse(text) {
        panic!("{name}: {why}");
    }
    // A test and its child write the same file: renamed into place, it is always whole.
    let path = std::env::temp_dir().join(format!("gpubox-scenario-{name}.toml"));
    let fresh = path.with_extension(format!("{}", std::process::id()));
    std::fs::write(&fresh, text)
        .and_then(|()| std::fs::rename(&fresh, &path))
        .unwrap_or_else(|why| panic!("cannot write {}: {why}", path.display()));
    path
}

//! A box per test. The stand-ins read their environment once a process, so a test that needs a
//! box runs itself again in a child with the box in the environment.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a child may take.
const PATIENCE: Duration = Duration::from_mins(1);

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
    let said = state.join("output");
    let run = || -> std::io::Result<Option<ExitStatus>> {
        let output = File::create(&said)?;
        let mut child = Command::new(program)
            .args([name, "--exact", "--nocapture"])
            .env("GPUBOX_TEST", name)
            .env("GPUBOX_SCENARIO", scenario)
            .env("GPUBOX_STATE", &state)
            .envs(extra.iter().copied())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        let begun = Instant::now();
        // Boxes that hang are played here: a test that fell for it must still end.
        while begun.elapsed() < PATIENCE {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill()?;
        child.wait()?;
        Ok(None)
    };
    let status = run().unwrap_or_else(|why| panic!("{name}: cannot run the child: {why}"));
    let said = std::fs::read_to_string(said).unwrap_or_default();
    let _ = std::fs::remove_dir_all(&state);
    match status {
        None => panic!("{name}: no end after {} s\n{said}", PATIENCE.as_secs()),
        Some(status) => assert!(status.success(), "{said}"),
    }
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

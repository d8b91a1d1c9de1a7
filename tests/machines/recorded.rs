//! A recorded machine: its folder, and the real binary looking at it.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use probes::snapshot::Snapshot;

use super::normal;
use super::screens::Picture;

/// How long a box may take to settle.
const PATIENCE: Duration = Duration::from_secs(30);
/// So many frames that say the same make it settled.
const ALIKE: usize = 3;
/// The box's root file system, below its state folder.
const ROOT: &str = "root";
/// Boxes that are looked at side by side.
const AT_ONCE: usize = 2;

/// `machine.toml`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "some keys are for people")]
pub struct About {
    pub title: String,
    pub source: String,
    pub not_recorded: String,
    /// The second of the scenario at which the box stands still.
    pub clock: f64,
    /// Functions that this box's driver library does not have.
    #[serde(default)]
    pub missing_symbols: Vec<String>,
    /// Parts of command lines that no output may show.
    #[serde(default)]
    pub secrets: Vec<String>,
}

pub struct Machine {
    pub name: String,
    pub about: About,
    folder: PathBuf,
    /// Where programs look for the driver's library, below `root` in the state folder.
    library: PathBuf,
    state: tempfile::TempDir,
    picture: OnceLock<Snapshot>,
}

/// Where the machines are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines")
}

/// All machines, by name.
pub fn machines() -> &'static [Machine] {
    static ALL: OnceLock<Vec<Machine>> = OnceLock::new();
    ALL.get_or_init(|| {
        let wanted = std::env::var("MACHINES").unwrap_or_default();
        let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
        let mut folders: Vec<PathBuf> =
            entries.filter(|path| path.join("machine.toml").exists()).collect();
        folders.sort();
        let named = |path: &&PathBuf| path.to_string_lossy().contains(&wanted);
        folders.iter().filter(named).map(|path| Machine::open(path)).collect()
    })
}

/// Whether only some machines were asked for.
pub fn filtered() -> bool {
    std::env::var_os("MACHINES").is_some()
}

/// Does something with every machine, goes on when one is not as it should be, and says which.
pub fn run_all(each: impl Fn(&Machine) + Sync) {
    let next = AtomicUsize::new(0);
    let failed = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(machine) = machines().get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = std::panic::AssertUnwindSafe(|| each(machine));
                    if std::panic::catch_unwind(run).is_err() {
                        failed.lock().unwrap().push(machine.name.clone());
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "not as it should be, see above: {}", failed.join(", "));
}

impl Machine {
    fn open(folder: &Path) -> Self {
        let text = std::fs::read_to_string(folder.join("machine.toml")).unwrap();
        let about: About = toml::from_str(&text).unwrap();
        let state = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        // A copy, because the stand-in takes the place of the library, and nodes their usual mode.
        copy(&folder.join("root"), &state.path().join(ROOT));
        let library = place_library(state.path(), &about);
        Self {
            name: folder.file_name().unwrap().to_string_lossy().into_owned(),
            about,
            folder: folder.into(),
            library,
            state,
            picture: OnceLock::new(),
        }
    }

    fn command(&self) -> Command {
        static RUN: AtomicUsize = AtomicUsize::new(0);
        let state = self.state.path().join(format!("run-{}", RUN.fetch_add(1, Ordering::Relaxed)));
        let mut command = Command::new(env!("CARGO_BIN_EXE_infertop"));
        // Paths below the state folder are relative, or lines that hold one would break elsewhere
        // in another checkout.
        command
            .current_dir(self.state.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .env("GPUBOX_SCENARIO", self.folder.join("scenario.toml"))
            .env("GPUBOX_STATE", &state)
            .env("GPUBOX_CLOCK", format!("frozen:{}", self.about.clock))
            .env("INFERTOP_NVML_LIB", &self.library)
            .arg("--procfs")
            .arg(self.folder.join("proc"))
            .arg("--sysfs")
            .arg(self.folder.join("sys"))
            .arg("--rootfs")
            .arg(ROOT);
        command
    }

    /// `infertop once` with these arguments.
    pub fn once(&self, arguments: &[&str]) -> Output {
        self.command().arg("once").args(arguments).output().unwrap()
    }

    /// `infertop once --json` in lines, once it says the same twice: on a busy computer it may print
    /// before it has read everything.
    pub fn json(&self) -> String {
        let mut last = String::new();
        for _ in 0..8 {
            let start_ms = now_ms();
            let output = self.once(&["--json"]);
            let document = serde_json::from_slice(&output.stdout).unwrap();
            let lines = normal::document(document, start_ms);
            let text = format!("exit {}\n{lines}", exit_code(&output));
            if text == last {
                return text;
            }
            last = text;
        }
        panic!("{} says something else at each look", self.name)
    }

    /// What the sampler says once it says the same again and again.
    fn settled(&self) -> Snapshot {
        let start_ms = now_ms();
        let mut command = self.command();
        command.args(["sampler", "-d", "250ms"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Ended(command.spawn().unwrap());
        let mut frames = child.0.stdout.take().unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut last: Option<Snapshot> = None;
        let mut alike = 0;
        let mut differs = None;
        while Instant::now() < deadline {
            let mut length = [0; 4];
            frames.read_exact(&mut length).unwrap();
            let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
            frames.read_exact(&mut bytes).unwrap();
            let snapshot = Snapshot::decode(&bytes).unwrap();
            let sequence = snapshot.sequence;
            let snapshot = normal::snapshot(&snapshot, start_ms);
            if last.as_ref() == Some(&snapshot) {
                alike += 1;
            } else {
                alike = 1;
                differs = last.map(|last| normal::difference(&last, &snapshot));
            }
            if sequence >= 3 && alike >= ALIKE {
                return snapshot;
            }
            last = Some(snapshot);
        }
        panic!("{} says something else with each frame: {differs:?}", self.name)
    }

    /// The settled box with all that a panel looks at.
    pub fn picture(&self) -> Picture {
        Picture::of(self.picture.get_or_init(|| self.settled()).clone())
    }

    /// A file of the recording.
    pub fn file(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }
}

/// A child that does not outlive its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Puts the stand-in where this box has its driver's library; says where programs look for it.
fn place_library(state: &Path, about: &About) -> PathBuf {
    let folders = ["usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu"];
    let names = folders.map(|folder| Path::new(ROOT).join(folder).join("libnvidia-ml.so.1"));
    let Some(name) = names.iter().find(|name| state.join(name).symlink_metadata().is_ok()) else {
        // None: nothing but a path that leads nowhere keeps this very computer's library out.
        return names[0].clone();
    };
    let link = state.join(name);
    let file = link.parent().unwrap().join(std::fs::read_link(&link).unwrap());
    std::fs::remove_file(&file).unwrap();
    let library = gpubox::nvml_library();
    if about.missing_symbols.is_empty() {
        std::fs::copy(library, file).unwrap();
    } else {
        let symbols: Vec<&str> = about.missing_symbols.iter().map(String::as_str).collect();
        let older = gpubox::without_symbols(&library, &symbols);
        std::fs::copy(&older, file).unwrap();
        std::fs::remove_dir_all(older.parent().unwrap()).unwrap();
    }
    name.clone()
}

/// A folder with its links as they are; device nodes get the mode that the driver gives them.
fn copy(from: &Path, to: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&from, &to);
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&from).unwrap(), &to).unwrap();
        } else {
            std::fs::copy(&from, &to).unwrap();
            if from.components().any(|part| part.as_os_str() == "dev") {
                std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o666)).unwrap();
            }
        }
    }
}

/// What a program said, as a terminal would show it, with its exit code.
pub fn said(output: &Output, command: &str) -> String {
    let (out, complaints) = (utf8(&output.stdout), utf8(&output.stderr));
    let separator = if complaints.is_empty() { "" } else { "--- standard error\n" };
    let text = format!("$ {command}\n{out}{separator}{complaints}exit {}\n", exit_code(output));
    normal::text(&text)
}

pub fn exit_code(output: &Output) -> String {
    output.status.code().map_or_else(|| output.status.to_string(), |code| code.to_string())
}

pub fn utf8(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

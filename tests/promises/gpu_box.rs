//! A box to start `infertop` on: the stand-in library with a scenario, and a state folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use serde_json::Value;

use crate::tree::Tree;

/// A stand-in box.
pub struct GpuBox {
    /// Shared with whoever runs on the box, so that it outlasts them.
    state: Arc<tempfile::TempDir>,
    /// `None`: the program searches by itself.
    library: Option<PathBuf>,
    scenario: PathBuf,
    roots: Vec<String>,
    frozen: Option<String>,
}

impl GpuBox {
    /// The box of a scenario that `tests/gpubox/scenarios` holds.
    pub fn of(scenario: &str) -> Self {
        Self::at(&gpubox::scenario(scenario))
    }

    /// The box of a scenario file.
    pub fn at(scenario: &Path) -> Self {
        Self {
            state: Arc::new(tempfile::tempdir().unwrap()),
            library: Some(gpubox::nvml_library()),
            scenario: scenario.into(),
            roots: Vec::new(),
            frozen: None,
        }
    }

    /// The box of a scenario written here.
    pub fn written(scenario: &str) -> Self {
        let mut gpu_box = Self::of("empty");
        gpu_box.scenario = gpu_box.state.path().join("scenario.toml");
        gpu_box.rewrite(scenario);
        gpu_box
    }

    /// Puts another scenario in the place of a written one. Who has loaded the library before goes
    /// on with the old one.
    pub fn rewrite(&self, scenario: &str) {
        gpubox::Machine::parse(scenario).unwrap();
        let fresh = self.state.path().join("scenario.new");
        std::fs::write(&fresh, scenario).unwrap();
        std::fs::rename(fresh, &self.scenario).unwrap();
    }

    /// The same box with another library.
    #[must_use]
    pub fn with_library(mut self, library: impl Into<PathBuf>) -> Self {
        self.library = Some(library.into());
        self
    }

    /// The same box with no library told: the program looks for one.
    #[must_use]
    pub fn without_library(mut self) -> Self {
        self.library = None;
        self
    }

    /// The same box with the files of a tree instead of this machine's.
    #[must_use]
    pub fn in_tree(mut self, tree: &Tree) -> Self {
        self.roots.extend(tree.arguments());
        self
    }

    /// The same box at one instant of its scenario, for ever.
    #[must_use]
    pub fn frozen_at(mut self, seconds: f64) -> Self {
        self.frozen = Some(format!("frozen:{seconds}"));
        self
    }

    /// The state folder, which also holds the counters of calls.
    pub fn state(&self) -> &Path {
        self.state.path()
    }

    /// Keeps the state folder for as long as this lives.
    pub fn keep(&self) -> Arc<tempfile::TempDir> {
        Arc::clone(&self.state)
    }

    /// Says which processes stand for those that the scenario binds to its `pids`.
    pub fn bind(&self, pids: &[u32]) {
        let lines: Vec<String> = pids.iter().map(ToString::to_string).collect();
        std::fs::write(self.state().join("pids"), lines.join("\n")).unwrap();
    }

    /// What the libraries need to find the scenario.
    pub fn environment(&self) -> Vec<(String, String)> {
        let mut variables = vec![
            ("GPUBOX_SCENARIO".to_string(), self.scenario.display().to_string()),
            ("GPUBOX_STATE".to_string(), self.state.path().display().to_string()),
            ("PATH".to_string(), "/usr/bin:/bin".to_string()),
        ];
        if let Some(library) = &self.library {
            variables.push(("INFERTOP_NVML_LIB".to_string(), library.display().to_string()));
        }
        if let Some(frozen) = &self.frozen {
            variables.push(("GPUBOX_CLOCK".to_string(), frozen.clone()));
        }
        variables
    }

    /// Flags for the roots.
    pub fn arguments(&self) -> &[String] {
        &self.roots
    }

    /// Runs `infertop` with arguments and waits for its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_infertop"))
            .env_clear()
            .envs(self.environment())
            .env("LANG", "C.UTF-8")
            .args(&self.roots)
            .args(arguments)
            .output()
            .unwrap()
    }

    /// `infertop once`: exit code and text.
    pub fn once(&self) -> (i32, String) {
        let output = self.run(&["once"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.is_empty(), "{errors}");
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    }

    /// `infertop once --json`: exit code and document.
    pub fn json(&self) -> (i32, Value) {
        let output = self.run(&["once", "--json"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.is_empty(), "{errors}");
        let document = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap(), document)
    }
}

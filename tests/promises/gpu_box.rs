//! A box to start `infertop` on: the stand-in library with a scenario, and a state folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A stand-in box.
pub struct GpuBox {
    state: tempfile::TempDir,
    library: PathBuf,
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
            state: tempfile::tempdir().unwrap(),
            library: gpubox::nvml_library(),
            scenario: scenario.into(),
            roots: Vec::new(),
            frozen: None,
        }
    }

    /// The box of a scenario written here.
    pub fn written(scenario: &str) -> Self {
        let mut gpu_box = Self::of("empty");
        gpu_box.scenario = gpu_box.state.path().join("scenario.toml");
        std::fs::write(&gpu_box.scenario, scenario).unwrap();
        gpu_box
    }

    /// The same box with another library.
    #[must_use]
    pub fn with_library(mut self, library: impl Into<PathBuf>) -> Self {
        self.library = library.into();
        self
    }

    /// The same box with other roots, as flags.
    #[must_use]
    pub fn with_roots(mut self, roots: &[&str]) -> Self {
        self.roots = roots.iter().map(ToString::to_string).collect();
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

    /// What the libraries need to find the scenario.
    pub fn environment(&self) -> Vec<(String, String)> {
        let mut variables = vec![
            ("GPUBOX_SCENARIO".to_string(), self.scenario.display().to_string()),
            ("GPUBOX_STATE".to_string(), self.state.path().display().to_string()),
            ("INFERTOP_NVML_LIB".to_string(), self.library.display().to_string()),
            ("PATH".to_string(), "/usr/bin:/bin".to_string()),
        ];
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
}

//! Where a daemon of a test lives: folders, a socket and a configuration of its own.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

use crate::gpu_box::GpuBox;
use crate::running_daemon::Daemon;
use crate::waiting::until;

/// Folders of a daemon, before and after it runs.
pub struct Home {
    folder: Arc<tempfile::TempDir>,
    state: PathBuf,
    socket: PathBuf,
}

impl Home {
    /// Empty ones.
    pub fn new() -> Self {
        Self::at(Arc::new(tempfile::tempdir().unwrap()))
    }

    /// Those below a folder.
    pub fn at(folder: Arc<tempfile::TempDir>) -> Self {
        let socket = folder.path().join("infertop.sock");
        Self { state: folder.path().join("state"), socket, folder }
    }

    /// Others, with the same state folder.
    pub fn with_state_of(other: &Self) -> Self {
        Self { state: other.state.clone(), ..Self::new() }
    }

    /// Others, with the same socket.
    pub fn with_socket_of(other: &Self) -> Self {
        Self { socket: other.socket.clone(), ..Self::new() }
    }

    /// A path below.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes the configuration as editors do: another file is renamed over it.
    pub fn configure(&self, text: &str) {
        let fresh = self.path("config.fresh");
        std::fs::write(&fresh, text).unwrap();
        std::fs::rename(fresh, self.path("config.toml")).unwrap();
    }

    /// The command that starts a daemon here.
    pub fn command(&self, gpu_box: &GpuBox, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_infertop"));
        command
            .env_clear()
            .envs(gpu_box.environment())
            .env("HOME", self.folder.path())
            .env("LANG", "C.UTF-8")
            .args(gpu_box.arguments())
            .arg("daemon");
        command.arg("--state").arg(&self.state);
        command.arg("--socket").arg(&self.socket);
        if self.path("config.toml").exists() {
            command.arg("--config").arg(self.path("config.toml"));
        }
        command.args(arguments);
        command
    }

    /// Starts one and waits until it answers.
    pub fn start(&self, gpu_box: &GpuBox, arguments: &[&str]) -> Daemon {
        self.start_as(gpu_box, &mut self.command(gpu_box, arguments))
    }

    /// The same with a command that was changed.
    pub fn start_as(&self, gpu_box: &GpuBox, command: &mut Command) -> Daemon {
        let mut daemon = self.spawn(gpu_box, command);
        until("a daemon that answers", || {
            assert!(daemon.child.try_wait().unwrap().is_none(), "{}", daemon.log());
            daemon.answers()
        });
        daemon
    }

    /// Starts one and waits for nothing.
    pub fn spawn(&self, gpu_box: &GpuBox, command: &mut Command) -> Daemon {
        Daemon::spawn(gpu_box, command, Arc::clone(&self.folder), &self.state, &self.socket)
    }

    /// Runs a daemon that is refused, and says what it said.
    pub fn refused(&self, gpu_box: &GpuBox, arguments: &[&str]) -> String {
        let output = self.command(gpu_box, arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    }

    /// Asks the daemon of this home as a person does: `release`, `resume`.
    pub fn ask(&self, gpu_box: &GpuBox, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_infertop"))
            .env_clear()
            .envs(gpu_box.environment())
            .env("HOME", self.folder.path())
            .arg("daemon")
            .args(arguments)
            .arg("--socket")
            .arg(&self.socket)
            .output()
            .unwrap()
    }
}

//! Where the daemon keeps its files: socket, state, configuration; as root, as a user, and under
//! systemd, which names the folders that it has made for a service.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::config::Layers;

const SYSTEM_SOCKET: &str = "/run/infertop/infertop.sock";
const SYSTEM_STATE: &str = "/var/lib/infertop";
const SYSTEM_CONFIG: &str = "/etc/infertop";
const SOCKET: &str = "infertop.sock";
const CONFIG: &str = "config.toml";

/// Who asks, and what the environment says.
pub(crate) struct Whereabouts {
    root: bool,
    variable: fn(&str) -> Option<OsString>,
}

impl Default for Whereabouts {
    fn default() -> Self {
        let root = rustix::process::geteuid().is_root();
        Self { root, variable: |name| std::env::var_os(name) }
    }
}

impl Whereabouts {
    /// A folder that a variable names; relative ones say nothing, as the XDG specification has it.
    fn folder(&self, name: &str) -> Option<PathBuf> {
        let value = (self.variable)(name)?;
        // systemd lists several folders with colons between.
        let first = std::env::split_paths(&value).next()?;
        first.is_absolute().then_some(first)
    }

    fn home(&self, below: &str) -> Option<PathBuf> {
        self.folder("HOME").map(|home| home.join(below))
    }

    /// Where the daemon keeps what it remembers.
    pub(crate) fn state(&self) -> anyhow::Result<PathBuf> {
        if let Some(folder) = self.folder("STATE_DIRECTORY") {
            return Ok(folder);
        }
        if self.root {
            return Ok(SYSTEM_STATE.into());
        }
        self.user_state().context(
            "cannot tell where to keep history: neither HOME nor XDG_STATE_HOME is set\n  \
             help: name a folder with --state",
        )
    }

    fn user_state(&self) -> Option<PathBuf> {
        let folder = self.folder("XDG_STATE_HOME").or_else(|| self.home(".local/state"));
        folder.map(|folder| folder.join("infertop"))
    }

    /// Where the daemon serves.
    pub(crate) fn socket(&self) -> anyhow::Result<PathBuf> {
        if let Some(folder) = self.folder("RUNTIME_DIRECTORY") {
            return Ok(folder.join(SOCKET));
        }
        if self.root {
            return Ok(SYSTEM_SOCKET.into());
        }
        self.user_socket().context(
            "cannot tell where to serve: neither XDG_RUNTIME_DIR nor HOME is set\n  \
             help: name a socket with --socket",
        )
    }

    /// A session without a runtime folder, such as that of `su`, has the state folder, which is as
    /// private.
    fn user_socket(&self) -> Option<PathBuf> {
        let runtime = self.folder("XDG_RUNTIME_DIR").map(|folder| folder.join("infertop"));
        runtime.or_else(|| self.user_state()).map(|folder| folder.join(SOCKET))
    }

    /// Where a client looks for a daemon, in order: where the configuration puts it, the user's own,
    /// the system's.
    fn sockets(&self, configured: Option<PathBuf>) -> Vec<PathBuf> {
        if let Some(told) = (self.variable)("INFERTOP_SOCKET").filter(|told| !told.is_empty()) {
            return vec![told.into()];
        }
        let mut sockets: Vec<PathBuf> = configured.into_iter().chain(self.user_socket()).collect();
        sockets.push(SYSTEM_SOCKET.into());
        sockets
    }

    /// Folders of the configuration, the later one counting more.
    pub(crate) fn config_folders(&self) -> Vec<PathBuf> {
        let user = self.folder("XDG_CONFIG_HOME").or_else(|| self.home(".config"));
        let mut folders = vec![PathBuf::from(SYSTEM_CONFIG)];
        folders.extend(user.map(|folder| folder.join("infertop")));
        folders
    }

    /// Files of the configuration, the later one counting more.
    pub(crate) fn config_files(&self) -> Vec<PathBuf> {
        self.config_folders().into_iter().map(|folder| folder.join(CONFIG)).collect()
    }
}

/// Where a client looks for a daemon, in order. A configuration that is broken says nothing here: the
/// daemon says it.
pub(crate) fn sockets() -> Vec<PathBuf> {
    let configured = Layers::of_system().load().ok().and_then(|config| config.socket);
    Whereabouts::default().sockets(configured)
}

/// What a daemon on this box remembers: the store of the own daemon where there is one, else that of
/// the system's.
pub(crate) fn store_file() -> anyhow::Result<PathBuf> {
    let own = Whereabouts::default().state()?.join(crate::store::FILE);
    let system = Path::new(SYSTEM_STATE).join(crate::store::FILE);
    Ok(if own.exists() || !system.exists() { own } else { system })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(variable: fn(&str) -> Option<OsString>) -> Whereabouts {
        Whereabouts { root: false, variable }
    }

    #[test]
    fn root_has_the_places_of_the_system() {
        let root = Whereabouts { root: true, variable: |_| None };
        assert_eq!(root.state().unwrap(), Path::new("/var/lib/infertop"));
        assert_eq!(root.socket().unwrap(), Path::new("/run/infertop/infertop.sock"));
        assert_eq!(root.config_files(), [Path::new("/etc/infertop/config.toml")]);
        assert_eq!(root.sockets(None), [Path::new("/run/infertop/infertop.sock")]);
    }

    #[test]
    fn systemd_says_where_the_folders_of_a_service_are() {
        let service = user(|name| match name {
            "STATE_DIRECTORY" => Some("/var/lib/infertop:/var/lib/other".into()),
            "RUNTIME_DIRECTORY" => Some("/run/infertop".into()),
            _ => None,
        });
        assert_eq!(service.state().unwrap(), Path::new("/var/lib/infertop"));
        assert_eq!(service.socket().unwrap(), Path::new("/run/infertop/infertop.sock"));
    }

    #[test]
    fn a_user_has_places_of_the_own() {
        let me = user(|name| match name {
            "HOME" => Some("/home/me".into()),
            "XDG_RUNTIME_DIR" => Some("/run/user/1000".into()),
            "XDG_CONFIG_HOME" => Some("relative".into()),
            _ => None,
        });
        assert_eq!(me.state().unwrap(), Path::new("/home/me/.local/state/infertop"));
        let own = Path::new("/run/user/1000/infertop/infertop.sock");
        assert_eq!(me.socket().unwrap(), own);
        assert_eq!(me.sockets(None), [own, Path::new("/run/infertop/infertop.sock")]);
        let files = [
            Path::new("/etc/infertop/config.toml"),
            Path::new("/home/me/.config/infertop/config.toml"),
        ];
        assert_eq!(me.config_files(), files);
    }

    #[test]
    fn without_a_home_it_says_what_to_do() {
        let nobody = user(|_| None);
        let error = nobody.state().unwrap_err().to_string();
        assert!(error.contains("--state"), "{error}");
        assert!(nobody.socket().unwrap_err().to_string().contains("--socket"));
    }

    #[test]
    fn a_socket_that_is_told_is_the_only_one_tried() {
        let told = user(|name| (name == "INFERTOP_SOCKET").then(|| "/tmp/x.sock".into()));
        assert_eq!(told.sockets(None), [Path::new("/tmp/x.sock")]);
    }
}

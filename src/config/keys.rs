//! The table of keys.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::daemon::log::Level;

use super::Config;

/// What can be told.
pub(crate) struct Key {
    /// Section of the file; empty for what stands above all sections.
    pub(crate) section: &'static str,
    /// Name in its section.
    pub(crate) name: &'static str,
    /// What it is, in lines of a comment.
    pub(crate) help: &'static str,
    /// What one might write, where there is no default to be shown.
    pub(crate) example: &'static str,
    /// Whether a reload is enough.
    pub(crate) live: bool,
    /// Where it is kept.
    pub(crate) slot: fn(&mut Config) -> Slot<'_>,
}

/// A place in the configuration, with what may be put there.
pub(crate) enum Slot<'a> {
    Number {
        value: &'a mut u64,
        least: u64,
        most: u64,
    },
    Word(&'a mut String),
    Level(&'a mut Level),
    Path(&'a mut PathBuf),
    /// Nothing is an empty text.
    MaybePath(&'a mut Option<PathBuf>),
    /// Nothing is `off`.
    MaybeAddress(&'a mut Option<SocketAddr>),
}

/// A value as it was written.
pub(crate) enum Given<'a> {
    Number(u64),
    Text(&'a str),
    /// A flag or a variable, which have no types.
    Untyped(&'a OsStr),
    /// Something else.
    Other,
}

pub(crate) const KEYS: &[Key] = &[
    Key {
        section: "",
        name: "interval_ms",
        help: "Time between two snapshots, 250 to 60000.",
        example: "",
        live: true,
        slot: |config| Slot::Number { value: &mut config.interval_ms, least: 250, most: 60_000 },
    },
    Key {
        section: "",
        name: "log_level",
        help: "What is worth a line: error, warning, info or debug.",
        example: "",
        live: true,
        slot: |config| Slot::Level(&mut config.log_level),
    },
    Key {
        section: "",
        name: "socket",
        help: "Socket to serve on. By default /run/infertop/infertop.sock for root, and\n\
               $XDG_RUNTIME_DIR/infertop/infertop.sock for a user.",
        example: "/run/infertop/infertop.sock",
        live: false,
        slot: |config| Slot::MaybePath(&mut config.socket),
    },
    Key {
        section: "",
        name: "group",
        help: "Group whose members may read from the socket, where there is such a group.",
        example: "",
        live: false,
        slot: |config| Slot::Word(&mut config.group),
    },
    Key {
        section: "store",
        name: "folder",
        help: "Folder of the history. By default /var/lib/infertop for root, and\n\
               $XDG_STATE_HOME/infertop or ~/.local/state/infertop for a user.",
        example: "/var/lib/infertop",
        live: false,
        slot: |config| Slot::MaybePath(&mut config.store.folder),
    },
    Key {
        section: "store",
        name: "raw_days",
        help: "Days for which every snapshot is kept.",
        example: "",
        live: true,
        slot: |config| Slot::Number { value: &mut config.store.raw_days, least: 1, most: 3650 },
    },
    Key {
        section: "store",
        name: "rollup_days",
        help: "Days for which smallest, mean and largest value of each minute are kept.",
        example: "",
        live: true,
        slot: |config| Slot::Number { value: &mut config.store.rollup_days, least: 1, most: 3650 },
    },
    Key {
        section: "store",
        name: "max_mib",
        help: "Most that the history may take on disk, in MiB; the oldest goes first.",
        example: "",
        live: true,
        slot: |config| Slot::Number { value: &mut config.store.max_mib, least: 16, most: 1 << 24 },
    },
    Key {
        section: "metrics",
        name: "listen",
        help: "Address to serve /metrics and /healthz on over TCP; off by default. Beyond this machine\n\
               set a token and TLS as well.",
        example: crate::cli::DEFAULT_LISTEN,
        live: false,
        slot: |config| Slot::MaybeAddress(&mut config.metrics.listen),
    },
    Key {
        section: "metrics",
        name: "token_file",
        help: "File with the token that a scraper must send (Authorization: Bearer …).",
        example: "/etc/infertop/token",
        live: false,
        slot: |config| Slot::MaybePath(&mut config.metrics.token_file),
    },
    Key {
        section: "metrics",
        name: "tls_certificate_file",
        help: "Certificate chain for TLS, in PEM.",
        example: "/etc/infertop/certificate.pem",
        live: false,
        slot: |config| Slot::MaybePath(&mut config.metrics.tls_certificate_file),
    },
    Key {
        section: "metrics",
        name: "tls_key_file",
        help: "Its private key, in PEM.",
        example: "/etc/infertop/key.pem",
        live: false,
        slot: |config| Slot::MaybePath(&mut config.metrics.tls_key_file),
    },
    Key {
        section: "machine",
        name: "procfs",
        help: "Where procfs is mounted.",
        example: "",
        live: false,
        slot: |config| Slot::Path(&mut config.machine.procfs),
    },
    Key {
        section: "machine",
        name: "sysfs",
        help: "Where sysfs is mounted.",
        example: "",
        live: false,
        slot: |config| Slot::Path(&mut config.machine.sysfs),
    },
    Key {
        section: "machine",
        name: "rootfs",
        help: "Root of the host's file system, when it is mounted elsewhere.",
        example: "",
        live: false,
        slot: |config| Slot::Path(&mut config.machine.rootfs),
    },
    Key {
        section: "machine",
        name: "nvml_lib",
        help: "The driver's library, instead of searching for libnvidia-ml.so.1.",
        example: "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
        live: false,
        slot: |config| Slot::MaybePath(&mut config.machine.nvml_lib),
    },
];

/// Older than the rule for names, and told to everybody.
const SHORT_NAMES: &[(&str, &str)] = &[("machine.nvml_lib", "INFERTOP_NVML_LIB")];

/// The key of this name.
pub(crate) fn find(section: &str, name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.section == section && key.name == name)
}

impl Key {
    /// `store.raw_days`.
    pub(crate) fn path(&self) -> String {
        match self.section {
            "" => self.name.to_string(),
            section => format!("{section}.{}", self.name),
        }
    }

    /// Names of its variable, the later one counting more.
    pub(crate) fn variables(&self) -> Vec<String> {
        let path = self.path();
        let short = SHORT_NAMES.iter().find(|(of, _)| *of == path);
        let mut names: Vec<String> = short.iter().map(|(_, name)| (*name).to_string()).collect();
        names.push(format!("INFERTOP_{}", path.replace('.', "_").to_uppercase()));
        names
    }

    /// Its value as it is written in a file; `None` for nothing.
    pub(crate) fn show(&self, config: &Config) -> Option<String> {
        // A slot is for changing, which a copy may be.
        (self.slot)(&mut config.clone()).show()
    }
}

impl Key {
    /// Takes this key's value from another configuration.
    pub(crate) fn copy(&self, from: &Config, to: &mut Config) {
        let mut from = from.clone();
        match ((self.slot)(&mut from), (self.slot)(to)) {
            (Slot::Number { value: from, .. }, Slot::Number { value: to, .. }) => *to = *from,
            (Slot::Word(from), Slot::Word(to)) => to.clone_from(from),
            (Slot::Level(from), Slot::Level(to)) => *to = *from,
            (Slot::Path(from), Slot::Path(to)) => to.clone_from(from),
            (Slot::MaybePath(from), Slot::MaybePath(to)) => to.clone_from(from),
            (Slot::MaybeAddress(from), Slot::MaybeAddress(to)) => *to = *from,
            // A key has one slot.
            _ => {}
        }
    }
}

impl Slot<'_> {
    /// Puts a value there, or says what would fit.
    pub(crate) fn put(&mut self, given: &Given) -> Result<(), String> {
        match self {
            Self::Number { value, least, most } => {
                let number = match given {
                    Given::Number(number) => Some(*number),
                    Given::Untyped(text) => text.to_str().and_then(|text| text.parse().ok()),
                    Given::Text(_) | Given::Other => None,
                };
                let fits = number.filter(|number| (*least..=*most).contains(number));
                **value = fits.ok_or_else(|| format!("a number from {least} to {most}"))?;
            }
            Self::Word(word) => {
                let plain = |text: &&str| !text.is_empty() && !text.contains(char::is_whitespace);
                **word = given.text().filter(plain).ok_or("a word")?.to_string();
            }
            Self::Level(level) => {
                let named = given.text().and_then(Level::named);
                **level = named.ok_or("one of error, warning, info, debug")?;
            }
            Self::Path(path) => **path = given.path()?.ok_or(A_PATH)?.to_path_buf(),
            Self::MaybePath(path) => **path = given.path()?.map(Path::to_path_buf),
            Self::MaybeAddress(address) => {
                let text = given.text().ok_or(AN_ADDRESS)?;
                let off = matches!(text, "" | "off");
                let parse = || text.parse().ok().ok_or(AN_ADDRESS);
                **address = if off { None } else { Some(parse()?) };
            }
        }
        Ok(())
    }

    fn show(&self) -> Option<String> {
        let path = |path: &Path| toml::Value::from(path.to_string_lossy().into_owned()).to_string();
        match self {
            Self::Number { value, .. } => Some(value.to_string()),
            Self::Word(word) => Some(toml::Value::from(word.as_str()).to_string()),
            Self::Level(level) => Some(format!("\"{}\"", level.name())),
            Self::Path(value) => Some(path(value)),
            Self::MaybePath(value) => value.as_deref().map(path),
            Self::MaybeAddress(address) => address.map(|address| format!("\"{address}\"")),
        }
    }
}

const A_PATH: &str = "a path from the root, such as \"/srv/infertop\"";
const AN_ADDRESS: &str = "\"off\", or an address and a port, such as \"127.0.0.1:9836\"";

impl<'a> Given<'a> {
    fn text(&self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Untyped(text) => text.to_str(),
            Self::Number(_) | Self::Other => None,
        }
    }

    /// `None` for an empty text. What a relative one is relative to would depend on who reads it.
    fn path(&self) -> Result<Option<&'a Path>, String> {
        let path = match self {
            Self::Text(text) => Path::new(*text),
            Self::Untyped(text) => Path::new(*text),
            Self::Number(_) | Self::Other => return Err(A_PATH.into()),
        };
        match path {
            path if path.as_os_str().is_empty() => Ok(None),
            path if path.is_absolute() && !path.as_os_str().as_encoded_bytes().contains(&0) => {
                Ok(Some(path))
            }
            _ => Err(A_PATH.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_there_once_says_what_it_is_and_takes_what_it_shows() {
        for (at, key) in KEYS.iter().enumerate() {
            let path = key.path();
            assert!(KEYS[..at].iter().all(|other| other.path() != path), "{path} stands twice");
            let mut lines = key.help.lines();
            assert!(lines.all(|line| line.len() <= 96), "{path}: {}", key.help);
            assert!(key.help.ends_with('.'), "{path}: {}", key.help);
            let mut config = Config::default();
            if key.show(&config).is_some() {
                assert!(key.example.is_empty(), "{path} has a default to show");
                continue;
            }
            (key.slot)(&mut config).put(&Given::Text(key.example)).unwrap();
            let shown = key.show(&config).unwrap();
            assert_eq!(shown, format!("\"{}\"", key.example), "{path}");
            let mut copy = Config::default();
            key.copy(&config, &mut copy);
            assert_eq!(copy, config, "{path}");
        }
    }

    #[test]
    fn variables_are_named_after_section_and_key() {
        let names = |section: &str, name: &str| find(section, name).unwrap().variables();
        assert_eq!(names("store", "raw_days"), ["INFERTOP_STORE_RAW_DAYS"]);
        assert_eq!(names("", "socket"), ["INFERTOP_SOCKET"]);
        assert_eq!(
            names("machine", "nvml_lib"),
            ["INFERTOP_NVML_LIB", "INFERTOP_MACHINE_NVML_LIB"]
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        let mut config = Config::default();
        let mut put = |section: &str, name: &str, given: Given| {
            (find(section, name).unwrap().slot)(&mut config).put(&given)
        };
        assert_eq!(
            put("", "interval_ms", Given::Number(100)).unwrap_err(),
            "a number from 250 to 60000"
        );
        assert!(put("", "interval_ms", Given::Text("500")).is_err());
        assert!(put("", "interval_ms", Given::Untyped(OsStr::new("500"))).is_ok());
        assert!(put("store", "folder", Given::Text("history")).is_err());
        assert!(put("store", "folder", Given::Text("")).is_ok());
        assert!(put("metrics", "listen", Given::Text("9836")).is_err());
        assert!(put("metrics", "listen", Given::Text("off")).is_ok());
        assert!(put("", "log_level", Given::Text("loud")).is_err());
        assert!(put("", "group", Given::Other).is_err());
        assert_eq!(config.interval_ms, 500);
    }
}

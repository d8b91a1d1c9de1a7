//! The layers of a configuration, and one put together from them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cli;
use crate::paths::Whereabouts;

use super::problem::{Place, Problem, Problems};
use super::suggestion::nearest;
use super::{Config, file, keys::KEYS};

/// All variables of ours begin so.
const PREFIX: &str = "INFERTOP_";

/// Configurations are short; a larger file is something else.
const MOST_BYTES: u64 = 1 << 20;

/// Where a configuration comes from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    /// Files, the later one counting more.
    pub(crate) files: Vec<PathBuf>,
    /// Whether a file that is not there is a mistake.
    pub(crate) files_must_exist: bool,
    /// Folders of the user's playbooks.
    pub(crate) playbooks: Vec<PathBuf>,
    /// The environment.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// Flag, section and key, value.
    pub(crate) flags: Vec<(&'static str, (&'static str, &'static str), OsString)>,
}

impl Layers {
    /// Those of a daemon.
    pub(crate) fn of_daemon(roots: &cli::Roots, daemon: &cli::Daemon) -> anyhow::Result<Self> {
        let mut layers = match &daemon.config {
            Some(file) => Self::of_file(file)?,
            None => Self::of_system(),
        };
        layers.variables = std::env::vars_os().collect();
        let mut flag = |flag, key, value: Option<OsString>| {
            layers.flags.extend(value.map(|value| (flag, key, value)));
        };
        let mut path = |name, key, path: Option<&PathBuf>| -> anyhow::Result<()> {
            let absolute = path.map(std::path::absolute).transpose()?;
            flag(name, key, absolute.map(Into::into));
            Ok(())
        };
        path("--socket", ("", "socket"), daemon.socket.as_ref())?;
        path("--state", ("store", "folder"), daemon.state.as_ref())?;
        for (name, given) in roots.paths() {
            let key = match name {
                "--procfs" => "procfs",
                "--sysfs" => "sysfs",
                "--rootfs" => "rootfs",
                _ => "nvml_lib",
            };
            path(name, ("machine", key), given)?;
        }
        flag("--listen", ("metrics", "listen"), daemon.listen.as_ref().map(Into::into));
        let interval = roots.interval.map(|interval| interval.as_millis().to_string());
        flag("--interval", ("", "interval_ms"), interval.map(Into::into));
        Ok(layers)
    }

    /// The system's files and the user's, without environment and flags.
    pub(crate) fn of_system() -> Self {
        let whereabouts = Whereabouts::default();
        let playbooks = whereabouts.config_folders();
        Self {
            files: whereabouts.config_files(),
            playbooks: playbooks.into_iter().map(|folder| folder.join(PLAYBOOKS)).collect(),
            ..Self::default()
        }
    }

    /// One file alone.
    pub(crate) fn of_file(file: &Path) -> anyhow::Result<Self> {
        let file = std::path::absolute(file)?;
        let playbooks = file.parent().map(|folder| folder.join(PLAYBOOKS));
        Ok(Self {
            files: vec![file],
            files_must_exist: true,
            playbooks: playbooks.into_iter().collect(),
            ..Self::default()
        })
    }

    /// Reads everything.
    pub(crate) fn load(&self) -> Result<Config, Problems> {
        let (mut config, mut problems) = (Config::default(), Vec::new());
        for path in &self.files {
            match read(path) {
                Ok(text) => file::apply(&text, path, &mut config, &mut problems),
                // A home that a service may not enter, or that is no folder, has no file.
                Err(error) => {
                    let is_there = std::fs::symlink_metadata(path).is_ok();
                    if is_there || self.files_must_exist {
                        problems.push(unreadable(path, &error));
                    }
                }
            }
        }
        self.take_variables(&mut config, &mut problems);
        for (flag, (section, name), value) in &self.flags {
            let place = Place::Flag(flag);
            file::put(section, name, value, place, &mut config, &mut problems);
        }
        self.check_together(&config, &mut problems);
        if problems.is_empty() { Ok(config) } else { Err(Problems(problems)) }
    }

    /// An empty variable says nothing. One that is no key's is a mistake only when it is nearly one:
    /// Kubernetes makes variables such as `INFERTOP_SERVICE_HOST` by itself.
    fn take_variables(&self, config: &mut Config, problems: &mut Vec<Problem>) {
        let known: Vec<(String, &str, &str)> = KEYS
            .iter()
            .flat_map(|key| key.variables().into_iter().map(|name| (name, key.section, key.name)))
            .collect();
        for (variable, section, name) in &known {
            let given = self.variables.iter().find(|(given, _)| *given == variable.as_str());
            let Some((_, value)) = given.filter(|(_, value)| !value.is_empty()) else { continue };
            let place = Place::Variable(variable.clone());
            file::put(section, name, value, place, config, problems);
        }
        let names = || known.iter().map(|(name, ..)| &name[PREFIX.len()..]);
        for variable in self.variables.iter().filter_map(|(name, _)| name.to_str()) {
            let Some(rest) = variable.strip_prefix(PREFIX) else { continue };
            if names().any(|known| known == rest) {
                continue;
            }
            let near = nearest(rest, names()).filter(|near| {
                strsim::damerau_levenshtein(near, rest) <= SLIPS && rest.len() > 2 * SLIPS
            });
            if let Some(near) = near {
                problems.push(Problem {
                    what: format!("unknown variable {variable}"),
                    place: Place::Variable(variable.into()),
                    help: format!("did you mean {PREFIX}{near}?"),
                });
            }
        }
    }

    fn check_together(&self, config: &Config, problems: &mut Vec<Problem>) {
        let metrics = &config.metrics;
        let (present, missing) = match (&metrics.tls_certificate_file, &metrics.tls_key_file) {
            (Some(_), None) => ("tls_certificate_file", "tls_key_file"),
            (None, Some(_)) => ("tls_key_file", "tls_certificate_file"),
            _ => return,
        };
        let path = self.files.last().cloned().unwrap_or_default();
        problems.push(Problem {
            what: format!("metrics.{present} is set and metrics.{missing} is not"),
            place: Place::File { path, line: None },
            help: "TLS needs both".into(),
        });
    }
}

/// The folder beside a configuration.
const PLAYBOOKS: &str = "playbooks";

/// So many letters may be wrong.
const SLIPS: usize = 2;

fn read(path: &Path) -> std::io::Result<String> {
    use std::io::{Error, ErrorKind, Read as _};
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Error::new(ErrorKind::FileTooLarge, "larger than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let text = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = text.split(|byte| *byte == b'\n').count();
        Error::new(ErrorKind::InvalidData, format!("line {line} is no UTF-8"))
    })
}

fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    Problem {
        what: format!("cannot read the configuration: {error}"),
        place: Place::File { path: path.into(), line: None },
        help: match error.kind() {
            std::io::ErrorKind::NotFound => "infertop config prints one to begin with".into(),
            std::io::ErrorKind::PermissionDenied => {
                format!("make it readable for this user: chmod o+r {}", path.display())
            }
            _ => "write it as a text file".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        }
    }

    fn folder() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn the_later_layer_counts_more() {
        let folder = folder();
        let system =
            folder.write("system", "interval_ms = 2000\n[store]\nraw_days = 3\nmax_mib = 64\n");
        let user = folder.write("user", "[store]\nraw_days = 4\nrollup_days = 5\n");
        let mut layers = Layers { files: vec![system, user], ..Layers::default() };
        layers.variables =
            variables(&[("INFERTOP_STORE_ROLLUP_DAYS", "6"), ("INFERTOP_STORE_MAX_MIB", "")]);
        layers.flags = vec![("--interval", ("", "interval_ms"), "500".into())];
        let config = layers.load().unwrap();
        let store = &config.store;
        assert_eq!((store.max_mib, store.raw_days, store.rollup_days), (64, 4, 6));
        assert_eq!(config.interval_ms, 500);
    }

    #[test]
    fn a_file_that_is_not_there_is_a_mistake_only_when_it_was_named() {
        let missing = folder().0.path().join("none.toml");
        let layers = Layers { files: vec![missing.clone()], ..Layers::default() };
        assert_eq!(layers.load(), Ok(Config::default()));
        let problems = Layers::of_file(&missing).unwrap().load().unwrap_err().to_string();
        assert!(problems.contains("none.toml") && problems.contains("help:"), "{problems}");
    }

    #[test]
    fn a_home_that_is_no_folder_has_no_file_and_a_folder_in_its_place_is_a_mistake() {
        let layers = Layers { files: vec!["/dev/null/config.toml".into()], ..Layers::default() };
        assert_eq!(layers.load(), Ok(Config::default()));
        let folder = folder();
        let layers = Layers { files: vec![folder.0.path().into()], ..Layers::default() };
        assert!(layers.load().unwrap_err().to_string().contains("cannot read"));
    }

    #[test]
    fn a_variable_that_is_nearly_one_is_refused_and_a_strangers_is_left_alone() {
        let strangers = variables(&[
            ("INFERTOP_SERVICE_HOST", "10.0.0.1"),
            ("INFERTOP_PORT", "tcp://10.0.0.1:80"),
        ]);
        let mut layers = Layers { variables: strangers, ..Layers::default() };
        assert_eq!(layers.load(), Ok(Config::default()));
        layers.variables = variables(&[("INFERTOP_STORE_RAW_DAY", "7")]);
        let problems = layers.load().unwrap_err().to_string();
        assert!(problems.contains("did you mean INFERTOP_STORE_RAW_DAYS?"), "{problems}");
        layers.variables = variables(&[("INFERTOP_INTERVAL_MS", "fast")]);
        let problems = layers.load().unwrap_err().to_string();
        assert!(problems.contains("the environment variable INFERTOP_INTERVAL_MS"), "{problems}");
    }

    #[test]
    fn a_file_that_is_no_text_is_refused_with_the_line() {
        let folder = folder();
        let path = folder.write("config.toml", "");
        std::fs::write(&path, b"interval_ms = 500\n\xff\n").unwrap();
        let problems = Layers::of_file(&path).unwrap().load().unwrap_err().to_string();
        assert!(problems.contains("line 2"), "{problems}");
        std::fs::write(&path, vec![b'#'; 2 << 20]).unwrap();
        let problems = Layers::of_file(&path).unwrap().load().unwrap_err().to_string();
        assert!(problems.contains("larger than 1 MiB"), "{problems}");
    }

    #[test]
    fn half_of_tls_is_refused() {
        let folder = folder();
        let path = folder.write("config.toml", "[metrics]\ntls_key_file = \"/etc/key.pem\"\n");
        let problems = Layers::of_file(&path).unwrap().load().unwrap_err().to_string();
        assert!(problems.contains("metrics.tls_certificate_file is not"), "{problems}");
    }
}

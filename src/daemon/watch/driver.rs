//! The driver's files as they are now, and what is new about them.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use probes::driver::{find_library, read_module_version};
use probes::machine::Machine;

/// The library on disk and the nodes, as far as a change of them matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DriverFiles {
    library: Option<Library>,
    nodes: BTreeSet<String>,
    module: String,
}

/// A library, told from another one under its name by what the file system says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Library {
    path: PathBuf,
    version: String,
    file: (u64, u64, u64, i64),
}

/// Something that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct News {
    /// In one line.
    pub(crate) what: String,
    /// What follows from it; empty for nothing that needs doing.
    pub(crate) help: String,
}

impl DriverFiles {
    /// Reads them.
    pub(crate) fn read(machine: &Machine) -> Self {
        let library = find_library(machine).and_then(|found| {
            let stat = std::fs::metadata(&found.real_path).ok()?;
            Some(Library {
                version: found.version_in_name.unwrap_or_default(),
                path: found.real_path,
                file: (stat.dev(), stat.ino(), stat.len(), stat.mtime()),
            })
        });
        let names = std::fs::read_dir(machine.device("")).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        Self {
            library,
            nodes: names.filter(|name| name.starts_with("nvidia")).collect(),
            module: read_module_version(machine).value().cloned().unwrap_or_default(),
        }
    }

    /// What is new since.
    pub(crate) fn news_since(&self, before: &Self) -> Vec<News> {
        let mut news = Vec::new();
        news.extend(self.library_news(before));
        for (what, nodes) in [
            ("gone", before.nodes.difference(&self.nodes)),
            ("there", self.nodes.difference(&before.nodes)),
        ] {
            let nodes: Vec<&str> = nodes.map(String::as_str).collect();
            if let Some((first, rest)) = nodes.split_first() {
                let more = if rest.is_empty() {
                    String::new()
                } else {
                    format!(" and {} more", rest.len())
                };
                news.push(News {
                    what: format!("device file {first}{more} of the driver: {what} now"),
                    help: String::new(),
                });
            }
        }
        news
    }

    fn library_news(&self, before: &Self) -> Option<News> {
        if self.library == before.library {
            return None;
        }
        let what = match (&before.library, &self.library) {
            (Some(old), Some(new)) => {
                format!("the driver's library was replaced: {} by {}", old.name(), new.name())
            }
            (None, Some(new)) => format!("the driver's library was installed: {}", new.name()),
            (Some(old), None) => format!("the driver's library was removed: {}", old.name()),
            (None, None) => return None,
        };
        let differs = |library: &&Library| {
            !library.version.is_empty() && !self.module.is_empty() && library.version != self.module
        };
        let help = self.library.as_ref().filter(differs).map(|_| {
            format!(
                "the loaded module is {}: programs that start from now on cannot use the GPUs; \
                 reboot, or stop every GPU process and load the new module",
                self.module
            )
        });
        Some(News { what, help: help.unwrap_or_default() })
    }
}

impl Library {
    fn name(&self) -> String {
        if self.version.is_empty() {
            return self.path.display().to_string();
        }
        self.version.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(version: &str, inode: u64) -> Library {
        Library {
            path: format!("/usr/lib64/libnvidia-ml.so.{version}").into(),
            version: version.into(),
            file: (1, inode, 100, 5),
        }
    }

    fn files(library: Option<Library>, nodes: &[&str]) -> DriverFiles {
        let nodes = nodes.iter().map(ToString::to_string).collect();
        DriverFiles { library, nodes, module: "580.65.06".into() }
    }

    fn words(now: &DriverFiles, before: &DriverFiles) -> Vec<String> {
        now.news_since(before).into_iter().map(|news| news.what).collect()
    }

    #[test]
    fn an_upgrade_is_told_with_both_versions_and_what_it_means() {
        let before = files(Some(library("580.65.06", 1)), &[]);
        let news = files(Some(library("590.48.01", 2)), &[]).news_since(&before);
        assert_eq!(news[0].what, "the driver's library was replaced: 580.65.06 by 590.48.01");
        assert!(news[0].help.contains("the loaded module is 580.65.06"), "{}", news[0].help);
        // The same version once more, as a repair of the package does.
        let news = files(Some(library("580.65.06", 3)), &[]).news_since(&before);
        assert_eq!((news.len(), news[0].help.as_str()), (1, ""));
    }

    #[test]
    fn a_library_that_comes_or_goes_is_told() {
        let (none, some) = (files(None, &[]), files(Some(library("580.65.06", 1)), &[]));
        assert_eq!(words(&some, &none), ["the driver's library was installed: 580.65.06"]);
        assert_eq!(words(&none, &some), ["the driver's library was removed: 580.65.06"]);
        assert_eq!(words(&some, &some), [""; 0]);
    }

    #[test]
    fn nodes_that_come_or_go_are_told_in_one_line_each() {
        let (few, many) =
            (files(None, &["nvidia0"]), files(None, &["nvidia0", "nvidia1", "nvidia2"]));
        assert_eq!(words(&many, &few), ["device file nvidia1 and 1 more of the driver: there now"]);
        assert_eq!(
            words(&few, &files(None, &["nvidia0", "nvidia7"])),
            ["device file nvidia7 of the driver: gone now"]
        );
    }
}

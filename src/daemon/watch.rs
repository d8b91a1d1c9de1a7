//! What changes on disk while the daemon runs: its configuration, the user's playbooks, the driver's
//! library, the device nodes.
//!
//! Configuration and playbooks are watched with `notify`, by folder, because editors replace a file by
//! renaming another one over it. The driver's folders and `/dev` are watched by name ([`names`]):
//! `notify` asks for every open and every write as well, and there that would wake us whenever a
//! program starts or writes to `/dev/null`. A burst of changes is told once, when it has settled.

mod driver;
mod files;
mod names;

use std::path::PathBuf;
use std::time::Duration;

use probes::machine::Machine;
use tokio::sync::mpsc;
use tokio::time::sleep;

use driver::DriverFiles;
pub(crate) use driver::News;

use super::log;
use files::Files;
use names::Names;

/// A package, an editor and the driver's own tools change several files at a time.
const SETTLE: Duration = Duration::from_millis(250);

/// What may have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) configuration: bool,
    pub(crate) playbooks: bool,
    /// What is new about the driver's files.
    pub(crate) driver: Vec<News>,
}

/// Where to look.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// Files of the configuration.
    pub(crate) configuration: Vec<PathBuf>,
    /// Folders of playbooks.
    pub(crate) playbooks: Vec<PathBuf>,
    /// The machine whose driver it is.
    pub(crate) machine: Machine,
}

/// Whose files were stirred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stirred {
    configuration: bool,
    playbooks: bool,
    driver: bool,
}

/// Watches all of them beside the loop, until nobody listens any more. Files are looked at on a thread
/// that may block: a file system that does not answer holds up this watch and nothing else.
pub(crate) async fn watch(places: Places, changes: mpsc::Sender<Changed>) {
    let mut eyes = Eyes::new(places);
    let mut driver = None;
    loop {
        // What is watched is set up before anything is read, so that no change falls between.
        let look = tokio::task::spawn_blocking(move || {
            eyes.open();
            let driver = DriverFiles::read(&eyes.places.machine);
            (eyes, driver)
        });
        let now;
        // The thread broke down, which has been told.
        let Ok(seen) = look.await else { return };
        (eyes, now) = seen;
        let news = driver.replace(now.clone()).map_or_else(Vec::new, |old| now.news_since(&old));
        let Stirred { configuration, playbooks, .. } = std::mem::take(&mut eyes.seen);
        let seen = Changed { configuration, playbooks, driver: news };
        if seen != Changed::default() && changes.send(seen).await.is_err() {
            return;
        }
        tokio::select! {
            () = eyes.files.stirred() => {}
            () = eyes.names.stirred() => {}
            () = changes.closed() => return,
        }
        sleep(SETTLE).await;
        let (of_files, of_names) = (eyes.files.take(), eyes.names.take());
        if of_names.configuration || of_names.playbooks {
            eyes.files.forget();
        }
        eyes.seen = Stirred {
            configuration: of_files.configuration || of_names.configuration,
            playbooks: of_files.playbooks || of_names.playbooks,
            driver: of_names.driver,
        };
    }
}

/// What watches, and what it has seen.
struct Eyes {
    places: Places,
    files: Files,
    names: Names,
    seen: Stirred,
    trouble: log::State,
}

impl Eyes {
    fn new(places: Places) -> Self {
        let (files, names) = (Files::default(), Names::default());
        Self { places, files, names, seen: Stirred::default(), trouble: log::State::default() }
    }

    /// Watches what is there now: folders may have come or gone, and links may lead elsewhere.
    fn open(&mut self) {
        let mut troubles = Vec::new();
        match Names::of(&self.places, &mut troubles) {
            Ok(names) => self.names = names,
            Err(error) => troubles.push(error.to_string()),
        }
        self.files.follow(&self.places, &mut troubles);
        if troubles.is_empty() {
            self.trouble.clear();
        } else {
            let help = "raise fs.inotify.max_user_watches or fs.inotify.max_user_instances; until \
                        then SIGHUP makes it read the configuration again";
            let found = troubles.join("; ");
            let text = format!("cannot watch for changes\n  found: {found}\n  help: {help}");
            self.trouble.say(log::Level::Warning, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    struct Box {
        folder: tempfile::TempDir,
        changes: mpsc::Receiver<Changed>,
    }

    impl Box {
        /// With these folders; waits until it is watched.
        async fn new(existing: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for path in existing {
                std::fs::create_dir_all(folder.path().join(path)).unwrap();
            }
            std::fs::create_dir_all(folder.path().join("root/dev")).unwrap();
            let machine = Machine { rootfs: folder.path().join("root"), ..Machine::default() };
            let places = Places {
                configuration: vec![folder.path().join("etc/infertop/config.toml")],
                playbooks: vec![folder.path().join("etc/infertop/playbooks")],
                machine,
            };
            let (sender, changes) = mpsc::channel(1);
            tokio::spawn(watch(places, sender));
            let mut it = Self { folder, changes };
            let deadline = tokio::time::Instant::now() + PATIENCE;
            for number in 0.. {
                it.write(&format!("root/dev/nvidia{number}"));
                match tokio::time::timeout(SETTLE * 2, it.changes.recv()).await {
                    Ok(Some(seen)) if !seen.driver.is_empty() => {
                        break;
                    }
                    _ => assert!(tokio::time::Instant::now() < deadline, "it never watches"),
                }
            }
            it
        }

        fn path(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        fn write(&self, path: &str) {
            write(&self.path(path));
        }

        async fn changed(&mut self) -> Changed {
            let waited = tokio::time::timeout(PATIENCE, self.changes.recv());
            waited.await.expect("nothing was noticed").unwrap()
        }

        async fn nothing(&mut self) {
            let waited = tokio::time::timeout(SETTLE * 3, self.changes.recv());
            assert!(waited.await.is_err());
        }
    }

    const PATIENCE: Duration = Duration::from_secs(20);

    fn write(path: &Path) {
        let fresh = path.with_extension("fresh");
        std::fs::write(&fresh, "x").unwrap();
        std::fs::rename(fresh, path).unwrap();
    }

    fn configuration() -> Changed {
        Changed { configuration: true, ..Changed::default() }
    }

    fn words(changed: &Changed) -> Vec<&str> {
        changed.driver.iter().map(|news| news.what.as_str()).collect()
    }

    #[tokio::test]
    async fn a_file_that_is_replaced_by_renaming_is_noticed_once_and_again() {
        let mut it = Box::new(&["etc/infertop"]).await;
        for _ in 0..3 {
            it.write("etc/infertop/config.toml");
            assert_eq!(it.changed().await, configuration());
        }
        it.nothing().await;
    }

    #[tokio::test]
    async fn a_file_behind_a_link_is_noticed_where_it_lies() {
        let mut it = Box::new(&["etc/infertop", "srv/infertop"]).await;
        it.write("srv/infertop/config.toml");
        let target = it.path("srv/infertop/config.toml");
        std::os::unix::fs::symlink(target, it.path("etc/infertop/config.toml")).unwrap();
        assert_eq!(it.changed().await, configuration());
        it.write("srv/infertop/config.toml");
        assert_eq!(it.changed().await, configuration());
    }

    #[tokio::test]
    async fn folders_that_come_later_are_noticed_and_watched_from_then_on() {
        let mut it = Box::new(&["etc"]).await;
        for _ in 0..2 {
            std::fs::create_dir_all(it.path("etc/infertop")).unwrap();
            assert!(it.changed().await.configuration);
            it.write("etc/infertop/config.toml");
            assert!(it.changed().await.configuration);
            std::fs::create_dir_all(it.path("etc/infertop/playbooks/memory")).unwrap();
            assert!(it.changed().await.playbooks);
            it.write("etc/infertop/playbooks/memory/mine.toml");
            assert!(it.changed().await.playbooks);
            std::fs::remove_dir_all(it.path("etc/infertop")).unwrap();
            assert!(it.changed().await.configuration);
        }
    }

    #[tokio::test]
    async fn a_folder_that_is_replaced_at_once_is_watched_from_then_on() {
        let mut it = Box::new(&["etc/infertop"]).await;
        std::fs::remove_dir_all(it.path("etc/infertop")).unwrap();
        std::fs::create_dir_all(it.path("etc/infertop")).unwrap();
        assert!(it.changed().await.configuration);
        it.write("etc/infertop/config.toml");
        assert!(it.changed().await.configuration);
    }

    #[tokio::test]
    async fn a_library_that_is_replaced_and_a_node_that_comes_are_told() {
        let mut it = Box::new(&["root/usr/lib64"]).await;
        it.write("root/usr/lib64/libnvidia-ml.so.590.48.01");
        let library = it.path("root/usr/lib64/libnvidia-ml.so.1");
        std::os::unix::fs::symlink("libnvidia-ml.so.590.48.01", library).unwrap();
        assert_eq!(words(&it.changed().await), ["the driver's library was installed: 590.48.01"]);
        it.write("root/dev/nvidia77");
        assert_eq!(words(&it.changed().await), ["device file nvidia77 of the driver: there now"]);
        std::fs::remove_file(it.path("root/dev/nvidia77")).unwrap();
        assert_eq!(words(&it.changed().await), ["device file nvidia77 of the driver: gone now"]);
        std::fs::remove_file(it.path("root/usr/lib64/libnvidia-ml.so.1")).unwrap();
        assert_eq!(words(&it.changed().await), ["the driver's library was removed: 590.48.01"]);
        std::fs::create_dir_all(it.path("root/run/nvidia/driver/usr/lib64")).unwrap();
        it.write("root/run/nvidia/driver/usr/lib64/libnvidia-ml.so.1");
        assert_eq!(it.changed().await.driver.len(), 1);
    }

    #[tokio::test]
    async fn what_others_do_in_the_same_folders_is_no_news() {
        let mut it = Box::new(&["etc/infertop", "root/usr/lib64"]).await;
        it.write("root/usr/lib64/libcuda.so.1");
        it.write("root/dev/null");
        let _ = std::fs::read(it.path("root/usr/lib64/libcuda.so.1"));
        it.nothing().await;
    }
}

//! Reading the configuration again: what is applied at once, what waits for a restart, and what is
//! wrong with it, in which case the last good one stays.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::keys::KEYS;
use crate::config::problem::Problems;
use crate::config::{Config, Layers};

use super::log::{self, Level};

/// A file system that does not answer by then is tried again with the next change.
const PATIENCE: Duration = Duration::from_secs(3);

/// The configuration that holds, and where it comes from.
pub(crate) struct Reload {
    /// With the values that it began with where a change needs a restart.
    pub(crate) config: Config,
    layers: Layers,
    /// That has not come to an end in time.
    reading: Option<JoinHandle<Result<Config, Problems>>>,
    broken: log::State,
    waiting: log::State,
}

impl Reload {
    pub(crate) fn new(config: Config, layers: Layers) -> Self {
        let (broken, waiting) = (log::State::default(), log::State::default());
        Self { config, layers, reading: None, broken, waiting }
    }

    /// Reads it again: what changed, or why the old one stays. Tells `trouble` which of the two.
    pub(crate) async fn read(
        &mut self,
        trouble: &watch::Sender<Option<String>>,
    ) -> Result<Vec<String>, String> {
        match self.load().await {
            Ok(fresh) => {
                if trouble.send_replace(None).is_some() {
                    log::info("the configuration is whole again");
                    self.broken.clear();
                }
                Ok(self.take(&fresh))
            }
            Err(why) => {
                let text = format!("{why}\n  help: the last good configuration holds until then");
                self.broken.say(Level::Error, &text);
                trouble.send_replace(Some(why.clone()));
                Err(why)
            }
        }
    }

    async fn load(&mut self) -> Result<Config, String> {
        let late = || {
            let files = &self.layers.files;
            let file = files.last().map_or("it".into(), |file| file.display().to_string());
            format!(
                "the configuration could not be read in {} s\n  help: look at the file system of {file}",
                PATIENCE.as_secs()
            )
        };
        // One thread that a disk holds is enough.
        if self.reading.take_if(|reading| reading.is_finished()).is_none() && self.reading.is_some()
        {
            return Err(late());
        }
        let layers = self.layers.clone();
        let mut reading = tokio::task::spawn_blocking(move || layers.load());
        match tokio::time::timeout(PATIENCE, &mut reading).await {
            Ok(Ok(loaded)) => loaded.map_err(|problems| problems.to_string()),
            Ok(Err(panic)) => Err(format!("reading the configuration broke down: {panic}")),
            Err(_) => {
                let late = late();
                self.reading = Some(reading);
                Err(late)
            }
        }
    }

    fn take(&mut self, fresh: &Config) -> Vec<String> {
        let (mut done, mut waiting) = (Vec::new(), Vec::new());
        for key in KEYS {
            let (old, new) = (key.show(&self.config), key.show(fresh));
            if old == new {
                continue;
            }
            let show = |value: Option<String>| value.unwrap_or_else(|| "nothing".into());
            let change = format!("{}: {} instead of {}", key.path(), show(new), show(old));
            if key.live {
                key.copy(fresh, &mut self.config);
                log::info(&format!("configuration: {change}"));
                done.push(change);
            } else {
                waiting.push(format!("{change}, once the daemon is restarted"));
            }
        }
        if waiting.is_empty() {
            self.waiting.clear();
        } else {
            let text = format!("configuration: {}", waiting.join("; "));
            self.waiting.say(Level::Warning, &text);
        }
        done.append(&mut waiting);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct File(tempfile::TempDir);

    impl File {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self) -> std::path::PathBuf {
            self.0.path().join("config.toml")
        }

        fn write(&self, text: &str) {
            std::fs::write(self.path(), text).unwrap();
        }
    }

    #[tokio::test]
    async fn a_broken_file_leaves_the_last_good_one_and_is_told_until_it_is_mended() {
        let (file, trouble) = (File::new(), watch::Sender::new(None));
        file.write("interval_ms = 500\n");
        let layers = Layers::of_file(&file.path()).unwrap();
        let mut reload = Reload::new(layers.load().unwrap(), layers);
        file.write("interval = 250\n");
        let why = reload.read(&trouble).await.unwrap_err();
        assert!(why.contains("unknown key interval") && why.contains("line 1"), "{why}");
        assert_eq!(trouble.borrow().as_ref(), Some(&why));
        assert_eq!(reload.config.interval_ms, 500);
        file.write("interval_ms = 250\n");
        let done = reload.read(&trouble).await.unwrap();
        assert_eq!(done, ["interval_ms: 250 instead of 500"]);
        assert_eq!((reload.config.interval_ms, trouble.borrow().as_ref()), (250, None));
    }

    #[tokio::test]
    async fn what_needs_a_restart_is_said_and_not_taken() {
        let (file, trouble) = (File::new(), watch::Sender::new(None));
        file.write("");
        let layers = Layers::of_file(&file.path()).unwrap();
        let mut reload = Reload::new(layers.load().unwrap(), layers);
        file.write("group = \"ops\"\n[store]\nraw_days = 3\n");
        for already in [false, true] {
            let told = reload.read(&trouble).await.unwrap();
            let group = "group: \"ops\" instead of \"infertop\", once the daemon is restarted";
            let days = "store.raw_days: 3 instead of 7";
            assert_eq!(told, if already { vec![group] } else { vec![days, group] });
        }
        assert_eq!((reload.config.group.as_str(), reload.config.store.raw_days), ("infertop", 3));
    }
}

//! Reading the configuration again: what is applied at once, what waits for a restart, and what is
//! wrong with it, in which case the last good one stays.

use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::config::keys::KEYS;
use crate::config::problem::Problems;
use crate::config::{Config, Layers};

use super::log::{self, Level};

/// Whoever asked is told by then that the file system does not answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// What changed, or why the old configuration stays.
type Told = Result<Vec<String>, String>;

/// The configuration that holds, and where it comes from. Files are read on a thread that may block;
/// nobody waits for it but those who asked.
pub(crate) struct Reload {
    /// With the values that it began with where a change needs a restart.
    pub(crate) config: Config,
    layers: Layers,
    reading: Option<Reading>,
    /// Who asked while it was being read, and must get what was written since.
    again: Option<Vec<Answer>>,
    broken: log::State,
    waiting: log::State,
}

type Answer = oneshot::Sender<Told>;

struct Reading {
    task: JoinHandle<Result<Config, Problems>>,
    answers: Vec<Answer>,
    /// None once that was said.
    late: Option<Instant>,
}

impl Reload {
    pub(crate) fn new(config: Config, layers: Layers) -> Self {
        Self {
            config,
            layers,
            reading: None,
            again: None,
            broken: log::State::default(),
            waiting: log::State::default(),
        }
    }

    /// Begins to read it again; the answer comes when that is done, or late.
    pub(crate) fn begin(&mut self, answer: Option<Answer>) {
        if self.reading.is_some() {
            self.again.get_or_insert_default().extend(answer);
        } else {
            self.start(answer.into_iter().collect());
        }
    }

    fn start(&mut self, answers: Vec<Answer>) {
        let layers = self.layers.clone();
        let task = tokio::task::spawn_blocking(move || layers.load());
        self.reading = Some(Reading { task, answers, late: Some(Instant::now() + PATIENCE) });
    }

    /// Waits until it was read, applies it to [`Self::config`], answers, and tells `trouble` what is
    /// wrong with it. May be dropped half way.
    pub(crate) async fn done(&mut self, trouble: &watch::Sender<Option<String>>) {
        let Some(reading) = &mut self.reading else { return std::future::pending().await };
        let read = match reading.late {
            Some(late) => timeout_at(late, &mut reading.task).await,
            None => Ok((&mut reading.task).await),
        };
        let is_over = read.is_ok();
        let told = match read {
            Ok(Ok(Ok(fresh))) => {
                if trouble.send_replace(None).is_some() {
                    log::info("the configuration is whole again");
                    self.broken.clear();
                }
                Ok(self.take(&fresh))
            }
            Ok(Ok(Err(problems))) => Err(problems.to_string()),
            Ok(Err(panic)) => Err(format!("reading the configuration broke down: {panic}")),
            Err(_) => Err(self.late()),
        };
        if let Err(why) = &told {
            self.broken.say(Level::Error, &format!("the last good configuration stays: {why}"));
            trouble.send_replace(Some(why.clone()));
        }
        let Some(reading) = &mut self.reading else { return };
        for answer in reading.answers.drain(..) {
            // Whoever asked may have left.
            let _ = answer.send(told.clone());
        }
        if !is_over {
            // One thread that a disk holds is enough: the next reading comes after this one.
            reading.late = None;
            return;
        }
        self.reading = None;
        if let Some(answers) = self.again.take() {
            self.start(answers);
        }
    }

    fn late(&self) -> String {
        let files = &self.layers.files;
        let file = files.last().map_or("it".into(), |file| file.display().to_string());
        let seconds = PATIENCE.as_secs();
        format!(
            "the configuration could not be read in {seconds} s\n  help: look at the file system of {file}"
        )
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

    async fn read(reload: &mut Reload, trouble: &watch::Sender<Option<String>>) -> Told {
        let (answer, told) = oneshot::channel();
        reload.begin(Some(answer));
        reload.done(trouble).await;
        told.await.unwrap()
    }

    #[tokio::test]
    async fn a_broken_file_leaves_the_last_good_one_and_is_told_until_it_is_mended() {
        let (file, trouble) = (File::new(), watch::Sender::new(None));
        file.write("interval_ms = 500\n");
        let layers = Layers::of_file(&file.path()).unwrap();
        let mut reload = Reload::new(layers.load().unwrap(), layers);
        file.write("interval = 250\n");
        let why = read(&mut reload, &trouble).await.unwrap_err();
        assert!(why.contains("unknown key interval") && why.contains("line 1"), "{why}");
        assert_eq!(trouble.borrow().as_ref(), Some(&why));
        assert_eq!(reload.config.interval_ms, 500);
        file.write("interval_ms = 250\n");
        let done = read(&mut reload, &trouble).await.unwrap();
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
            let told = read(&mut reload, &trouble).await.unwrap();
            let group = "group: \"ops\" instead of \"infertop\", once the daemon is restarted";
            let days = "store.raw_days: 3 instead of 7";
            assert_eq!(told, if already { vec![group] } else { vec![days, group] });
        }
        assert_eq!((reload.config.group.as_str(), reload.config.store.raw_days), ("infertop", 3));
    }

    #[tokio::test]
    async fn who_asks_while_it_is_read_gets_what_was_written_since() {
        let (file, trouble) = (File::new(), watch::Sender::new(None));
        file.write("");
        let layers = Layers::of_file(&file.path()).unwrap();
        let mut reload = Reload::new(layers.load().unwrap(), layers);
        reload.begin(None);
        file.write("interval_ms = 500\n");
        let (answer, mut told) = oneshot::channel();
        reload.begin(Some(answer));
        reload.done(&trouble).await;
        assert!(told.try_recv().is_err());
        reload.done(&trouble).await;
        // The first reading may have met the new file already.
        assert!(told.await.unwrap().is_ok());
        assert_eq!(reload.config.interval_ms, 500);
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_read_in_time_is_said_and_taken_when_it_can() {
        let (file, trouble) = (File::new(), watch::Sender::new(None));
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let layers = Layers::of_file(&file.path()).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, file.path(), mode).unwrap();
        let mut reload = Reload::new(Config::default(), layers);
        let why = read(&mut reload, &trouble).await.unwrap_err();
        assert!(why.contains("could not be read in 3 s"), "{why}");
        // Opening it ends the wait of the reader.
        file.write("interval_ms = 500\n");
        reload.done(&trouble).await;
        assert_eq!((reload.config.interval_ms, trouble.borrow().as_ref()), (500, None));
    }
}

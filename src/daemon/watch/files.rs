//! The folders of the configuration and of the playbooks, watched with `notify`.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use super::{Places, Stirred};

/// What the watcher's thread has seen.
#[derive(Default)]
struct Seen {
    configuration: AtomicBool,
    playbooks: AtomicBool,
    stirred: Notify,
}

/// The watched folders.
#[derive(Default)]
pub(super) struct Files {
    seen: Arc<Seen>,
    followed: Followed,
    /// Its thread ends with it.
    watcher: Option<RecommendedWatcher>,
}

#[derive(Default, PartialEq, Eq)]
struct Followed {
    configuration: Vec<Folder>,
    playbooks: Vec<Folder>,
}

/// A folder under whose path another one may stand later.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Folder {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Folder {
    fn at(path: PathBuf) -> Option<Self> {
        let stat = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_dir)?;
        Some(Self { device: stat.dev(), inode: stat.ino(), path })
    }
}

/// The folders of a file: where it is named, and where it lies if that is a link.
fn folders_of(file: &Path) -> impl Iterator<Item = Folder> {
    let real = std::fs::canonicalize(file).ok();
    let both = [Some(file), real.as_deref()].map(|path| Some(path?.parent()?.to_path_buf()));
    both.into_iter().flatten().filter_map(Folder::at)
}

impl Files {
    /// Watches those folders that exist now. Begins anew only when they are others.
    pub(super) fn follow(&mut self, places: &Places, troubles: &mut Vec<String>) {
        let mut folders: Vec<Folder> = Vec::new();
        for folder in places.configuration.iter().flat_map(|file| folders_of(file)) {
            let is_known = folders
                .iter()
                .any(|known| (known.device, known.inode) == (folder.device, folder.inode));
            if !is_known {
                folders.push(folder);
            }
        }
        let playbooks = places.playbooks.iter().cloned().filter_map(Folder::at).collect();
        let follow = Followed { configuration: folders, playbooks };
        if follow == self.followed {
            return;
        }
        match self.watch(&follow) {
            Ok(watcher) => {
                self.watcher = watcher;
                self.followed = follow;
            }
            Err(error) => troubles.push(error.to_string()),
        }
    }

    /// A folder came or went: what is watched may be one that is gone, and even its number may have
    /// been given to the next one.
    pub(super) fn forget(&mut self) {
        self.followed = Followed::default();
        self.watcher = None;
    }

    fn watch(&self, follow: &Followed) -> notify::Result<Option<RecommendedWatcher>> {
        if *follow == Followed::default() {
            return Ok(None);
        }
        let seen = Arc::clone(&self.seen);
        let playbooks: Vec<PathBuf> =
            follow.playbooks.iter().map(|folder| folder.path.clone()).collect();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            seen.take_in(&playbooks, event.as_ref().ok());
        })?;
        for folder in &follow.configuration {
            watcher.watch(&folder.path, RecursiveMode::NonRecursive)?;
        }
        for folder in &follow.playbooks {
            watcher.watch(&folder.path, RecursiveMode::Recursive)?;
        }
        Ok(Some(watcher))
    }

    /// Waits until something was seen. May be dropped half way.
    pub(super) async fn stirred(&self) {
        self.seen.stirred.notified().await;
    }

    /// What was seen since.
    pub(super) fn take(&self) -> Stirred {
        let take = |seen: &AtomicBool| seen.swap(false, Relaxed);
        Stirred {
            configuration: take(&self.seen.configuration),
            playbooks: take(&self.seen.playbooks),
            driver: false,
        }
    }
}

impl Seen {
    /// An error is an event that was lost: anything may have changed.
    fn take_in(&self, playbooks: &[PathBuf], event: Option<&Event>) {
        let of_playbooks = |path: &PathBuf| playbooks.iter().any(|folder| path.starts_with(folder));
        let (mut any_configuration, mut any_playbooks) = (true, true);
        if let Some(event) = event.filter(|event| !event.need_rescan()) {
            // Our own reading is one as well.
            let written = EventKind::Access(AccessKind::Close(AccessMode::Write));
            if event.kind.is_access() && event.kind != written {
                return;
            }
            any_playbooks = event.paths.iter().any(of_playbooks);
            any_configuration = !event.paths.iter().all(of_playbooks);
        }
        if any_configuration {
            self.configuration.store(true, Relaxed);
        }
        if any_playbooks {
            self.playbooks.store(true, Relaxed);
        }
        self.stirred.notify_one();
    }
}

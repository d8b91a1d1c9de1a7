//! The store as the rest of the daemon knows it: hand over, ask how it stands, finish.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use probes::past::Mark;

use super::keeper::Keeper;
use super::queue::{Job, Queue};
use super::{FILE, Limits, Start, StoreState, StoreStatus};
use crate::moment::Moment;

/// How long a file that cannot be used is left alone.
const RETRY: Duration = Duration::from_mins(1);

/// A store in its own thread. Nothing here waits for the disk, [`StoreHandle::finish`] apart.
#[derive(Clone)]
pub(crate) struct StoreHandle {
    path: PathBuf,
    queue: Arc<Queue>,
    status: Arc<Mutex<StoreStatus>>,
}

impl StoreHandle {
    /// Opens the store in a folder. Never fails: a file that cannot be used is a state.
    pub(crate) fn start(folder: &Path, limits: Limits, start: Start) -> Self {
        Self::start_with(folder, limits, start, RETRY)
    }

    pub(super) fn start_with(folder: &Path, limits: Limits, start: Start, retry: Duration) -> Self {
        let path = folder.join(FILE);
        let status = StoreStatus { path: path.display().to_string(), ..StoreStatus::default() };
        let handle =
            Self { queue: Arc::new(Queue::default()), status: Arc::new(Mutex::new(status)), path };
        let (queue, status) = (Arc::clone(&handle.queue), Arc::clone(&handle.status));
        let keeper = Keeper::new(handle.path.clone(), limits, start, retry, queue, status);
        let queue = Arc::clone(&handle.queue);
        let run = move || {
            keeper.run();
            queue.ended();
        };
        if let Err(error) = std::thread::Builder::new().name("store".into()).spawn(run) {
            handle.update(|status| {
                status.state = StoreState::Unavailable {
                    why: format!("cannot start a thread for the store: {error}"),
                    help: "raise the limit of tasks of this service and start it again".into(),
                    since_ms: super::keeper::wall_ms(),
                };
            });
            handle.queue.ended();
        }
        handle
    }

    /// Keeps a moment.
    pub(crate) fn keep(&self, moment: &Arc<Moment>) {
        self.queue.put(Job::Keep(Arc::clone(moment)));
    }

    /// Keeps a moment, and waits for room. Blocks: for feeds that come faster than any real one.
    pub(crate) fn keep_patiently(&self, moment: &Arc<Moment>) {
        self.queue.wait_for_room();
        self.keep(moment);
    }

    /// Keeps a mark.
    pub(crate) fn mark(&self, mark: Mark) {
        self.queue.put(Job::Mark(mark));
    }

    /// Other limits from now on.
    pub(crate) fn set_limits(&self, limits: Limits) {
        self.queue.put(Job::Limits(limits));
    }

    /// How it stands.
    pub(crate) fn status(&self) -> StoreStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes what waits, notes a clean end and closes the file; waits for that no longer than this.
    pub(crate) fn finish(&self, deadline: Duration) {
        self.queue.put(Job::Finish);
        self.queue.wait_for_end(deadline);
    }

    /// The file.
    pub(crate) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn update(&self, change: impl FnOnce(&mut StoreStatus)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

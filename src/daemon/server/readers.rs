//! Looking into the store. It blocks, so it happens beside, two at a time, with a deadline; who comes
//! when many wait is told to come again.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::store::{Reader, StoreHandle, StoreState};

use super::answer::Refusal;
use super::places::Place;

/// Looks into the past at a time.
const AT_ONCE: usize = 2;
/// A turn must come by then.
const TURN_WITHIN: Duration = Duration::from_secs(5);
/// And be over by then; what goes on after it keeps its turn until it is.
const WITHIN: Duration = Duration::from_secs(10);
/// A file that nobody asked for is closed, with the minute that it holds unpacked.
const IDLE: Duration = Duration::from_secs(30);

/// The readers of the store.
pub(super) struct Readers {
    store: StoreHandle,
    turns: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Idle>>>,
}

/// An open file that waits for the next question.
struct Idle {
    reader: Reader,
    file: FileId,
    since: Instant,
}

/// Device and number: a store that was moved aside is another file under the old name.
type FileId = Option<(u64, u64)>;

impl Readers {
    pub(super) fn new(store: StoreHandle) -> Self {
        Self { store, turns: Arc::new(Semaphore::new(AT_ONCE)), idle: Arc::default() }
    }

    /// Closes what nobody asked for lately.
    pub(super) fn tidy(&self) {
        let is_idle = |idle: &mut Idle| idle.since.elapsed() >= IDLE;
        let closing: Vec<Idle> = lock(&self.idle).extract_if(.., is_idle).collect();
        if !closing.is_empty() {
            // Closing a file may wait for its disk.
            tokio::task::spawn_blocking(move || drop(closing));
        }
    }

    /// Looks into the store, for one who holds a place.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        _place: &Place,
        look: impl FnOnce(&mut Reader) -> anyhow::Result<T> + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = timeout(TURN_WITHIN, Arc::clone(&self.turns).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return Err(busy()) };
        let (path, idle) = (self.store.path(), Arc::clone(&self.idle));
        let looked = tokio::task::spawn_blocking(move || {
            let _held = turn;
            with_reader(&path, &idle, look)
        });
        match timeout(WITHIN, looked).await {
            Ok(Ok(Ok(found))) => Ok(found),
            Ok(Ok(Err(error))) => Err(self.unreadable(&error)),
            Ok(Err(_)) => Err(Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "looking into the past broke off",
                "this is a mistake of infertop; please report it",
            )),
            Err(_) => Err(Refusal::unavailable(
                format!("the store has not answered within {} s", WITHIN.as_secs()),
                "ask for a shorter stretch; /v1/health says how the store is",
            )),
        }
    }

    /// An error of the store, or why there is no store at all.
    fn unreadable(&self, error: &anyhow::Error) -> Refusal {
        if let StoreState::Unavailable { why, help, .. } = self.store.status().state {
            return Refusal::unavailable(why, help);
        }
        let text = format!("{error:#}");
        let (why, help) = text.split_once("\n  help: ").unwrap_or((&text, ""));
        Refusal::unavailable(why, help)
    }
}

/// For one who comes when many wait.
pub(super) fn busy() -> Refusal {
    Refusal::unavailable("others are looking into the past", "ask again in a moment")
}

fn lock(idle: &Mutex<Vec<Idle>>) -> MutexGuard<'_, Vec<Idle>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something with a reader: the one used last, so that stepping finds its minute unpacked.
fn with_reader<T>(
    path: &Path,
    idle: &Mutex<Vec<Idle>>,
    look: impl FnOnce(&mut Reader) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let file = std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let kept = {
        let mut idle = lock(idle);
        idle.retain(|idle| idle.file == file);
        idle.pop()
    };
    let mut reader = match kept {
        Some(kept) => kept.reader,
        None => Reader::open(path)?,
    };
    // One that met an error is not trusted again.
    let found = look(&mut reader)?;
    lock(idle).push(Idle { reader, file, since: Instant::now() });
    Ok(found)
}

//! Folders watched for a few names: that an entry came, went, or was written and closed. Opens and
//! reads, of which such folders see thousands, are not asked for.

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use probes::driver::library_places;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use super::{Places, Stirred};

const COMES_OR_GOES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO);

/// Names that begin so are the library's, whatever version they carry.
const LIBRARY: &str = "libnvidia-ml.so";
/// Names that begin so are the driver's nodes.
const NODE: &str = "nvidia";

/// Room for some dozen events at a time.
const BUFFER_BYTES: usize = 4096;

/// Whose change a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Configuration,
    Playbooks,
    Driver,
}

/// What is waited for in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lead {
    folder: PathBuf,
    name: OsString,
    /// Whether longer names count as well.
    prefix: bool,
    /// Whether a file that was written and closed counts.
    written: bool,
    of: Of,
}

struct Wanted {
    watch: i32,
    lead: Lead,
}

/// The watched folders. Without an inotify instance nothing ever happens.
#[derive(Default)]
pub(super) struct Names {
    instance: Option<AsyncFd<OwnedFd>>,
    wanted: Vec<Wanted>,
    seen: Stirred,
}

/// Folders may come while they are looked for; then it is looked again.
const TRIES: usize = 3;

impl Names {
    /// Watches what leads to these places. Folders that cannot be watched are told.
    pub(super) fn of(places: &Places, troubles: &mut Vec<String>) -> std::io::Result<Self> {
        let mut leads = all_leads(places);
        for _ in 1..TRIES {
            let names = Self::watch(&leads, &mut Vec::new())?;
            let now = all_leads(places);
            if now == leads {
                return Ok(names);
            }
            leads = now;
        }
        Self::watch(&leads, troubles)
    }

    fn watch(leads: &[Lead], troubles: &mut Vec<String>) -> std::io::Result<Self> {
        let instance = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mut names = Self::default();
        for lead in leads {
            let written = if lead.written { WatchFlags::CLOSE_WRITE } else { WatchFlags::empty() };
            let flags = COMES_OR_GOES | written | WatchFlags::MASK_ADD;
            match inotify::add_watch(&instance, &lead.folder, flags) {
                Ok(watch) => names.wanted.push(Wanted { watch, lead: lead.clone() }),
                // It went in this instant, and with it what was in it.
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => troubles.push(format!("{}: {error}", lead.folder.display())),
            }
        }
        names.instance = Some(registered(instance)?);
        Ok(names)
    }

    /// Waits until a name that matters came or went. May be dropped half way.
    pub(super) async fn stirred(&mut self) {
        loop {
            let Some(instance) = &self.instance else { return std::future::pending().await };
            if let Ok(mut ready) = instance.readable().await {
                ready.clear_ready();
            }
            self.read();
            if self.seen != Stirred::default() {
                return;
            }
        }
    }

    /// What was seen since.
    pub(super) fn take(&mut self) -> Stirred {
        self.read();
        std::mem::take(&mut self.seen)
    }

    fn read(&mut self) {
        let Some(instance) = &self.instance else { return };
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut events = inotify::Reader::new(instance.get_ref(), &mut buffer);
        // Ends with "would block".
        while let Ok(event) = events.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                self.seen = Stirred { configuration: true, playbooks: true, driver: true };
                continue;
            }
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            let Some(name) = name else { continue };
            for wanted in self.wanted.iter().filter(|wanted| wanted.fits(event.wd(), name)) {
                match wanted.lead.of {
                    Of::Configuration => self.seen.configuration = true,
                    Of::Playbooks => self.seen.playbooks = true,
                    Of::Driver => self.seen.driver = true,
                }
            }
        }
    }
}

impl Wanted {
    fn fits(&self, watch: i32, name: &OsStr) -> bool {
        let Lead { name: wanted, prefix, .. } = &self.lead;
        let begins = || *prefix && name.as_bytes().starts_with(wanted.as_bytes());
        self.watch == watch && (name == wanted || begins())
    }
}

#[expect(
    deprecated,
    reason = "what takes its place leaves a promise to us that an OwnedFd keeps by itself, and that this crate cannot give"
)]
fn registered(instance: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(instance)
}

fn all_leads(places: &Places) -> Vec<Lead> {
    let mut leads = Vec::new();
    // The folders themselves; what is in them is told by `Files`.
    for folder in places.configuration.iter().filter_map(|file| file.parent()) {
        leads.extend(Lead::to(folder, "", false, Of::Configuration));
    }
    for folder in &places.playbooks {
        leads.extend(Lead::to(folder, "", false, Of::Playbooks));
    }
    for place in library_places(&places.machine) {
        leads.extend(Lead::to(&place, LIBRARY, true, Of::Driver));
    }
    // Nodes are written to all the time.
    leads.extend(Lead::to(&places.machine.device(NODE), NODE, false, Of::Driver));
    leads
}

impl Lead {
    /// What to watch for a path to change: its folder, or the nearest one above that exists, where
    /// the next one below is waited for.
    fn to(path: &Path, prefix: &str, written: bool, of: Of) -> Option<Self> {
        let mut below = path;
        while !below.parent()?.is_dir() {
            below = below.parent()?;
        }
        let (folder, name) = (below.parent()?.to_path_buf(), below.file_name()?);
        let whole = below == path;
        let prefixed =
            whole && !prefix.is_empty() && name.as_bytes().starts_with(prefix.as_bytes());
        let name = if prefixed { prefix.into() } else { name.to_os_string() };
        Some(Self { folder, name, prefix: prefixed, written: written && whole, of })
    }
}

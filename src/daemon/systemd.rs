//! What systemd is told of a service of type `notify` or `notify-reload`; without systemd nothing.
//!
//! The watchdog is fed by the daemon's own loop, so it tells that this loop turns and nothing else: a
//! driver that hangs is no reason to be killed. Nothing is waited for; a word that systemd does not
//! take at once is lost, and the next one follows.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// The way to systemd.
pub(crate) struct Service {
    socket: Option<UnixDatagram>,
    watchdog: Option<Interval>,
    status: String,
}

impl Service {
    /// As the environment says. To be called inside the runtime.
    pub(crate) fn from_environment() -> Self {
        Self::new(std::env::var_os("NOTIFY_SOCKET"), sd_notify::watchdog_enabled())
    }

    fn new(address: Option<OsString>, watchdog: Option<Duration>) -> Self {
        let socket = address.and_then(|address| connect(&address).ok());
        // Twice in the time that systemd allows, as its manual asks for.
        let watchdog = watchdog.filter(|time| socket.is_some() && *time >= SHORTEST).map(|time| {
            let mut interval = interval_at(Instant::now(), time / 2);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        Self { socket, watchdog, status: String::new() }
    }

    /// Serves from now on.
    pub(crate) fn ready(&self) {
        self.send(&[NotifyState::Ready]);
    }

    /// Waits until the watchdog is to be fed; for ever where there is none. May be dropped half way.
    pub(crate) async fn watchdog(&mut self) {
        match &mut self.watchdog {
            Some(interval) => {
                interval.tick().await;
            }
            None => std::future::pending().await,
        }
    }

    /// The loop turns.
    pub(crate) fn alive(&self) {
        self.send(&[NotifyState::Watchdog]);
    }

    /// What `systemctl status` shows; sent when it changes.
    pub(crate) fn status(&mut self, text: String) {
        if self.status != text {
            self.send(&[NotifyState::Status(&text.replace('\n', " "))]);
            self.status = text;
        }
    }

    /// Reads its configuration; [`Self::ready`] follows.
    pub(crate) fn reloading(&self) {
        if let Ok(now) = NotifyState::monotonic_usec_now() {
            self.send(&[NotifyState::Reloading, now]);
        }
    }

    /// Is about to end.
    pub(crate) fn stopping(&self) {
        self.send(&[NotifyState::Stopping]);
    }

    fn send(&self, states: &[NotifyState]) {
        let Some(socket) = &self.socket else { return };
        let mut words = String::new();
        for state in states {
            let _ = writeln!(words, "{state}");
        }
        let _ = socket.send(words.as_bytes());
    }
}

/// A shorter one is a slip of the unit.
const SHORTEST: Duration = Duration::from_millis(10);

fn connect(address: &OsString) -> std::io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    match address.as_bytes().strip_prefix(b"@") {
        Some(name) => {
            socket.connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        }
        None => socket.connect(address)?,
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 512];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[tokio::test]
    async fn systemd_hears_what_it_knows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        let mut service = Service::new(Some(path.into()), Some(Duration::from_millis(100)));
        service.ready();
        assert_eq!(heard(&systemd), "READY=1\n");
        service.status("8 GPUs".into());
        service.status("8 GPUs".into());
        service.status("no\ndriver".into());
        assert_eq!(heard(&systemd), "STATUS=8 GPUs\n");
        assert_eq!(heard(&systemd), "STATUS=no driver\n");
        service.reloading();
        let words = heard(&systemd);
        assert!(words.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{words}");
        service.watchdog().await;
        service.alive();
        assert_eq!(heard(&systemd), "WATCHDOG=1\n");
        service.stopping();
        assert_eq!(heard(&systemd), "STOPPING=1\n");
    }

    #[tokio::test]
    async fn a_systemd_that_does_not_listen_holds_nobody_up() {
        let name = format!("infertop-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name);
        let _deaf = UnixDatagram::bind_addr(&address.unwrap()).unwrap();
        let service = Service::new(Some(format!("@{name}").into()), None);
        assert!(service.socket.is_some());
        for _ in 0..10_000 {
            service.alive();
        }
        assert!(Service::new(Some("/nowhere/notify".into()), None).socket.is_none());
    }
}

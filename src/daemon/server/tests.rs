//! The socket as clients meet it, over a hub that the test moves. The whole program is held by
//! `tests/promises/socket_*.rs`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use probes::snapshot::Snapshot;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::api::{Health, Own, Status};
use crate::client::Client;
use crate::daemon::hub::{Hub, Released, Request, Sampling};
use crate::moment::Moment;
use crate::store::{Limits, Start, StoreHandle};

use super::connection::Patience;
use super::{bind, serve_with};

mod hostile;
mod page;
mod past;

/// Nothing in these tests takes this long.
const PATIENCE: Duration = Duration::from_secs(20);

struct Daemon {
    hub: Arc<Hub>,
    requests: mpsc::Receiver<Request>,
    socket: PathBuf,
    served: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Daemon {
    fn start() -> Self {
        Self::with_patience(Patience::USUAL)
    }

    fn with_patience(patience: Patience) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("infertop.sock");
        let limits = Limits { raw_days: 1, rollup_days: 1, max_bytes: 64 << 20 };
        let store = StoreHandle::start(folder.path(), limits, Start::default());
        let (hub, requests) = Hub::new(store, 5);
        let hub = Arc::new(hub);
        let bound = bind(&socket, None).unwrap();
        let served = tokio::spawn(serve_with(Arc::clone(&hub), bound, patience));
        Self { hub, requests, socket, served, _folder: folder }
    }

    fn client(&self) -> Client {
        Client::new(&self.socket)
    }

    fn tick(&self, number: u64) {
        self.tick_with(number, Snapshot::default());
    }

    fn tick_with(&self, number: u64, snapshot: Snapshot) {
        self.tick_at(number, crate::when::now_ms(), snapshot);
    }

    fn tick_at(&self, number: u64, taken_at_ms: u64, snapshot: Snapshot) {
        let snapshot = Snapshot { sequence: number, taken_at_ms, interval_ms: 1000, ..snapshot };
        let bytes = snapshot.encode().unwrap();
        self.hub.sampling.send_if_modified(|sampling| {
            let changes = *sampling != Sampling::Running;
            *sampling = Sampling::Running;
            changes
        });
        let moment = Arc::new(Moment::new(number, bytes.into(), snapshot));
        self.hub.store.keep(&moment);
        self.hub.newest.send_replace(Some(moment));
    }

    /// Waits until so many snapshots are stored.
    async fn stores(&self, frames: u64) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while self.hub.store.status().frames_kept < frames {
            assert!(tokio::time::Instant::now() < deadline, "{:?}", self.hub.store.status());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Sends bytes as they are and hears all that comes back.
    async fn raw(&self, request: &[u8]) -> String {
        let mut stream = UnixStream::connect(&self.socket).await.unwrap();
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        let heard = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        heard.expect("the connection stays open").ok();
        String::from_utf8(answer).unwrap()
    }

    /// Status, header lines and body of a request without a body.
    async fn ask(&self, line: &str, headers: &str) -> (u16, String, Value) {
        let answer =
            self.raw(format!("{line} HTTP/1.1\r\nhost: x\r\n{headers}\r\n").as_bytes()).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_ascii_lowercase(), serde_json::from_str(body).unwrap_or_default())
    }
}

#[tokio::test]
async fn before_the_first_snapshot_the_socket_says_that_there_is_none() {
    let daemon = Daemon::start();
    let (status, _, body) = daemon.ask("GET /v1/snapshot", "").await;
    assert_eq!(status, 503);
    assert!(body["error"].as_str().unwrap().contains("there is no snapshot yet"), "{body}");
    assert!(body["help"].as_str().unwrap().contains("/v1/health"), "{body}");
    let health = daemon.client().health().await.unwrap();
    assert_eq!(
        (health.status, health.number, health.snapshot_age_ms),
        (Status::Starting, None, None)
    );
    assert_eq!(health.reasons.len(), 1);
}

#[tokio::test]
async fn the_newest_snapshot_comes_as_json_and_as_it_is_stored() {
    let daemon = Daemon::start();
    daemon.tick(41);
    daemon.tick(42);
    let (status, head, body) = daemon.ask("GET /v1/snapshot", "").await;
    assert_eq!((status, &body["sequence"]), (200, &42.into()));
    assert!(head.contains("infertop-number: 42"), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    let bytes = daemon.client().get_bytes("/v1/snapshot").await.unwrap();
    assert_eq!(Snapshot::decode(&bytes).unwrap().sequence, 42);
    let (status, _, body) = daemon.ask("GET /v1/findings", "").await;
    assert!(status == 200 && body.is_array(), "{body}");
    let health: Health = daemon.client().health().await.unwrap();
    assert_eq!((health.status, health.number), (Status::Ok, Some(42)));
    assert!(health.snapshot_age_ms.unwrap() < 20_000);
}

#[tokio::test]
async fn what_is_not_there_is_refused_with_what_is() {
    let daemon = Daemon::start();
    daemon.tick(1);
    for (line, status, error, help) in [
        ("GET /v1/snapshto", 404, "there is no \"/v1/snapshto\"", "/v1/snapshot"),
        ("GET /", 404, "there is no \"/\"", "there are /v1, /v1/snapshot"),
        ("POST /v1/snapshot", 405, "takes only GET", "ask with GET"),
        ("GET /v1/release", 405, "takes only POST", "ask with POST"),
        ("GET /v1/snapshot?when=now", 400, "no parameter \"when\"", ""),
        ("POST /v1/release?fro=10m", 400, "no parameter \"fro\"", "did you mean for?"),
        ("POST /v1/release?for=1m&for=2m", 400, "for is given twice", "once"),
        ("POST /v1/release?for=soon", 400, "cannot read for: \"soon\"", ""),
        ("POST /v1/release?for=800d", 400, "cannot let go", "7 days"),
        ("GET /v1/snapshot?%ff%fe=%00", 400, "there is no parameter", ""),
    ] {
        let (found, _, body) = daemon.ask(line, "").await;
        assert_eq!(found, status, "{line}: {body}");
        assert!(body["error"].as_str().unwrap().contains(error), "{line}: {body}");
        assert!(body["help"].as_str().unwrap().contains(help), "{line}: {body}");
    }
}

#[tokio::test]
async fn a_reader_gets_the_newest_at_once_and_then_every_frame() {
    let daemon = Daemon::start();
    daemon.tick(7);
    let mut frames = daemon.client().frames().await.unwrap();
    for number in 7..=20 {
        let told = frames.next().await.unwrap();
        assert_eq!((told.number, told.lost, &told.sampling), (number, 0, &Sampling::Running));
        assert_eq!(told.snapshot.unwrap().sequence, number);
        daemon.tick(number + 1);
    }
}

#[tokio::test]
async fn how_sampling_stands_is_told_at_once_without_a_frame() {
    let daemon = Daemon::start();
    let mut frames = daemon.client().frames().await.unwrap();
    let told = frames.next().await.unwrap();
    assert_eq!((told.number, told.sampling, told.snapshot), (0, Sampling::Starting, None));
    daemon.tick(1);
    assert_eq!(frames.next().await.unwrap().number, 1);
    let ended = Sampling::Ended { since_ms: 9, why: "signal 9".into() };
    daemon.hub.sampling.send_replace(ended.clone());
    let told = frames.next().await.unwrap();
    assert_eq!((told.number, told.sampling, told.snapshot), (1, ended, None));
}

#[tokio::test]
async fn lines_are_documents_with_what_the_reader_lost() {
    let daemon = Daemon::start();
    let mut stream = UnixStream::connect(&daemon.socket).await.unwrap();
    daemon.tick(3);
    stream.write_all(b"GET /v1/frames HTTP/1.0\r\n\r\n").await.unwrap();
    let mut heard = String::new();
    let mut chunk = vec![0; 1 << 16];
    let lines_of = |heard: &str| heard.split("\r\n\r\n").nth(1).unwrap_or_default().to_string();
    while lines_of(&heard).matches('\n').count() < 2 {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut chunk));
        let length = read.await.unwrap().unwrap();
        assert!(length > 0, "{heard}");
        heard.push_str(std::str::from_utf8(&chunk[..length]).unwrap());
        if lines_of(&heard).ends_with('\n') && !heard.contains("\"number\":9") {
            daemon.tick(9);
            daemon.hub.sampling.send_replace(Sampling::Silent { since_ms: 4 });
        }
    }
    let body = lines_of(&heard);
    let lines: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["number"], &lines[0]["lost"]), (&3.into(), &0.into()));
    assert_eq!((&lines[0]["sequence"], &lines[0]["schema"]), (&3.into(), &0.into()));
    assert_eq!((&lines[1]["number"], &lines[1]["lost"]), (&9.into(), &5.into()));
    assert_eq!(lines[1]["sampling"]["state"], "silent");
}

#[tokio::test]
async fn changes_are_handed_on_and_answered() {
    let mut daemon = Daemon::start();
    let client = daemon.client();
    let asked = tokio::spawn(async move { client.post::<Released>("/v1/release?for=10m").await });
    let Some(Request::Release { until_ms, answer }) = daemon.requests.recv().await else {
        panic!("another request")
    };
    let ahead = until_ms.unwrap() - crate::when::now_ms();
    assert!((590_000..=600_000).contains(&ahead), "{ahead}");
    answer.send(Released { let_go: true, took_ms: 3, ..Released::default() }).unwrap();
    assert!(asked.await.unwrap().unwrap().let_go);

    let client = daemon.client();
    let asked = tokio::spawn(async move { client.post::<Value>("/v1/reload").await });
    let Some(Request::Reload { answer }) = daemon.requests.recv().await else {
        panic!("another request")
    };
    answer.send(Err("config.toml: unknown key intervall".into())).unwrap();
    let error = asked.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("unknown key intervall\n  help: the daemon goes on"), "{error}");

    let client = daemon.client();
    let asked = tokio::spawn(async move { client.post::<Value>("/v1/resume").await });
    let Some(Request::Resume { answer }) = daemon.requests.recv().await else {
        panic!("another request")
    };
    answer.send(true).unwrap();
    assert_eq!(asked.await.unwrap().unwrap()["resumed"], true);
}

#[tokio::test]
async fn a_client_attaches_where_somebody_answers() {
    let daemon = Daemon::start();
    let nowhere = daemon.socket.with_extension("nowhere");
    // Takes connections and never says a word.
    let mute_path = daemon.socket.with_extension("mute");
    let _mute = tokio::net::UnixListener::bind(&mute_path).unwrap();
    let within = Duration::from_millis(200);
    let candidates = [nowhere.clone(), mute_path.clone(), daemon.socket.clone()];
    let client = Client::attach(&candidates, within).await.unwrap();
    assert_eq!(client.health().await.unwrap().pid, std::process::id());
    assert!(Client::attach(&[nowhere, mute_path], within).await.is_none());
}

#[tokio::test]
async fn a_stream_ends_with_its_daemon() {
    let daemon = Daemon::start();
    daemon.tick(1);
    let client = daemon.client();
    let mut frames = client.frames().await.unwrap();
    frames.next().await.unwrap();
    daemon.served.abort();
    let error = frames.next().await.unwrap_err().to_string();
    assert!(error.contains("infertop.sock"), "{error}");
    let error = client.health().await.unwrap_err().to_string();
    assert!(error.contains("no daemon") && error.contains("help: start it"), "{error}");
}

#[tokio::test]
async fn what_was_served_is_counted() {
    let daemon = Daemon::start();
    daemon.tick(1);
    let client = daemon.client();
    let mut frames = client.frames().await.unwrap();
    frames.next().await.unwrap();
    daemon.tick(5);
    frames.next().await.unwrap();
    let own: Own = client.get_json("/v1/self").await.unwrap();
    let socket = own.socket;
    assert_eq!((socket.readers, socket.frames_total, socket.frames_lost_total), (1, 2, 3));
    assert_eq!((socket.connections, socket.requests_total), (2, 2));
    assert!(own.daemon.cpu_seconds_total.unwrap() > 0.0 && own.daemon.rss_bytes.is_some());
    assert!(own.sampler.is_some());
}

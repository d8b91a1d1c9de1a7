//! The listener as clients meet it. TLS, and Prometheus itself, are met in
//! `tests/promises/prometheus_*.rs`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::serve;
use crate::config::Metrics;
use crate::daemon::hub::{Hub, Sampling};
use crate::moment::Moment;
use crate::store::{Limits, Start, StoreHandle};

/// Nothing in these tests takes this long.
const PATIENCE: Duration = Duration::from_secs(20);
const TOKEN: &str = "0123456789abcdef0123";

struct Listening {
    hub: Arc<Hub>,
    address: SocketAddr,
    serving: JoinHandle<()>,
    folder: tempfile::TempDir,
}

fn hub(folder: &tempfile::TempDir) -> Arc<Hub> {
    let limits = Limits { raw_days: 1, rollup_days: 1, max_bytes: 64 << 20 };
    let store = StoreHandle::start(folder.path(), limits, Start::default());
    Arc::new(Hub::new(store, 5).0)
}

impl Listening {
    async fn start(token: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let token_file = token.map(|token| {
            let path = folder.path().join("token");
            std::fs::write(&path, format!("{token}\n")).unwrap();
            path
        });
        let hub = hub(&folder);
        let listen = Some("127.0.0.1:0".parse().unwrap());
        let options = Metrics { listen, token_file, ..Metrics::default() };
        let serving = tokio::spawn(serve(Arc::clone(&hub), options));
        let url = told(&hub, |exposition| exposition.url.clone()).await;
        let address = url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();
        Self { address: address.parse().unwrap(), hub, serving, folder }
    }

    /// Sends bytes as they are and hears all that comes back.
    async fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let heard = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await;
        heard.expect("the connection stays open").unwrap();
        answer
    }

    async fn ask(&self, line: &str, headers: &str) -> (u16, String) {
        let answer = self.raw(&format!("{line} HTTP/1.1\r\nhost: x\r\n{headers}\r\n")).await;
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }
}

/// Waits for what the listener tells of itself.
async fn told<T>(hub: &Hub, wanted: impl Fn(&super::Exposition) -> Option<T>) -> T {
    let mut exposition = hub.exposition.subscribe();
    let seen = tokio::time::timeout(PATIENCE, exposition.wait_for(|now| wanted(now).is_some()));
    wanted(&seen.await.unwrap().unwrap()).unwrap()
}

#[tokio::test]
async fn metrics_and_health_are_served_and_nothing_else() {
    let listening = Listening::start(None).await;
    let (status, text) = listening.ask("GET /metrics", "").await;
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("content-type: text/plain; version=0.0.4"), "{text}");
    assert!(text.contains("\ninfertop_sampler_up 0\n"), "{text}");
    let open = "accept: application/openmetrics-text;version=1.0.0,*/*;q=0.1\r\n";
    let (_, text) = listening.ask("GET /metrics", open).await;
    assert!(text.contains("content-type: application/openmetrics-text; version=1.0.0"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    let (status, text) = listening.ask("HEAD /metrics", "").await;
    assert!(status == 200 && text.ends_with("\r\n\r\n"), "{text}");
    assert_eq!(listening.ask("GET /metrics?a=b", "").await.0, 200);
    let (status, text) = listening.ask("POST /metrics", "content-length: 0\r\n").await;
    assert!(status == 405 && text.contains("allow: GET, HEAD"), "{text}");
    for line in ["GET /", "GET /v1/snapshot", "POST /v1/release", "GET /metrics/"] {
        let (status, text) = listening.ask(line, "content-length: 0\r\n").await;
        assert!(status == 404 && text.contains("/metrics"), "{line}: {text}");
    }
}

#[tokio::test]
async fn health_is_of_the_daemon_and_waits_for_nobody() {
    let listening = Listening::start(None).await;
    let (status, text) = listening.ask("GET /healthz", "").await;
    assert!(status == 200 && text.contains("\r\n\r\nstarting\n"), "{text}");
    listening.hub.sampling.send_replace(Sampling::Running);
    assert!(listening.ask("GET /healthz", "").await.1.ends_with("\r\n\r\nok\n"));
    listening.hub.sampling.send_replace(Sampling::Ended { since_ms: 1, why: "signal 9".into() });
    let (status, text) = listening.ask("GET /healthz", "").await;
    assert!(status == 503 && text.ends_with("\r\n\r\ndegraded\nsignal 9\n"), "{text}");
    listening.hub.sampling.send_replace(Sampling::Released { since_ms: 1, until_ms: None });
    assert_eq!(listening.ask("GET /healthz", "").await.0, 200);
}

#[tokio::test]
async fn with_a_token_only_who_knows_it_reads() {
    let listening = Listening::start(Some(TOKEN)).await;
    let mut wrong = vec![String::new()];
    for value in [
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic 0123456789abcdef0123",
        "0123456789abcdef0123",
        "Bearer 0123456789abcdef0124",
        "Bearer 0123456789abcdef01234",
    ] {
        wrong.push(format!("authorization: {value}\r\n"));
    }
    for header in wrong {
        let (status, text) = listening.ask("GET /metrics", &header).await;
        assert!(status == 401 && text.contains("www-authenticate: Bearer"), "{header}: {text}");
        assert!(!text.contains("infertop_"), "{header}: {text}");
    }
    for scheme in ["Bearer", "bearer", "Bearer "] {
        let header = format!("authorization: {scheme} {TOKEN}\r\n");
        assert_eq!(listening.ask("GET /metrics", &header).await.0, 200, "{header}");
    }
    // A probe carries no token: it hears a word, and no reasons.
    listening.hub.sampling.send_replace(Sampling::Ended { since_ms: 1, why: "signal 9".into() });
    let (status, text) = listening.ask("GET /healthz", "").await;
    assert!(status == 503 && text.ends_with("\r\n\r\ndegraded\n"), "{text}");
    let (_, text) =
        listening.ask("GET /healthz", &format!("authorization: Bearer {TOKEN}\r\n")).await;
    assert!(text.ends_with("signal 9\n"), "{text}");
}

#[tokio::test]
async fn without_its_token_nothing_is_served_and_the_reason_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder);
    let path = folder.path().join("token");
    let cases: [(&str, &dyn Fn()); 3] = [
        ("cannot read the token of the metrics", &|| {}),
        ("the token of the metrics cannot be used", &|| std::fs::write(&path, "short").unwrap()),
        ("the token of the metrics cannot be used", &|| std::fs::write(&path, [b' '; 40]).unwrap()),
    ];
    for (words, make) in cases {
        make();
        let options = Metrics {
            listen: Some("127.0.0.1:0".parse().unwrap()),
            token_file: Some(path.clone()),
            ..Metrics::default()
        };
        hub.exposition.send_replace(super::Exposition::default());
        let serving = tokio::spawn(serve(Arc::clone(&hub), options));
        let trouble = told(&hub, |exposition| exposition.trouble.clone()).await;
        assert!(trouble.contains(words) && trouble.contains("token"), "{trouble}");
        assert_eq!(hub.exposition.borrow().url, None);
        serving.abort();
    }
}

#[tokio::test]
async fn a_certificate_without_its_key_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder);
    let options = Metrics {
        listen: Some("127.0.0.1:0".parse().unwrap()),
        tls_certificate_file: Some(PathBuf::from("/nowhere/certificate.pem")),
        ..Metrics::default()
    };
    let serving = tokio::spawn(serve(Arc::clone(&hub), options));
    let trouble = told(&hub, |exposition| exposition.trouble.clone()).await;
    assert!(trouble.contains("metrics.tls_key_file is missing"), "{trouble}");
    serving.abort();
}

#[tokio::test]
async fn an_address_that_is_taken_is_told_and_had_once_it_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder);
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let options = Metrics { listen: Some(address), ..Metrics::default() };
    let serving = tokio::spawn(serve(Arc::clone(&hub), options));
    let trouble = told(&hub, |exposition| exposition.trouble.clone()).await;
    assert!(trouble.contains(&address.to_string()), "{trouble}");
    drop(other);
    let url = told(&hub, |exposition| exposition.url.clone()).await;
    assert!(url.contains(&address.to_string()), "{url}");
    assert_eq!(hub.exposition.borrow().trouble, None);
    serving.abort();
}

#[test]
fn others_can_reach_it_only_with_a_warning_or_with_token_and_tls() {
    let credentials = |token: bool| {
        let mut credentials = super::Credentials::default();
        credentials.token = token.then(|| TOKEN.into());
        credentials
    };
    let warning =
        |address: &str, token| super::warning(address.parse().unwrap(), &credentials(token));
    assert_eq!(warning("127.0.0.1:9836", false), None);
    assert_eq!(warning("[::1]:9836", false), None);
    for address in ["0.0.0.0:9836", "[::]:9836", "192.0.2.7:9836"] {
        assert!(warning(address, false).unwrap().contains("without a token and without TLS"));
        assert!(warning(address, true).unwrap().contains("without TLS"));
    }
}

#[tokio::test]
async fn who_does_not_ask_keeps_nobody_out() {
    let listening = Listening::start(None).await;
    let mut crowd = Vec::new();
    for _ in 0..200 {
        crowd.push(TcpStream::connect(listening.address).await.unwrap());
    }
    let mut half = TcpStream::connect(listening.address).await.unwrap();
    half.write_all(b"GET /metrics HTTP/1.1\r\nhost: ").await.unwrap();
    assert_eq!(listening.ask("GET /metrics", "").await.0, 200);
    // A head beyond all measure ends with its connection.
    let huge = format!("GET /metrics HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(64 << 10));
    let mut stream = TcpStream::connect(listening.address).await.unwrap();
    let _ = stream.write_all(huge.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));
    drop(crowd);
    assert_eq!(listening.ask("GET /metrics", "").await.0, 200);
}

#[tokio::test]
async fn a_scrape_is_of_the_newest_moment() {
    let listening = Listening::start(None).await;
    for number in [1, 2] {
        let snapshot = probes::snapshot::Snapshot { interval_ms: 1000, ..Default::default() };
        let moment = Moment::new(number, Vec::new().into(), snapshot);
        listening.hub.newest.send_replace(Some(Arc::new(moment)));
        let (_, text) = listening.ask("GET /metrics", "").await;
        assert!(text.contains(&format!("\ninfertop_snapshots_total {number}\n")), "{text}");
    }
    drop(listening.folder);
    listening.serving.abort();
}

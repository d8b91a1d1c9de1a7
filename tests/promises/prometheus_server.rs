//! A real Prometheus with folders of its own, its tool, and questions over TCP.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::running_daemon::{Answer, Daemon};
use crate::waiting::{patience, until};

/// A program that may not be installed. `None`: the test is skipped, and says why; where every check
/// must run (`CI` is set), that is a failure.
#[expect(clippy::print_stderr, reason = "who runs the tests must see what was skipped")]
pub fn tool(name: &str, package: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|p| p.is_file());
    if found.is_none() {
        let why = format!("there is no {name}; Debian's package {package} brings it");
        assert!(std::env::var_os("CI").is_none(), "{why}");
        eprintln!("skipped: {why}");
    }
    found
}

/// Where a daemon that was started with `--listen 127.0.0.1:0` serves metrics: host and port.
pub fn address(daemon: &Daemon) -> String {
    let mut url = String::new();
    until("metrics that are served", || {
        url = daemon.json("/v1/health")["metrics_url"].as_str().unwrap_or_default().into();
        !url.is_empty()
    });
    let rest = url.split_once("://").unwrap().1;
    rest.strip_suffix("/metrics").unwrap().to_string()
}

/// One request, and the whole answer.
pub fn get(address: &str, target: &str, headers: &str) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5) * patience()))?;
    write!(stream, "GET {target} HTTP/1.0\r\nhost: {address}\r\n{headers}\r\n")?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Err(std::io::Error::other("the answer has no head"));
    };
    let body = bytes.split_off(at + 4);
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let status = head.split_ascii_whitespace().nth(1).and_then(|word| word.parse().ok());
    Ok(Answer { status: status.unwrap_or(0), head, body })
}

/// The metrics of a daemon as text.
pub fn scrape(address: &str) -> String {
    let answer = get(address, "/metrics", "").unwrap();
    assert_eq!(answer.status, 200, "{}", answer.head);
    String::from_utf8(answer.body).unwrap()
}

/// A running Prometheus that scrapes one target every second; ended when it is dropped.
pub struct Prometheus {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    /// `more` is added to the job of the target, indented by four.
    pub fn start(target: &str, more: &str) -> Option<Self> {
        let program = tool("prometheus", "prometheus")?;
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("prometheus.yml");
        let text = format!(
            "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\nscrape_configs:\n  - job_name: \
             infertop\n{more}    static_configs:\n      - targets: ['{target}']\n"
        );
        std::fs::write(&config, text).unwrap();
        let mut child = Command::new(program)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg("--web.listen-address=127.0.0.1:0")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // `msg="Listening on" address=127.0.0.1:41837`
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let address = line.split_once("Listening on")?.1.split_once("address=")?.1;
            Some(address.split_ascii_whitespace().next()?.to_string())
        });
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let prometheus = Self { child, address: address.unwrap(), _folder: folder };
        until("a ready Prometheus", || {
            get(&prometheus.address, "/-/ready", "").is_ok_and(|answer| answer.status == 200)
        });
        Some(prometheus)
    }

    /// Answers of the HTTP interface.
    pub fn api(&self, target: &str) -> Value {
        get(&self.address, target, "").unwrap().json()
    }

    /// What an expression is now: labels and value of each series.
    pub fn query(&self, expression: &str) -> Vec<(Value, f64)> {
        let mut encoded = String::new();
        for byte in expression.bytes() {
            let _ = write!(encoded, "%{byte:02x}");
        }
        let answer = self.api(&format!("/api/v1/query?query={encoded}"));
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        let series = answer["data"]["result"].as_array().unwrap();
        let value = |one: &Value| one["value"][1].as_str().unwrap().parse().unwrap();
        series.iter().map(|one| (one["metric"].clone(), value(one))).collect()
    }

    /// What an expression of one series is now.
    pub fn number(&self, expression: &str) -> Option<f64> {
        let found = self.query(expression);
        assert!(found.len() < 2, "{expression}: {found:?}");
        found.first().map(|(_, value)| *value)
    }

    /// Waits until an expression of one series is as wanted: at a scrape a second, that may take many
    /// seconds.
    pub fn until(&self, expression: &str, wanted: impl Fn(f64) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(15) * patience();
        loop {
            let now = self.number(expression);
            if now.is_some_and(&wanted) {
                return;
            }
            assert!(Instant::now() < deadline, "{expression} is {now:?}");
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

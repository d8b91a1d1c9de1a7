//! `docs/api.md` is made of the list of endpoints and of answers that this socket gives.

use std::fmt::Write as _;
use std::path::Path;

use probes::finding::{Finding, Severity, Subject};
use probes::past::{Mark, MarkKind, MetricPast, Series, Span};

use crate::api::{ProcessCost, SamplerCost, SocketCounts};
use crate::daemon::hub::DeviceHolder;
use crate::daemon::server::endpoints::{ENDPOINTS, Endpoint};

use crate::store::{StoreState, StoreStatus};

use super::*;

/// What holds for all of them.
const BEFORE: &str = "# The daemon's socket

Made from the list of endpoints; `UPDATE_DOCS=1 cargo test --lib api_page` writes it anew.

`infertop daemon` serves HTTP/1.1 on a unix socket: `/run/infertop/infertop.sock` for the system's
daemon, `$XDG_RUNTIME_DIR/infertop/infertop.sock` for a user's own. Any HTTP client that can speak
to a unix socket is a client; the host's name does not matter.

```sh
curl --unix-socket /run/infertop/infertop.sock http://infertop/v1/health
```

Paths begin with `/v1` and are only ever extended: fields and endpoints are added, none changes its
meaning. A program passes over what it does not know.

## Who may ask

Who may connect may read: the daemon's own user, root, and the socket's group (`group` in the
configuration, `infertop` by default; the socket has mode 0660, or 0600 where there is no such
group). What changes something is for root and the daemon's own user; the kernel says who asks.
Others get 403 with what to do.

## How to ask

- TIME: milliseconds since 1970 (0 is the beginning), RFC 3339 (`2026-11-30T14:00:00Z`), `-2h` (so
  long ago) or `now`. What has no zone is UTC.
- DURATION: `90s`, `10m`, `1h30m`, `7d`, `500ms`; a number alone is seconds.
- A parameter that an endpoint does not know is refused, with the nearest one that it knows.

## How it answers

JSON in one line, unless the endpoint says otherwise. A reading without a value is `null` or left
out, never 0. A refusal is `{\"error\": …, \"help\": …}`: what is wrong, and what to do.

| code | when |
|---|---|
| 400 | a parameter is missing, unknown or cannot be read |
| 403 | a change is asked for by somebody who may only look |
| 404 | there is no such endpoint, metric or snapshot |
| 405 | the endpoint takes another method |
| 422 | the new configuration is refused; the old one stays |
| 431 | the headers are larger than 16 KiB |
| 503 | not now: no snapshot yet, too many ask, the store cannot be read; ask again |

A connection serves one request. The request must be complete within 5 s, and an answer of which
nothing is taken for 10 s is given up. 64 connections are served at a time, among them 48 streams and
8 questions about the past, of which 2 are worked on. Whoever comes then gets the seat of one that
has not asked or does not read, or else of the process that has most.

## Endpoints
";

/// The binary stream, which no other endpoint has.
const AFTER: &str = "
## The binary stream

With `Accept: application/vnd.infertop.frames`, `/v1/frames` sends pieces: four bytes of length,
little endian, then a MessagePack map with names.

| name | what |
|---|---|
| `number` | the newest tick of this daemon; 0 before the first |
| `lost` | frames that this reader missed right before this one |
| `sampling` | how sampling stands: a map with `state` |
| `snapshot` | bytes: the snapshot as MessagePack with names; nil where only sampling is told of |

`sampling` is one of these, here as JSON:
";

fn query(endpoint: &Endpoint) -> String {
    let asked: Vec<_> = endpoint
        .parameters
        .iter()
        .map(|known| format!("{}={}", known.name, known.example))
        .collect();
    if asked.is_empty() { String::new() } else { format!("?{}", asked.join("&")) }
}

/// How an answer looks, from the types that it is made of.
fn example(path: &str) -> Option<Value> {
    let value = match path {
        "/v1/health" => serde_json::to_value(Health {
            status: Status::Degraded,
            reasons: vec!["the sampler runs and sends nothing".into()],
            sampling: Sampling::Silent { since_ms: NOW - 7000 },
            number: Some(86_400),
            snapshot_age_ms: Some(7312),
            interval_ms: Some(1000),
            store: store(),
            version: "1.0.0".into(),
            pid: 4711,
            started_ms: NOW - 86_400_000,
            ..Health::default()
        }),
        "/v1/self" => serde_json::to_value(Own {
            daemon: ProcessCost {
                pid: 4711,
                cpu_seconds_total: Some(61.5),
                rss_bytes: Some(17_825_792),
                pss_bytes: Some(12_582_912),
                threads: Some(3),
            },
            sampler: Some(SamplerCost { pid: 4712, ..SamplerCost::default() }),
            sampler_starts: 1,
            socket: SocketCounts::default(),
            store: store(),
        }),
        "/v1/release" => serde_json::to_value(Released {
            let_go: true,
            took_ms: 140,
            holders: vec![DeviceHolder {
                pid: 5000,
                name: "nv-hostengine".into(),
                devices: vec!["/dev/nvidia0".into(), "/dev/nvidiactl".into()],
            }],
            searched_all: true,
            ..Released::default()
        }),
        "/v1/findings" => serde_json::to_value([Finding {
            cause: "gpu_lost".into(),
            severity: Severity::Critical,
            subject: Subject::Gpu(3),
            title: "has fallen off the bus".into(),
            since_ms: NOW - 60_000,
            evidence: vec!["Xid 79 at 03:12:07".into()],
            help: "drain the box and reset it".into(),
        }]),
        "/v1/marks" => serde_json::to_value([Mark {
            at_ms: NOW - 60_000,
            until_ms: None,
            kind: MarkKind::Xid,
            severity: Severity::Critical,
            subject: "GPU 3".into(),
            text: "Xid 79".into(),
        }]),
        "/v1/history" => serde_json::to_value(MetricPast {
            metric: "infertop_gpu_busy_ratio".into(),
            from_ms: NOW - 600_000,
            step_ms: 300_000,
            series: vec![Series {
                subject: "GPU-6d6e2d6b-…".into(),
                name: "GPU 3".into(),
                label: String::new(),
                min: vec![Some(0.25), None],
                mean: vec![Some(0.5), None],
                max: vec![Some(0.75), None],
            }],
        }),
        "/v1/span" => serde_json::to_value(Span { from_ms: NOW - 604_800_000, to_ms: NOW }),
        _ => return None,
    };
    Some(value.unwrap())
}

const NOW: u64 = 1_800_000_000_000;

fn store() -> StoreStatus {
    StoreStatus {
        state: StoreState::Ok,
        path: "/var/lib/infertop/infertop.db".into(),
        ..Default::default()
    }
}

/// Every way that sampling can stand. A new one belongs here too.
fn ways_of_sampling() -> Vec<Sampling> {
    let since_ms = NOW;
    let all = vec![
        Sampling::Starting,
        Sampling::Running,
        Sampling::Silent { since_ms },
        Sampling::Ended { since_ms, why: "the sampler has ended: signal 9".into() },
        Sampling::Releasing { since_ms },
        Sampling::Released { since_ms, until_ms: Some(NOW + 600_000) },
    ];
    for way in &all {
        match way {
            Sampling::Starting
            | Sampling::Running
            | Sampling::Silent { .. }
            | Sampling::Ended { .. }
            | Sampling::Releasing { .. }
            | Sampling::Released { .. }
            | Sampling::Unknown => {}
        }
    }
    all
}

fn section(page: &mut String, endpoint: &Endpoint) {
    let _ = write!(page, "\n### {} {}\n\n{}\n", endpoint.method, endpoint.path, endpoint.about);
    if !endpoint.parameters.is_empty() {
        page.push_str("\n| parameter | form | meaning |\n|---|---|---|\n");
        for known in endpoint.parameters {
            let _ = writeln!(page, "| `{}` | {} | {} |", known.name, known.form, known.about);
        }
    }
    let _ = write!(page, "\nAnswer: {}.\n", endpoint.answer);
    if let Some(answer) = example(endpoint.path) {
        let answer = serde_json::to_string_pretty(&answer).unwrap();
        let _ = write!(page, "\n```json\n{answer}\n```\n");
    }
    let method = if endpoint.method == "GET" { "" } else { "-X POST " };
    let stream = if endpoint.path == "/v1/frames" { "-N " } else { "" };
    let binary = if endpoint.path == "/v1/window" { " -o window" } else { "" };
    let _ = write!(
        page,
        "\n```sh\ncurl {stream}{method}--unix-socket /run/infertop/infertop.sock{binary} \
         'http://infertop{}{}'\n```\n",
        endpoint.path,
        query(endpoint)
    );
}

#[test]
fn api_page_says_what_the_list_says() {
    let mut page = String::from(BEFORE);
    for endpoint in ENDPOINTS {
        section(&mut page, endpoint);
    }
    page.push_str(AFTER);
    page.push_str("\n```json\n");
    for way in ways_of_sampling() {
        let _ = writeln!(page, "{}", serde_json::to_string(&way).unwrap());
    }
    page.push_str("```\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/api.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stands = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stands == page, "docs/api.md is stale: run with UPDATE_DOCS=1");
}

#[tokio::test]
async fn every_endpoint_of_the_list_answers_its_example() {
    let daemon = Daemon::start();
    daemon.tick(1);
    daemon.stores(1).await;
    for endpoint in ENDPOINTS.iter().filter(|known| known.method == "GET") {
        // The stream has no end.
        if endpoint.path == "/v1/frames" {
            continue;
        }
        let answer =
            daemon.client().get_bytes(&format!("{}{}", endpoint.path, query(endpoint))).await;
        match endpoint.path {
            // One second ago there was nothing.
            "/v1/neighbour" => {
                assert!(answer.unwrap_err().to_string().contains("no snapshot before"));
            }
            path => assert!(!answer.unwrap_or_else(|error| panic!("{path}: {error:#}")).is_empty()),
        }
    }
    let listed: Value = daemon.client().get_json("/v1").await.unwrap();
    assert_eq!(listed.as_array().unwrap().len(), ENDPOINTS.len());
}

//! One connection: a request, and its answer as far as it has come.

use std::path::Path;

use anyhow::Context as _;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use crate::api::Refused;

/// The largest answer that is believed.
const MOST_ANSWER_BYTES: usize = 64 << 20;

/// A daemon's answer that says no.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    target: String,
    why: Refused,
}

impl std::error::Error for Refusal {}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.why.error.as_str(), self.why.help.as_str()) {
            ("", _) => write!(out, "the daemon answers {} with {}", self.target, self.status),
            (error, "") => out.write_str(error),
            (error, help) => write!(out, "{error}\n  help: {help}"),
        }
    }
}

/// What drives a connection; it ends with this.
pub(super) struct Driver(JoinHandle<hyper::Result<()>>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Asks, and gives the answer once its head is here. A refusal is an error with its own help.
pub(super) async fn begin(
    socket: &Path,
    method: Method,
    target: &str,
    accept: &str,
) -> anyhow::Result<(Response<Incoming>, Driver)> {
    let stream = UnixStream::connect(socket).await.map_err(|error| unreachable(socket, &error))?;
    let broke = || format!("the daemon on {} broke off", socket.display());
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.with_context(broke)?;
    let driver = Driver(tokio::spawn(connection));
    let request = Request::builder()
        .method(method)
        .uri(target)
        .header(header::HOST, "infertop")
        .header(header::ACCEPT, accept)
        .body(Empty::<Bytes>::new())
        .with_context(|| format!("{target} is no request"))?;
    let response = sender.send_request(request).await.with_context(broke)?;
    if response.status().is_success() {
        return Ok((response, driver));
    }
    let status = response.status();
    let said = whole(response).await.with_context(broke)?;
    let why: Refused = serde_json::from_slice(&said).unwrap_or_default();
    Err(Refusal { status, target: target.into(), why }.into())
}

/// Asks and waits for the whole answer.
pub(super) async fn ask(
    socket: &Path,
    method: Method,
    target: &str,
    accept: &str,
) -> anyhow::Result<(HeaderMap, Bytes)> {
    let (mut response, _driver) = begin(socket, method, target, accept).await?;
    let headers = std::mem::take(response.headers_mut());
    let body = whole(response).await;
    body.map(|body| (headers, body))
        .with_context(|| format!("the daemon on {} broke off", socket.display()))
}

async fn whole(response: Response<Incoming>) -> anyhow::Result<Bytes> {
    match Limited::new(response.into_body(), MOST_ANSWER_BYTES).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => Err(anyhow::anyhow!("{error}")),
    }
}

/// Why nobody answers, and what to do, by the kind of error.
fn unreachable(socket: &Path, error: &std::io::Error) -> anyhow::Error {
    use std::io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
    let path = socket.display();
    let help = match error.kind() {
        NotFound | ConnectionRefused => {
            "\n  help: start it with infertop daemon, or with systemctl start infertop"
        }
        PermissionDenied => {
            "\n  help: join the socket's group (ls -l shows it), or ask as root with sudo"
        }
        _ => "",
    };
    let what = match error.kind() {
        NotFound => format!("no daemon is there: {path} does not exist"),
        ConnectionRefused => format!("no daemon answers on {path}: it has ended"),
        _ => format!("cannot reach the daemon on {path}: {error}"),
    };
    anyhow::Error::msg(format!("{what}{help}"))
}

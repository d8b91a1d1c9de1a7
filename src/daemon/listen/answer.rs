//! What is answered to a request.

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};

use crate::api::Status;
use crate::daemon::hub::Hub;
use crate::daemon::server::now::health_of;
use crate::exporter::{Exporter, Format};

use super::credentials::Credentials;

/// Answers requests.
pub(super) struct Answers {
    exporter: Exporter,
    hub: Arc<Hub>,
}

type Answer = Response<Full<Bytes>>;

impl Answers {
    pub(super) fn new(exporter: Exporter, hub: Arc<Hub>) -> Self {
        Self { exporter, hub }
    }

    /// Never fails, never waits.
    pub(super) fn answer<B>(
        &self,
        request: &Request<B>,
        credentials: &Credentials,
    ) -> Result<Answer, Infallible> {
        let given = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let is_known = credentials.admit(given);
        Ok(match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, "/metrics") if is_known => {
                let format = Format::wanted(request.headers());
                answer(StatusCode::OK, format.content_type(), self.exporter.answer(format))
            }
            (&Method::GET | &Method::HEAD, "/metrics") => with(
                plain(StatusCode::UNAUTHORIZED, "a token is needed: Authorization: Bearer …\n"),
                WWW_AUTHENTICATE,
                "Bearer realm=\"infertop\"",
            ),
            (&Method::GET | &Method::HEAD, "/healthz") => self.health(is_known),
            (_, "/metrics" | "/healthz") => {
                with(plain(StatusCode::METHOD_NOT_ALLOWED, "ask with GET\n"), ALLOW, "GET, HEAD")
            }
            _ => plain(
                StatusCode::NOT_FOUND,
                "here are /metrics and /healthz; the rest is served on the unix socket\n",
            ),
        })
    }

    /// Whether the daemon does its work. Probes carry no token, so without one the reasons, which
    /// name files, are left out.
    fn health(&self, is_known: bool) -> Answer {
        let health = health_of(&self.hub);
        let (status, word) = match health.status {
            Status::Ok => (StatusCode::OK, "ok"),
            Status::Starting => (StatusCode::OK, "starting"),
            Status::Released => (StatusCode::OK, "released"),
            Status::Degraded | Status::Unknown => (StatusCode::SERVICE_UNAVAILABLE, "degraded"),
        };
        let mut body = format!("{word}\n");
        for reason in health.reasons.iter().filter(|_| is_known) {
            body.push_str(reason);
            body.push('\n');
        }
        plain(status, body)
    }
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn plain(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    answer(status, PLAIN, body)
}

fn answer(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    with(answer, CONTENT_TYPE, media_type)
}

fn with(mut answer: Answer, name: hyper::header::HeaderName, value: &'static str) -> Answer {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
    answer
}

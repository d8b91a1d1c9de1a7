//! Answers: JSON in one line, and refusals that say what to do.

use std::cmp::Reverse;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use serde::Serialize;

use crate::api::{JSON_TYPE, Refused};

use super::places::Place;

/// What a handler comes to.
pub(super) type Answer = Result<Response, Refusal>;

/// A request that is not done.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) why: Refused,
}

impl Refusal {
    pub(super) fn new(
        status: StatusCode,
        error: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { status, why: Refused { error: error.into(), help: help.into() } }
    }

    /// Of the one who asks.
    pub(super) fn bad(error: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, help)
    }

    /// Of the moment.
    pub(super) fn unavailable(error: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error, help)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = json(&self.why).unwrap_or_else(Self::into_response);
        *response.status_mut() = self.status;
        response
    }
}

/// A JSON document in one line.
pub(super) fn json(value: &impl Serialize) -> Answer {
    let mut line = serde_json::to_vec(value).map_err(|error| {
        let help = "this is a mistake of infertop; please report it";
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("no JSON: {error}"), help)
    })?;
    line.push(b'\n');
    Ok(bytes(line.into(), JSON_TYPE))
}

/// Bytes of a media type.
pub(super) fn bytes(bytes: Bytes, media_type: &'static str) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// Bytes of a media type that are large: their place is held until they are nearly all taken.
pub(super) fn large(bytes: Vec<u8>, media_type: &'static str, place: Place) -> Response {
    let mut response = Response::new(Body::new(Large { bytes, sent: 0, _place: place }));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// So much of a large answer waits to be written; a copy, so that the rest goes with its place.
const SLICE_BYTES: usize = 32 << 10;

struct Large {
    bytes: Vec<u8>,
    sent: usize,
    _place: Place,
}

impl hyper::body::Body for Large {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let rest = &self.bytes[self.sent..];
        let slice = Bytes::copy_from_slice(&rest[..rest.len().min(SLICE_BYTES)]);
        self.sent += slice.len();
        Poll::Ready((!slice.is_empty()).then(|| Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.sent == self.bytes.len()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.bytes.len() - self.sent) as u64)
    }
}

/// The names nearest to one that is not there, nearest first: few letters differ, or it is a part.
pub(super) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    // Distances are quadratic, and nobody types more than this by mistake.
    let wrong: String = wrong.chars().take(100).collect();
    let mut near: Vec<(f64, &str)> = names
        .filter_map(|name| {
            let likeness = strsim::normalized_damerau_levenshtein(&wrong, name);
            let is_part = wrong.len() > 2 && name.contains(&wrong);
            (likeness > 0.6 || is_part).then_some((likeness, name))
        })
        .collect();
    near.sort_by_key(|(likeness, _)| Reverse(likeness.to_bits()));
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_or_a_part_of_a_name_finds_it() {
        let names = ["infertop_gpu_busy_ratio", "infertop_gpu_memory_used_bytes", "for"];
        assert_eq!(nearest("infertop_gpu_bussy_ratio", names.into_iter())[0], names[0]);
        assert_eq!(nearest("memory_used", names.into_iter()), [names[1]]);
        assert_eq!(nearest("fro", names.into_iter()), ["for"]);
        assert!(nearest("weather", names.into_iter()).is_empty());
        assert!(nearest("", names.into_iter()).is_empty());
    }
}

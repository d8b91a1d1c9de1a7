//! The stream of frames: what is newest whenever the reader has room, never a queue.
//!
//! The bytes of a frame are made once and shared by all readers; a reader that does not read holds
//! one of them until it is given up.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use serde::Serialize;
use tokio::sync::watch;
use tokio_stream::Stream;

use crate::api::{FRAMES_TYPE, LINES_TYPE, Told};
use crate::daemon::hub::{Hub, Sampling};
use crate::moment::Moment;

use super::Serving;
use super::answer::{Answer, Refusal};
use super::asked::Asked;
use super::crowd::{Counters, Standing};
use super::now::accepts;
use super::places::{Kind, Place};

/// A reader hears at least so often, so that both sides notice when the other is gone.
const HEARTBEAT: Duration = Duration::from_secs(5);

pub(super) async fn stream(
    State(serving): State<Arc<Serving>>,
    Extension(standing): Extension<Arc<Standing>>,
    _: Asked,
    headers: HeaderMap,
) -> Answer {
    let place = serving.places.take(Kind::Stream, &standing).await.ok_or_else(|| {
        Refusal::unavailable(
            format!("{} readers are being served already", Kind::Stream.most()),
            "ask for /v1/snapshot now and then instead, or end another reader",
        )
    })?;
    let form = if accepts(&headers, FRAMES_TYPE) { Form::Pieces } else { Form::Lines };
    let mut response = Response::new(Body::from_stream(Frames::new(&serving.hub, place, form)));
    let media_type = match form {
        Form::Pieces => FRAMES_TYPE,
        Form::Lines => LINES_TYPE,
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Lines,
    Pieces,
}

/// One that is counted among the readers.
struct Counted {
    counters: Arc<Counters>,
    _place: Place,
}

impl Counted {
    fn new(counters: &Arc<Counters>, place: Place) -> Self {
        counters.readers.fetch_add(1, Relaxed);
        Self { counters: Arc::clone(counters), _place: place }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.counters.readers.fetch_sub(1, Relaxed);
    }
}

/// What a reader has seen and waits for.
struct Reader {
    newest: watch::Receiver<Option<Arc<Moment>>>,
    sampling: watch::Receiver<Sampling>,
    /// The last number that was sent.
    last: Option<u64>,
    form: Form,
    counted: Counted,
}

/// What stands around a frame in a line of JSON.
#[derive(Serialize)]
struct Around<'a> {
    number: u64,
    lost: u64,
    sampling: &'a Sampling,
}

/// A piece: what is made for this reader, and what all readers share.
type Piece = (Bytes, Bytes);

impl Reader {
    /// Waits for something to tell; `None` when the daemon ends.
    async fn next(&mut self) -> Option<Piece> {
        tokio::select! {
            biased;
            changed = self.newest.changed() => {
                changed.ok()?;
                let moment = self.newest.borrow_and_update().clone();
                self.tell(moment.as_ref()).await
            }
            changed = self.sampling.changed() => {
                changed.ok()?;
                self.tell(None).await
            }
            () = tokio::time::sleep(HEARTBEAT) => self.tell(None).await,
        }
    }

    async fn tell(&mut self, moment: Option<&Arc<Moment>>) -> Option<Piece> {
        let sampling = self.sampling.borrow_and_update().clone();
        let Some(moment) = moment else {
            return self.around(self.last.unwrap_or(0), 0, &sampling, None);
        };
        let number = moment.number;
        let lost = self.last.map_or(0, |last| number.saturating_sub(last + 1));
        self.last = Some(number);
        self.counted.counters.frames.fetch_add(1, Relaxed);
        self.counted.counters.frames_lost.fetch_add(lost, Relaxed);
        let shared = match self.form {
            Form::Lines => moment.json().await,
            Form::Pieces => moment.bytes.clone(),
        };
        self.around(number, lost, &sampling, Some(shared))
    }

    fn around(
        &self,
        number: u64,
        lost: u64,
        sampling: &Sampling,
        shared: Option<Bytes>,
    ) -> Option<Piece> {
        match self.form {
            Form::Pieces => {
                let length = shared.as_ref().map(Bytes::len);
                let head = Told::head(number, lost, sampling, length).ok()?;
                Some((head.into(), shared.unwrap_or_default()))
            }
            Form::Lines => {
                let mut line = serde_json::to_vec(&Around { number, lost, sampling }).ok()?;
                // One object: what is around, then the members of the document.
                let members = shared.filter(|document| document.starts_with(b"{"));
                let Some(document) = members else {
                    line.push(b'\n');
                    return Some((line.into(), Bytes::new()));
                };
                line.pop();
                line.push(b',');
                Some((line.into(), document.slice(1..)))
            }
        }
    }
}

type Waiting = Pin<Box<dyn Future<Output = (Reader, Option<Piece>)> + Send>>;

/// Asks its reader for the next piece only when there is room for it.
struct Frames {
    waiting: Option<Waiting>,
    shared: Option<Bytes>,
}

impl Frames {
    fn new(hub: &Hub, place: Place, form: Form) -> Self {
        let mut newest = hub.newest.subscribe();
        let mut sampling = hub.sampling.subscribe();
        // The first piece comes at once: the newest frame, or else how sampling stands.
        if newest.borrow_and_update().is_some() {
            newest.mark_changed();
        } else {
            sampling.mark_changed();
        }
        let counted = Counted::new(&hub.served, place);
        let reader = Reader { newest, sampling, last: None, form, counted };
        Self { waiting: Some(wait(reader)), shared: None }
    }
}

fn wait(mut reader: Reader) -> Waiting {
    Box::pin(async move {
        let piece = reader.next().await;
        (reader, piece)
    })
}

impl Stream for Frames {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(shared) = self.shared.take() {
            return Poll::Ready(Some(Ok(shared)));
        }
        let Some(waiting) = &mut self.waiting else { return Poll::Ready(None) };
        let (reader, piece) = ready!(waiting.as_mut().poll(cx));
        let Some((own, shared)) = piece else {
            self.waiting = None;
            return Poll::Ready(None);
        };
        self.waiting = Some(wait(reader));
        self.shared = Some(shared).filter(|shared| !shared.is_empty());
        Poll::Ready(Some(Ok(own)))
    }
}

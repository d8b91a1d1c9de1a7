//! One connection: a request, an answer, the end.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::{Instant, Sleep};

use super::crowd::Standing;

/// How long a client is waited for.
#[derive(Clone, Copy, Debug)]
pub(in crate::daemon) struct Patience {
    /// The request must be here by then.
    pub(in crate::daemon) ask: Duration,
    /// An answer of which nothing is taken for so long is given up.
    pub(in crate::daemon) stall: Duration,
    /// A piece of an answer must have been taken by then, however steadily it goes.
    pub(in crate::daemon) piece: Duration,
}

impl Patience {
    /// Beyond what a slow link needs, and short beside the time that a daemon runs.
    pub(in crate::daemon) const USUAL: Self = Self {
        ask: Duration::from_secs(5),
        stall: Duration::from_secs(10),
        piece: Duration::from_mins(1),
    };
}

/// Room for the request's line and headers, and for what waits to be written besides the piece at
/// hand.
const MOST_BUFFERED_BYTES: usize = 16 << 10;
/// Headers in a request.
const MOST_HEADERS: usize = 64;
/// Who is at the other end, as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) uid: u32,
}

/// Serves one request.
pub(super) fn serve(
    stream: UnixStream,
    standing: Arc<Standing>,
    router: Router,
    patience: Patience,
) -> impl Future<Output = ()> + Send + 'static {
    // Without it nobody is trusted with more than reading.
    let peer = stream.peer_cred().ok().map(|who| Peer { uid: who.uid() });
    let router = TowerToHyperService::new(router);
    let asked = Arc::clone(&standing);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        asked.ask();
        request.extensions_mut().insert(Arc::clone(&asked));
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        let answer = router.call(request);
        async move { answer.await.map_err(|never: Infallible| never) }
    });
    async move {
        let guarded = Guarded::new(stream, standing, patience);
        // What goes wrong here is the client's; the counters tell of those that stall.
        let _ = http(patience).serve_connection(TokioIo::new(guarded), service).await;
    }
}

/// HTTP with one request a connection.
pub(in crate::daemon) fn http(patience: Patience) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(patience.ask)
        .max_buf_size(MOST_BUFFERED_BYTES)
        .max_headers(MOST_HEADERS)
        .keep_alive(false)
        // A client may close its half after asking, as `nc` does.
        .half_close(true);
    http
}

/// A stream whose other end must take what it asked for.
pub(in crate::daemon) struct Guarded<S> {
    stream: S,
    standing: Arc<Standing>,
    patience: Patience,
    stall: Option<Stall>,
}

/// Bytes wait to be taken.
struct Stall {
    since: Instant,
    moved: Instant,
    timer: Pin<Box<Sleep>>,
}

impl<S> Guarded<S> {
    pub(in crate::daemon) fn new(stream: S, standing: Arc<Standing>, patience: Patience) -> Self {
        Self { stream, standing, patience, stall: None }
    }

    fn wrote(
        &mut self,
        written: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_pending() {
            return self.wait(cx).map(Err);
        }
        if let Some(stall) = &mut self.stall {
            stall.moved = Instant::now();
        }
        written
    }

    /// Ready when it has waited long enough.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let (standing, patience) = (&self.standing, self.patience);
        let stall = self.stall.get_or_insert_with(|| {
            standing.wait();
            let now = Instant::now();
            Stall { since: now, moved: now, timer: Box::pin(tokio::time::sleep(patience.stall)) }
        });
        let until = (stall.moved + patience.stall).min(stall.since + patience.piece);
        if stall.timer.deadline() != until {
            stall.timer.as_mut().reset(until);
        }
        ready!(stall.timer.as_mut().poll(cx));
        self.standing.counters.stalled.fetch_add(1, Relaxed);
        Poll::Ready(io::ErrorKind::TimedOut.into())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.wrote(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, parts);
        this.wrote(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called once everything at hand is with the kernel.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.stall.take().is_some() {
            this.standing.go_on();
        }
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

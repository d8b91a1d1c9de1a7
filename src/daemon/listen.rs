//! `/metrics` and `/healthz` over TCP, for Prometheus and for probes of a cluster.
//!
//! As on the unix socket, a connection serves one request and what a client does costs bounded
//! memory and no time of others; a TLS handshake is made at the connection's own seat. Everything is
//! answered from memory. An address that cannot be had, or a token or certificate that cannot be
//! read, is a state that `/v1/health` tells, and tried again: sampling goes on meanwhile, and nothing
//! is served without the protection that was asked for.

mod answer;
mod credentials;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::config::Metrics;
use crate::exporter::Exporter;

use super::hub::Hub;
use super::log::{self, Level};
use super::server::Counters;
use super::server::connection::{Guarded, Patience, http};
use super::server::crowd::{Crowd, Standing};
use answer::Answers;
use credentials::{Credentials, keep_fresh};

/// After a failure, until it is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// After an accept that failed for want of descriptors or memory, until the next.
const BREATH: Duration = Duration::from_millis(100);
/// How long a client is waited for.
const PATIENCE: Patience = Patience::USUAL;
/// For the one that is turned away.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\n\
    retry-after: 1\r\nconnection: close\r\n\r\nall connections are in use\n";

/// How serving stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exposition {
    /// Where metrics are served.
    pub(crate) url: Option<String>,
    /// Why they are not, though they should be.
    pub(crate) trouble: Option<String>,
    /// Who can read them who perhaps should not.
    pub(crate) warning: Option<String>,
}

/// Serves until it is dropped; with it end all connections.
pub(crate) async fn serve(hub: Arc<Hub>, options: Metrics) {
    let Some(address) = options.listen else { return };
    let mut trouble = log::State::default();
    let (listener, credentials) = loop {
        match open(address, &options).await {
            Ok(opened) => break opened,
            Err(why) => {
                trouble.say(Level::Error, &why);
                let trouble = why.lines().next().map(Into::into);
                hub.exposition.send_replace(Exposition { trouble, ..Exposition::default() });
                tokio::time::sleep(RETRY).await;
            }
        }
    };
    announce(&hub, &listener, &credentials);
    let (sender, fresh) = watch::channel(Arc::new(credentials));
    tokio::join!(keep_fresh(options, sender), accept(hub, listener, fresh));
}

async fn open(
    address: SocketAddr,
    options: &Metrics,
) -> Result<(TcpListener, Credentials), String> {
    let credentials = credentials::read(options.clone()).await?;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        format!(
            "cannot serve metrics on {address}: {error}\n  help: free the port, or name another \
             address with --listen; it is tried again every {} s",
            RETRY.as_secs()
        )
    })?;
    Ok((listener, credentials))
}

fn announce(hub: &Hub, listener: &TcpListener, credentials: &Credentials) {
    // The port may have been left to the kernel.
    let Ok(address) = listener.local_addr() else { return };
    let scheme = if credentials.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{address}/metrics");
    log::info(&format!("metrics are served at {url}"));
    let warning = warning(address, credentials);
    if let Some(warning) = &warning {
        log::warning(&format!(
            "{warning}\n  help: set metrics.token_file, metrics.tls_certificate_file and \
             metrics.tls_key_file, or listen on 127.0.0.1"
        ));
    }
    hub.exposition.send_replace(Exposition { url: Some(url), trouble: None, warning });
}

/// What is missing for an address that others can reach.
fn warning(address: SocketAddr, credentials: &Credentials) -> Option<String> {
    if address.ip().is_loopback() {
        return None;
    }
    let missing = match (&credentials.token, &credentials.tls) {
        (Some(_), Some(_)) => return None,
        (None, Some(_)) => "a token: whoever reaches it can read them",
        (Some(_), None) => "TLS: whoever is on the way can read the token",
        (None, None) => "a token and without TLS: whoever reaches it can read them",
    };
    Some(format!("metrics are served on {address} without {missing}"))
}

async fn accept(hub: Arc<Hub>, listener: TcpListener, fresh: watch::Receiver<Arc<Credentials>>) {
    let answers = Arc::new(Answers::new(Exporter::new(Arc::clone(&hub)), hub));
    let mut crowd = Crowd::new(Arc::new(Counters::default()));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = crowd.left() => continue,
        };
        let Ok((stream, _)) = accepted else {
            // Of the connection, or of this process for a while; the listener itself stays.
            tokio::time::sleep(BREATH).await;
            continue;
        };
        let credentials = Arc::clone(&fresh.borrow());
        let is_plain = credentials.tls.is_none();
        let turned_away = crowd.seat(stream, |stream, standing| {
            connection(stream, standing, Arc::clone(&answers), credentials)
        });
        if let Some(stream) = turned_away.filter(|_| is_plain) {
            // It fits into any empty buffer; who cannot take it is not waited for.
            let _ = stream.try_write(FULL);
        }
    }
}

/// Serves one request.
async fn connection(
    stream: TcpStream,
    standing: Arc<Standing>,
    answers: Arc<Answers>,
    credentials: Arc<Credentials>,
) {
    // An answer is written in few pieces; none of them should wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let guarded = Guarded::new(stream, Arc::clone(&standing), PATIENCE);
    let tls = credentials.tls.clone();
    let service = service_fn(move |request| {
        standing.ask();
        std::future::ready(answers.answer(&request, &credentials))
    });
    // What goes wrong here is the client's.
    let _ = match tls {
        None => http(PATIENCE).serve_connection(TokioIo::new(guarded), service).await,
        Some(acceptor) => match timeout(PATIENCE.ask, acceptor.accept(guarded)).await {
            Ok(Ok(stream)) => http(PATIENCE).serve_connection(TokioIo::new(stream), service).await,
            Ok(Err(_)) | Err(_) => Ok(()),
        },
    };
}

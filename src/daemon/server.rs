//! HTTP on the unix socket.
//!
//! Every connection serves one request and ends with it: a new one costs a local client nothing, and
//! there is no idle crowd to keep. What a client does costs bounded memory and no time of others: a
//! request must come within seconds, an answer must be taken within seconds, and when all seats are
//! taken whoever has not asked for anything goes first.

mod answer;
mod asked;
mod changes;
pub(super) mod connection;
pub(super) mod crowd;
mod endpoints;
mod frames;
pub(super) mod now;
mod past;
mod readers;
mod socket;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;

use super::hub::Hub;

use connection::Patience;
pub(crate) use crowd::Counters;
use crowd::Crowd;
use readers::Readers;
pub(crate) use socket::{Socket, bind};

/// After an accept that failed for want of descriptors or memory, until the next.
const BREATH: Duration = Duration::from_millis(100);
/// How often files that nobody reads are looked for.
const TIDY_EVERY: Duration = Duration::from_secs(10);

/// For the one that is turned away.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
    retry-after: 1\r\nconnection: close\r\n\r\n\
    {\"error\":\"all connections of the daemon are in use\",\
    \"help\":\"try again in a moment; infertop once needs no daemon\"}\n";

/// What every request may look at.
pub(super) struct Serving {
    hub: Arc<Hub>,
    past: Readers,
}

/// Serves until it is dropped; with it end all connections.
pub(crate) async fn serve(hub: Arc<Hub>, socket: Socket) {
    serve_with(hub, socket, Patience::USUAL).await;
}

async fn serve_with(hub: Arc<Hub>, socket: Socket, patience: Patience) {
    let past = Readers::new(hub.store.clone());
    let mut crowd = Crowd::new(Arc::clone(&hub.served));
    let serving = Arc::new(Serving { hub, past });
    let router: Router = endpoints::router(Arc::clone(&serving));
    let mut tidy = tokio::time::interval(TIDY_EVERY);
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = crowd.left() => continue,
            _ = tidy.tick() => {
                serving.past.tidy();
                continue;
            }
        };
        match accepted {
            Ok(stream) => {
                let turned_away = crowd.seat(stream, |stream, standing| {
                    connection::serve(stream, standing, router.clone(), patience)
                });
                if let Some(stream) = turned_away {
                    // It fits into any empty buffer; who cannot take it is not waited for.
                    let _ = stream.try_write(FULL);
                }
            }
            // Of the connection, or of this process for a while; the socket itself stays.
            Err(_) => tokio::time::sleep(BREATH).await,
        }
    }
}

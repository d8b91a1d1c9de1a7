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
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
pub(super) mod now;
mod past;
mod places;
mod readers;
mod socket;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;

use super::hub::Hub;
use super::log::{self, Level};

use connection::Patience;
pub(crate) use crowd::Counters;
use crowd::Crowd;
use places::Places;
use readers::Readers;
pub(crate) use socket::{Socket, bind};

/// After an accept that failed for want of descriptors or memory, until the next.
const BREATH: Duration = Duration::from_millis(100);
/// How often files that nobody reads, and the socket's own, are looked after.
const TIDY_EVERY: Duration = Duration::from_secs(10);

/// What every request may look at.
pub(super) struct Serving {
    hub: Arc<Hub>,
    past: Readers,
    places: Places,
}

/// Serves until it is dropped; with it end all connections.
pub(crate) async fn serve(hub: Arc<Hub>, socket: Socket) {
    serve_with(hub, socket, Patience::USUAL).await;
}

async fn serve_with(hub: Arc<Hub>, mut socket: Socket, patience: Patience) {
    let past = Readers::new(hub.store.clone());
    let mut crowd = Crowd::new(Arc::clone(&hub.served));
    let serving = Arc::new(Serving { hub, past, places: Places::new(crowd.seats()) });
    let router: Router = endpoints::router(Arc::clone(&serving));
    let mut tidy = tokio::time::interval(TIDY_EVERY);
    let (mut no_socket, mut no_connection) = (log::State::default(), log::State::default());
    loop {
        let accepted = tokio::select! {
            // First, so that those who have left are forgotten before others come.
            biased;
            () = crowd.left() => continue,
            _ = tidy.tick() => {
                serving.past.tidy();
                match socket.stand() {
                    Ok(false) => no_socket.clear(),
                    Ok(true) => log::warning("the socket had been taken away and was put back"),
                    Err(error) => no_socket.say(Level::Error, &format!("{error:#}")),
                }
                continue;
            }
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok(stream) => {
                no_connection.clear();
                let whose = stream.peer_cred().ok().and_then(|who| who.pid()).unwrap_or(0);
                crowd.seat(stream, u64::from(whose.unsigned_abs()), |stream, standing| {
                    connection::serve(stream, standing, router.clone(), patience)
                });
                // It may read its request before others come for its seat.
                tokio::task::yield_now().await;
            }
            // Of the connection, or of this process for a while; the socket itself stays.
            Err(error) => {
                no_connection.say(Level::Warning, &format!("cannot take a connection: {error}"));
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

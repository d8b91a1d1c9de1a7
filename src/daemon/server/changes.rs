//! What changes something. The kernel says who asks: root and the daemon's own user may, members of
//! the socket's group may only look.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::daemon::hub::Request;
use crate::when;

use super::Serving;
use super::answer::{Answer, Refusal, json};
use super::asked::Asked;
use super::connection::Peer;

/// The answer must be there by then: letting go takes a second, reading a file less.
const WITHIN: Duration = Duration::from_secs(5);
/// The longest that the GPUs are let go for.
const LONGEST_RELEASE: Duration = Duration::from_hours(7 * 24);

/// Who asks, if the kernel said so.
type Who = Option<Extension<Peer>>;

pub(super) async fn release(who: Who, State(serving): State<Arc<Serving>>, asked: Asked) -> Answer {
    require_right(who, "let go of the GPUs")?;
    let wanted = asked.duration("for")?;
    if let Some(wanted) = wanted.filter(|wanted| *wanted > LONGEST_RELEASE || wanted.is_zero()) {
        return Err(Refusal::bad(
            format!("cannot let go of the GPUs for {} s", wanted.as_secs()),
            "ask for up to 7 days, or leave `for` away and POST /v1/resume at the end",
        ));
    }
    let until_ms = wanted.map(|wanted| {
        when::now_ms().saturating_add(u64::try_from(wanted.as_millis()).unwrap_or(u64::MAX))
    });
    let released = ask(&serving, |answer| Request::Release { until_ms, answer }).await?;
    json(&released)
}

pub(super) async fn resume(who: Who, State(serving): State<Arc<Serving>>, _: Asked) -> Answer {
    require_right(who, "take the GPUs again")?;
    let resumed = ask(&serving, |answer| Request::Resume { answer }).await?;
    json(&json!({ "resumed": resumed }))
}

pub(super) async fn reload(who: Who, State(serving): State<Arc<Serving>>, _: Asked) -> Answer {
    require_right(who, "reload the configuration")?;
    match ask(&serving, |answer| Request::Reload { answer }).await? {
        Ok(changed) => json(&json!({ "changed": changed })),
        Err(why) => Err(Refusal::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            why,
            "the daemon goes on with what it had; infertop config --check shows the place",
        )),
    }
}

fn require_right(who: Who, what: &str) -> Result<(), Refusal> {
    let own = rustix::process::geteuid().as_raw();
    let uid = who.map(|Extension(peer)| peer.uid);
    if may_change(uid, own) {
        return Ok(());
    }
    let asks = uid.map_or_else(|| "somebody unknown".into(), |uid| format!("user {uid}"));
    Err(Refusal::new(
        StatusCode::FORBIDDEN,
        format!("{asks} may look, and may not {what}"),
        format!("ask as root (sudo) or as user {own}, whom the daemon runs as"),
    ))
}

fn may_change(uid: Option<u32>, own: u32) -> bool {
    uid.is_some_and(|uid| uid == 0 || uid == own)
}

/// Hands a request to the supervisor and waits for its answer.
async fn ask<T>(
    serving: &Serving,
    request: impl FnOnce(oneshot::Sender<T>) -> Request,
) -> Result<T, Refusal> {
    let (sender, answer) = oneshot::channel();
    serving.hub.requests.try_send(request(sender)).map_err(|error| match error {
        mpsc::error::TrySendError::Full(_) => {
            Refusal::unavailable("other requests are being worked on", "ask again in a moment")
        }
        mpsc::error::TrySendError::Closed(_) => ending(),
    })?;
    match tokio::time::timeout(WITHIN, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => Err(ending()),
        Err(_) => Err(Refusal::unavailable(
            format!("no answer within {} s; it may still be done", WITHIN.as_secs()),
            "look at /v1/health",
        )),
    }
}

fn ending() -> Refusal {
    Refusal::unavailable("the daemon is ending", "ask again when it has been started")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_the_daemons_own_user_may_change_things_and_nobody_else() {
        assert!(may_change(Some(0), 998));
        assert!(may_change(Some(998), 998));
        assert!(!may_change(Some(1000), 998));
        assert!(!may_change(None, 998));
        assert!(!may_change(Some(1000), 0));
    }
}

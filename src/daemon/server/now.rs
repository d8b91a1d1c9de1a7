//! What is answered from memory: the newest moment, how the daemon is, what it costs.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;

use crate::api::{
    AT_HEADER, Health, JSON_TYPE, MESSAGEPACK_TYPE, NUMBER_HEADER, Own, ProcessCost, SamplerCost,
    Status,
};
use crate::daemon::hub::{Hub, Sampling};
use crate::daemon::sight;
use crate::moment::Moment;
use crate::store::{StoreState, StoreStatus};
use crate::{own_cost, when};

use super::Serving;
use super::answer::{Answer, Refusal, bytes, json};
use super::asked::Asked;
use super::crowd::Standing;
use super::past;

/// Whether the client asks for this media type by name.
pub(super) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let accepted = headers.get_all(header::ACCEPT).into_iter();
    accepted.filter_map(|value| value.to_str().ok()).any(|value| {
        value
            .split(',')
            .filter_map(|part| part.split(';').next())
            .any(|part| part.trim().eq_ignore_ascii_case(media_type))
    })
}

/// The newest moment, or why there is none.
fn newest(serving: &Serving) -> Result<Arc<Moment>, Refusal> {
    let newest = serving.hub.newest.borrow().clone();
    newest.ok_or_else(|| {
        let (_, reason) = how_sampling_stands(&serving.hub.sampling.borrow());
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let help = "ask again in a moment, and /v1/health for how it stands";
        Refusal::unavailable(format!("there is no snapshot yet{reason}"), help)
    })
}

/// A snapshot in the form that is asked for.
async fn form(headers: &HeaderMap, moment: &Arc<Moment>) -> Response {
    let mut response = if accepts(headers, MESSAGEPACK_TYPE) {
        bytes(moment.bytes.clone(), MESSAGEPACK_TYPE)
    } else {
        bytes(moment.json().await, JSON_TYPE)
    };
    let headers = response.headers_mut();
    headers.insert(NUMBER_HEADER, HeaderValue::from(moment.number));
    headers.insert(AT_HEADER, HeaderValue::from(moment.snapshot.taken_at_ms));
    response
}

pub(super) async fn snapshot(
    State(serving): State<Arc<Serving>>,
    Extension(standing): Extension<Arc<Standing>>,
    asked: Asked,
    headers: HeaderMap,
) -> Answer {
    if let Some(at_ms) = asked.time("at")? {
        return past::at(&serving, &standing, at_ms, &headers).await;
    }
    Ok(form(&headers, &newest(&serving)?).await)
}

pub(super) async fn findings(State(serving): State<Arc<Serving>>, _: Asked) -> Answer {
    json(&newest(&serving)?.findings)
}

pub(super) async fn health(State(serving): State<Arc<Serving>>, _: Asked) -> Answer {
    json(&health_of(&serving.hub))
}

/// How the daemon is. Waits for nothing.
pub(in crate::daemon) fn health_of(hub: &Hub) -> Health {
    let newest = hub.newest.borrow().clone();
    let sampling = hub.sampling.borrow().clone();
    let store = hub.store.status();
    let trouble = hub.config_trouble.borrow().clone();
    let exposition = hub.exposition.borrow().clone();
    let (mut status, mut reasons) = judge(&sampling, &store, trouble);
    if let Some(trouble) = exposition.trouble {
        reasons.push(trouble);
        status = worse(status);
    }
    reasons.extend(exposition.warning);
    Health {
        status,
        reasons,
        sampling,
        number: newest.as_ref().map(|moment| moment.number),
        snapshot_age_ms: newest
            .as_ref()
            .map(|moment| when::now_ms().saturating_sub(moment.snapshot.taken_at_ms)),
        interval_ms: newest.as_ref().map(|moment| moment.snapshot.interval_ms),
        store,
        unseen: newest.as_ref().map_or_else(Vec::new, |moment| {
            sight::unseen(&moment.snapshot).map(|unseen| unseen.to_string()).collect()
        }),
        metrics_url: exposition.url,
        version: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        started_ms: hub.started_ms,
    }
}

/// How the daemon is, and all that is not as it should be.
fn judge(
    sampling: &Sampling,
    store: &StoreStatus,
    config_trouble: Option<String>,
) -> (Status, Vec<String>) {
    let (mut status, reason) = how_sampling_stands(sampling);
    let mut reasons: Vec<String> = reason.into_iter().collect();
    if let StoreState::Unavailable { why, .. } = &store.state {
        reasons.push(format!("nothing is stored: {why}"));
        status = worse(status);
    }
    if let Some(trouble) = config_trouble {
        let first = trouble.lines().next().unwrap_or_default();
        reasons.push(format!("an older configuration holds: {first}"));
        status = worse(status);
    }
    (status, reasons)
}

/// Being let go on purpose, and having just begun, say more than that something else is missing.
fn worse(status: Status) -> Status {
    if status == Status::Ok { Status::Degraded } else { status }
}

fn how_sampling_stands(sampling: &Sampling) -> (Status, Option<String>) {
    let (status, reason) = match sampling {
        Sampling::Running => return (Status::Ok, None),
        Sampling::Starting | Sampling::Unknown => {
            (Status::Starting, "the sampler has not sent a snapshot yet")
        }
        Sampling::Silent { .. } => (Status::Degraded, "the sampler runs and sends nothing"),
        Sampling::Ended { why, .. } => (Status::Degraded, why.as_str()),
        Sampling::Releasing { .. } => (Status::Released, "the GPUs are being let go on request"),
        Sampling::Released { .. } => (Status::Released, "the GPUs were let go on request"),
    };
    (status, Some(reason.into()))
}

pub(super) async fn own(State(serving): State<Arc<Serving>>, _: Asked) -> Answer {
    let hub = &serving.hub;
    // The kernel walks all pages for it.
    let measured =
        tokio::task::spawn_blocking(|| (own_cost::memory(), own_cost::pss_bytes())).await;
    let ((rss, threads), pss) = measured.unwrap_or_default();
    let daemon = ProcessCost {
        pid: std::process::id(),
        cpu_seconds_total: Some(own_cost::cpu_seconds()),
        rss_bytes: rss.get(),
        pss_bytes: pss.get(),
        threads: threads.get(),
    };
    let newest = hub.newest.borrow().clone();
    json(&Own {
        daemon,
        sampler: newest.map(|moment| sampler(&moment)),
        sampler_starts: hub.sampler_starts.load(Relaxed),
        socket: hub.served.counts(),
        store: hub.store.status(),
    })
}

fn sampler(moment: &Moment) -> SamplerCost {
    let cost = &moment.snapshot.self_cost;
    SamplerCost {
        pid: cost.pid,
        cpu_seconds_total: cost.cpu_seconds_total.get(),
        cpu_ratio: cost.cpu_ratio.get(),
        rss_bytes: cost.rss_bytes.get(),
        threads: cost.threads.get(),
        nvml_calls_total: cost.nvml_calls_total,
        nvml_seconds_total: cost.nvml_seconds_total,
    }
}

//! What is answered from memory: the newest moment, how the daemon is, what it costs.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;

use crate::api::{
    Health, JSON_TYPE, MESSAGEPACK_TYPE, NUMBER_HEADER, Own, ProcessCost, SamplerCost, Status,
};
use crate::daemon::hub::Sampling;
use crate::moment::Moment;
use crate::{own_cost, when};

use super::Serving;
use super::answer::{Answer, Refusal, bytes, json};
use super::asked::Asked;

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
pub(super) fn newest(serving: &Serving) -> Result<Arc<Moment>, Refusal> {
    let newest = serving.hub.newest.borrow().clone();
    newest.ok_or_else(|| {
        let (_, reasons) = status(&serving.hub.sampling.borrow());
        let help = "ask again in a moment, and /v1/health for how it stands";
        Refusal::unavailable(format!("there is no snapshot yet: {}", reasons.join("; ")), help)
    })
}

/// A snapshot in the form that is asked for.
pub(super) fn form(headers: &HeaderMap, moment: &Moment) -> Response {
    let mut response = if accepts(headers, MESSAGEPACK_TYPE) {
        bytes(moment.bytes.clone(), MESSAGEPACK_TYPE)
    } else {
        bytes(moment.json(), JSON_TYPE)
    };
    response.headers_mut().insert(NUMBER_HEADER, HeaderValue::from(moment.number));
    response
}

pub(super) async fn snapshot(
    State(serving): State<Arc<Serving>>,
    _: Asked,
    headers: HeaderMap,
) -> Answer {
    newest(&serving).map(|moment| form(&headers, &moment))
}

pub(super) async fn findings(State(serving): State<Arc<Serving>>, _: Asked) -> Answer {
    json(&newest(&serving)?.findings)
}

pub(super) async fn health(State(serving): State<Arc<Serving>>, _: Asked) -> Answer {
    let hub = &serving.hub;
    let newest = hub.newest.borrow().clone();
    let sampling = hub.sampling.borrow().clone();
    let (status, reasons) = status(&sampling);
    json(&Health {
        status,
        reasons,
        sampling,
        number: newest.as_ref().map(|moment| moment.number),
        snapshot_age_ms: newest
            .as_ref()
            .map(|moment| when::now_ms().saturating_sub(moment.snapshot.taken_at_ms)),
        interval_ms: newest.as_ref().map(|moment| moment.snapshot.interval_ms),
        version: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        started_ms: hub.started_ms,
    })
}

/// How the daemon is, and why.
fn status(sampling: &Sampling) -> (Status, Vec<String>) {
    match sampling {
        Sampling::Starting => {
            (Status::Starting, vec!["the sampler has not sent a snapshot yet".into()])
        }
        Sampling::Running => (Status::Ok, Vec::new()),
        Sampling::Silent { .. } => {
            (Status::Degraded, vec!["the sampler runs and sends nothing".into()])
        }
        Sampling::Ended { why, .. } => (Status::Degraded, vec![why.clone()]),
        Sampling::Releasing { .. } => (Status::Degraded, vec!["the GPUs are being let go".into()]),
        Sampling::Released { .. } => {
            (Status::Released, vec!["the GPUs were let go on request".into()])
        }
    }
}

pub(super) async fn own(State(serving): State<Arc<Serving>>, _: Asked) -> Answer {
    let hub = &serving.hub;
    let (rss, threads) = own_cost::memory();
    let daemon = ProcessCost {
        pid: std::process::id(),
        cpu_seconds_total: Some(own_cost::cpu_seconds()),
        rss_bytes: rss.get(),
        pss_bytes: None,
        threads: threads.get(),
    };
    let newest = hub.newest.borrow().clone();
    json(&Own {
        daemon,
        sampler: newest.map(|moment| sampler(&moment)),
        sampler_starts: hub.sampler_starts.load(Relaxed),
        socket: serving.counters.counts(),
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

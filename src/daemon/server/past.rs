//! What is remembered: moments, what was before them, metrics over time, what happened.

use std::sync::Arc;

use anyhow::Context as _;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use probes::host::HOST_METRICS;
use probes::metric::Pick;
use probes::nvml;
use probes::past::{MetricPast, Series};
use probes::snapshot::Snapshot;
use serde::Serialize;

use crate::api::{AT_HEADER, JSON_TYPE, MESSAGEPACK_TYPE, NUMBER_HEADER};
use crate::store::{Reader, Stored};
use crate::when;

use super::Serving;
use super::answer::{Answer, Refusal, json, large, nearest};
use super::asked::Asked;
use super::crowd::Standing;
use super::now::accepts;
use super::places::{Kind, Place};
use super::readers::busy;

/// Snapshots in a window.
const MOST_TICKS: u64 = 1000;
const TICKS: u64 = 300;
/// Points of a series.
const MOST_POINTS: u64 = 2000;
/// Points of all series of an answer together.
const MOST_VALUES: u64 = 50_000;
/// Steps with which it is looked where a metric begins to be known.
const COARSE: u64 = 200;
/// Series of a metric of links on the largest box, while none has been read.
const MOST_SERIES: usize = 64 * 18;
/// Steps that people like to read, in seconds.
const STEPS: [u64; 16] =
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400];
const HOUR_MS: u64 = 3_600_000;

/// A place for a look into the past.
async fn place(serving: &Serving, standing: &Standing) -> Result<Place, Refusal> {
    serving.places.take(Kind::Past, standing).await.ok_or_else(busy)
}

/// The snapshot at a moment; the way of `/v1/snapshot?at=`.
pub(super) async fn at(
    serving: &Serving,
    standing: &Standing,
    at_ms: u64,
    headers: &HeaderMap,
) -> Answer {
    let place = place(serving, standing).await?;
    let is_raw = accepts(headers, MESSAGEPACK_TYPE);
    let look = move |reader: &mut Reader| {
        reader.at(at_ms)?.map(|stored| Found::new(stored, is_raw)).transpose()
    };
    let found = serving.past.look(&place, look).await?.ok_or_else(|| {
        let help = "the first one is stored a few seconds after the daemon has started";
        Refusal::new(StatusCode::NOT_FOUND, "nothing is recorded yet", help)
    })?;
    Ok(found.answer(place))
}

pub(super) async fn neighbour(
    State(serving): State<Arc<Serving>>,
    Extension(standing): Extension<Arc<Standing>>,
    asked: Asked,
    headers: HeaderMap,
) -> Answer {
    let at_ms = asked.time("at")?.ok_or_else(|| Asked::missing("at"))?;
    let forward = asked.flag("forward")?.unwrap_or(false);
    let place = place(&serving, &standing).await?;
    let is_raw = accepts(&headers, MESSAGEPACK_TYPE);
    let look = move |reader: &mut Reader| {
        reader.neighbour(at_ms, forward)?.map(|stored| Found::new(stored, is_raw)).transpose()
    };
    let found = serving.past.look(&place, look).await?.ok_or_else(|| {
        let side = if forward { "after" } else { "before" };
        let error = format!("there is no snapshot {side} that moment");
        Refusal::new(StatusCode::NOT_FOUND, error, "/v1/span says what is recorded")
    })?;
    Ok(found.answer(place))
}

/// A stored snapshot in the form that is asked for.
struct Found {
    bytes: Vec<u8>,
    media_type: &'static str,
    number: u64,
    at_ms: u64,
}

impl Found {
    fn new(stored: Stored, is_raw: bool) -> anyhow::Result<Self> {
        let Stored { at_ms, number, bytes } = stored;
        if is_raw {
            return Ok(Self { bytes, media_type: MESSAGEPACK_TYPE, number, at_ms });
        }
        let snapshot = Snapshot::decode(&bytes).context("cannot read a stored snapshot")?;
        let bytes = crate::json::line(&snapshot)?.into();
        Ok(Self { bytes, media_type: JSON_TYPE, number, at_ms })
    }

    fn answer(self, place: Place) -> Response {
        let mut response = large(self.bytes, self.media_type, place);
        let headers = response.headers_mut();
        headers.insert(NUMBER_HEADER, HeaderValue::from(self.number));
        headers.insert(AT_HEADER, HeaderValue::from(self.at_ms));
        response
    }
}

pub(super) async fn window(
    State(serving): State<Arc<Serving>>,
    Extension(standing): Extension<Arc<Standing>>,
    asked: Asked,
) -> Answer {
    let until_ms = asked.time("until")?.unwrap_or_else(when::now_ms);
    let ticks = asked.number("ticks")?.unwrap_or(TICKS);
    if !(1..=MOST_TICKS).contains(&ticks) {
        return Err(Refusal::bad(
            format!("cannot look at {ticks} snapshots at once"),
            format!("ask for 1 to {MOST_TICKS}"),
        ));
    }
    let place = place(&serving, &standing).await?;
    let look = move |reader: &mut Reader| {
        let history = reader.window(until_ms, usize::try_from(ticks)?)?;
        Ok(rmp_serde::to_vec_named(&history)?)
    };
    let history = serving.past.look(&place, look).await?;
    Ok(large(history, MESSAGEPACK_TYPE, place))
}

pub(super) async fn span(
    State(serving): State<Arc<Serving>>,
    Extension(standing): Extension<Arc<Standing>>,
    _: Asked,
) -> Answer {
    let place = place(&serving, &standing).await?;
    json(&serving.past.look(&place, |reader| reader.span()).await?)
}

pub(super) async fn marks(
    State(serving): State<Arc<Serving>>,
    Extension(standing): Extension<Arc<Standing>>,
    asked: Asked,
) -> Answer {
    let (from_ms, to_ms) = stretch(&asked, 24 * HOUR_MS)?;
    let place = place(&serving, &standing).await?;
    let look = move |reader: &mut Reader| line(&reader.marks(from_ms, to_ms)?);
    let marks = serving.past.look(&place, look).await?;
    Ok(large(marks, JSON_TYPE, place))
}

pub(super) async fn history(
    State(serving): State<Arc<Serving>>,
    Extension(standing): Extension<Arc<Standing>>,
    asked: Asked,
) -> Answer {
    let metric = asked.text("metric").ok_or_else(|| Asked::missing("metric"))?.to_string();
    let (from_ms, to_ms) = stretch(&asked, HOUR_MS)?;
    let step = asked.duration("step")?;
    let series = series(&serving, &metric)?;
    let wanted_ms = step.map_or(0, |step| u64::try_from(step.as_millis()).unwrap_or(u64::MAX));
    let place = place(&serving, &standing).await?;
    let look = move |reader: &mut Reader| {
        line(&bounded(reader, &metric, (from_ms, to_ms), wanted_ms, series)?)
    };
    let history = serving.past.look(&place, look).await?;
    Ok(large(history, JSON_TYPE, place))
}

/// A metric in steps that keep the answer bounded. A stretch that begins long before anything is
/// known begins where something is.
fn bounded(
    reader: &mut Reader,
    metric: &str,
    (mut from_ms, to_ms): (u64, u64),
    wanted_ms: u64,
    expected: u64,
) -> anyhow::Result<MetricPast> {
    for _ in 0..3 {
        let coarse_ms = to_ms.saturating_sub(from_ms) / COARSE;
        if coarse_ms < 24 * HOUR_MS {
            break;
        }
        let past = reader.metric(metric, from_ms, to_ms, coarse_ms)?;
        let known = |series: &Series| series.mean.iter().position(Option::is_some);
        let Some(first) = past.series.iter().filter_map(known).min() else { break };
        from_ms = past.from_ms.saturating_add(past.step_ms.saturating_mul(first as u64));
    }
    let length_ms = to_ms.saturating_sub(from_ms);
    let past = reader.metric(metric, from_ms, to_ms, step_ms(length_ms, wanted_ms, expected))?;
    let found = past.series.len() as u64;
    let points = past.series.first().map_or(0, |series| series.mean.len() as u64);
    if found * points <= MOST_VALUES * 2 {
        return Ok(past);
    }
    // There were more of them then than there are now.
    drop(past);
    reader.metric(metric, from_ms, to_ms, step_ms(length_ms, wanted_ms, found))
}

/// A JSON document in one line.
fn line(value: &impl Serialize) -> anyhow::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// The stretch between `from` and `to`; without them the last one of this length.
fn stretch(asked: &Asked, length_ms: u64) -> Result<(u64, u64), Refusal> {
    let to_ms = asked.time("to")?.unwrap_or_else(when::now_ms);
    let from_ms = asked.time("from")?.unwrap_or_else(|| to_ms.saturating_sub(length_ms));
    if from_ms > to_ms {
        return Err(Refusal::bad("the stretch ends before it begins", "give `from` before `to`"));
    }
    Ok((from_ms, to_ms))
}

/// How many series a metric has on this box; refused when it is none.
fn series(serving: &Serving, metric: &str) -> Result<u64, Refusal> {
    let newest = serving.hub.newest.borrow().clone();
    if HOST_METRICS.iter().any(|row| row.name == metric) {
        return Ok(1);
    }
    let Some(row) = nvml::metrics().find(|row| row.name == metric) else {
        let names = nvml::metrics().map(|row| row.name);
        let near = nearest(metric, names.chain(HOST_METRICS.iter().map(|row| row.name)));
        let help = match near.as_slice() {
            [] => "docs/metrics.md lists them".into(),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        let error = format!("there is no metric {}", when::quoted(metric));
        return Err(Refusal::new(StatusCode::NOT_FOUND, error, help));
    };
    let gpus = newest.as_ref().map_or(&[][..], |moment| &moment.snapshot.gpus);
    let count: usize = match row.pick {
        Pick::One(_) => gpus.len(),
        Pick::Each { .. } if gpus.is_empty() => MOST_SERIES,
        Pick::Each { pick, .. } => gpus.iter().map(|gpu| pick(gpu).len()).sum(),
    };
    Ok(count as u64)
}

/// A step that keeps the answer bounded, at least as long as the wanted one.
fn step_ms(length_ms: u64, wanted_ms: u64, series: u64) -> u64 {
    let points = (MOST_VALUES / series.max(1)).clamp(1, MOST_POINTS);
    let least = (length_ms / points).saturating_add(1);
    if wanted_ms >= least {
        return wanted_ms;
    }
    let nice = STEPS.iter().map(|seconds| seconds * 1000).find(|step| *step >= least);
    let day = 24 * HOUR_MS;
    nice.unwrap_or_else(|| least.div_ceil(day).saturating_mul(day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_as_wanted_unless_there_would_be_too_many_points() {
        assert_eq!(step_ms(HOUR_MS, 10_000, 8), 10_000);
        assert_eq!(step_ms(HOUR_MS, 0, 8), 2000);
        assert_eq!(step_ms(HOUR_MS, 1, 8), 2000);
        assert_eq!(step_ms(7 * 24 * HOUR_MS, 60_000, 8), 600_000);
        assert_eq!(step_ms(7 * 24 * HOUR_MS, 0, 64 * 18), 6 * HOUR_MS);
        assert_eq!(step_ms(0, 0, 0), 1000);
        assert!(u64::MAX / step_ms(u64::MAX, 0, 8) <= MOST_POINTS);
        assert!(u64::MAX / step_ms(u64::MAX, 0, u64::MAX) <= 1);
    }
}

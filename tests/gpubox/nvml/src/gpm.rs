//! GPU performance monitoring: a sample is a snapshot of counters, a metric is computed between
//! two. Handles of samples are numbers into a table, so a stale one is an error, not a crash.
//!
//! The size of `nvmlGpmMetricsGet_t` differs between headers under one version number, so only
//! the entries that `numMetrics` announces are touched.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use gpubox::Now;
use nvml_wrapper_sys::bindings::{
    nvmlGpmMetric_t, nvmlGpmMetricsGet_t, nvmlGpmSample_t, nvmlGpmSupport_t,
};

use crate::call::{Ask, Call, edit, element, get, put, supported};
use crate::codes::{
    Answer, Code, INVALID_ARGUMENT, NO_PERMISSION, NOT_FOUND, NOT_SUPPORTED, VERSION_MISMATCH,
};

/// What a sample holds.
#[derive(Clone, Copy, Debug)]
struct Sample {
    taken: Option<Now>,
}

static SAMPLES: Mutex<BTreeMap<u64, Sample>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(1);
const MARK: u64 = 0x6770_6d00_0000_0000;

fn key(sample: nvmlGpmSample_t) -> Answer<u64> {
    let word = sample.addr() as u64;
    if word & MARK == MARK { Ok(word) } else { Err(INVALID_ARGUMENT) }
}

fn with_samples<T>(what: impl FnOnce(&mut BTreeMap<u64, Sample>) -> T) -> T {
    // A panic while the table was held leaves it whole: every change is one insert or remove.
    what(&mut SAMPLES.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

fn take(ask: &Ask, now: Now, sample: nvmlGpmSample_t) -> Answer {
    supported(ask.gpu.spec.gpm)?;
    if ask.site.machine.host.unprivileged {
        return Err(NO_PERMISSION);
    }
    let key = key(sample)?;
    with_samples(|samples| {
        samples.get_mut(&key).ok_or(INVALID_ARGUMENT)?.taken = Some(now);
        Ok(())
    })
}

/// A metric's average between two instants.
#[allow(clippy::match_same_arms, reason = "rows are kept in order of their numbers")]
fn metric(older: &Now, newer: &Now, id: u32) -> Answer<f64> {
    let middle = Now { t: f64::midpoint(older.t, newer.t), ..*newer };
    if let Some(series) = newer.gpu.gpm_values.get(&id) {
        return Ok(series.at(middle.t));
    }
    let busy = middle.utilization();
    let memory = middle.memory_utilization();
    let link_of = |first: u32| Some((id - first) / 2);
    let has_link = |link: Option<u32>| {
        link.is_some_and(|link| link < newer.gpu.spec.nvlink.links) && newer.mig.is_none()
    };
    let value = match id {
        1 => busy,
        2 => busy * 0.92,
        3 => busy * 0.41,
        4 => busy * 0.18,
        5 | 7 => busy * 0.36,
        6 | 8 | 9 | 11 => 0.0,
        10 => memory * 1.3,
        12 => busy * 0.07,
        13 => busy * 0.05,
        20 => middle.pcie_tx(),
        21 => middle.pcie_rx(),
        30..=37 => middle.decoder(),
        40..=47 | 50 | 51 => 0.0,
        166..=169 => middle.encoder(),
        60 | 61 if newer.gpu.spec.nvlink.links > 0 && newer.mig.is_none() => {
            middle.nvlink_rate(None) * if id == 60 { 0.98 } else { 1.0 }
        }
        62..=97 if has_link(link_of(62)) => middle.nvlink_rate(link_of(62)),
        212..=247 if has_link(Some(18 + (id - 212) / 2)) => {
            middle.nvlink_rate(Some(18 + (id - 212) / 2))
        }
        // Cache metrics came with R575.
        160 | 162 if cached(newer) => 12.0,
        161 | 163 if cached(newer) => 88.0,
        164 if cached(newer) => 62.0 - busy * 0.1,
        165 if cached(newer) => 38.0 + busy * 0.1,
        170..=209 => match (id - 170) % 5 {
            0 => (newer.t - older.t) * 1.98e9,
            1 => (newer.t - older.t) * 1.98e9 * busy / 100.0,
            2 | 3 => 0.0,
            _ => busy,
        },
        0 | 334.. => return Err(INVALID_ARGUMENT),
        _ => return Err(NOT_SUPPORTED),
    };
    Ok(if (1..=13).contains(&id) { value.min(100.0) } else { value })
}

fn cached(now: &Now) -> bool {
    let driver = now.site.machine.driver_version(now.t);
    driver.split('.').next().and_then(|major| major.parse::<u32>().ok()).unwrap_or(0) >= 575
}

fn metrics_get(call: &Call, request: *mut nvmlGpmMetricsGet_t) -> Answer {
    // Through the first words only: the caller's struct may be shorter or longer than ours.
    let words = request.cast::<u32>();
    if get(words)? != 1 {
        return Err(VERSION_MISMATCH);
    }
    let wanted = get(element(words, 1))?;
    let handles = request.wrapping_byte_add(8).cast::<nvmlGpmSample_t>();
    let taken = |position| {
        let key = key(get(element(handles, position))?)?;
        let sample = with_samples(|samples| samples.get(&key).copied());
        sample.and_then(|sample| sample.taken).ok_or(INVALID_ARGUMENT)
    };
    let (older, newer) = (taken(0)?, taken(1)?);
    if older.gpu.index != newer.gpu.index || older.mig != newer.mig {
        return Err(INVALID_ARGUMENT);
    }
    let metrics = request.wrapping_byte_add(24).cast::<nvmlGpmMetric_t>();
    for position in 0..wanted as usize {
        let at = element(metrics, position);
        let id = get(at)?.metricId;
        let answer = metric(&older, &newer, id);
        edit(at, |entry| match answer {
            Ok(value) => {
                entry.nvmlReturn = 0;
                entry.value = call.lie.unwrap_or(value);
            }
            Err(Code(code)) => {
                entry.nvmlReturn = code;
                entry.value = 0.0;
            }
        })?;
    }
    Ok(())
}

system_calls! {
    fn nvmlGpmSampleAlloc(_call, sample: *mut nvmlGpmSample_t) {
        let key = MARK | NEXT.fetch_add(1, Ordering::Relaxed);
        put(sample, std::ptr::without_provenance_mut(key as usize))?;
        with_samples(|samples| samples.insert(key, Sample { taken: None }));
        Ok(())
    }
    fn nvmlGpmMetricsGet(call, request: *mut nvmlGpmMetricsGet_t) { metrics_get(call, request) }
}

library_calls! {
    // Also after a driver has gone: memory of our own must be returnable.
    fn nvmlGpmSampleFree(_call, sample: nvmlGpmSample_t) {
        let key = key(sample)?;
        with_samples(|samples| samples.remove(&key)).map(drop).ok_or(INVALID_ARGUMENT)
    }
}

instance_calls! {
    fn nvmlGpmQueryDeviceSupport(ask, support: *mut nvmlGpmSupport_t) {
        if get(support.cast::<u32>())? != 1 {
            return Err(VERSION_MISMATCH);
        }
        edit(support, |support| support.isSupportedDevice = u32::from(ask.gpu.spec.gpm))
    }
    fn nvmlGpmSampleGet(ask, sample: nvmlGpmSample_t) { take(ask, **ask, sample) }
}

device_calls! {
    fn nvmlGpmMigSampleGet(ask, instance: u32, sample: nvmlGpmSample_t) {
        supported(ask.mig_on())?;
        let slot = ask.gpu.spec.mig.iter().position(|mig| mig.gi == instance).ok_or(NOT_FOUND)?;
        take(ask, Now { mig: Some(slot), ..**ask }, sample)
    }
    fn nvmlGpmQueryIfStreamingEnabled(ask, state: *mut u32) {
        ask.put_if(ask.gpu.spec.gpm, state, 0)
    }
    fn nvmlGpmSetStreamingEnabled(ask, _state: u32) {
        supported(ask.gpu.spec.gpm)?;
        Err(NO_PERMISSION)
    }
}

//! How busy: the GPU, its engines, the driver's sample ring, each process.

use gpubox::Now;
use gpubox::spec::Kind;
use nvml_wrapper_sys::bindings::{
    nvmlGpuDynamicPstatesInfo_t, nvmlProcessUtilizationInfo_v1_t, nvmlProcessUtilizationSample_t,
    nvmlProcessesUtilizationInfo_v1_t, nvmlSample_t, nvmlUtilization_t, nvmlValue_t,
};

use crate::call::{Ask, edit, element, get, put, put_list, supported, versioned};
use crate::codes::{Answer, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED};

fn engine(ask: &Ask, percent: f64, utilization: *mut u32, period_us: *mut u32) -> Answer {
    supported(!ask.mig_on())?;
    ask.put(utilization, percent as u32)?;
    put(period_us, 167_000)
}

/// Seconds between samples of the driver's ring, and how many it keeps.
const SAMPLE_SECONDS: f64 = 0.1;
const RING: usize = 120;

/// Newer than what the caller has seen; on a frozen clock everything is, for the caller's own
/// clock goes on and would outrun it.
fn is_news(ask: &Ask, stamp_us: u64, last_seen_us: u64) -> bool {
    ask.site.is_frozen() || stamp_us > last_seen_us
}

/// The instants of the ring newer than a time stamp.
fn instants(ask: &Ask, last_seen_us: u64) -> Vec<f64> {
    let newest = (ask.t / SAMPLE_SECONDS).floor();
    (0..RING)
        .map(|back| (newest - back as f64) * SAMPLE_SECONDS)
        .take_while(|t| *t >= 0.0 && is_news(ask, ask.site.unix_us(*t), last_seen_us))
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect()
}

fn sample_of(ask: &Ask, kind: u32, t: f64) -> Answer<u32> {
    let now = Now { t, ..**ask };
    let value = match kind {
        0 => now.power() * 1000.0,
        1 => now.utilization(),
        2 => now.memory_utilization(),
        3 => now.encoder(),
        4 => now.decoder(),
        5 => now.sm_clock(),
        6 => now.memory_clock(),
        8 | 9 if ask.gpu.spec.jpeg_ofa.unwrap_or(true) => 0.0,
        7..=9 => return Err(NOT_SUPPORTED),
        _ => return Err(INVALID_ARGUMENT),
    };
    Ok(ask.lie.map_or(value, |lie| lie) as u32)
}

/// One row per pid with any use, as the driver has it.
fn busy_processes(ask: &Ask) -> Vec<(u32, u32, u32)> {
    let kinds = [Kind::Compute, Kind::Graphics, Kind::Mps];
    let rows = kinds.into_iter().flat_map(|kind| ask.processes(kind));
    rows.filter(|row| row.sm >= 1.0 || row.mem >= 1.0)
        .map(|row| (row.pid, row.sm as u32, row.mem as u32))
        .collect()
}

device_calls! {
    fn nvmlDeviceGetUtilizationRates(ask, utilization: *mut nvmlUtilization_t) {
        supported(!ask.mig_on())?;
        let (gpu, memory) = (ask.utilization() as u32, ask.memory_utilization() as u32);
        let gpu = ask.lie.map_or(gpu, |lie| lie as u32);
        put(utilization, nvmlUtilization_t { gpu, memory })
    }
    fn nvmlDeviceGetEncoderUtilization(ask, utilization: *mut u32, period: *mut u32) {
        engine(ask, ask.encoder(), utilization, period)
    }
    fn nvmlDeviceGetDecoderUtilization(ask, utilization: *mut u32, period: *mut u32) {
        engine(ask, ask.decoder(), utilization, period)
    }
    fn nvmlDeviceGetJpgUtilization(ask, utilization: *mut u32, period: *mut u32) {
        supported(ask.gpu.spec.jpeg_ofa.unwrap_or(true))?;
        engine(ask, 0.0, utilization, period)
    }
    fn nvmlDeviceGetOfaUtilization(ask, utilization: *mut u32, period: *mut u32) {
        supported(ask.gpu.spec.jpeg_ofa.unwrap_or(true))?;
        engine(ask, 0.0, utilization, period)
    }
    fn nvmlDeviceGetSamples(
        ask,
        kind: u32,
        last_seen: u64,
        value_type: *mut u32,
        count: *mut u32,
        samples: *mut nvmlSample_t,
    ) {
        supported(!(ask.mig_on() && matches!(kind, 1..=4 | 8 | 9)))?;
        sample_of(ask, kind, ask.t)?;
        put(value_type, 1)?;
        let instants = instants(ask, last_seen);
        if samples.is_null() {
            // Without a buffer the answer is how large one must be at most.
            return put(count, RING as u32);
        }
        if instants.is_empty() {
            return Err(NOT_FOUND);
        }
        let room = (get(count)? as usize).min(instants.len());
        for (position, t) in instants.iter().take(room).enumerate() {
            let value = nvmlValue_t { uiVal: sample_of(ask, kind, *t)? };
            let sample = nvmlSample_t { timeStamp: ask.site.unix_us(*t), sampleValue: value };
            put(element(samples, position), sample)?;
        }
        put(count, room as u32)
    }
    fn nvmlDeviceGetProcessUtilization(
        ask,
        samples: *mut nvmlProcessUtilizationSample_t,
        count: *mut u32,
        last_seen: u64,
    ) {
        supported(!ask.mig_on())?;
        let stamp = ask.site.unix_us(ask.t);
        let rows: Vec<_> = busy_processes(ask)
            .into_iter()
            .filter(|_| is_news(ask, stamp, last_seen))
            .map(|(pid, sm, mem)| nvmlProcessUtilizationSample_t {
                pid,
                timeStamp: stamp,
                smUtil: sm,
                memUtil: mem,
                encUtil: 0,
                decUtil: 0,
            })
            .collect();
        if rows.is_empty() {
            return Err(NOT_FOUND);
        }
        put_list(count, samples, &rows)
    }
    fn nvmlDeviceGetProcessesUtilizationInfo(ask, info: *mut nvmlProcessesUtilizationInfo_v1_t) {
        versioned(info, 1)?;
        supported(!ask.mig_on())?;
        let given = get(info)?;
        let stamp = ask.site.unix_us(ask.t);
        let rows = busy_processes(ask);
        if rows.is_empty() {
            return Err(NOT_FOUND);
        }
        edit(info, |info| info.processSamplesCount = rows.len() as u32)?;
        if given.procUtilArray.is_null() || (given.processSamplesCount as usize) < rows.len() {
            return Err(INSUFFICIENT_SIZE);
        }
        for (position, (pid, sm, mem)) in rows.into_iter().enumerate() {
            put(element(given.procUtilArray, position), nvmlProcessUtilizationInfo_v1_t {
                timeStamp: stamp,
                pid,
                smUtil: sm,
                memUtil: mem,
                encUtil: 0,
                decUtil: 0,
                jpgUtil: 0,
                ofaUtil: 0,
            })?;
        }
        Ok(())
    }
    fn nvmlDeviceGetDynamicPstatesInfo(ask, info: *mut nvmlGpuDynamicPstatesInfo_t) {
        supported(!ask.mig_on())?;
        edit(info, |info| {
            info.flags = 1;
            let percents = [ask.utilization(), ask.memory_utilization(), ask.decoder(), 1.0];
            for (domain, percent) in info.utilization.iter_mut().zip(percents) {
                domain.bIsPresent = 1;
                domain.percentage = percent as u32;
                domain.incThreshold = 0;
                domain.decThreshold = 0;
            }
            for domain in info.utilization.iter_mut().skip(percents.len()) {
                domain.bIsPresent = 0;
            }
        })
    }
    fn nvmlDeviceGetEncoderStats(
        ask,
        sessions: *mut u32,
        frames_per_second: *mut u32,
        latency: *mut u32,
    ) {
        ask.put(sessions, 0)?;
        ask.put(frames_per_second, 0)?;
        ask.put(latency, 0)
    }
}

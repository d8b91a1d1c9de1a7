//! ECC counts, retired pages, remapped rows, repairs. Which location answers follows the captures:
//! from Ampere on only DRAM, SRAM and the totals; before that the older locations.

use nvml_wrapper_sys::bindings::{
    nvmlEccSramErrorStatus_v1_t, nvmlEccSramUniqueUncorrectedErrorCounts_v1_t,
    nvmlRepairStatus_v1_t, nvmlRowRemapperHistogramValues_t,
};

use crate::call::{Ask, edit, put, put_list, supported, versioned};
use crate::codes::{Answer, INVALID_ARGUMENT, NO_PERMISSION, NOT_SUPPORTED};

/// `nvmlUnrepairableMemory_v1_t`, newer than the bindings.
#[repr(C)]
#[derive(Clone, Copy)]
struct UnrepairableMemory {
    version: u32,
    unrepairable: u32,
}

/// Whether the part has ECC and it is on.
pub(crate) fn has(ask: &Ask) -> bool {
    ask.gpu.spec.ecc.unwrap_or(ask.gpu.spec.datacenter)
}

/// Which count; `location` is `None` for the total.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Counter {
    pub(crate) uncorrected: bool,
    pub(crate) aggregate: bool,
    pub(crate) location: Option<u32>,
}

impl Counter {
    /// The count behind fields 3 to 28.
    pub(crate) fn of_field(id: u32) -> Option<Self> {
        // Per group: L1, L2, DRAM, register file, texture (corrected, uncorrected each), CBU.
        const LOCATIONS: [(u32, bool); 11] = [
            (0, false),
            (0, true),
            (1, false),
            (1, true),
            (2, false),
            (2, true),
            (3, false),
            (3, true),
            (4, false),
            (4, true),
            (6, true),
        ];
        Some(match id {
            3..=6 => Self { uncorrected: id.is_multiple_of(2), aggregate: id >= 5, location: None },
            7..=28 => {
                let (location, uncorrected) = LOCATIONS[(id as usize - 7) % 11];
                Self { uncorrected, aggregate: id >= 18, location: Some(location) }
            }
            _ => return None,
        })
    }
}

/// The count, as far as the part keeps it.
pub(crate) fn count(ask: &Ask, counter: Counter) -> Answer<u64> {
    supported(has(ask))?;
    let spec = &ask.gpu.spec;
    let modern = spec.architecture >= 7;
    let dram = if counter.uncorrected { &spec.ecc_uncorrected } else { &spec.ecc_corrected };
    let dram = ask.value(dram.as_ref());
    let sram = if counter.uncorrected { ask.value(spec.sram_uncorrected.as_ref()) } else { 0 };
    match counter.location {
        None => Ok(dram + sram),
        Some(2) => Ok(dram),
        Some(7) if modern => Ok(sram),
        Some(0 | 1 | 3 | 4 | 6) if !modern => Ok(0),
        Some(0..=7) => Err(NOT_SUPPORTED),
        Some(_) => Err(INVALID_ARGUMENT),
    }
}

fn counter(kind: u32, span: u32, location: Option<u32>) -> Answer<Counter> {
    if kind > 1 || span > 1 {
        return Err(INVALID_ARGUMENT);
    }
    Ok(Counter { uncorrected: kind == 1, aggregate: span == 1, location })
}

fn remaps(ask: &Ask) -> Answer {
    let spec = &ask.gpu.spec;
    supported(spec.architecture >= 7 && spec.remap_banks > 0 && spec.mig.is_empty())
}

device_calls! {
    fn nvmlDeviceGetEccMode(ask, current: *mut u32, pending: *mut u32) {
        supported(ask.gpu.spec.ecc.is_some() || ask.gpu.spec.datacenter)?;
        ask.put(current, u32::from(has(ask)))?;
        ask.put(pending, u32::from(has(ask)))
    }
    fn nvmlDeviceGetDefaultEccMode(ask, mode: *mut u32) {
        ask.put_if(ask.gpu.spec.datacenter, mode, 1)
    }
    fn nvmlDeviceGetTotalEccErrors(ask, kind: u32, span: u32, value: *mut u64) {
        ask.put(value, count(ask, counter(kind, span, None)?)?)
    }
    fn nvmlDeviceGetMemoryErrorCounter(ask, kind: u32, span: u32, location: u32, value: *mut u64) {
        ask.put(value, count(ask, counter(kind, span, Some(location))?)?)
    }
    fn nvmlDeviceGetSramEccErrorStatus(ask, status: *mut nvmlEccSramErrorStatus_v1_t) {
        versioned(status, 1)?;
        supported(has(ask) && ask.gpu.spec.architecture >= 7)?;
        if ask.site.machine.host.unprivileged {
            return Err(NO_PERMISSION);
        }
        let uncorrected = ask.value(ask.gpu.spec.sram_uncorrected.as_ref());
        edit(status, |status| {
            *status = nvmlEccSramErrorStatus_v1_t {
                version: status.version,
                aggregateUncParity: uncorrected,
                aggregateUncSecDed: 0,
                aggregateCor: 0,
                volatileUncParity: uncorrected,
                volatileUncSecDed: 0,
                volatileCor: 0,
                aggregateUncBucketL2: uncorrected,
                aggregateUncBucketSm: 0,
                aggregateUncBucketPcie: 0,
                aggregateUncBucketMcu: 0,
                aggregateUncBucketOther: 0,
                bThresholdExceeded: u32::from(uncorrected >= 4),
            };
        })
    }
    fn nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts(
        ask,
        counts: *mut nvmlEccSramUniqueUncorrectedErrorCounts_v1_t,
    ) {
        versioned(counts, 1)?;
        supported(has(ask) && ask.gpu.spec.architecture >= 10)?;
        edit(counts, |counts| counts.entryCount = 0)
    }
    fn nvmlDeviceGetRetiredPages(ask, cause: u32, count: *mut u32, addresses: *mut u64) {
        supported(ask.gpu.spec.retired_pages && cause <= 1)?;
        put_list(count, addresses, &[])
    }
    fn nvmlDeviceGetRetiredPages_v2(
        ask,
        cause: u32,
        count: *mut u32,
        addresses: *mut u64,
        _times: *mut u64,
    ) {
        supported(ask.gpu.spec.retired_pages && cause <= 1)?;
        put_list(count, addresses, &[])
    }
    fn nvmlDeviceGetRetiredPagesPendingStatus(ask, pending: *mut u32) {
        ask.put_if(ask.gpu.spec.retired_pages, pending, 0)
    }
    fn nvmlDeviceGetRemappedRows(
        ask,
        corrected: *mut u32,
        uncorrected: *mut u32,
        pending: *mut u32,
        failed: *mut u32,
    ) {
        remaps(ask)?;
        let spec = &ask.gpu.spec;
        ask.put(corrected, ask.value(spec.remapped_corrected.as_ref()) as u32)?;
        ask.put(uncorrected, ask.value(spec.remapped_uncorrected.as_ref()) as u32)?;
        ask.put(pending, ask.value(spec.remap_pending.as_ref()) as u32)?;
        ask.put(failed, ask.value(spec.remap_failed.as_ref()) as u32)
    }
    fn nvmlDeviceGetRowRemapperHistogram(ask, out: *mut nvmlRowRemapperHistogramValues_t) {
        remaps(ask)?;
        let spec = &ask.gpu.spec;
        let used = ask.value(spec.remapped_corrected.as_ref())
            + ask.value(spec.remapped_uncorrected.as_ref());
        let used = (used as u32).min(spec.remap_banks);
        let exhausted = ask.value(spec.remap_failed.as_ref()).min(1) as u32;
        put(out, nvmlRowRemapperHistogramValues_t {
            max: spec.remap_banks - used.max(exhausted),
            high: used.saturating_sub(exhausted),
            partial: 0,
            low: 0,
            none: exhausted,
        })
    }
    fn nvmlDeviceGetRepairStatus(ask, status: *mut nvmlRepairStatus_v1_t) {
        versioned(status, 1)?;
        supported(ask.gpu.spec.datacenter && ask.gpu.spec.architecture >= 7)?;
        edit(status, |status| {
            status.bChannelRepairPending = 0;
            status.bTpcRepairPending = 0;
        })
    }
    fn nvmlDeviceGetUnrepairableMemoryFlag_v1(ask, flag: *mut UnrepairableMemory) {
        versioned(flag, 1)?;
        supported(ask.gpu.spec.datacenter && ask.gpu.spec.architecture >= 9)?;
        let failed = ask.value(ask.gpu.spec.remap_failed.as_ref()) as u32;
        edit(flag, |flag| flag.unrepairable = failed)
    }
}

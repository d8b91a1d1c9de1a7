//! The groups of readings of a GPU as blocks of facts, in the order in which one looks.

use std::fmt::Write;

use probes::finding::Severity;
use probes::nvml::clocks;
use probes::nvml::ecc::RECOVERY_ACTIONS;
use probes::nvml::nvlink::NvLink;
use probes::reading::Reading;
use probes::snapshot::{Gpu, Stamp};
use probes::units;

use crate::facts::Block;
use crate::value::{self, Value};
use crate::view::View;
use crate::words;

/// All groups.
pub(super) fn blocks(view: &View, gpu: &Gpu) -> Vec<Block> {
    vec![
        busy(view, gpu),
        memory(view, gpu),
        clocks(view, gpu),
        held_down(view, gpu),
        power(view, gpu),
        temperature(view, gpu),
        counters(view, gpu),
        pcie(view, gpu),
        nvlink(view, gpu),
        ecc(view, gpu),
        xids(view, gpu),
        identity(view, gpu),
        fabric(view, gpu),
    ]
}

fn block(title: &str, view: &View, gpu: &Gpu, stamp: Stamp) -> Block {
    let fresh = gpu.answers() && words::is_fresh(view, stamp);
    Block::new(title).note(super::age(view, stamp)).fresh(fresh)
}

fn watts(reading: &Reading<f64>) -> Value {
    Value::of(reading, |watts| format!("{watts:.0} W"))
}

fn celsius(reading: &Reading<i32>) -> Value {
    Value::of(reading, |degrees| format!("{degrees} °C"))
}

fn mhz(reading: &Reading<u32>) -> Value {
    Value::of(reading, |mhz| format!("{mhz} MHz"))
}

fn rate(reading: &Reading<f64>) -> Value {
    Value::of(reading, |rate| format!("{} GB/s", units::gigabytes_per_second(*rate)))
}

fn time(reading: &Reading<u64>) -> Value {
    Value::of(reading, |ns| match ns {
        0 => "never".into(),
        1..1_000_000_000 => "less than 1 s".into(),
        ns => units::duration(ns / 1_000_000_000),
    })
    .quiet_if(reading.get() == Some(0))
}

/// A count of errors: none is quiet, some are a warning.
fn errors(reading: &Reading<u64>) -> Value {
    let some = reading.get().is_some_and(|count| count > 0);
    Value::count(reading).alarm_if(some, Severity::Warning).quiet_if(!some)
}

/// A sign of trouble: no is quiet, yes is a warning or worse.
fn trouble(reading: &Reading<bool>, severity: Severity) -> Value {
    let yes = reading.get() == Some(true);
    Value::yes_no(reading).alarm_if(yes, severity).quiet_if(!yes)
}

fn busy(view: &View, gpu: &Gpu) -> Block {
    let group = &gpu.utilization;
    let mut out = block("BUSY", view, gpu, group.read);
    out.put("kernels", Value::percent(&group.gpu_ratio));
    out.put("memory accesses", Value::percent(&group.memory_ratio));
    out.put("encoder", Value::percent(&group.encoder_ratio));
    out.put("decoder", Value::percent(&group.decoder_ratio));
    out.put("JPEG", Value::percent(&group.jpeg_ratio));
    out.put("optical flow", Value::percent(&group.optical_flow_ratio));
    out
}

fn memory(view: &View, gpu: &Gpu) -> Block {
    let group = &gpu.memory;
    let mut out = block("MEMORY", view, gpu, group.read);
    if group.unified {
        out.text("kind", "the system's, shared");
    }
    out.put("total", Value::bytes(&group.total_bytes));
    out.put("reserved", Value::bytes(&group.reserved_bytes));
    out.put("in use", Value::bytes(&group.used_bytes));
    out.put("free", Value::bytes(&group.free_bytes));
    out.put("BAR1", Value::bytes(&group.bar1_total_bytes));
    out.put("BAR1 in use", Value::bytes(&group.bar1_used_bytes));
    out
}

fn clocks(view: &View, gpu: &Gpu) -> Block {
    let group = &gpu.clocks;
    let mut out = block("CLOCKS", view, gpu, group.read);
    out.put("multiprocessors", mhz(&group.sm_mhz));
    out.put("at most", mhz(&group.sm_max_mhz));
    out.put("graphics", mhz(&group.graphics_mhz));
    out.put("memory", mhz(&group.memory_mhz));
    out.put("at most", mhz(&group.memory_max_mhz));
    out.put("video", mhz(&group.video_mhz));
    out.put("P-state", Value::of(&group.performance_state, |state| format!("P{state}")));
    out
}

fn held_down(view: &View, gpu: &Gpu) -> Block {
    let group = &gpu.clocks;
    let mut out = block("HELD DOWN BY", view, gpu, group.read);
    let slowed = group.reasons.get().is_some_and(|mask| mask & clocks::SLOWDOWN_MASK != 0);
    let now = Value::of(&group.reasons, |mask| match clocks::reason_names(*mask) {
        names if names.is_empty() => "nothing".into(),
        names => names.join(", "),
    });
    out.put("now", now.alarm_if(slowed, Severity::Warning));
    out.put("power cap", time(&group.power_cap_ns_total));
    out.put("thermal limit", time(&group.thermal_ns_total));
    out.put("software thermal", time(&group.software_thermal_ns_total));
    out.put("hardware thermal", time(&group.hardware_thermal_ns_total));
    out.put("power brake", time(&group.power_brake_ns_total));
    out.put("board limit", time(&group.board_limit_ns_total));
    out.put("reliability", time(&group.reliability_ns_total));
    out
}

fn power(view: &View, gpu: &Gpu) -> Block {
    let group = &gpu.power;
    let mut out = block("POWER", view, gpu, group.read);
    out.put("draw", watts(&group.draw_watts));
    out.put("limit", watts(&group.limit_watts));
    out.put("limit from factory", watts(&group.limit_default_watts));
    out.put("limit, lowest", watts(&group.limit_min_watts));
    out.put("limit, highest", watts(&group.limit_max_watts));
    out.put("whole module", watts(&group.module_watts));
    out.put(
        "energy",
        Value::of(&group.energy_joules_total, |joules| format!("{:.1} kWh", joules / 3.6e6)),
    );
    out
}

fn temperature(view: &View, gpu: &Gpu) -> Block {
    let group = &gpu.temperature;
    let mut out = block("TEMPERATURE", view, gpu, group.read);
    out.put("GPU", celsius(&group.gpu_celsius));
    out.put("memory", celsius(&group.memory_celsius));
    out.put("left to slowdown", celsius(&group.margin_celsius));
    out.put("slows down at", celsius(&group.slowdown_celsius));
    out.put("shuts down at", celsius(&group.shutdown_celsius));
    out.put(
        "fans",
        Value::of(&group.fan_ratios, |fans| {
            fans.iter().map(|ratio| units::percent(*ratio)).collect::<Vec<_>>().join(" ")
        }),
    );
    out
}

fn counters(view: &View, gpu: &Gpu) -> Block {
    let group = &gpu.gpm;
    let mut out = block("COUNTERS (GPM)", view, gpu, group.read);
    if group.supported.get() == Some(false) {
        out.put("hardware counters", Value::shown(&Reading::<u64>::UNSUPPORTED));
        return out;
    }
    let share = |reading: &Reading<f64>| Value::percent(&value::counter(gpu, reading));
    out.put("graphics, compute", share(&group.graphics_ratio));
    out.put("SM active", share(&group.sm_active_ratio));
    out.put("SM occupancy", share(&group.sm_occupancy_ratio));
    out.put("tensor", share(&group.tensor_ratio));
    out.put("tensor FP64", share(&group.tensor_dfma_ratio));
    out.put("tensor FP16, BF16", share(&group.tensor_hmma_ratio));
    out.put("tensor FP64 matrix", share(&group.tensor_dmma_ratio));
    out.put("tensor integer", share(&group.tensor_imma_ratio));
    out.put("FP64", share(&group.fp64_ratio));
    out.put("FP32", share(&group.fp32_ratio));
    out.put("FP16", share(&group.fp16_ratio));
    out.put("integer", share(&group.integer_ratio));
    out.put("memory bandwidth", share(&group.dram_bandwidth_ratio));
    out.put("L2 hits, local", share(&group.l2_dram_hit_ratio));
    out.put("L2 misses, local", share(&group.l2_dram_miss_ratio));
    out.put("L2 hits, host", share(&group.l2_host_hit_ratio));
    out.put("L2 misses, host", share(&group.l2_host_miss_ratio));
    out.put("L2 hits, peers", share(&group.l2_peer_hit_ratio));
    out.put("L2 misses, peers", share(&group.l2_peer_miss_ratio));
    out.put("PCIe from GPU", rate(&value::counter(gpu, &group.pcie_tx_bytes_per_second)));
    out.put("PCIe to GPU", rate(&value::counter(gpu, &group.pcie_rx_bytes_per_second)));
    out.put("NVLink from GPU", rate(&value::counter(gpu, &group.nvlink_tx_bytes_per_second)));
    out.put("NVLink to GPU", rate(&value::counter(gpu, &group.nvlink_rx_bytes_per_second)));
    out
}

fn pcie(view: &View, gpu: &Gpu) -> Block {
    let group = &gpu.pcie;
    let mut out = block("PCIE", view, gpu, group.read);
    out.put("generation", Value::shown(&group.generation));
    out.put("lanes", Value::shown(&group.width));
    out.put("generation at most", Value::shown(&group.max_generation));
    out.put("lanes at most", Value::shown(&group.max_width));
    out.put("GPU alone could", Value::shown(&group.gpu_max_generation));
    out.put("from GPU", rate(&group.tx_bytes_per_second));
    out.put("to GPU", rate(&group.rx_bytes_per_second));
    out.put("rates come from", Value::shown(&group.rate_source));
    out.put("bytes from GPU", Value::bytes(&group.tx_bytes_total));
    out.put("bytes to GPU", Value::bytes(&group.rx_bytes_total));
    out.put("replays", Value::count(&group.replay_total));
    for kind in &group.errors {
        out.put(kind.kind.replace('_', " "), errors(&kind.total.into()));
    }
    out
}

fn nvlink(view: &View, gpu: &Gpu) -> Block {
    let group = &gpu.nvlink;
    let mut out = block("NVLINK", view, gpu, group.read);
    out.put("links", Value::of(&group.count, |all| format!("{} of {all} active", group.active())));
    if group.count.value().is_none() {
        return out;
    }
    out.put("from GPU", rate(&group.tx_bytes_per_second));
    out.put("to GPU", rate(&group.rx_bytes_per_second));
    // Alike links stand in one row.
    let mut alike: Vec<(String, bool, Vec<u32>)> = Vec::new();
    for link in &group.links {
        let (words, bad) = describe(link);
        match alike.iter_mut().find(|(known, _, _)| *known == words) {
            Some((_, _, links)) => links.push(link.link),
            None => alike.push((words, bad, vec![link.link])),
        }
    }
    for (words, bad, mut links) in alike {
        links.sort_unstable();
        let value = Value::plain(words).alarm_if(bad, Severity::Warning);
        out.put(format!("link {}", words::ranges(&links)), value);
    }
    out
}

fn describe(link: &NvLink) -> (String, bool) {
    let mut words = format!(
        "{}, {} GB/s",
        Value::shown(&link.state).text,
        Value::rate(&link.speed_bytes_per_second).text
    );
    let kinds = [
        ("replays", &link.replay_total),
        ("recoveries", &link.recovery_total),
        ("CRC errors", &link.crc_total),
    ];
    let mut bad = false;
    for (kind, total) in kinds {
        if let Some(total) = total.get().filter(|total| *total > 0) {
            bad = true;
            let _ = write!(words, ", {} {kind}", units::count(total));
        }
    }
    if !bad && kinds.iter().any(|(_, total)| total.value().is_some()) {
        words.push_str(", no errors");
    }
    (words, bad)
}

fn ecc(view: &View, gpu: &Gpu) -> Block {
    let group = &gpu.ecc;
    let mut out = block("MEMORY ERRORS", view, gpu, group.read);
    out.put("ECC on", Value::yes_no(&group.enabled));
    out.put("on after restart", Value::yes_no(&group.enabled_pending));
    out.put("corrected, volatile", Value::count(&group.corrected_volatile_total));
    out.put("uncorrected", errors(&group.uncorrected_volatile_total));
    out.put("corrected, lifetime", Value::count(&group.corrected_lifetime_total));
    out.put("uncorrected", errors(&group.uncorrected_lifetime_total));
    for location in &group.locations {
        let (corrected, uncorrected) = (&location.corrected_total, &location.uncorrected_total);
        let value = match (corrected, uncorrected) {
            (Reading::Absent(why), Reading::Absent(_)) => Value::absent(why),
            _ => Value::plain(format!(
                "{} corrected, {} uncorrected",
                Value::count(corrected).text,
                Value::count(uncorrected).text
            )),
        };
        out.put(format!("in {}", location.place.replace('_', " ")), value);
    }
    match &group.sram {
        Reading::Value(buckets) => {
            for bucket in buckets {
                out.put(format!("SRAM {}", bucket.unit), errors(&bucket.uncorrected_total.into()));
            }
        }
        Reading::Absent(why) => out.put("SRAM by unit", Value::absent(why)),
    }
    out.put("SRAM over limit", trouble(&group.sram_threshold_exceeded, Severity::Warning));
    out.put("rows remapped, corr.", Value::count(&group.remapped_corrected_total));
    out.put("rows remapped, unc.", errors(&group.remapped_uncorrected_total));
    out.put("remap pending", trouble(&group.remap_pending, Severity::Warning));
    out.put("remap failed", trouble(&group.remap_failed, Severity::Critical));
    out.put(
        "banks by spare rows",
        Value::of(&group.remap_banks, |banks| {
            let names = ["max", "high", "partial", "low", "none"];
            names
                .iter()
                .zip(banks)
                .map(|(name, count)| format!("{name} {count}"))
                .collect::<Vec<_>>()
                .join(", ")
        }),
    );
    out.put("pages retired, corr.", Value::count(&group.retired_corrected_total));
    out.put("pages retired, unc.", errors(&group.retired_uncorrected_total));
    out.put("retirement pending", trouble(&group.retirement_pending, Severity::Warning));
    out.put("channel repair", trouble(&group.channel_repair_pending, Severity::Warning));
    let asked = group.recovery_action.get().unwrap_or(0) > 0;
    let action = Value::of(&group.recovery_action, |action| {
        let name = usize::try_from(*action).ok().and_then(|at| RECOVERY_ACTIONS.get(at));
        name.map_or_else(|| format!("action {action}"), |name| (*name).into())
    });
    out.put("recovery", action.alarm_if(asked, Severity::Critical).quiet_if(!asked));
    out
}

fn xids(view: &View, gpu: &Gpu) -> Block {
    let mut out = Block::new("XID EVENTS").note("since the sampler started");
    if gpu.xids.is_empty() {
        out.put("none", Value::plain("").quiet_if(true));
    }
    for xid in gpu.xids.iter().rev().take(8) {
        let at = units::moment(xid.at_ms, view.at_ms(), view.utc_offset_seconds);
        let value = Value::plain(at).alarm_if(true, Severity::Warning);
        out.put(format!("Xid {}", xid.code), value);
    }
    out
}

fn identity(view: &View, gpu: &Gpu) -> Block {
    let group = &gpu.identity;
    let mut out = block("IDENTITY", view, gpu, group.read);
    out.put("name", Value::shown(&gpu.name));
    out.put("UUID", Value::shown(&gpu.uuid));
    out.put("bus address", Value::shown(&gpu.pci));
    out.put("device id", Value::shown(&group.pci_device_id));
    out.put("architecture", Value::shown(&group.architecture));
    out.put("compute capability", Value::shown(&group.compute_capability));
    out.put("CUDA cores", Value::shown(&group.cores));
    out.put("memory bus", Value::of(&group.memory_bus_bits, |bits| format!("{bits} bits")));
    out.put("device node", Value::of(&group.minor, |minor| format!("nvidia{minor}")));
    out.put("module on board", Value::shown(&group.module_id));
    out.put("serial", Value::shown(&group.serial));
    out.put("board part", Value::shown(&group.board_part_number));
    out.put("VBIOS", Value::shown(&group.vbios));
    out.put("GSP firmware", Value::shown(&group.gsp_firmware));
    out.put("GSP in use", Value::yes_no(&group.gsp_enabled));
    out.put("persistence", Value::yes_no(&group.persistence));
    out.put("compute mode", Value::shown(&group.compute_mode));
    out.put("drives a display", Value::yes_no(&group.display_active));
    out.put("addressing", Value::shown(&group.addressing));
    out.put("virtualization", Value::shown(&group.virtualization));
    out.put("MIG on", Value::yes_no(&group.mig_enabled));
    out.put("MIG after reset", Value::yes_no(&group.mig_pending));
    out.put("confidential", Value::yes_no(&group.confidential));
    if let Some(mig) = &gpu.mig {
        out.put("MIG profile", Value::shown(&mig.profile));
        out.put("GPU instance", Value::shown(&mig.gpu_instance));
        out.put("compute instance", Value::shown(&mig.compute_instance));
        out.put("compute slices", Value::shown(&mig.compute_slices));
        out.text("part of", mig.parent_uuid.clone());
    }
    out
}

fn fabric(view: &View, gpu: &Gpu) -> Block {
    let group = &gpu.fabric;
    let mut out = block("FABRIC, PLACE", view, gpu, group.read);
    out.put("fabric", Value::shown(&group.state));
    if group.state.value().is_some() {
        out.put("status", Value::shown(&group.status));
        out.put("clique", Value::shown(&group.clique));
        out.put("health", Value::shown(&group.health));
        out.put("health mask", Value::of(&group.health_mask, |mask| format!("{mask:#x}")));
    }
    for complaint in &group.complaints {
        out.put("complaint", Value::plain(complaint).alarm_if(true, Severity::Warning));
    }
    out.put("CPUs near it", Value::shown(&gpu.topology.cpu_affinity));
    out.put("NUMA near it", Value::shown(&gpu.topology.memory_affinity));
    out
}

//! What the sum of a GPU's memory means, in words: what stands below the holders.

use probes::ledger::Ledger;
use probes::reading::Absence;
use probes::snapshot::Gpu;
use probes::units;

use crate::text;
use crate::value::Value;
use crate::view::View;
use crate::words;

/// A line, and whether it is more than a remark.
pub(super) type Line = (String, bool);

/// A process that starts needs a context before its first allocation; between 0.3 and 0.6 GiB on
/// today's parts.
const CONTEXT: u64 = units::GIB / 2;

/// With less than this behind its context a server of even a model of a billion parameters does not
/// get far: 2 GiB of weights, 1 to 2 for graphs and activations, and some for the KV cache.
const USEFUL: u64 = 5 * units::GIB;

/// The lines.
pub(super) fn lines(view: &View, gpu: &Gpu, ledger: &Ledger, width: u16) -> Vec<Line> {
    let mut out: Vec<Line> = vec![(String::new(), false)];
    let mut say = |words: String, strong: bool| {
        out.extend(text::wrap(&words, width).into_iter().map(|line| (line, strong)));
    };
    if gpu.memory.unified {
        say(
            "This GPU has no memory of its own: the figures are the system's, and every program on \
             the box is in them."
                .into(),
            false,
        );
    }
    if let Some(words) = start_check(gpu) {
        say(words, true);
    }
    if ledger.unattributed_bytes.get().is_some_and(|bytes| bytes > 128 * units::MIB) {
        say(
            "nobody: no process seen here has it in its account. A process of another PID \
             namespace, a context left by one that ended, or managed memory."
                .into(),
            false,
        );
    }
    if let Some(why) = ledger.unattributed_bytes.absence().filter(|why| !is_plain(why)) {
        say(format!("nobody is not known: {why}"), false);
    }
    let is_said = gpu.memory.unified || ledger.total_bytes.value().is_none();
    if let Some(why) = ledger.reserved_bytes.absence().filter(|_| !is_said) {
        say(format!("reserved is not known: {why}"), false);
    }
    if ledger.shared_bytes > 0 {
        say(
            format!(
                "Memory that processes share is in each one's account: {} more is accounted for \
                 than in use.",
                units::bytes(ledger.shared_bytes)
            ),
            false,
        );
    }
    instances(view, gpu, &mut say);
    openers(view, gpu, &mut say);
    if gpu.memory.bar1_total_bytes.value().is_some() {
        let (used, total) = (&gpu.memory.bar1_used_bytes, &gpu.memory.bar1_total_bytes);
        say(format!("BAR1  {} of {}", Value::bytes(used).text, Value::bytes(total).text), false);
    }
    out
}

fn is_plain(why: &Absence) -> bool {
    matches!(why, Absence::Unsupported | Absence::NotRead)
}

/// The largest share with which vLLM's check at start would pass: it wants that share of the total
/// to be free after it has made its context.
fn start_check(gpu: &Gpu) -> Option<String> {
    // While MIG is on, processes run in instances alone.
    if gpu.mig.is_none() && gpu.identity.mig_enabled.get() == Some(true) {
        return None;
    }
    let free = gpu.memory.free_bytes.get()?.saturating_sub(CONTEXT);
    let total = gpu.memory.total_bytes.get().filter(|total| *total > 0)?;
    if free < USEFUL {
        return Some(
            "Too little is free for another LLM server: its context takes about 0.5 GiB, and \
             weights, graphs and KV cache hardly fit into the rest."
                .into(),
        );
    }
    let hundredths = u128::from(free) * 100 / u128::from(total);
    Some(format!(
        "vLLM would start here with --gpu-memory-utilization up to {}.{:02}  (estimated, less \
         0.5 GiB for its context)",
        hundredths / 100,
        hundredths % 100
    ))
}

fn instances(view: &View, gpu: &Gpu, say: &mut impl FnMut(String, bool)) {
    if gpu.mig.is_some() {
        say("A MIG instance: its memory is a part of the whole GPU's.".into(), false);
        return;
    }
    let parts: Vec<String> = view
        .snapshot
        .gpus
        .iter()
        .filter_map(|other| {
            let mig = other.mig.as_ref().filter(|_| other.index == gpu.index)?;
            let used = Value::gib(&other.memory.used_bytes).text;
            let total = Value::gib(&other.memory.total_bytes).text;
            Some(format!("{} {used} of {total}", mig.profile.text()))
        })
        .collect();
    if !parts.is_empty() {
        say(format!("MIG instances in use: {}", parts.join(", ")), true);
    }
}

/// Processes that have the device open and no memory.
fn openers(view: &View, gpu: &Gpu, say: &mut impl FnMut(String, bool)) {
    let names: Vec<String> = view
        .snapshot
        .processes
        .iter()
        .filter(|process| {
            process.gpus.iter().any(|part| part.gpu_index == gpu.index && part.kind == "open")
        })
        .map(|process| {
            let name = words::short_command(process);
            format!("{} {}", process.pid, text::fit(&name, 20))
        })
        .collect();
    if !names.is_empty() {
        say(format!("open the device and hold no memory: {}", names.join(", ")), false);
    }
}

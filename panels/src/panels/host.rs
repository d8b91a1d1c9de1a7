//! The box around the GPUs: CPUs, memory, NUMA nodes, kernel and its log, driver, device nodes.
//!
//! A GPU's memory that the kernel shows as a NUMA node is listed apart and is in no sum of main
//! memory.

use std::fmt::Write;

use probes::driver::Session;
use probes::finding::Severity;
use probes::reading::Reading;
use probes::units;

use crate::canvas::Canvas;
use crate::facts::{self, Block};
use crate::kernel_line;
use crate::keys::Command;
use crate::list::Scroll;
use crate::panels::{Entry, Focus, Panel, Reply};
use crate::text;
use crate::value::Value;
use crate::view::View;
use crate::words;

/// This panel in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "host",
    purpose: "The box around the GPUs, its kernel log, its driver.",
    answers: &[],
    explains: &[
        ("available", "What could be allocated without swapping; free alone says little."),
        ("/dev/shm", "Shared memory files. NCCL and PyTorch fail when it is small."),
        ("load", "Runnable and stuck tasks, averaged over 1, 5 and 15 minutes."),
        (
            "NUMA",
            "Parts of the main memory with the CPUs near them. A node without CPUs that is a \
                  GPU's memory is marked and in no sum.",
        ),
        (
            "kernel log",
            "What the kernel said about GPUs and about processes that it killed for \
                        memory, newest first.",
        ),
        (
            "module, library",
            "The loaded kernel module, the library that the driver's users load, \
                             and the one on disk that the next process will load. All three must \
                             be of one version.",
        ),
        ("/proc shows", "host, or why what is seen here is likely not the whole box."),
    ],
    make: || Box::<Host>::default(),
};

#[derive(Default)]
struct Host {
    scroll: Scroll,
}

impl Panel for Host {
    fn subject(&self, view: &View, _focus: &Focus) -> String {
        let host = &view.snapshot.host;
        let parts: Vec<&str> = [host.os.text(), host.kernel.text()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        std::iter::once("host").chain(parts).collect::<Vec<_>>().join(" · ")
    }

    fn draw(&mut self, view: &View, _focus: &Focus, canvas: &mut Canvas) {
        let width = canvas.width();
        let blocks = blocks(view);
        let log = log_lines(view, width.saturating_sub(2));
        let rows = facts::rows(&blocks, width.saturating_sub(1))
            .saturating_add(u16::try_from(log.len()).unwrap_or(u16::MAX));
        super::paged(canvas, &mut self.scroll, rows, |page| {
            let theme = page.theme;
            let mut y = 0;
            for (line, look) in log {
                let style = match look {
                    Look::Head => theme.strong(),
                    Look::Text => theme.text(),
                    Look::Dim => theme.dim(),
                };
                page.text(0, y, &line, style);
                y += 1;
            }
            facts::draw(page, y, &blocks);
        });
    }

    fn command(&mut self, command: Command, _view: &View, _focus: &mut Focus) -> Reply {
        if self.scroll.command(command) { Reply::Redraw } else { Reply::Ignored }
    }
}

enum Look {
    Head,
    Text,
    Dim,
}

/// The kernel log, newest first: what went wrong stands at the top.
fn log_lines(view: &View, width: u16) -> Vec<(String, Look)> {
    const SHOWN: usize = 12;
    let log = &view.snapshot.kernel_log;
    let head = match &log.source {
        Reading::Value(source) => format!("KERNEL LOG ({source})"),
        Reading::Absent(_) => "KERNEL LOG".into(),
    };
    let mut out = vec![(head, Look::Head)];
    if let Reading::Absent(why) = &log.source {
        let words = format!("cannot be read: {why}");
        out.extend(text::wrap(&words, width).into_iter().map(|line| (line, Look::Dim)));
    } else if log.lines.is_empty() {
        out.push(("nothing about GPUs".into(), Look::Dim));
    }
    let lines: Vec<(String, String)> =
        log.lines.iter().rev().take(SHOWN).map(|line| kernel_line::read_out(view, line)).collect();
    // Times of other days are longer; the words begin in one column all the same.
    let times = lines.iter().map(|(at, _)| at.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(u16::try_from(times).unwrap_or(0) + 2);
    for (at, words) in &lines {
        for (row, part) in text::wrap(words, room).into_iter().enumerate() {
            let (at, look) = if row == 0 { (at.as_str(), Look::Text) } else { ("", Look::Dim) };
            out.push((format!("{at:<times$}  {part}"), look));
        }
    }
    if log.lines.len() > SHOWN {
        out.push((format!("{} older lines", log.lines.len() - SHOWN), Look::Dim));
    }
    out.push((String::new(), Look::Dim));
    out
}

fn blocks(view: &View) -> Vec<Block> {
    vec![cpu(view), memory(view), numa(view), driver(view), nodes(view), pci(view)]
}

fn cpu(view: &View) -> Block {
    let host = &view.snapshot.host;
    let mut block = Block::new("CPU").fresh(words::is_fresh(view, host.read));
    block.put("busy", Value::percent(&host.cpu_ratio));
    block.put("waits for storage", Value::percent(&host.iowait_ratio));
    block.put(
        "load",
        Value::of(&host.load, |load| {
            load.iter().map(|load| format!("{load:.1}")).collect::<Vec<_>>().join("  ")
        }),
    );
    block.put("CPUs", Value::shown(&host.cpus));
    block.put("model", Value::shown(&host.cpu_model));
    block.put("processes", Value::shown(&host.processes));
    block.put("/proc shows", Value::shown(&host.pid_namespace));
    block.put("up for", Value::of(&host.uptime_seconds, |up| units::duration(*up)));
    block.put("boot", Value::shown(&host.boot_id));
    block
}

fn part(used: &Reading<u64>, total: &Reading<u64>) -> Value {
    match (used, total) {
        (_, Reading::Value(0)) => Value::plain("none"),
        (Reading::Value(used), Reading::Value(total)) => {
            Value::plain(format!("{} of {}", units::bytes(*used), units::bytes(*total)))
        }
        (Reading::Absent(why), _) | (_, Reading::Absent(why)) => Value::absent(why),
    }
}

fn memory(view: &View) -> Block {
    let host = &view.snapshot.host;
    let mut block = Block::new("MAIN MEMORY").fresh(words::is_fresh(view, host.read));
    block.put("available", part(&host.memory_available_bytes, &host.memory_total_bytes));
    block.put("page cache", Value::bytes(&host.memory_cached_bytes));
    block.put("shared, tmpfs", Value::bytes(&host.memory_shared_bytes));
    block.put("swap used", part(&host.swap_used_bytes, &host.swap_total_bytes));
    block.put("/dev/shm used", part(&host.shm_used_bytes, &host.shm_total_bytes));
    block.put("huge pages free", part(&host.hugepages_free_bytes, &host.hugepages_total_bytes));
    block.put("transparent huge", Value::shown(&host.transparent_hugepages));
    block
}

fn numa(view: &View) -> Block {
    let mut block = Block::new("NUMA NODES");
    match &view.snapshot.host.numa {
        Reading::Value(nodes) => {
            let (devices, main): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| node.is_device);
            for node in main {
                let (free, total) = (units::bytes(node.free_bytes), units::bytes(node.total_bytes));
                let cpus = if node.cpus.is_empty() { "no CPUs" } else { &node.cpus };
                let words = format!("{free} of {total} free, {cpus}");
                block.text(format!("node {}", node.node), words);
            }
            let total = devices.iter().map(|node| node.total_bytes).fold(0, u64::saturating_add);
            if !devices.is_empty() {
                let words = format!("{} nodes, {}", devices.len(), units::bytes(total));
                block.text("GPU memory", words);
            }
        }
        Reading::Absent(why) => block.put("nodes", Value::absent(why)),
    }
    block
}

fn driver(view: &View) -> Block {
    let driver = &view.snapshot.driver;
    let mut block = Block::new("DRIVER");
    let session = match &driver.session {
        Session::Starting => Value::plain("starting").quiet_if(true),
        Session::Open => Value::plain("answers"),
        Session::Failed { answer, .. } => Value::plain(answer).alarm_if(true, Severity::Critical),
        Session::NoAnswer { call, since_ms } => {
            let age = units::duration(view.at_ms().saturating_sub(*since_ms) / 1000);
            Value::plain(format!("no answer for {age} ({call})")).alarm_if(true, Severity::Critical)
        }
    };
    block.put("library", session);
    if let Some(problem) = &driver.problem {
        let severity = problem.severity();
        block.put("problem", Value::plain(&problem.title).alarm_if(true, severity));
    }
    block.put("module loaded", Value::shown(&driver.module_version));
    block.put("flavour", Value::shown(&driver.module_flavour));
    block.put("module users", Value::shown(&driver.module_users));
    block.put("driver version", Value::shown(&driver.version));
    block.put("NVML version", Value::shown(&driver.nvml_version));
    block.put("library on disk", Value::shown(&driver.library_on_disk));
    block.put("library file", Value::shown(&driver.library_path));
    block.put("CUDA, newest", Value::shown(&driver.cuda_version));
    block.put("branch", Value::shown(&driver.branch));
    block.put("GSP firmware on", Value::yes_no(&driver.gsp_enabled));
    block.put("counters root only", Value::yes_no(&driver.profiling_admin_only));
    block.put("modules", Value::of(&driver.modules, |modules| modules.join(" ")));
    block
}

fn nodes(view: &View) -> Block {
    let mut block = Block::new("DEVICE NODES");
    match &view.snapshot.driver.device_nodes {
        Reading::Value(nodes) if nodes.is_empty() => block.text("none", "below /dev"),
        Reading::Value(nodes) => {
            for node in nodes {
                let usable = if node.usable { "usable" } else { "not usable by us" };
                let words = format!("{} {}:{} {usable}", node.mode, node.uid, node.gid);
                let value = Value::plain(words).alarm_if(!node.usable, Severity::Warning);
                block.put(node.node.clone(), value);
            }
        }
        Reading::Absent(why) => block.put("nodes", Value::absent(why)),
    }
    block
}

fn pci(view: &View) -> Block {
    let mut block = Block::new("GPUS ON THE PCI BUS");
    match &view.snapshot.driver.pci_gpus {
        Reading::Value(gpus) if gpus.is_empty() => block.text("none", "of NVIDIA"),
        Reading::Value(gpus) => {
            for gpu in gpus {
                let bound = if gpu.driver.is_empty() { "no driver" } else { &gpu.driver };
                let model = gpu.model.value().map_or(gpu.device_id.as_str(), String::as_str);
                let errors = [&gpu.aer_fatal_total, &gpu.aer_nonfatal_total]
                    .iter()
                    .filter_map(|count| count.get())
                    .fold(0, u64::saturating_add);
                let mut words = format!("{model}, {bound}");
                if errors > 0 {
                    let _ = write!(words, ", {errors} bus errors");
                }
                let value = Value::plain(words).alarm_if(errors > 0, Severity::Warning);
                block.put(gpu.pci.clone(), value);
            }
        }
        Reading::Absent(why) => block.put("GPUs", Value::absent(why)),
    }
    block
}

//! What flows between GPU, host, other GPUs and memory: PCIe, NVLink, L2 and DRAM, topology, fabric.
//!
//! A hit rate is shown where hardware counters give one; where they do not, the reason stands in its
//! place and no figure is made up. Nothing is judged here: a link below its best at idle is normal.

use std::collections::BTreeMap;

use probes::reading::Reading;
use probes::snapshot::Gpu;
use probes::units;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::canvas::Canvas;
use crate::keys::Command;
use crate::list::Scroll;
use crate::panels::{Entry, Focus, Panel, Reply};
use crate::table::{self, Column};
use crate::text;
use crate::value::{self, Value};
use crate::view::View;
use crate::words;

mod topology;

/// This panel in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "bus",
    purpose: "What flows between the GPUs, the host and the memory, and over which ways.",
    answers: &[],
    explains: &[
        (
            "LINK",
            "PCIe generation and lanes now; MAX is the most that GPU and slot can do together. \
                  Both fall at idle on many parts, so look under load.",
        ),
        (
            "FROM, TO",
            "PCIe traffic from the GPU and to it, GB/s. A direction of Gen5 x16 carries \
                      about 60.",
        ),
        (
            "REPLAY",
            "PCIe packets sent again since the last reset. A few are normal; growing is not.",
        ),
        ("ERRORS", "All PCIe error counters of this GPU together."),
        (
            "LINKS",
            "NVLinks that are active, of those that the GPU has. SPEED is one link in one \
                   direction, GB/s.",
        ),
        ("NV FROM, NV TO", "Traffic over all NVLinks together, GB/s."),
        ("NV ERR", "Replays, recoveries and checksum errors of all NVLinks together."),
        (
            "L2 DRAM HOST PEER",
            "Share of accesses to local memory, host memory and other GPUs' \
                               memory that the L2 cache served. From hardware counters (GPM), \
                               Hopper and newer data centre parts, GeForce from the 50 series on.",
        ),
        ("BANDW", "Share of the memory's peak bandwidth in use."),
        (
            "NV18",
            "18 NVLinks between the two. PIX: one PCIe switch. PXB: several. PHB: through the \
                  CPU's host bridge. NODE: between bridges of one NUMA node. SYS: between NUMA \
                  nodes.",
        ),
        (
            "fabric",
            "Where NVSwitches connect the GPUs, each must join. In progress for long means \
                    that the fabric manager does not run or is of another version.",
        ),
    ],
    make: || Box::<Bus>::default(),
};

const PCIE: &[Column<Gpu>] = &[
    Column::number("LINK", 5, 0, |g, v| {
        link(&g.pcie.generation, &g.pcie.width).read_at(g.pcie.read, v)
    }),
    Column::number("MAX", 5, 0, |g, _| {
        link(&g.pcie.max_generation, &g.pcie.max_width).quiet_if(true)
    }),
    Column::number("FROM", 6, 0, |g, v| {
        Value::rate(&g.pcie.tx_bytes_per_second).read_at(g.pcie.read, v)
    }),
    Column::number("TO", 6, 0, |g, v| {
        Value::rate(&g.pcie.rx_bytes_per_second).read_at(g.pcie.read, v)
    }),
    Column::number("REPLAY", 7, 1, |g, v| counted(&g.pcie.replay_total).read_at(g.pcie.read, v)),
    Column::number("ERRORS", 7, 2, |g, v| {
        if g.pcie.errors.is_empty() {
            return Value::of(&Reading::<u64>::UNSUPPORTED, ToString::to_string);
        }
        let total = g.pcie.errors.iter().fold(0_u64, |sum, kind| sum.saturating_add(kind.total));
        counted(&total.into()).read_at(g.pcie.read, v)
    }),
    Column::words("SOURCE", 8, 3, |g, _| Value::shown(&g.pcie.rate_source).quiet_if(true)),
];

const NVLINK: &[Column<Gpu>] = &[
    Column::number("LINKS", 5, 0, |g, v| {
        Value::of(&g.nvlink.count, |count| format!("{}/{count}", g.nvlink.active()))
            .read_at(g.nvlink.read, v)
    }),
    Column::number("SPEED", 5, 1, |g, _| {
        let speed = g.nvlink.links.iter().find_map(|link| link.speed_bytes_per_second.get());
        match (speed, &g.nvlink.count) {
            (Some(speed), _) => Value::plain(units::gigabytes_per_second(speed)).quiet_if(true),
            (None, Reading::Value(_)) => g.nvlink.links.first().map_or_else(
                || Value::rate(&Reading::UNSUPPORTED),
                |link| Value::rate(&link.speed_bytes_per_second),
            ),
            (None, Reading::Absent(why)) => Value::absent(why),
        }
    }),
    Column::number("NV FROM", 7, 0, |g, v| nvlink(g, v, &g.nvlink.tx_bytes_per_second)),
    Column::number("NV TO", 7, 0, |g, v| nvlink(g, v, &g.nvlink.rx_bytes_per_second)),
    Column::number("NV ERR", 7, 1, |g, v| {
        let all = g
            .nvlink
            .links
            .iter()
            .flat_map(|link| [&link.replay_total, &link.recovery_total, &link.crc_total]);
        let known: Vec<u64> = all.filter_map(Reading::get).collect();
        if known.is_empty() {
            return nvlink(g, v, &Reading::UNSUPPORTED);
        }
        counted(&known.iter().fold(0_u64, |sum, n| sum.saturating_add(*n)).into())
            .read_at(g.nvlink.read, v)
    }),
    Column::number("BANDW", 6, 0, |g, v| gpm(g, v, &g.gpm.dram_bandwidth_ratio)),
    Column::number("L2 DRAM", 8, 0, |g, v| gpm(g, v, &g.gpm.l2_dram_hit_ratio)),
    Column::number("HOST", 5, 0, |g, v| gpm(g, v, &g.gpm.l2_host_hit_ratio)),
    Column::number("PEER", 5, 0, |g, v| gpm(g, v, &g.gpm.l2_peer_hit_ratio)),
];

fn link(generation: &Reading<u32>, width: &Reading<u32>) -> Value {
    match (generation, width) {
        (Reading::Value(generation), Reading::Value(width)) => {
            Value::plain(format!("{generation}×{width}"))
        }
        (Reading::Absent(why), _) | (_, Reading::Absent(why)) => Value::absent(why),
    }
}

fn counted(reading: &Reading<u64>) -> Value {
    Value::count(reading).quiet_if(reading.get() == Some(0))
}

fn gpm(gpu: &Gpu, view: &View, reading: &Reading<f64>) -> Value {
    Value::percent(&value::counter(gpu, reading)).read_at(gpu.gpm.read, view)
}

fn nvlink(gpu: &Gpu, view: &View, reading: &Reading<f64>) -> Value {
    match &gpu.nvlink.count {
        Reading::Absent(why) => Value::absent(why),
        Reading::Value(_) => Value::rate(reading).read_at(gpu.nvlink.read, view),
    }
}

#[derive(Default)]
struct Bus {
    scroll: Scroll,
}

impl Panel for Bus {
    fn subject(&self, view: &View, _focus: &Focus) -> String {
        let gpus = words::gpu_names(view.snapshot);
        if gpus.is_empty() { "bus".into() } else { format!("bus · {gpus}") }
    }

    fn draw(&mut self, view: &View, _focus: &Focus, canvas: &mut Canvas) {
        if view.snapshot.gpus.is_empty() {
            canvas.text(1, 1, "no GPU to show; the overview says why", canvas.theme.dim());
            return;
        }
        let rows = measured(canvas.width().saturating_sub(1), canvas.theme, view);
        super::paged(canvas, &mut self.scroll, rows, |inside| {
            page(inside, view);
        });
    }

    fn command(&mut self, command: Command, _view: &View, _focus: &mut Focus) -> Reply {
        if self.scroll.command(command) { Reply::Redraw } else { Reply::Ignored }
    }
}

/// How long the page is: drawn once where nothing is seen.
fn measured(width: u16, theme: crate::theme::Theme, view: &View) -> u16 {
    let mut nowhere = Buffer::empty(Rect::new(0, 0, width, 1));
    let area = nowhere.area;
    page(&mut Canvas::new(&mut nowhere, area, theme).scrolled(u16::MAX), view)
}

fn page(canvas: &mut Canvas, view: &View) -> u16 {
    let wide = canvas.width() >= 150;
    let mut y;
    if wide {
        // Side by side: one line a GPU.
        let half = canvas.width() / 2;
        y = traffic(
            canvas,
            0,
            0,
            half,
            "PCIE GB/s",
            PCIE,
            view,
            Some("infertop_gpu_pcie_rx_bytes_per_second"),
        );
        traffic(canvas, half, 0, half, "NVLINK GB/s, MEMORY, L2 HITS", NVLINK, view, None);
    } else {
        let width = canvas.width();
        y = traffic(
            canvas,
            0,
            0,
            width,
            "PCIE GB/s",
            PCIE,
            view,
            Some("infertop_gpu_pcie_rx_bytes_per_second"),
        );
        y = traffic(canvas, 0, y + 1, width, "NVLINK GB/s, MEMORY, L2 HITS", NVLINK, view, None);
    }
    y = reasons(canvas, y, view);
    y = topology::draw(canvas, y + 1, view);
    topology::fabric(canvas, y + 1, view)
}

#[expect(
    clippy::too_many_arguments,
    reason = "a table's place, columns and series; a struct would be used twice"
)]
fn traffic(
    canvas: &mut Canvas,
    x: u16,
    y: u16,
    width: u16,
    title: &str,
    columns: &'static [Column<Gpu>],
    view: &View,
    series: Option<&str>,
) -> u16 {
    let theme = canvas.theme;
    canvas.text(x, y, title, theme.strong());
    let (columns, left) = table::fitting(columns, width.saturating_sub(8));
    canvas.right(x, y + 1, 7, "GPU", theme.heading());
    let end = table::heads(canvas, x + 8, y + 1, &columns, None);
    let spark = left.saturating_sub(2).min(60);
    if series.is_some() && spark >= 6 {
        canvas.text_in(end + 1, y + 1, spark, "BOTH", theme.heading());
    }
    let mut row = y + 2;
    for gpu in &view.snapshot.gpus {
        canvas.right(x, row, 7, &gpu.label(), theme.text());
        table::cells(canvas, x + 8, row, &columns, gpu, view, gpu.answers());
        if series.is_some() && spark >= 6 {
            let rx = view.history.series(gpu, "infertop_gpu_pcie_rx_bytes_per_second").rev();
            let tx = view.history.series(gpu, "infertop_gpu_pcie_tx_bytes_per_second").rev();
            let both = rx.zip(tx).map(|(rx, tx)| rx + tx);
            canvas.spark(end + 1, row, spark, both, (0.0, ceiling(gpu)), theme.dim());
        }
        row += 1;
    }
    row
}

/// The most that the link can carry in both directions, bytes a second: the top of the sparkline.
fn ceiling(gpu: &Gpu) -> f32 {
    let lanes = gpu.pcie.max_width.get().unwrap_or(16);
    let generation = gpu.pcie.max_generation.get().unwrap_or(4).clamp(1, 7);
    // A lane carries about 0.25 GB/s in generation 1 and twice that in each next one.
    let lane = 0.25e9 * f64::from(1_u32 << (generation - 1));
    #[expect(clippy::cast_possible_truncation, reason = "the top of a sparkline needs no digits")]
    let top = (lane * f64::from(lanes) * 2.0) as f32;
    top
}

/// Heads of columns, numbers of GPUs.
type Hits = (Vec<&'static str>, Vec<u32>);

/// Why there are dashes and question marks: each reason once, with columns and GPUs. Instances stand
/// apart from whole GPUs: what an instance lacks its GPU may well have.
fn reasons(canvas: &mut Canvas, mut y: u16, view: &View) -> u16 {
    let theme = canvas.theme;
    let mut found: BTreeMap<(bool, String), Hits> = BTreeMap::new();
    for gpu in &view.snapshot.gpus {
        for column in PCIE.iter().chain(NVLINK) {
            let value = (column.pick)(gpu, view);
            if value.reason.is_empty() {
                continue;
            }
            let (heads, gpus) = found.entry((gpu.mig.is_some(), value.reason)).or_default();
            if !heads.contains(&column.head) {
                heads.push(column.head);
            }
            if gpus.last() != Some(&gpu.index) {
                gpus.push(gpu.index);
            }
        }
    }
    let whole = view.snapshot.gpus.iter().filter(|gpu| gpu.mig.is_none()).count();
    for ((instances, reason), (heads, mut gpus)) in found {
        gpus.sort_unstable();
        gpus.dedup();
        let all = gpus.len() > 1 && gpus.len() == whole;
        let which = if all { "all GPUs".into() } else { format!("GPU {}", words::ranges(&gpus)) };
        let which = if instances { format!("instances of {which}") } else { which };
        let line = format!("{which}, {}: {reason}", heads.join(", "));
        for line in text::wrap(&line, canvas.width().saturating_sub(8)) {
            canvas.text(4, y, &line, theme.dim());
            y += 1;
        }
    }
    y
}

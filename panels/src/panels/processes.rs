//! Processes that use or hold a GPU: a table to sort and filter, a tree, and everything about one.

use crossterm::event::KeyEvent;
use probes::proc::Process;
use probes::reading::Reading;
use probes::units;
use ratatui::layout::Position;

use crate::canvas::Canvas;
use crate::input::{Input, Typed};
use crate::keys::Command;
use crate::list::{List, Scroll};
use crate::panels::{Entry, Focus, Panel, Reply};
use crate::table::{self, Column};
use crate::value::Value;
use crate::view::View;
use crate::words::{self, ProcessKey};

mod details;
mod order;

/// This panel in the list.
pub(super) const ENTRY: Entry = Entry {
    name: "processes",
    purpose: "Every process that uses a GPU or has its device open, and the server above it.",
    answers: &[
        Command::EndProcess,
        Command::Filter,
        Command::Sort,
        Command::Reverse,
        Command::Tree,
        Command::Open,
        Command::Copy,
    ],
    explains: &[
        ("HELD", "Device memory that the driver counts for it, all GPUs together, in GiB."),
        (
            "SM",
            "Share of the last sample period with a kernel of its own, the largest of its GPUs.",
        ),
        ("CPU", "Share of one core since the last tick; more than 100% is more than one core."),
        ("RSS", "Resident main memory, in GiB. PINNED is main memory pinned for devices."),
        (
            "STATE",
            "stuck D: sleeps where no signal reaches it, in a driver call or a page fault. \
                   zombie: ended, and its parent has not asked for the result. not here: the \
                   driver lists it and this box's /proc does not, because it has ended or lives in \
                   another PID namespace.",
        ),
        (
            "WHERE",
            "Container, pod, Slurm job or systemd unit, by the best name that is known; all of \
                   them stand on the page of the process.",
        ),
        ("tree", "Dim rows are parents that use no GPU themselves."),
        (
            "(replaced)",
            "A library that was replaced on disk since: the process runs the old one and \
                        must be restarted to get the new one.",
        ),
        (
            "k",
            "Shows what exactly would be hit, and asks for the pid to be typed. Before the signal \
               is sent, pid and start time are checked again.",
        ),
    ],
    make: || Box::<Processes>::default(),
};

fn held(process: &Process, _: &View) -> Value {
    if process.gpus.iter().any(|part| part.gpu_bytes.value().is_some()) {
        return Value::plain(units::gib(process.gpu_bytes()));
    }
    process.gpus.first().map_or(Value::plain(""), |part| Value::gib(&part.gpu_bytes))
}

const COLUMNS: &[Column<Process>] = &[
    Column::number("PID", 7, 0, |p, _| Value::plain(p.pid.to_string())),
    Column::words("USER", 8, 2, |p, _| Value::shown(&p.user).quiet_if(true)),
    Column::number("GPU", 6, 0, |p, _| Value::plain(words::gpus_of(p))),
    Column::number("HELD", 5, 0, held),
    Column::number("SM", 4, 3, |p, v| Value::percent(&words::busiest(p)).read_at(p.read, v)),
    Column::number("CPU", 5, 1, |p, v| Value::percent(&p.cpu_ratio).read_at(p.read, v)),
    Column::number("RSS", 6, 1, |p, v| Value::gib(&p.rss_bytes).read_at(p.read, v)),
    Column::number("PINNED", 6, 6, |p, v| Value::gib(&p.pinned_bytes).read_at(p.read, v)),
    Column::number("SWAP", 5, 7, |p, v| Value::gib(&p.swap_bytes).read_at(p.read, v)),
    Column::number("THR", 4, 7, |p, v| Value::shown(&p.threads).read_at(p.read, v)),
    Column::number("AGE", 4, 4, |p, v| words::age(p, v).quiet_if(true)),
    Column::words("STATE", 11, 1, |p, v| {
        let value = Value::plain(words::state(p, v.at_ms()));
        match words::state_severity(p, v.at_ms()) {
            Some(severity) => value.alarm_if(true, severity),
            None => value.quiet_if(true),
        }
    }),
    Column::words("WHERE", 21, 5, |p, _| match words::place(p) {
        Some(place) => Value::plain(place).quiet_if(true),
        None => Value::shown(&p.container).quiet_if(true),
    }),
];

#[derive(Default)]
struct Processes {
    list: List<order::RowKey>,
    sort: usize,
    reverse: bool,
    tree: bool,
    filter: Input,
    typing: bool,
    opened: Option<ProcessKey>,
    scroll: Scroll,
}

/// What the page of one process answers.
const OPENED: &[Command] = &[Command::EndProcess, Command::Filter, Command::Copy];

impl Panel for Processes {
    fn answers(&self) -> Option<&'static [Command]> {
        self.opened.map(|_| OPENED)
    }

    fn subject(&self, view: &View, _focus: &Focus) -> String {
        if let Some(key) = self.opened {
            return format!("process {}", key.pid);
        }
        let on_gpu = view.snapshot.processes.iter().filter(|process| !process.gpus.is_empty());
        format!("processes · {} with a GPU", on_gpu.count())
    }

    fn enter(&mut self, focus: &Focus) {
        // Opened from another panel: the process that was selected there.
        if let Some(key) = focus.process {
            self.list.choose(order::RowKey::Process(key));
            self.opened = Some(key);
            self.scroll = Scroll::default();
        }
    }

    fn draw(&mut self, view: &View, _focus: &Focus, canvas: &mut Canvas) {
        if let Some(key) = self.opened {
            details::draw(canvas, view, key, &mut self.scroll);
            return;
        }
        let rows =
            order::rows(view, order::SORTS[self.sort], self.reverse, self.tree, &self.filter.text);
        self.list.set(rows.iter().map(order::Row::key).collect());
        let mut y = self.filter_line(canvas, rows.len());
        let who = (canvas.width() / 4).max(18);
        let (columns, left) = table::fitting(COLUMNS, canvas.width().saturating_sub(3 + who));
        let sorted = &order::SORTS[self.sort];
        let order = canvas.theme.glyphs().order[usize::from(self.reverse != sorted.upwards)];
        let mark = (!self.tree).then_some((sorted.head, order));
        let x = table::heads(canvas, 3, y, &columns, mark);
        let head = if self.tree { "WHO, BELOW ITS PARENT" } else { "WHO" };
        canvas.text(x + 1, y, head, canvas.theme.heading());
        y += 1;
        if rows.is_empty() {
            let words = if self.filter.text.is_empty() {
                "no process uses a GPU"
            } else {
                "no process fits the filter"
            };
            canvas.text(3, y, words, canvas.theme.dim());
            return;
        }
        for at in self.list.window(canvas.height().saturating_sub(y)) {
            draw_row(canvas, y, &columns, left + who, view, &rows[at]);
            self.list.drawn(canvas.screen_row(y), at);
            if self.list.is_at(at) {
                canvas.select(y);
            }
            y += 1;
        }
    }

    fn command(&mut self, command: Command, _view: &View, focus: &mut Focus) -> Reply {
        if self.opened.is_some() && self.scroll.command(command) {
            return Reply::Redraw;
        }
        if self.opened.is_none() && self.list.command(command) {
            return Reply::Redraw;
        }
        let chosen = self.opened.or(match self.list.selected() {
            Some(order::RowKey::Process(key)) => Some(*key),
            _ => None,
        });
        match command {
            Command::Back if self.opened.is_some() => {
                self.opened = None;
                // Came from another panel: go back there.
                if focus.process.take().is_some() { Reply::Ignored } else { Reply::Redraw }
            }
            Command::Back if !self.filter.text.is_empty() => {
                self.filter.text.clear();
                Reply::Redraw
            }
            Command::Filter => {
                self.opened = None;
                self.typing = true;
                Reply::Redraw
            }
            Command::Sort => {
                self.sort = (self.sort + 1) % order::SORTS.len();
                self.tree = false;
                Reply::Redraw
            }
            Command::Reverse => {
                self.reverse = !self.reverse;
                Reply::Redraw
            }
            Command::Tree => {
                self.tree = !self.tree;
                Reply::Redraw
            }
            Command::Open => {
                self.opened = chosen;
                self.scroll = Scroll::default();
                Reply::Redraw
            }
            Command::EndProcess => chosen.map_or(Reply::Redraw, Reply::EndProcess),
            Command::Copy => chosen.map_or(Reply::Redraw, |key| Reply::Copy(key.pid.to_string())),
            _ => Reply::Ignored,
        }
    }

    fn click(&mut self, at: Position, view: &View, focus: &mut Focus) -> Reply {
        match self.list.click(at.y) {
            Some(true) => self.command(Command::Open, view, focus),
            Some(false) => Reply::Redraw,
            None => Reply::Ignored,
        }
    }

    fn typed(&mut self, event: KeyEvent) -> Option<Reply> {
        if !self.typing {
            return None;
        }
        match self.filter.key(event) {
            Typed::Done => self.typing = false,
            Typed::Dropped => {
                self.typing = false;
                self.filter.text.clear();
            }
            // Arrows still move while one types.
            Typed::Other => return None,
            Typed::Text => {}
        }
        Some(Reply::Redraw)
    }

    fn reason(&self, view: &View) -> Option<String> {
        if self.opened.is_some() {
            return None;
        }
        let Some(order::RowKey::Process(key)) = self.list.selected() else { return None };
        let process = key.find(view.snapshot)?;
        if process.is_gone() {
            return Some(format!("pid {}: {}", key.pid, words::not_here(process)));
        }
        let mut seen: Vec<(String, Vec<&str>)> = Vec::new();
        for column in COLUMNS {
            let value = (column.pick)(process, view);
            if value.known != crate::value::Known::Missing {
                continue;
            }
            match seen.iter_mut().find(|(reason, _)| *reason == value.reason) {
                Some((_, heads)) => heads.push(column.head),
                None => seen.push((value.reason, vec![column.head])),
            }
        }
        let parts: Vec<String> =
            seen.iter().map(|(reason, heads)| format!("{reason} ({})", heads.join(" "))).collect();
        (!parts.is_empty()).then(|| format!("pid {}: {}", key.pid, parts.join("; ")))
    }
}

impl Processes {
    fn filter_line(&self, canvas: &mut Canvas, count: usize) -> u16 {
        if !self.typing && self.filter.text.is_empty() {
            return 0;
        }
        let theme = canvas.theme;
        let x = canvas.text(1, 0, "filter ", theme.dim());
        let mut end = canvas.text(x, 0, &self.filter.text, theme.strong());
        if self.typing {
            end = canvas.text(end, 0, "▏", theme.text());
        }
        canvas.text(end + 2, 0, &format!("{count} rows"), theme.dim());
        1
    }
}

fn draw_row(
    canvas: &mut Canvas,
    y: u16,
    columns: &[&Column<Process>],
    room: u16,
    view: &View,
    row: &order::Row,
) {
    let theme = canvas.theme;
    let mut x = 3 + columns.iter().map(|column| column.width + 1).sum::<u16>() + 1;
    let end = x + room.saturating_sub(1);
    let branch = row.branch(theme.glyphs().tree);
    if let Some(process) = row.process {
        if let Some(severity) = words::process_severity(view, process) {
            canvas.glyph(1, y, theme.severity_glyph(severity), theme.severity(severity));
        }
        table::cells(canvas, 3, y, columns, process, view, true);
        x = canvas.text_in(x, y, end.saturating_sub(x), &branch, theme.faint());
        canvas.text_in(
            x,
            y,
            end.saturating_sub(x),
            &words::who(view.snapshot, process),
            theme.text(),
        );
    } else {
        canvas.right(3, y, 7, &row.pid.to_string(), theme.dim());
        x = canvas.text_in(x, y, end.saturating_sub(x), &branch, theme.faint());
        canvas.text_in(x, y, end.saturating_sub(x), &row.comm, theme.dim());
    }
}

/// Bytes of a reading for sorting; unknown is least.
fn known(reading: &Reading<u64>) -> u64 {
    reading.get().unwrap_or(0)
}

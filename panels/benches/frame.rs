//! What one frame costs: 200×50 cells, eight GPUs, sixty-four processes. The whole picture may take
//! about 0.3 % of a core at one frame a second, terminal and all: 3 ms.

use panels::panels::PANELS;
use panels::theme::{Depth, Theme};
use panels::ui::Ui;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

#[path = "../tests/screens/boxes.rs"]
mod boxes;

fn main() {
    divan::main();
}

fn names() -> impl Iterator<Item = &'static str> {
    PANELS.iter().map(|entry| entry.name)
}

#[divan::bench(args = names())]
fn frame(bencher: divan::Bencher, panel: &str) {
    let mut shown = boxes::sick_box();
    for pid in 0..56 {
        let command = format!("python train.py --rank {pid}");
        shown.snapshot.processes.push(boxes::process(90_000 + pid, &command, &[(pid % 8, 40)]));
    }
    let shown = boxes::Shown::new(shown.snapshot, shown.findings);
    let mut ui = Ui::new(Theme::new(Depth::True, false));
    ui.show(panel);
    let area = Rect::new(0, 0, 200, 50);
    let mut buf = Buffer::empty(area);
    bencher.bench_local(|| {
        buf.reset();
        ui.draw(&shown.view(), area, &mut buf);
    });
}

#[divan::bench]
fn overview_of_64_gpus(bencher: divan::Bencher) {
    let shown = boxes::large_box();
    let mut ui = Ui::new(Theme::new(Depth::True, false));
    let area = Rect::new(0, 0, 200, 100);
    let mut buf = Buffer::empty(area);
    bencher.bench_local(|| {
        buf.reset();
        ui.draw(&shown.view(), area, &mut buf);
    });
}

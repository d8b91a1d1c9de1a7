//! What one frame costs: 200×50 cells, eight GPUs, sixty-four processes. The whole picture may take
//! about 0.3 % of a core at one frame a second, terminal and all: 3 ms.

use panels::panels::PANELS;
use panels::theme::{Depth, Theme};
use panels::ui::Ui;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

#[path = "../tests/screens/boxes.rs"]
mod boxes;
#[path = "../tests/screens/pasts.rs"]
mod pasts;
#[path = "../tests/screens/picture.rs"]
mod picture;

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

/// A week in a chart: as many points as there are dots.
#[divan::bench]
fn week_of_eight_gpus(bencher: divan::Bencher) {
    let mut shown = pasts::remembered();
    let mut ui = Ui::new(Theme::new(Depth::True, false));
    ui.show("history");
    let area = Rect::new(0, 0, 200, 50);
    pasts::draw(&mut ui, &mut shown, 200, 50);
    let mut buf = Buffer::empty(area);
    bencher.bench_local(|| {
        buf.reset();
        ui.draw(&shown.view(), area, &mut buf);
    });
}

/// Sixty-four GPUs with eighteen links each: those of one are drawn.
#[divan::bench]
fn curves_of_1152_links(bencher: divan::Bencher) {
    let mut shown = pasts::remembered();
    let mut ui = Ui::new(Theme::new(Depth::True, false));
    ui.show("history");
    let area = Rect::new(0, 0, 200, 50);
    pasts::draw(&mut ui, &mut shown, 200, 50);
    if let Some(panels::view::Chart { answer: Some(Ok(past)), .. }) = &mut shown.past.chart {
        let one = past.series[0].clone();
        past.series = (0..1152)
            .map(|link| probes::past::Series {
                subject: (link / 18).to_string(),
                label: (link % 18).to_string(),
                ..one.clone()
            })
            .collect();
    }
    let mut buf = Buffer::empty(area);
    bencher.bench_local(|| {
        buf.reset();
        ui.draw(&shown.view(), area, &mut buf);
    });
}

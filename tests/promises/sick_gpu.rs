//! One GPU whose calls never return harms nobody: the others keep their rate, the stuck one is
//! named with its call, and the program ends at once.

use std::time::Duration;

use crate::gpu_box::GpuBox;
use crate::terminal::{Terminal, children, is_alive, patience};

#[test]
fn a_gpu_that_hangs_from_the_start_is_named_and_quitting_is_instant() {
    let gpu_box = GpuBox::of("hang-from-start");
    let mut terminal = Terminal::start(&gpu_box, (24, 80), &[]);
    terminal.wait_for("the stuck GPU", |text| text.contains("no answer for"));
    let sampler = children(terminal.child.id());
    assert_eq!(sampler.len(), 1, "one sampler");
    terminal.keys("q");
    let (status, took) = terminal.wait_for_end();
    assert!(status.success());
    assert!(took < Duration::from_millis(200) * patience(), "quitting took {took:?}");
    terminal.wait_for("the shell's screen", |_| terminal.is_given_back());
    assert!(!is_alive(sampler[0]), "the sampler is still there");
}

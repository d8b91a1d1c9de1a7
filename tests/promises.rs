//! Whole-program tests: the real binary, in a terminal, on a stand-in box. One file a promise.

#![allow(missing_docs, unreachable_pub)]

#[path = "promises/gpu_box.rs"]
mod gpu_box;
#[path = "promises/sick_gpu.rs"]
mod sick_gpu;
#[path = "promises/terminal.rs"]
mod terminal;

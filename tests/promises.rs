//! Whole-program tests: the real binary, in a terminal, on a stand-in box. One file a promise.

#![allow(missing_docs, unreachable_pub)]
// Clippy's exception for tests does not reach the functions that tests call.
#![allow(clippy::unwrap_used)]

// What the tests stand on.
#[path = "promises/frames.rs"]
mod frames;
#[path = "promises/gpu_box.rs"]
mod gpu_box;
#[path = "promises/running_daemon.rs"]
mod running_daemon;
#[path = "promises/terminal.rs"]
mod terminal;
#[path = "promises/tree.rs"]
mod tree;
#[path = "promises/waiting.rs"]
mod waiting;
#[path = "promises/workload.rs"]
mod workload;

// The promises.
#[path = "promises/attach.rs"]
mod attach;
#[path = "promises/driver.rs"]
mod driver;
#[path = "promises/ending.rs"]
mod ending;
#[path = "promises/json.rs"]
mod json;
#[path = "promises/lost_gpu.rs"]
mod lost_gpu;
#[path = "promises/manners.rs"]
mod manners;
#[path = "promises/on_gpu.rs"]
mod on_gpu;
#[path = "promises/pace.rs"]
mod pace;
#[path = "promises/processes.rs"]
mod processes;
#[path = "promises/recording.rs"]
mod recording;
#[path = "promises/sick_gpu.rs"]
mod sick_gpu;
#[path = "promises/sizes.rs"]
mod sizes;

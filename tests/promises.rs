//! Whole-program tests: the real binary, in a terminal, on a stand-in box. One file a promise.

#![allow(missing_docs, unreachable_pub)]
// Clippy's exception for tests does not reach the functions that tests call.
#![allow(clippy::unwrap_used)]

// What the tests stand on.
#[path = "promises/daemon_home.rs"]
mod daemon_home;
#[path = "promises/frames.rs"]
mod frames;
#[path = "promises/gpu_box.rs"]
mod gpu_box;
#[path = "promises/prometheus_server.rs"]
mod prometheus_server;
#[path = "promises/running_daemon.rs"]
mod running_daemon;
#[path = "promises/stream.rs"]
mod stream;
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
#[path = "promises/daemon_config.rs"]
mod daemon_config;
#[path = "promises/daemon_driver.rs"]
mod daemon_driver;
#[path = "promises/daemon_ending.rs"]
mod daemon_ending;
#[path = "promises/daemon_release.rs"]
mod daemon_release;
#[path = "promises/daemon_rights.rs"]
mod daemon_rights;
#[path = "promises/daemon_sampler.rs"]
mod daemon_sampler;
#[path = "promises/daemon_systemd.rs"]
mod daemon_systemd;
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
#[path = "promises/prometheus_lint.rs"]
mod prometheus_lint;
#[path = "promises/prometheus_rates.rs"]
mod prometheus_rates;
#[path = "promises/prometheus_rules.rs"]
mod prometheus_rules;
#[path = "promises/prometheus_secure.rs"]
mod prometheus_secure;
#[path = "promises/recording.rs"]
mod recording;
#[path = "promises/sick_gpu.rs"]
mod sick_gpu;
#[path = "promises/sizes.rs"]
mod sizes;
#[path = "promises/socket_answers.rs"]
mod socket_answers;
#[path = "promises/socket_crowd.rs"]
mod socket_crowd;
#[path = "promises/socket_pace.rs"]
mod socket_pace;
#[path = "promises/store_disk.rs"]
mod store_disk;
#[path = "promises/store_kill.rs"]
mod store_kill;

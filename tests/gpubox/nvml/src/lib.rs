//! A stand-in `libnvidia-ml.so.1`. Each file holds one group of NVML's functions; the frame
//! around every call (counting, latency, faults, handles) is `call.rs`.
//!
//! It keeps to the real library's manners: struct versions are checked, lists follow the
//! count-and-buffer protocol, only what the caller has room for is written, and a reading that a
//! product lacks answers `NOT_SUPPORTED`. It neither prints nor starts threads.

// The names are NVML's.
#![allow(non_snake_case)]
// The figures of a made-up box are far from the ends of their types.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]
#![allow(clippy::disallowed_methods, reason = "a stand-in waits as a slow driver does")]

#[macro_use]
mod call;

mod accounting;
mod clocks;
mod codes;
mod ecc;
mod events;
mod fabric;
mod fans;
mod fields;
mod gpm;
mod identity;
mod memory;
mod mig;
mod modes;
mod nvlink;
mod pcie;
mod power;
mod processes;
mod session;
mod system;
mod temperature;
mod topology;
mod unsupported;
mod utilization;

//! A stand-in `libcuda.so.1`, as far as cudarc and hand-written driver-API clients go: devices,
//! contexts, memory that really copies, streams, events, modules. What a process allocates stands
//! in its file of the state directory, so that the NVML stand-in lists it.
//!
//! Everything runs at once on the host: a stream is always idle, an event has always happened.
//! Programs built on the CUDA runtime ask for hundreds of entry points and are out of reach.

// The names are CUDA's.
#![allow(non_snake_case)]
// The figures of a made-up box are far from the ends of their types.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]

#[macro_use]
mod call;

mod contexts;
mod devices;
mod evidence;
mod memory;
mod modules;
mod results;
mod state;
mod streams;

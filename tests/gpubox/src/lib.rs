//! The stand-in GPU box: what a scenario file says, evaluated over time, and what the two
//! stand-in libraries (`gpubox-nvml`, `gpubox-cuda`) share. Tests use it to find the built
//! libraries, to count the calls made into them and to take symbols out of them.
//!
//! The seam between product and driver is the C interface, so nothing of the product knows this
//! crate. See `README.md` beside it for the scenario format.

// The figures of a made-up box are far from the ends of their types; saturating casts are what
// turns "unavailable" into the widest integer.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]
#![allow(clippy::disallowed_methods, reason = "a stand-in waits as a slow driver does")]

mod call;
mod child;
mod holders;
mod libraries;
mod machine;
mod mapped;
mod readings;
mod series;
mod site;
pub mod spec;

pub use call::{Symbol, Verdict};
pub use child::{fresh_state, on_box, written};
pub use holders::{Holder, Holders, start_time};
pub use libraries::{cuda_library, nvml_library, nvml_library_for, scenario, without_symbols};
pub use machine::{BusId, Gpu, Machine, PidLines, Process, models};
pub use mapped::Mapped;
pub use readings::{Now, ProcessRow};
pub use series::Series;
pub use site::{Site, call_counts, site, state_dir};

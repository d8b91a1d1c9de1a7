//! The commands, one file each.

pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod once;
pub(crate) mod sampler;
pub(crate) mod top;

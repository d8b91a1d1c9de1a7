//! The commands, one file each.

pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod export;
pub(crate) mod once;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod sampler;
pub(crate) mod top;

//! Where snapshots come from. For now an own sampler child.

pub(crate) mod child;

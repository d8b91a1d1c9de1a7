//! `infertop daemon`: supervises the sampler, keeps history, judges, serves.
//!
//! It never calls the driver. One task on one thread waits for snapshots, clients and signals; the
//! store has a thread of its own, and whatever may block (looking into the past, searching `/proc`)
//! runs beside. Nothing that a client, a disk or a sick GPU does delays the next snapshot.

pub(crate) mod hub;
pub(crate) mod server;
pub(crate) mod supervisor;

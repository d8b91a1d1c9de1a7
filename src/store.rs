//! What the daemon remembers.

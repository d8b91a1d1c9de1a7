//! Where the daemon keeps its files: socket, state, configuration; as root, as a user, and under
//! systemd.

//! HTTP on the unix socket.

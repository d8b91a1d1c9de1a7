//! The newest moment as metrics for Prometheus.

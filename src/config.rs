//! The configuration: defaults, files, environment, flags, in this order.

//! libcuda

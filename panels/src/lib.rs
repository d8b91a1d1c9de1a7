//! panels

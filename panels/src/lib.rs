//! Draws a [`view::View`]: reads nothing, knows no clock. Same view, same cells.

pub mod view;

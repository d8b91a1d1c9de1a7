//! Draws a [`view::View`]: reads nothing, knows no clock. Same view, same cells.
//!
//! Keys and mouse go into a [`ui::Ui`], an [`ui::Action`] comes out, and the program does it. One
//! file a panel below `panels/`; the list [`panels::PANELS`] is where tabs, digits, help and the
//! golden screens come from.

#![forbid(unsafe_code)]

mod canvas;
mod dialog;
mod facts;
mod frame;
mod input;
mod kernel_line;
pub mod keys;
mod list;
pub mod panels;
mod table;
mod text;
pub mod theme;
pub mod ui;
mod value;
pub mod view;
mod words;

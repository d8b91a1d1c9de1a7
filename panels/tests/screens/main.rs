//! Whole screens as golden pictures, scripted keys, and sizes without end.

mod boxes;
mod goldens;
mod history;
mod keys;
mod pasts;
mod picture;
mod sizes;
mod travel;

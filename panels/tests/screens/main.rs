//! Whole screens as golden pictures, scripted keys, and sizes without end.

mod boxes;
mod goldens;
mod keys;
mod picture;
mod sizes;
mod travel;

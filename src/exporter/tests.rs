//! What is said, what is left out, and that names and page keep to the rules.

mod names;
mod page;
mod said;

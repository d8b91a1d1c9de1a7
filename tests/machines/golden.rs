//! Goldens: one folder a machine, one file a picture.

use std::path::{Path, PathBuf};

use super::recorded::Machine;

/// Where all goldens are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Holds a text against its golden.
pub fn check(machine: &Machine, name: &str, text: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(folder().join(&machine.name));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(&machine.about.title);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

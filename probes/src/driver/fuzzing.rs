//! The parsers of the driver's files on any bytes.

use super::{files, nodes};

/// Version, parameters, modules on the box and on disk, groups.
pub(crate) fn driver_files(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some((version, _)) = files::parse_module_version(&text) {
        assert!(files::is_version(&version));
    }
    for (_, value) in files::parse_params(&text) {
        let _ = files::firmware_mode(value);
    }
    let _ = files::parse_modules(&text);
    let _ = files::find_module(&text);
    let _ = nodes::parse_groups(&text);
}

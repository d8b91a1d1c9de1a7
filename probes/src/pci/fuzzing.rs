//! The parsers of bus files on any bytes, and what must hold.

use super::{address, information, sysfs};

/// Addresses, error counters, link speed and width, a GPU's `information`.
pub(crate) fn pci_files(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = information::parse_information(&text);
    let _ = sysfs::parse_aer(&text);
    let _ = sysfs::parse_link_speed(&text);
    let _ = sysfs::parse_link_width(&text);
    for word in text.split_whitespace() {
        let normal = address::normalize_pci(word);
        assert_eq!(address::normalize_pci(&normal), normal, "an address has one form");
        assert!(address::same_pci_device(word, &normal));
        if let Some(slot) = address::parse_pci_word(word) {
            assert_eq!(address::pci_slot(&slot), slot);
        }
    }
}

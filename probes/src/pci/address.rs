//! Bus addresses: NVML writes an eight-digit domain in capitals, sysfs four digits in small
//! letters, the kernel log leaves the function out. One form for all: `0000:83:00.0`.

/// The address as the kernel writes it. A function is kept where there is one. What is no address
/// comes back in small letters, otherwise as it was.
pub fn normalize_pci(address: &str) -> String {
    let text = address.trim();
    let text = text.strip_prefix("PCI:").unwrap_or(text);
    parse(text).map_or_else(
        || text.to_ascii_lowercase(),
        |(slot, function)| match function {
            Some(function) => format!("{slot}.{function:x}"),
            None => slot,
        },
    )
}

/// The normalised address without the function, `0000:83:00`: what the kernel log names.
pub fn pci_slot(address: &str) -> String {
    let address = normalize_pci(address);
    match address.rsplit_once('.') {
        Some((slot, _)) => slot.to_string(),
        None => address,
    }
}

/// Whether two addresses name the same device, whatever their form and function.
pub fn same_pci_device(a: &str, b: &str) -> bool {
    pci_slot(a) == pci_slot(b)
}

/// The device that a word of a log names, `0000:83:00`; only with a domain, because `11:43:09` is a
/// time of day.
pub(crate) fn parse_pci_word(word: &str) -> Option<String> {
    let word = word.trim_matches(|c: char| !c.is_ascii_hexdigit());
    let has_domain =
        word.find(':').is_some_and(|colon| colon >= 4) && word.matches(':').count() == 2;
    has_domain.then(|| parse(word))?.map(|(slot, _)| slot)
}

fn parse(text: &str) -> Option<(String, Option<u8>)> {
    let (slot, function) = match text.rsplit_once('.') {
        Some((slot, function)) => (slot, Some(u8::from_str_radix(function, 16).ok()?)),
        None => (text, None),
    };
    let parts: Vec<&str> = slot.split(':').collect();
    let (domain, bus, device) = match parts[..] {
        [domain, bus, device] => (u32::from_str_radix(domain, 16).ok()?, bus, device),
        [bus, device] => (0, bus, device),
        _ => return None,
    };
    let (bus, device) = (u8::from_str_radix(bus, 16).ok()?, u8::from_str_radix(device, 16).ok()?);
    Some((format!("{domain:04x}:{bus:02x}:{device:02x}"), function))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_an_address_becomes_the_kernels() {
        for (given, wanted) in [
            ("00000000:83:00.0", "0000:83:00.0"),
            ("00000000:9B:00.0", "0000:9b:00.0"),
            ("PCI:0000:9b:00", "0000:9b:00"),
            ("83:00.1", "0000:83:00.1"),
            ("10000:e1:00.0", "10000:e1:00.0"),
            ("0008:01:00", "0008:01:00"),
            ("N/A", "n/a"),
            ("", ""),
        ] {
            assert_eq!(normalize_pci(given), wanted);
        }
    }

    #[test]
    fn a_log_line_and_a_driver_answer_name_the_same_device() {
        assert!(same_pci_device("PCI:0000:9b:00", "00000000:9B:00.0"));
        assert!(!same_pci_device("0000:9b:00.0", "0001:9b:00.0"));
    }

    #[test]
    fn a_word_of_a_log_is_an_address_only_with_a_domain() {
        assert_eq!(parse_pci_word("PCI:0000:9B:00:").as_deref(), None);
        assert_eq!(parse_pci_word("0000:9B:00.0:").as_deref(), Some("0000:9b:00"));
        assert_eq!(parse_pci_word("(0000:9b:00)").as_deref(), Some("0000:9b:00"));
        assert_eq!(parse_pci_word("11:43:09"), None);
        assert_eq!(parse_pci_word("::::"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_in_stride(text in ".{0,40}") {
            normalize_pci(&text);
            pci_slot(&text);
            parse_pci_word(&text);
        }
    }
}

//! PCI addresses and devices.

/// A bus address as the kernel writes it: `00000000:83:00.0` becomes `0000:83:00.0`.
pub fn normalize_pci(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    match lower.split_once(':') {
        Some((domain, rest)) if domain.len() > 4 => {
            format!("{}:{rest}", &domain[domain.len() - 4..])
        }
        _ => lower,
    }
}

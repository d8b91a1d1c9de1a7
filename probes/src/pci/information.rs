//! What the module says about one GPU in its `information` file: `Name: value` lines.
//!
//! The UUID line is missing, or holds question marks, until somebody has opened the GPU.

use crate::reading::{Absence, Reading};

/// One GPU's `information` file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Information {
    /// `GPU-…`; absent until the module has cached it.
    pub uuid: Reading<String>,
    /// Product name without the leading `NVIDIA `.
    pub model: Reading<String>,
    /// N of `/dev/nvidiaN`.
    pub minor: Reading<u32>,
    /// Firmware on the GPU's system processor; unsupported where it runs none.
    pub firmware: Reading<String>,
}

/// Takes the file's text.
pub fn parse_information(text: &str) -> Information {
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_string())
        })
    };
    let known = |value: Option<String>| match value {
        Some(value) if !value.is_empty() && !value.contains('?') && value != "Unknown" => {
            Reading::Value(value)
        }
        _ => Reading::Absent(Absence::NoData),
    };
    Information {
        uuid: known(field("GPU UUID")),
        model: known(field("Model"))
            .map(|name| name.strip_prefix("NVIDIA ").unwrap_or(&name).to_string()),
        minor: field("Device Minor")
            .and_then(|minor| minor.parse().ok())
            .map_or(Reading::Absent(Absence::NoData), Reading::Value),
        firmware: match field("GPU Firmware") {
            Some(version) if version == "N/A" => Reading::UNSUPPORTED,
            other => known(other),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) const H100: &str = "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 218\nGPU UUID: \t GPU-6d6e\nVideo BIOS: \t 96.00.a5.00.01\nBus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\nBus Location: \t 0000:83:00.0\nDevice Minor: \t 3\nGPU Firmware: \t 590.48.01\nGPU Excluded:\t No\n";

    #[test]
    fn a_gpu_that_is_open_tells_everything() {
        let information = parse_information(H100);
        assert_eq!(information.uuid.text(), "GPU-6d6e");
        assert_eq!(information.model.text(), "H100 80GB HBM3");
        assert_eq!(information.minor.get(), Some(3));
        assert_eq!(information.firmware.text(), "590.48.01");
    }

    #[test]
    fn a_gpu_that_nobody_has_opened_has_no_uuid_yet() {
        let information = parse_information(
            "Model: \t\t Unknown\nGPU UUID: \t GPU-????????-????-????-????-????????????\nDevice Minor: \t 0\nGPU Firmware: \t N/A\n",
        );
        assert_eq!(information.uuid.absence(), Some(&Absence::NoData));
        assert_eq!(information.model.absence(), Some(&Absence::NoData));
        assert_eq!(information.firmware, Reading::UNSUPPORTED);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_in_stride(text in "(.|\n){0,200}") {
            parse_information(&text);
        }
    }
}

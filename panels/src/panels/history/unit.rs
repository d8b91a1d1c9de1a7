//! In which unit a metric is drawn, and what people call it. Both follow from its name, whose parts
//! are held to one grammar by the tables.

/// A unit of the screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    /// As written; empty for plain numbers.
    pub(super) name: &'static str,
    /// From the metric's base unit to this one.
    factor: f64,
    /// Of three digits that matter, those too many for this unit.
    coarse: usize,
    /// A share of a whole, drawn from 0.
    pub(super) is_share: bool,
}

/// Endings of names, with what is shown instead.
const UNITS: &[(&str, Unit)] = &[
    ("_ratio", Unit { name: "%", factor: 100.0, coarse: 1, is_share: true }),
    ("_bytes_per_second", Unit { name: "GB/s", factor: 1e-9, coarse: 0, is_share: false }),
    ("_bytes", Unit { name: "GiB", factor: 1.0 / (1 << 30) as f64, coarse: 0, is_share: false }),
    ("_watts", Unit { name: "W", factor: 1.0, coarse: 1, is_share: false }),
    ("_celsius", Unit { name: "°C", factor: 1.0, coarse: 1, is_share: false }),
    ("_hertz", Unit { name: "MHz", factor: 1e-6, coarse: 1, is_share: false }),
    ("_joules", Unit { name: "kWh", factor: 1.0 / 3.6e6, coarse: 0, is_share: false }),
    ("_seconds", Unit { name: "s", factor: 1.0, coarse: 1, is_share: false }),
];

const PLAIN: Unit = Unit { name: "", factor: 1.0, coarse: 0, is_share: false };

fn ending(metric: &str) -> Option<&'static (&'static str, Unit)> {
    let name = metric.strip_suffix("_total").unwrap_or(metric);
    UNITS.iter().find(|(ending, _)| name.ends_with(ending))
}

impl Unit {
    /// The unit in which a metric is drawn.
    pub(super) fn of(metric: &str) -> Self {
        ending(metric).map_or(PLAIN, |(_, unit)| *unit)
    }

    /// A value of the metric in this unit; what is no number is no value.
    pub(super) fn convert(self, value: f32) -> Option<f64> {
        let value = f64::from(value) * self.factor;
        value.is_finite().then_some(value)
    }

    /// Decimals that keep about three digits of the largest value.
    pub(super) fn decimals(self, largest: f64) -> usize {
        let digits: usize = match largest.abs() {
            100.0.. => 0,
            10.0.. => 1,
            1.0.. => 2,
            _ => 3,
        };
        digits.saturating_sub(self.coarse)
    }
}

/// A number with so many decimals; one that is too long for a column in a larger unit.
pub(super) fn write(value: f64, decimals: usize) -> String {
    let (scaled, ending) = match value.abs() {
        1e15.. => return format!("{value:.0e}"),
        1e12.. => (value / 1e12, "T"),
        1e9.. => (value / 1e9, "G"),
        1e6.. => (value / 1e6, "M"),
        _ => {
            let text = format!("{value:.decimals$}");
            // A small loss is not drawn as "-0".
            let is_zero = text.trim_start_matches('-').chars().all(|c| matches!(c, '0' | '.'));
            return if is_zero { text.trim_start_matches('-').into() } else { text };
        }
    };
    format!("{scaled:.1}{ending}")
}

/// Words of names that are written differently.
const WORDS: &[(&str, &str)] = &[
    ("cpu", "CPU"),
    ("cpus", "CPUs"),
    ("crc", "CRC"),
    ("dram", "DRAM"),
    ("bar1", "BAR1"),
    ("ecc", "ECC"),
    ("fp16", "FP16"),
    ("fp32", "FP32"),
    ("fp64", "FP64"),
    ("gpu", "GPU"),
    ("jpeg", "JPEG"),
    ("l2", "L2"),
    ("numa", "NUMA"),
    ("nvlink", "NVLink"),
    ("nvswitch", "NVSwitch"),
    ("pcie", "PCIe"),
    ("rx", "received"),
    ("shm", "/dev/shm"),
    ("sm", "SM"),
    ("tx", "sent"),
    ("xid", "Xid"),
];

/// What people call a metric: `GPU power draw`, `host CPU busy`.
pub(super) fn title(metric: &str) -> String {
    let name = metric.strip_prefix("infertop_").unwrap_or(metric);
    let name = name.strip_suffix("_total").unwrap_or(name);
    let name = ending(name).map_or(name, |(ending, _)| name.strip_suffix(ending).unwrap_or(name));
    let words = name.split('_').map(|part| {
        let other = WORDS.iter().find(|(known, _)| *known == part);
        other.map_or(part, |(_, word)| *word)
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_called_and_measured_as_people_do() {
        for (metric, called, unit) in [
            ("infertop_gpu_busy_ratio", "GPU busy", "%"),
            ("infertop_gpu_memory_used_bytes", "GPU memory used", "GiB"),
            ("infertop_gpu_pcie_tx_bytes_per_second", "GPU PCIe sent", "GB/s"),
            ("infertop_gpu_energy_joules_total", "GPU energy", "kWh"),
            ("infertop_gpu_power_cap_seconds_total", "GPU power cap", "s"),
            ("infertop_gpu_ecc_corrected_total", "GPU ECC corrected", ""),
            ("infertop_host_cpu_busy_ratio", "host CPU busy", "%"),
        ] {
            assert_eq!((title(metric).as_str(), Unit::of(metric).name), (called, unit));
        }
    }

    #[test]
    fn numbers_keep_their_column() {
        assert_eq!(write(-0.001, 1), "0.0");
        assert_eq!(write(73.14, 1), "73.1");
        assert_eq!(write(-3.0, 0), "-3");
        assert_eq!(write(1_234_567.0, 0), "1.2M");
        assert_eq!(write(3e38, 0), "3e38");
        assert_eq!(Unit::of("x_bytes").decimals(73.1), 1);
        assert_eq!(Unit::of("x_ratio").decimals(98.0), 0);
        assert_eq!(Unit::of("x_ratio").convert(f32::NAN), None);
    }
}

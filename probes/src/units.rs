//! How numbers are written, for panels, reports and rules alike: fixed width, three digits that
//! matter, one unit a column.

/// Bytes in a MiB and a GiB.
pub const MIB: u64 = 1 << 20;
/// Bytes in a GiB.
pub const GIB: u64 = 1 << 30;

/// Bytes as GiB with one decimal: `73.1`.
pub fn gib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / GIB as f64)
}

/// Bytes in the unit that keeps three digits: `512 B`, `4.0 KiB`, `73.1 GiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Bytes a second as decimal GB/s, the unit of link data sheets: `18.4`.
pub fn gigabytes_per_second(bytes_per_second: f64) -> String {
    format!("{:.1}", bytes_per_second / 1e9)
}

/// A ratio as whole per cent: `98%`.
pub fn percent(ratio: f64) -> String {
    format!("{:.0}%", ratio * 100.0)
}

/// A stretch of time as its two largest units: `7 s`, `3 m 12 s`, `6 h 4 m`, `12 d 3 h`.
pub fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} m {} s", seconds / 60, seconds % 60),
        3600..86400 => format!("{} h {} m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86400, seconds / 3600 % 24),
    }
}

/// A stretch of time as its largest unit alone, for narrow columns: `7s`, `3m`, `6h`, `12d`.
pub fn duration_short(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86400),
    }
}

/// A count with thousands set apart: `1,940`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_operators_write_them() {
        assert_eq!(gib(79 * GIB + 66 * MIB), "79.1");
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(4096), "4.0 KiB");
        assert_eq!(percent(0.984), "98%");
        assert_eq!(duration(192), "3 m 12 s");
        assert_eq!(duration_short(86400 * 12), "12d");
        assert_eq!(count(1940), "1,940");
        assert_eq!(count(12), "12");
        assert_eq!(count(1_000_000), "1,000,000");
    }
}

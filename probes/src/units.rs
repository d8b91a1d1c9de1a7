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

/// Bytes as GiB with two decimals, for sums that must be seen to close: `12.63`.
pub fn gib_fine(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / GIB as f64)
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

/// A moment as local time of day: `02:51:14`.
pub fn clock(at_ms: u64, utc_offset_seconds: i32) -> String {
    let seconds = local_seconds(at_ms, utc_offset_seconds).rem_euclid(86400);
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A moment seen from `now_ms`: the time of day, with the date before it when it is another day:
/// `02:51:14`, `30 Nov 02:51`.
pub fn moment(at_ms: u64, now_ms: u64, utc_offset_seconds: i32) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let days = local_seconds(at_ms, utc_offset_seconds).div_euclid(86400);
    if days == local_seconds(now_ms, utc_offset_seconds).div_euclid(86400) {
        return clock(at_ms, utc_offset_seconds);
    }
    // Days since 1970 to month and day, in years that begin with March.
    let shifted = days + 719_468;
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let name = usize::try_from((month + 2) % 12).map_or("", |month| MONTHS[month]);
    format!("{day} {name} {}", &clock(at_ms, utc_offset_seconds)[..5])
}

fn local_seconds(at_ms: u64, utc_offset_seconds: i32) -> i64 {
    i64::try_from(at_ms / 1000).unwrap_or(i64::MAX / 2) + i64::from(utc_offset_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_of_another_day_carries_its_date() {
        let now = 1_764_561_600_000; // 2025-12-01 04:00 UTC
        assert_eq!(clock(now, 3600), "05:00:00");
        assert_eq!(moment(now - 3_600_000, now, 0), "03:00:00");
        assert_eq!(moment(now - 5 * 3_600_000, now, 0), "30 Nov 23:00");
        assert_eq!(moment(1_709_164_800_000, now, 0), "29 Feb 00:00");
        assert_eq!(moment(1_709_251_200_000, now, -60), "29 Feb 23:59");
        assert_eq!(moment(1_735_689_600_000, now, 0), "1 Jan 00:00");
    }

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

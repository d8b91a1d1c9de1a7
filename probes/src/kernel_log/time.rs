//! The date at the start of a log line, where it is complete: `2026-12-01T03:56:57.25+01:00`.
//!
//! The older form, `Dec  1 03:56:57`, has neither year nor zone and is no usable time.

/// Milliseconds since 1970.
pub(super) fn parse_time(word: &str) -> Option<u64> {
    let (date, time) = word.split_once('T')?;
    let zone_at = time.find(['Z', '+', '-'])?;
    let (clock, zone) = time.split_at(zone_at);
    let mut date = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut clock = clock.splitn(3, ':').map(str::parse::<i64>);
    let (hour, minute, second) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
    let in_range = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !in_range {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
        - parse_zone(zone)?;
    let millis = if fraction.is_empty() {
        0
    } else {
        let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
        digits.parse::<u64>().ok()?
    };
    u64::try_from(seconds).ok()?.checked_mul(1000)?.checked_add(millis)
}

/// Seconds east of Greenwich.
fn parse_zone(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, zone) = if let Some(zone) = zone.strip_prefix('-') {
        (-1, zone)
    } else {
        (1, zone.strip_prefix('+')?)
    };
    let (hours, minutes) = match zone.split_once(':') {
        Some(parts) => parts,
        None => zone.split_at_checked(2)?,
    };
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60)
        .then_some(sign * (i64::from(hours) * 3600 + i64::from(minutes) * 60))
}

/// Days since 1970-01-01 in the Gregorian calendar, counted in years that begin in March.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_date_is_a_time() {
        assert_eq!(parse_time("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse_time("2024-02-29T12:00:00.5+00:00"), Some(1_709_208_000_500));
        assert_eq!(parse_time("2026-12-01T03:56:57.25+01:00"), Some(1_796_093_817_250));
        assert_eq!(parse_time("2026-12-01T03:56:57-0530"), Some(1_796_117_217_000));
    }

    #[test]
    fn half_a_date_is_none() {
        for word in [
            "Dec",
            "2026-12-01T03:56:57+99999999999999999:57",
            "2026-12-01",
            "2026-12-01T03:56:57",
            "2026-13-01T00:00:00Z",
            "T+",
            "T-é",
        ] {
            assert_eq!(parse_time(word), None, "{word}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_in_stride(text in "[0-9]{0,5}-?[0-9]{0,3}-?[0-9]{0,3}T?.{0,30}") {
            parse_time(&text);
        }
    }
}

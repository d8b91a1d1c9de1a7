//! Times and stretches of time as people and programs write them to the daemon.

use std::time::Duration;

use probes::moment_text::parse_moment;

/// Wall clock, milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// Numbers below this are seconds that somebody forgot to multiply: as milliseconds they lie before
/// April 1973.
const LEAST_MS: u64 = 100_000_000_000;

/// A moment: milliseconds since 1970 (0 is the beginning), RFC 3339, `-2h` (so long ago) or `now`;
/// what has no zone is UTC.
pub(crate) fn parse_time(text: &str, now_ms: u64) -> Result<u64, String> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return match text.parse() {
            Ok(ms) if ms >= LEAST_MS || ms == 0 => Ok(ms),
            Ok(_) => {
                Err(format!("{} counts seconds; milliseconds since 1970 are wanted", quoted(text)))
            }
            Err(_) => Err(format!("{} is further away than time can be counted", quoted(text))),
        };
    }
    // Programs may name a moment that has not been, such as the end of today.
    let stamp = text.parse().or_else(|_| with_plus(text).parse::<jiff::Timestamp>());
    if let Some(ms) = stamp.ok().and_then(|stamp| u64::try_from(stamp.as_millisecond()).ok()) {
        return Ok(ms);
    }
    let moment = parse_moment(text, now_ms, 0);
    moment.map_err(|why| format!("{}: {why}, or milliseconds since 1970", quoted(text)))
}

/// What somebody wrote, to be said back: in quotes, not too long, nothing that moves a cursor.
pub(crate) fn quoted(text: &str) -> String {
    const MOST: usize = 40;
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let begin: String = text.chars().take(MOST).map(plain).collect();
    let more = if text.chars().nth(MOST).is_some() { "…" } else { "" };
    format!("\"{begin}{more}\"")
}

/// In a query a plus sign means a space, and few people think of it.
fn with_plus(text: &str) -> String {
    match text.rsplit_once(' ') {
        Some((before, offset)) => format!("{before}+{offset}"),
        None => text.into(),
    }
}

/// `90s`, `10m`, `1h30m`, `1.5h`, `2d`, `500ms`; a number alone is seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{} is no stretch of time; write 90s, 10m, 2h or 7d", quoted(text));
    let mut rest = text.trim();
    let mut seconds = 0.0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, unit) = rest.split_at(end);
        let end = unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len());
        let (unit, after) = unit.split_at(end);
        let scale = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "" if number.len() == text.trim().len() => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(wrong()),
        };
        let Ok(number) = number.parse::<f64>() else { return Err(wrong()) };
        seconds += number * scale;
        rest = after;
    }
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{}: {error}", quoted(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    #[test]
    fn moments_are_read_as_they_are_written() {
        for (text, ms) in [
            ("1764511200000", 1_764_511_200_000),
            ("2025-11-30T14:00:00Z", 1_764_511_200_000),
            ("2025-11-30T15:00:00+01:00", 1_764_511_200_000),
            ("2025-11-30T15:00:00 01:00", 1_764_511_200_000),
            ("2025-11-30T14:00:00.250Z", 1_764_511_200_250),
            ("now", NOW),
            ("0", 0),
            ("18446744073709551615", u64::MAX),
            ("-2h", NOW - 7_200_000),
            ("-1h30m", NOW - 5_400_000),
            ("2025-11-30", 1_764_460_800_000),
            ("9999-01-01T00:00:00Z", 253_370_764_800_000),
        ] {
            assert_eq!(parse_time(text, NOW), Ok(ms), "{text}");
        }
        for wrong in
            ["", "-", "1764511200", "yesterday", "-99999999999d", "99999999999999999999999", "+1"]
        {
            assert!(parse_time(wrong, NOW).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_was_written_is_said_back_in_one_short_plain_line() {
        assert_eq!(quoted("soon"), "\"soon\"");
        let long = format!("\u{1b}[2J{}", "9".repeat(5000));
        let said = quoted(&long);
        assert!(said.chars().count() < 50 && !said.chars().any(char::is_control), "{said:?}");
        for refused in [parse_time(&long, NOW).map(drop), parse_duration(&long).map(drop)] {
            let why = refused.unwrap_err();
            assert!(why.chars().count() < 200 && !why.chars().any(char::is_control), "{why:?}");
        }
    }

    #[test]
    fn stretches_are_read_as_they_are_written() {
        for (text, ms) in [
            ("90s", 90_000),
            ("10m", 600_000),
            ("10min", 600_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            ("2d", 172_800_000),
            ("500ms", 500),
            ("60", 60_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for wrong in
            ["", "m", "10x", "1h30", "-5s", "1..5s", "ten", "9e9s", "999999999999999999999999d"]
        {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}

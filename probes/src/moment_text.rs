//! A moment as people type it: `03:12`, `03:12:07`, `-2h`, `2026-11-30 14:00`.
//!
//! A time of day is the latest such moment that has been. Local time has one offset from UTC, the
//! same with which moments are shown, so that what is read off the screen can be typed.

use jiff::civil::{DateTime, Time};
use jiff::tz::Offset;
use jiff::{Span, SpanRelativeTo, Timestamp, Unit};

/// What can be typed, for help and errors.
pub const EXAMPLES: &str = "03:12, 03:12:07, -2h, -90s, -3d or 2026-11-30 14:00";

const DAY_MS: i64 = 86_400_000;

/// The moment that a text means, in milliseconds since 1970; `now_ms` is the newest there is. An
/// error says what to write instead, without the text itself.
pub fn parse_moment(text: &str, now_ms: u64, utc_offset_seconds: i32) -> Result<u64, String> {
    let text = text.trim();
    let unreadable = || format!("write {EXAMPLES}");
    let now = i64::try_from(now_ms).unwrap_or(i64::MAX);
    let offset_ms = i64::from(utc_offset_seconds) * 1000;
    let at = if text == "now" {
        now
    } else if let Some(back) = text.strip_prefix(['-', '−']) {
        let span: Span = back.trim().parse().ok().ok_or_else(unreadable)?;
        let days = SpanRelativeTo::days_are_24_hours();
        let ms = span.total((Unit::Millisecond, days)).ok().ok_or_else(unreadable)?;
        #[expect(clippy::cast_possible_truncation, reason = "a float cast saturates")]
        let ms = ms as i64;
        now.saturating_sub(ms)
    } else if let Ok(at) = text.parse::<Timestamp>() {
        at.as_millisecond()
    } else if let Ok(local) = text.parse::<DateTime>() {
        let offset = Offset::from_seconds(utc_offset_seconds).unwrap_or(Offset::UTC);
        offset.to_timestamp(local).ok().ok_or_else(unreadable)?.as_millisecond()
    } else {
        // Last, since it would also take the time out of a whole date.
        let time: Time = text.parse().ok().ok_or_else(unreadable)?;
        let since = time.duration_since(Time::midnight()).as_millis();
        let since = i64::try_from(since).unwrap_or(0);
        let local = now.saturating_add(offset_ms);
        let midnight = (local.div_euclid(DAY_MS) * DAY_MS).saturating_sub(offset_ms);
        let today = midnight.saturating_add(since);
        if today > now { today - DAY_MS } else { today }
    };
    if at > now {
        return Err("it lies after the newest moment".into());
    }
    u64::try_from(at).ok().ok_or_else(|| "it lies before 1970".into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2025-12-01 03:12:07 UTC.
    const NOW: u64 = 1_764_558_727_000;
    const HOUR: u64 = 3_600_000;

    fn at(text: &str) -> u64 {
        parse_moment(text, NOW, 0).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn a_time_of_day_is_the_latest_that_has_been() {
        assert_eq!(at("03:12:07"), NOW);
        assert_eq!(at("03:12"), NOW - 7000);
        assert_eq!(at("03:12:08"), NOW - 86_399_000, "yesterday");
        assert_eq!(at(" 23:00 "), NOW - 7000 - 12 * 60_000 - 4 * HOUR);
    }

    #[test]
    fn local_time_is_the_one_that_the_screen_shows() {
        assert_eq!(parse_moment("04:12:07", NOW, 3600), Ok(NOW));
        assert_eq!(parse_moment("22:12:07", NOW, -5 * 3600), Ok(NOW));
        assert_eq!(parse_moment("04:12:08", NOW, 3600), Ok(NOW - 86_399_000));
        assert_eq!(parse_moment("2025-12-01 04:12:07", NOW, 3600), Ok(NOW));
    }

    #[test]
    fn a_stretch_goes_back_from_the_newest() {
        assert_eq!(at("-2h"), NOW - 2 * HOUR);
        assert_eq!(at("-90s"), NOW - 90_000);
        assert_eq!(at("-15m"), NOW - 900_000);
        assert_eq!(at("-3d"), NOW - 72 * HOUR);
        assert_eq!(at("-1h30m"), NOW - 5_400_000);
        assert_eq!(at("now"), NOW);
    }

    #[test]
    fn a_date_is_read_with_and_without_seconds_and_zone() {
        assert_eq!(at("2025-11-30 14:00"), 1_764_511_200_000);
        assert_eq!(at("2025-11-30 14:00:05"), 1_764_511_205_000);
        assert_eq!(at("2025-11-30T14:00"), 1_764_511_200_000);
        assert_eq!(at("2025-11-30"), 1_764_460_800_000);
        assert_eq!(at("2025-11-30T14:00:00Z"), 1_764_511_200_000);
        assert_eq!(at("2025-11-30T14:00:00+02:00"), 1_764_504_000_000);
    }

    #[test]
    fn what_cannot_be_read_says_what_can() {
        for text in ["", "yesterday", "25:00", "-2x", "-2 months", "3", "2025-13-01", "-", "03:60"]
        {
            let why = parse_moment(text, NOW, 0).expect_err(text);
            assert!(why.contains("03:12:07"), "{text}: {why}");
        }
        let ahead = parse_moment("2026-01-01", NOW, 0);
        assert_eq!(ahead, Err("it lies after the newest moment".into()));
        assert_eq!(parse_moment("-60000d", NOW, 0), Err("it lies before 1970".into()));
    }

    proptest! {
        #[test]
        fn any_text_is_a_moment_that_has_been_or_an_error(
            text in "[-0-9:. TZ+hdms]{0,24}|.{0,12}", now in any::<u64>(), offset in any::<i32>(),
        ) {
            if let Ok(at) = parse_moment(&text, now, offset) {
                prop_assert!(at <= now);
            }
        }
    }
}

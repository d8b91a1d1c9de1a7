//! Lengths of time as people write them: `250ms`, `90s`, `10m`, `2h`, `7d`.

use std::time::Duration;

const UNITS: &[(&str, f64)] =
    &[("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];

/// A length of time; a number alone is seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let scale = match unit {
        "" => Some(1.0),
        unit => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale),
    };
    let seconds = number.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    seconds
        .zip(scale)
        .and_then(|(number, scale)| Duration::try_from_secs_f64(number * scale).ok())
        .ok_or_else(|| format!("{text} is no length of time; write 90s, 10m, 2h or 7d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_people_write_them() {
        for (text, ms) in [("500ms", 500), ("90s", 90_000), ("10m", 600_000), ("2.5", 2500), ("1d", 86_400_000)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for wrong in ["", "m", "-1s", "1e300d", "inf", "nan", "10 parsecs", "1h30m"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}

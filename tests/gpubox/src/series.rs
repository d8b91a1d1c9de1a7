//! A value over time, as a scenario writes it: a number, or a table with one of `step`, `ramp`,
//! `saw`, `sine`. Every shape also has its exact integral, because counters (energy, `NVLink`
//! bytes) must agree with the rates they count and must never run backwards.

use std::f64::consts::TAU;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::Value;

/// A value that may change with the box's clock (seconds since the box came up).
#[derive(Clone, Debug, PartialEq)]
pub enum Series {
    /// Always the same.
    Constant(f64),
    /// `(since second, value)`, in order; before the first step the first value holds.
    Step(Vec<(f64, f64)>),
    /// From one value to another in so many seconds, then constant.
    Ramp {
        /// The value at second 0.
        from: f64,
        /// The value at the end.
        to: f64,
        /// How long it takes.
        seconds: f64,
    },
    /// Rises from `min` to `max` within a period, then falls back at once.
    Saw {
        /// Lowest value.
        min: f64,
        /// Highest value.
        max: f64,
        /// Seconds.
        period: f64,
    },
    /// Swings between `min` and `max`, starting in the middle.
    Sine {
        /// Lowest value.
        min: f64,
        /// Highest value.
        max: f64,
        /// Seconds.
        period: f64,
    },
}

impl Series {
    /// The value at second `t`.
    pub fn at(&self, t: f64) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Step(steps) => {
                let past = steps.iter().take_while(|(since, _)| *since <= t).count();
                steps.get(past.saturating_sub(1)).map_or(0.0, |(_, value)| *value)
            }
            Self::Ramp { from, to, seconds } => from + (to - from) * (t / seconds).clamp(0.0, 1.0),
            Self::Saw { min, max, period } => min + (max - min) * (t / period).rem_euclid(1.0),
            Self::Sine { min, max, period } => {
                f64::midpoint(*min, *max) + (max - min) / 2.0 * (TAU * t / period).sin()
            }
        }
    }

    /// The integral from second 0 to `t`: value times seconds.
    pub fn integral(&self, t: f64) -> f64 {
        let t = t.max(0.0);
        match self {
            Self::Constant(value) => value * t,
            Self::Step(_) => self.integral_where(t, |value| value),
            Self::Ramp { from, to, seconds } => {
                let rising = t.min(*seconds);
                let slope = (to - from) / seconds.max(f64::MIN_POSITIVE);
                from * rising + slope * rising * rising / 2.0 + to * (t - rising)
            }
            Self::Saw { min, max, period } => {
                let (whole, part) = ((t / period).floor(), (t / period).rem_euclid(1.0));
                period * (whole * f64::midpoint(*min, *max) + min * part)
                    + period * (max - min) * part * part / 2.0
            }
            Self::Sine { min, max, period } => {
                let swing = (max - min) / 2.0 * period / TAU * (1.0 - (TAU * t / period).cos());
                f64::midpoint(*min, *max) * t + swing
            }
        }
    }

    /// The integral of `pick(value)`; exact for constants and steps, 0 for moving shapes.
    pub fn integral_where(&self, t: f64, pick: impl Fn(f64) -> f64) -> f64 {
        match self {
            Self::Constant(value) => pick(*value) * t.max(0.0),
            Self::Step(steps) => {
                let mut sum = 0.0;
                for (position, (since, value)) in steps.iter().enumerate() {
                    let from = if position == 0 { 0.0 } else { since.max(0.0) };
                    let to = steps.get(position + 1).map_or(t, |(next, _)| next.min(t));
                    sum += pick(*value) * (to - from).max(0.0);
                }
                sum
            }
            _ => 0.0,
        }
    }
}

impl From<f64> for Series {
    fn from(value: f64) -> Self {
        Self::Constant(value)
    }
}

/// Reads a number as people write it: `12`, `1.5`, `"60GiB"`, `"unavailable"`, `"nan"`.
/// `unavailable` and `max` become infinity, which casts to the widest integer, as NVML has it.
fn parse_number(value: &Value) -> Result<f64, String> {
    match value {
        Value::Integer(whole) => Ok(*whole as f64),
        Value::Float(float) => Ok(*float),
        Value::Boolean(yes) => Ok(f64::from(u8::from(*yes))),
        Value::String(text) => parse_text(text),
        other => Err(format!("wanted a number, found {other:?}")),
    }
}

fn parse_text(text: &str) -> Result<f64, String> {
    match text {
        "unavailable" | "max" => return Ok(f64::INFINITY),
        "nan" => return Ok(f64::NAN),
        _ => {}
    }
    let units =
        [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)].map(|(u, s)| (u, f64::from(s).exp2()));
    let decimal = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    for (unit, factor) in units.into_iter().chain(decimal) {
        if let Some(figure) = text.strip_suffix(unit) {
            return figure
                .trim()
                .parse::<f64>()
                .map(|figure| (figure * factor).round())
                .map_err(|why| format!("{text:?}: {why}"));
        }
    }
    text.parse().map_err(|why| format!("{text:?} is no number and no size ({why})"))
}

fn parse_series(value: &Value) -> Result<Series, String> {
    let Value::Table(table) = value else {
        return parse_number(value).map(Series::Constant);
    };
    let mut shapes = table.iter();
    let (Some((shape, body)), None) = (shapes.next(), shapes.next()) else {
        return Err("a value over time has exactly one of step, ramp, saw, sine".into());
    };
    if shape == "step" {
        let rows = body.as_array().ok_or("step wants [[second, value], …]")?;
        let mut steps = Vec::new();
        for row in rows {
            match row.as_array().map(Vec::as_slice) {
                Some([since, value]) => steps.push((parse_number(since)?, parse_number(value)?)),
                _ => return Err(format!("step wants [second, value], found {row:?}")),
            }
        }
        if steps.is_empty() || !steps.is_sorted_by(|a, b| a.0 <= b.0) {
            return Err("steps must be given, in the order of their seconds".into());
        }
        return Ok(Series::Step(steps));
    }
    let get = |key: &str| match body.get(key) {
        Some(value) => parse_number(value),
        None => Err(format!("{shape} wants a key {key}")),
    };
    match shape.as_str() {
        "ramp" => Ok(Series::Ramp { from: get("from")?, to: get("to")?, seconds: get("seconds")? }),
        "saw" => Ok(Series::Saw { min: get("min")?, max: get("max")?, period: get("period")? }),
        "sine" => Ok(Series::Sine { min: get("min")?, max: get("max")?, period: get("period")? }),
        other => Err(format!("no shape is called {other}; there are step, ramp, saw, sine")),
    }
}

impl<'de> Deserialize<'de> for Series {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        parse_series(&value).map_err(D::Error::custom)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "figures are read, not computed")]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Row {
        v: Series,
    }

    fn read(text: &str) -> Series {
        toml::from_str::<Row>(text).expect("a series").v
    }

    #[test]
    fn numbers_sizes_and_shapes_are_read() {
        assert_eq!(read("v = 5").at(9.0), 5.0);
        assert_eq!(read("v = '2GiB'").at(0.0), 2_147_483_648.0);
        assert_eq!(read("v = 'unavailable'").at(0.0) as u64, u64::MAX);
        let step = read("v = { step = [[0, 1], [10, '5KiB']] }");
        assert_eq!((step.at(9.9), step.at(10.0)), (1.0, 5120.0));
        let ramp = read("v = { ramp = { from = 0, to = 10, seconds = 5 } }");
        assert_eq!((ramp.at(2.5), ramp.at(60.0)), (5.0, 10.0));
        assert_eq!(read("v = { saw = { min = 0, max = 4, period = 4 } }").at(5.0), 1.0);
        assert!(
            (read("v = { sine = { min = 0, max = 4, period = 4 } }").at(1.0) - 4.0).abs() < 1e-9
        );
    }

    #[test]
    fn integrals_agree_with_small_sums() {
        for text in [
            "v = 3",
            "v = { step = [[0, 1], [2, 7], [5, 0]] }",
            "v = { ramp = { from = 2, to = 9, seconds = 4 } }",
            "v = { saw = { min = 1, max = 3, period = 2.5 } }",
            "v = { sine = { min = 0, max = 100, period = 7 } }",
        ] {
            let series = read(text);
            let small = 1e-4;
            let sum: f64 = (0..80_000).map(|k| series.at(f64::from(k) * small) * small).sum();
            assert!((sum - series.integral(8.0)).abs() < 0.1, "{text}: {sum}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for text in ["v = 'much'", "v = { wave = {} }", "v = { step = [[5, 1], [1, 1]] }"] {
            assert!(toml::from_str::<Row>(text).is_err(), "{text}");
        }
    }
}

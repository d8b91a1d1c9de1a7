//! A family of samples: help and type once, then a line for each sample.

use std::borrow::Cow;
use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// Beyond this a float does not hold every whole number.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// A number with its labels; a label without a value is left out.
pub(super) struct Sample<'a> {
    pub(super) labels: Vec<(&'static str, Cow<'a, str>)>,
    pub(super) value: f64,
}

/// Writes a family; nothing at all where it has no samples.
pub(super) fn write(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, kind): (&str, &str, MetricType),
    samples: &mut [Sample<'_>],
) -> fmt::Result {
    if samples.is_empty() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(stem(name), help, None, kind)?;
    for Sample { labels, value } in samples {
        labels.retain(|(_, value)| !value.is_empty());
        let labels = labels.as_slice();
        let mut sample = family.encode_family(&labels)?;
        match kind {
            MetricType::Counter => match whole(*value) {
                Some(value) => sample.encode_counter::<NoLabelSet, _, u64>(&value, None)?,
                None => sample.encode_counter::<NoLabelSet, _, u64>(value, None)?,
            },
            MetricType::Info => sample.encode_info(&[("", ""); 0])?,
            _ => match whole(*value) {
                Some(value) => sample.encode_gauge(&value)?,
                None => sample.encode_gauge(value)?,
            },
        }
    }
    Ok(())
}

/// A name without the ending that the encoder writes by itself. The unit stays a part of the name and
/// is not told again in a line of its own: it says nothing new and takes a twentieth of the answer.
fn stem(name: &str) -> &str {
    name.strip_suffix("_total").or_else(|| name.strip_suffix("_info")).unwrap_or(name)
}

/// A number without a fraction, which takes fewer characters.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
fn whole(value: f64) -> Option<u64> {
    ((0.0..WHOLE).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_written_as_such() {
        assert_eq!(whole(85_899_345_920.0), Some(85_899_345_920));
        for other in [0.5, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(whole(other), None, "{other}");
        }
    }
}

//! Values over time, in the unit of the chart: a curve for each subject.
//!
//! A counter is drawn as what it has grown since the left edge: its height since some start says
//! nothing, and where it rises is seen. One that starts again goes on from where it was.

use probes::metric::Kind;
use probes::past::{MetricPast, Series};

use super::unit::Unit;

/// Names a curve for good: the subject and the value of the metric's label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CurveKey {
    pub(super) subject: String,
    pub(super) label: String,
}

/// A step's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) min: f64,
    pub(super) mean: f64,
    pub(super) max: f64,
}

/// One subject's values.
pub(super) struct Curve {
    pub(super) key: CurveKey,
    pub(super) name: String,
    /// One a step; a step without a value is a gap.
    pub(super) points: Vec<Option<Point>>,
    /// The last height of a counter.
    pub(super) total: Option<f64>,
}

/// What a curve comes to in a stretch.
pub(super) struct Summary {
    pub(super) last: f64,
    /// The middle of the last step with a value.
    pub(super) last_ms: u64,
    pub(super) min: f64,
    pub(super) mean: f64,
    pub(super) max: f64,
}

/// Curves that are drawn together; of more, those of one subject are.
const MOST: usize = 64;

/// All curves of a metric.
pub(super) struct Curves {
    pub(super) from_ms: u64,
    pub(super) step_ms: u64,
    pub(super) all: Vec<Curve>,
    pub(super) is_counter: bool,
    /// Curves of other subjects, of which there are too many.
    pub(super) left_out: usize,
}

impl Curves {
    /// Adds an empty curve for each of these subjects that did not come back, in their order, so
    /// that none is missing unseen.
    pub(super) fn add_missing(&mut self, subjects: &[(String, String)]) {
        for (subject, name) in subjects {
            if self.all.iter().all(|curve| curve.key.subject != *subject) {
                let key = CurveKey { subject: subject.clone(), label: String::new() };
                self.all.push(Curve { key, name: name.clone(), points: Vec::new(), total: None });
            }
        }
        self.all.sort_by_key(|curve| {
            let place = subjects.iter().position(|(subject, _)| *subject == curve.key.subject);
            place.unwrap_or(usize::MAX)
        });
    }

    /// The curves of what came back; `label` is what the metric's label is called, `focus` the
    /// subject that is looked at.
    pub(super) fn new(
        past: &MetricPast,
        unit: Unit,
        (kind, label): (Kind, Option<&str>),
        focus: Option<&str>,
    ) -> Self {
        let is_counter = kind == Kind::Counter;
        let has = |subject: &&str| past.series.iter().any(|series| series.subject == *subject);
        let first = past.series.first().map(|series| series.subject.as_str());
        let alone = focus.filter(has).or(first).filter(|_| past.series.len() > MOST);
        let shown =
            past.series.iter().filter(|series| alone.is_none_or(|one| series.subject == one));
        let all = shown.map(|series| {
            let raw = points(series, unit);
            let name = match (series.label.as_str(), label) {
                ("", _) | (_, None) => series.name.clone(),
                (value, Some(label)) => format!("{} {label} {value}", series.name),
            };
            let total = raw.iter().rev().flatten().next().map(|point| point.max);
            Curve {
                key: CurveKey { subject: series.subject.clone(), label: series.label.clone() },
                name,
                points: if is_counter { grown(&raw) } else { raw },
                total: total.filter(|_| is_counter),
            }
        });
        let all: Vec<Curve> = all.take(MOST).collect();
        let left_out = past.series.len() - all.len();
        let step_ms = past.step_ms.max(1);
        Self { from_ms: past.from_ms, step_ms, all, is_counter, left_out }
    }

    /// The middle of a step.
    pub(super) fn middle_ms(&self, at: usize) -> u64 {
        let steps = self.step_ms.saturating_mul(u64::try_from(at).unwrap_or(u64::MAX));
        self.from_ms.saturating_add(steps).saturating_add(self.step_ms / 2)
    }

    /// The steps whose middles lie within these moments.
    fn steps(&self, (from_ms, to_ms): (u64, u64)) -> std::ops::Range<usize> {
        let half = self.step_ms / 2;
        let place = |ms: u64| {
            let steps = ms.saturating_sub(self.from_ms.saturating_add(half)).div_ceil(self.step_ms);
            usize::try_from(steps).unwrap_or(usize::MAX)
        };
        let end = if to_ms < self.from_ms.saturating_add(half) {
            0
        } else {
            place(to_ms.saturating_add(1))
        };
        place(from_ms)..end
    }

    /// A curve's points within these moments, each with the middle of its step.
    pub(super) fn within<'a>(
        &'a self,
        curve: &'a Curve,
        window: (u64, u64),
    ) -> impl Iterator<Item = (u64, Point)> + 'a {
        let steps = self.steps(window);
        let points = curve.points.iter().enumerate().take(steps.end).skip(steps.start);
        points.filter_map(|(at, point)| point.map(|point| (self.middle_ms(at), point)))
    }

    /// The value of the step in which a moment lies.
    pub(super) fn at(&self, curve: &Curve, ms: u64) -> Option<f64> {
        let step = ms.checked_sub(self.from_ms)? / self.step_ms;
        let step = usize::try_from(step).ok()?;
        curve.points.get(step).copied().flatten().map(|point| point.mean)
    }

    /// What a curve comes to within these moments; `None` without a value.
    pub(super) fn summary(&self, curve: &Curve, window: (u64, u64)) -> Option<Summary> {
        let mut sum: Option<Summary> = None;
        let mut count = 0.0;
        for (ms, point) in self.within(curve, window) {
            count += 1.0;
            let before = sum.get_or_insert(Summary {
                last: point.mean,
                last_ms: ms,
                min: point.min,
                mean: 0.0,
                max: point.max,
            });
            before.last = point.mean;
            before.last_ms = ms;
            before.min = before.min.min(point.min);
            before.max = before.max.max(point.max);
            // As a running mean, so that the widest figures do not overflow.
            before.mean += (point.mean - before.mean) / count;
        }
        sum
    }
}

fn points(series: &Series, unit: Unit) -> Vec<Option<Point>> {
    let value = |values: &[Option<f32>], at: usize| {
        values.get(at).copied().flatten().and_then(|value| unit.convert(value))
    };
    (0..series.mean.len())
        .map(|at| {
            let mean = value(&series.mean, at)?;
            let min = value(&series.min, at).unwrap_or(mean).min(mean);
            let max = value(&series.max, at).unwrap_or(mean).max(mean);
            Some(Point { min, mean, max })
        })
        .collect()
}

/// What a counter has grown since its first value.
fn grown(raw: &[Option<Point>]) -> Vec<Option<Point>> {
    let mut sum = 0.0;
    let mut before: Option<f64> = None;
    raw.iter()
        .map(|point| {
            let point = point.as_ref()?;
            let from = sum;
            sum += match before {
                // It started again, from 0.
                Some(before) if point.max < before => point.max.max(0.0),
                Some(before) => point.max - before,
                None => point.max - point.min,
            };
            before = Some(point.max);
            Some(Point { min: from, mean: sum, max: sum })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(values: &[Option<f32>]) -> MetricPast {
        let series = Series {
            subject: "a".into(),
            name: "GPU 0".into(),
            label: "4".into(),
            min: values.iter().map(|value| value.map(|value| value - 1.0)).collect(),
            mean: values.to_vec(),
            max: values.iter().map(|value| value.map(|value| value + 1.0)).collect(),
        };
        MetricPast { metric: "m".into(), from_ms: 1000, step_ms: 10, series: vec![series] }
    }

    #[test]
    fn gaps_stay_gaps_and_count_for_nothing() {
        let past = past(&[Some(1.0), None, Some(3.0)]);
        let curves = Curves::new(&past, Unit::of("m"), (Kind::Gauge, Some("link")), None);
        let curve = &curves.all[0];
        assert_eq!(curve.name, "GPU 0 link 4");
        let all = (0, u64::MAX);
        let times: Vec<u64> = curves.within(curve, all).map(|(ms, _)| ms).collect();
        assert_eq!(times, [1005, 1025]);
        let sum = curves.summary(curve, all).expect("two values");
        assert_eq!((sum.last, sum.min, sum.mean, sum.max), (3.0, 0.0, 2.0, 4.0));
        assert_eq!(curves.at(curve, 1029), Some(3.0));
        assert_eq!(curves.at(curve, 1015), None);
        assert_eq!(curves.at(curve, 999), None);
        let times: Vec<u64> = curves.within(curve, (1006, 1025)).map(|(ms, _)| ms).collect();
        assert_eq!(times, [1025]);
        assert_eq!(curves.within(curve, (0, 1004)).count(), 0);
    }

    #[test]
    fn of_too_many_curves_those_of_the_subject_looked_at_are_drawn() {
        let one = past(&[Some(1.0)]).series.remove(0);
        let series = (0..200).map(|link| Series {
            subject: (link / 18).to_string(),
            label: (link % 18).to_string(),
            ..one.clone()
        });
        let past = MetricPast { series: series.collect(), step_ms: 1, ..MetricPast::default() };
        let count = |focus| {
            let curves = Curves::new(&past, Unit::of("m"), (Kind::Gauge, None), focus);
            (curves.all[0].key.subject.clone(), curves.all.len(), curves.left_out)
        };
        assert_eq!(count(Some("3")), ("3".into(), 18, 182));
        assert_eq!(count(Some("gone")), ("0".into(), 18, 182));
    }

    #[test]
    fn a_counter_is_what_it_has_grown_across_a_restart_too() {
        let mut past = past(&[Some(100.0), Some(104.0), None, Some(2.0), Some(2.0)]);
        past.series[0].min = past.series[0].mean.clone();
        past.series[0].max = past.series[0].mean.clone();
        let curves = Curves::new(&past, Unit::of("m_total"), (Kind::Counter, None), None);
        let means: Vec<_> = curves.all[0].points.iter().map(|p| p.map(|p| p.mean)).collect();
        assert_eq!(means, [Some(0.0), Some(4.0), None, Some(6.0), Some(6.0)]);
        assert_eq!(curves.all[0].total, Some(2.0));
    }
}

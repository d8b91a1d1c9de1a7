//! The values of one place over a chunk, as a column of numbers, and how little of it must be told.
//!
//! Numbers count modulo 2^64. A column that never changes is its first value, and that is told as its
//! distance from the first value at the place that this one resembles. Of another column the rest is
//! told, in whichever of these ways leaves the smallest numbers:
//!
//! | mode | what is told |
//! |---|---|
//! | steps | each step from value to value |
//! | bends | each step less the one before: counters that grow evenly, clocks |
//! | levels | each value above the smallest: noise around a mean |
//! | beside | each step less that of an earlier column: stamps of one tick |
//! | against | each step plus that of an earlier column: used and free |
//! | remainder | doubles alone: each value less what an earlier column leaves of 1 |
//! | latest | 0: no step; 1: the value of an earlier column at the same time; else the step |
//!
//! The numbers are divided by what divides all of them: memory comes in pages.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::decimal::{Form, List};
use super::varint::{unzigzag, zigzag};

/// What the numbers of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    Number,
    Double,
    Text,
}

/// How a column is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Constant,
    Steps,
    Bends,
    Levels,
    Beside,
    Against,
    Remainder,
    Latest,
}

impl Mode {
    pub(super) fn from_byte(byte: u8) -> Self {
        [
            Self::Constant,
            Self::Steps,
            Self::Bends,
            Self::Levels,
            Self::Beside,
            Self::Against,
            Self::Remainder,
            Self::Latest,
        ][usize::from(byte & 7)]
    }

    /// Whether it needs an earlier column.
    pub(super) fn refers(self) -> bool {
        matches!(self, Self::Beside | Self::Against | Self::Remainder | Self::Latest)
    }
}

/// The values of a place while a chunk is packed.
pub(super) struct Column {
    pub(super) class: Class,
    /// The key that its place stands under.
    pub(super) key: u32,
    /// The column of the place that its own resembles.
    pub(super) like: u32,
    first: u64,
    /// How many values are equal to the first, from the first on.
    same: usize,
    rest: Vec<u64>,
}

impl Column {
    pub(super) fn new(class: Class, key: u32, like: u32, first: u64) -> Self {
        Self { class, key, like, first, same: 1, rest: Vec::new() }
    }

    pub(super) fn push(&mut self, value: u64) {
        if self.rest.is_empty() && value == self.first {
            self.same += 1;
            return;
        }
        if self.rest.is_empty() {
            // Once and for all: thousands of vectors that grow leave holes behind.
            self.rest.reserve_exact(super::MOST_FRAMES.saturating_sub(self.same).max(1));
        }
        self.rest.push(value);
    }

    pub(super) fn last(&self) -> u64 {
        self.rest.last().copied().unwrap_or(self.first)
    }

    pub(super) fn changes(&self) -> bool {
        !self.rest.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.same + self.rest.len()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        std::iter::repeat_n(self.first, self.same).chain(self.rest.iter().copied())
    }

    /// The form of its doubles.
    pub(super) fn form(&self) -> Form {
        match self.class {
            Class::Number | Class::Text => Form::Decimal(0),
            Class::Double => Form::of(std::iter::once(self.first).chain(self.rest.iter().copied())),
        }
    }

    fn numbers(&self, form: Form, list: &List) -> Vec<u64> {
        let number = |value| match self.class {
            Class::Double => form.number(value, list),
            Class::Number | Class::Text => value,
        };
        self.values().take(if self.changes() { self.len() } else { 1 }).map(number).collect()
    }
}

/// A column as it is told.
pub(super) struct Told {
    pub(super) mode: Mode,
    pub(super) form: Form,
    /// Less the first value of the column that this one resembles.
    pub(super) first: u64,
    /// The column that it refers to, as so many changing columns back.
    pub(super) back: usize,
    /// Levels: the first value above the smallest.
    pub(super) floor: u64,
    /// What the numbers were divided by.
    pub(super) unit: u64,
    /// One number for each value but the first.
    pub(super) rest: Vec<u64>,
}

/// A changing column, for later ones to refer to.
struct Known {
    form: Form,
    values: Vec<u64>,
}

/// Tells columns one after the other.
#[derive(Default)]
pub(super) struct Teller {
    changing: Vec<Known>,
    /// The last changing column under a key.
    by_key: HashMap<(u32, Class, Form), usize>,
    /// Changing columns by a hash of their steps.
    by_steps: HashMap<u64, usize>,
    /// Position among the changing ones, form and first value, by column.
    columns: Vec<(usize, Form, u64)>,
}

/// No column.
const NOWHERE: usize = usize::MAX;
/// Among so many first columns the time of the snapshot is found.
const CLOCKS: usize = 4;

impl Teller {
    pub(super) fn tell(&mut self, column: &Column, form: Form, list: &List) -> Told {
        let values = column.numbers(form, list);
        let model = self.columns.get(column.like as usize).filter(|model| model.1 == form);
        let mut told = Told {
            mode: Mode::Constant,
            form,
            first: values[0].wrapping_sub(model.map_or(0, |model| model.2)),
            back: 0,
            floor: 0,
            unit: 1,
            rest: Vec::new(),
        };
        if !column.changes() {
            self.columns.push((NOWHERE, form, values[0]));
            return told;
        }
        let steps: Vec<u64> = values.windows(2).map(|two| two[1].wrapping_sub(two[0])).collect();
        self.choose(&mut told, column, &values, &steps);
        let position = self.changing.len();
        self.columns.push((position, form, values[0]));
        self.by_key.insert((column.key, column.class, form), position);
        self.by_steps.entry(hash(&steps)).or_insert(position);
        self.changing.push(Known { form, values });
        told
    }

    fn choose(&self, told: &mut Told, column: &Column, values: &[u64], steps: &[u64]) {
        let mut best = Best { told, least: u64::MAX };
        let negated: Vec<u64> = steps.iter().map(|step| step.wrapping_neg()).collect();
        let like = self.columns.get(column.like as usize).map(|model| model.0);
        let form = best.told.form;
        let last = self.changing.len().checked_sub(1);
        let mut tried = [NOWHERE; 5];
        for (slot, at) in [
            self.by_steps.get(&hash(steps)).copied(),
            self.by_steps.get(&hash(&negated)).copied(),
            self.by_key.get(&(column.key, column.class, form)).copied(),
            like,
            last,
        ]
        .into_iter()
        .enumerate()
        {
            let Some(at) = at.filter(|at| !tried.contains(at)) else { continue };
            let other = self.changing.get(at).filter(|other| other.values.len() == values.len());
            let Some(other) = other else { continue };
            tried[slot] = at;
            let back = self.changing.len() - at;
            let others = || other.values.windows(2).map(|two| two[1].wrapping_sub(two[0]));
            let pairs = || steps.iter().zip(others());
            best.consider(Mode::Beside, back, 0, pairs().map(|(a, b)| a.wrapping_sub(b)).collect());
            best.consider(
                Mode::Against,
                back,
                0,
                pairs().map(|(a, b)| a.wrapping_add(b)).collect(),
            );
            // What a NaN turns into differs from machine to machine.
            let is_whole = || other.values.iter().all(|bits| f64::from_bits(*bits).is_finite());
            if form == Form::Bits && other.form == Form::Bits && is_whole() {
                let left = values.iter().zip(&other.values).skip(1);
                let left = left.map(|(value, other)| value.wrapping_sub(remainder(*other)));
                best.consider(Mode::Remainder, back, 0, left.collect());
            }
        }
        best.consider(Mode::Steps, 0, 0, steps.to_vec());
        best.consider(Mode::Bends, 0, 0, bends(steps));
        let lowest = values.iter().map(|value| value.cast_signed()).min().unwrap_or(0);
        let levels = values.iter().map(|value| value.wrapping_sub(lowest.cast_unsigned()));
        let levels: Vec<u64> = levels.collect();
        best.consider(Mode::Levels, 0, levels[0], levels[1..].to_vec());
        self.consider_latest(&mut best, values, steps);
    }

    fn consider_latest(&self, best: &mut Best<'_>, values: &[u64], steps: &[u64]) {
        let Some(at) = steps.iter().position(|step| *step != 0) else { return };
        let clocks = self.changing.iter().take(CLOCKS).enumerate();
        let mut clocks = clocks.filter(|(_, clock)| clock.values.len() == values.len());
        let Some((clock, known)) = clocks.find(|(_, clock)| clock.values[at + 1] == values[at + 1])
        else {
            return;
        };
        let told = steps.iter().zip(&values[1..]).zip(&known.values[1..]);
        let numbers = told.map(|((step, value), clock)| match step {
            0 => 0,
            _ if value == clock => 1,
            // Two numbers are taken.
            step => zigzag(*step).saturating_add(2),
        });
        best.consider(Mode::Latest, self.changing.len() - clock, 0, numbers.collect());
    }
}

struct Best<'a> {
    told: &'a mut Told,
    least: u64,
}

impl Best<'_> {
    fn consider(&mut self, mode: Mode, back: usize, floor: u64, mut numbers: Vec<u64>) {
        // Values that span more than half of all numbers have no level.
        if mode == Mode::Levels && numbers.iter().any(|number| number.cast_signed() < 0) {
            return;
        }
        let mut unit = 1;
        if mode != Mode::Latest && self.told.form != Form::Bits {
            let all = numbers.iter().chain(std::iter::once(&floor));
            unit = all.fold(0, |unit, number| divisor(unit, number.cast_signed().unsigned_abs()));
            unit = unit.max(1);
        }
        for number in &mut numbers {
            let signed = number.cast_signed();
            let part = signed.unsigned_abs() / unit;
            *number = match mode {
                Mode::Levels => *number / unit,
                Mode::Latest => *number,
                _ if signed < 0 => zigzag(part.wrapping_neg()),
                _ => zigzag(part),
            };
        }
        let cost = numbers.iter().map(|number| cost(*number)).sum();
        if cost < self.least {
            let told = &mut *self.told;
            (told.mode, told.back, told.floor, told.unit) = (mode, back, floor / unit, unit);
            (told.rest, self.least) = (numbers, cost);
        }
    }
}

/// About how many bits a number takes, in sixteenths.
fn cost(number: u64) -> u64 {
    let number = number.saturating_add(1);
    let bits = u64::from(number.ilog2());
    let fraction = if bits > 4 { number >> (bits - 4) } else { number << (4 - bits) };
    16 * bits + (fraction & 15)
}

/// The values of a column that was told, for the numbers of `told.rest`. `first` is the value itself.
pub(super) fn untell(told: &Told, first: u64, other: Option<&[u64]>) -> Vec<u64> {
    let mut values = Vec::with_capacity(told.rest.len() + 1);
    values.push(first);
    let (mut value, mut step) = (first, 0_u64);
    let floor = told.floor.wrapping_mul(told.unit);
    for (at, number) in told.rest.iter().enumerate() {
        let part = unzigzag(*number).wrapping_mul(told.unit);
        let theirs = |at: usize| other.and_then(|other| other.get(at)).copied().unwrap_or(0);
        let their_step = || theirs(at + 1).wrapping_sub(theirs(at));
        value = match told.mode {
            Mode::Constant => value,
            Mode::Steps => value.wrapping_add(part),
            Mode::Bends => {
                step = step.wrapping_add(part);
                value.wrapping_add(step)
            }
            Mode::Levels => first.wrapping_sub(floor).wrapping_add(number.wrapping_mul(told.unit)),
            Mode::Beside => value.wrapping_add(part).wrapping_add(their_step()),
            Mode::Against => value.wrapping_add(part).wrapping_sub(their_step()),
            Mode::Remainder => remainder(theirs(at + 1)).wrapping_add(part),
            Mode::Latest => match *number {
                0 => value,
                1 => theirs(at + 1),
                step => value.wrapping_add(unzigzag(step - 2)),
            },
        };
        values.push(value);
    }
    values
}

/// What a double leaves of 1, as bits.
fn remainder(bits: u64) -> u64 {
    (1.0 - f64::from_bits(bits)).to_bits()
}

fn bends(steps: &[u64]) -> Vec<u64> {
    let mut before = 0;
    let bends = steps.iter().map(|step| {
        let bend = step.wrapping_sub(before);
        before = *step;
        bend
    });
    bends.collect()
}

/// The greatest number that divides both.
fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn hash(steps: &[u64]) -> u64 {
    let mut hasher = DefaultHasher::new();
    steps.hash(&mut hasher);
    hasher.finish()
}

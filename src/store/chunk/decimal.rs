//! Doubles as numbers that step evenly: as the decimal number that somebody once rounded to, as their
//! place among the values that come more than once, or as their bits.

use std::collections::HashMap;

/// How the numbers of a column stand for doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// A decimal number, without its point, of so many places behind it. Numbers that are no doubles
    /// are of 0 places.
    Decimal(u8),
    /// The place in the sorted list of values that come more than once.
    Listed,
    /// The bits.
    Bits,
}

const TENS: [f64; 10] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// Beyond 2^53 every double is a whole number, and none was rounded to a decimal one.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Form {
    pub(super) fn to_byte(self) -> u8 {
        match self {
            Self::Decimal(places) => places,
            Self::Listed => 14,
            Self::Bits => 15,
        }
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0..=9 => Some(Self::Decimal(byte)),
            14 => Some(Self::Listed),
            15 => Some(Self::Bits),
            _ => None,
        }
    }

    /// The form with the fewest places in which all these doubles are decimal numbers, or bits.
    pub(super) fn of(doubles: impl Iterator<Item = u64> + Clone) -> Self {
        let mut places = 0;
        for bits in doubles.clone() {
            while as_decimal(bits, places).is_none() {
                places += 1;
                if usize::from(places) == TENS.len() {
                    return Self::Bits;
                }
            }
        }
        // A large number may not take the places that a later one needs.
        let fits = doubles.into_iter().all(|bits| as_decimal(bits, places).is_some());
        if fits { Self::Decimal(places) } else { Self::Bits }
    }

    /// The number that stands for a double.
    pub(super) fn number(self, bits: u64, list: &List) -> u64 {
        match self {
            Self::Decimal(places) => as_decimal(bits, places).unwrap_or(bits),
            Self::Listed => list.place(bits),
            Self::Bits => bits,
        }
    }

    /// The double that a number stands for; any number stands for one.
    pub(super) fn double(self, number: u64, list: &[u64]) -> u64 {
        match self {
            Self::Decimal(places) => from_decimal(number, places),
            Self::Listed => {
                usize::try_from(number).ok().and_then(|at| list.get(at)).copied().unwrap_or(0)
            }
            Self::Bits => number,
        }
    }
}

fn as_decimal(bits: u64, places: u8) -> Option<u64> {
    let scaled = (f64::from_bits(bits) * TENS.get(usize::from(places))?).round();
    if scaled.abs() >= EXACT {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "what does not fit does not come back")]
    let number = (scaled as i64).cast_unsigned();
    (from_decimal(number, places) == bits).then_some(number)
}

fn from_decimal(number: u64, places: u8) -> u64 {
    let ten = TENS.get(usize::from(places)).copied().unwrap_or(1.0);
    (number.cast_signed() as f64 / ten).to_bits()
}

/// Doubles that come more than once in a chunk, a share of clock ticks for instance.
#[derive(Default)]
pub(super) struct List {
    places: HashMap<u64, u64>,
    sorted: Vec<u64>,
}

impl List {
    /// Of columns of doubles: of those in which most values come more than once anywhere, all values.
    /// Also which columns those are.
    pub(super) fn of<'a, C>(columns: impl Iterator<Item = C> + Clone) -> (Self, Vec<bool>)
    where
        C: Iterator<Item = u64> + Clone + 'a,
    {
        let mut count: HashMap<u64, u32> = HashMap::new();
        for bits in columns.clone().flatten() {
            *count.entry(bits).or_default() += 1;
        }
        let is_listed = |column: C| {
            let (mut repeated, mut all) = (0, 0);
            for bits in column {
                all += 1;
                repeated += usize::from(count.get(&bits).is_some_and(|count| *count > 3));
            }
            repeated * 2 > all
        };
        let listed: Vec<bool> = columns.clone().map(is_listed).collect();
        let chosen = columns.zip(&listed).filter(|(_, listed)| **listed);
        let mut sorted: Vec<u64> = chosen.flat_map(|(column, _)| column).collect();
        sorted.sort_unstable_by(|a, b| f64::from_bits(*a).total_cmp(&f64::from_bits(*b)));
        sorted.dedup();
        let places = sorted.iter().zip(0..).map(|(bits, place)| (*bits, place)).collect();
        (Self { places, sorted }, listed)
    }

    fn place(&self, bits: u64) -> u64 {
        self.places.get(&bits).copied().unwrap_or(0)
    }

    pub(super) fn sorted(&self) -> &[u64] {
        &self.sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_double_comes_back_in_the_form_that_was_found_for_it() {
        let awkward =
            [0.0, -0.0, 0.1, 629.861, 1e300, f64::NAN, f64::INFINITY, 1.0 / 3.0, 9e15, 1e19];
        for value in awkward {
            let bits = f64::to_bits(value);
            let form = Form::of(std::iter::once(bits));
            let (list, _) = List::of(std::iter::empty::<std::iter::Empty<u64>>());
            assert_eq!(form.double(form.number(bits, &list), &[]), bits, "{value} {form:?}");
            assert_eq!(Form::from_byte(form.to_byte()), Some(form));
        }
        assert_eq!(Form::of([0.5_f64, 629.861].map(f64::to_bits).into_iter()), Form::Decimal(3));
        assert_eq!(Form::of([0.1_f64 + 0.2].map(f64::to_bits).into_iter()), Form::Bits);
    }
}

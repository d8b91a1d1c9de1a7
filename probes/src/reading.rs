//! A reading: one value, or the reason why there is none.
//!
//! Unknown is never zero. Whatever cannot be read stays in the snapshot as an [`Absence`], so that
//! a panel can show a dash and say why, and an exporter can leave the sample out.
//! On the wire a value stands for itself; an absence is a map with the key `absent`. That keeps
//! frames small and self-describing, at the price that a reading's value may not itself be a map.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

/// Why a reading has no value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "absent", rename_all = "snake_case")]
pub enum Absence {
    /// Nobody has asked yet; the next ticks will.
    #[default]
    NotRead,
    /// This hardware or this mode does not have it; asking again is useless.
    Unsupported,
    /// The driver's library is older than the call.
    TooOld,
    /// The caller lacks a right.
    Denied {
        /// What to grant, in words that can be acted on.
        need: String,
    },
    /// A call or a file read has not returned in time.
    NoAnswer,
    /// The GPU is gone from the bus.
    Lost,
    /// No driver answers.
    NoDriver,
    /// The source works and measured nothing in this interval.
    NoData,
    /// The source gave a figure that cannot be; it was dropped and counted.
    OutOfRange,
    /// The subject ended while it was read.
    Gone,
    /// Nothing of that name was ever seen here.
    NotHere {
        /// Where it may be instead.
        what: String,
    },
    /// The source answered in a way that could not be understood, or with a code of its own.
    Failed {
        /// What was answered.
        what: String,
    },
}

impl Absence {
    /// The absence of a file that could not be read.
    pub fn from_io(error: &std::io::Error) -> Self {
        use std::io::ErrorKind as Kind;
        match error.kind() {
            Kind::PermissionDenied => {
                Self::Denied { need: "the owner's uid or CAP_SYS_PTRACE".into() }
            }
            Kind::NotFound => Self::Unsupported,
            // ESRCH: the process ended between open and read.
            _ if error.raw_os_error() == Some(3) => Self::Gone,
            _ => Self::Failed { what: error.to_string() },
        }
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRead => f.write_str("not read yet"),
            Self::Unsupported => f.write_str("not supported here"),
            Self::TooOld => f.write_str("needs a newer driver library"),
            Self::Denied { need } => write!(f, "no permission, needs {need}"),
            Self::NoAnswer => f.write_str("no answer in time"),
            Self::Lost => f.write_str("the GPU is lost"),
            Self::NoDriver => f.write_str("no driver answers"),
            Self::NoData => f.write_str("nothing measured"),
            Self::OutOfRange => f.write_str("out of range, dropped"),
            Self::Gone => f.write_str("ended while it was read"),
            Self::NotHere { what } | Self::Failed { what } => f.write_str(what),
        }
    }
}

/// One value, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading<T> {
    /// The value, in the unit that the field's name carries.
    Value(T),
    /// Why there is none.
    Absent(Absence),
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self::Absent(Absence::NotRead)
    }
}

impl<T> From<T> for Reading<T> {
    fn from(value: T) -> Self {
        Self::Value(value)
    }
}

impl<T> Reading<T> {
    /// Unsupported, the most common absence.
    pub const UNSUPPORTED: Self = Self::Absent(Absence::Unsupported);

    /// The value, if there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent(_) => None,
        }
    }

    /// The reason, if there is no value.
    pub fn absence(&self) -> Option<&Absence> {
        match self {
            Self::Value(_) => None,
            Self::Absent(absence) => Some(absence),
        }
    }

    /// The same reading in another unit or type.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Value(value) => Reading::Value(f(value)),
            Self::Absent(absence) => Reading::Absent(absence),
        }
    }

    /// The value, or the absence, of a further step.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Reading<U>) -> Reading<U> {
        match self {
            Self::Value(value) => f(value),
            Self::Absent(absence) => Reading::Absent(absence),
        }
    }

    /// This reading, or the other where this one has no value.
    #[must_use]
    pub fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Value(_) => self,
            Self::Absent(_) => other(),
        }
    }

    /// A borrowed view.
    pub fn as_ref(&self) -> Reading<&T> {
        match self {
            Self::Value(value) => Reading::Value(value),
            Self::Absent(absence) => Reading::Absent(absence.clone()),
        }
    }

    /// Whether asking again is useless, so that the call can be saved.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Absent(Absence::Unsupported | Absence::TooOld))
    }
}

impl<T: Copy> Reading<T> {
    /// The value by copy, if there is one.
    pub fn get(&self) -> Option<T> {
        self.value().copied()
    }
}

impl Reading<String> {
    /// The text, or an empty string where there is none: for places that show a dash by themselves.
    pub fn text(&self) -> &str {
        self.value().map_or("", String::as_str)
    }
}

impl<T> From<Result<T, Absence>> for Reading<T> {
    fn from(result: Result<T, Absence>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            Err(absence) => Self::Absent(absence),
        }
    }
}

impl<T> From<std::io::Result<T>> for Reading<T> {
    fn from(result: std::io::Result<T>) -> Self {
        result.map_err(|error| Absence::from_io(&error)).into()
    }
}

/// What can stand in a metric: all our numbers, and truth as 1 or 0.
pub trait Number: Copy {
    /// The number as a float; counts beyond 2^53 lose their last digits.
    fn number(self) -> f64;
}

macro_rules! number {
    ($($t:ty => $f:expr),*) => {$(
        impl Number for $t {
            fn number(self) -> f64 {
                let convert: fn($t) -> f64 = $f;
                convert(self)
            }
        }
    )*};
}
number!(f64 => |v| v, u64 => |v| v as f64, i64 => |v| v as f64, u32 => f64::from, i32 => f64::from, bool => |v| if v { 1.0 } else { 0.0 });

impl<T: Number> Reading<T> {
    /// The reading as a number for the metric table.
    pub fn number(&self) -> Reading<f64> {
        self.as_ref().map(|value| value.number())
    }
}

impl<T: Serialize> Serialize for Reading<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Absent(absence) => absence.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Reading<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadingVisitor(std::marker::PhantomData))
    }
}

struct ReadingVisitor<T>(std::marker::PhantomData<T>);

macro_rules! visit_scalar {
    ($($name:ident: $t:ty),*) => {$(
        fn $name<E: serde::de::Error>(self, value: $t) -> Result<Self::Value, E> {
            T::deserialize(value.into_deserializer()).map(Reading::Value)
        }
    )*};
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ReadingVisitor<T> {
    type Value = Reading<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, or a map with the key `absent`")
    }

    visit_scalar!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str, visit_string: String);

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        T::deserialize(SeqAccessDeserializer::new(seq)).map(Reading::Value)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Absence::deserialize(MapAccessDeserializer::new(map)).map(Reading::Absent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_survives_both_encodings() {
        let readings: Vec<Reading<u64>> = vec![
            7.into(),
            u64::MAX.into(),
            Reading::UNSUPPORTED,
            Reading::Absent(Absence::Denied { need: "root".into() }),
            Reading::Absent(Absence::NotHere { what: "elsewhere".into() }),
            Reading::default(),
        ];
        let json = serde_json::to_string(&readings).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Reading<u64>>>(&json).unwrap(), readings);
        let packed = rmp_serde::to_vec_named(&readings).unwrap();
        assert_eq!(rmp_serde::from_slice::<Vec<Reading<u64>>>(&packed).unwrap(), readings);
    }

    #[test]
    fn text_lists_and_floats_are_values_too() {
        let text: Reading<String> = "GPU-1".to_string().into();
        let list: Reading<Vec<u32>> = vec![1, 2].into();
        let ratio: Reading<f64> = 1.0.into();
        let bytes = rmp_serde::to_vec_named(&(&text, &list, &ratio)).unwrap();
        let back: (Reading<String>, Reading<Vec<u32>>, Reading<f64>) =
            rmp_serde::from_slice(&bytes).unwrap();
        assert_eq!(back, (text, list, ratio));
        // JSON writes 1.0 and may read back an integer.
        assert_eq!(serde_json::from_str::<Reading<f64>>("1").unwrap(), Reading::Value(1.0));
    }

    #[test]
    fn an_absence_is_never_a_number() {
        assert!(serde_json::from_str::<Reading<u64>>("null").is_err());
        assert_eq!(Reading::<u64>::UNSUPPORTED.number().value(), None);
    }
}

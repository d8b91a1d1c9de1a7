//! Mutates snapshots by their values: random bytes seldom are a snapshot, let alone one with an odd
//! figure in a field that a panel shows.

use rmpv::Value;

/// Texts that are hard to draw: wide, combining, controlling, turning around, long, empty.
const TEXTS: &[&str] = &[
    "",
    "x",
    "推理服务器",
    "e\u{301}\u{200d}👩\u{200d}🔬",
    "\u{1b}[2J\u{7}",
    "line\nend\ttab",
    "\u{202e}esrever",
    "answering",
    "no_answer",
    "lost",
    "not_read",
    "unsupported",
    "0000:83:00.0",
    "GPU-6d6e",
    "99999999999999999999999999999999999999999999999999999999999999999999999999999999999999",
];

/// Figures at the edges.
const NUMBERS: &[u64] = &[0, 1, 2, 99, 100, 1 << 20, 1 << 32, u64::MAX / 2, u64::MAX - 1, u64::MAX];
const RATIOS: &[f64] = &[0.0, 1.0, -0.5, 1e-300, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];

/// Splits an input into its snapshot's value and the bytes behind it.
pub fn split(bytes: &[u8]) -> Option<(Value, &[u8])> {
    let mut rest = bytes;
    let value = rmpv::decode::read_value_with_max_depth(&mut rest, 64).ok()?;
    Some((value, rest))
}

/// Changes some values of the snapshot at the start of an input; where there is none, or now and
/// then, leaves the input to the fuzzer's own ways.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut dice = Dice(u64::from(seed) | 1 << 40);
    let parts = split(&data[..size]).map(|(value, rest)| (value, rest.to_vec()));
    let Some((mut value, rest)) = parts.filter(|_| dice.below(8) > 1) else {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    };
    for _ in 0..=dice.below(4) {
        change(&mut value, &mut dice);
    }
    let mut out = Vec::new();
    if rmpv::encode::write_value(&mut out, &value).is_err() {
        return size;
    }
    out.extend(rest);
    if out.len() > max_size {
        return size;
    }
    data[..out.len()].copy_from_slice(&out);
    out.len()
}

/// Goes down to a value by chance and changes it there.
fn change(value: &mut Value, dice: &mut Dice) {
    match value {
        Value::Map(entries) if !entries.is_empty() => {
            let at = dice.below(entries.len());
            if dice.below(24) == 0 {
                entries.remove(at);
            } else {
                change(&mut entries[at].1, dice);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let at = dice.below(items.len());
            match dice.below(10) {
                0 => {
                    items.remove(at);
                }
                1 => items.push(items[at].clone()),
                2 => items.rotate_left(at),
                _ => change(&mut items[at], dice),
            }
        }
        leaf => *leaf = another(leaf, dice),
    }
}

fn another(leaf: &Value, dice: &mut Dice) -> Value {
    match (leaf, dice.below(8)) {
        (_, 0) => Value::Map(vec![("absent".into(), "unsupported".into())]),
        (Value::Integer(_), 1) => dice.next().into(),
        (Value::Integer(_), 2 | 3) => (dice.next() % 256).into(),
        (Value::Integer(_), _) => NUMBERS[dice.below(NUMBERS.len())].into(),
        (Value::F64(_) | Value::F32(_), 1..=3) => f64::from_bits(dice.next()).into(),
        (Value::F64(_) | Value::F32(_), _) => RATIOS[dice.below(RATIOS.len())].into(),
        (Value::String(_), _) => TEXTS[dice.below(TEXTS.len())].into(),
        (Value::Boolean(on), _) => (!on).into(),
        (_, 1 | 2) => NUMBERS[dice.below(NUMBERS.len())].into(),
        (_, 3 | 4) => RATIOS[dice.below(RATIOS.len())].into(),
        (_, 5) => true.into(),
        _ => TEXTS[dice.below(TEXTS.len())].into(),
    }
}

/// Numbers that follow from the fuzzer's seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

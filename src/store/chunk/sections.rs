//! The parts of a packed chunk, each compressed for itself, because what is alike compresses alike.
//!
//! The numbers of a column lie byte by byte: all the highest bytes of its numbers together, then the
//! next. The highest bytes of columns that need the same number of bits for them lie in one part;
//! bytes below are noise, and lie in another.

use anyhow::Context as _;

use super::columns::{Mode, Told};
use super::decimal::Form;
use super::tree::SHORT;
use super::varint::{put, take, unzigzag, zigzag};

/// What a part holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// How many snapshots and texts.
    Head,
    /// Texts after their lengths: keys and values.
    Texts,
    /// Doubles that come more than once.
    List,
    /// How the layout changes.
    Changes,
    /// A byte a column: mode, form, and whether it has as many values as there are snapshots.
    Modes,
    /// The first value of each column.
    Firsts,
    /// What else must be known of a column that changes.
    Columns,
    /// Highest bytes of numbers; here those that need one bit, then two, up to eight.
    High,
    /// Bytes below them.
    Low = 15,
    /// The same of doubles told as bits.
    Digits,
}

const PARTS: usize = Part::Digits as usize + 1;
const LEVEL: i32 = 6;
/// All parts of the largest box's minute are smaller.
const MOST_BYTES: usize = 64 << 20;
/// In the byte of a column: it has a length of its own.
const OWN_LENGTH: u8 = 0x80;

/// The parts while they are filled.
#[derive(Default)]
pub(super) struct Sections {
    parts: [Vec<u8>; PARTS],
}

impl Sections {
    pub(super) fn part(&mut self, part: Part) -> &mut Vec<u8> {
        &mut self.parts[part as usize]
    }

    /// Adds a column.
    #[expect(clippy::cast_possible_truncation, reason = "takes numbers apart, byte by byte")]
    pub(super) fn tell(&mut self, told: &Told, own_length: bool) {
        let flag = if own_length { OWN_LENGTH } else { 0 };
        self.part(Part::Modes).push(flag | told.form.to_byte() << 3 | told.mode as u8);
        put(self.part(Part::Firsts), zigzag(told.first));
        if told.mode == Mode::Constant {
            return;
        }
        let columns = self.part(Part::Columns);
        if own_length {
            put(columns, told.rest.len() as u64);
        }
        if told.mode.refers() {
            put(columns, told.back as u64);
        }
        if told.mode == Mode::Levels {
            put(columns, told.floor);
        }
        put(columns, told.unit);
        let bits = 64 - told.rest.iter().fold(0, |all, number| all | number).leading_zeros();
        columns.push(bits as u8);
        for byte in (0..bits.div_ceil(8)).rev() {
            let part = place_of(byte, bits, told.form);
            self.parts[part].extend(told.rest.iter().map(|number| (number >> (8 * byte)) as u8));
        }
    }

    /// What [`Parts::uncompressed`] opens.
    #[cfg(test)]
    pub(super) fn uncompressed(self) -> Vec<u8> {
        let mut chunk = Vec::new();
        for part in self.parts {
            put(&mut chunk, part.len() as u64);
            chunk.extend(part);
        }
        chunk
    }

    /// The chunk: each part after its length.
    pub(super) fn pack(self) -> anyhow::Result<Vec<u8>> {
        let mut packer = zstd::bulk::Compressor::new(LEVEL)?;
        packer.include_checksum(true)?;
        let mut chunk = Vec::new();
        for part in self.parts {
            if part.is_empty() {
                chunk.push(0);
                continue;
            }
            let small = packer.compress(&part).context("cannot compress a chunk")?;
            put(&mut chunk, small.len() as u64);
            chunk.extend_from_slice(&small);
        }
        Ok(chunk)
    }
}

fn place_of(byte: u32, bits: u32, form: Form) -> usize {
    if byte + 1 == bits.div_ceil(8) {
        return Part::High as usize + (bits - 8 * byte) as usize - 1;
    }
    if form == Form::Bits { Part::Digits as usize } else { Part::Low as usize }
}

/// The parts while they are read.
pub(super) struct Parts {
    parts: [Vec<u8>; PARTS],
    read: [usize; PARTS],
}

impl Parts {
    /// Opens any bytes.
    pub(super) fn open(chunk: &[u8]) -> anyhow::Result<Self> {
        let mut rest = chunk;
        let mut parts: [Vec<u8>; PARTS] = Default::default();
        let mut unpacker = zstd::bulk::Decompressor::new()?;
        let mut room = MOST_BYTES;
        for part in &mut parts {
            let length = usize::try_from(take(&mut rest).context(SHORT)?).context(SHORT)?;
            let (packed, after) = rest.split_at_checked(length).context(SHORT)?;
            rest = after;
            if length > 0 {
                *part = unpacker.decompress(packed, room).context("cannot unpack a chunk")?;
                room -= part.len();
            }
        }
        Ok(Self { parts, read: [0; PARTS] })
    }

    /// Opens any bytes as parts that are not compressed.
    #[cfg(any(fuzzing, test))]
    pub(super) fn uncompressed(chunk: &[u8]) -> anyhow::Result<Self> {
        let mut rest = chunk;
        let mut parts: [Vec<u8>; PARTS] = Default::default();
        for part in &mut parts {
            let length = usize::try_from(take(&mut rest).context(SHORT)?).context(SHORT)?;
            let (bytes, after) = rest.split_at_checked(length).context(SHORT)?;
            *part = bytes.to_vec();
            rest = after;
        }
        Ok(Self { parts, read: [0; PARTS] })
    }

    /// A whole part.
    pub(super) fn all(&self, part: Part) -> &[u8] {
        &self.parts[part as usize]
    }

    /// Reads something from a part.
    pub(super) fn read<T>(
        &mut self,
        part: Part,
        read: impl FnOnce(&mut &[u8]) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut rest = self.all(part).get(self.read[part as usize]..).unwrap_or_default();
        let before = rest.len();
        let value = read(&mut rest)?;
        let after = rest.len();
        self.read[part as usize] += before - after;
        Ok(value)
    }

    pub(super) fn number(&mut self, part: Part) -> anyhow::Result<u64> {
        self.read(part, |bytes| take(bytes).context(SHORT))
    }

    fn byte(&mut self, part: Part) -> anyhow::Result<u8> {
        self.read(part, |bytes| {
            let (byte, rest) = bytes.split_first().context(SHORT)?;
            *bytes = rest;
            Ok(*byte)
        })
    }

    /// The next column. `length`: how many values it has but the first, unless it says otherwise;
    /// `most`: how many it may have at most.
    pub(super) fn column(&mut self, length: usize, most: usize) -> anyhow::Result<Told> {
        let head = self.byte(Part::Modes)?;
        let form = Form::from_byte(head >> 3 & 0x0f).context("a chunk has an unknown form")?;
        let mut told = Told {
            mode: Mode::from_byte(head),
            form,
            first: unzigzag(self.number(Part::Firsts)?),
            back: 0,
            floor: 0,
            unit: 1,
            rest: Vec::new(),
        };
        if told.mode == Mode::Constant {
            return Ok(told);
        }
        let mut length = length;
        if head & OWN_LENGTH != 0 {
            length = usize::try_from(self.number(Part::Columns)?).context(SHORT)?;
        }
        anyhow::ensure!(length <= most, "a chunk has more than {most} values");
        if told.mode.refers() {
            told.back = usize::try_from(self.number(Part::Columns)?).context(SHORT)?;
        }
        if told.mode == Mode::Levels {
            told.floor = self.number(Part::Columns)?;
        }
        told.unit = self.number(Part::Columns)?;
        let bits = u32::from(self.byte(Part::Columns)?);
        anyhow::ensure!(bits <= 64, "a chunk has numbers of {bits} bits");
        told.rest = vec![0; length];
        for byte in (0..bits.div_ceil(8)).rev() {
            let part = place_of(byte, bits, form);
            let begin = self.read[part];
            let bytes = self.parts[part].get(begin..begin + length).context(SHORT)?;
            for (number, byte) in told.rest.iter_mut().zip(bytes) {
                *number = *number << 8 | u64::from(*byte);
            }
            self.read[part] += length;
        }
        Ok(told)
    }
}

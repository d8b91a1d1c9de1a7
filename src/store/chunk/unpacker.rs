//! Unpacks snapshots, one after the other. Total: any bytes give snapshots or an error, and cost
//! bounded memory.

use std::ops::Range;

use anyhow::Context as _;

use super::Hidden;
use super::columns::{Class, Mode, untell};
use super::decimal::Form;
use super::msgpack::{self, Token};
use super::sections::{Part, Parts};
use super::tree::{DEEPEST, Kind, NONE, SHORT, Tree, take_change, take_place};
use super::varint::{take, unzigzag};
use crate::sampler::MOST_FRAME_BYTES;

/// Snapshots that are believed.
const MOST_SNAPSHOTS: u64 = 256;
/// Values of all columns that change.
const MOST_VALUES: usize = 4 << 20;
/// Doubles in the list: each came more than once.
const MOST_LISTED: usize = MOST_VALUES / 2;

/// A chunk that is unpacked.
pub(super) struct Unpacker {
    parts: Parts,
    frames: usize,
    done: usize,
    tree: Tree,
    texts: Vec<Range<usize>>,
    /// At which depths a text is a key that is left out, a bit each.
    hides: Vec<u64>,
    list: Vec<u64>,
    columns: Vec<Column>,
    /// Which columns change.
    changing: Vec<usize>,
    values: usize,
    changes: Changes,
}

struct Column {
    form: Form,
    first: u64,
    /// Empty: the first, for ever.
    values: Vec<u64>,
    next: usize,
}

/// Changes of the layout that this snapshot still brings.
struct Changes {
    left: u64,
    place: u32,
}

impl Unpacker {
    /// Opens any bytes.
    pub(super) fn open(chunk: &[u8], hidden: &Hidden) -> anyhow::Result<Self> {
        Self::new(Parts::open(chunk)?, hidden)
    }

    /// Opens any bytes as the parts of a chunk, not compressed.
    #[cfg(any(fuzzing, test))]
    pub(super) fn of_parts(bytes: &[u8], hidden: &Hidden) -> anyhow::Result<Self> {
        Self::new(Parts::uncompressed(bytes)?, hidden)
    }

    fn new(mut parts: Parts, hidden: &Hidden) -> anyhow::Result<Self> {
        let frames = parts.number(Part::Head)?;
        anyhow::ensure!(frames <= MOST_SNAPSHOTS, "a chunk has {frames} snapshots");
        let (texts, hides) = read_texts(&mut parts, hidden)?;
        let list = read_list(&parts)?;
        Ok(Self {
            parts,
            frames: usize::try_from(frames)?,
            done: 0,
            tree: Tree::new(),
            texts,
            hides,
            list,
            columns: Vec::new(),
            changing: Vec::new(),
            values: 0,
            changes: Changes { left: 0, place: NONE },
        })
    }

    /// How many snapshots were read or passed over.
    pub(super) fn position(&self) -> usize {
        self.done
    }

    /// Passes over the next snapshot.
    pub(super) fn skip(&mut self) -> anyhow::Result<()> {
        self.step(None)
    }

    /// Reads the next snapshot.
    pub(super) fn read(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut frame = Vec::new();
        self.step(Some(&mut frame))?;
        Ok(frame)
    }

    fn step(&mut self, frame: Option<&mut Vec<u8>>) -> anyhow::Result<()> {
        anyhow::ensure!(self.done < self.frames, "a chunk has no snapshot {}", self.done);
        self.done += 1;
        self.changes.left = self.parts.number(Part::Changes)?;
        self.changes.place = 0;
        self.next_change()?;
        self.visit(0, 0, frame)?;
        anyhow::ensure!(self.changes.place == NONE, "a chunk changes a place that is not there");
        Ok(())
    }

    /// Looks where the next change is.
    fn next_change(&mut self) -> anyhow::Result<()> {
        let last = self.changes.place;
        self.changes.place = if self.changes.left == 0 {
            NONE
        } else {
            self.changes.left -= 1;
            self.parts.read(Part::Changes, |bytes| take_place(bytes, last))?
        };
        Ok(())
    }

    fn visit(
        &mut self,
        place: u32,
        depth: usize,
        mut frame: Option<&mut Vec<u8>>,
    ) -> anyhow::Result<()> {
        anyhow::ensure!(depth <= DEEPEST, "a chunk is nested too deeply");
        self.tree.adopt(place)?;
        if self.changes.place == place {
            let (kind, items) = self.parts.read(Part::Changes, take_change)?;
            self.tree.change(place, kind, &items)?;
            self.next_change()?;
        }
        if let Some(frame) = &frame {
            anyhow::ensure!(frame.len() <= MOST_FRAME_BYTES, "a chunk has a snapshot too large");
        }
        let kind = self.tree.place(place).kind;
        let token = match kind {
            Kind::Unseen => anyhow::bail!("a chunk does not say what stands at a place"),
            Kind::Nil => Token::Nil,
            Kind::False => Token::Bool(false),
            Kind::True => Token::Bool(true),
            Kind::Map | Kind::Array => return self.visit_all(place, depth, frame),
            Kind::Unsigned => Token::Unsigned(self.value(place, Class::Number)?),
            Kind::Negative => Token::Negative(self.value(place, Class::Number)?.cast_signed()),
            #[expect(clippy::cast_possible_truncation, reason = "was widened when packed")]
            Kind::Float32 => Token::Float32(self.value(place, Class::Number)? as u32),
            Kind::Float64 => Token::Float64(self.value(place, Class::Double)?),
            Kind::Text | Kind::Binary | Kind::Extension => {
                let number = self.value(place, Class::Text)?;
                let text = usize::try_from(number).ok().and_then(|text| self.texts.get(text));
                let bytes = text.and_then(|text| self.parts.all(Part::Texts).get(text.clone()));
                let Some(bytes) = bytes else {
                    anyhow::bail!("a chunk names a text that it has not")
                };
                match kind {
                    Kind::Text => Token::Text(bytes),
                    Kind::Binary => Token::Binary(bytes),
                    _ => Token::Extension(bytes),
                }
            }
        };
        if let Some(frame) = &mut frame {
            msgpack::put(frame, token);
        }
        Ok(())
    }

    fn visit_all(
        &mut self,
        place: u32,
        depth: usize,
        mut frame: Option<&mut Vec<u8>>,
    ) -> anyhow::Result<()> {
        let is_map = self.tree.place(place).kind == Kind::Map;
        let length = self.tree.place(place).order.len();
        let shown = |unpacker: &Self, child: u32| {
            let hides = unpacker.hides.get(unpacker.tree.place(child).key as usize);
            hides.is_none_or(|hides| hides >> (depth + 1) & 1 == 0)
        };
        if let Some(frame) = &mut frame {
            let children = self.tree.place(place).order.iter();
            let length = children.filter(|child| !is_map || shown(self, **child)).count();
            let length = u32::try_from(length)?;
            msgpack::put(frame, if is_map { Token::Map(length) } else { Token::Array(length) });
        }
        for index in 0..length {
            let child = self.tree.place(place).order[index];
            let mut into = frame.as_deref_mut();
            if is_map {
                if !shown(self, child) {
                    into = None;
                }
                if let Some(frame) = &mut into {
                    let key = self.texts.get(self.tree.place(child).key as usize);
                    let key = key.and_then(|key| self.parts.all(Part::Texts).get(key.clone()));
                    let Some(key) = key else {
                        anyhow::bail!("a chunk names a key that it has not")
                    };
                    msgpack::put(frame, Token::Text(key));
                }
            }
            self.visit(child, depth + 1, into)?;
        }
        Ok(())
    }

    /// The next value at a place.
    fn value(&mut self, place: u32, class: Class) -> anyhow::Result<u64> {
        let known = self.tree.place(place).columns[class as usize];
        let at = if known == NONE { self.begin(place, class)? } else { known as usize };
        let column = &mut self.columns[at];
        let number = if column.values.is_empty() {
            column.first
        } else if let Some(number) = column.values.get(column.next) {
            column.next += 1;
            *number
        } else {
            anyhow::bail!("a column of a chunk is too short");
        };
        Ok(if class == Class::Double { column.form.double(number, &self.list) } else { number })
    }

    /// Reads the column of a place that has none yet.
    fn begin(&mut self, place: u32, class: Class) -> anyhow::Result<usize> {
        let at = self.columns.len();
        let (_, like) = self.tree.add_column(place, class, at)?;
        let told = self.parts.column(self.frames.saturating_sub(1), MOST_VALUES - self.values)?;
        let model = self.columns.get(like as usize).filter(|model| model.form == told.form);
        let first = told.first.wrapping_add(model.map_or(0, |model| model.first));
        let mut values = Vec::new();
        if told.mode != Mode::Constant {
            let other = if told.mode.refers() {
                let other = self.changing.len().checked_sub(told.back);
                let other = other.and_then(|other| self.changing.get(other));
                let other = *other.context("a chunk refers to a column that it has not told")?;
                self.columns.get(other).map(|column| column.values.as_slice())
            } else {
                None
            };
            values = untell(&told, first, other);
            self.values += values.len();
            self.changing.push(at);
        }
        self.columns.push(Column { form: told.form, first, values, next: 0 });
        Ok(at)
    }
}

fn read_texts(parts: &mut Parts, hidden: &Hidden) -> anyhow::Result<(Vec<Range<usize>>, Vec<u64>)> {
    let count = parts.number(Part::Head)?;
    let all = parts.all(Part::Texts);
    let mut rest = all;
    let (mut texts, mut hides) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let length = usize::try_from(take(&mut rest).context(SHORT)?).context(SHORT)?;
        let begin = all.len() - rest.len();
        let (text, after) = rest.split_at_checked(length).context(SHORT)?;
        rest = after;
        texts.push(begin..begin + length);
        let depths = hidden.iter().filter(|(_, key)| key.as_bytes() == text);
        hides.push(depths.fold(0, |all, (depth, _)| all | 1_u64 << depth));
    }
    Ok((texts, hides))
}

fn read_list(parts: &Parts) -> anyhow::Result<Vec<u64>> {
    let mut rest = parts.all(Part::List);
    let (mut list, mut bits) = (Vec::new(), 0_u64);
    while !rest.is_empty() {
        anyhow::ensure!(list.len() < MOST_LISTED, "a chunk lists too many values");
        bits = bits.wrapping_add(unzigzag(take(&mut rest).context(SHORT)?));
        list.push(bits);
    }
    Ok(list)
}

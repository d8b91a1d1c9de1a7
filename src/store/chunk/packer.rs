//! Packs snapshots, one after the other, into columns.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use super::columns::{Class, Column, Teller};
use super::decimal::{Form, List};
use super::msgpack::{self, Token};
use super::sections::{Part, Sections};
use super::tree::{DEEPEST, Item, Kind, NONE, Tree, put_change};
use super::varint::{put, zigzag};

/// What was packed so far.
pub(super) struct Packer {
    tree: Tree,
    texts: Texts,
    columns: Vec<Column>,
    /// What an element is recognised by, by its place.
    identities: Vec<u64>,
    /// Changes of the layout, snapshot by snapshot.
    changes: Vec<u8>,
    frame: Changes,
    frames: usize,
}

/// Changes of the layout in one snapshot.
#[derive(Default)]
struct Changes {
    count: u64,
    last: u32,
    bytes: Vec<u8>,
}

/// Keys and values that are texts, each told once, after its length.
#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    ranges: Vec<Range<usize>>,
    numbers: HashMap<Box<[u8]>, u32>,
}

impl Texts {
    fn get(&self, number: u32) -> Option<&[u8]> {
        self.ranges.get(number as usize).and_then(|range| self.bytes.get(range.clone()))
    }

    fn number(&mut self, text: &[u8]) -> u32 {
        if let Some(known) = self.numbers.get(text) {
            return *known;
        }
        let number = u32::try_from(self.ranges.len()).unwrap_or(NONE);
        put(&mut self.bytes, text.len() as u64);
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.ranges.push(begin..self.bytes.len());
        self.numbers.insert(text.into(), number);
        number
    }
}

/// A piece of a snapshot, and where the next one on the same level stands.
struct Piece<'a> {
    token: Token<'a>,
    next: usize,
}

impl Packer {
    pub(super) fn new() -> Self {
        Self {
            tree: Tree::new(),
            texts: Texts::default(),
            columns: Vec::new(),
            identities: Vec::new(),
            changes: Vec::new(),
            frame: Changes::default(),
            frames: 0,
        }
    }

    /// Adds a snapshot. After an error nothing of it is of use.
    pub(super) fn add(&mut self, frame: &[u8]) -> anyhow::Result<()> {
        let pieces = parse(frame)?;
        self.frame = Changes::default();
        self.visit(0, &pieces, 0)?;
        put(&mut self.changes, self.frame.count);
        self.changes.append(&mut self.frame.bytes);
        self.frames += 1;
        Ok(())
    }

    fn visit(&mut self, place: u32, pieces: &[Piece<'_>], at: usize) -> anyhow::Result<()> {
        self.tree.adopt(place)?;
        let token = pieces[at].token;
        let kind = Kind::of(&token);
        match token {
            Token::Map(_) => self.visit_map(place, pieces, at),
            Token::Array(_) => self.visit_list(place, pieces, at),
            Token::Nil | Token::Bool(_) => self.expect(place, kind),
            Token::Unsigned(value) => self.value(place, kind, Class::Number, value),
            Token::Negative(value) => self.value(place, kind, Class::Number, value.cast_unsigned()),
            Token::Float32(bits) => self.value(place, kind, Class::Number, bits.into()),
            Token::Float64(bits) => self.value(place, kind, Class::Double, bits),
            Token::Text(text) | Token::Binary(text) | Token::Extension(text) => {
                let column = self.tree.place(place).columns[Class::Text as usize];
                // Most are what they were.
                let last = self.columns.get(column as usize).map(Column::last);
                let last = last.and_then(|last| u32::try_from(last).ok());
                let same = last.filter(|last| self.texts.get(*last) == Some(text));
                let number = same.unwrap_or_else(|| self.texts.number(text));
                self.value(place, kind, Class::Text, number.into())
            }
        }
    }

    fn visit_map(&mut self, place: u32, pieces: &[Piece<'_>], at: usize) -> anyhow::Result<()> {
        if !self.expects_keys(place, pieces, at)? {
            let mut keys = Vec::new();
            for entry in children(pieces, at, 2) {
                keys.push(self.texts.number(key(pieces, entry)?));
            }
            let known = &self.tree.place(place).known;
            let find =
                |key: &u32| known.iter().position(|child| self.tree.place(*child).key == *key);
            let items: Vec<Item> =
                keys.iter().map(|key| find(key).map_or(Item::New(*key), Item::Known)).collect();
            self.change(place, Kind::Map, &items)?;
        }
        for (index, entry) in children(pieces, at, 2).enumerate() {
            let child = self.tree.place(place).order[index];
            self.visit(child, pieces, entry + 1)?;
        }
        Ok(())
    }

    /// Whether a map has the keys of the last time, in their order.
    fn expects_keys(&self, place: u32, pieces: &[Piece<'_>], at: usize) -> anyhow::Result<bool> {
        let known = self.tree.place(place);
        let mut order = known.order.iter();
        for entry in children(pieces, at, 2) {
            let key = key(pieces, entry)?;
            let is_same = |child: &u32| self.texts.get(self.tree.place(*child).key) == Some(key);
            if !order.next().is_some_and(is_same) {
                return Ok(false);
            }
        }
        Ok(known.kind == Kind::Map && order.next().is_none())
    }

    fn visit_list(&mut self, place: u32, pieces: &[Piece<'_>], at: usize) -> anyhow::Result<()> {
        let elements = || children(pieces, at, 1).enumerate();
        let known = self.tree.place(place);
        let of = |child: &u32| self.identities.get(*child as usize).copied().unwrap_or(0);
        let mut order = known.order.iter();
        let is_same = elements().all(|(position, element)| {
            order.next().is_some_and(|child| {
                let own = of(child);
                own == 0 || own == identity(pieces, element, position)
            })
        });
        if !is_same || known.kind != Kind::Array || order.next().is_some() {
            let mut free: HashMap<u64, Vec<usize>> = HashMap::new();
            for (position, child) in known.known.iter().enumerate().rev() {
                free.entry(of(child)).or_default().push(position);
            }
            let items = elements().map(|(position, element)| {
                // A slot that was expected and never filled is as good as one that fits.
                let fits = free.get_mut(&identity(pieces, element, position)).and_then(Vec::pop);
                let fits = fits.or_else(|| free.get_mut(&0).and_then(Vec::pop));
                fits.map_or(Item::New(NONE), Item::Known)
            });
            let items: Vec<Item> = items.collect();
            self.change(place, Kind::Array, &items)?;
        }
        for (index, element) in elements() {
            let child = self.tree.place(place).order[index];
            let slot = child as usize;
            if self.identities.len() <= slot {
                self.identities.resize(self.tree.places.len(), 0);
            }
            if self.identities[slot] == 0 || !is_same {
                self.identities[slot] = identity(pieces, element, index);
            }
            self.visit(child, pieces, element)?;
        }
        Ok(())
    }

    fn expect(&mut self, place: u32, kind: Kind) -> anyhow::Result<()> {
        if self.tree.place(place).kind == kind { Ok(()) } else { self.change(place, kind, &[]) }
    }

    fn change(&mut self, place: u32, kind: Kind, items: &[Item]) -> anyhow::Result<()> {
        put_change(&mut self.frame.bytes, self.frame.last, place, kind, items);
        self.frame.last = place;
        self.frame.count += 1;
        self.tree.change(place, kind, items)
    }

    fn value(&mut self, place: u32, kind: Kind, class: Class, value: u64) -> anyhow::Result<()> {
        self.expect(place, kind)?;
        let column = self.tree.place(place).columns[class as usize];
        if let Some(column) = self.columns.get_mut(column as usize) {
            column.push(value);
            return Ok(());
        }
        let (key, like) = self.tree.add_column(place, class, self.columns.len())?;
        self.columns.push(Column::new(class, key, like, value));
        Ok(())
    }

    /// The packed snapshots.
    pub(super) fn finish(self) -> anyhow::Result<Vec<u8>> {
        self.sections().pack()
    }

    /// The parts before they are compressed.
    pub(super) fn sections(self) -> Sections {
        let mut sections = Sections::default();
        put(sections.part(Part::Head), self.frames as u64);
        put(sections.part(Part::Head), self.texts.ranges.len() as u64);
        *sections.part(Part::Texts) = self.texts.bytes;
        *sections.part(Part::Changes) = self.changes;
        let mut forms: Vec<Form> = self.columns.iter().map(Column::form).collect();
        let odd = |form: &Form| *form == Form::Bits;
        let doubles = || self.columns.iter().zip(&forms).filter(|(_, form)| odd(form));
        // A constant is told once, however long it lasts.
        let told = |column: &Column| if column.changes() { column.len() } else { 1 };
        let doubles = doubles().map(|(column, _)| column.values().take(told(column)));
        let (list, listed) = List::of(doubles);
        let odd_forms = forms.iter_mut().filter(|form| odd(form));
        for (form, listed) in odd_forms.zip(listed) {
            *form = if listed { Form::Listed } else { Form::Bits };
        }
        let mut before = 0;
        for bits in list.sorted() {
            put(sections.part(Part::List), zigzag(bits.wrapping_sub(before)));
            before = *bits;
        }
        let mut teller = Teller::default();
        for (column, form) in self.columns.into_iter().zip(forms) {
            let told = teller.tell(&column, form, &list);
            sections.tell(&told, column.changes() && column.len() != self.frames);
        }
        sections
    }
}

/// The pieces of a snapshot.
fn parse(frame: &[u8]) -> anyhow::Result<Vec<Piece<'_>>> {
    let mut rest = frame;
    let mut pieces: Vec<Piece<'_>> = Vec::with_capacity(frame.len() / 6);
    // Containers that are open: where their head stands, what they still hold.
    let mut open: Vec<(usize, u64)> = Vec::new();
    loop {
        let Some(token) = msgpack::take(&mut rest) else {
            anyhow::bail!("a snapshot is no MessagePack");
        };
        let at = pieces.len();
        pieces.push(Piece { token, next: at + 1 });
        let held = match token {
            Token::Array(length) => u64::from(length),
            Token::Map(length) => 2 * u64::from(length),
            _ => 0,
        };
        open.push((at, held));
        anyhow::ensure!(open.len() <= DEEPEST, "a snapshot is nested too deeply");
        while let Some((head, 0)) = open.last() {
            pieces[*head].next = pieces.len();
            open.pop();
            if let Some((_, held)) = open.last_mut() {
                *held -= 1;
            } else {
                anyhow::ensure!(rest.is_empty(), "bytes follow a snapshot");
                return Ok(pieces);
            }
        }
    }
}

/// Where the children of a container stand, or every second of them.
fn children<'a>(
    pieces: &'a [Piece<'_>],
    at: usize,
    each: usize,
) -> impl Iterator<Item = usize> + use<'a> {
    let mut child = at + 1;
    std::iter::from_fn(move || {
        if child >= pieces[at].next {
            return None;
        }
        let found = child;
        for _ in 0..each {
            child = pieces[child].next;
        }
        Some(found)
    })
}

fn key<'a>(pieces: &[Piece<'a>], entry: usize) -> anyhow::Result<&'a [u8]> {
    match pieces[entry].token {
        Token::Text(key) => Ok(key),
        _ => anyhow::bail!("a key is no text"),
    }
}

/// What an element of a list is recognised by: the first value in it where that is a plain one (a
/// pid, a number, a name), else its position.
fn identity(pieces: &[Piece<'_>], element: usize, position: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    match (pieces[element].token, pieces.get(element + 2).map(|piece| piece.token)) {
        (Token::Map(1..), Some(Token::Unsigned(value))) => (1, value).hash(&mut hasher),
        (Token::Map(1..), Some(Token::Text(text))) => (2, text).hash(&mut hasher),
        _ => (3, position).hash(&mut hasher),
    }
    // 0 is a slot that was expected and never filled.
    hasher.finish().max(1)
}

//! Packs snapshots, one after the other, into columns.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use anyhow::Context as _;

use super::columns::{Class, Column, Teller};
use super::decimal::{Form, List};
use super::msgpack::{self, Token};
use super::sections::{Part, Sections};
use super::tree::{DEEPEST, Item, Kind, NONE, Tree, put_change};
use super::varint::{put, zigzag};

/// What was packed so far.
pub(super) struct Packer {
    tree: Tree,
    texts: HashMap<Box<[u8]>, u32>,
    text_bytes: Vec<u8>,
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

/// A piece of a snapshot, and where the next one on the same level stands.
struct Piece<'a> {
    token: Token<'a>,
    next: usize,
}

impl Packer {
    pub(super) fn new() -> Self {
        Self {
            tree: Tree::new(),
            texts: HashMap::new(),
            text_bytes: Vec::new(),
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
                let text = self.text(text);
                self.value(place, kind, Class::Text, text.into())
            }
        }
    }

    fn visit_map(&mut self, place: u32, pieces: &[Piece<'_>], at: usize) -> anyhow::Result<()> {
        let entries = children(pieces, at, 2);
        let mut keys = Vec::with_capacity(entries.len());
        for entry in &entries {
            let Token::Text(key) = pieces[*entry].token else {
                anyhow::bail!("a key is no text");
            };
            keys.push(self.text(key));
        }
        let known = self.tree.place(place);
        let same = known.kind == Kind::Map
            && known.order.len() == keys.len()
            && known
                .order
                .iter()
                .zip(&keys)
                .all(|(child, key)| self.tree.place(*child).key == *key);
        if !same {
            let find = |key: &u32| {
                known.known.iter().position(|child| self.tree.place(*child).key == *key)
            };
            let items: Vec<Item> =
                keys.iter().map(|key| find(key).map_or(Item::New(*key), Item::Known)).collect();
            self.change(place, Kind::Map, &items)?;
        }
        for (index, entry) in entries.iter().enumerate() {
            let child = self.tree.place(place).order[index];
            self.visit(child, pieces, entry + 1)?;
        }
        Ok(())
    }

    fn visit_list(&mut self, place: u32, pieces: &[Piece<'_>], at: usize) -> anyhow::Result<()> {
        let elements = children(pieces, at, 1);
        let identities: Vec<u64> = elements
            .iter()
            .enumerate()
            .map(|(position, element)| identity(pieces, *element, position))
            .collect();
        let known = self.tree.place(place);
        let of = |child: &u32| self.identities.get(*child as usize).copied().unwrap_or(0);
        let same = known.kind == Kind::Array
            && known.order.len() == identities.len()
            && known.order.iter().zip(&identities).all(|(child, identity)| {
                let own = of(child);
                own == *identity || own == 0
            });
        if !same {
            let mut free: HashMap<u64, Vec<usize>> = HashMap::new();
            for (position, child) in known.known.iter().enumerate().rev() {
                free.entry(of(child)).or_default().push(position);
            }
            let items: Vec<Item> = identities
                .iter()
                .map(|identity| {
                    // A slot that was expected and never filled is as good as one that fits.
                    let fits = free.get_mut(identity).and_then(Vec::pop);
                    let fits = fits.or_else(|| free.get_mut(&0).and_then(Vec::pop));
                    fits.map_or(Item::New(NONE), Item::Known)
                })
                .collect();
            self.change(place, Kind::Array, &items)?;
        }
        for (index, element) in elements.iter().enumerate() {
            let child = self.tree.place(place).order[index];
            let slot = child as usize;
            if self.identities.len() <= slot {
                self.identities.resize(self.tree.places.len(), 0);
            }
            self.identities[slot] = identities[index];
            self.visit(child, pieces, *element)?;
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

    fn text(&mut self, text: &[u8]) -> u32 {
        if let Some(known) = self.texts.get(text) {
            return *known;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(NONE);
        match self.texts.entry(text.into()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                put(&mut self.text_bytes, text.len() as u64);
                self.text_bytes.extend_from_slice(text);
                *free.insert(number)
            }
        }
    }

    /// The packed snapshots.
    pub(super) fn finish(self) -> anyhow::Result<Vec<u8>> {
        let mut sections = Sections::default();
        put(sections.part(Part::Head), self.frames as u64);
        put(sections.part(Part::Head), self.texts.len() as u64);
        *sections.part(Part::Texts) = self.text_bytes;
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
        sections.pack()
    }
}

/// The pieces of a snapshot.
fn parse(frame: &[u8]) -> anyhow::Result<Vec<Piece<'_>>> {
    let mut rest = frame;
    let mut pieces: Vec<Piece<'_>> = Vec::with_capacity(frame.len() / 6);
    // Containers that are open: where their head stands, what they still hold.
    let mut open: Vec<(usize, u64)> = Vec::new();
    loop {
        let token = msgpack::take(&mut rest).context("a snapshot is no MessagePack")?;
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
fn children(pieces: &[Piece<'_>], at: usize, each: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut child = at + 1;
    while child < pieces[at].next {
        found.push(child);
        for _ in 0..each {
            child = pieces[child].next;
        }
    }
    found
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

//! The places in a snapshot where values stand: a tree that packing and unpacking grow alike, step
//! by step, so that of its growth only surprises need to be told.
//!
//! A place is known by the keys on the way to it; an element of a list by the slot that it was given
//! when it was new, whatever its position later. A new element is expected to look like the one
//! before it: the second of 64 processes tells nothing of its layout.

use anyhow::Context as _;

use super::columns::Class;
use super::msgpack::Token;
use super::varint::{put, take, unzigzag, zigzag};

/// What stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Unseen,
    Nil,
    False,
    True,
    Unsigned,
    Negative,
    Float32,
    Float64,
    Text,
    Binary,
    Extension,
    Array,
    Map,
}

const KINDS: [Kind; 13] = [
    Kind::Unseen,
    Kind::Nil,
    Kind::False,
    Kind::True,
    Kind::Unsigned,
    Kind::Negative,
    Kind::Float32,
    Kind::Float64,
    Kind::Text,
    Kind::Binary,
    Kind::Extension,
    Kind::Array,
    Kind::Map,
];

impl Kind {
    pub(super) fn of(token: &Token<'_>) -> Self {
        match token {
            Token::Nil => Self::Nil,
            Token::Bool(false) => Self::False,
            Token::Bool(true) => Self::True,
            Token::Unsigned(_) => Self::Unsigned,
            Token::Negative(_) => Self::Negative,
            Token::Float32(_) => Self::Float32,
            Token::Float64(_) => Self::Float64,
            Token::Text(_) => Self::Text,
            Token::Binary(_) => Self::Binary,
            Token::Extension(_) => Self::Extension,
            Token::Array(_) => Self::Array,
            Token::Map(_) => Self::Map,
        }
    }

    fn holds_others(self) -> bool {
        matches!(self, Self::Array | Self::Map)
    }
}

/// No place, no text, no column.
pub(super) const NONE: u32 = u32::MAX;
/// Places in a chunk at most: a box of 64 GPUs and 4,000 processes has half of that.
const MOST_PLACES: usize = 1 << 20;

/// Containers in each other.
pub(super) const DEEPEST: usize = 32;

/// A place.
pub(super) struct Place {
    pub(super) kind: Kind,
    /// The key under which it stands; [`NONE`] in a list.
    pub(super) key: u32,
    /// The place that it is expected to resemble.
    pub(super) like: u32,
    /// What it ever held, in the order of appearance.
    pub(super) known: Vec<u32>,
    /// What it holds now, in order.
    pub(super) order: Vec<u32>,
    /// Its column of each class.
    pub(super) columns: [u32; 3],
}

/// What a container holds, told against what was known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// The place with this position among the known.
    Known(usize),
    /// A new one, with its key.
    New(u32),
}

/// The tree; its first place is the snapshot.
pub(super) struct Tree {
    pub(super) places: Vec<Place>,
}

impl Tree {
    pub(super) fn new() -> Self {
        let mut tree = Self { places: Vec::new() };
        tree.grow(NONE, NONE);
        tree
    }

    pub(super) fn place(&self, place: u32) -> &Place {
        &self.places[place as usize]
    }

    fn place_mut(&mut self, place: u32) -> &mut Place {
        &mut self.places[place as usize]
    }

    #[expect(clippy::cast_possible_truncation, reason = "there are fewer places than a million")]
    fn grow(&mut self, key: u32, like: u32) -> u32 {
        let id = self.places.len() as u32;
        self.places.push(Place {
            kind: Kind::Unseen,
            key,
            like,
            known: Vec::new(),
            order: Vec::new(),
            columns: [NONE; 3],
        });
        id
    }

    /// Expects of a place that was never seen what stands at the one that it resembles.
    pub(super) fn adopt(&mut self, place: u32) -> anyhow::Result<()> {
        let Place { kind: Kind::Unseen, like, .. } = *self.place(place) else { return Ok(()) };
        if like == NONE {
            return Ok(());
        }
        let kind = self.place(like).kind;
        let children =
            if kind.holds_others() { self.place(like).order.clone() } else { Vec::new() };
        self.has_room(children.len())?;
        let mut order = Vec::with_capacity(children.len());
        for child in children {
            order.push(self.grow(self.place(child).key, child));
        }
        let place = self.place_mut(place);
        place.kind = kind;
        place.known.clone_from(&order);
        place.order = order;
        Ok(())
    }

    /// Something else stands at a place from now on.
    pub(super) fn change(&mut self, place: u32, kind: Kind, items: &[Item]) -> anyhow::Result<()> {
        self.has_room(items.len())?;
        let mut order = Vec::with_capacity(items.len());
        for item in items {
            order.push(match *item {
                Item::Known(at) => {
                    let known = self.place(place).known.get(at);
                    *known.context("a chunk names a place that it has not told of")?
                }
                Item::New(key) => {
                    let like = self.model(place, key);
                    let child = self.grow(key, like);
                    self.place_mut(place).known.push(child);
                    child
                }
            });
        }
        // Each place is visited once, whatever a chunk says.
        let mut once = order.clone();
        once.sort_unstable();
        once.dedup();
        anyhow::ensure!(once.len() == order.len(), "a chunk names a place twice");
        let place = self.place_mut(place);
        place.kind = kind;
        if kind.holds_others() {
            place.order = order;
        }
        Ok(())
    }

    /// Gives a place its column of a class: its key, and the column of the place that it resembles.
    pub(super) fn add_column(
        &mut self,
        place: u32,
        class: Class,
        column: usize,
    ) -> anyhow::Result<(u32, u32)> {
        let column = u32::try_from(column).context("a chunk has too many columns")?;
        let Place { key, like, .. } = *self.place(place);
        let model = if like == NONE { NONE } else { self.place(like).columns[class as usize] };
        self.place_mut(place).columns[class as usize] = column;
        Ok((key, model))
    }

    /// What a new child is expected to look like.
    fn model(&self, place: u32, key: u32) -> u32 {
        let Place { like, known, .. } = self.place(place);
        let of_model = |at: fn(&[u32]) -> Option<&u32>| {
            let model = (*like != NONE).then(|| self.place(*like));
            model.and_then(|model| at(&model.known)).copied().unwrap_or(NONE)
        };
        if key == NONE {
            return known.last().copied().unwrap_or_else(|| of_model(<[u32]>::last));
        }
        let model = (*like != NONE).then(|| self.place(*like));
        let mut children = model.iter().flat_map(|model| &model.known);
        children.find(|child| self.place(**child).key == key).copied().unwrap_or(NONE)
    }

    fn has_room(&self, more: usize) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.places.len() + more <= MOST_PLACES,
            "a chunk has more than {MOST_PLACES} places"
        );
        Ok(())
    }
}

/// Writes what changes at a place. `last` is the place of the change before.
pub(super) fn put_change(out: &mut Vec<u8>, last: u32, place: u32, kind: Kind, items: &[Item]) {
    put(out, zigzag(u64::from(place).wrapping_sub(last.into())));
    out.push(kind as u8);
    if !kind.holds_others() {
        return;
    }
    put(out, items.len() as u64);
    let mut expected = 0;
    for item in items {
        match *item {
            Item::Known(at) => {
                put(out, zigzag((at as u64).wrapping_sub(expected)) + 1);
                expected = at as u64 + 1;
            }
            Item::New(key) => {
                put(out, 0);
                if kind == Kind::Map {
                    put(out, key.into());
                }
            }
        }
    }
}

/// Reads the place of a change.
pub(super) fn take_place(bytes: &mut &[u8], last: u32) -> anyhow::Result<u32> {
    let step = unzigzag(take(bytes).context(SHORT)?);
    u32::try_from(u64::from(last).wrapping_add(step)).context(SHORT)
}

/// Reads what changes there.
pub(super) fn take_change(bytes: &mut &[u8]) -> anyhow::Result<(Kind, Vec<Item>)> {
    let (kind, rest) = bytes.split_first().context(SHORT)?;
    *bytes = rest;
    let kind = *KINDS.get(usize::from(*kind)).context("a chunk names an unknown kind")?;
    let mut items = Vec::new();
    if kind.holds_others() {
        let mut expected = 0_u64;
        for _ in 0..take(bytes).context(SHORT)? {
            items.push(match take(bytes).context(SHORT)? {
                0 if kind == Kind::Map => {
                    Item::New(u32::try_from(take(bytes).context(SHORT)?).context(SHORT)?)
                }
                0 => Item::New(NONE),
                step => {
                    let at = expected.wrapping_add(unzigzag(step - 1));
                    expected = at.wrapping_add(1);
                    Item::Known(usize::try_from(at).context(SHORT)?)
                }
            });
        }
    }
    Ok((kind, items))
}

/// What is wrong with a chunk that ends too early or counts too far.
pub(super) const SHORT: &str = "a chunk ends too early";

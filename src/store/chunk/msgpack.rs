//! MessagePack, read piece by piece from any bytes and written in its shortest form, which is the one
//! that the sampler's encoder writes.

/// One piece. A container is its head; what it holds follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Nil,
    Bool(bool),
    Unsigned(u64),
    /// Below zero.
    Negative(i64),
    /// As bits, so that each NaN stays what it is.
    Float32(u32),
    Float64(u64),
    Text(&'a [u8]),
    Binary(&'a [u8]),
    /// With the byte of its type first.
    Extension(&'a [u8]),
    Array(u32),
    Map(u32),
}

/// The next piece; `None` where the bytes end or are none.
pub(super) fn take<'a>(bytes: &mut &'a [u8]) -> Option<Token<'a>> {
    let (&head, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(match head {
        0x00..=0x7f => Token::Unsigned(head.into()),
        0x80..=0x8f => Token::Map((head & 0x0f).into()),
        0x90..=0x9f => Token::Array((head & 0x0f).into()),
        0xa0..=0xbf => Token::Text(part(bytes, (head & 0x1f).into())?),
        0xc0 => Token::Nil,
        0xc1 => return None,
        0xc2 => Token::Bool(false),
        0xc3 => Token::Bool(true),
        0xc4..=0xc6 => {
            let length = number(bytes, 1 << (head - 0xc4))?;
            Token::Binary(part(bytes, length)?)
        }
        0xc7..=0xc9 => {
            let length = number(bytes, 1 << (head - 0xc7))?;
            Token::Extension(part(bytes, length + 1)?)
        }
        0xca => Token::Float32(u32::try_from(number(bytes, 4)?).ok()?),
        0xcb => Token::Float64(number(bytes, 8)?),
        0xcc..=0xcf => Token::Unsigned(number(bytes, 1 << (head - 0xcc))?),
        0xd0..=0xd3 => {
            let size = 1_u8 << (head - 0xd0);
            let empty = 64 - 8 * u32::from(size);
            let signed = (number(bytes, size.into())? << empty).cast_signed() >> empty;
            u64::try_from(signed).map_or(Token::Negative(signed), Token::Unsigned)
        }
        0xd4..=0xd8 => Token::Extension(part(bytes, (1 << (head - 0xd4)) + 1)?),
        0xd9..=0xdb => {
            let length = number(bytes, 1 << (head - 0xd9))?;
            Token::Text(part(bytes, length)?)
        }
        0xdc | 0xdd => Token::Array(u32::try_from(number(bytes, 2 << (head - 0xdc))?).ok()?),
        0xde | 0xdf => Token::Map(u32::try_from(number(bytes, 2 << (head - 0xde))?).ok()?),
        0xe0..=0xff => Token::Negative(i64::from(head.cast_signed())),
    })
}

fn part<'a>(bytes: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (part, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(part)
}

/// A number of so many bytes, the highest first.
fn number(bytes: &mut &[u8], size: usize) -> Option<u64> {
    let (number, rest) = bytes.split_at_checked(size)?;
    *bytes = rest;
    Some(number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Writes a piece in its shortest form. Of an extension only what [`take`] gave.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "each number was compared before; a small negative one is its own head"
)]
pub(super) fn put(out: &mut Vec<u8>, token: Token<'_>) {
    match token {
        Token::Nil => out.push(0xc0),
        Token::Bool(value) => out.push(0xc2 + u8::from(value)),
        Token::Unsigned(value) if value < 0x80 => out.push(value as u8),
        Token::Unsigned(value) => sized(out, 0xcc, value),
        Token::Negative(value) if value >= -32 => out.push(value as u8),
        Token::Negative(value) => {
            // The size that holds the sign as well.
            let size = match value {
                -0x80..=-1 => 0,
                -0x8000..=-0x81 => 1,
                -0x8000_0000..=-0x8001 => 2,
                _ => 3,
            };
            out.push(0xd0 + size);
            out.extend_from_slice(&value.to_be_bytes()[8 - (1 << size)..]);
        }
        Token::Float32(bits) => {
            out.push(0xca);
            out.extend_from_slice(&bits.to_be_bytes());
        }
        Token::Float64(bits) => {
            out.push(0xcb);
            out.extend_from_slice(&bits.to_be_bytes());
        }
        Token::Text(text) => {
            match text.len() {
                length @ ..32 => out.push(0xa0 | length as u8),
                length => sized(out, 0xd9, length as u64),
            }
            out.extend_from_slice(text);
        }
        Token::Binary(bytes) => {
            sized(out, 0xc4, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
        Token::Extension(bytes) => {
            match bytes.len().saturating_sub(1) {
                length @ (1 | 2 | 4 | 8 | 16) => out.push(0xd4 + length.ilog2() as u8),
                length => sized(out, 0xc7, length as u64),
            }
            out.extend_from_slice(bytes);
        }
        Token::Array(length @ ..16) => out.push(0x90 | length as u8),
        Token::Array(length) => long(out, 0xdc, length),
        Token::Map(length @ ..16) => out.push(0x80 | length as u8),
        Token::Map(length) => long(out, 0xde, length),
    }
}

/// A head that counts up with the size, then the number.
fn sized(out: &mut Vec<u8>, head: u8, value: u64) {
    let size = match value {
        0..=0xff => 0,
        0x100..=0xffff => 1,
        0x1_0000..=0xffff_ffff => 2,
        _ => 3,
    };
    out.push(head + size);
    out.extend_from_slice(&value.to_be_bytes()[8 - (1 << size)..]);
}

/// The same without the size of one byte.
fn long(out: &mut Vec<u8>, head: u8, length: u32) {
    if let Ok(length) = u16::try_from(length) {
        out.push(head);
        out.extend_from_slice(&length.to_be_bytes());
    } else {
        out.push(head + 1);
        out.extend_from_slice(&length.to_be_bytes());
    }
}

//! Cuts a stream of bytes into lines, whatever the sizes of the pieces.
//!
//! A line longer than the limit is given out cut; the rest of it is skipped.

const LINE_BYTES: usize = 16 << 10;

#[derive(Debug, Default)]
pub(super) struct Lines {
    line: Vec<u8>,
    /// Inside a line that does not matter: its head was given out, or never seen.
    skipping: bool,
}

impl Lines {
    /// For a stream that is entered in the middle of a line.
    pub(super) fn from_the_middle() -> Self {
        Self { line: Vec::new(), skipping: true }
    }

    /// Takes the next piece; calls `each` with every line that is complete with it.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) {
        while !bytes.is_empty() {
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if !self.skipping {
                let room = LINE_BYTES - self.line.len();
                self.line.extend_from_slice(&piece[..piece.len().min(room)]);
                if piece.len() > room || end.is_some() {
                    each(&self.line);
                    self.line.clear();
                    self.skipping = end.is_none();
                }
            } else if end.is_some() {
                self.skipping = false;
            }
            bytes = end.map_or(&[][..], |end| &bytes[end + 1..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(mut lines: Lines, pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for piece in pieces {
            lines.feed(piece, |line| out.push(line.to_vec()));
        }
        out
    }

    #[test]
    fn a_line_may_come_in_pieces() {
        assert_eq!(cut(Lines::default(), &[b"ab", b"c\nd\n", b"\nrest"]), [&b"abc"[..], b"d", b""]);
    }

    #[test]
    fn a_line_whose_head_was_missed_is_left_out() {
        assert_eq!(cut(Lines::from_the_middle(), &[b"tail", b"\nwhole\n"]), [b"whole"]);
    }

    #[test]
    fn a_very_long_line_is_cut_and_the_next_one_is_whole() {
        let long = vec![b'x'; 3 * LINE_BYTES];
        let lines = cut(Lines::default(), &[&long, &long, b"\nnext\n"]);
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].len(), &lines[1][..]), (LINE_BYTES, &b"next"[..]));
    }

    proptest::proptest! {
        #[test]
        fn pieces_do_not_change_the_lines(
            bytes in proptest::collection::vec(proptest::prop_oneof![proptest::prelude::Just(b'\n'), proptest::prelude::any::<u8>()], 0..200),
            at in 0..200_usize,
        ) {
            let at = at.min(bytes.len());
            proptest::prop_assert_eq!(
                cut(Lines::default(), &[&bytes]),
                cut(Lines::default(), &[&bytes[..at], &bytes[at..]])
            );
        }
    }
}

//! The kernel log's parsers on any bytes, and what must hold.

use super::join::Joiner;
use super::lines::Lines;
use super::{KEPT_LINES, KernelLog, kmsg, parse, probe, time};
use crate::fuzzing::assert_plain;
use crate::reading::Reading;

/// A stream of records or log lines, in two pieces, as far as the kept lines.
///
/// Input: where to cut the stream, then the stream.
pub(crate) fn kernel_log(bytes: &[u8]) {
    let Some((&cut, stream)) = bytes.split_first() else { return };
    let (first, second) = stream.split_at(stream.len().min(usize::from(cut)));
    let (mut lines, mut found) = (Lines::default(), Vec::new());
    for piece in [first, second, b"\n"] {
        lines.feed(piece, |line| found.push(line.to_vec()));
    }
    let mut whole = Vec::new();
    let mut lines = Lines::default();
    for piece in [stream, b"\n"] {
        lines.feed(piece, |line| whole.push(line.to_vec()));
    }
    assert_eq!(found, whole, "pieces change the lines");

    let (mut joiner, mut out) = (Joiner::default(), Vec::new());
    for line in &found {
        let text = match kmsg::parse_record(line) {
            Some(record) => record.text,
            None => String::from_utf8_lossy(line).into_owned(),
        };
        let _ = time::parse_time(text.split_whitespace().next().unwrap_or_default());
        let _ = probe::parse_uptime_ms(&text);
        if parse::parse_line(&text).is_some() {
            assert!(parse::may_matter(&text), "{text:?} would have been passed over");
        }
        for line in text.lines() {
            joiner.push(Reading::default(), line, &mut out);
        }
        joiner.end_of_poll(&mut out);
    }
    let mut log = KernelLog::default();
    for line in out {
        assert_plain(&line.text);
        assert_plain(line.process.as_deref().unwrap_or_default());
        log.keep(line);
    }
    assert!(log.lines.len() <= KEPT_LINES);
}

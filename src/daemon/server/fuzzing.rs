//! The door for the fuzzer: whatever is asked over the socket, and whatever a client is told.

use axum::http::{Method, Uri};

use crate::api::{Pending, Told};
use crate::when;

use super::asked::Asked;
use super::endpoints::{self, ENDPOINTS};

const NOW_MS: u64 = 1_800_000_000_000;

/// The first byte says what the rest is.
pub(crate) fn requests(bytes: &[u8]) {
    let Some((which, rest)) = bytes.split_first() else { return };
    match which % 3 {
        0 => query(&String::from_utf8_lossy(rest)),
        1 => times(&String::from_utf8_lossy(rest)),
        _ => told(rest),
    }
}

/// A request line's target: understood or refused in words that hold in one line.
fn query(target: &str) {
    let Ok(uri) = target.parse::<Uri>() else { return };
    for endpoint in ENDPOINTS {
        let known = endpoints::parameters(&Method::GET, endpoint.path);
        match Asked::parse(&uri, &known) {
            Ok(asked) => {
                for name in known {
                    let said = [
                        asked.time(name).map(drop),
                        asked.duration(name).map(drop),
                        asked.number(name).map(drop),
                        asked.flag(name).map(drop),
                    ];
                    said.into_iter().filter_map(Result::err).for_each(|no| plain(&no.why.error));
                }
            }
            Err(refusal) => plain(&refusal.why.error),
        }
    }
}

fn plain(text: &str) {
    assert!(!text.is_empty() && text.chars().count() < 400, "{text:?}");
    assert!(!text.chars().any(char::is_control), "control characters in {text:?}");
}

/// A time is a moment, a stretch is no longer than time can be counted, or both are refused.
fn times(text: &str) {
    match when::parse_time(text, NOW_MS) {
        Ok(ms) => assert!(!text.trim().starts_with('-') || ms <= NOW_MS, "{text:?}: {ms}"),
        Err(why) => plain(&why),
    }
    match when::parse_duration(text) {
        Ok(stretch) => assert!(stretch.as_secs_f64() >= 0.0),
        Err(why) => plain(&why),
    }
}

/// The pieces of a stream: the size in which they come changes nothing, and what was understood is
/// told again in the same way.
fn told(bytes: &[u8]) {
    let whole = understand(bytes, bytes.len().max(1));
    assert_eq!(whole, understand(bytes, 7));
    for told in whole.0 {
        let length = told.snapshot.as_ref().map(Vec::len);
        let head = Told::head(told.number, told.lost, &told.sampling, length);
        let Ok(mut again) = head else { panic!("{told:?} cannot be told") };
        again.extend(told.snapshot.iter().flatten());
        assert_eq!(understand(&again, again.len()), (vec![told], false));
    }
}

/// What is told, and whether something stood there that is not understood.
fn understand(bytes: &[u8], size: usize) -> (Vec<Told>, bool) {
    let (mut pending, mut heard) = (Pending::default(), Vec::new());
    for part in bytes.chunks(size) {
        pending.push(part);
        loop {
            match pending.next() {
                Ok(Some(told)) => heard.push(told),
                Ok(None) => break,
                Err(_) => return (heard, true),
            }
        }
    }
    (heard, false)
}

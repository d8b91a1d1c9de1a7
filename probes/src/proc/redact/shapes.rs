//! Secrets by their own look: issuers' prefixes, user and password in URLs, long random strings.
//!
//! Long hexadecimal strings are hard: keys made by `openssl rand -hex 32` look like git revisions,
//! image digests and container ids, which people need to see. Hex is kept where its place says what
//! it is (in a path, after `:` or `@`, after `--revision` and the like) and taken elsewhere. Strings of
//! mixed letters and digits are taken from 28 characters on when they change between small, capital
//! and digit nearly as often as chance would; names of models and classes do not.

use super::REDACTED;

/// Prefix, and how many characters must follow at least.
const PREFIXES: &[(&str, usize)] = &[
    ("hf_", 16),
    ("api_org_", 16),
    ("sk-", 16),
    ("sk_live_", 12),
    ("sk_test_", 12),
    ("rk_live_", 12),
    ("nvapi-", 16),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("gsk_", 16),
    ("xai-", 16),
    ("pplx-", 16),
    ("r8_", 16),
    ("AKIA", 12),
    ("ASIA", 12),
    ("AIza", 20),
    ("ya29.", 16),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxe-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    ("npm_", 20),
    ("pypi-", 20),
    ("dckr_pat_", 12),
    ("dop_v1_", 16),
    ("hvs.", 16),
    ("SG.", 20),
    ("lsv2_", 16),
    ("tvly-", 16),
    ("eyJ", 24),
];

/// Words in front of a hexadecimal string that is no secret.
const ID_NAMES: &[&str] = &[
    "revision",
    "commit",
    "sha",
    "sha1",
    "sha256",
    "digest",
    "rev",
    "id",
    "ref",
    "hash",
    "checksum",
    "uuid",
    "fingerprint",
];

/// How far the first part of a token and the authority of a URL are looked for, so that a hostile
/// command line costs no quadratic time.
const HEAD_LENGTH: usize = 2048;

/// Shorter hexadecimal strings are addresses, short revisions and the like.
const HEX_LENGTH: usize = 32;

const RANDOM_LENGTH: usize = 28;

/// The text without them; `before` is the word in front of the text.
pub(super) fn redact_shapes(text: &str, before: &str) -> (String, bool) {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut found = false;
    let mut at = 0;
    while at < bytes.len() {
        let starts = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        let end = starts.then(|| shape_end(text, at, before)).flatten();
        if let Some(end) = end {
            out.push_str(REDACTED);
            found = true;
            at = end;
            continue;
        }
        let next =
            (at + 1..=bytes.len()).find(|&i| text.is_char_boundary(i)).unwrap_or(bytes.len());
        out.push_str(&text[at..next]);
        at = next;
    }
    (out, found)
}

/// The end of a secret that begins here.
fn shape_end(text: &str, at: usize, before: &str) -> Option<usize> {
    let rest = text.get(at..)?;
    if !rest.as_bytes()[0].is_ascii() {
        return None;
    }
    prefixed(rest)
        .or_else(|| private_key(rest))
        .or_else(|| user_info(text, at))
        .or_else(|| scheme(text, at))
        .or_else(|| random(text, at, before))
        .map(|length| at + length)
}

fn prefixed(rest: &str) -> Option<usize> {
    let key = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    PREFIXES.iter().find_map(|&(prefix, least)| {
        let body = rest.strip_prefix(prefix)?;
        // A token of this kind has its dots; a word such as `eyJ…` in a hash has not.
        let head = body.bytes().take(HEAD_LENGTH).take_while(|&b| key(b));
        if prefix == "eyJ" && !head.into_iter().any(|b| b == b'.') {
            return None;
        }
        let length = body.bytes().take_while(|&b| key(b)).count();
        (length >= least).then_some(prefix.len() + length)
    })
}

fn private_key(rest: &str) -> Option<usize> {
    let head = rest.strip_prefix("-----BEGIN ")?;
    head.split_once("-----")?.0.ends_with("PRIVATE KEY").then(|| match rest.find("-----END ") {
        Some(tail) => {
            let close = rest[tail + 9..].find("-----").map(|at| tail + 9 + at + 5);
            close.unwrap_or(rest.len())
        }
        None => rest.len(),
    })
}

/// User and password behind `://`, where `at` stands right behind it. The user alone can be a token.
fn user_info(text: &str, at: usize) -> Option<usize> {
    let scheme = text[..at].strip_suffix("://")?;
    let rest = &text[at..];
    if !scheme.ends_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let stop = |b: u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'<' | b'>' | b'`');
    let most = rest.floor_char_boundary(HEAD_LENGTH);
    let url = &rest[..rest[..most].bytes().position(stop).unwrap_or(most)];
    let authority =
        &url[..url.bytes().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(url.len())];
    if let Some(end) = authority.rfind('@') {
        let user = &authority[..end];
        // `ssh://git@host` names an account.
        let account = !user.contains(':') && scheme.ends_with("ssh");
        return (!account && user != REDACTED && !user.is_empty()).then_some(end);
    }
    // A password may hold a slash that nobody escaped.
    let (_, port) = authority.split_once(':')?;
    let is_port = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    if is_port || authority.starts_with('[') { None } else { url.rfind('@') }
}

/// The word behind `Bearer`.
fn scheme(text: &str, at: usize) -> Option<usize> {
    let before = text[..at].strip_suffix([' ', '+'])?.trim_end();
    let word = before.get(before.len().checked_sub(6)?..)?;
    if !word.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let end = text[at..].find(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
    let value = &text[at..at + end.unwrap_or(text.len() - at)];
    (value.len() >= 6 && !value.starts_with('$') && value != REDACTED).then_some(value.len())
}

fn random(text: &str, at: usize, before: &str) -> Option<usize> {
    let run = text[at..].bytes().take_while(u8::is_ascii_alphanumeric).count();
    let word = &text[at..at + run];
    if run >= HEX_LENGTH && word.bytes().all(|b| b.is_ascii_hexdigit()) {
        let mixed = word.bytes().any(|b| b.is_ascii_digit())
            && word.bytes().any(|b| b.is_ascii_alphabetic());
        return (mixed && !is_id(text, at, run, before)).then_some(run);
    }
    if run < RANDOM_LENGTH || word.bytes().filter(u8::is_ascii_digit).count() < 3 {
        return None;
    }
    let class = |b: u8| (b.is_ascii_digit(), b.is_ascii_uppercase());
    let changes = word.as_bytes().windows(2).filter(|w| class(w[0]) != class(w[1])).count();
    let mixed = word.bytes().any(|b| b.is_ascii_uppercase())
        && word.bytes().any(|b| b.is_ascii_lowercase());
    if !mixed || changes * 100 < run * 45 {
        return None;
    }
    // The rest of a base64 string goes with it.
    let tail = text[at + run..]
        .bytes()
        .take_while(|&b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'-' | b'_'))
        .count();
    Some(run + tail)
}

/// Whether the place of a hexadecimal string says that it is an id.
fn is_id(text: &str, at: usize, length: usize, before: &str) -> bool {
    let bytes = text.as_bytes();
    let neighbours = [at.checked_sub(1).map(|i| bytes[i]), bytes.get(at + length).copied()];
    if neighbours.contains(&Some(b'/')) || matches!(neighbours[0], Some(b'@')) {
        return true;
    }
    let head = text[..at].trim_end_matches(['=', ':', ' ', '"', '\'']);
    let head = if head.is_empty() { before } else { head };
    let name = head.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    ID_NAMES.iter().any(|id| name.eq_ignore_ascii_case(id))
}

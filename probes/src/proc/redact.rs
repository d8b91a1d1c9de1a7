//! Takes secrets out of command lines and other text from processes.
//!
//! Two ways to find one: by the name in front of it (`--api-key X`, `HF_TOKEN=X`, `"password": "X"`,
//! `Authorization: …`), and by its own shape (`hf_…`, `sk-…`, user and password in a URL, long random
//! strings). Where the end of a value is doubtful, too much is taken: a lost flag costs a look at the
//! process, a printed key costs a key. Kept on purpose: values that only name a secret (`$HF_TOKEN`,
//! `--api-key-file PATH`) or stand for none (`none`, `true`), so that "a key is exposed" stays worth
//! reading.

mod names;
mod shapes;

use names::{Secret, secret_name};
use shapes::redact_shapes;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Shells and what else runs its `-c` argument as text.
const RUNS_TEXT: &[&str] = &["-c", "-lc", "-ec", "-xc", "-ic", "-euxc", "-exc"];

/// Arguments without their secrets, and whether there were any.
pub fn redact_arguments(arguments: &[String]) -> (Vec<String>, bool) {
    // A title is one argument with blanks in it.
    if let [title] = arguments {
        let (text, found) = redact_text(title);
        return (vec![text], found);
    }
    let mut out = Vec::with_capacity(arguments.len());
    let mut found = false;
    let mut expected: Option<Secret> = None;
    let mut before = "";
    for argument in arguments {
        let (text, hit) = match expected {
            Some(kind) if !is_flag(argument) => {
                if kind != Secret::List {
                    expected = None;
                }
                // The X server's flag of that name takes a file.
                let file = before == "-auth" && argument.starts_with('/');
                if file || is_harmless(argument) {
                    (argument.clone(), false)
                } else {
                    (REDACTED.into(), true)
                }
            }
            _ => {
                expected = flag_without_value(argument);
                redact_argument(argument, before)
            }
        };
        found |= hit;
        out.push(text);
        before = argument;
    }
    (out, found)
}

/// Text without its secrets, and whether there were any: a title, a shell's argument, a log line.
pub fn redact_text(text: &str) -> (String, bool) {
    redact_words(text, "")
}

/// `before`: the argument in front of this one.
fn redact_argument(argument: &str, before: &str) -> (String, bool) {
    let glued = argument.strip_prefix("-H").filter(|rest| rest.contains(':'));
    let whole = glued.unwrap_or(argument);
    let name_length = whole.bytes().take_while(|&b| is_name(b)).count();
    let (name, rest) = whole.split_at(name_length);
    let is_text = RUNS_TEXT.contains(&before) && !name.starts_with('-');
    if rest.starts_with(['=', ':']) && !is_text && secret_name(name).is_some() {
        let value = rest[1..].trim_start();
        if is_harmless(value) {
            return (argument.to_string(), false);
        }
        let kept = argument.len() - value.len();
        return (format!("{}{REDACTED}", &argument[..kept]), true);
    }
    if matches!(before, "-u" | "--user" | "--proxy-user" | "--basic")
        && let Some((user, password)) = argument.split_once(':')
    {
        // `1000:1000` is a user and a group, `http://…` an address.
        let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let ids = number(user) && number(password);
        if !ids && !password.starts_with("//") {
            return (format!("{user}:{REDACTED}"), true);
        }
    }
    redact_words(argument, before)
}

/// Whether an argument is a flag, where a secret's value was expected. A secret may start with a dash,
/// so only what has the look of a flag counts.
fn is_flag(argument: &str) -> bool {
    let name = argument.split('=').next().unwrap_or(argument);
    // A flag in which a key was found stays one.
    let name = name.split(REDACTED).next().unwrap_or(name);
    let plain =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.');
    match name.strip_prefix("--") {
        Some("") => true,
        Some(long) => {
            long.len() <= 48 && long.as_bytes()[0].is_ascii_lowercase() && long.bytes().all(plain)
        }
        None => {
            name.len() == 2 && name.starts_with('-') && name.as_bytes()[1].is_ascii_alphabetic()
        }
    }
}

fn flag_without_value(argument: &str) -> Option<Secret> {
    let flag = argument.starts_with('-') && argument.bytes().all(is_name);
    if flag { secret_name(argument) } else { None }
}

/// Values that are no secret whatever their name says.
fn is_harmless(value: &str) -> bool {
    let value = value.trim().trim_matches(['"', '\'']);
    let lower = value.to_ascii_lowercase();
    let reference = value.strip_prefix('$').is_some_and(|name| {
        let name = name.strip_prefix('{').and_then(|n| n.strip_suffix('}')).unwrap_or(name);
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !name.as_bytes()[0].is_ascii_digit()
    });
    matches!(lower.as_str(), "" | "none" | "null" | "true" | "false" | REDACTED)
        || reference
        || value.bytes().all(|b| b == b'*')
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
}

/// Goes through text name by name; what is left goes through the shapes.
fn redact_words(text: &str, before: &str) -> (String, bool) {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut found = false;
    // The quote that is open where we are; a value without quotes of its own ends with it.
    let mut outer: Option<u8> = None;
    let mut at = 0;
    while at < bytes.len() {
        if !is_name(bytes[at]) {
            let b = bytes[at];
            if matches!(b, b'"' | b'\'') && (at == 0 || bytes[at - 1] != b'\\') {
                outer = match outer {
                    None => Some(b),
                    Some(open) if open == b => None,
                    other => other,
                };
            }
            // Copies a whole character: bytes above ASCII are never names.
            let next =
                (at + 1..=bytes.len()).find(|&i| text.is_char_boundary(i)).unwrap_or(bytes.len());
            out.push_str(&text[at..next]);
            at = next;
            continue;
        }
        let end = at + bytes[at..].iter().take_while(|&&b| is_name(b)).count();
        let name = &text[at..end];
        let query = at > 0 && matches!(bytes[at - 1], b'?' | b'&') && matches!(name, "key" | "sig");
        let kind = if query { Some(Secret::One) } else { secret_name(name) };
        let value = kind.and_then(|kind| Some((value_start(text, end, name)?, kind)));
        let Some((start, kind)) = value else {
            out.push_str(name);
            at = end;
            continue;
        };
        out.push_str(&text[at..start]);
        let whole_quote =
            outer.filter(|_| at > 0 && matches!(bytes[at - 1], b'"' | b'\'') && bytes[end] == b'=');
        // A name in quotes, as in JSON, had opened a quote that its own end closes.
        if outer.is_some() && outer == bytes.get(end).copied() {
            outer = None;
        }
        let stop = value_end(text, start, kind, outer, whole_quote.is_some());
        let value = &text[start..stop];
        if is_harmless(value) {
            out.push_str(value);
        } else {
            // Quotes are kept, so that what was JSON still is.
            let quote = opening_quote(value).filter(|quote| value.ends_with(quote)).unwrap_or("");
            out.extend([quote, REDACTED, quote]);
            found = true;
        }
        at = stop;
    }
    let (out, shaped) = redact_shapes(&out, before);
    (out, found || shaped)
}

/// Where the value of a name begins that ends at `end`: after `=` or `:`, or after the blank behind a
/// flag. `None` if there is no value.
fn value_start(text: &str, end: usize, name: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let skip = |mut at: usize, set: &dyn Fn(u8) -> bool| {
        while bytes.get(at).is_some_and(|&b| set(b)) {
            at += 1;
        }
        at
    };
    // The name may itself be quoted, and that quote escaped.
    let quoted = skip(end, &|b| matches!(b, b'"' | b'\'' | b'\\'));
    let blank = skip(quoted, &|b| b.is_ascii_whitespace());
    let sign = skip(blank, &|b| matches!(b, b'=' | b':' | b'>'));
    // A backslash before the line's end continues the line.
    let gap = |at| skip(at, &|b: u8| b.is_ascii_whitespace() || b == b'\\');
    let start = if sign > blank {
        gap(sign)
    } else if name.starts_with('-') && blank > quoted {
        gap(blank)
    } else {
        return None;
    };
    // The backslash may belong to an escaped quote.
    let start = if bytes.get(start).is_some_and(|b| matches!(b, b'"' | b'\'')) {
        start - bytes[..start].iter().rev().take_while(|&&b| b == b'\\').count()
    } else {
        start
    };
    (start < bytes.len() && !(sign == blank && is_flag(word(&text[start..])))).then_some(start)
}

fn word(text: &str) -> &str {
    text.split_ascii_whitespace().next().unwrap_or_default()
}

/// Where a value ends that begins at `start`.
fn value_end(
    text: &str,
    start: usize,
    kind: Secret,
    outer: Option<u8>,
    whole_quote: bool,
) -> usize {
    let bytes = text.as_bytes();
    let find = |from: usize, stop: &dyn Fn(u8) -> bool| {
        bytes[from..].iter().position(|&b| stop(b)).map_or(bytes.len(), |length| from + length)
    };
    if whole_quote {
        return find(start, &|b| Some(b) == outer);
    }
    let mut end = match bytes.get(start) {
        Some(b'[' | b'{') => bracket_end(bytes, start),
        _ => start,
    };
    // A list of JSON ends with its bracket; a word may begin with a bracket and go on behind it.
    if end == start || bytes.get(end).is_some_and(|&b| !is_separator(b)) {
        end = word_end(bytes, end, outer);
    }
    if kind == Secret::Line && end < bytes.len() && !is_quoted(bytes, start) {
        // A scheme's parameters may be quoted; only the quote around the header ends it.
        end = find(start, &|b| b == b'\n' || Some(b) == outer);
    }
    if kind == Secret::List {
        loop {
            let next = end + bytes[end..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
            let following = word(&text[next..]);
            let operator = following.starts_with(['|', '&', ';', '>', '<', '\\', '}', ']', ')']);
            if next == end
                || following.is_empty()
                || operator
                || is_flag(following)
                || Some(bytes[next]) == outer
            {
                break;
            }
            end = word_end(bytes, next, outer);
        }
    }
    end
}

/// The quote with which a value starts, with the backslashes before it.
fn opening_quote(value: &str) -> Option<&str> {
    let slashes = value.bytes().take_while(|&b| b == b'\\').count();
    let quote = value.get(..=slashes).filter(|quote| quote.ends_with(['"', '\'']))?;
    (value.len() > quote.len()).then_some(quote)
}

fn is_quoted(bytes: &[u8], start: usize) -> bool {
    bytes[start..]
        .iter()
        .find(|&&b| b != b'\\' && b != b'$')
        .is_some_and(|b| matches!(b, b'"' | b'\''))
}

/// What follows a whole value in JSON or in a shell.
fn is_separator(b: u8) -> bool {
    matches!(b, b',' | b'}' | b']' | b')' | b';' | b'|' | b'&')
}

/// Behind the bracket that closes the one at `start`. Brackets in quotes, escaped quotes among them,
/// do not count; without a closing one, all that follows is value.
fn bracket_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut slashes = 0;
    let mut open: Option<(u8, usize)> = None;
    for (at, &b) in bytes.iter().enumerate().skip(start) {
        match (b, open) {
            (b'"' | b'\'', None) => open = Some((b, slashes)),
            (b, Some((quote, before))) if b == quote && slashes <= before => open = None,
            (b'[' | b'{', None) => depth += 1,
            (b']' | b'}', None) => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        slashes = if b == b'\\' { slashes + 1 } else { 0 };
    }
    bytes.len()
}

/// The end of a shell's word: quotes, escapes and plain parts up to a blank or the outer quote.
fn word_end(bytes: &[u8], start: usize, outer: Option<u8>) -> usize {
    let mut at = start;
    while at < bytes.len() {
        let slashes = bytes[at..].iter().take_while(|&&b| b == b'\\').count();
        let Some(&b) = bytes.get(at + slashes) else { return bytes.len() };
        if !matches!(b, b'"' | b'\'') {
            if slashes == 0 && b.is_ascii_whitespace() {
                return at;
            }
            at += slashes + 1;
            continue;
        }
        if Some(b) == outer && slashes == 0 {
            return at;
        }
        // The same quote behind no more backslashes closes it; without one, all that follows is value.
        let mut run = 0;
        let close = bytes[at + slashes + 1..].iter().position(|&c| {
            let closes = c == b && run <= slashes;
            run = if c == b'\\' { run + 1 } else { 0 };
            closes
        });
        let Some(close) = close else { return bytes.len() };
        at += slashes + 1 + close + 1;
        // In JSON a comma or bracket follows, in a shell the word may go on.
        if bytes.get(at).is_none_or(|&b| is_separator(b)) {
            return at;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests;

//! `/proc/PID/cmdline`: what a process was started with, or the title that it gave itself.
//!
//! Arguments end with NUL bytes; a title is one string over the old arguments, padded with blanks or
//! NULs. Kernel threads and zombies have none. Reading goes through the process's memory and can
//! block behind a process that is stuck, so it happens on a thread of its own. Secrets are taken out
//! here, before anything else sees the text; of a line that is cut for its length the last argument
//! goes too, because half a key has not the look of one.

use std::hash::{DefaultHasher, Hasher as _};

use crate::reading::Absence;

use super::engine::{recognise, unnamed_child};
use super::redact::redact_arguments;
use super::task::{Task, clean};

/// Larger ones exist (the kernel allows megabytes) and say nothing more.
const LIMIT_BYTES: usize = 64 << 10;

/// What is kept of it; an engine's line with JSON in its flags has two to four thousand bytes.
const KEEP_BYTES: usize = 8 << 10;

const CUT: &str = " [cut]";

/// A command line without its secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// Arguments joined by blanks; empty for a process without any.
    pub(crate) text: String,
    /// There was a secret in it, readable by every user of the box.
    pub(crate) secret: bool,
    /// What it looks like.
    pub(crate) engine: Option<&'static str>,
    /// A child that only its parent can name, and as what.
    pub(crate) unnamed: Option<&'static str>,
    /// Of the bytes as they were, to see a change without keeping them.
    pub(crate) hash: u64,
}

/// `None` if it is the one that `known` was made of.
pub(crate) fn read_cmdline(
    task: &Task,
    comm: &str,
    known: Option<u64>,
) -> Result<Option<CommandLine>, Absence> {
    let mut bytes = Vec::new();
    task.read("cmdline", LIMIT_BYTES, &mut bytes)?;
    if known == Some(hash(&bytes)) {
        return Ok(None);
    }
    Ok(Some(parse_cmdline(&bytes, comm)))
}

pub(crate) fn parse_cmdline(bytes: &[u8], comm: &str) -> CommandLine {
    let hash = hash(bytes);
    let is_cut = bytes.len() >= LIMIT_BYTES;
    let mut arguments = split(&bytes[..bytes.len().min(LIMIT_BYTES)]);
    if is_cut {
        drop_last_word(&mut arguments);
    }
    let engine = recognise(comm, &arguments);
    let unnamed = unnamed_child(&arguments);
    let (arguments, secret) = redact_arguments(&arguments);
    let mut text = arguments.join(" ");
    if is_cut || text.len() > KEEP_BYTES {
        text.truncate(text.floor_char_boundary(KEEP_BYTES));
        text.push_str(CUT);
    }
    CommandLine { text, secret, engine, unnamed, hash }
}

/// Arguments without the padding behind them. Empty arguments in between are kept.
fn split(bytes: &[u8]) -> Vec<String> {
    let end = bytes.iter().rposition(|&b| b != 0 && b != b' ' && b != b'\n').map_or(0, |at| at + 1);
    if end == 0 {
        return Vec::new();
    }
    // Line ends inside a shell's argument end a header's value, so they are blanks and not U+FFFD.
    let text = |part: &[u8]| {
        let part: Vec<u8> = part
            .iter()
            .map(|&b| if matches!(b, b'\n' | b'\t' | b'\r') { b' ' } else { b })
            .collect();
        clean(&part)
    };
    bytes[..end].split(|&b| b == 0).map(text).collect()
}

fn drop_last_word(arguments: &mut Vec<String>) {
    if arguments.len() > 1 {
        arguments.pop();
    } else if let Some(title) = arguments.first_mut() {
        let end = title.rfind(' ').unwrap_or(0);
        title.truncate(end);
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arguments_are_joined_and_secrets_reported() {
        let line = parse_cmdline(b"vllm\0serve\0m\0--api-key\0abc\0", "vllm");
        assert_eq!(line.text, "vllm serve m --api-key [redacted]");
        assert!(line.secret);
        assert_eq!(line.engine, Some("vLLM server"));
    }

    #[test]
    fn a_title_loses_its_padding() {
        for padding in [[0; 300], [b' '; 300]] {
            let bytes = [b"VLLM::EngineCore".as_slice(), &padding].concat();
            let line = parse_cmdline(&bytes, "VLLM::EngineCor");
            assert_eq!(line.text, "VLLM::EngineCore");
            assert_eq!(line.engine, Some("vLLM engine core"));
            assert!(!line.secret);
        }
        assert_eq!(parse_cmdline(b"", "VLLM::EngineCor").engine, Some("vLLM engine core"));
        assert_eq!(parse_cmdline(b"\0\0\0", "x").text, "");
    }

    #[test]
    fn a_child_of_multiprocessing_is_left_to_its_parent() {
        let line = parse_cmdline(
            b"/usr/bin/python3\0-c\0from multiprocessing.spawn import spawn_main; spawn_main(5)\0--multiprocessing-fork\0",
            "python3",
        );
        assert_eq!((line.engine, line.unnamed), (None, Some("child, starting")));
    }

    #[test]
    fn four_megabytes_cost_little_and_hide_no_half_of_a_key() {
        let mut bytes = b"x\0".to_vec();
        while bytes.len() < LIMIT_BYTES - 10 {
            bytes.extend_from_slice(b"ab\0");
        }
        bytes.extend_from_slice(b"hf_abcdefghijklmnopqrstuvw\0");
        bytes.resize(4 << 20, b'y');
        let line = parse_cmdline(&bytes, "x");
        assert!(line.text.len() <= KEEP_BYTES + CUT.len());
        assert!(line.text.ends_with(CUT));
        let short = parse_cmdline(&bytes[..LIMIT_BYTES], "x");
        assert!(!short.text.contains("hf_"));
    }

    #[test]
    fn hostile_lines_take_no_quadratic_time() {
        for piece in [
            "://",
            "a://",
            "eyJ-",
            "\"a\":",
            "hf_",
            "--api-key \" ",
            "'",
            "\\\"",
            "-----BEGIN X PRIVATE KEY",
        ] {
            let bytes = piece.repeat(LIMIT_BYTES / piece.len());
            let start = std::time::Instant::now();
            let _ = parse_cmdline(bytes.as_bytes(), "x");
            assert!(start.elapsed().as_secs() < 5, "{piece} took {:?}", start.elapsed());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_command_line(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let line = parse_cmdline(&bytes, "x");
            prop_assert!(!line.text.chars().any(char::is_control));
        }
    }
}

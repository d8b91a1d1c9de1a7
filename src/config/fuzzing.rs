//! The door for the fuzzer: a file of any bytes.

use std::fmt::Write as _;
use std::path::Path;

use super::keys::KEYS;
use super::problem::{Place, Problems};
use super::{Config, file};

/// Whatever is written, it is taken or named; what was taken, written again, is taken as the same.
pub(crate) fn config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (mut config, mut problems) = (Config::default(), Vec::new());
    file::apply(&text, Path::new("config.toml"), &mut config, &mut problems);
    let lines = text.matches('\n').count() + 1;
    for problem in &problems {
        let Place::File { line, .. } = &problem.place else { panic!("not of a file: {problem}") };
        assert!(line.is_none_or(|line| (1..=lines).contains(&line)), "{problem}");
        let plain = |c: char| c == '\n' || !c.is_control();
        assert!(problem.to_string().chars().all(plain), "control characters in {problem:?}");
    }
    let _ = Problems(problems).to_string();

    let mut again = String::new();
    let mut section = "";
    for key in KEYS {
        if key.section != section {
            section = key.section;
            let _ = writeln!(again, "[{section}]");
        }
        if let Some(value) = key.show(&config) {
            let _ = writeln!(again, "{} = {value}", key.name);
        }
    }
    let (mut second, mut problems) = (Config::default(), Vec::new());
    file::apply(&again, Path::new("config.toml"), &mut second, &mut problems);
    assert!(problems.is_empty() && second == config, "{again}\n{problems:?}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = usize> {
        0..KEYS.len()
    }

    /// Pieces of which configurations are made, and of which they should not be.
    fn piece() -> impl Strategy<Value = String> {
        let name = key().prop_map(|key| KEYS[key].name.to_string());
        let section = key().prop_map(|key| format!("[{}]\n", KEYS[key].section));
        let path = key().prop_map(|key| KEYS[key].path());
        let number = any::<i64>().prop_map(|number| number.to_string());
        let small = (0..5000_u32).prop_map(|number| number.to_string());
        let marks = prop::sample::select(vec![
            " = ",
            "\n",
            "\"",
            "'",
            "#",
            "[",
            "]",
            "{",
            "}",
            ",",
            ".",
            "\\u001b",
            "true",
            "0x",
            "_",
            "\"off\"",
            "\"/srv/x\"",
            "\"debug\"",
            "\"[::1]:1\"",
            "1979-05-27",
            "nan",
            "\u{1b}",
            "\r",
        ]);
        let text = any::<String>();
        prop_oneof![
            4 => name,
            2 => section,
            1 => path,
            1 => number,
            2 => small,
            8 => marks.prop_map(str::to_string),
            1 => text,
        ]
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_named(pieces in prop::collection::vec(piece(), 0..40)) {
            config(pieces.concat().as_bytes());
        }

        #[test]
        fn any_line_is_taken_or_named(
            key in key(),
            value in prop::collection::vec(piece(), 1..4),
        ) {
            config(format!("{} = {}\n", KEYS[key].path(), value.concat()).as_bytes());
        }
    }
}

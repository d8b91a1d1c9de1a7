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

//! What is wrong with a configuration, in words that name the place and what would be right.

use std::fmt;
use std::path::PathBuf;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A file, and the line where it is known.
    File { path: PathBuf, line: Option<usize> },
    /// The environment.
    Variable(String),
    /// The command line.
    Flag(&'static str),
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) what: String,
    pub(crate) place: Place,
    pub(crate) help: String,
}

/// All that is wrong, in the order of reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

/// More than this helps nobody: the file is another program's.
const MOST_SHOWN: usize = 10;

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: Some(line) } => write!(f, "line {line} of {}", path.display()),
            Self::File { path, line: None } => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "the environment variable {name}"),
            Self::Flag(name) => write!(f, "the flag {name}"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, place, help } = self;
        write!(f, "{what}\n  found: {place}\n  help: {help}")
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().take(MOST_SHOWN).enumerate() {
            write!(f, "{}{problem}", if at == 0 { "" } else { "\nerror: " })?;
        }
        match self.0.len().saturating_sub(MOST_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\nerror: and {more} more"),
        }
    }
}

impl std::error::Error for Problems {}

//! A configuration file: TOML, taken apart with the place of each key, so that whatever is wrong is
//! named with its line.
//!
//! Values of unknown keys are never shown: what somebody wrote under a wrong name may be a secret.

use std::ffi::OsStr;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Config;
use super::keys::{Given, KEYS, find};
use super::problem::{Place, Problem};
use super::suggestion::nearest;

/// Reads a text into a configuration; what is wrong is added to the problems and left as it was.
pub(crate) fn apply(text: &str, path: &Path, config: &mut Config, problems: &mut Vec<Problem>) {
    let mut reader = Reader { text, path, config, problems };
    match DeTable::parse(text) {
        Ok(table) => reader.read("", table.get_ref()),
        Err(error) => {
            let what = format!("not the form of a configuration: {}", error.message().trim());
            reader.complain(what, error.span().map(|span| span.start), ALL_KEYS.into());
        }
    }
}

const ALL_KEYS: &str = "infertop config prints a whole one with comments";

struct Reader<'a> {
    text: &'a str,
    path: &'a Path,
    config: &'a mut Config,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn read(&mut self, section: &str, table: &DeTable) {
        for (name, value) in table {
            let at = name.span().start;
            let name = name.get_ref().as_ref();
            if let Some(key) = find(section, name) {
                let given = given(value);
                if let Err(wanted) = (key.slot)(self.config).put(&given) {
                    let what = format!("{} does not fit: {}", key.path(), shown(value));
                    self.complain(what, Some(value.span().start), format!("write {wanted}"));
                }
            } else if section.is_empty() && is_section(name) {
                match value.get_ref() {
                    DeValue::Table(inner) => self.read(name, inner),
                    _ => self.complain(
                        format!("{name} is a section and not a key"),
                        Some(at),
                        format!("write [{name}], and its keys below"),
                    ),
                }
            } else {
                self.unknown(section, name, value, at);
            }
        }
    }

    fn unknown(&mut self, section: &str, name: &str, value: &Spanned<DeValue>, at: usize) {
        let plain: String =
            name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        let is_table = matches!(value.get_ref(), DeValue::Table(_)) && section.is_empty();
        let what = match section {
            "" if is_table => format!("unknown section [{plain}]"),
            "" => format!("unknown key {plain}"),
            section => format!("unknown key {plain} in [{section}]"),
        };
        let here = KEYS.iter().filter(|key| key.section == section).map(|key| key.name);
        let sections = KEYS.iter().map(|key| key.section).filter(|section| !section.is_empty());
        let elsewhere = KEYS.iter().find(|key| key.name == name && !is_table);
        let help = match (elsewhere, is_table) {
            (Some(key), _) if key.section.is_empty() => {
                format!("{name} stands at the top, above all sections")
            }
            (Some(key), _) => format!("{name} stands under [{}]", key.section),
            (None, true) => match nearest(name, sections) {
                Some(meant) => format!("did you mean [{meant}]?"),
                None => ALL_KEYS.into(),
            },
            (None, false) => {
                let all = KEYS.iter().map(|key| key.name);
                match nearest(name, here).or_else(|| nearest(name, all)) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => ALL_KEYS.into(),
                }
            }
        };
        self.complain(what, Some(at), help);
    }

    fn complain(&mut self, what: String, at: Option<usize>, help: String) {
        let before = |at: usize| self.text.get(..at).unwrap_or(self.text);
        let line = at.map(|at| before(at).matches('\n').count() + 1);
        let place = Place::File { path: self.path.into(), line };
        self.problems.push(Problem { what, place, help });
    }
}

fn is_section(name: &str) -> bool {
    !name.is_empty() && KEYS.iter().any(|key| key.section == name)
}

fn given<'a>(value: &'a Spanned<DeValue>) -> Given<'a> {
    match value.get_ref() {
        DeValue::Integer(number) => match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Given::Number(number),
            Err(_) => Given::Other,
        },
        DeValue::String(text) => Given::Text(text.as_ref()),
        _ => Given::Other,
    }
}

/// A value of a known key, none of which is a secret.
fn shown(value: &Spanned<DeValue>) -> String {
    match value.get_ref() {
        DeValue::Integer(number) => number.to_string(),
        DeValue::String(text) => format!("{:?}", text.chars().take(80).collect::<String>()),
        other => format!("a value of type {}", other.type_str()),
    }
}

/// A text of the environment or of a flag, for a key.
pub(crate) fn put(
    section: &str,
    name: &str,
    text: &OsStr,
    place: Place,
    config: &mut Config,
    problems: &mut Vec<Problem>,
) {
    let Some(key) = find(section, name) else { return };
    if let Err(wanted) = (key.slot)(config).put(&Given::Untyped(text)) {
        let what = format!("{} does not fit: \"{}\"", key.path(), text.display());
        problems.push(Problem { what, place, help: format!("write {wanted}") });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Config, Vec<String>) {
        let (mut config, mut problems) = (Config::default(), Vec::new());
        apply(text, Path::new("/etc/infertop/config.toml"), &mut config, &mut problems);
        (config, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_is_written_is_taken_and_the_rest_stays() {
        let (config, problems) = read(
            "interval_ms = 500\n[store]\nraw_days = 3\n[metrics]\nlisten = \"127.0.0.1:9836\"\n",
        );
        assert_eq!(problems, [""; 0]);
        assert_eq!((config.interval_ms, config.store.raw_days), (500, 3));
        assert_eq!(config.metrics.listen.unwrap().port(), 9836);
        assert_eq!(config.store.rollup_days, Config::default().store.rollup_days);
    }

    #[test]
    fn each_mistake_is_named_with_its_line_and_what_would_be_right() {
        for (text, wanted) in [
            (
                "\n[store]\nraw_day = 7\n",
                "unknown key raw_day in [store]\n  found: line 3 of /etc/infertop/config.toml\n  \
                 help: did you mean raw_days?",
            ),
            (
                "raw_days = 7\n",
                "unknown key raw_days\n  found: line 1 of /etc/infertop/config.toml\n  \
                 help: raw_days stands under [store]",
            ),
            (
                "[store]\ninterval_ms = 500\n",
                "unknown key interval_ms in [store]\n  found: line 2 of /etc/infertop/config.toml\n  \
                 help: interval_ms stands at the top, above all sections",
            ),
            (
                "[stores]\nraw_days = 7\n",
                "unknown section [stores]\n  found: line 1 of /etc/infertop/config.toml\n  \
                 help: did you mean [store]?",
            ),
            (
                "store = 7\n",
                "store is a section and not a key\n  found: line 1 of /etc/infertop/config.toml\n  \
                 help: write [store], and its keys below",
            ),
            (
                "interval_ms = 10\n",
                "interval_ms does not fit: 10\n  found: line 1 of /etc/infertop/config.toml\n  \
                 help: write a number from 250 to 60000",
            ),
            (
                "interval_ms = \"500\"\n",
                "interval_ms does not fit: \"500\"\n  found: line 1 of /etc/infertop/config.toml\n  \
                 help: write a number from 250 to 60000",
            ),
        ] {
            assert_eq!(read(text).1, [wanted]);
        }
    }

    #[test]
    fn a_text_that_is_no_toml_is_named_with_its_line() {
        let (config, problems) = read("interval_ms = 500\nsocket = /run/x\n");
        assert_eq!(config, Config::default());
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("line 2 of"), "{problems:?}");
    }

    #[test]
    fn all_mistakes_are_told_at_once_and_no_secret_with_them() {
        let (_, problems) = read("token = \"hf_secret\"\ncolour = 1\n[store]\nmax_mib = -1\n");
        assert_eq!(problems.len(), 3);
        assert!(!problems.concat().contains("hf_secret"), "{problems:?}");
    }
}

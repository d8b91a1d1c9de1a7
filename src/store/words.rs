//! Kinds and severities as the words that JSON has for them, so that people who open the file with
//! `sqlite3` read what programs read.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The word for a value.
pub(super) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// The value for a word; the default for one that is not known.
pub(super) fn value<T: DeserializeOwned + Default>(word: String) -> T {
    serde_json::from_value(Value::String(word)).unwrap_or_default()
}

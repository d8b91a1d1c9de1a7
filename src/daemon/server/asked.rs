//! What stands behind the question mark. A name that an endpoint does not know is refused: a typing
//! error would otherwise be answered with something that was not asked for.

use std::time::Duration;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;

use crate::when;

use super::answer::{Refusal, nearest};
use super::endpoints;

/// The parameters of a request.
pub(super) struct Asked(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Asked {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let known = endpoints::parameters(&parts.method, parts.uri.path());
        Self::parse(&parts.uri, &known)
    }
}

impl Asked {
    /// Reads the query of a request whose endpoint knows these names.
    pub(super) fn parse(uri: &axum::http::Uri, known: &[&str]) -> Result<Self, Refusal> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| Refusal::bad(format!("the query cannot be read: {error}"), ""))?;
        for (at, (name, _)) in pairs.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let help = match (nearest(name, known.iter().copied()).first(), known) {
                    (Some(near), _) => format!("did you mean {near}?"),
                    (None, []) => format!("{} takes none", uri.path()),
                    (None, _) => format!("{} takes {}", uri.path(), known.join(", ")),
                };
                let error = format!("there is no parameter {}", when::quoted(name));
                return Err(Refusal::bad(error, help));
            }
            if pairs[..at].iter().any(|(before, _)| before == name) {
                return Err(Refusal::bad(format!("{name} is given twice"), "give it once"));
            }
        }
        Ok(Self(pairs))
    }

    /// A parameter as it stands; one that is empty counts as not given.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// A moment.
    pub(super) fn time(&self, name: &str) -> Result<Option<u64>, Refusal> {
        self.read(name, |text| when::parse_time(text, when::now_ms()))
    }

    /// A stretch of time.
    pub(super) fn duration(&self, name: &str) -> Result<Option<Duration>, Refusal> {
        self.read(name, when::parse_duration)
    }

    /// A number.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        self.read(name, |text| {
            text.parse().map_err(|error| format!("{}: {error}", when::quoted(text)))
        })
    }

    /// Yes or no.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        self.read(name, |text| match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(format!("{} is neither true nor false", when::quoted(text))),
        })
    }

    /// The refusal for a parameter that is needed and not there.
    pub(super) fn missing(name: &str) -> Refusal {
        Refusal::bad(format!("{name} is missing"), format!("give it as ?{name}=…"))
    }

    fn read<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Refusal> {
        let read = self.text(name).map(parse).transpose();
        read.map_err(|why| Refusal::bad(format!("cannot read {name}: {why}"), ""))
    }
}

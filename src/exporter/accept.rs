//! Which format a client wants, from its `Accept` header.

use hyper::HeaderMap;
use hyper::header::ACCEPT;

/// A format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Prometheus's own text format, 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// What the client likes best; the text format where it says nothing or nothing that we have,
    /// as people's browsers do.
    pub(crate) fn wanted(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(ACCEPT).into_iter();
        let ranges = accepted.filter_map(|value| value.to_str().ok());
        let ranges: Vec<Range> = ranges.flat_map(|value| value.split(',')).map(range).collect();
        let weight = |format: Self| {
            let fitting = ranges.iter().filter_map(|range| {
                // Of numbers from 0 to 1 the bits are in the same order.
                Some((range.names(format)?, range.weight.to_bits()))
            });
            // The range that names it most closely counts.
            fitting.max().map_or((0, 0), |(closeness, weight)| (weight, closeness))
        };
        let (open, text) = (weight(Self::OpenMetrics), weight(Self::Text));
        if open.0 > 0 && open > text { Self::OpenMetrics } else { Self::Text }
    }

    /// For the header of the answer.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// One part of an `Accept` header.
struct Range {
    media_type: String,
    version: Option<String>,
    /// From 0, not at all, to 1.
    weight: f32,
}

fn range(text: &str) -> Range {
    let mut parts = text.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
    let mut range = Range { media_type, version: None, weight: 1.0 };
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        let value = value.trim().trim_matches('"');
        match key.trim().to_ascii_lowercase().as_str() {
            "q" => range.weight = weight(value),
            "version" => range.version = Some(value.into()),
            _ => {}
        }
    }
    range
}

/// What cannot be read is not wanted.
fn weight(text: &str) -> f32 {
    let weight = text.parse().ok().filter(|weight| (0.0..=1.0).contains(weight));
    weight.map_or(0.0, f32::abs)
}

impl Range {
    /// How closely it names a format, if it does.
    fn names(&self, format: Format) -> Option<u8> {
        let (media_type, family, version) = match format {
            Format::Text => ("text/plain", "text/*", "0.0.4"),
            Format::OpenMetrics => ("application/openmetrics-text", "application/*", "1.0.0"),
        };
        let is_version = self.version.as_ref().is_none_or(|wanted| wanted == version);
        match self.media_type.as_str() {
            named if named == media_type && is_version => Some(3),
            named if named == family => Some(2),
            "*/*" => Some(1),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(accept: &str) -> Format {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        Format::wanted(&headers)
    }

    #[test]
    fn prometheus_gets_openmetrics_and_everybody_else_text() {
        // Prometheus 2.42, 3.0 with and without its own encoding.
        for accept in [
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;\
             q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/\
             openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;\
             q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            "application/openmetrics-text",
            "text/plain;q=0.2, application/openmetrics-text; version=\"1.0.0\"; q=0.3",
        ] {
            assert_eq!(wanted(accept), Format::OpenMetrics, "{accept}");
        }
        assert_eq!(Format::wanted(&HeaderMap::new()), Format::Text);
        for accept in [
            "",
            "*/*",
            "text/*",
            "application/json",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "text/plain, application/openmetrics-text;q=0.9",
            "application/openmetrics-text;version=0.0.1",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=0, */*",
            "application/openmetrics-text;q=much",
            "application/openmetrics-text;q=-0",
            "application/openmetrics-text;q=NaN",
            "application/openmetrics-text;q=2",
            ";;;,,=;q=",
        ] {
            assert_eq!(wanted(accept), Format::Text, "{accept}");
        }
    }
}

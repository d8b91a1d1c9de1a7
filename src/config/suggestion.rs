//! What was likely meant by a name that does not exist.

/// Names less alike than this are different words.
const ALIKE: f64 = 0.6;

/// The name that is most alike, if any is.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase().replace('-', "_");
    let rated = known
        .into_iter()
        .map(|known| (strsim::normalized_damerau_levenshtein(&name, &known.to_lowercase()), known));
    let best = rated.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(alike, _)| *alike >= ALIKE).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_understood_and_another_word_is_not() {
        let known = ["raw_days", "rollup_days", "max_mib"];
        assert_eq!(nearest("raw_day", known), Some("raw_days"));
        assert_eq!(nearest("max-mib", known), Some("max_mib"));
        assert_eq!(nearest("rolup_days", known), Some("rollup_days"));
        assert_eq!(nearest("colour", known), None);
    }
}

//! The commented default, made from the table of keys.

use std::fmt::Write as _;

use super::Config;
use super::keys::KEYS;

const HEAD: &str = "\
# Configuration of `infertop daemon`. Read in this order, the later one counting more: these
# defaults, /etc/infertop/config.toml, ~/.config/infertop/config.toml, the environment, flags.
# A daemon that runs notices when a file changes.
";

/// A file in which every key stands in a comment, with its default.
pub(crate) fn commented_default() -> String {
    let config = Config::default();
    let mut text = HEAD.to_string();
    let mut section = "";
    for key in KEYS {
        if key.section != section {
            section = key.section;
            let _ = write!(text, "\n[{section}]\n");
        }
        text.push('\n');
        for line in key.help.lines() {
            let _ = writeln!(text, "# {line}");
        }
        let variable = key.variables().pop().unwrap_or_default();
        let again = if key.live { "" } else { "; a change needs a restart" };
        let _ = writeln!(text, "# Variable {variable}{again}.");
        let value = key.show(&config).unwrap_or_else(|| format!("\"{}\"", key.example));
        let _ = writeln!(text, "#{} = {value}", key.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::file::apply;

    const PAGE_HEAD: &str = "\
# Configuration

Made from the table of keys; `UPDATE_DOCS=1 cargo test --lib config::document` writes it anew.
`infertop config` prints what follows, to begin a file with:

```sh
infertop config | sudo install -D -m 644 /dev/stdin /etc/infertop/config.toml
infertop config --check
```

A key that is not listed is refused, with the file, the line and the likely name. A daemon that runs
reads a changed file by itself, on SIGHUP and on `POST /v1/reload`; a broken one is reported, in the
log and in `/v1/health`, and the last good one stays. `infertop daemon --config FILE` reads that file
alone. An empty variable says nothing; one that is nearly a key's is refused.

";

    #[test]
    fn the_configuration_page_says_what_the_table_says() {
        let page = format!("{PAGE_HEAD}```toml\n{}```\n", commented_default());
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let stands = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(stands == page, "docs/configuration.md is stale: run with UPDATE_DOCS=1");
    }

    #[test]
    fn the_commented_default_is_the_default_with_and_without_its_comments() {
        let text = commented_default();
        let (mut config, mut problems) = (Config::default(), Vec::new());
        apply(&text, Path::new("default"), &mut config, &mut problems);
        assert_eq!((&config, problems.len()), (&Config::default(), 0));

        let plain: Vec<&str> = text
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with(' ') => rest,
                _ => line,
            })
            .collect();
        apply(&plain.join("\n"), Path::new("default"), &mut config, &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        for key in KEYS.iter().filter(|key| key.example.is_empty()) {
            assert_eq!(key.show(&config), key.show(&Config::default()), "{}", key.path());
        }
    }
}

//! Names whose values are secrets: of flags, of variables, of keys in JSON and YAML, of headers.
//!
//! A name is taken apart into words (`HF_TOKEN`, `--hf-token`, `hfToken` are all `hf`, `token`), and
//! the words are looked up. Engines have many names with `token` and `key` that are harmless
//! (`--max-num-batched-tokens`, `--eos-token`, `--ssl-keyfile`), which the tables leave out.

/// How far the value of a name reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secret {
    /// One word.
    One,
    /// All words up to the next flag: engines take several keys after `--api-key`.
    List,
    /// The rest of the line: headers with a scheme before the secret.
    Line,
}

/// Secret wherever they stand in a name.
const ANYWHERE: &[&str] = &[
    "apikey",
    "apikeys",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "pwd",
    "secret",
    "secrets",
    "webhook",
];

/// Secret at the end of a name.
const AT_END: &[&str] = &["jwt", "pass", "pat", "signature", "sig", "token", "auth", "accesskey"];

/// Secret at the end only after one of [`KEY_OWNERS`].
const KEYS: &[&str] = &["key", "keys", "tokens"];

/// What makes a key one that opens something.
const KEY_OWNERS: &[&str] = &[
    "access",
    "account",
    "admin",
    "api",
    "auth",
    "bearer",
    "client",
    "encryption",
    "hmac",
    "license",
    "master",
    "private",
    "refresh",
    "secret",
    "service",
    "shared",
    "signing",
    "ssh",
    "storage",
];

/// Tokens that text is made of.
const TEXT_TOKENS: &[&str] = &[
    "audio",
    "bos",
    "boi",
    "by",
    "cls",
    "delimiter",
    "draft",
    "each",
    "end",
    "eoi",
    "eos",
    "extra",
    "first",
    "image",
    "img",
    "last",
    "mask",
    "max",
    "new",
    "next",
    "num",
    "one",
    "pad",
    "per",
    "placeholder",
    "prefix",
    "prompt",
    "sep",
    "separator",
    "single",
    "special",
    "start",
    "stop",
    "suffix",
    "think",
    "tool",
    "unk",
    "video",
];

/// A name that ends like this tells where or what the secret is, not the secret.
const ABOUT: &[&str] = &[
    "budget", "count", "dir", "env", "expiry", "field", "file", "folder", "format", "id", "ids",
    "keyfile", "len", "length", "limit", "manager", "mode", "name", "path", "provider", "regex",
    "size", "timeout", "ttl", "type", "uri",
];

/// Switches.
const OFF: &[&str] = &["no", "disable", "skip", "enable"];

/// What the value of this name is, if it is a secret.
pub(super) fn secret_name(name: &str) -> Option<Secret> {
    if name.len() > 128 || matches!(name, "PWD" | "OLDPWD") {
        return None;
    }
    let flag = name.starts_with('-');
    let words = words(name);
    let last = words.last()?.as_str();
    let previous = words.len().checked_sub(2).map_or("", |at| words[at].as_str());
    let has = |table: &[&str], word: &str| table.contains(&word);
    if has(ABOUT, last) || (flag && has(OFF, &words[0])) {
        return None;
    }
    match last {
        "authorization" | "cookie" => return Some(Secret::Line),
        "bearer" if !flag => return None,
        _ => {}
    }
    let variable = !name.bytes().any(|b| b.is_ascii_lowercase()) && words.len() > 1;
    let secret = words.iter().any(|word| has(ANYWHERE, word))
        || (has(AT_END, last) && !has(TEXT_TOKENS, previous))
        || (has(KEYS, last) && has(KEY_OWNERS, previous))
        || (variable && matches!(last, "key" | "keys"));
    if !secret {
        return None;
    }
    let several = flag && previous == "api" && matches!(last, "key" | "keys");
    Some(if several { Secret::List } else { Secret::One })
}

/// The words of a name in lower case, cut at `-`, `_`, `.` and where capitals begin.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut small = false;
    for c in name.chars() {
        let cut = matches!(c, '-' | '_' | '.');
        if (cut || (small && c.is_ascii_uppercase())) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if !cut {
            word.push(c.to_ascii_lowercase());
        }
        small = c.is_ascii_lowercase();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            "--api-key",
            "--api_key",
            "--hf-token",
            "--token",
            "--password",
            "--secret-key",
            "--secret",
            "HF_TOKEN",
            "WANDB_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "OPENAI_KEY",
            "DB_PASSWORD",
            "MY_KEY",
            "api_key",
            "apiKey",
            "accessToken",
            "client_secret",
            "x-api-key",
            "Authorization",
            "PGPASSWORD_X_SECRET",
            "--gradio-auth",
            "--admin-api-key",
            "--use-auth-token",
            "--api-tokens",
            "AZURE_STORAGE_KEY",
        ] {
            assert!(secret_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn names_that_only_sound_like_it_are_not() {
        for name in [
            "--max-num-batched-tokens",
            "--max-tokens",
            "--tokenizer",
            "--tokenizer-mode",
            "--eos-token",
            "--skip-tokenizer-init",
            "--ssl-keyfile",
            "--api-key-file",
            "--sort-key",
            "key",
            "token_ids",
            "PWD",
            "--no-password",
            "--reasoning-parser",
            "--enable-auth",
            "max_tokens_per_key",
            "",
            "--",
            ".",
            "--secret-name",
            "--kv-cache-dtype",
            "authors",
            "--pad-token",
        ] {
            assert_eq!(secret_name(name), None, "{name}");
        }
    }
}

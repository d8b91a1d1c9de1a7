//! What must go, what must stay, and secrets planted everywhere.

use proptest::prelude::*;

use super::*;

fn arguments(command: &str) -> Vec<String> {
    command.split('|').map(str::to_string).collect()
}

/// Arguments are separated by `|`.
fn check(command: &str, expected: &str) {
    let (out, found) = redact_arguments(&arguments(command));
    assert_eq!(out.join("|"), expected);
    assert_eq!(found, expected.contains(REDACTED), "{command}");
}

#[test]
fn known_flags_lose_their_values() {
    check("vllm|serve|m|--api-key|abc|--port|80", "vllm|serve|m|--api-key|[redacted]|--port|80");
    check(
        "vllm|serve|m|--api-key|a|b|c|--port|80",
        "vllm|serve|m|--api-key|[redacted]|[redacted]|[redacted]|--port|80",
    );
    check(
        "vllm|serve|m|--api-key=abc def|--port|80",
        "vllm|serve|m|--api-key=[redacted]|--port|80",
    );
    check("x|--hf-token|--port|80", "x|--hf-token|--port|80");
    check("x|--password|-Secret1", "x|--password|[redacted]");
    check("env|HF_TOKEN=a b|vllm|serve", "env|HF_TOKEN=[redacted]|vllm|serve");
    check(
        "curl|-H|Authorization: Bearer abc|http://h/",
        "curl|-H|Authorization: [redacted]|http://h/",
    );
    check("curl|-HX-Api-Key: abc|http://h/", "curl|-HX-Api-Key: [redacted]|http://h/");
    check("curl|-u|me:pw|http://h/", "curl|-u|me:[redacted]|http://h/");
    check("x|--gradio-auth|me:pw", "x|--gradio-auth|[redacted]");
}

#[test]
fn text_inside_an_argument_is_searched() {
    check(
        "sh|-c|HF_TOKEN=abc vllm serve m --api-key \"d e\" --port 80",
        "sh|-c|HF_TOKEN=[redacted] vllm serve m --api-key \"[redacted]\" --port 80",
    );
    check(
        "sh|-c|curl -H \"Authorization: Bearer abc\" http://h/",
        "sh|-c|curl -H \"Authorization: [redacted]\" http://h/",
    );
    check(
        "x|--args-json|{\"api_key\": \"abc\", \"port\": 80}",
        "x|--args-json|{\"api_key\": \"[redacted]\", \"port\": 80}",
    );
    check(
        "x|--args-json|{\"api_key\":[\"abc\",\"d\"],\"port\":80}",
        "x|--args-json|{\"api_key\":[redacted],\"port\":80}",
    );
    check(
        "x|{\"api_key\":[[\"a]b\"],{\"c\":\"d\"}],\"port\":80}",
        "x|{\"api_key\":[redacted],\"port\":80}",
    );
    check(
        "sh|-c|x \"{\\\"api_key\\\": [\\\"a]b\\\"], \\\"c\\\": 1}\"",
        "sh|-c|x \"{\\\"api_key\\\": [redacted], \\\"c\\\": 1}\"",
    );
    check("sh|-c|x --password=[ab]cd --port 80", "sh|-c|x --password=[redacted] --port 80");
    check("x|{'hf_token': 'abc', 'a': 1}", "x|{'hf_token': '[redacted]', 'a': 1}");
    check(
        "sh|-c|x --config \"{\\\"api_key\\\": \\\"abc\\\"}\"",
        "sh|-c|x --config \"{\\\"api_key\\\": \\\"[redacted]\\\"}\"",
    );
    check("x|a Authorization: Digest response=\"abc\", n=\"d\"", "x|a Authorization: [redacted]");
    check(
        "sh|-c|curl -H 'Authorization: Bearer \"abc\"' http://h/",
        "sh|-c|curl -H 'Authorization: [redacted]' http://h/",
    );
    check("one title --api-key abc --port 80", "one title --api-key [redacted] --port 80");
    check("sh|-c|x --token \\\n  abc --port 80", "sh|-c|x --token \\\n  [redacted] --port 80");
}

#[test]
fn shapes_are_known_without_a_name() {
    check("x|hf_abcdefghijklmnopqrst", "x|[redacted]");
    check("x|--note=sk-proj-abcdefghijklmnop", "x|--note=[redacted]");
    check("x|https://me:pw@host:80/path", "x|https://[redacted]@host:80/path");
    check("x|redis://:p/w@host/0", "x|redis://[redacted]@host/0");
    check("x|https://host/v1?key=abc&model=m", "x|https://host/v1?key=[redacted]");
    check("x|eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF_1", "x|[redacted]");
    check("x|aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2eF", "x|[redacted]");
    check("x|0123456789abcdef0123456789abcdef", "x|[redacted]");
}

#[test]
fn a_flag_in_which_a_key_was_found_stays_a_flag() {
    let (once, _) = redact_text("x --api-key \"d e\" --tvly-0123456789abcdefgh 80");
    assert_eq!(once, "x --api-key \"[redacted]\" --[redacted] 80");
    assert_eq!(redact_text(&once).0, once);
}

#[test]
fn what_people_need_to_see_stays() {
    let server = "Xorg|vt2|-auth|/run/user/1000/gdm/Xauthority|-nolisten|tcp";
    check(server, server);
    check("x|-auth|Zq9secret", "x|-auth|[redacted]");
    for command in [
        "vllm|serve|meta-llama/Llama-3.1-8B-Instruct|--max-num-batched-tokens|8192|--tokenizer|x",
        "vllm|serve|m|--revision|0123456789abcdef0123456789abcdef01234567",
        "x|/root/.cache/hub/models--a--b/snapshots/0123456789abcdef0123456789abcdef01234567/model.safetensors",
        "x|repo/image@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "containerd-shim|-id|0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "x|GPU-8c1f2b3a-0d4e-4f5a-9b6c-7d8e9f0a1b2c",
        "python|-c|from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)",
        "sh|-c|HF_TOKEN=$HF_TOKEN vllm serve m --api-key ${KEY}",
        "x|--api-key-file|/run/secrets/key|--ssl-keyfile|/etc/k.pem",
        "x|https://host:8000/v1/models|tcp://127.0.0.1:29500",
        "x|--eos-token|</s>|--pad-token=<pad>",
        "x|DeepSeekR1DistillQwen14BForCausalLM|Qwen2VLForConditionalGenerationWithCache",
        "docker|run|-u|1000:1000|image",
        "VLLM::Worker_TP0",
    ] {
        check(command, command);
    }
}

fn secret() -> impl Strategy<Value = String> {
    // Words that nothing else in the templates contains.
    "[A-Za-z0-9][A-Za-z0-9!#%+./:@^_~-]{8,40}Zq9"
}

/// Where `<S>` stands the secret is planted.
const PLACES: &[&str] = &[
    "vllm|serve|m|--api-key|<S>",
    "vllm|serve|m|--api-key|<S>|<S>|--port|1",
    "x|--api-key=<S>",
    "x|--hf-token|<S>|y",
    "x|--secret-thing=<S>",
    "x|--password|<S>",
    "env|MY_TOKEN=<S>|x",
    "env|DB_PASSWORD=a <S> b|x",
    "curl|-H|Authorization: Bearer <S>|y",
    "curl|-H|X-Api-Key: <S>",
    "sh|-c|MY_KEY=<S> x",
    "sh|-c|x --api-key <S> y; z",
    "sh|-c|x --api-key '<S>' --port 1",
    "sh|-c|x --api-key \"<S>\" --port 1",
    "sh|-c|x --api-key=\"<S>\" --port 1",
    "sh|-c|x \"--api-key=<S>\" --port 1",
    "sh|-c|export A_SECRET='<S>'; x",
    "sh|-c|x -H 'Authorization: Bearer <S>' y",
    "x|{\"api_key\": \"<S>\", \"b\": 1}",
    "x|{\"a\":{\"hf_token\":\"<S>\"},\"b\":1}",
    "x|{\"api_key\":[\"<S>\",\"<S>\"],\"b\":1}",
    "x|{'password': '<S>'}",
    "x|password: <S>",
    "sh|-c|x \"{\\\"api_key\\\": \\\"<S>\\\"}\" y",
    "a title with --token <S> in it",
    "a title with MY_TOKEN=<S> in it",
    "x|don't; --api-key <S>",
    "x|\u{e9}\u{fffd}--token=<S>",
];

proptest! {
    #[test]
    fn a_planted_secret_never_survives(secret in secret(), place in 0..PLACES.len()) {
        let command = PLACES[place].replace("<S>", &secret);
        let (out, found) = redact_arguments(&arguments(&command));
        let out = out.join(" ");
        prop_assert!(found, "{command}");
        prop_assert!(!out.contains(&secret), "{command} became {out}");
        // Not even a part that one could go on from.
        prop_assert!(!out.contains("Zq9"), "{command} became {out}");
        prop_assert!(!out.contains(&secret[..8]), "{command} became {out}");
    }

    #[test]
    fn a_planted_shape_never_survives(
        shape in prop_oneof![
            "hf_[A-Za-z0-9]{34}", "sk-[A-Za-z0-9]{40}", "sk-proj-[A-Za-z0-9_-]{60}[A-Za-z0-9]", "nvapi-[A-Za-z0-9_-]{60}[A-Za-z0-9]",
            "ghp_[A-Za-z0-9]{36}", "AKIA[A-Z0-9]{16}", "AIza[A-Za-z0-9_-]{34}[A-Za-z0-9]", "xoxb-[0-9]{12}-[A-Za-z0-9]{24}",
            "eyJ[A-Za-z0-9]{20}\\.eyJ[A-Za-z0-9]{20}\\.[A-Za-z0-9]{20}", "glpat-[A-Za-z0-9]{20}",
        ],
        before in "([a-z ]*[ =:,;'\"(/\u{e9}-])?",
        after in "([ ,;'\")/&\u{e9}][a-z ]*)?",
        first in "[a-z]{1,5}",
    ) {
        let command = vec![first, format!("{before}{shape}{after}")];
        let (out, found) = redact_arguments(&command);
        prop_assert!(found && !out[1].contains(&shape[8..]), "{command:?} became {out:?}");
        let (text, found) = redact_text(&command[1]);
        prop_assert!(found && !text.contains(&shape[8..]), "{command:?} became {text}");
    }

    #[test]
    fn a_password_in_a_url_never_survives(user in "[a-o]{0,6}", secret in "[A-Za-z0-9!%._~@-]{6,20}Zq9", around in "[ '\"=]") {
        let (out, _) = redact_text(&format!("go{around}postgres://{user}:{secret}@db.local:5432/x{around}"));
        prop_assert!(!out.contains("Zq9"), "{out}");
        prop_assert!(out.contains("db.local:5432/x"), "{out}");
    }

    #[test]
    fn any_text_can_be_redacted_and_again(text in ".{0,200}", more in prop::collection::vec("[-=:'\"\\\\ {}a-z]{0,12}|--api-key|TOKEN=|password:", 0..10)) {
        let text = format!("{text}{}", more.concat());
        let (once, _) = redact_text(&text);
        prop_assert_eq!(&redact_text(&once).0, &once);
        let _ = redact_arguments(&[text.clone(), once, text]);
    }
}

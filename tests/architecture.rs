//! House rules that no compiler holds: which crate may know which, how long a file gets, where the
//! roots of the machine stand, what a cause and a metric are called.
//!
//! An exception is a line in a list here, with its reason.

#![allow(missing_docs)]
// Clippy's exception for tests does not reach the functions that tests call.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use probes::metric::{Kind, Metric};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files with this ending below some folders, with their path from the root.
fn files(folders: &[&str], ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = open.pop() {
        for entry in
            std::fs::read_dir(&folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()))
        {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "target") {
                    open.push(path);
                }
            } else if path.to_str().is_some_and(|path| path.ends_with(ending)) {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_string();
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The sources of the product.
const PRODUCT: &[&str] = &["src", "probes/src", "panels/src", "playbooks/src"];

/// A file that holds nothing but tests or what they need.
fn is_test_file(name: &str) -> bool {
    ["tests.rs", "testing.rs", "fake_tree.rs", "fuzzing.rs"].iter().any(|end| name.ends_with(end))
        || name.contains("/tests/")
}

/// The lines before a file's own tests, which stand at its end.
fn without_tests(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    let begin = lines.windows(2).position(|two| {
        two[0].trim() == "#[cfg(test)]" && two[1].starts_with("mod ") && two[1].ends_with('{')
    });
    lines.truncate(begin.unwrap_or(lines.len()));
    lines
}

/// The lines that are code: no comments, no tests.
fn code(text: &str) -> impl Iterator<Item = &str> {
    without_tests(text).into_iter().filter(|line| !line.trim_start().starts_with("//"))
}

fn manifest(folder: &str) -> toml::Table {
    let text = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
    text.parse().unwrap()
}

/// The names under which a crate uses others, in the sections that end like this.
fn dependencies(folder: &str) -> Vec<String> {
    let manifest = manifest(folder);
    let mut names: Vec<String> = Vec::new();
    for section in ["dependencies", "build-dependencies"] {
        names.extend(
            manifest
                .get(section)
                .and_then(toml::Value::as_table)
                .into_iter()
                .flat_map(|t| t.keys().cloned()),
        );
    }
    assert!(
        manifest.get("target").is_none(),
        "{folder}: dependencies of a target are not looked at"
    );
    names
}

#[test]
fn the_crates_know_each_other_in_one_direction_only() {
    const OURS: [&str; 3] = ["probes", "panels", "playbooks"];
    for (folder, wanted) in [
        ("probes", &[][..]),
        ("panels", &["probes"]),
        ("playbooks", &["probes"]),
        (".", &["panels", "playbooks", "probes"]),
    ] {
        let mut known = dependencies(folder);
        known.retain(|name| OURS.contains(&name.trim_start_matches("infertop-")));
        known.sort();
        assert_eq!(known, wanted, "what {folder} knows");
    }
}

#[test]
fn the_machine_is_read_without_terminal_and_without_async() {
    let terminal = ["ratatui", "crossterm", "termion", "termwiz", "console", "indicatif", "vt100"];
    let asynchronous = ["tokio", "async-std", "smol", "futures", "mio", "hyper", "axum", "reqwest"];
    for (folder, kinds) in [
        ("probes", [&terminal[..], &asynchronous]),
        ("playbooks", [&terminal, &asynchronous]),
        ("panels", [&[], &asynchronous]),
    ] {
        for name in dependencies(folder) {
            let of_kind = |known: &&str| name == *known || name.starts_with(&format!("{known}-"));
            let found = kinds.iter().flat_map(|kind| kind.iter()).any(of_kind);
            assert!(!found, "{folder} depends on {name}");
        }
    }
}

#[test]
fn no_file_is_longer_than_five_hundred_lines_without_its_tests() {
    // Uniform lists may be long; long logic may not.
    const LISTS: [(&str, &str); 1] =
        [("tests/gpubox/src/spec.rs", "the words of a scenario, one field each")];
    let mut folders = PRODUCT.to_vec();
    folders.extend([
        "tests/gpubox/src",
        "tests/gpubox/nvml/src",
        "tests/gpubox/cuda/src",
        "tests/promises",
    ]);
    for (name, text) in files(&folders, ".rs") {
        let lines = without_tests(&text).len();
        let allowed = LISTS.iter().any(|(list, _)| *list == name) || is_test_file(&name);
        assert!(
            lines <= 500 || allowed,
            "{name} has {lines} lines: what are the two things in it?"
        );
    }
}

#[test]
fn the_roots_of_the_machine_stand_in_one_file() {
    const OWN: [(&str, &str); 4] = [
        ("probes/src/machine.rs", "the one file"),
        ("src/cli.rs", "the default of the flags that set them"),
        ("src/own_cost.rs", "what this process itself costs, whatever machine is looked at"),
        ("probes/src/nvml/calls.rs", "the state of a thread of this process"),
    ];
    // Panels read nothing (held below); they may speak of such places.
    for (name, text) in files(&["src", "probes/src", "playbooks/src"], ".rs") {
        if is_test_file(&name) || OWN.iter().any(|(own, _)| *own == name) {
            continue;
        }
        for line in code(&text) {
            for literal in ["\"/proc", "\"/sys"] {
                // A path is one word; what is said to people has several.
                let path = |at: usize| {
                    let text = line[at + 1..].split('"').next().unwrap_or_default();
                    !text.contains(' ')
                };
                let found = line.match_indices(literal).any(|(at, _)| path(at));
                assert!(!found, "{name}: {}\n  help: take it from Machine", line.trim());
            }
        }
    }
}

#[test]
fn panels_know_no_clock_no_disk_no_environment() {
    let outside =
        ["std::fs", "std::env", "std::net", "std::process", "std::thread", "SystemTime", "Instant"];
    for (name, text) in files(&["panels/src"], ".rs") {
        for line in code(&text) {
            let found = outside.iter().find(|word| line.contains(**word));
            assert!(found.is_none(), "{name}: {}", line.trim());
        }
    }
}

#[test]
fn unsafe_code_stands_in_the_files_that_call_the_driver() {
    const CALLERS: [(&str, &str); 3] = [
        ("probes/src/nvml.rs", "the calls and structs of the driver's library"),
        ("probes/src/nvml/session.rs", "the door through which every call goes"),
        ("probes/src/nvml/fields.rs", "a value is a union whose type stands beside it"),
    ];
    for (name, text) in files(PRODUCT, ".rs") {
        let found = code(&text).any(|line| {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.into_iter().any(|word| word == "unsafe")
        });
        let allowed = CALLERS.iter().any(|(caller, _)| *caller == name);
        assert!(!found || allowed, "{name} has unsafe code");
    }
}

#[test]
fn names_of_files_say_what_is_in_them() {
    for (name, _) in files(&["src", "probes", "panels", "playbooks", "tests"], ".rs") {
        let file = name.rsplit('/').next().unwrap();
        let says_nothing =
            ["mod.rs", "utils.rs", "util.rs", "common.rs", "helpers.rs", "helper.rs", "misc.rs"];
        assert!(!says_nothing.contains(&file), "{name}");
    }
}

/// The ids that follow a mark in the code, up to the next quotation mark.
fn ids(text: &str, mark: &str) -> Vec<String> {
    let parts = text.split(mark).skip(1);
    parts.filter_map(|part| Some(part.split_once('"')?.0.to_string())).collect()
}

#[test]
fn ids_of_causes_are_words_joined_by_underscores() {
    let mut found = Vec::new();
    for (name, text) in files(PRODUCT, ".rs") {
        let text = code(&text).collect::<Vec<_>>().join("\n");
        for mark in ["problem(\"", "problem(\n            \"", "cause: \"", "cause == \""] {
            found.extend(ids(&text, mark).into_iter().map(|id| (name.clone(), id)));
        }
    }
    assert!(found.len() > 20, "{found:?}");
    for (name, id) in found {
        let words = id.split('_').all(|word| {
            !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        });
        assert!(words && id.contains('_'), "{name}: {id}");
    }
}

fn check_metrics<S: 'static>(
    metrics: impl Iterator<Item = &'static Metric<S>>,
    subject: &str,
) -> Vec<&'static str> {
    const UNITS: [&str; 14] = [
        "bytes",
        "seconds",
        "ratio",
        "celsius",
        "watts",
        "hertz",
        "joules",
        "per_second",
        "info",
        "state",
        "mask",
        "lanes",
        "tasks",
        "cpus",
    ];
    let mut names = Vec::new();
    for Metric { name, kind, help, .. } in metrics {
        let rest = name.strip_prefix(&format!("infertop_{subject}_"));
        let rest = rest.unwrap_or_else(|| panic!("{name} is not of {subject}"));
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(rest.bytes().all(plain), "{name}");
        assert_eq!(
            rest.ends_with("_total"),
            *kind == Kind::Counter,
            "{name}: only sums end in _total"
        );
        if *kind == Kind::Gauge {
            let unit = UNITS.iter().any(|unit| rest.ends_with(unit));
            assert!(unit || UNITLESS.contains(name), "{name} has no unit: one of {UNITS:?}");
        }
        assert!(help.len() > 8 && help.ends_with('.'), "{name}: {help:?} is no sentence");
        assert!(
            help.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()),
            "{name}: {help:?}"
        );
        names.push(*name);
    }
    names
}

/// Numbers that are no quantity of a unit.
const UNITLESS: &[&str] = &[
    // Yes or no.
    "infertop_gpu_fabric_ready",
    "infertop_gpu_row_remap_failed",
    "infertop_gpu_row_remap_pending",
    // Numbers of a list that others have made.
    "infertop_gpu_pcie_generation",
    "infertop_gpu_pcie_generation_max",
    "infertop_gpu_recovery_action",
    // Counts of what the name says.
    "infertop_gpu_nvlink_links",
    "infertop_gpu_nvlink_links_active",
    "infertop_host_processes",
];

#[test]
fn every_metric_says_what_it_is_in_a_sentence_and_has_its_unit_in_its_name() {
    let mut names = check_metrics(probes::nvml::metrics(), "gpu");
    names.extend(check_metrics(probes::host::HOST_METRICS.iter(), "host"));
    assert!(names.len() > 40, "{names:?}");
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name stands twice");
}

#[test]
fn every_recorded_machine_is_whole() {
    let Ok(folder) = std::fs::read_dir(root().join("tests/machines")) else { return };
    let folders = folder.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let mut seen = 0;
    for machine in
        folders.filter(|path| path.join("proc").exists() || path.join("machine.toml").exists())
    {
        let name = machine.display();
        let text = std::fs::read_to_string(machine.join("machine.toml"))
            .unwrap_or_else(|why| panic!("{name}/machine.toml: {why}"));
        let facts: toml::Table = text.parse().unwrap_or_else(|why| panic!("{name}: {why}"));
        for key in ["title", "source", "not_recorded"] {
            let said = facts.get(key).and_then(toml::Value::as_str).unwrap_or_default();
            assert!(!said.is_empty(), "{name}/machine.toml does not say its {key}");
        }
        for part in ["proc", "sys"] {
            assert!(machine.join(part).is_dir(), "{name} has no {part}");
        }
        // A machine without a driver has no scenario.
        if let Ok(scenario) = std::fs::read_to_string(machine.join("scenario.toml")) {
            gpubox::Machine::parse(&scenario).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
        seen += 1;
    }
    assert!(seen > 0, "no machine is recorded");
}

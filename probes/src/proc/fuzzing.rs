//! The parsers of process files on any bytes, and what must hold.

use std::collections::HashMap;
use std::io::BufReader;

use super::{cgroup, cmdline, container_name, fds, maps, redact, sockets, stat, status, users};
use crate::fuzzing::assert_plain;
use crate::reading::Reading;

/// `stat`, `status`, `cgroup`, the user list, and the files that name a container.
pub(crate) fn process_files(bytes: &[u8]) {
    if let Some(stat) = stat::parse_stat(bytes) {
        assert_plain(&stat.comm);
    }
    let _ = stat::parse_boot_time(bytes);
    let _ = status::parse_status(bytes);
    for relative in [false, true] {
        let cgroup = cgroup::parse_cgroup(bytes, relative);
        for text in [&cgroup.path, &cgroup.pod, &cgroup.unit, &cgroup.slurm_job] {
            assert_plain(text.text());
        }
        if let Reading::Value((runtime, id)) = &cgroup.container {
            assert_plain(&cgroup::container_label(runtime, id));
            assert_eq!(id.len(), 64);
        }
    }
    for name in users::parse_passwd(bytes).values() {
        assert_plain(name);
    }
    let text = String::from_utf8_lossy(bytes);
    let (id, file) = text.split_once('\n').unwrap_or(("a", &text));
    for name in [
        container_name::parse_docker_config(bytes),
        container_name::parse_podman_list(bytes, id),
        container_name::parse_log_name(file, id),
    ] {
        assert_plain(name.as_deref().unwrap_or_default());
    }
}

/// Mappings, whatever the size of the pieces in which they arrive; targets of descriptors; sockets.
pub(crate) fn mappings(bytes: &[u8]) {
    let prefixes = [b"/host".to_vec(), Vec::new()];
    let whole = maps::parse_maps(bytes, &prefixes).ok();
    let piece = 1 + usize::from(bytes.first().copied().unwrap_or_default());
    let pieces = maps::parse_maps(BufReader::with_capacity(piece, bytes), &prefixes).ok();
    assert_eq!(whole, pieces);
    for found in whole.iter().flat_map(|maps| &maps.devices) {
        assert_plain(&found.node);
    }
    for found in whole.iter().flat_map(|maps| &maps.libraries) {
        assert_plain(&found.name);
        assert_plain(&found.version);
    }
    for line in bytes.split(|&b| b == b'\n') {
        let _ = fds::parse_target(line, &prefixes);
    }
    let mut ports = HashMap::new();
    sockets::parse_listening(bytes, &mut ports);
}

/// Where `<S>` stands a secret is planted; arguments are separated by `|`.
const PLACES: &[&str] = &[
    "--api-key|<S>",
    "--api-key=<S>",
    "--hf-token|<S>",
    "--password|<S>",
    "MY_TOKEN=<S>",
    "-H|Authorization: Bearer <S>",
    "-H|X-Api-Key: <S>",
    "-c|MY_KEY=<S> x",
    "-c|x --api-key <S> y; z",
    "-c|x --api-key '<S>' --port 1",
    "-c|x \"--api-key=<S>\" --port 1",
    "{\"api_key\": \"<S>\", \"b\": 1}",
    "{'password': '<S>'}",
    "postgres://me:<S>@db.local/x",
];

/// A secret planted between any other arguments never survives, and what is redacted stays as it is.
///
/// Input: place, then up to 16 bytes for the secret's letters, then the arguments around it.
pub(crate) fn command_line(bytes: &[u8]) {
    let line = cmdline::parse_cmdline(bytes, "python3");
    assert_plain(&line.text);
    let (once, _) = redact::redact_text(&String::from_utf8_lossy(bytes));
    assert_eq!(redact::redact_text(&once).0, once, "redacting again changed the text");

    let Some((&place, rest)) = bytes.split_first() else { return };
    let (letters, around) = rest.split_at(rest.len().min(16));
    let (before, after) = around.split_at(around.len() / 2);
    let letter = |&b: &u8| char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[usize::from(b % 36)]);
    let secret: String = letters.iter().map(letter).chain("ZQXJ9".chars()).collect();
    if String::from_utf8_lossy(bytes).contains(&secret) {
        return;
    }
    let planted = PLACES[usize::from(place) % PLACES.len()].replace("<S>", &secret);
    let planted = planted.replace('|', "\0").into_bytes();
    let command = [b"vllm", before, &planted, after].join(&0);
    let line = cmdline::parse_cmdline(&command, "python3");
    assert!(!line.text.contains(&secret), "{secret} survived in {:?}", line.text);
    assert!(line.secret, "no secret reported in {:?}", line.text);
}

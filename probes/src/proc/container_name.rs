//! A container's name from files that runtimes leave on the host, without asking a runtime.
//!
//! Docker: `config.v2.json` of the container; its own name is the only one there that starts with a
//! slash. Podman: the list of containers of its storage. Kubernetes: links named
//! `<pod>_<namespace>_<container>-<id>.log`. Docker's and Podman's files need root. They hold
//! environments too, so nothing but the name is taken.

use std::collections::HashMap;

use crate::machine::Machine;
use crate::reading::{Absence, Reading};

use super::task::{clean, read_path};

const LIMIT_BYTES: usize = 4 << 20;

/// Container ids never change their name; a miss is asked again only so often.
const AGAIN_MS: u64 = 60_000;

/// Names that were found, by full id.
#[derive(Debug, Default)]
pub(crate) struct ContainerNames {
    names: HashMap<String, (u64, Reading<String>)>,
}

impl ContainerNames {
    pub(crate) fn name(
        &mut self,
        machine: &Machine,
        runtime: &str,
        id: &str,
        now_ms: u64,
    ) -> Reading<String> {
        if let Some((at, name)) = self.names.get(id)
            && (name.value().is_some() || now_ms.saturating_sub(*at) < AGAIN_MS)
        {
            return name.clone();
        }
        let name = read_name(machine, runtime, id);
        self.names.retain(|_, (at, _)| now_ms.saturating_sub(*at) < 100 * AGAIN_MS);
        self.names.insert(id.to_string(), (now_ms, name.clone()));
        name
    }
}

fn read_name(machine: &Machine, runtime: &str, id: &str) -> Reading<String> {
    let file = |path: &str, parse: &dyn Fn(&[u8]) -> Option<String>| {
        let mut bytes = Vec::new();
        match read_path(&machine.root(path), LIMIT_BYTES, &mut bytes) {
            Ok(()) => parse(&bytes).map_or(Reading::UNSUPPORTED, Reading::Value),
            Err(Absence::Denied { .. }) => Reading::Absent(Absence::Denied { need: "root".into() }),
            Err(why) => Reading::Absent(why),
        }
    };
    match runtime {
        "docker" => {
            file(&format!("var/lib/docker/containers/{id}/config.v2.json"), &parse_docker_config)
        }
        "podman" => {
            file("var/lib/containers/storage/overlay-containers/containers.json", &|bytes| {
                parse_podman_list(bytes, id)
            })
        }
        _ => read_log_link(machine, id),
    }
}

fn read_log_link(machine: &Machine, id: &str) -> Reading<String> {
    let entries = match std::fs::read_dir(machine.root("var/log/containers")) {
        Ok(entries) => entries,
        Err(error) => return Reading::Absent(Absence::from_io(&error)),
    };
    let mut names = entries.flatten().map(|entry| entry.file_name());
    let found = names.find_map(|name| parse_log_name(&name.to_string_lossy(), id));
    found.map_or(Reading::UNSUPPORTED, Reading::Value)
}

pub(super) fn parse_docker_config(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let name = text.split("\"Name\":\"/").nth(1)?.split('"').next()?;
    plain_name(name)
}

/// Name lists stand behind the id of their container and before the next one's.
pub(super) fn parse_podman_list(bytes: &[u8], id: &str) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let own = text.split(&format!("\"id\":\"{id}\"")).nth(1)?;
    let own = own.split("\"id\":").next()?;
    let names = own.split("\"names\":[").nth(1)?.split(']').next()?;
    plain_name(names.split('"').nth(1)?)
}

pub(super) fn parse_log_name(file: &str, id: &str) -> Option<String> {
    let name = file.strip_suffix(".log")?.strip_suffix(id)?.strip_suffix('-')?;
    let mut parts = name.splitn(3, '_');
    let (pod, namespace, container) = (parts.next()?, parts.next()?, parts.next()?);
    plain_name(&format!("{namespace}/{pod}/{container}"))
}

fn plain_name(name: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
    (!name.is_empty() && name.len() <= 512 && name.chars().all(plain))
        .then(|| clean(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn docker_names_start_with_a_slash() {
        let config = br#"{"Config":{"Env":["HF_TOKEN=hf_x"],"Labels":{}},"MountPoints":{"/d":{"Name":"models"}},"Name":"/vllm-70b","Driver":"overlay2"}"#;
        assert_eq!(parse_docker_config(config).as_deref(), Some("vllm-70b"));
        assert_eq!(parse_docker_config(br#"{"Name":"models"}"#), None);
    }

    #[test]
    fn podman_names_belong_to_their_id() {
        let list = br#"[{"id":"aa","names":["one"],"image":"x"},{"id":"bb","names":["two","2"],"image":"y"},{"id":"cc"}]"#;
        assert_eq!(parse_podman_list(list, "bb").as_deref(), Some("two"));
        assert_eq!(parse_podman_list(list, "cc"), None);
        assert_eq!(parse_podman_list(list, "dd"), None);
    }

    #[test]
    fn a_log_link_tells_namespace_pod_and_container() {
        let name = parse_log_name("vllm-0_llm_server-abc123.log", "abc123");
        assert_eq!(name.as_deref(), Some("llm/vllm-0/server"));
        assert_eq!(parse_log_name("vllm-0_llm_server-abc124.log", "abc123"), None);
    }

    proptest! {
        #[test]
        fn garbage_has_no_name(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_docker_config(&bytes);
            let _ = parse_podman_list(&bytes, "a");
        }
    }
}

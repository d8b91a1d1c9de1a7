//! Takes out of a snapshot what tells whose box it is: host, users, containers, units, serial
//! numbers, words of command lines. Secrets never got in; this is for names.
//!
//! The same name becomes the same stand-in over the whole export, so that what belongs together can
//! still be seen. GPU UUIDs stay: they are what a series is known by.

use std::collections::HashMap;

use probes::proc::Process;
use probes::reading::{Absence, Reading};
use probes::snapshot::Snapshot;

/// The stand-ins given so far.
#[derive(Default)]
pub(super) struct Anonymiser {
    known: HashMap<(&'static str, String), usize>,
}

/// Names that say nothing about whose box it is.
const PUBLIC_USERS: &[&str] = &["root", "nobody"];

impl Anonymiser {
    /// Takes the names out of one snapshot.
    pub(super) fn clean(&mut self, snapshot: &mut Snapshot) {
        self.replace("host", &mut snapshot.host.name);
        for gpu in &mut snapshot.gpus {
            self.replace("serial", &mut gpu.identity.serial);
        }
        for line in &mut snapshot.kernel_log.lines {
            if let Some(process) = line.process.take() {
                let stand_in = self.stand_in("process", &process);
                line.text = line.text.replace(&process, &stand_in);
                line.process = Some(stand_in);
            }
        }
        for process in &mut snapshot.processes {
            self.process(process);
        }
    }

    fn process(&mut self, process: &mut Process) {
        let is_public = |user: &String| PUBLIC_USERS.contains(&user.as_str());
        if !process.user.value().is_some_and(is_public) {
            self.replace("user", &mut process.user);
            if process.uid.value().is_some() {
                process.uid = gone();
            }
        }
        self.replace("container", &mut process.container);
        self.replace("container", &mut process.container_name);
        self.replace("pod", &mut process.pod);
        self.replace("unit", &mut process.unit);
        self.replace("job", &mut process.slurm_job);
        self.replace("cgroup", &mut process.cgroup);
        if let Reading::Value(command) = &mut process.command {
            *command = without_words(command);
        }
    }

    fn replace(&mut self, kind: &'static str, name: &mut Reading<String>) {
        if let Reading::Value(name) = name {
            *name = self.stand_in(kind, name);
        }
    }

    fn stand_in(&mut self, kind: &'static str, name: &str) -> String {
        let next = self.known.keys().filter(|(other, _)| *other == kind).count() + 1;
        let number = *self.known.entry((kind, name.to_string())).or_insert(next);
        format!("{kind}{number}")
    }
}

fn gone<T>() -> Reading<T> {
    Reading::Absent(Absence::NotHere { what: "taken out for this export".into() })
}

/// The program's file name, the names of its flags, and numbers; every other word is left out.
fn without_words(command: &str) -> String {
    let mut words = command.split_ascii_whitespace();
    let program = words.next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    let mut kept = vec![program.to_string()];
    for word in words {
        let word = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with('-') && !is_number(value) => {
                format!("{flag}=…")
            }
            _ if word.starts_with('-') || is_number(word) => word.to_string(),
            _ => "…".to_string(),
        };
        if word != "…" || kept.last().is_none_or(|last| last != "…") {
            kept.push(word);
        }
    }
    kept.join(" ")
}

fn is_number(word: &str) -> bool {
    word.len() <= 20 && word.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_keeps_its_shape_and_loses_its_words() {
        let command = "/opt/acme/bin/vllm serve acme/secret-model --tensor-parallel-size 4 \
                       --served-model-name=bot --port=8000 -q";
        assert_eq!(
            without_words(command),
            "vllm … --tensor-parallel-size 4 --served-model-name=… --port=8000 -q"
        );
    }

    #[test]
    fn the_same_name_becomes_the_same_stand_in() {
        let process = |user: &str| Process { user: user.to_string().into(), ..Process::default() };
        let mut snapshot = Snapshot {
            processes: vec![process("ann"), process("bob"), process("ann"), process("root")],
            ..Snapshot::default()
        };
        snapshot.host.name = "gpu-17.acme.example".to_string().into();
        Anonymiser::default().clean(&mut snapshot);
        let users: Vec<&str> = snapshot.processes.iter().map(|p| p.user.text()).collect();
        assert_eq!(users, ["user1", "user2", "user1", "root"]);
        let bytes = snapshot.encode().unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("acme") && !text.contains("ann"), "{text}");
    }
}

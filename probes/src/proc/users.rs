//! User names from the host's `etc/passwd`.
//!
//! Only that file is asked: directory services are reached through the C library, which can block for
//! minutes. A number without a name is shown as the number. Inside a container the same number may
//! have another name; what is shown is the host's view, as the kernel's permissions see it.

use std::collections::HashMap;

use crate::machine::Machine;

use super::task::{clean, read_path};

const LIMIT_BYTES: usize = 4 << 20;

/// New users are rare; an unknown number has the file read again only so often.
const AGAIN_MS: u64 = 60_000;

/// Names by number, read when first needed.
#[derive(Debug, Default)]
pub(crate) struct Users {
    names: HashMap<u32, String>,
    read_at_ms: Option<u64>,
}

impl Users {
    /// The name, or the number.
    pub(crate) fn name(&mut self, machine: &Machine, uid: u32, now_ms: u64) -> String {
        if let Some(name) = self.names.get(&uid) {
            return name.clone();
        }
        if self.read_at_ms.is_none_or(|at| now_ms.saturating_sub(at) >= AGAIN_MS) {
            self.read_at_ms = Some(now_ms);
            let mut bytes = Vec::new();
            if read_path(&machine.root("etc/passwd"), LIMIT_BYTES, &mut bytes).is_ok() {
                self.names = parse_passwd(&bytes);
            }
        }
        self.names.get(&uid).cloned().unwrap_or_else(|| uid.to_string())
    }
}

/// The first name of a number wins, as in the C library.
pub(crate) fn parse_passwd(text: &[u8]) -> HashMap<u32, String> {
    let mut names = HashMap::new();
    for line in text.split(|&b| b == b'\n') {
        let mut fields = line.split(|&b| b == b':');
        let (Some(name), Some(uid)) = (fields.next(), fields.nth(1)) else { continue };
        let Some(uid) = std::str::from_utf8(uid).ok().and_then(|uid| uid.parse().ok()) else {
            continue;
        };
        if !name.is_empty() && !name.starts_with(b"#") {
            names.entry(uid).or_insert_with(|| clean(name));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_found_and_the_first_wins() {
        let names = parse_passwd(b"root:x:0:0:root:/root:/bin/bash\ntoor:x:0:0::/:\n#old:x:5:5\n+::::::\nvllm:x:998:998::/srv:/usr/sbin/nologin\n");
        assert_eq!(names.len(), 2);
        assert_eq!(names[&0], "root");
        assert_eq!(names[&998], "vllm");
    }

    #[test]
    fn a_number_without_a_name_stays_a_number() {
        let machine = Machine { rootfs: "/nonexistent".into(), ..Machine::default() };
        assert_eq!(Users::default().name(&machine, 1234, 0), "1234");
    }

    proptest! {
        #[test]
        fn garbage_names_nobody(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_passwd(&bytes);
        }
    }
}

//! Listening TCP ports of a process: its sockets, looked up in `net/tcp` and `net/tcp6`.
//!
//! Those files show the network namespace of the process through which they are read, so they are
//! read once for each namespace and kept for a while. They name a socket by its inode, not by its
//! owner. The kernel lists listening sockets before all others, so reading stops at the first other
//! one: a server with 50,000 connections costs no more than an idle one. It is dear all the same,
//! because the kernel walks its whole table of connections, half a million slots on a large box, to
//! find out that there is no other one: 6 ms a file were measured. So it is done by the thread that
//! reads what can block, seldom, and with a pause after it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read as _};

use crate::reading::{Absence, Reading};

use super::task::Task;

/// The state `TCP_LISTEN`, as these files write it.
const LISTENING: &str = "0A";

const LIMIT_BYTES: u64 = 1 << 20;

/// As long as a listing is good for; a server opens its port once.
const KEEP_MS: u64 = 30_000;

/// Boxes with hundreds of pods have as many namespaces; only those of GPU processes come here.
const MOST_NAMESPACES: usize = 256;

/// Ports by inode.
pub(crate) type Ports = HashMap<u64, u16>;

/// Ports by inode, for each network namespace.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    namespaces: HashMap<String, Listing>,
}

#[derive(Debug, Default)]
struct Listing {
    asked_at_ms: u64,
    ports: Reading<Ports>,
}

impl Listeners {
    /// Whether a namespace has to be read: `Some(true)` for the first time, `Some(false)` again.
    pub(crate) fn is_due(&self, namespace: &str, now_ms: u64) -> Option<bool> {
        match self.namespaces.get(namespace) {
            None => Some(true),
            Some(listing) => {
                (now_ms.saturating_sub(listing.asked_at_ms) >= KEEP_MS).then_some(false)
            }
        }
    }

    pub(crate) fn asked(&mut self, namespace: &str, now_ms: u64) {
        if self.namespaces.len() >= MOST_NAMESPACES && !self.namespaces.contains_key(namespace) {
            self.namespaces.clear();
        }
        self.namespaces.entry(namespace.to_string()).or_default().asked_at_ms = now_ms;
    }

    pub(crate) fn answered(&mut self, namespace: &str, ports: Result<Ports, Absence>) {
        // A process that ended meanwhile says nothing of its namespace.
        if ports == Err(Absence::Gone) {
            self.namespaces.remove(namespace);
        } else if let Some(listing) = self.namespaces.get_mut(namespace) {
            listing.ports = ports.into();
        }
    }

    /// The ports on which the owner of these sockets listens, ascending.
    pub(crate) fn ports(&self, namespace: &str, sockets: &[u64]) -> Reading<Vec<u16>> {
        let Some(listing) = self.namespaces.get(namespace) else { return Reading::default() };
        listing.ports.as_ref().map(|by_inode| {
            let mut ports: Vec<u16> =
                sockets.iter().filter_map(|inode| by_inode.get(inode).copied()).collect();
            ports.sort_unstable();
            ports.dedup();
            ports
        })
    }
}

/// The listening sockets of a process's network namespace.
pub(crate) fn read_listening(task: &Task) -> Result<Ports, Absence> {
    let mut ports = Ports::new();
    let four = task.open_file("net/tcp");
    // A kernel without IPv6 has no second file; without either there is no answer.
    let six = task.open_file("net/tcp6");
    if let (Err(why), Err(_)) = (&four, &six) {
        return Err(why.clone());
    }
    for file in [four, six].into_iter().flatten() {
        parse_listening(BufReader::new(file.take(LIMIT_BYTES)), &mut ports);
    }
    Ok(ports)
}

/// Adds inode and port of the listening sockets at the start of a listing.
pub(crate) fn parse_listening(mut lines: impl BufRead, ports: &mut Ports) {
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        number += 1;
        if number == 1 {
            continue;
        }
        match parse_line(&line) {
            Some((LISTENING, port, inode)) => {
                ports.insert(inode, port);
            }
            Some(_) => return,
            None => {}
        }
    }
}

/// State, local port and inode.
fn parse_line(line: &[u8]) -> Option<(&str, u16, u64)> {
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let local = fields.nth(1)?;
    let state = fields.nth(1)?;
    let inode = fields.nth(5)?.parse().ok()?;
    let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
    Some((state, port, inode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TCP: &[u8] = b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
   0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 81234 1 0000000000000000 100 0 0 10 0\n\
   1: 0100007F:7530 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 81235 1 0000000000000000 100 0 0 10 0\n\
   2: 0100007F:1F40 0100007F:C3A8 01 00000000:00000000 00:00000000 00000000  1001        0 90001 1 0000000000000000 20 4 30 10 -1\n\
   3: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 90002 1 0000000000000000 100 0 0 10 0\n";

    #[test]
    fn reading_stops_at_the_first_connection() {
        let mut ports = HashMap::new();
        parse_listening(TCP, &mut ports);
        assert_eq!(ports, HashMap::from([(81234, 8000), (81235, 30000)]));
    }

    #[test]
    fn an_address_of_version_six_has_its_port_too() {
        let mut ports = HashMap::new();
        let line = b"head\n 0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 777 1\n";
        parse_listening(&line[..], &mut ports);
        assert_eq!(ports, HashMap::from([(777, 8080)]));
    }

    proptest! {
        #[test]
        fn garbage_listens_nowhere(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            parse_listening(&bytes[..], &mut HashMap::new());
        }
    }
}

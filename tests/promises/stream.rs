//! The daemon's stream of frames as a script reads it: a JSON document a line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::waiting::patience;

/// The open stream.
pub struct Lines(BufReader<UnixStream>);

impl Lines {
    /// Opens it and passes over the head of the answer.
    pub fn open(socket: &Path) -> Self {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5) * patience())).unwrap();
        // An older client gets the lines without chunks between them.
        stream.write_all(b"GET /v1/frames HTTP/1.0\r\n\r\n").unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        while lines.read_line(&mut line).unwrap() > 2 {
            line.clear();
        }
        Self(lines)
    }
}

impl Iterator for Lines {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(1..) => {
                Some(serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}")))
            }
            Ok(0) => None,
            Err(why) if why.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(why) => panic!("{why}"),
        }
    }
}

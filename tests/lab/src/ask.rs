//! Asks over HTTP what is answered in JSON. A connection serves one question: the load, which keeps its connections, has
//! a client of its own.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;

/// Asks for a path. The answer ends where its value is whole: a service of the lab does not close the connection.
///
/// # Errors
/// There is no answer, or not the one that is expected.
pub(crate) fn json<T: DeserializeOwned>(
    stream: &mut (impl Read + Write),
    path: &str,
) -> io::Result<T> {
    let question = format!("GET {path} HTTP/1.1\r\nHost: tidegate\r\nConnection: close\r\n\r\n");
    stream.write_all(question.as_bytes())?;
    let mut answer = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        let count = stream.read(&mut chunk)?;
        answer.extend_from_slice(chunk.get(..count).unwrap_or(&[]));
        let text = String::from_utf8_lossy(&answer);
        let (_head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        match serde_json::from_str(body) {
            Err(_not_whole) if count != 0 => {}
            value => return Ok(value?),
        }
    }
}

//! Asks over HTTP what is answered in JSON. A connection serves one question: the load, which keeps its connections, has
//! a client of its own.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;

/// Asks for a path, on a connection that ends with the answer.
///
/// # Errors
/// There is no answer, or not the one that is expected.
pub(crate) fn json<T: DeserializeOwned>(
    stream: &mut (impl Read + Write),
    path: &str,
) -> io::Result<T> {
    let question = format!("GET {path} HTTP/1.1\r\nHost: tidegate\r\nConnection: close\r\n\r\n");
    stream.write_all(question.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    Ok(serde_json::from_str(body)?)
}

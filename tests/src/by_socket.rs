//! A caller that does not map the pages: it asks over `gate.sock`, or over HTTP.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};
use tidegate_abi::decision::Outcome;
use tidegate_abi::message::{EnterAnswer, EnterRequest, TOKEN};
use tidegate_agent::caller::GateConnection;

use crate::until::SOON;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A connection to one of the sockets.
#[derive(Debug)]
pub enum BySocket {
    /// To `gate.sock`.
    Gate(Box<GateConnection>),
    /// To `http.sock`.
    Http(UnixStream),
}

/// What names a permit.
#[derive(Debug)]
pub enum PermitName {
    /// A permit over `gate.sock`.
    Gate([u8; TOKEN]),
    /// A permit over HTTP.
    Http(String),
}

impl BySocket {
    /// Connects to the door of this name, `gate` or `http`.
    ///
    /// # Errors
    /// The agent does not answer there.
    pub fn connect(door: &str, runtime_dir: &Path) -> Fallible<Self> {
        if door == "gate" {
            let gate = GateConnection::connect(runtime_dir)?;
            return Ok(Self::Gate(Box::new(gate)));
        }
        let stream = UnixStream::connect(runtime_dir.join("http.sock"))?;
        stream.set_read_timeout(Some(SOON))?;
        Ok(Self::Http(stream))
    }

    /// Asks for a permit; `Err` inside is the reason of a refusal.
    ///
    /// # Errors
    /// The agent gives no answer.
    pub fn enter(&mut self, resource: &str) -> Fallible<Result<PermitName, String>> {
        match self {
            Self::Gate(gate) => Ok(match gate.enter(EnterRequest::of(resource))? {
                EnterAnswer::Admitted { token, .. } => Ok(PermitName::Gate(token)),
                EnterAnswer::Refused { reason, .. } => Err(reason.name().to_owned()),
            }),
            Self::Http(stream) => {
                let answer = post(stream, "/v1/enter", &json!({ "resource": resource }))?;
                let word = |name: &str| answer.get(name)?.as_str().map(str::to_owned);
                Ok(word("permit")
                    .map(PermitName::Http)
                    .ok_or_else(|| word("reason").unwrap_or_else(|| answer.to_string())))
            }
        }
    }

    /// Gives a permit back that ended well.
    ///
    /// # Errors
    /// The agent has no such permit, or gives no answer.
    pub fn exit(&mut self, given: PermitName) -> Fallible<()> {
        match (self, given) {
            (Self::Gate(gate), PermitName::Gate(token)) => Ok(gate.exit(token, Outcome::Ok)?),
            (Self::Http(stream), PermitName::Http(permit)) => {
                let body = json!({ "permit": permit, "outcome": "ok" });
                let answer = post(stream, "/v1/exit", &body)?;
                if answer == json!({}) {
                    return Ok(());
                }
                Err(answer.to_string().into())
            }
            (Self::Gate(_) | Self::Http(_), PermitName::Gate(_) | PermitName::Http(_)) => {
                Err("a permit of the other door".into())
            }
        }
    }
}

/// What comes back in JSON, on a connection that goes on.
fn post(stream: &mut UnixStream, path: &str, body: &Value) -> Fallible<Value> {
    let body = body.to_string();
    let length = body.len();
    let request =
        format!("POST {path} HTTP/1.1\r\nHost: tidegate\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&answer);
        if let Some((_head, body)) = text.split_once("\r\n\r\n")
            && let Ok(value) = serde_json::from_str(body)
        {
            return Ok(value);
        }
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Err(format!("the connection ended after {text:?}").into());
        }
        answer.extend_from_slice(chunk.get(..count).unwrap_or(&[]));
    }
}

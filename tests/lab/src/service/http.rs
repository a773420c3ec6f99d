//! As much of HTTP/1.1 as the service and the load need.

use std::io;

use super::toil::Event;

/// Most header lines of a request.
const HEADERS: usize = 32;
/// Longest head of a request, bytes.
const HEAD_MAX: usize = 8192;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Work,
    /// The same work, for callers that are more important.
    Critical,
    /// For those that are less so.
    Sheddable,
    /// The same work, under another resource.
    Other,
    /// After waiting for something downstream, under a resource of its own.
    Slow,
    /// The same, under the resource of the others.
    SlowShared,
    Refuse,
    Stats,
    /// Something happens to the service.
    Event(Event),
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub wanted: Wanted,
    /// The connection ends with the answer.
    pub close: bool,
}

/// Takes the first request out of `bytes`; `None` while it is not whole.
///
/// # Errors
/// It is none that the service knows.
pub(super) fn take(bytes: &mut Vec<u8>) -> io::Result<Option<Asked>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let status = request
        .parse(bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let httparse::Status::Complete(length) = status else {
        let fits = bytes.len() <= HEAD_MAX;
        return if fits {
            Ok(None)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        };
    };
    let wanted = match request.path {
        Some("/work") => Wanted::Work,
        Some("/critical") => Wanted::Critical,
        Some("/sheddable") => Wanted::Sheddable,
        Some("/other") => Wanted::Other,
        Some("/slow") => Wanted::Slow,
        Some("/slow-shared") => Wanted::SlowShared,
        Some("/refuse") => Wanted::Refuse,
        Some("/stats") => Wanted::Stats,
        Some(path) => match Event::of(path) {
            Some(event) => Wanted::Event(event),
            None => return Err(io::ErrorKind::NotFound.into()),
        },
        None => return Err(io::ErrorKind::NotFound.into()),
    };
    let close = request.headers.iter().any(|header| {
        header.name.eq_ignore_ascii_case("connection")
            && header.value.eq_ignore_ascii_case(b"close")
    });
    bytes.drain(..length);
    Ok(Some(Asked { wanted, close }))
}

/// A whole answer.
pub(super) fn answer(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} -\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// A refusal; no more than a real service would say.
pub(super) fn refusal(status: u16, retry_after_s: u64) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} Refused\r\nRetry-After: {retry_after_s}\r\nContent-Length: 8\r\n\r\nrefused\n"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_taken_one_by_one_when_they_are_whole() {
        let mut bytes =
            b"GET /work HTTP/1.1\r\nHost: a\r\n\r\nGET /slow HTTP/1.1\r\nConnection: close\r\n"
                .to_vec();
        let first = take(&mut bytes).unwrap();
        assert_eq!(
            first,
            Some(Asked {
                wanted: Wanted::Work,
                close: false
            })
        );
        assert_eq!(take(&mut bytes).unwrap(), None);
        bytes.extend_from_slice(b"\r\n");
        let second = take(&mut bytes).unwrap();
        assert_eq!(
            second,
            Some(Asked {
                wanted: Wanted::Slow,
                close: true
            })
        );
        assert!(bytes.is_empty());
    }

    #[test]
    fn what_the_service_does_not_know_is_an_error() {
        for bytes in [
            &b"GET /unknown HTTP/1.1\r\n\r\n"[..],
            b"\x00\x01",
            &[b'A'; HEAD_MAX + 1],
        ] {
            take(&mut bytes.to_vec()).unwrap_err();
        }
    }
}

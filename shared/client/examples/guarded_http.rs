//! A small HTTP/1.1 server that asks Tidegate before it works.
//!
//! Every request is one inbound request of a resource; an admitted one burns a set amount of CPU.
//!
//! ```sh
//! cargo run --release -p tidegate-client --example guarded_http -- --resource order-create --cpu-us 2000
//! curl -i http://127.0.0.1:PORT/
//! ```
//!
//! The first line on standard output is the address it listens on.

use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tidegate_client::{Client, Refused, Resource};

const USAGE: &str = "guarded_http [--listen ADDRESS] [--resource NAME] [--workers COUNT] \
                     [--cpu-us MICROSECONDS] [--runtime-dir DIR]";

/// The longest head of a request, bytes.
const HEAD_MAX: usize = 8192;
/// The most header lines of a request.
const HEADERS_MAX: usize = 64;
/// An idle connection is closed after this, so that its worker can take another one.
const IDLE: Duration = Duration::from_secs(5);

/// What the command line asks for.
#[derive(Debug)]
struct Options {
    /// Address to listen on; port 0 takes a free one.
    listen: String,
    /// The resource that guards every request.
    resource: String,
    /// Connections served at a time.
    workers: usize,
    /// CPU time of an admitted request.
    cpu: Duration,
    /// The agent's runtime directory, if not one of the usual ones.
    runtime_dir: Option<PathBuf>,
}

impl Options {
    /// `None` where help is asked for.
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Self>, Box<dyn Error>> {
        let mut options = Self {
            listen: "127.0.0.1:0".to_owned(),
            resource: "guarded-http".to_owned(),
            workers: 64,
            cpu: Duration::ZERO,
            runtime_dir: None,
        };
        while let Some(flag) = words.next() {
            if ["--help", "-h"].contains(&flag.as_str()) {
                return Ok(None);
            }
            let wrong = |error| format!("{flag}: {error}; {USAGE}");
            let value = words
                .next()
                .ok_or_else(|| format!("{flag} needs a value; {USAGE}"))?;
            match flag.as_str() {
                "--listen" => options.listen = value,
                "--resource" => options.resource = value,
                "--workers" => options.workers = value.parse().map_err(wrong)?,
                "--cpu-us" => options.cpu = Duration::from_micros(value.parse().map_err(wrong)?),
                "--runtime-dir" => options.runtime_dir = Some(value.into()),
                unknown => return Err(format!("unknown option {unknown}; {USAGE}").into()),
            }
        }
        Ok(Some(options))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        writeln!(io::stdout(), "{USAGE}")?;
        return Ok(());
    };
    let mut builder = Client::builder();
    if let Some(dir) = options.runtime_dir {
        builder = builder.runtime_dir(dir);
    }
    let client = builder.connect()?;
    let status = client.status();
    if !status.connected {
        let why = status.last_error.unwrap_or_default();
        writeln!(
            io::stderr(),
            "no agent answers, so every request is admitted until one does: {why}"
        )?;
    }
    let resource = client.resource(&options.resource)?;
    let listener = TcpListener::bind(&options.listen)?;
    // Few workers hold few requests: what waits to be accepted counts as well.
    client.watch_listener(&listener)?;
    let mut stdout = io::stdout();
    writeln!(stdout, "{}", listener.local_addr()?)?;
    stdout.flush()?;
    std::thread::scope(|scope| {
        for _worker in 0..options.workers {
            scope.spawn(|| work(&listener, &resource, options.cpu));
        }
    });
    Ok(())
}

/// Serves one connection after the other.
fn work(listener: &TcpListener, resource: &Resource, cpu: Duration) {
    while let Ok((stream, _peer)) = listener.accept() {
        // A client that goes away in the middle is no fault of the server.
        let _served: io::Result<()> = serve(stream, resource, cpu);
    }
}

/// Answers the requests of a connection until it ends.
fn serve(mut stream: TcpStream, resource: &Resource, cpu: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(IDLE))?;
    let mut unread = Vec::new();
    while let Some(head) = read_request(&mut stream, &mut unread)? {
        let response = match resource.enter() {
            Ok(permit) => {
                burn(cpu);
                permit.ok();
                let body = "done\n";
                let length = body.len();
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
            }
            Err(refused) => refusal(&refused),
        };
        stream.write_all(response.as_bytes())?;
        if head.close {
            break;
        }
    }
    Ok(())
}

fn refusal(refused: &Refused) -> String {
    let body = format!("{refused}\n");
    let (status, length, seconds) = (refused.http_status(), body.len(), refused.retry_after_s());
    format!(
        "HTTP/1.1 {status} Refused\r\nRetry-After: {seconds}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// What matters of a request's head.
struct Head {
    close: bool,
    body_length: usize,
}

/// Reads one request and its body, which is thrown away; `None` at the end of the connection.
fn read_request(stream: &mut TcpStream, unread: &mut Vec<u8>) -> io::Result<Option<Head>> {
    loop {
        if let Some((head, length)) = parse(unread)? {
            let end = length.saturating_add(head.body_length);
            if unread.len() >= end {
                unread.drain(..end);
                return Ok(Some(head));
            }
        }
        if unread.len() > HEAD_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut chunk = [0; 2048];
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Ok(None);
        }
        unread.extend_from_slice(chunk.get(..count).unwrap_or(&[]));
    }
}

/// The head at the front of the bytes and its length, once it is whole.
fn parse(bytes: &[u8]) -> io::Result<Option<(Head, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let parsed = request
        .parse(bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let httparse::Status::Complete(length) = parsed else {
        return Ok(None);
    };
    let header = |name: &str| {
        let found = request
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name));
        found.and_then(|header| str::from_utf8(header.value).ok())
    };
    let head = Head {
        close: header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")),
        body_length: header("content-length")
            .and_then(|value| value.parse().ok())
            .unwrap_or(0),
    };
    Ok(Some((head, length)))
}

/// Uses up CPU time of this thread.
fn burn(cpu: Duration) {
    let used = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::try_from(time).unwrap_or(Duration::MAX)
    };
    let end = used().saturating_add(cpu);
    while used() < end {
        std::hint::spin_loop();
    }
}

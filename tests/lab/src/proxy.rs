//! Real programs of others that stand in front of the service: on the CPU of the load, so that what they refuse costs
//! the service nothing.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::law::Proxy;
use crate::machine::process::{Place, Process};
use crate::machine::wait;

/// Longest wait for one that starts.
const UP_WITHIN: Duration = Duration::from_secs(20);

/// A running one. It ends when it is dropped, before its files go.
#[derive(Debug)]
pub(crate) struct Running {
    _process: Process,
    _files: TempDir,
    /// Where it listens.
    pub address: SocketAddr,
}

/// Where a program was unpacked, and the folder of its libraries.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    path: PathBuf,
    libraries: PathBuf,
}

/// The program, which is fetched first if it was never needed here.
///
/// # Errors
/// Why it cannot be had.
pub(crate) fn program(proxy: Proxy) -> Result<Program, String> {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = proxy.law().name();
    let folder = lab.join("../../.tools/rivals").join(name);
    if !folder.exists() {
        let fetched = Command::new(lab.join("fetch-rivals")).arg(name).output();
        let fetched = fetched.map_err(|error| format!("tests/lab/fetch-rivals: {error}"))?;
        if !fetched.status.success() {
            let why = String::from_utf8_lossy(&fetched.stderr).into_owned();
            return Err(format!("it cannot be had: {}", why.trim()));
        }
    }
    let path = found(&folder, name).ok_or_else(|| {
        let folder = folder.display();
        format!("no program of this name is below {folder}: take the folder away to fetch it anew")
    })?;
    let libraries = folder.join("usr/lib/x86_64-linux-gnu");
    Ok(Program { path, libraries })
}

/// A program of this name in a folder.
fn found(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let kind = entry.file_type().ok()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && entry.file_name() == name && is_program(&entry.path()) {
                return Some(entry.path());
            }
        }
    }
    None
}

/// Scripts and settings have the names of programs too.
fn is_program(path: &Path) -> bool {
    let mut head = [0; 4];
    let read = File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut head));
    read.is_ok() && head == *b"\x7fELF"
}

impl Running {
    /// Starts one on a CPU in front of a service, and waits until it listens.
    ///
    /// # Errors
    /// It does not; what it wrote is in the error.
    pub(crate) fn start(proxy: Proxy, cpu: usize, service: SocketAddr) -> io::Result<Self> {
        let program = program(proxy).map_err(io::Error::other)?;
        let files = TempDir::with_prefix("tidegate-lab-")?;
        // Free at this moment, and nothing else is started here.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let settings = files.path().join("settings.yaml");
        fs::write(&settings, text(proxy, address, service, files.path()))?;
        let log_file = files.path().join("log");
        let log = File::create(&log_file)?;
        let place = Place {
            cpu,
            group: Vec::new(),
        };
        let mut args = vec![
            format!("LD_LIBRARY_PATH={}", program.libraries.display()),
            program.path.display().to_string(),
        ];
        args.extend(arguments(proxy).map(str::to_owned));
        args.push(settings.display().to_string());
        let logs = [Stdio::from(log.try_clone()?), Stdio::from(log)];
        let mut process = Process::start(&place, "env", args, logs)?;
        let up = wait::found(UP_WITHIN, || {
            let gone = process.ended();
            (gone || TcpStream::connect(address).is_ok()).then_some(!gone)
        });
        if up == Some(true) {
            return Ok(Self {
                _process: process,
                _files: files,
                address,
            });
        }
        let log = fs::read_to_string(log_file).unwrap_or_default();
        let name = proxy.law().name();
        Err(io::Error::other(format!("{name} does not listen:\n{log}")))
    }
}

/// What goes before the file of settings.
fn arguments(proxy: Proxy) -> impl Iterator<Item = &'static str> {
    let arguments: &[&str] = match proxy {
        Proxy::Envoy => &[
            "--concurrency",
            "1",
            "--disable-hot-restart",
            "--log-level",
            "error",
            "-c",
        ],
        Proxy::Haproxy => &["-db", "-q", "-f"],
        Proxy::Nginx => &["-e", "stderr", "-c"],
    };
    arguments.iter().copied()
}

fn text(proxy: Proxy, at: SocketAddr, service: SocketAddr, files: &Path) -> String {
    let (port, to) = (at.port().to_string(), service.port().to_string());
    let settings = match proxy {
        Proxy::Envoy => ENVOY,
        Proxy::Haproxy => HAPROXY,
        Proxy::Nginx => NGINX,
    };
    let files = files.display().to_string();
    let settings = settings.replace("@PORT@", &port).replace("@TO@", &to);
    settings.replace("@FILES@", &files)
}

/// Envoy's adaptive concurrency as its documentation has it; its circuit breakers are out of the way.
const ENVOY: &str = r#"
static_resources:
  listeners:
  - address: { socket_address: { address: 127.0.0.1, port_value: @PORT@ } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: lab
          route_config:
            virtual_hosts:
            - name: lab
              domains: ["*"]
              routes:
              - match: { prefix: "/" }
                route: { cluster: lab, timeout: 0s }
          http_filters:
          - name: envoy.filters.http.adaptive_concurrency
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency
              gradient_controller_config:
                sample_aggregate_percentile: { value: 90 }
                concurrency_limit_params: { concurrency_update_interval: 0.1s }
                min_rtt_calc_params:
                  jitter: { value: 10 }
                  interval: 60s
                  request_count: 50
              enabled: { default_value: true, runtime_key: adaptive_concurrency.enabled }
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: lab
    connect_timeout: 5s
    type: STATIC
    circuit_breakers:
      thresholds:
      - max_connections: 100000
        max_pending_requests: 100000
        max_requests: 100000
    load_assignment:
      cluster_name: lab
      endpoints:
      - lb_endpoints:
        - endpoint:
            address: { socket_address: { address: 127.0.0.1, port_value: @TO@ } }
"#;

/// Tuned by hand to this service: 10 requests at a time, and 100 ms in the queue.
const HAPROXY: &str = "
global
  nbthread 1
  maxconn 4500
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout queue 100ms
listen lab
  bind 127.0.0.1:@PORT@
  server service 127.0.0.1:@TO@ maxconn 10
";

/// Tuned by hand to this service: 24 requests at a time. One process, so that nothing is left when it is killed.
const NGINX: &str = "
daemon off;
master_process off;
user root;
worker_processes 1;
pid @FILES@/pid;
error_log stderr crit;
events { worker_connections 10000; }
http {
  access_log off;
  client_body_temp_path @FILES@/body;
  proxy_temp_path @FILES@/proxy;
  fastcgi_temp_path @FILES@/fastcgi;
  uwsgi_temp_path @FILES@/uwsgi;
  scgi_temp_path @FILES@/scgi;
  limit_conn_zone $server_name zone=all:1m;
  upstream service { server 127.0.0.1:@TO@; keepalive 64; }
  server {
    listen 127.0.0.1:@PORT@ backlog=4096;
    server_name lab;
    keepalive_requests 10000000;
    location / {
      limit_conn all 24;
      limit_conn_status 503;
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
    }
  }
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_both_ports_and_leave_no_place_open() {
        let at: SocketAddr = "127.0.0.1:4001".parse().unwrap();
        let service: SocketAddr = "127.0.0.1:4002".parse().unwrap();
        for proxy in [Proxy::Envoy, Proxy::Haproxy, Proxy::Nginx] {
            let text = text(proxy, at, service, Path::new("/tmp/lab"));
            assert!(text.contains("4001") && text.contains("4002"), "{text}");
            for open in ["@PORT@", "@TO@", "@FILES@"] {
                assert!(!text.contains(open), "{text}");
            }
        }
    }
}

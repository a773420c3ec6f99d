//! Sockets, addresses and sizes: how services reach the agent, and what it keeps.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tidegate_abi::geometry::{
    Geometry, LANES_MAX, RESOURCES_MAX, SCOPES_MAX, SEATS_MAX, SizeFault,
};

use crate::schema::effect::{Effects, Idle, OptionEffect};
use crate::schema::kind::{Address, DurationRange, FileMode, Flag, ListOf, Maybe, NameText, Whole};
use crate::schema::settings::{Section, settings};

settings! {
    /// The Unix socket that services connect to.
    pub struct SocketOptions {
        /// Group whose members may connect, by name. Not set: the agent's own group.
        group: Option<String> = None, Maybe(NameText, "\"tidegate\"");
        /// Permissions of the sockets.
        mode: u32 = 0o660, FileMode;
    }
}

/// What to do when the metrics cannot be served at an address.
pub const METRICS_HINT: &str = "other machines would read the metrics: let a proxy that knows who asks \
     serve them, or set http.metrics_enabled = false";

settings! {
    /// The HTTP door.
    pub struct HttpOptions {
        /// Whether metrics are also served over TCP. They are always on the Unix socket.
        metrics_enabled: bool = true, Flag;
        /// TCP address of the metrics, of this machine alone.
        metrics_listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 9469)), Address;
        /// Names, without a port, by which the metrics may be asked for beside `localhost` and loopback addresses, as a proxy
        /// in front may do. A page in a browser could let a name of its own lead here, so all others are refused.
        metrics_hosts: Vec<String> = Vec::new(), ListOf(NameText);
        /// A permit given over HTTP comes back after this time, since no process holds it.
        permit_time_to_live: Duration = Duration::from_mins(1), DurationRange::ms(1_000, 3_600_000);
        /// Longest wait of a request over the gate socket or HTTP for a rule that lets wait. One that would wait longer is
        /// refused at once.
        max_wait: Duration = Duration::from_secs(10), DurationRange::ms(0, 60_000);
    }
    check check_http;
}

impl Effects for HttpOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("metrics_enabled"),
        OptionEffect::new("metrics_listen", |http| {
            let off = !http.metrics_enabled;
            Idle::when(off, "with metrics_enabled = true", "nothing listens there")
        }),
        OptionEffect::new("metrics_hosts", |http| {
            let off = !http.metrics_enabled;
            Idle::when(off, "with metrics_enabled = true", "nobody can ask there")
        }),
        OptionEffect::always("permit_time_to_live"),
        OptionEffect::always("max_wait"),
    ];
}

fn check_http(http: &HttpOptions, section: &mut Section<'_, '_>) {
    http.warn(section);
    if http.metrics_enabled && !http.metrics_listen.ip().is_loopback() {
        section.refuse(
            &["metrics_listen"],
            "a loopback address, such as \"127.0.0.1:9469\" or \"[::1]:9469\"",
            METRICS_HINT,
        );
    }
}

settings! {
    /// Sizes of the shared pages.
    pub struct PageOptions {
        /// Maximum number of resources of a tenant. Further ones share overflow slots.
        max_resources: u32 = 16_384, Whole { min: 2, max: RESOURCES_MAX };
        /// Maximum number of processes of a tenant that map the pages. Others ask over the socket.
        max_seats: u32 = 256, Whole { min: 2, max: SEATS_MAX };
        /// Rows of counters of a process. Further threads share one.
        lanes: u32 = 4, Whole { min: 1, max: LANES_MAX };
        /// After this time without a request the node of an origin or a context is given back; when slots become
        /// short, so is a resource on which no rule stands.
        idle_time: Duration = Duration::from_mins(10), DurationRange::ms(1_000, 86_400_000);
        /// Maximum number of scopes, the host included.
        max_scopes: u32 = 64, Whole { min: 1, max: SCOPES_MAX };
    }
}

settings! {
    /// What every tick measured, on disk.
    pub struct RecordingOptions {
        /// Whether it is kept.
        enabled: bool = true, Flag;
        /// Maximum size on disk, MiB; 32 are about two hours of three scopes.
        size_mib: u64 = 32, Whole { min: 1, max: 65_536 };
    }
    check check_recording;
}

impl Effects for RecordingOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("enabled"),
        OptionEffect::new("size_mib", |recording| {
            let off = !recording.enabled;
            Idle::when(off, "with enabled = true", "nothing is recorded")
        }),
    ];
}

fn check_recording(recording: &RecordingOptions, section: &mut Section<'_, '_>) {
    recording.warn(section);
}

impl PageOptions {
    /// The sizes as the pages take them.
    ///
    /// # Errors
    /// A size that the pages do not allow; the checks of the options let none through.
    pub const fn geometry(&self) -> Result<Geometry, SizeFault> {
        Geometry::new(
            self.max_resources,
            self.max_seats,
            self.lanes,
            self.max_scopes,
        )
    }
}

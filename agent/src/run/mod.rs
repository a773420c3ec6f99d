//! Runs the agent: puts the parts together, keeps them going, takes them apart.
//!
//! Order of the start: configuration, sockets, pages, rules, sampler thread, doors. Services of the agent's last life hand
//! their pages back before new ones are made. From then on the doors
//! answer; what is measured comes with the first ticks.

mod assembly;
mod awaited_file;
mod begin_config;
mod begin_rules;
mod bulkheads;
mod escalation;
mod handed_over;
mod keeper;
mod live;
mod log;
mod outlet;
mod page_store;
mod ready;
mod reload;
mod rule_feed;
mod rule_keep;
mod serve;
mod start_text;
mod state_line;
mod taking;
mod told;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::background::END_WITHIN;
use crate::calendar::unix_now;
use crate::config::ConfigRequest;
use crate::door::{self, open_files};
use crate::event::book::EventBook;
use crate::procfs::Roots;
use crate::schema::fault::Fault;

/// What the command line says.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The configuration.
    pub config: ConfigRequest,
    /// Directory of the sockets.
    pub directory: PathBuf,
    /// Directory of what lasts.
    pub state: PathBuf,
    /// Whether a fault in configuration or rules keeps the agent from starting.
    pub strict: bool,
    /// Where the kernel's files are.
    pub roots: Roots,
}

/// Why the agent did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum RunEnd {
    /// Faults of the configuration or the rules, all of them.
    #[error("{}", lines(.0))]
    Invalid(Vec<Fault>),
    /// Pages of these sizes are not possible.
    #[error("pages: {} = {} is not in 1..={}", .0.what, .0.value, .0.max)]
    Sizes(tidegate_abi::geometry::SizeFault),
    /// The pages could not be made.
    #[error(transparent)]
    Pages(#[from] crate::tenant::CreateError),
    /// Too few files may be open.
    #[error(transparent)]
    OpenFiles(#[from] open_files::TooFew),
    /// The sockets could not be placed.
    #[error(transparent)]
    Doors(#[from] door::OpenError),
    /// The system refused something else.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

fn lines(faults: &[Fault]) -> String {
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn system(what: &'static str) -> impl Fn(io::Error) -> RunEnd {
    move |error| RunEnd::System { what, error }
}

/// Runs the agent in the foreground until it is told to end.
///
/// # Errors
/// It could not start, or a part of it failed.
pub fn run(options: RunOptions) -> Result<(), RunEnd> {
    let events = Arc::new(EventBook::new(unix_now()));
    log::begin(&events);
    let done = run_logging(options, events);
    outlet::end();
    done
}

fn run_logging(options: RunOptions, events: Arc<EventBook>) -> Result<(), RunEnd> {
    close_to_debuggers();
    open_files::raise_limit()?;
    let runtime = door::runtime().map_err(system("cannot start the runtime"))?;
    // On the heap: the parts of an agent are too much for a stack frame.
    let assembled = runtime.block_on(Box::pin(assembly::assemble(options, events)));
    let done = assembled.and_then(|assembled| runtime.block_on(Box::pin(serve::serve(assembled))));
    // A look into a file may hang where the file is; nobody is left to need it.
    runtime.shutdown_timeout(END_WITHIN);
    done
}

/// The board is writable in this process alone: no other process of the same user may reach into it.
fn close_to_debuggers() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(errno) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(event = "memory_readable", %errno, "other processes of this user can read and write the agent's memory");
    }
}

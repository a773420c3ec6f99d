//! The overload lab of Tidegate: see README.md beside it.
#![forbid(unsafe_code)]

mod agent;
mod ask;
mod calibrate;
mod figures;
mod lab;
mod law;
mod load;
mod machine;
mod measure;
mod options;
mod output;
mod promises;
mod proxy;
mod report;
mod rival;
mod scene;
mod service;
mod sets;
mod watch;

use std::error::Error;
use std::fs;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use lab::Lab;
use machine::interrupt::Interrupt;
use machine::process::{self, Place};
use machine::{cpu, group, wait};
use measure::tell;
use options::{Measure, Options, Part};

/// How long a neighbour that takes a part of a CPU has it each time.
const SLICE: Duration = Duration::from_millis(10);

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match options.part {
        None => measured(&options.measure),
        Some(part) => part_of_lab(part),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("tidegate-lab: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn part_of_lab(part: Part) -> Result<(), Box<dyn Error>> {
    raise_open_files()?;
    match part {
        Part::Service(options) => Ok(service::run(&options)?),
        Part::Confine {
            cpu,
            group,
            program,
        } => Err(process::confine(&Place { cpu, group }, &program).into()),
        Part::Spin { share } => {
            say("spins\n")?;
            loop {
                cpu::burn(SLICE);
                wait::pass(SLICE.mul_f64(1.0 / share - 1.0));
            }
        }
    }
}

fn measured(options: &Measure) -> Result<(), Box<dyn Error>> {
    raise_open_files()?;
    let [service_cpu, load_cpu] = cpu::two()?;
    group::sweep();
    let groups = lab::try_groups(service_cpu);
    if let Err(error) = &groups {
        tell(&format!(
            "NO CONTROL GROUPS ({error}): services are judged in the scope of the host, and scenes with groups are not run"
        ));
    }
    let lab = Lab {
        agent: agent::program(options.agent.as_deref())?,
        service_cpu,
        load_cpu,
        groups: groups.is_ok(),
        // As it is shipped, but for where its files are.
        config: if options.own_scope {
            lab::OWN_SCOPE.to_owned()
        } else {
            String::new()
        },
        work: options.work(),
        deadline: Duration::from_millis(options.deadline_ms),
        interrupt: Interrupt::listen()?,
    };
    let _load_group = lab.load_group()?;
    cpu::pin(load_cpu)?;
    let parts = options.figures.map_or_else(
        || measure::parts(options),
        |set| sets::parts(set, &options.rival),
    );
    let report = measure::measure(&lab, &parts, options.trace)?;
    if let Some(file) = &options.svg {
        output::plot::draw(&report, file)?;
    }
    let verdicts = promises::verdicts(&report);
    if let Some(folder) = &options.into {
        fs::create_dir_all(folder)?;
        output::plot::draw(&report, &folder.join("goodput.svg"))?;
        let page = output::markdown::page(&report, &verdicts);
        fs::write(folder.join("figures.md"), page)?;
    }
    if options.json {
        say(&format!("{}\n", serde_json::to_string(&report)?))?;
    } else {
        say(&output::table::table(&report))?;
    }
    if options.figures.is_some() || options.check {
        tell(&output::table::verdicts(&verdicts));
    }
    if options.check {
        promises::check(&verdicts)?;
    }
    Ok(())
}

/// Every connection of the load is a descriptor here and one in the service.
fn raise_open_files() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    Ok(setrlimit(Resource::Nofile, raised)?)
}

fn say(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

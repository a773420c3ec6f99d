//! Decides in a loop, for a tool that counts instructions: `decide CASE CALLS`.

use std::process::ExitCode;

use tidegate_bench::{NEVER_REACHED, Pages, breaker, counter, enter, exit, flow};

const LONG_NS: u64 = 3_600_000_000_000;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(case), Some(calls)) = (arguments.next(), arguments.next()) else {
        eprintln!("decide CASE CALLS");
        return ExitCode::from(2);
    };
    let calls: u32 = calls.parse().unwrap_or(0);
    let mut pages = Pages::new(counter());
    let (what, resource) = case.split_once(':').unwrap_or(("pass", &case));
    let slot = match resource {
        "bare" => pages.plain("bare", None),
        "flow" => pages.plain("flow", Some(NEVER_REACHED)),
        "full" => pages.plain("full", Some(0)),
        "flow_degrade" => pages.ruled("both", &[flow(NEVER_REACHED), breaker(LONG_NS)]),
        "full_degrade" => pages.ruled("both", &[flow(0), breaker(LONG_NS)]),
        "open" => pages.ruled("open", &[flow(NEVER_REACHED), breaker(0)]),
        _ => {
            eprintln!("no case {case}");
            return ExitCode::from(2);
        }
    };
    let gate = pages.gate();
    // Lanes, cells and breakers are as they are after the first calls.
    for _call in 0..64 {
        if let Some(pass) = enter(&gate, slot) {
            exit(&gate, &pass);
        }
    }
    let mut admitted = 0;
    match (what, enter(&gate, slot)) {
        ("exit", Some(pass)) => (0..calls).for_each(|_call| exit(&gate, &pass)),
        _ => {
            for _call in 0..calls {
                if let Some(pass) = enter(&gate, slot) {
                    admitted += 1;
                    exit(&gate, &pass);
                }
            }
        }
    }
    println!("{admitted} of {calls} admitted");
    ExitCode::SUCCESS
}

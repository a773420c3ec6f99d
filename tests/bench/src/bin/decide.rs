//! Decides in a loop, for a tool that counts instructions: `decide CASE CALLS`.

use std::process::ExitCode;

use tidegate_abi::decision::Outcome;
use tidegate_decisions::{BenchPages, NEVER_REACHED, breaker, enter, exit, flow};
use tidegate_limits::breaker::trip::BreakerTrip;

const NEVER_SLOW: BreakerTrip = BreakerTrip::SlowRatio {
    max_rt_ns: 3_600_000_000_000,
    ratio: 0.5,
};
const HALF_BAD: BreakerTrip = BreakerTrip::ErrorRatio(0.5);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(case), Some(calls)) = (arguments.next(), arguments.next()) else {
        eprintln!("decide CASE CALLS");
        return ExitCode::from(2);
    };
    let calls: u32 = calls.parse().unwrap_or(0);
    let mut pages = BenchPages::new();
    let (what, resource) = case.split_once(':').unwrap_or(("pass", &case));
    let (slot, outcome) = match resource {
        "bare" => (pages.plain("bare", None), Outcome::Ok),
        "flow" => (pages.plain("flow", Some(NEVER_REACHED)), Outcome::Ok),
        "full" => (pages.plain("full", Some(0)), Outcome::Ok),
        "flow_degrade" | "small_scope" => {
            let rules = [flow(NEVER_REACHED), breaker(NEVER_SLOW)];
            (pages.ruled("both", &rules), Outcome::Ok)
        }
        "full_degrade" => {
            let rules = [flow(0), breaker(NEVER_SLOW)];
            (pages.ruled("both", &rules), Outcome::Ok)
        }
        "open" => {
            let rules = [flow(NEVER_REACHED), breaker(HALF_BAD)];
            (pages.ruled("open", &rules), Outcome::Error)
        }
        _ => {
            eprintln!("no case {case}");
            return ExitCode::from(2);
        }
    };
    if resource == "small_scope" {
        pages.count_each_time();
    }
    let gate = pages.gate();
    // Lanes, cells and breakers are as they are after the first calls.
    // The 64th has been looked at closely.
    for _call in 0..70 {
        if let Some(pass) = enter(&gate, slot) {
            exit(&gate, &pass, outcome);
        }
    }
    let mut admitted = 0;
    match (what, enter(&gate, slot)) {
        ("exit", Some(pass)) => (0..calls).for_each(|_call| exit(&gate, &pass, Outcome::Ok)),
        _ => {
            for _call in 0..calls {
                if let Some(pass) = enter(&gate, slot) {
                    admitted += 1;
                    exit(&gate, &pass, Outcome::Ok);
                }
            }
        }
    }
    println!("{admitted} of {calls} admitted");
    ExitCode::SUCCESS
}

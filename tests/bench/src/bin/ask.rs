//! Asks a running agent through the client in a loop, for a tool that counts instructions:
//! `ask RUNTIME_DIR CASE CALLS`, with the cases of `tidegate_decisions::agent`.

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;

use tidegate_decisions::agent::{ask, client};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, case, calls] = arguments.as_slice() else {
        eprintln!("ask RUNTIME_DIR CASE CALLS");
        return ExitCode::from(2);
    };
    let calls: u32 = calls.parse().unwrap_or(0);
    let client = client(Path::new(dir));
    let resource = client.resource(case).expect("a name");
    // Lanes, cells and breakers are as they are after the first calls.
    for _call in 0..64 {
        ask(black_box(&resource));
    }
    let mut admitted = 0_u32;
    for _call in 0..calls {
        admitted += u32::from(ask(black_box(&resource)));
    }
    println!("{admitted} of {calls} admitted");
    ExitCode::SUCCESS
}

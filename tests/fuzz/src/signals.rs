//! The kernel's and the JVM's files: each is a value or a fault, whatever stands in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_agent::signal::fuzz;

fuzz_target!(|bytes: &[u8]| {
    // The first byte says which file the others are.
    if let Some((&which, content)) = bytes.split_first() {
        fuzz::parse(which, content);
    }
});

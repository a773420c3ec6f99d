//! The programs that run in the kernel.
//!
//! What they leave in their maps is described in `tidegate_abi::kernel`; `agent/src/ebpf` loads
//! them and reads the maps. A program has no loop without a bound, no call that waits, and works in
//! place: a scheduler event inserts and removes nothing.
//!
//! Fields of the kernel's structs are where this kernel has them: the agent looks their offsets up
//! and sets the constants of [`offset`] before it loads a program, so that the verifier sees numbers.
#![no_std]
#![no_main]
#![expect(
    unsafe_code,
    reason = "a program reads memory of the kernel by address; the verifier proves each access"
)]

mod account;
mod clock;
mod empty;
mod jvm;
mod offset;
mod preempt;
mod record;
mod runqueue;
mod sample;
mod sched_info;
mod slot;
mod task;
mod tracepoint;

#[cfg(not(test))]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    // Never linked: no program can panic, or the verifier would refuse it.
    loop {}
}

/// The kernel gives its helpers to programs under a licence like its own.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

//! Programs in this machine's own kernel: what loads, what they see of real load, and what they miss.

#![cfg(test)]

mod budget;
mod caps;
mod jvm;
mod ladder;
mod object;
mod ring;
mod verifier;
mod wait;
mod watching;

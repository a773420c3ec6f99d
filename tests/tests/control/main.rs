//! The control loop on trees of plain files and on pages in private memory, with a scripted clock;
//! and once for real.

#![cfg(test)]

mod allocations;
mod bench;
mod groups;
mod host;
mod sharing;
mod thread;

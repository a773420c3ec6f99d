//! The law as a whole: scripted samples, odd samples, and a simulated service under it.

mod below_capacity;
mod bulkhead;
mod fairness;
mod one_shot;
mod overload;
mod properties;
mod replay;
mod sentinel;
mod service;

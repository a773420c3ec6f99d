//! The handbook says what the code does: its tables are made from the code, its links lead somewhere, its
//! configuration is valid, and its commands show what it says they show.

#![cfg(test)]

mod blocks;
mod links;
mod pages;
mod runbooks;
mod samples;
mod shell;

//! What a request consists of, which nobody looks at.

use std::convert::Infallible;

use tidegate_abi::argument::Arg;
use tidegate_abi::decision::{Class, Direction};

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) count: u32,
    pub(crate) direction: Direction,
    pub(crate) class: Class,
    pub(crate) prioritized: bool,
    pub(crate) origin: RequestName,
    pub(crate) context: RequestName,
    pub(crate) args: &'a [Arg<'a>],
}

/// An origin or context.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestName {
    pub(crate) hash: u64,
    pub(crate) node: Option<Infallible>,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Self {
            count: 1,
            direction: Direction::In,
            class: Class::Normal,
            prioritized: false,
            origin: RequestName::default(),
            context: RequestName::default(),
            args: &[],
        }
    }
}

//! Arguments of a request, as the gate takes them.

use std::ops::Range;

use tidegate_abi::argument::Arg;
use tidegate_abi::message::Args;

/// Arguments, hashed. Without any, nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    values: Vec<u64>,
    given: Vec<Range<usize>>,
}

impl Arguments {
    /// Those of a frame.
    pub(super) fn of(args: Args<'_>) -> Self {
        let mut arguments = Self::default();
        args.iter().for_each(|values| arguments.push(values));
        arguments
    }

    /// Adds an argument with its values; none = nothing was given there.
    pub(super) fn push(&mut self, values: impl IntoIterator<Item = u64>) {
        let start = self.values.len();
        self.values.extend(values);
        self.given.push(start..self.values.len());
    }

    /// How many values there are.
    pub(super) const fn values(&self) -> usize {
        self.values.len()
    }

    /// For the gate.
    pub(super) fn args(&self) -> Vec<Arg<'_>> {
        let given = self.given.iter().cloned();
        let args = given.map(|range| match self.values.get(range) {
            None | Some([]) => Arg::None,
            Some([value]) => Arg::One(*value),
            Some(values) => Arg::Many(values),
        });
        args.collect()
    }
}

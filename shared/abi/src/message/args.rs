//! Arguments of a request in a frame: their number (1 byte), then for each the number of its values
//! (1 byte, 0 = nothing) and the values (8 bytes each), hashed as [`crate::argument`] says.

use super::FrameFault;
use crate::argument::Arg;

/// Most arguments of a request.
pub const ARGS_MAX: usize = 16;
/// Most values of all arguments of a request together.
pub const VALUES_MAX: usize = 64;

/// Bytes of a value.
const VALUE: usize = 8;
/// Most bytes of the arguments.
const BYTES_MAX: usize = 1 + ARGS_MAX + VALUE * VALUES_MAX;

/// Arguments, read or to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a>(&'a [u8]);

impl<'a> Args<'a> {
    /// No arguments.
    pub const NONE: Self = Self(&[0]);

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.first().is_none_or(|number| *number == 0)
    }

    /// The values of each argument; none = nothing was given there.
    pub fn iter(&self) -> impl Iterator<Item = impl Iterator<Item = u64> + use<'a>> + use<'a> {
        let mut rest = self.0.split_first().map_or(self.0, |(_number, rest)| rest);
        core::iter::from_fn(move || {
            let (values, behind) = split_values(rest)?;
            rest = behind;
            let (values, _whole) = values.as_chunks::<VALUE>();
            Some(values.iter().map(|value| u64::from_le_bytes(*value)))
        })
    }

    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Splits arguments off the front of a frame's fields.
    pub(super) fn take(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), FrameFault> {
        let (number, mut rest) = bytes.split_first().ok_or(FrameFault::Short)?;
        if usize::from(*number) > ARGS_MAX {
            return Err(FrameFault::Value("args"));
        }
        let mut left = VALUES_MAX;
        for _argument in 0..*number {
            let values = rest.first().ok_or(FrameFault::Short)?;
            let fewer = left.checked_sub(usize::from(*values));
            left = fewer.ok_or(FrameFault::Value("args"))?;
            (_, rest) = split_values(rest).ok_or(FrameFault::Short)?;
        }
        let length = bytes.len().saturating_sub(rest.len());
        let (args, rest) = bytes.split_at_checked(length).ok_or(FrameFault::Short)?;
        Ok((Self(args), rest))
    }
}

/// The bytes of the values of the first argument, and what is behind it.
fn split_values(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (number, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*number).saturating_mul(VALUE))
}

/// Arguments under construction.
#[derive(Debug, Clone, Copy)]
pub struct ArgsBuffer {
    bytes: [u8; BYTES_MAX],
    length: usize,
    /// Values there is room for.
    left: usize,
}

impl ArgsBuffer {
    /// The first arguments, as many as fit: at most [`ARGS_MAX`] with [`VALUES_MAX`] values together.
    pub fn of(args: &[Arg<'_>]) -> Self {
        let mut buffer = Self {
            bytes: [0; BYTES_MAX],
            length: 1,
            left: VALUES_MAX,
        };
        let mut number = 0_u8;
        for arg in args.iter().take(ARGS_MAX) {
            let put = match arg {
                Arg::None => buffer.put(&[]),
                Arg::One(value) => buffer.put(core::slice::from_ref(value)),
                Arg::Many(values) => buffer.put(values),
            };
            if !put {
                break;
            }
            number = number.saturating_add(1);
        }
        if let Some(first) = buffer.bytes.first_mut() {
            *first = number;
        }
        buffer
    }

    /// The arguments.
    pub fn args(&self) -> Args<'_> {
        Args(self.bytes.get(..self.length).unwrap_or(&[0]))
    }

    /// Puts an argument behind the others; `false` if there is no room for it.
    fn put(&mut self, values: &[u64]) -> bool {
        let left = self.left.checked_sub(values.len());
        let (Some(left), Ok(number)) = (left, u8::try_from(values.len())) else {
            return false;
        };
        let tail = self.bytes.get_mut(self.length..).unwrap_or(&mut []);
        let Some((first, tail)) = tail.split_first_mut() else {
            return false;
        };
        let (places, _rest) = tail.as_chunks_mut::<VALUE>();
        let Some(places) = places.get_mut(..values.len()) else {
            return false;
        };
        self.left = left;
        *first = number;
        for (place, value) in places.iter_mut().zip(values) {
            *place = value.to_le_bytes();
        }
        let length = values.len().saturating_mul(VALUE).saturating_add(1);
        self.length = self.length.saturating_add(length);
        true
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    fn read(args: Args<'_>) -> Vec<Vec<u64>> {
        args.iter().map(Iterator::collect).collect()
    }

    #[test]
    fn arguments_read_back_as_they_were_written() {
        let buffer = ArgsBuffer::of(&[Arg::One(7), Arg::None, Arg::Many(&[1, 2, u64::MAX])]);
        let (args, rest) = Args::take(buffer.args().bytes()).unwrap();
        assert_eq!(rest, []);
        assert_eq!(read(args), [&[7][..], &[], &[1, 2, u64::MAX]]);
        assert!(!args.is_empty());
        assert!(ArgsBuffer::of(&[]).args().is_empty());
        assert_eq!(read(Args::NONE), [[0_u64; 0]; 0]);
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_refused_by_the_reader() {
        let many = [3; VALUES_MAX];
        let all = ArgsBuffer::of(&[Arg::Many(&many)]);
        assert_eq!(read(all.args())[0].len(), VALUES_MAX);
        let more = [Arg::Many(&many), Arg::One(1)];
        let cut = ArgsBuffer::of(&more);
        assert_eq!(read(cut.args()).len(), 1);
        Args::take(cut.args().bytes()).unwrap();
        assert_eq!(
            read(ArgsBuffer::of(&[Arg::None; 17]).args()).len(),
            ARGS_MAX
        );
        let mut long = [0; 600];
        long[0] = 17;
        assert_eq!(Args::take(&long), Err(FrameFault::Value("args")));
        let too_many = [1, 65];
        assert_eq!(Args::take(&too_many), Err(FrameFault::Value("args")));
        assert_eq!(Args::take(&[1, 2, 0]), Err(FrameFault::Short));
        assert_eq!(Args::take(&[]), Err(FrameFault::Short));
    }
}

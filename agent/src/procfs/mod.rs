//! The files of the kernel: where they are, how they are kept open, and why one tells nothing.
//!
//! Nothing here knows what a file means for a signal. From the bottom: `missing`, `cause`, `lack` (why a value is
//! missing) · `parse` (bytes to values, pure) · `kept_file`, `directory` (bytes and names without allocating) ·
//! `roots`, `view`, `layout` (where the files of a group are) · `group_finder`, `pattern` (which group).

mod cause;
pub(crate) mod directory;
mod group_finder;
mod jvm_name;
pub(crate) mod kept_file;
mod lack;
mod layout;
mod missing;
pub(crate) mod parse;
mod pattern;
mod roots;
mod view;

pub(crate) use directory::open_below;
pub use group_finder::GroupFinder;
pub(crate) use jvm_name::names_jvm;
pub use lack::Lack;
pub(crate) use layout::{Layout, Place, Places, Version, readable};
pub(crate) use missing::NamedSource;
pub use missing::{Missing, NoValue};
pub use pattern::{GroupPattern, PatternFault};
pub(crate) use roots::CGROUP_ROOT;
pub use roots::Roots;

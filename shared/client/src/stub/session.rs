//! Names of a request.

/// Names of a request, besides that of the resource; empty if there is none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Names<'a> {
    pub(crate) origin: &'a str,
    pub(crate) context: &'a str,
}

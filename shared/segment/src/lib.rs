//! The mapped pages.

//! Socket messages: one SEQPACKET packet is one frame.

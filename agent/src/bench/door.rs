//! One decision through the doors of an agent that runs for the bench.

use super::{Figure, NoFigure};

/// Measures both doors.
pub(super) fn figures() -> [Figure; 2] {
    let missing = || Err(NoFigure::Wrong("the agent has no doors yet".to_owned()));
    [
        Figure {
            name: "socket_p50_us",
            how: "one decision over gate.sock of an agent in another process, median",
            value: missing(),
        },
        Figure {
            name: "http_p50_us",
            how: "one decision over http.sock, median",
            value: missing(),
        },
    ]
}

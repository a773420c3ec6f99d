//! A bare SEQPACKET echo: the least that a decision over a socket can cost here.

use std::time::Instant;

use crate::child::{Line, Part, Role};
use crate::figure::{Figure, NoFigure};
use crate::timing::quantile;

/// Round trips that are measured, and those before them that are not.
pub(crate) const TRIPS: u32 = 8000;
pub(crate) const WARM_UP: u32 = 500;

/// About what a question of the gate's door has, bytes.
const MESSAGE: [u8; 40] = [7; 40];

/// Measures the echo.
pub(crate) fn figure() -> Figure {
    Figure {
        name: "socket_echo_p50_us",
        how: "a bare SEQPACKET echo of another process, median",
        value: echo_us(),
    }
}

fn echo_us() -> Result<f64, NoFigure> {
    let part = Part::start(Role::Echo)?;
    let mut buffer = [0; 64];
    trip_p50_us(|| {
        let start = Instant::now();
        part.line.send(&MESSAGE)?;
        part.line.receive(&mut buffer)?;
        Ok(start.elapsed().as_secs_f64())
    })
}

/// Median of a trip that says how many seconds it took, µs.
pub(crate) fn trip_p50_us(
    mut trip: impl FnMut() -> Result<f64, NoFigure>,
) -> Result<f64, NoFigure> {
    for _trip in 0..WARM_UP {
        trip()?;
    }
    let mut times = Vec::new();
    for _trip in 0..TRIPS {
        times.push(trip()? * 1e6);
    }
    Ok(quantile(&mut times, 0.5))
}

/// The second process: sends every message back.
pub(crate) fn answer(line: &Line) -> Result<(), NoFigure> {
    let mut buffer = [0; 64];
    loop {
        let message = line.receive(&mut buffer)?;
        if message.is_empty() {
            return Ok(());
        }
        line.send(message)?;
    }
}

//! Goodput against offered load, a line for each law.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use crate::report::{Report, Row};
use crate::scene;

const SIZE: (u32, u32) = (820, 460);
/// A line's colour, in the order of the laws in the report.
const COLOURS: [RGBColor; 10] = [
    RGBColor(0, 90, 160),
    RGBColor(120, 120, 120),
    RGBColor(200, 80, 0),
    RGBColor(0, 140, 90),
    RGBColor(170, 0, 120),
    RGBColor(190, 160, 0),
    RGBColor(90, 60, 30),
    RGBColor(230, 90, 120),
    RGBColor(80, 80, 220),
    RGBColor(60, 160, 200),
];

/// Draws the steady scene of a report into a file.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn draw(report: &Report, file: &Path) -> Result<(), Box<dyn Error>> {
    let steady = |row: &&Row| row.kind.scene == scene::Name::Steady;
    let rows: Vec<&Row> = report.runs.iter().filter(steady).collect();
    let most = rows.iter().map(|row| row.offered).fold(1.0, f64::max);
    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d((0.4_f64..most * 1.05).log_scale(), 0.0_f64..115.0)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("offered load, times of the capacity")
        .y_desc("answers in time, % of the peak")
        .x_label_formatter(&|times| format!("{times:.1}"))
        .draw()?;
    let mut laws: Vec<&str> = rows.iter().map(|row| row.law).collect();
    laws.dedup();
    for (law, colour) in laws.into_iter().zip(COLOURS) {
        let points = rows.iter().filter(|row| row.law == law);
        let points: Vec<(f64, f64)> = points
            .map(|row| (row.offered, row.goodput_ratio * 100.0))
            .collect();
        let style = colour.stroke_width(if law == "adaptive" { 4 } else { 2 });
        let line = LineSeries::new(points, style).point_size(3);
        let series = chart.draw_series(line)?;
        series
            .label(law)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .position(SeriesLabelPosition::MiddleRight)
        .draw()?;
    root.present()?;
    Ok(())
}

//! Draws what was found about requests over HTTP as bars, in SVG.
//!
//! It must not know how anything was measured: it draws those figures of a report that it has a name for.

use std::path::Path;

use anyhow::{Result, anyhow, ensure};
use plotters::prelude::{
    Color as _, DrawingArea, IntoDrawingArea as _, IntoFont as _, RGBColor, Rectangle, SVGBackend,
    Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::report::Report;

/// The figures that are drawn, and what they are called, from the top.
const BARS: [(&str, &str); 5] = [
    ("echo_per_s", "bare echo"),
    ("tasks_get_per_s", "tasks/get"),
    ("http_call_per_s", "tools/call, sandboxed"),
    ("rmcp_native_call_per_s", "tools/call, native (rmcp)"),
    ("http_create_16_per_s", "durable tasks made, 16 callers"),
];

/// In pixels.
const WIDTH: i32 = 720;
const ROW: i32 = 34;
const LABELS: i32 = 230;
const NUMBERS: i32 = 90;

const OURS: RGBColor = RGBColor(0x1f, 0x6f, 0xb2);
const OTHERS: RGBColor = RGBColor(0x9a, 0xa5, 0xb1);
const INK: RGBColor = RGBColor(0x33, 0x33, 0x33);

/// Draw.
///
/// # Errors
/// If nothing that is drawn was measured, or the file cannot be written.
pub(crate) fn draw(report: &Report, file: &Path) -> Result<()> {
    let bars: Vec<(&str, f64)> = BARS
        .iter()
        .filter_map(|(name, label)| Some((*label, report.find(name)?)))
        .collect();
    let most = bars.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    ensure!(
        most > 0.0,
        "there is nothing to draw: measure `call` and `durable`"
    );
    let height = ROW * (i32::try_from(bars.len())? + 1);
    let area =
        SVGBackend::new(file, (WIDTH.unsigned_abs(), height.unsigned_abs())).into_drawing_area();
    area.fill(&RGBColor(255, 255, 255))?;
    write(&area, "requests a second", (LABELS, ROW / 2), HPos::Left)?;
    for (row, (label, value)) in (1..).zip(&bars) {
        let middle = row * ROW + ROW / 2 - 4;
        #[allow(clippy::cast_possible_truncation, reason = "within the picture")]
        let length = (value / most * f64::from(WIDTH - LABELS - NUMBERS)).round() as i32;
        let is_ours = !label.contains("echo") && !label.contains("native");
        let color = if is_ours { OURS } else { OTHERS };
        let bar = [
            (LABELS, middle - ROW / 3),
            (LABELS + length, middle + ROW / 3),
        ];
        area.draw(&Rectangle::new(bar, color.filled()))
            .map_err(failed)?;
        write(&area, label, (LABELS - 8, middle), HPos::Right)?;
        let end = (LABELS + length + 8, middle);
        write(&area, &format!("{value:.0}"), end, HPos::Left)?;
    }
    area.present().map_err(failed)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn write(area: &Area<'_>, text: &str, at: (i32, i32), side: HPos) -> Result<()> {
    let style = ("sans-serif", 15).into_font().color(&INK);
    let style = style.pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(text.to_owned(), at, style))
        .map_err(failed)
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("drawing the chart: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_drawn_of_what_was_measured() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("chart.svg");
        let mut report = Report::default();
        assert!(draw(&report, &file).is_err());
        report.figure("echo_per_s", 100_000.0);
        report.figure("http_call_per_s", 50_000.0);
        draw(&report, &file).unwrap();
        let svg = std::fs::read_to_string(&file).unwrap();
        assert!(svg.contains("bare echo") && svg.contains("50000"), "{svg}");
        assert!(!svg.contains("rmcp"), "{svg}");
    }
}

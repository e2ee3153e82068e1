//! Drawing: from figures to SVG.

use std::fmt::Write as _;

use nearset_view::plot::{self, text};

use super::{Colour, Figure, Label, Panel, Point, Rule, Series, Shape, Side, axis::Laid};

const WIDTH: f64 = 920.0;
const EDGE: f64 = 22.0;
/// The space left of a panel, for its numbers and label.
const LEFT: f64 = 74.0;
/// The space below a panel, for the same.
const BELOW: f64 = 56.0;
const GAP: f64 = 18.0;
const PANEL_TITLE: f64 = 24.0;
const LEGEND_ROW: f64 = 21.0;
/// The approximate width of a letter at the size of the text.
const LETTER: f64 = 6.5;

impl Colour {
    fn hex(self) -> &'static str {
        match self {
            Colour::Blue => "#0072b2",
            Colour::Vermilion => "#d55e00",
            Colour::Green => "#009e73",
            Colour::Purple => "#b3598f",
            Colour::Orange => "#d99000",
            Colour::Sky => "#56b4e9",
            Colour::Black => "#333333",
        }
    }
}

impl Shape {
    fn stroke(self) -> Option<&'static str> {
        match self {
            Shape::Line => Some("stroke-width=\"2.2\""),
            Shape::Dashed => Some("stroke-width=\"2\" stroke-dasharray=\"8 4\""),
            Shape::Dotted => Some("stroke-width=\"2\" stroke-dasharray=\"2 4\" stroke-linecap=\"round\""),
            Shape::DotsOnLine => Some("stroke-width=\"1.3\""),
            Shape::Dots | Shape::Squares | Shape::Band | Shape::Bars => None,
        }
    }

    fn has_dots(self) -> bool {
        matches!(self, Shape::Dots | Shape::Squares | Shape::DotsOnLine)
    }
}

impl Figure {
    /// Draws the picture.
    pub fn to_svg(&self) -> String {
        let legend = self.legend();
        let legend_top = 38.0 + 18.0 * self.notes.len() as f64 + 8.0;
        let legend_rows = legend.last().map_or(0.0, |(_, _, row)| row + 1.0);
        let panels_top = legend_top + LEGEND_ROW * legend_rows + 10.0;
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let rows = self.panels.len().div_ceil(columns);
        let width = (WIDTH - 2.0 * EDGE - GAP * (columns - 1) as f64) / columns as f64 - LEFT;
        let height = if columns == 1 { 380.0 } else { 270.0 };
        let row_height = PANEL_TITLE + height + BELOW;
        let total = panels_top + rows as f64 * row_height + 6.0;

        let mut svg = plot::start(&self.title, WIDTH, total);
        text(&mut svg, EDGE, 32.0, "font-size=\"17\" font-weight=\"600\" fill=\"#111\"", &self.title);
        for (i, line) in self.notes.iter().enumerate() {
            text(&mut svg, EDGE, 53.0 + 18.0 * i as f64, "fill=\"#555\"", line);
        }
        for (series, x, row) in &legend {
            let y = legend_top + LEGEND_ROW * (row + 0.5);
            key(&mut svg, series, EDGE + x, y);
            text(&mut svg, EDGE + x + 40.0, y + 4.5, "", &series.name);
        }
        for (i, panel) in self.panels.iter().enumerate() {
            let (column, row) = (i % columns, i / columns);
            let left = EDGE + LEFT + column as f64 * (LEFT + width + GAP);
            let top = panels_top + PANEL_TITLE + row as f64 * row_height;
            Frame::new(panel, i, (left, top), (width, height)).draw(&mut svg);
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Returns every name once, with its position and row in the legend.
    fn legend(&self) -> Vec<(&Series, f64, f64)> {
        let mut listed: Vec<(&Series, f64, f64)> = Vec::new();
        let (mut x, mut row) = (0.0, 0.0);
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            if series.name.is_empty() || listed.iter().any(|(other, ..)| other.name == series.name) {
                continue;
            }
            let width = 40.0 + LETTER * series.name.chars().count() as f64 + 22.0;
            if x > 0.0 && x + width > WIDTH - 2.0 * EDGE {
                (x, row) = (0.0, row + 1.0);
            }
            listed.push((series, x, row));
            x += width;
        }
        listed
    }
}

/// A panel and its position in the picture.
struct Frame<'a> {
    panel: &'a Panel,
    id: usize,
    x: Laid,
    y: Laid,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl<'a> Frame<'a> {
    fn new(panel: &'a Panel, id: usize, (left, top): (f64, f64), (width, height): (f64, f64)) -> Self {
        let points = || panel.series.iter().flat_map(|series| &series.points);
        let x = panel.x.around(points().map(|point| point.x));
        let heights = points().flat_map(|point| {
            let (low, high) = point.error.unwrap_or((point.y, point.y));
            [point.y, low, high]
        });
        Self { panel, id, x, y: panel.y.around(heights), left, top, width, height }
    }

    fn across(&self, x: f64) -> f64 {
        self.left + self.width * self.x.part(x)
    }

    fn down(&self, y: f64) -> f64 {
        self.top + self.height * (1.0 - self.y.part(y))
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    fn right(&self) -> f64 {
        self.left + self.width
    }

    fn draw(&self, svg: &mut String) {
        let Self { panel, id, left, top, width, height, .. } = self;
        self.grid(svg);
        let title = "font-weight=\"600\" fill=\"#222\"";
        text(svg, *left, top - 9.0, title, &panel.title);
        let _ = writeln!(
            svg,
            "<clipPath id=\"panel{id}\"><rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/></clipPath>\n\
             <g clip-path=\"url(#panel{id})\">",
            top - 1.0,
            height + 2.0
        );
        let bars: Vec<&Series> = panel.series.iter().filter(|series| series.shape == Shape::Bars).collect();
        for series in panel.series.iter().rev() {
            match series.shape {
                Shape::Bars => {
                    let place = bars.iter().position(|other| std::ptr::eq(*other, series)).unwrap_or(0);
                    self.bars(svg, series, place, bars.len());
                }
                Shape::Band => self.band(svg, series),
                _ => self.line(svg, series),
            }
        }
        svg.push_str("</g>\n");
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"none\" stroke=\"#888\"/>"
        );
        // Outside the clip, so that dots on the frame are whole.
        panel.series.iter().rev().filter(|series| series.shape.has_dots()).for_each(|series| self.dots(svg, series));
        panel.rules.iter().for_each(|rule| self.rule(svg, rule));
        panel.labels.iter().for_each(|label| self.label(svg, label));
    }

    fn grid(&self, svg: &mut String) {
        let (ticks, lines) = self.x.ticks((self.width / 46.0) as u32);
        let upright = |svg: &mut String, at: f64, stroke: &str| {
            let (x, top, height) = (self.across(at), self.top, self.height);
            let _ = writeln!(svg, "<path d=\"M{x:.1} {top:.1}v{height:.1}\" stroke=\"{stroke}\" stroke-width=\".8\"/>");
        };
        lines.into_iter().for_each(|at| upright(svg, at, "#f0f1f3"));
        // The rounder a number, the earlier it comes; what would touch one before it stays a line.
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for (at, name) in ticks {
            upright(svg, at, "#dfe2e6");
            let (x, half) = (self.across(at), 0.55 * LETTER * name.chars().count() as f64 + 3.0);
            if taken.iter().all(|(from, to)| x + half < *from || x - half > *to) {
                taken.push((x - half, x + half));
                text(svg, x, self.bottom() + 18.0, "text-anchor=\"middle\"", &name);
            }
        }
        let (ticks, lines) = self.y.ticks((self.height / 36.0) as u32);
        let level = |svg: &mut String, at: f64, stroke: &str| {
            let (y, left, width) = (self.down(at), self.left, self.width);
            let _ = writeln!(svg, "<path d=\"M{left:.1} {y:.1}h{width:.1}\" stroke=\"{stroke}\" stroke-width=\".8\"/>");
        };
        lines.into_iter().for_each(|at| level(svg, at, "#f0f1f3"));
        for (at, name) in ticks {
            level(svg, at, "#dfe2e6");
            text(svg, self.left - 7.0, self.down(at) + 4.5, "text-anchor=\"end\"", &name);
        }
        let middle = self.left + 0.5 * self.width;
        text(svg, middle, self.bottom() + 40.0, "text-anchor=\"middle\" fill=\"#222\"", self.panel.x.label());
        let (x, y) = (self.left - LEFT + 14.0, self.top + 0.5 * self.height);
        let style = format!("text-anchor=\"middle\" fill=\"#222\" transform=\"rotate(-90 {x:.1} {y:.1})\"");
        text(svg, x, y, &style, self.panel.y.label());
    }

    fn line(&self, svg: &mut String, series: &Series) {
        let Some(stroke) = series.shape.stroke() else { return };
        let (colour, path) = (series.colour.hex(), self.path(series.points.iter().map(|point| (point.x, point.y))));
        let _ =
            writeln!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-linejoin=\"round\" {stroke}/>");
    }

    fn dots(&self, svg: &mut String, series: &Series) {
        let inside = |part: f64| (-1e-9..=1.0 + 1e-9).contains(&part);
        for point in series.points.iter().filter(|point| inside(self.x.part(point.x))) {
            let (x, colour) = (self.across(point.x), series.colour.hex());
            if inside(self.y.part(point.y)) {
                self.whisker(svg, point, x, colour);
                dot(svg, series, x, self.down(point.y));
            } else if let Some((_, high)) = point.error.filter(|(_, high)| inside(self.y.part(*high))) {
                // Nothing was counted, or less than the axis shows: an arrow points down from the upper bound.
                let y = self.down(high);
                let _ = writeln!(
                    svg,
                    "<path d=\"M{:.1} {y:.1}h8M{x:.1} {y:.1}v12m-3.5 -5l3.5 5l3.5 -5\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.3\"/>",
                    x - 4.0
                );
            }
        }
    }

    /// Draws straight lines from point to point, broken where a value is not a number.
    fn path(&self, points: impl Iterator<Item = (f64, f64)>) -> String {
        let (mut path, mut open) = (String::new(), false);
        for (x, y) in points {
            // Points far outside are clamped here, since some viewers draw them poorly.
            let (x, y) = (self.across(x), self.down(y).clamp(self.top - 900.0, self.bottom() + 900.0));
            if !(x.is_finite() && y.is_finite()) {
                open = false;
                continue;
            }
            let _ = write!(path, "{}{x:.2} {y:.2}", if open { "L" } else { "M" });
            open = true;
        }
        path
    }

    fn band(&self, svg: &mut String, series: &Series) {
        let ends = |point: &Point| point.error.unwrap_or((point.y, point.y));
        let upper = series.points.iter().map(|point| (point.x, ends(point).1));
        let lower = series.points.iter().rev().map(|point| (point.x, ends(point).0));
        let path = self.path(upper.chain(lower));
        let _ = writeln!(svg, "<path d=\"{path}Z\" fill=\"{}\" fill-opacity=\".22\"/>", series.colour.hex());
    }

    fn bars(&self, svg: &mut String, series: &Series, place: usize, of: usize) {
        let slot = self.width * (self.x.part(1.0) - self.x.part(0.0));
        let width = 0.8 * slot / of as f64;
        for point in &series.points {
            let left = self.across(point.x) - 0.4 * slot + width * place as f64;
            let base = if self.y.is_logarithmic() { self.bottom() } else { self.down(0.0).min(self.bottom()) };
            let top = self.down(point.y).clamp(self.top - 6.0, self.bottom() + 6.0);
            // A bar of 0 still shows, to tell it from no bar at all.
            let height = (base - top).abs().max(2.5);
            let y = base - height;
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{}\"/>",
                width - 1.0,
                series.colour.hex()
            );
            self.whisker(svg, point, left + 0.5 * (width - 1.0), "#333333");
        }
    }

    fn whisker(&self, svg: &mut String, point: &Point, x: f64, colour: &str) {
        let Some((low, high)) = point.error else { return };
        let (low, high) = (self.down(low).min(self.bottom()), self.down(high).max(self.top));
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {low:.1}V{high:.1}M{:.1} {high:.1}h6M{:.1} {low:.1}h6\" stroke=\"{colour}\" stroke-width=\"1.2\"/>",
            x - 3.0,
            x - 3.0
        );
    }

    fn rule(&self, svg: &mut String, rule: &Rule) {
        let style = "stroke=\"#666\" stroke-dasharray=\"5 4\"";
        match rule {
            Rule::Vertical(at, name) => {
                let x = self.across(*at);
                let _ = writeln!(svg, "<path d=\"M{x:.1} {:.1}v{:.1}\" {style}/>", self.top, self.height);
                match self.has_room_right(x + 4.0, name) {
                    true => self.words(svg, (x + 4.0, self.top + 14.0), "start", name),
                    false => self.words(svg, (x - 4.0, self.top + 14.0), "end", name),
                }
            }
            Rule::Horizontal(at, name) => {
                let y = self.down(*at);
                let _ = writeln!(svg, "<path d=\"M{:.1} {y:.1}h{:.1}\" {style}/>", self.left, self.width);
                self.words(svg, (self.right() - 5.0, y - 4.0), "end", name);
            }
        }
    }

    fn label(&self, svg: &mut String, label: &Label) {
        let (x, y) = (self.across(label.at.0), self.down(label.at.1));
        let (x, anchor) = match label.side {
            Side::Right if self.has_room_right(x + 9.0, &label.text) => (x + 9.0, "start"),
            Side::Left | Side::Right => (x - 9.0, "end"),
        };
        self.words(svg, (x, y + 4.5), anchor, &label.text);
    }

    /// Returns whether words that start here end within the frame.
    fn has_room_right(&self, x: f64, words: &str) -> bool {
        x + LETTER * words.chars().count() as f64 <= self.right()
    }

    /// Writes text over the drawing, with a halo that keeps it readable.
    fn words(&self, svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
        let style = format!(
            "text-anchor=\"{anchor}\" font-size=\"12\" fill=\"#222\" stroke=\"#fff\" stroke-width=\"3.5\" paint-order=\"stroke\""
        );
        text(svg, x, y, &style, words);
    }
}

/// Draws a series' sample in the legend.
fn key(svg: &mut String, series: &Series, x: f64, y: f64) {
    let colour = series.colour.hex();
    if let Some(stroke) = series.shape.stroke() {
        let _ = writeln!(svg, "<path d=\"M{x:.1} {y:.1}h32\" fill=\"none\" stroke=\"{colour}\" {stroke}/>");
    }
    if matches!(series.shape, Shape::Bars | Shape::Band) {
        let opacity = if series.shape == Shape::Band { ".22" } else { "1" };
        let top = y - 6.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"32\" height=\"12\" fill=\"{colour}\" fill-opacity=\"{opacity}\"/>"
        );
    }
    if series.shape.has_dots() {
        dot(svg, series, x + 16.0, y);
    }
}

fn dot(svg: &mut String, series: &Series, x: f64, y: f64) {
    let colour = series.colour.hex();
    let _ = if series.shape == Shape::Squares {
        writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\" fill=\"#fff\" stroke=\"{colour}\" stroke-width=\"1.7\"/>",
            x - 3.5,
            y - 3.5
        )
    } else {
        writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\" fill=\"{colour}\" stroke=\"#fff\" stroke-width=\".8\"/>"
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, Point};

    #[test]
    fn names_are_listed_once_and_text_is_escaped() {
        let series = |points: Vec<Point>| Series::new("a < b", Shape::Dots, Colour::Blue, points);
        let panel = |y| Panel {
            x: Axis::even("k"),
            y,
            series: vec![series(vec![Point { x: 1.0, y: 0.0, error: Some((0.0, 0.1)) }, (2.0, 0.5).into()])],
            ..Panel::default()
        };
        let figure = Figure {
            panels: vec![panel(Axis::powers("rate")), panel(Axis::even("rate"))],
            columns: 2,
            ..Figure::default()
        };
        let svg = figure.to_svg();
        assert_eq!(svg.matches("a &lt; b").count(), 1);
        // One dot in the legend, two on the linear axis, and one on the logarithmic one, which has an arrow for 0.
        assert_eq!(svg.matches("<circle").count(), 4);
        assert_eq!(svg.matches("l3.5 5l3.5 -5").count(), 1);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

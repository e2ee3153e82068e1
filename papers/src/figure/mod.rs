//! Figures as SVG: panels side by side over one legend.
//!
//! Claim: the picture is a function of the [`Figure`] alone, is well-formed XML, and needs no external font, script or
//! style. Series differ in shape as well as in colour; the palette is that of Okabe & Ito (2008), which is safe for
//! colour-blind readers. Calculated values are drawn as lines, measured ones as dots with error bars.
//! Not here: ticks, numbers and text, which are those of `nearset_view::plot`. Its charts have a layout of their own, one
//! curve of acceptance drawn evenly and by powers over its promises, which none of these figures has.

mod axis;
mod draw;

pub use axis::Axis;

/// A picture of one or several panels.
#[derive(Debug, Clone, Default)]
pub struct Figure {
    /// The title.
    pub title: String,
    /// Notes in smaller type, one line each.
    pub notes: Vec<String>,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// The number of panels per row; 0 means 1.
    pub columns: usize,
}

/// One pair of axes and what is drawn on it.
#[derive(Debug, Clone, Default)]
pub struct Panel {
    /// What distinguishes it from the other panels; may be empty.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Curves, dots and bars. The first is drawn on top.
    pub series: Vec<Series>,
    /// Named lines across the panel.
    pub rules: Vec<Rule>,
    /// Text at given positions.
    pub labels: Vec<Label>,
}

/// A line across a panel.
#[derive(Debug, Clone)]
pub enum Rule {
    /// A vertical line, at a position on the horizontal axis.
    Vertical(f64, String),
    /// A horizontal line, at a height on the vertical axis.
    Horizontal(f64, String),
}

/// Text at a position.
#[derive(Debug, Clone)]
pub struct Label {
    /// The position.
    pub at: (f64, f64),
    /// The text.
    pub text: String,
    /// The side of the position on which it stands.
    pub side: Side,
}

/// A side of a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// A named sequence of points.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend; each name is listed once, however many panels have it.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<Point>,
    /// Its colour.
    pub colour: Colour,
    /// How it is drawn.
    pub shape: Shape,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A solid line.
    Line,
    /// A dashed line.
    Dashed,
    /// A dotted line.
    Dotted,
    /// Filled dots.
    Dots,
    /// Open squares.
    Squares,
    /// Filled dots on a thin line.
    DotsOnLine,
    /// A filled strip between the points' errors.
    Band,
    /// Bars, side by side with those of the panel's other series.
    Bars,
}

/// The palette of Okabe & Ito.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    Blue,
    Vermilion,
    Green,
    Purple,
    Orange,
    Sky,
    Black,
}

/// A point, with the ends of its error bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    pub error: Option<(f64, f64)>,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y, error: None }
    }
}

impl Point {
    /// Creates a point from a measured rate with its 95 % interval.
    pub fn measured(x: f64, rate: crate::rate::Rate) -> Self {
        Self { x, y: rate.value(), error: Some(rate.interval()) }
    }
}

impl Series {
    /// Creates a series with a shape and a colour.
    pub fn new<P: Into<Point>>(
        name: impl Into<String>,
        shape: Shape,
        colour: Colour,
        points: impl IntoIterator<Item = P>,
    ) -> Self {
        Self { name: name.into(), points: points.into_iter().map(Into::into).collect(), colour, shape }
    }
}

impl Label {
    /// Creates a label on a side of a position.
    pub fn new(at: (f64, f64), side: Side, text: impl Into<String>) -> Self {
        Self { at, text: text.into(), side }
    }
}

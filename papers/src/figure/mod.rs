//! Figures as SVG: panels side by side over one legend.
//!
//! Claim: the picture is a function of the [`Figure`] alone, well-formed XML, and needs no font, script or style from
//! outside. Series are told apart by shape as well as by colour; the palette is that of Okabe & Ito (2008), made for
//! all eyes. What was calculated is drawn as lines, what was measured as dots with error bars.

mod axis;
mod draw;

pub use axis::Axis;

/// A picture of one or several panels.
#[derive(Debug, Clone, Default)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// More of it, smaller; one line each.
    pub notes: Vec<String>,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// Panels in a row; 0 is 1.
    pub columns: usize,
}

/// One pair of axes and what is drawn on it.
#[derive(Debug, Clone, Default)]
pub struct Panel {
    /// What sets it apart from the other panels; may be empty.
    pub title: String,
    /// Along.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// Curves, dots and bars. The first is drawn on top.
    pub series: Vec<Series>,
    /// Lines across the panel, named.
    pub rules: Vec<Rule>,
    /// Words at a place.
    pub labels: Vec<Label>,
}

/// A line across a panel.
#[derive(Debug, Clone)]
pub enum Rule {
    /// Upright, at a place of the horizontal axis.
    Vertical(f64, String),
    /// Level, at a height of the vertical one.
    Horizontal(f64, String),
}

/// Words at a place.
#[derive(Debug, Clone)]
pub struct Label {
    /// Where.
    pub at: (f64, f64),
    /// The words.
    pub text: String,
    /// On which side of the place they stand.
    pub side: Side,
}

/// A side of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// A named row of points.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend; one name is listed once, however many panels have it.
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
    /// A measured rate with its 95 % interval.
    pub fn measured(x: f64, rate: crate::rate::Rate) -> Self {
        Self { x, y: rate.value(), error: Some(rate.interval()) }
    }
}

impl Series {
    /// A series in a shape and colour.
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
    /// Words on a side of a place.
    pub fn new(at: (f64, f64), side: Side, text: impl Into<String>) -> Self {
        Self { at, text: text.into(), side }
    }
}

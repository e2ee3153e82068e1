//! Curves of probability as SVG: one chart, drawn twice over one axis, on an even and on a log scale.
//!
//! Claim: the picture is a function of the [`Chart`] alone, well-formed XML, and needs no font, script or style from outside.
//! Errors of one in a thousand cannot be seen on an even axis, and what people mean by "catches most" cannot be seen on a
//! logarithmic one; hence both. Lines are smooth and never overshoot: monotone cubic interpolation (Fritsch & Carlson 1980).

use std::fmt::Write as _;

/// What is drawn. Values of `y` are probabilities.
#[derive(Debug, Clone, Default)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// More of it, smaller; one line each.
    pub subtitle: Vec<String>,
    /// What the horizontal axis counts, with its unit.
    pub x_label: String,
    /// What is drawn over it.
    pub y_label: String,
    /// The least and the most of the horizontal axis.
    pub x: (f64, f64),
    /// The curves.
    pub lines: Vec<Line>,
    /// Places on the horizontal axis.
    pub marks: Vec<Mark>,
    /// Promised bounds.
    pub bounds: Vec<Bound>,
    /// The bounds' name in the legend.
    pub promise: String,
    /// A part of the horizontal axis to be shaded, with its name.
    pub zone: Option<(f64, f64, String)>,
}

/// A curve.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Points, ascending.
    pub points: Vec<(f64, f64)>,
    /// How it looks.
    pub look: Look,
}

/// How a curve looks; each is told apart without colours too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Look {
    /// What the chart is about.
    Main,
    /// The same under other circumstances.
    Variant,
    /// What it is compared with.
    Other,
}

impl Look {
    fn style(self) -> &'static str {
        match self {
            Look::Main => "stroke=\"#0b5fa5\" stroke-width=\"2.6\"",
            Look::Variant => "stroke=\"#5b9bd5\" stroke-width=\"1.8\" stroke-dasharray=\"7 4\"",
            Look::Other => "stroke=\"#c2571a\" stroke-width=\"1.8\" stroke-dasharray=\"2 3\"",
        }
    }
}

/// A place on the horizontal axis.
#[derive(Debug, Clone)]
pub struct Mark {
    /// Where.
    pub at: f64,
    /// What is there.
    pub name: String,
    /// Whether its name stands to the left of it.
    pub left: bool,
}

/// A promise: from one place to another, the curve is to stay on one side of a probability.
#[derive(Debug, Clone)]
pub struct Bound {
    /// From here to there.
    pub x: (f64, f64),
    /// The probability.
    pub y: f64,
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 28.0;
const EVEN_HEIGHT: f64 = 260.0;
const POWERS_HEIGHT: f64 = 150.0;
const LEGEND_ROW: f64 = 20.0;
const PROMISE: &str = "stroke=\"#1a7f37\" stroke-width=\"4\" stroke-opacity=\".55\"";
const ZONE: &str = "fill=\"#e4e7eb\"";
/// Powers of ten that the lower panel shows, at least and at most.
const POWERS: (i32, i32) = (4, 9);

/// A panel's vertical scale.
#[derive(Clone, Copy)]
enum Scale {
    Even,
    /// Down to ten to the power of minus this.
    Powers(i32),
}

impl Scale {
    /// From 0 at the bottom to 1 at the top; a little below it for what is too small to be shown.
    fn part(self, y: f64) -> f64 {
        match self {
            Scale::Even => y,
            Scale::Powers(powers) => (1.0 + y.max(1e-300).log10() / f64::from(powers)).max(-0.2),
        }
    }
}

struct Panel {
    top: f64,
    height: f64,
    scale: Scale,
}

impl Panel {
    fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - self.scale.part(value))
    }
}

impl Chart {
    /// Returns the picture.
    pub fn to_svg(&self) -> String {
        let legend_top = 40.0 + 18.0 * self.subtitle.len() as f64 + 12.0;
        let legend_rows = self.lines.len() + usize::from(!self.bounds.is_empty()) + usize::from(self.zone.is_some());
        let even_top = legend_top + LEGEND_ROW * legend_rows as f64 + 26.0;
        let even = Panel { top: even_top, height: EVEN_HEIGHT, scale: Scale::Even };
        let powers =
            Panel { top: even.top + even.height + 34.0, height: POWERS_HEIGHT, scale: Scale::Powers(self.powers()) };
        let bottom = powers.top + powers.height;
        let height = bottom + 58.0;
        let mut svg = start(&self.title, WIDTH, height);
        text(&mut svg, 24.0, 34.0, "font-size=\"18\" font-weight=\"600\" fill=\"#111\"", &self.title);
        for (i, line) in self.subtitle.iter().enumerate() {
            text(&mut svg, 24.0, 54.0 + 18.0 * i as f64, "fill=\"#555\"", line);
        }
        self.legend(&mut svg, legend_top);
        for (i, panel) in [&even, &powers].into_iter().enumerate() {
            self.panel(&mut svg, panel, i);
        }
        for mark in &self.marks {
            let x = self.across(mark.at);
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {:.1}V{bottom:.1}\" stroke=\"#444\" stroke-dasharray=\"4 3\"/>",
                even.top - 6.0
            );
            let (shift, anchor) = if mark.left { (3.0, "end") } else { (-3.0, "start") };
            let style = format!("text-anchor=\"{anchor}\" font-weight=\"600\" fill=\"#222\"");
            // Letters are about this wide; a name may lean inwards but not leave the picture.
            let most = WIDTH - 6.0 - 7.6 * mark.name.chars().count() as f64;
            let x = if mark.left { x + shift } else { (x + shift).min(most) };
            text(&mut svg, x, even.top - 10.0, &style, &mark.name);
        }
        for tick in ticks(self.x.0, self.x.1, 10) {
            let x = self.across(tick);
            let _ = writeln!(svg, "<path d=\"M{x:.1} {bottom:.1}v5\" stroke=\"#888\"/>");
            text(&mut svg, x, bottom + 19.0, "text-anchor=\"middle\"", &number(tick));
        }
        let middle = 0.5 * (LEFT + WIDTH - RIGHT);
        text(&mut svg, middle, bottom + 42.0, "text-anchor=\"middle\" fill=\"#222\"", &self.x_label);
        svg.push_str("</svg>\n");
        svg
    }

    fn across(&self, x: f64) -> f64 {
        LEFT + (x - self.x.0) / (self.x.1 - self.x.0) * (WIDTH - LEFT - RIGHT)
    }

    /// Returns as many powers of ten as show every promise with room below.
    fn powers(&self) -> i32 {
        let least = self.bounds.iter().map(|bound| bound.y).filter(|&y| y > 0.0).fold(1.0, f64::min);
        ((-least.log10()).ceil() as i32 + 2).clamp(POWERS.0, POWERS.1)
    }

    fn legend(&self, svg: &mut String, top: f64) {
        let row = |i: usize| top + LEGEND_ROW * i as f64 + 10.0;
        for (i, line) in self.lines.iter().enumerate() {
            let y = row(i);
            let _ = writeln!(svg, "<path d=\"M24 {y:.1}h34\" fill=\"none\" {}/>", line.look.style());
            text(svg, 68.0, y + 4.5, "", &line.name);
        }
        let mut rows = self.lines.len()..;
        if let (false, Some(i)) = (self.bounds.is_empty(), rows.next()) {
            let y = row(i);
            let _ = writeln!(svg, "<path d=\"M24 {y:.1}h34\" {PROMISE}/>");
            text(svg, 68.0, y + 4.5, "", &self.promise);
        }
        if let (Some((.., name)), Some(i)) = (&self.zone, rows.next()) {
            let y = row(i);
            let _ = writeln!(svg, "<rect x=\"24\" y=\"{:.1}\" width=\"34\" height=\"12\" {ZONE}/>", y - 6.0);
            text(svg, 68.0, y + 4.5, "", name);
        }
    }

    fn panel(&self, svg: &mut String, panel: &Panel, id: usize) {
        let (width, bottom) = (WIDTH - LEFT - RIGHT, panel.top + panel.height);
        let frame = format!("x=\"{LEFT}\" y=\"{:.1}\" width=\"{width}\" height=\"{:.1}\"", panel.top, panel.height);
        // Lines at 0 and 1 are drawn whole, so the clip is a little wider than the frame.
        let _ = writeln!(
            svg,
            "<clipPath id=\"panel{id}\"><rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{width}\" height=\"{:.1}\"/></clipPath>",
            panel.top - 2.0,
            panel.height + 2.0
        );
        if let Some((from, to, _)) = &self.zone {
            let (a, b) = (self.across(from.min(*to)), self.across(from.max(*to)));
            let _ = writeln!(
                svg,
                "<rect x=\"{a:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" {ZONE}/>",
                panel.top,
                b - a,
                panel.height
            );
        }
        for (value, name) in panel.scale.ticks() {
            let y = panel.y(value);
            let _ = writeln!(svg, "<path d=\"M{LEFT} {y:.1}h{width}\" stroke=\"#d5d8dc\" stroke-width=\".8\"/>");
            text(svg, LEFT - 8.0, y + 4.5, "text-anchor=\"end\"", &name);
        }
        let _ = writeln!(svg, "<rect {frame} fill=\"none\" stroke=\"#888\"/>");
        for bound in &self.bounds {
            let (a, b, y) = (self.across(bound.x.0), self.across(bound.x.1), panel.y(bound.y));
            let _ = writeln!(svg, "<path d=\"M{a:.1} {y:.1}H{b:.1}\" clip-path=\"url(#panel{id})\" {PROMISE}/>");
        }
        for line in self.lines.iter().rev() {
            let mut points: Vec<(f64, f64)> = line.points.iter().map(|&(x, y)| (self.across(x), panel.y(y))).collect();
            // Two values at one place, told apart by rounding only, have no slope between them.
            points.dedup_by(|b, a| b.0 - a.0 < 1e-6);
            let _ = writeln!(
                svg,
                "<path d=\"{}\" fill=\"none\" stroke-linejoin=\"round\" clip-path=\"url(#panel{id})\" {}/>",
                smooth(&points),
                line.look.style()
            );
        }
        let middle = 0.5 * (panel.top + bottom);
        let style = format!("text-anchor=\"middle\" fill=\"#222\" transform=\"rotate(-90 20 {middle:.1})\"");
        let label = match panel.scale {
            Scale::Even => self.y_label.clone(),
            Scale::Powers(_) => "log scale".into(),
        };
        text(svg, 20.0, middle, &style, &label);
    }
}

impl Scale {
    fn ticks(self) -> Vec<(f64, String)> {
        match self {
            Scale::Even => (0..=5).map(|i| (f64::from(i) / 5.0, format!("{} %", 20 * i))).collect(),
            Scale::Powers(powers) => (0..=powers).map(|i| (10f64.powi(-i), power(i))).collect(),
        }
    }
}

/// `10 %`, `0.001 %`, and beyond that `1 in 10⁷`.
fn power(minus: i32) -> String {
    match minus {
        0..=2 => format!("{} %", 10i32.pow(2 - minus as u32)),
        3..=5 => format!("0.{}1 %", "0".repeat(minus as usize - 3)),
        _ => format!("1 in 10{}", superscript(minus)),
    }
}

/// Returns a whole number in raised digits, such as `⁻¹²`.
pub fn superscript(number: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |c: char| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    number.to_string().chars().map(raised).collect()
}

/// Starts a picture of `width` by `height` pixels, with its title and a white ground.
pub fn start(title: &str, width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height:.0}\" viewBox=\"0 0 {width} {height:.0}\" \
         role=\"img\" font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"13\" \
         fill=\"#333\">\n<title>{}</title>\n<rect width=\"{width}\" height=\"{height:.0}\" fill=\"#fff\"/>\n",
        escape(title)
    )
}

/// Writes words at a place, in a style of SVG attributes.
pub fn text(svg: &mut String, x: f64, y: f64, style: &str, text: &str) {
    let space = if style.is_empty() { "" } else { " " };
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\"{space}{style}>{}</text>", escape(text));
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns about `about` round numbers between two ends.
pub fn ticks(from: f64, to: f64, about: u32) -> Vec<f64> {
    let rough = (to - from) / f64::from(about);
    if !(rough > 0.0 && rough.is_finite()) {
        return Vec::new();
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|m| m * power).find(|&step| step >= rough * (1.0 - 1e-9));
    let step = step.unwrap_or(10.0 * power);
    let first = (from / step - 1e-9).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

/// Returns a number without the dust of binary fractions.
pub fn number(value: f64) -> String {
    let rounded = format!("{value:.6}");
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".into() } else { short.to_owned() }
}

/// Returns a path through all points that rises and falls only where they do.
fn smooth(points: &[(f64, f64)]) -> String {
    let Some(&(x, y)) = points.first() else { return String::new() };
    let mut path = format!("M{x:.2} {y:.2}");
    let slope = |i: usize| (points[i + 1].1 - points[i].1) / (points[i + 1].0 - points[i].0);
    let tangent = |i: usize| {
        if i == 0 || i + 1 == points.len() {
            return if i == 0 { slope(0) } else { slope(i - 1) };
        }
        let (before, after) = (slope(i - 1), slope(i));
        if before * after <= 0.0 {
            return 0.0;
        }
        // Weighted harmonic mean of the neighbouring slopes, which is never more than three times either.
        let (h0, h1) = (points[i].0 - points[i - 1].0, points[i + 1].0 - points[i].0);
        let (w0, w1) = (2.0 * h1 + h0, h1 + 2.0 * h0);
        (w0 + w1) / (w0 / before + w1 / after)
    };
    for i in 1..points.len() {
        let ((x0, y0), (x1, y1)) = (points[i - 1], points[i]);
        let third = (x1 - x0) / 3.0;
        let (control0, control1) = (y0 + third * tangent(i - 1), y1 - third * tangent(i));
        let _ = write!(path, "C{:.2} {control0:.2} {:.2} {control1:.2} {x1:.2} {y1:.2}", x0 + third, x1 - third);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.0, 180.0, 10).len(), 10);
        assert_eq!(ticks(0.0, 1.0, 10).iter().map(|&tick| number(tick)).collect::<Vec<_>>().join(" "), {
            "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1"
        });
        assert_eq!(ticks(-0.3, 1.0, 6), [-0.25, 0.0, 0.25, 0.5, 0.75, 1.0]);
        assert!(ticks(1.0, 1.0, 10).is_empty() && ticks(0.0, f64::NAN, 10).is_empty());
    }

    #[test]
    fn smooth_lines_stay_between_their_points() {
        let points = [(0.0, 0.0), (1.0, 0.0), (2.0, 10.0), (3.0, 10.0)];
        let path = smooth(&points);
        let numbers: Vec<f64> = path.split(['C', 'M', ' ']).filter_map(|n| n.parse().ok()).collect();
        let heights: Vec<f64> = numbers.iter().skip(1).step_by(2).copied().collect();
        assert_eq!(heights.len(), 1 + 3 * 3);
        assert!(heights.iter().all(|height| (0.0..=10.0).contains(height)), "{path}");
        assert!(heights.windows(2).all(|pair| pair[0] <= pair[1]), "{path}");
        assert_eq!(smooth(&[]), "");
    }

    #[test]
    fn nothing_that_is_text_becomes_markup() {
        let chart = Chart { title: "a < b & \"c\"".into(), x: (0.0, 1.0), ..Chart::default() };
        let svg = chart.to_svg();
        assert!(svg.contains("a &lt; b &amp; &quot;c&quot;") && !svg.contains("a < b"));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn the_lower_panel_reaches_below_every_promise() {
        let mut chart = Chart { x: (0.0, 1.0), ..Chart::default() };
        assert_eq!(chart.powers(), 4);
        chart.bounds.push(Bound { x: (0.0, 1.0), y: 1e-5 });
        assert_eq!(chart.powers(), 7);
        assert!(chart.to_svg().contains("1 in 10⁷"));
    }
}

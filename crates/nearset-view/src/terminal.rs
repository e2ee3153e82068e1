//! A curve in a terminal: columns of block characters, no colour.

use std::fmt::Write as _;

/// Rows of the chart; each has eight levels.
const ROWS: usize = 7;

/// Eighths of a character from the bottom.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns the chart of a curve given by ascending points, with named places below it. A name that does not fit beside those before
/// it is left out.
pub fn draw(points: &[(f64, f64)], marks: &[(f64, String)], width: usize) -> String {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    let across = width.saturating_sub(8).clamp(16, 88);
    let at = |column: usize| first.0 + (last.0 - first.0) * column as f64 / (across - 1) as f64;
    let heights: Vec<usize> =
        (0..across).map(|column| (interpolate(points, at(column)) * (ROWS * 8) as f64).round() as usize).collect();
    let mut text = String::new();
    for row in (0..ROWS).rev() {
        let label = match row {
            _ if row + 1 == ROWS => "100 %",
            _ if row == ROWS / 2 => "50 %",
            0 => "0 %",
            _ => "",
        };
        let cells: String = heights.iter().map(|&height| EIGHTHS[height.saturating_sub(8 * row).min(8)]).collect();
        let _ = writeln!(text, "{label:>5} │{}", cells.trim_end());
    }
    let column = |x: f64| ((x - first.0) / (last.0 - first.0) * (across - 1) as f64).round() as usize;
    let mut axis = vec!['─'; across];
    let mut names = vec![' '; across];
    for (x, name) in marks {
        let column = column(*x).min(across - 1);
        let letters: Vec<char> = name.chars().collect();
        let start = column.saturating_sub(letters.len() / 2).min(across.saturating_sub(letters.len()));
        if let Some(place) = free(&names, start, letters.len()) {
            axis[column] = '┴';
            names[place..place + letters.len()].copy_from_slice(&letters);
        }
    }
    let _ = writeln!(text, "      └{}", axis.into_iter().collect::<String>());
    let _ = writeln!(text, "       {}", names.into_iter().collect::<String>().trim_end());
    text
}

/// Returns the place nearest to `start` where a name fits with a blank on both sides and still touches what it names.
fn free(names: &[char], start: usize, length: usize) -> Option<usize> {
    let fits = |place: usize| {
        let to = (place + length + 1).min(names.len());
        place + length <= names.len() && names[place.saturating_sub(1)..to].iter().all(|&letter| letter == ' ')
    };
    let places = (0..=length).flat_map(|away| [start.checked_sub(away), Some(start + away)]);
    places.flatten().find(|&place| fits(place))
}

fn interpolate(points: &[(f64, f64)], x: f64) -> f64 {
    let after = points.partition_point(|point| point.0 <= x);
    match (after.checked_sub(1).and_then(|before| points.get(before)), points.get(after)) {
        (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0),
        (Some(only), None) | (None, Some(only)) => only.1,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_drawn_as_one() {
        let points = [(0.0, 1.0), (9.0, 1.0), (10.0, 0.0), (20.0, 0.0)];
        let marks = [(9.0, "near 9".to_owned()), (10.0, "far 10".to_owned())];
        let chart = draw(&points, &marks, 40);
        let lines: Vec<&str> = chart.lines().collect();
        assert_eq!(lines.len(), ROWS + 2);
        assert!(lines[0].starts_with("100 % │████"));
        let filled = lines[0].chars().filter(|&c| c == '█').count();
        // 9 of 20 parts of 32 columns.
        assert_eq!(filled, 14);
        assert!(lines[ROWS + 1].contains("near 9") && lines[ROWS + 1].contains("far 10"), "{chart}");
        assert!(lines.iter().all(|line| line.chars().count() <= 40), "{chart}");
    }

    #[test]
    fn between_points_lies_the_line() {
        let points = [(0.0, 0.0), (2.0, 1.0)];
        assert_eq!([-1.0, 0.5, 2.0, 3.0].map(|x| interpolate(&points, x)), [0.0, 0.25, 1.0, 1.0]);
    }
}

//! Points, and the one Euclidean distance by which all competitors are judged.

/// The attributes of one record.
pub type Point<const D: usize> = [f32; D];

/// Returns the squared distance. Truth and competitors share this function, so that none is wrong by a rounding.
#[inline]
pub fn squared_distance<const D: usize>(a: &Point<D>, b: &Point<D>) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Returns the least and the greatest value of each attribute.
pub fn bounds<const D: usize>(points: &[Point<D>]) -> (Point<D>, Point<D>) {
    points.iter().fold(([f32::INFINITY; D], [f32::NEG_INFINITY; D]), |(low, high), point| {
        (std::array::from_fn(|i| low[i].min(point[i])), std::array::from_fn(|i| high[i].max(point[i])))
    })
}

/// Returns the mean and standard deviation of each attribute.
pub fn moments<const D: usize>(points: &[Point<D>]) -> ([f64; D], [f64; D]) {
    let (mut sum, mut squares) = ([0.0f64; D], [0.0f64; D]);
    for point in points {
        for (i, &value) in point.iter().enumerate() {
            sum[i] += f64::from(value);
            squares[i] += f64::from(value) * f64::from(value);
        }
    }
    let count = points.len() as f64;
    let mean = sum.map(|sum| sum / count);
    (mean, std::array::from_fn(|i| (squares[i] / count - mean[i] * mean[i]).max(0.0).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_summed_up() {
        let points = [[0.0, 3.0], [4.0, 3.0]];
        assert_eq!(bounds(&points), ([0.0, 3.0], [4.0, 3.0]));
        assert_eq!(moments(&points), ([2.0, 3.0], [2.0, 0.0]));
        assert_eq!(squared_distance(&points[0], &points[1]), 16.0);
    }
}

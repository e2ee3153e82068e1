//! Which positions each band looks at: shared by the families that sample bits or symbols.

use super::Layout;
use crate::{Seed, error::SpecError, hash::Rng};

/// How positions are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Sampling {
    /// Each independently, with replacement (Kirsch & Mitzenmacher 2006).
    Uniform,
    /// Every position equally often over all bands, to within one, and none twice in a band (Gregersen, Faarhoff &
    /// Marker 2014). A difference in one position then affects at most `ceil(rows * bands / length)` bands.
    #[default]
    Balanced,
}

/// Up to this many rows are multiplied one by one.
const MOST_FACTORS: u32 = 1024;

impl Sampling {
    /// All of them, by their numbers in files.
    pub(crate) const ALL: [Self; 2] = [Self::Uniform, Self::Balanced];

    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Uniform => 0,
            Self::Balanced => 1,
        }
    }

    /// Checks that positions can be drawn at all.
    pub(crate) fn check(self, length: u32, layout: Layout) -> Result<(), SpecError> {
        if length == 0 {
            return Err(SpecError::BadParameter { parameter: "length", value: 0.0, need: "at least 1" });
        }
        if self == Sampling::Balanced && layout.rows > length {
            let (parameter, value) = ("rows", f64::from(layout.rows));
            let need = "at most the length, because balanced sampling takes no position twice in a band";
            return Err(SpecError::BadParameter { parameter, value, need });
        }
        Ok(())
    }

    /// Draws positions below `length`, `rows` per band, in band order.
    pub(crate) fn draw(self, seed: Seed, layout: Layout, length: u32) -> Vec<u32> {
        let mut rng = Rng::new(seed.derive("positions", 0));
        match self {
            Sampling::Uniform => (0..layout.functions()).map(|_| rng.below(u64::from(length)) as u32).collect(),
            Sampling::Balanced => balanced(&mut rng, layout, length),
        }
    }

    /// Returns the number of operations that [`Self::draw`] takes.
    pub(crate) fn work_of_drawing(self, layout: Layout, length: u32) -> u64 {
        let functions = layout.functions() as u64;
        match self {
            Sampling::Uniform => 5 * functions,
            // Whole orders are shuffled, long ones outside the cache; the last one may be used by few functions.
            Sampling::Balanced => 40 * (functions + u64::from(length)),
        }
    }

    /// Returns the probability that `rows` sampled positions all miss the `differing` ones of `length`.
    ///
    /// Balanced sampling multiplies row by row up to [`MOST_FACTORS`] rows. Beyond that, quotients of factorials
    /// replace the product, which are good to eight digits or more: a planner asks for thousands of rows thousands of
    /// times.
    pub(crate) fn band_probability(self, differing: f64, length: f64, rows: u32) -> f64 {
        match self {
            Sampling::Uniform => libm::pow((1.0 - differing / length).max(0.0), f64::from(rows)),
            Sampling::Balanced if rows <= MOST_FACTORS => (0..rows)
                .map(|row| (length - differing - f64::from(row)) / (length - f64::from(row)))
                .map(|factor| factor.max(0.0))
                .product(),
            Sampling::Balanced => {
                let (rows, equal) = (f64::from(rows), length - differing);
                if rows > equal {
                    return 0.0;
                }
                let falling = |from: f64| libm::lgamma(from + 1.0) - libm::lgamma(from - rows + 1.0);
                libm::exp(falling(equal) - falling(length)).min(1.0)
            }
        }
    }

    /// Returns the distribution of how many bands agree, when balanced sampling gives each position to at most one
    /// band: the differing positions are then dealt out among the bands without replacement, and the distribution is
    /// narrower than the binomial one.
    ///
    /// It is computed band by band, over the numbers of differing positions dealt so far and of bands missed. Returns
    /// `None` where positions are shared, or where the work would not pay off: with many differences in many bands of
    /// few rows, bands are nearly independent.
    pub(crate) fn agreeing_bands(self, differing: f64, length: u32, layout: Layout) -> Option<Vec<f64>> {
        const MOST_STEPS: f64 = 4e6;
        let (rows, bands) = (layout.rows as usize, layout.bands as usize);
        let differing = differing.round().min(f64::from(length)) as usize;
        let most_dealt = differing.min(layout.functions());
        let steps = most_dealt as f64 * (rows.min(differing + 1) * bands * bands) as f64;
        if self == Sampling::Uniform || layout.functions() > length as usize || steps > MOST_STEPS {
            return None;
        }
        if differing == 0 {
            let mut all = vec![0.0; bands + 1];
            all[bands] = 1.0;
            return Some(all);
        }
        // chance[dealt][missed]
        let mut chance = vec![vec![0.0; bands + 1]; most_dealt + 1];
        chance[0][0] = 1.0;
        let mut terms = Vec::new();
        for band in 0..bands {
            let remaining = length as usize - band * rows;
            let mut next = vec![vec![0.0; bands + 1]; most_dealt + 1];
            for (dealt, by_missed) in chance.iter().enumerate().take(band * rows + 1) {
                let left = differing - dealt;
                if left > remaining {
                    continue;
                }
                hypergeometric_terms(left, remaining, rows, &mut terms);
                for &(taken, p) in &terms {
                    for missed in 0..=band {
                        next[dealt + taken][missed + usize::from(taken > 0)] += p * by_missed[missed];
                    }
                }
            }
            chance = next;
        }
        Some((0..=bands).map(|agree| chance.iter().map(|by_missed| by_missed[bands - agree]).sum()).collect())
    }

    /// Returns the probability that all of `rows` distinct positions agree, when a differing one agrees half of the
    /// time: `E[2^-X]`, `X` being the hypergeometric number of differing positions among them. It is linear between
    /// whole distances.
    pub(crate) fn half_agreeing_probability(differing: f64, length: f64, rows: u32) -> f64 {
        let (low, part) = (differing.min(length).floor(), differing.min(length).fract());
        let at = |differing| half_agreeing(differing, length, f64::from(rows));
        if part == 0.0 { at(low) } else { at(low) * (1.0 - part) + at(low + 1.0) * part }
    }
}

fn half_agreeing(differing: f64, length: f64, rows: f64) -> f64 {
    // Starts at the least possible X and goes from term to term by the quotient of neighbouring hypergeometric
    // probabilities.
    let equal = length - differing;
    let least = (rows - equal).max(0.0);
    let mut term = hypergeometric(least, differing, length, rows) * libm::exp2(-least);
    let (mut sum, mut x) = (0.0, least);
    while x <= rows.min(differing) {
        sum += term;
        term *= (differing - x) * (rows - x) / ((x + 1.0) * (equal - rows + x + 1.0)) / 2.0;
        x += 1.0;
    }
    sum.min(1.0)
}

/// Lists how many of `rows` positions out of `length` are among the `differing` ones: every number with its
/// probability, outwards from the most likely one by the quotient of neighbours.
fn hypergeometric_terms(differing: usize, length: usize, rows: usize, terms: &mut Vec<(usize, f64)>) {
    terms.clear();
    let (least, most) = ((differing + rows).saturating_sub(length), rows.min(differing));
    let mode = ((rows + 1) * (differing + 1) / (length + 2)).clamp(least, most);
    let up = |x: usize| {
        ((differing - x) * (rows - x)) as f64 / ((x + 1) as f64 * (length + x + 1 - differing - rows) as f64)
    };
    let at_mode = hypergeometric(mode as f64, differing as f64, length as f64, rows as f64);
    let mut p = at_mode;
    for x in mode..=most {
        terms.push((x, p));
        p *= if x < most { up(x) } else { 0.0 };
    }
    p = at_mode;
    for x in (least..mode).rev() {
        p /= up(x);
        terms.push((x, p));
    }
}

/// Returns `C(differing, x) C(length - differing, rows - x) / C(length, rows)`.
fn hypergeometric(x: f64, differing: f64, length: f64, rows: f64) -> f64 {
    let choose = |n: f64, k: f64| libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
    libm::exp(choose(differing, x) + choose(length - differing, rows - x) - choose(length, rows))
}

/// Cuts one random order of all positions after another into bands. Where a band takes the end of one order and the
/// start of the next, the start is drawn from the positions that the band does not have yet, so that a band is a
/// uniformly random subset wherever it lies.
fn balanced(rng: &mut Rng, layout: Layout, length: u32) -> Vec<u32> {
    let (rows, total) = (layout.rows as usize, layout.functions());
    let mut positions: Vec<u32> = Vec::with_capacity(total + length as usize);
    let mut order: Vec<u32> = (0..length).collect();
    let mut is_open = vec![false; length as usize];
    while positions.len() < total {
        rng.shuffle(&mut order);
        let open_band = &positions[positions.len() - positions.len() % rows..];
        let wanted = if open_band.is_empty() { 0 } else { rows - open_band.len() };
        // The first `wanted` positions outside the open band come first; all others keep their random order.
        open_band.iter().for_each(|&position| is_open[position as usize] = true);
        let (mut head, mut skipped) = (Vec::with_capacity(wanted), Vec::new());
        let mut rest = order.iter().copied();
        while head.len() < wanted
            && let Some(position) = rest.next()
        {
            if is_open[position as usize] { skipped.push(position) } else { head.push(position) }
        }
        open_band.iter().for_each(|&position| is_open[position as usize] = false);
        order = head.into_iter().chain(skipped).chain(rest).collect();
        positions.extend_from_slice(&order);
    }
    positions.truncate(total);
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_by_factorials_continue_few_rows_by_factors() {
        for (differing, length) in [(4.0, 65_536.0), (1_000.0, 65_536.0), (2.5, 16_777_216.0), (64_600.0, 65_536.0)] {
            let at = |rows| Sampling::Balanced.band_probability(differing, length, rows);
            let next = at(MOST_FACTORS)
                * ((length - differing - f64::from(MOST_FACTORS)) / (length - f64::from(MOST_FACTORS))).max(0.0);
            let found = at(MOST_FACTORS + 1);
            assert!((found - next).abs() <= 1e-7 * next, "{found} for {next}: {differing} of {length}");
        }
    }

    #[test]
    fn dealt_differences_miss_as_many_bands_as_counted() {
        let (length, layout, differing) = (40u32, Layout::new(5, 6), 7usize);
        let distribution = Sampling::Balanced.agreeing_bands(differing as f64, length, layout).unwrap();
        assert!((distribution.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let mut rng = Rng::new(Seed::new(3));
        let tries = 20_000;
        let mut seen = [0.0; 7];
        for _ in 0..tries {
            let positions = Sampling::Balanced.draw(Seed::new(rng.next_u64()), layout, length);
            let differences = rng.distinct(differing, u64::from(length));
            let agree = positions.chunks(5).filter(|band| !band.iter().any(|&at| differences.contains(&u64::from(at))));
            seen[agree.count()] += 1.0 / f64::from(tries);
        }
        for (seen, expected) in seen.iter().zip(&distribution) {
            let sigma = (expected * (1.0 - expected) / f64::from(tries)).sqrt();
            assert!((seen - expected).abs() <= 6.0 * sigma + 1e-9, "{seen} for {expected}");
        }
    }

    /// Computed band by band, this would take hours.
    #[test]
    fn without_differences_all_of_any_number_of_bands_agree() {
        let bands = 1_000_000;
        let distribution = Sampling::Balanced.agreeing_bands(0.0, bands, Layout::new(1, bands)).unwrap();
        assert_eq!((distribution.len(), distribution.last()), (bands as usize + 1, Some(&1.0)));
        assert_eq!(distribution.iter().sum::<f64>(), 1.0);
    }

    #[test]
    fn balanced_sampling_uses_positions_equally_and_never_twice_in_a_band() {
        for (rows, bands, length) in
            [(22, 11, 256), (16, 16, 256), (23, 44, 1024), (7, 50, 10), (10, 9, 10), (3, 40, 7)]
        {
            let positions = Sampling::Balanced.draw(Seed::new(5), Layout::new(rows, bands), length);
            let mut uses = vec![0u32; length as usize];
            for band in positions.chunks(rows as usize) {
                let mut band = band.to_vec();
                band.iter().for_each(|&position| uses[position as usize] += 1);
                band.sort_unstable();
                band.dedup();
                assert_eq!(band.len(), rows as usize, "{rows} x {bands} of {length}");
            }
            let most = (rows * bands).div_ceil(length);
            assert!(uses.iter().all(|&count| count == most || count + 1 == most), "{rows} x {bands} of {length}");
        }
    }
}

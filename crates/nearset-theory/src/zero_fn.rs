//! No false negatives for Hamming distance: pigeonhole blocks, covering masks, folded sketches, and the bounds that no
//! filter can beat.
//!
//! Claim: none of these loses an item within the radius, whatever the items are; the formulas give the cost.
//! Balanced sampling, the fifth way, is in [`super::balanced`].

use super::binomial;

/// Returns `Σ_{i <= radius} C(length, i)`, the number of strings within a radius.
pub fn ball(length: u32, radius: u32) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for i in 0..radius.min(length) {
        term *= f64::from(length - i) / f64::from(i + 1);
        sum += term;
    }
    sum
}

/// A cut of `length` bits into blocks, each searched within its own radius.
///
/// General pigeonhole: when the radii satisfy `Σ(rad_i + 1) = radius + 1`, a string within `radius` cannot differ in
/// more than `rad_i` bits in every block `i`. Radii and lengths are as equal as whole numbers allow, with the larger
/// radii on the shorter blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pigeonhole {
    length: u32,
    radius: u32,
    blocks: u32,
}

impl Pigeonhole {
    /// Cuts `length` bits into blocks for a radius. Returns `None` when there are no blocks, more of them than bits, or
    /// more than `radius + 1`, in which case some could not be searched at all.
    pub fn new(length: u32, radius: u32, blocks: u32) -> Option<Self> {
        (blocks > 0 && blocks <= length && blocks <= radius + 1).then_some(Self { length, radius, blocks })
    }

    /// Returns each block's length and radius.
    pub fn blocks(&self) -> impl Iterator<Item = (u32, u32)> + Clone + use<> {
        let Self { length, radius, blocks } = *self;
        let (share, longer) = (length / blocks, length % blocks);
        let (depth, deeper) = ((radius + 1) / blocks, (radius + 1) % blocks);
        (0..blocks).map(move |i| (share + u32::from(i < longer), depth - 1 + u32::from(i >= blocks - deeper)))
    }

    /// Returns the number of keys that a query looks up: the size of the ball around each of its blocks, summed.
    pub fn probes(&self) -> f64 {
        self.blocks().map(|(length, radius)| ball(length, radius)).sum()
    }

    /// Returns how many (item, block) pairs of random items match a random query: false positives that no larger table
    /// removes.
    pub fn chance_matches(&self, items: f64) -> f64 {
        self.blocks().map(|(length, radius)| items * ball(length, radius) * libm::exp2(-f64::from(length))).sum()
    }

    /// Returns the bits per item of a Bloom filter that holds every block of every item,
    /// `blocks · log2(probes / fp) / ln 2`, where `fp` is what chance matches leave of `max_false_positive`. Returns
    /// `None` when they leave nothing.
    pub fn bloom_bits_per_item(&self, items: f64, max_false_positive: f64) -> Option<f64> {
        let left = max_false_positive - self.chance_matches(items);
        (left > 0.0).then(|| f64::from(self.blocks) * super::bloom::bits_per_key(left / self.probes()))
    }

    /// Returns the probability that a pair at `distance`, whose differences fall on random positions, is within the
    /// radius of some block, or that some block `i` hits by chance, with probability `chance[i]`.
    ///
    /// # Panics
    /// If `distance` is above the length, or there is not exactly one chance per block.
    pub fn acceptance(&self, distance: u32, chance: &[f64]) -> f64 {
        assert!(distance <= self.length, "{} bits have no {distance} differences", self.length);
        assert_eq!(chance.len(), self.blocks as usize, "one chance per block");
        // As with folds: positions differ independently, conditioned on `distance` differences in all. `missed[used]`
        // runs over the blocks so far, none of which has hit.
        let part = f64::from(distance) / f64::from(self.length);
        let mut missed = vec![0.0; distance as usize + 1];
        missed[0] = 1.0;
        for ((length, radius), chance) in self.blocks().zip(chance) {
            let mut next = vec![0.0; missed.len()];
            for differing in radius + 1..=length.min(distance) {
                let miss = binomial::pmf(length, part, differing) * (1.0 - chance);
                let sums = next[differing as usize..].iter_mut().zip(&missed);
                sums.for_each(|(to, from)| *to += from * miss);
            }
            missed = next;
        }
        (1.0 - missed[distance as usize] / binomial::pmf(self.length, part, distance)).clamp(0.0, 1.0)
    }
}

/// Returns the number of masks in covering LSH (Pagh 2016): `2^(r+1) - 1`, of which one misses all of any `r`
/// differences.
pub fn covering_masks(radius: u32) -> f64 {
    libm::exp2(f64::from(radius) + 1.0) - 1.0
}

/// Returns the mean number of masks, over the random map, under which a pair at this distance agrees:
/// `(2^(r+1) - 1) 2^-d`.
pub fn covering_matches(radius: u32, distance: u32) -> f64 {
    covering_masks(radius) * libm::exp2(-f64::from(distance))
}

/// Returns the probability, over the random map, that a pair at `distance` agrees under some mask, which is that the
/// vectors of its differing positions do not span all `r + 1` dimensions: `1 - Π_{i <= r} (1 - 2^(i-d))`.
pub fn covering_acceptance(radius: u32, distance: u32) -> f64 {
    let factors = (0..=radius).map(|i| 1.0 - libm::exp2(f64::from(i) - f64::from(distance)));
    if distance <= radius { 1.0 } else { 1.0 - factors.product::<f64>() }
}

/// Returns the bits per item that any filter needs for exact membership: `log2(1/fp)`.
pub fn membership_lower_bound(false_positive: f64) -> f64 {
    -libm::log2(false_positive)
}

/// Returns the bits per item that any filter needs if, in each of its states, it accepts everything within `radius` of
/// its items and at most a `false_positive` fraction of all strings.
///
/// The accepted set contains a ball around every item, and by Harper's theorem no set of a given size has room for more
/// centres of such balls than the first strings in the order of their weights: all below some weight `W`, and some of
/// weight `W`. The centres are then all strings of weights below `W - radius`, and those of weight `W - radius` from
/// which only accepted ones of weight `W` are reached; the Kruskal-Katona theorem, in the form of Lovász, bounds their
/// number. With `c` centres, each state serves at most `C(c, n)` of the `C(2^length, n)` sets of `n` items, so there are
/// at least `(2^length / c)^n` states. The result is infinite when no such filter exists.
pub fn hamming_lower_bound(length: u32, radius: u32, false_positive: f64) -> f64 {
    let weight = binomial::largest_threshold(length, 0.5, false_positive);
    if weight > length {
        return 0.0;
    }
    let Some(lightest) = weight.checked_sub(radius) else { return f64::INFINITY };
    let extra = false_positive - binomial::below(length, 0.5, weight);
    let bits = f64::from(length) * std::f64::consts::LN_2;
    // Zeros of the strings at the rim, and of those within it.
    let (outer, inner) = (f64::from(length - weight), f64::from(length - lightest));
    let centres =
        if extra > 0.0 { libm::exp(log_largest_family(libm::log(extra) + bits, outer, inner) - bits) } else { 0.0 };
    -libm::log2(binomial::below(length, 0.5, lightest) + centres)
}

/// Returns the logarithm of the most sets of `size` elements that have at most `exp(log_subsets)` subsets of `shadow`
/// elements in all: with `C(x, shadow)` of these, `x` not necessarily whole, at most `C(x, size)` (Lovász 1979).
fn log_largest_family(log_subsets: f64, shadow: f64, size: f64) -> f64 {
    let log_choose = |x: f64, of: f64| libm::lgamma(x + 1.0) - libm::lgamma(of + 1.0) - libm::lgamma(x - of + 1.0);
    // Even one set has more subsets. The margin is what rounding may do to a logarithm.
    if log_subsets < log_choose(size, shadow) - 1e-9 * (1.0 + log_subsets.abs()) {
        return f64::NEG_INFINITY;
    }
    let (mut low, mut high) = (size, size + 1.0);
    while log_choose(high, shadow) < log_subsets && high < f64::MAX {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if log_choose(middle, shadow) < log_subsets { low = middle } else { high = middle }
    }
    log_choose(high, size)
}

/// Returns the bits per item that any filter needs if it misses a `false_negative` fraction of its items' noisy copies
/// (each bit flipped with probability `noise`, independently) and accepts a `false_positive` fraction of all strings.
/// Both are means: over random items, over the noise, and over the functions that the filter draws. Neither the length
/// of the strings nor the number of items matters.
///
/// A filter with `b` bits knows at most `b` bits about its `n` random items together, so on average at most `b/n` about
/// one: the item's divergence from a uniform string, given the state. Noise leaves at most `ρ² = (1 - 2 noise)²` of a
/// divergence from the uniform distribution (Ahlswede and Gács 1976), and to be accepted with probability `1 - β`, where
/// a uniform string is with `α`, takes `d(1 - β, α) = (1 - β) log2((1 - β)/α) + β log2(β/(1 - α))`. So
/// `b/n >= d(1 - β, α)/ρ²` in each state, and because `d` is convex, on average too.
pub fn noisy_lower_bound(noise: f64, false_negative: f64, false_positive: f64) -> f64 {
    let found = 1.0 - false_negative;
    if found <= false_positive {
        return 0.0;
    }
    let part = |p: f64, q: f64| if p == 0.0 { 0.0 } else { p * libm::log2(p / q) };
    let divergence = part(found, false_positive) + part(false_negative, 1.0 - false_positive);
    divergence / ((1.0 - 2.0 * noise) * (1.0 - 2.0 * noise))
}

/// Returns the probability that a pair at `distance` stays within `radius` after its strings are folded by XOR:
/// position `i` of `length` goes to cell `i mod cells`, and a cell differs when an odd number of its positions do.
///
/// Folding never increases a distance, so nothing within the radius is lost. The result is exact for `distance`
/// distinct random positions: a position differs once, so folding in two loses only what falls on both halves of a
/// cell.
///
/// # Panics
/// If `distance` is above `length`, or there are no cells.
pub fn fold_acceptance(length: u32, cells: u32, distance: u32, radius: u32) -> f64 {
    assert!(cells > 0 && distance <= length, "{length} bits have no {distance} differences, or no {cells} cells");
    if distance <= radius {
        return 1.0;
    }
    // Every position differs independently with probability `distance / length`, conditioned on `distance` differences
    // in all: then cells are independent. `weight[odd][used]` runs over the cells so far.
    let part = f64::from(distance) / f64::from(length);
    let (width, odd_most) = (distance as usize + 1, radius.min(cells) as usize);
    let mut weight = vec![0.0; width * (odd_most + 1)];
    weight[0] = 1.0;
    let mut next = vec![0.0; weight.len()];
    for cell in 0..cells {
        let positions = length / cells + u32::from(cell < length % cells);
        next.fill(0.0);
        for differing in 0..=positions {
            let chance = binomial::pmf(positions, part, differing);
            let (shift, odd_step) = (differing as usize, (differing & 1) as usize);
            if shift >= width {
                break;
            }
            for odd in 0..=odd_most {
                if odd + odd_step > odd_most {
                    break;
                }
                let from = &weight[odd * width..(odd + 1) * width - shift];
                let to = &mut next[(odd + odd_step) * width + shift..(odd + odd_step + 1) * width];
                to.iter_mut().zip(from).for_each(|(to, from)| *to += from * chance);
            }
        }
        std::mem::swap(&mut weight, &mut next);
    }
    let accepted: f64 = (0..=odd_most).map(|odd| weight[odd * width + distance as usize]).sum();
    (accepted / binomial::pmf(length, part, distance)).min(1.0)
}

/// Approximates [`fold_acceptance`] by letting every position differ independently with probability
/// `distance / length`, so that `distance` positions differ on average. This takes far fewer terms, and is only precise
/// enough for a picture. Just beyond the radius, where the curve is steepest, it is off by up to 0.4; from four times
/// the radius on, by less than 0.02.
///
/// # Panics
/// If `distance` is above `length`, or there are no cells.
pub fn mean_fold_acceptance(length: u32, cells: u32, distance: u32, radius: u32) -> f64 {
    assert!(cells > 0 && distance <= length, "{length} bits have no {distance} differences, or no {cells} cells");
    if distance <= radius {
        return 1.0;
    }
    let part = f64::from(distance) / f64::from(length);
    // The probability that an odd number of `positions` differ.
    let odd = |positions: u32| 0.5 * (1.0 - libm::pow(1.0 - 2.0 * part, f64::from(positions)));
    // Some cells have one position more than the others.
    let (positions, longer) = (length / cells, length % cells);
    let shorter = cells - longer;
    (0..=radius.min(longer))
        .map(|odd_longer| {
            binomial::pmf(longer, odd(positions + 1), odd_longer)
                * binomial::cdf(shorter, odd(positions), radius - odd_longer)
        })
        .sum::<f64>()
        .min(1.0)
}

/// Returns the probability that a pair at `distance` differs in at most `radius` of its first `kept` positions: a
/// prefix used as a sketch, which also loses nothing, but rejects little.
///
/// # Panics
/// If `distance` or `kept` is above `length`.
pub fn prefix_acceptance(length: u32, kept: u32, distance: u32, radius: u32) -> f64 {
    assert!(
        kept <= length && distance <= length,
        "{length} bits have no prefix of {kept}, or no {distance} differences"
    );
    // The hypergeometric distribution, as binomials conditioned on their total.
    let part = f64::from(distance) / f64::from(length);
    let inside = |differing: u32| {
        binomial::pmf(kept, part, differing) * binomial::pmf(length - kept, part, distance - differing)
    };
    let accepted: f64 = (0..=radius.min(distance)).map(inside).sum();
    (accepted / binomial::pmf(length, part, distance)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{assert_close, assert_printed, distinct, generator};

    #[test]
    fn radii_are_tight_for_the_general_pigeonhole() {
        for (length, radius) in [(256, 31), (64, 8), (100, 7)] {
            for blocks in 1..=radius + 1 {
                let cut = Pigeonhole::new(length, radius, blocks).unwrap();
                assert_eq!(cut.blocks().map(|(length, _)| length).sum::<u32>(), length);
                assert_eq!(cut.blocks().map(|(_, radius)| radius + 1).sum::<u32>(), radius + 1);
            }
        }
        // Shorter blocks take the larger radii, which leaves fewer keys to probe.
        let cut = Pigeonhole::new(10, 3, 3).unwrap();
        assert_eq!(cut.blocks().collect::<Vec<_>>(), [(4, 0), (3, 0), (3, 1)]);
        assert_eq!(cut.probes(), 1.0 + 1.0 + 4.0);
        assert_eq!(Pigeonhole::new(64, 3, 5), None);
        assert_eq!(Pigeonhole::new(64, 3, 0), None);
        assert_eq!(ball(64, 2), 1.0 + 64.0 + 2016.0);
        assert_close(ball(256, 256), libm::exp2(256.0), 1e-12);
    }

    /// Returns the cheapest cut with at most `most_probes` probes, or else the one with the fewest: at least two
    /// blocks, 1 % false positives.
    fn cheapest(radius: u32, most_probes: f64) -> Option<(f64, f64)> {
        let all: Vec<(f64, f64)> = (2..=radius + 1)
            .filter_map(|blocks| Pigeonhole::new(256, radius, blocks))
            .filter_map(|cut| Some((cut.bloom_bits_per_item(1e6, 0.01)?, cut.probes())))
            .collect();
        let quick = all.iter().filter(|(_, probes)| *probes <= most_probes);
        quick.min_by(|a, b| a.0.total_cmp(&b.0)).or_else(|| all.iter().min_by(|a, b| a.1.total_cmp(&b.1))).copied()
    }

    #[test]
    fn pigeonhole_with_a_bloom_filter_as_listed() {
        for (radius, bits) in [(1, 22.0), (7, 85.0), (9, 106.0), (12, 150.0), (17, 166.0)] {
            let (found, _) = cheapest(radius, 1_000.0).unwrap();
            assert_printed(found, bits, 0);
        }
        let (_, probes) = cheapest(17, 1_000.0).unwrap();
        assert_printed(probes / 1_000.0, 5.6, 1);
        // The list has 46 at radius 4. Pigeonhole needs 61; 46 is what balanced sampling takes there.
        assert_printed(cheapest(4, 1_000.0).unwrap().0, 61.0, 0);
        // "Beyond 20 none": the last with fewer than 50,000 probes.
        assert!(cheapest(20, 1_000.0).unwrap().1 < 50_000.0);
        assert!(cheapest(21, 1_000.0).unwrap().1 > 50_000.0);
    }

    #[test]
    fn covering_masks_double_with_the_radius() {
        assert_eq!((covering_masks(0), covering_masks(3), covering_masks(6)), (1.0, 15.0, 127.0));
        // At twice the radius few masks are left, so it rejects well.
        assert!(covering_matches(6, 12) < 0.032);
        assert_eq!(covering_matches(3, 0), 15.0);
    }

    #[test]
    fn a_block_is_near_as_often_as_counting_predicts() {
        // Two blocks of two bits, radius 1: one difference leaves a block equal; two also do unless they split, in 4 of
        // 6 ways.
        let cut = Pigeonhole::new(4, 1, 2).unwrap();
        assert_close(cut.acceptance(1, &[0.0; 2]), 1.0, 1e-12);
        assert_close(cut.acceptance(2, &[0.0; 2]), 2.0 / 6.0, 1e-12);
        assert_close(cut.acceptance(2, &[0.5, 0.0]), 1.0 - 4.0 / 6.0 * 0.5, 1e-12);
        assert!(cut.acceptance(4, &[0.0; 2]) < 1e-12);
        // Each further difference halves how often a mask out of 2^(r+1) - 1 agrees.
        assert_eq!(covering_acceptance(3, 3), 1.0);
        assert_close(covering_acceptance(1, 2), 1.0 - 0.75 * 0.5, 1e-12);
        assert!((0..=6).all(|radius| covering_acceptance(radius, 20) <= covering_matches(radius, 20)));
    }

    #[test]
    fn lower_bounds_as_listed() {
        assert_printed(membership_lower_bound(0.01), 6.64, 2);
        for (length, radius, bits) in [(256, 31, 32.5), (64, 8, 17.8), (64, 10, 21.7)] {
            assert_printed(hamming_lower_bound(length, radius, 0.01), bits, 1);
        }
        assert!(hamming_lower_bound(64, 30, 0.01).is_infinite());
        // A radius of 0 is exact membership.
        for length in [16, 256, 65_536] {
            assert!((hamming_lower_bound(length, 0, 0.01) - membership_lower_bound(0.01)).abs() < 1e-6);
        }
    }

    /// Every set of strings of four bits: none has more room for balls than the bound allows, and balls have as much.
    #[test]
    fn no_set_has_room_for_more_balls_than_the_bound_allows() {
        const BITS: u32 = 4;
        const STRINGS: u32 = 1 << BITS;
        for radius in 1..=2 {
            let ball = |centre: u32| -> u32 {
                (0..STRINGS).filter(|other| (centre ^ other).count_ones() <= radius).map(|other| 1 << other).sum()
            };
            let balls: Vec<u32> = (0..STRINGS).map(ball).collect();
            let mut most = [0; STRINGS as usize + 1];
            for accepted in 0..1u32 << STRINGS {
                let centres = balls.iter().filter(|ball| **ball & !accepted == 0).count();
                let most = &mut most[accepted.count_ones() as usize];
                *most = (*most).max(centres);
            }
            for (size, &centres) in most.iter().enumerate().skip(1) {
                let least = hamming_lower_bound(BITS, radius, size as f64 / f64::from(STRINGS));
                let bits = -libm::log2(centres as f64 / f64::from(STRINGS));
                assert!(bits >= least - 1e-6, "{size} strings, radius {radius}: {bits} bits, {least} by the bound");
                if [5, 11, 16].contains(&size) {
                    assert!(bits == least || (bits - least).abs() < 1e-6, "{size}, {radius}: {bits}, {least}");
                }
            }
        }
    }

    #[test]
    fn noise_raises_what_any_filter_needs() {
        // Without false negatives, and without noise.
        assert_close(noisy_lower_bound(0.1, 0.0, 0.01), membership_lower_bound(0.01) / 0.64, 1e-12);
        assert_printed(noisy_lower_bound(0.0, 0.01, 0.01), 0.98 * libm::log2(99.0), 10);
        let at = |noise| noisy_lower_bound(noise, 0.01, 0.01);
        assert!(at(0.05) < at(0.1) && at(0.1) < at(0.2));
        assert!(noisy_lower_bound(0.1, 0.1, 0.01) < noisy_lower_bound(0.1, 0.01, 0.01));
        assert_eq!(noisy_lower_bound(0.1, 0.995, 0.01), 0.0);
        // Balls around items say more than noise around them: these filters accept all of a ball.
        assert!(noisy_lower_bound(31.0 / 256.0, 0.0, 0.01) < hamming_lower_bound(256, 31, 0.01));
    }

    /// Strings of four bits and any accepted set of them. Of all distributions of an item whose noisy copies are accepted
    /// as often, the one with the least divergence is `exp(tilt · Pr[accepted])`, normalised.
    #[test]
    fn no_distribution_of_an_item_is_accepted_more_often_than_its_bits_allow() {
        const BITS: u32 = 4;
        const STRINGS: usize = 1 << BITS;
        let mut checked = 0;
        for noise in [0.02f64, 0.1, 0.3] {
            // Sets up to a stride, so that all sizes and shapes occur; the first are those of the lightest strings.
            for accepted in (1u32..1 << STRINGS).step_by(37) {
                let of = |string: usize| accepted >> string & 1 == 1;
                let fraction = f64::from(accepted.count_ones()) / STRINGS as f64;
                let kept: Vec<f64> = (0..STRINGS)
                    .map(|item| {
                        let flips = |copy: usize| (item ^ copy).count_ones() as i32;
                        let chance = |copy| noise.powi(flips(copy)) * (1.0 - noise).powi(BITS as i32 - flips(copy));
                        (0..STRINGS).filter(|&copy| of(copy)).map(chance).sum()
                    })
                    .collect();
                for tilt in [0.5, 2.0, 8.0, 40.0] {
                    let weights: Vec<f64> = kept.iter().map(|kept| libm::exp(tilt * kept)).collect();
                    let all: f64 = weights.iter().sum();
                    let found: f64 = weights.iter().zip(&kept).map(|(weight, kept)| weight / all * kept).sum();
                    let bits: f64 =
                        weights.iter().map(|weight| weight / all * libm::log2(weight / all * STRINGS as f64)).sum();
                    let least = noisy_lower_bound(noise, 1.0 - found.min(1.0), fraction);
                    assert!(bits >= least - 1e-9, "{accepted:#x}, noise {noise}, tilt {tilt}: {bits} for {least}");
                    checked += 1;
                }
            }
        }
        assert!(checked > 20_000);
    }

    /// A filter for one item that keeps as many of its bits, and accepts what differs in few of them.
    #[test]
    fn no_sketch_of_one_item_takes_fewer_bits_than_any_filter_needs() {
        let mut closest = f64::INFINITY;
        for noise in [0.01, 0.05, 0.1, 0.2] {
            for bits in 1..=64 {
                for most in 0..bits / 2 {
                    let missed = binomial::at_least(bits, noise, most + 1);
                    let least = noisy_lower_bound(noise, missed, binomial::cdf(bits, 0.5, most));
                    assert!(f64::from(bits) >= least, "{bits} bits, {most} differ: {least} by the bound");
                    closest = closest.min(f64::from(bits) / least);
                }
            }
        }
        // The bound is not far off.
        assert!(closest < 1.3, "{closest}");
    }

    #[test]
    fn folding_rejects_where_a_prefix_does_not() {
        assert_printed(fold_acceptance(256, 128, 48, 31), 0.012, 3);
        assert_printed(prefix_acceptance(256, 128, 48, 31), 0.992, 3);
        assert_eq!(fold_acceptance(256, 64, 31, 31), 1.0);
        assert!(fold_acceptance(256, 128, 90, 31) < 1e-7);
        assert_eq!(fold_acceptance(256, 1, 48, 31), 1.0);
        assert_close(prefix_acceptance(256, 256, 48, 48), 1.0, 1e-10);
        assert_close(fold_acceptance(256, 256, 48, 47), 0.0, 1e-10);
    }

    #[test]
    fn folding_as_simulated() {
        let mut rng = generator(11);
        for (length, cells, distance, radius) in [(256u32, 64u32, 44u32, 25u32), (256, 128, 40, 31), (100, 30, 20, 13)]
        {
            let draws = 20_000;
            let mut accepted = 0u32;
            for _ in 0..draws {
                let mut odd = vec![false; cells as usize];
                for position in distinct(&mut rng, distance, length) {
                    odd[(position % cells) as usize] ^= true;
                }
                accepted += u32::from(odd.iter().filter(|odd| **odd).count() <= radius as usize);
            }
            let expected = fold_acceptance(length, cells, distance, radius);
            let sigma = (expected * (1.0 - expected) / f64::from(draws)).sqrt();
            let seen = f64::from(accepted) / f64::from(draws);
            // 5 sigma: 6e-7 by chance, and the seed is fixed.
            assert!((seen - expected).abs() <= 5.0 * sigma, "{seen}, expected {expected}");
        }
    }

    /// Folding long strings gives much the same result whether exactly `distance` positions differ or that many on
    /// average.
    #[test]
    fn the_mean_of_differences_is_enough_for_long_strings() {
        for (length, cells, radius) in [(4096, 64, 8), (4000, 128, 20), (4096, 512, 12)] {
            for distance in [radius + 1, 2 * radius, 4 * radius, length / 2] {
                let (exact, mean) = (
                    fold_acceptance(length, cells, distance, radius),
                    mean_fold_acceptance(length, cells, distance, radius),
                );
                let tolerance = if distance < 4 * radius { 0.4 } else { 0.02 };
                assert!((exact - mean).abs() <= tolerance, "{length}, {cells}, {distance}: {exact} and {mean}");
            }
            assert_eq!(mean_fold_acceptance(length, cells, radius, radius), 1.0);
        }
    }
}

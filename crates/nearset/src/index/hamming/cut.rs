//! How a string is cut into blocks, chosen by cost.
//!
//! General pigeonhole: with radii such that `Σ(rad_i + 1) = r + 1`, a string within `r` of another is within `rad_i` of it in some
//! block `i` (Qin et al. 2018). Nothing asks that blocks be equal, or that they hold every bit. A block with the greater
//! radius is looked up in many more places, and repays bits better; so the two radii that are one apart have each a width.
//!
//! Claim: among cuts into blocks of two neighbouring radii, the one of the least estimated cost, which is near to the least of all.
//! Not here: what the blocks are looked up in (`table`), in which order (`search`).

use nearset_theory::zero_fn::ball;

/// One block: its bits, how many of them address its table, and how far from the query's it is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Bits of the string that belong to the block.
    pub(crate) width: u32,
    /// Bits of an address; where there are fewer than the width, bits are added up modulo 2, and the radius is 0.
    pub(crate) address: u32,
    /// The block's share of the radius.
    pub(crate) radius: u32,
}

/// The widest address: tables of 2^31 bits.
pub(crate) const MOST_ADDRESS: u32 = 31;
/// The most blocks.
pub(crate) const MOST_BLOCKS: u32 = 1 << 12;

/// Bits of an address beyond `log2` of the items. Tables eight times as large as there are items take some four more bytes an
/// item and block, and at a radius of 2 as many bits by chance as there are words to look at.
const ROOMY: u32 = 3;

// Nanoseconds, of which only the ratios matter: `cargo bench -p nearset --bench hamming` with 1e4 to 1e6 items of 256 bits.
const BLOCK_COST: f64 = 70.0;
const WORD_COST: f64 = 6.0;
const CANDIDATE_COST: f64 = 25.0;
const SCANNED_WORD_COST: f64 = 0.3;

impl Cut {
    /// That such a block can be.
    pub(crate) fn is_possible(&self) -> bool {
        let addressed = (1..=MOST_ADDRESS).contains(&self.address) && self.address <= self.width;
        addressed && self.radius < self.width && (self.radius == 0 || self.address == self.width)
    }

    /// What looking up one shell costs among so many items: keys that differ in exactly `shell` bits.
    pub(super) fn shell_cost(&self, shell: u32, items: f64) -> f64 {
        let keys = ball(self.address, shell) - if shell == 0 { 0.0 } else { ball(self.address, shell - 1) };
        // 64 keys to a word, all those that differ in the lowest six bits.
        let words = ball(self.address.saturating_sub(6), shell);
        let candidates = items * keys / (1u64 << self.address) as f64;
        BLOCK_COST * f64::from(u8::from(shell == 0)) + WORD_COST * words + CANDIDATE_COST * candidates
    }

    fn cost(&self, items: f64) -> f64 {
        (0..=self.radius).map(|shell| self.shell_cost(shell, items)).sum()
    }
}

/// What comparing a query with every item costs.
pub(super) fn scan_cost(bits: u32, items: f64) -> f64 {
    SCANNED_WORD_COST * f64::from(bits.div_ceil(64)) * items
}

/// Items to compare one by one beyond which a scan costs less.
pub(super) fn most_candidates(bits: u32, items: f64) -> usize {
    (scan_cost(bits, items) / CANDIDATE_COST) as usize
}

/// The cheapest cut of strings of so many bits for a radius; no blocks where a scan is cheaper.
pub(super) fn cheapest(bits: u32, radius: u32, items: u32) -> Vec<Cut> {
    if radius >= bits {
        return Vec::new();
    }
    let widest = (32 - items.saturating_sub(1).leading_zeros() + ROOMY).min(MOST_ADDRESS);
    let items = f64::from(items);
    let block = |width: u32, radius: u32| Cut { width, address: width.min(widest), radius };
    let mut best = (scan_cost(bits, items), Vec::new());
    for blocks in 1..=(radius + 1).min(MOST_BLOCKS) {
        let (shares, deep) = ((radius + 1) / blocks, (radius + 1) % blocks);
        let (shallow, deep_widths) = (blocks - deep, if deep == 0 { 0..=0 } else { 1..=widest });
        for deep_width in deep_widths {
            let Some(rest) = bits.checked_sub(deep * deep_width).filter(|&rest| rest >= shallow) else { break };
            let share = rest / shallow;
            // A block that is looked up at a distance must be addressed by its very bits: what is too much is left out.
            let (width, wider) = if shares > 1 && share >= widest { (widest, 0) } else { (share, rest % shallow) };
            let kinds = [
                (wider, block(width + 1, shares - 1)),
                (shallow - wider, block(width, shares - 1)),
                (deep, block(deep_width, shares)),
            ];
            let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
            if kinds.clone().any(|(_, cut)| !cut.is_possible()) {
                continue;
            }
            let cost: f64 = kinds.clone().map(|(count, cut)| f64::from(count) * cut.cost(items)).sum();
            if cost < best.0 {
                best = (cost, kinds.flat_map(|(count, cut)| std::iter::repeat_n(cut, count as usize)).collect());
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cut_finds_all_within_the_radius() {
        for bits in [1, 2, 5, 63, 64, 100, 256, 1000, 70_000] {
            for radius in [0, 1, 2, 7, 31, 100, 5_000, u32::MAX] {
                for items in [0, 1, 100, 10_000, 1_000_000, u32::MAX] {
                    let cuts = cheapest(bits, radius, items);
                    let what = format!("{bits} bits, radius {radius}, {items} items: {cuts:?}");
                    assert!(cuts.iter().all(Cut::is_possible), "{what}");
                    if !cuts.is_empty() {
                        let shells: u32 = cuts.iter().map(|cut| cut.radius + 1).sum();
                        assert_eq!(shells, radius + 1, "{what}");
                        assert!(cuts.iter().map(|cut| cut.width).sum::<u32>() <= bits, "{what}");
                    }
                }
            }
        }
    }

    /// The least cost of any blocks at all, by dynamic programming over bits and shares of the radius.
    fn least_cost(bits: u32, radius: u32, items: u32) -> f64 {
        let widest = 32 - (items - 1).leading_zeros() + ROOMY;
        let blocks = (1..=widest).flat_map(|width| (0..width.min(6)).map(move |radius| (width, radius)));
        let costs: Vec<(usize, usize, f64)> = blocks
            .map(|(width, radius)| {
                let cost = Cut { width, address: width, radius }.cost(f64::from(items));
                (width as usize, radius as usize + 1, cost)
            })
            .collect();
        let shares = radius as usize + 1;
        let mut least = vec![vec![f64::INFINITY; shares + 1]; bits as usize + 1];
        for used in 0..least.len() {
            least[used][0] = 0.0;
            for share in 1..=shares {
                let fits = costs.iter().filter(|(width, shells, _)| *width <= used && *shells <= share);
                let all = fits.map(|&(width, shells, cost)| least[used - width][share - shells] + cost);
                least[used][share] = all.fold(f64::INFINITY, f64::min);
            }
        }
        least[bits as usize][shares]
    }

    #[test]
    fn hardly_any_cut_is_cheaper() {
        for (bits, radius, items) in [
            (64, 3, 1_000_000),
            (64, 8, 1_000_000),
            (64, 10, 1_000_000),
            (128, 20, 1_000_000),
            (256, 15, 10_000_000),
            (256, 31, 10_000),
            (256, 31, 100_000),
            (256, 31, 1_000_000),
            (256, 31, 10_000_000),
        ] {
            let chosen: f64 = cheapest(bits, radius, items).iter().map(|cut| cut.cost(f64::from(items))).sum();
            let least = least_cost(bits, radius, items);
            assert!(chosen > 0.0 && chosen <= 1.03 * least, "{bits} bits, radius {radius}: {chosen} against {least}");
        }
    }

    #[test]
    fn few_items_and_far_radii_are_scanned_and_many_are_not() {
        assert!(cheapest(256, 31, 1).is_empty());
        assert!(cheapest(256, 31, 100).is_empty());
        assert!(cheapest(256, 128, 1_000_000).is_empty());
        assert!(cheapest(256, 256, 1_000_000).is_empty());
        assert!(!cheapest(256, 31, 1_000_000).is_empty());
        // One equal block finds them all, and one look-up a block is as little as can be.
        assert!(cheapest(256, 7, 1_000_000).iter().all(|cut| cut.radius == 0));
    }
}

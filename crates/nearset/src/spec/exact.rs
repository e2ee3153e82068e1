//! What an exact near filter is, and the sampled scan that shares its form.

use nearset_theory::zero_fn::{Pigeonhole, covering_masks};

use crate::{
    BloomFilter, MergeError, Seed,
    error::{MOST_COVERED, MOST_ITEM_BITS, MOST_LOOK_UPS, SpecError},
    family::{WorkBound, WorkLimit},
    spec::Table,
};

/// Everything that decides the answers of an exact near filter, which misses nothing within its radius, unless it is a scan of
/// samples. Two filters of equal specs can be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExactSpec {
    /// Bits per item.
    pub bits: u32,
    /// The Hamming distance up to which nothing is missed; by a scan of samples, little.
    pub radius: u32,
    /// From which positions and keys are drawn.
    pub seed: Seed,
    /// How it is done.
    pub construction: Construction,
}

/// How a filter over whole bit strings answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Construction {
    /// The bits are dealt out into blocks, each with a radius of its own such that one block at least of anything near is
    /// within it; a query looks up every key within that radius.
    Pigeonhole {
        /// Blocks, from 1 to `radius + 1`. Fewer blocks mean fewer keys stored and many more looked up.
        blocks: u32,
        /// Every block's table. [`Table::Direct`] suits short blocks: 2^length bits each.
        table: Table,
    },
    /// `2^(radius + 1) - 1` masks, one of which misses all differences (Pagh 2016).
    Covering {
        /// Every mask's table; not [`Table::Direct`].
        table: Table,
    },
    /// All items, XOR-folded, are compared with the query's fold.
    FoldedScan {
        /// Bits of a fold: a multiple of 64, below that of the item, or just what holds it whole, which makes the answers
        /// exact.
        width: u32,
    },
    /// A sample of every item's bits is compared with the query's: the sketch that Kirsch & Mitzenmacher (2006, section 3) set
    /// beside their filter. It does miss some near items, and takes fewer bits than filters of bands do.
    SampledScan {
        /// Sampled positions: a multiple of 64, below the number of bits, and 65,536 at most.
        width: u32,
        /// Samples that differ in at most so many positions are near.
        within: u32,
    },
}

impl Construction {
    /// The tables that keys go to; a scan has none.
    pub(crate) fn table(self) -> Option<Table> {
        match self {
            Construction::Pigeonhole { table, .. } | Construction::Covering { table } => Some(table),
            Construction::FoldedScan { .. } | Construction::SampledScan { .. } => None,
        }
    }

    /// Bits of what a scan keeps of each item, and by how many it may differ from the query's; `None` where keys are kept.
    pub(crate) fn scan(self, radius: u32) -> Option<(u32, u32)> {
        match self {
            Construction::FoldedScan { width } => Some((width, radius)),
            Construction::SampledScan { width, within } => Some((width, within)),
            Construction::Pigeonhole { .. } | Construction::Covering { .. } => None,
        }
    }
}

const MOST_BLOCKS: u32 = 1 << 12;
/// Sampled positions, at most: what a scan answers is computed by a sum over them.
const MOST_SAMPLED: u32 = 1 << 16;
/// Operations that each of them takes: some are not in the cache.
const PROBE_WORK: u64 = 6;

impl ExactSpec {
    /// Pigeonhole blocks in Bloom tables that keep chance hits of a query to `max_false_positive` while at most `capacity`
    /// distinct items are in. Blocks that really match come on top of it.
    ///
    /// # Errors
    /// If there is no such filter.
    pub fn pigeonhole(
        bits: u32,
        radius: u32,
        blocks: u32,
        capacity: u64,
        max_false_positive: f64,
        seed: Seed,
    ) -> Result<Self, SpecError> {
        let probes = cut(bits, radius, blocks)?.probes();
        let table = planned(capacity, max_false_positive / probes)?;
        Self { bits, radius, seed, construction: Construction::Pigeonhole { blocks, table } }.checked()
    }

    /// A filter of strings of `bits` bits that misses nothing within `radius`, by any construction.
    ///
    /// # Errors
    /// If there is no such filter.
    pub fn new(bits: u32, radius: u32, construction: Construction, seed: Seed) -> Result<Self, SpecError> {
        Self { bits, radius, seed, construction }.checked()
    }

    /// Covering masks in Bloom tables that keep chance hits of a query to `max_false_positive` while at most `capacity` distinct
    /// items are in.
    ///
    /// # Errors
    /// If there is no such filter.
    pub fn covering(
        bits: u32,
        radius: u32,
        capacity: u64,
        max_false_positive: f64,
        seed: Seed,
    ) -> Result<Self, SpecError> {
        let table = planned(capacity, max_false_positive / covering_masks(radius))?;
        Self { bits, radius, seed, construction: Construction::Covering { table } }.checked()
    }

    /// A scan of folds of `width` bits.
    ///
    /// # Errors
    /// If the width is not a multiple of 64, or too large or too small.
    #[cfg(test)]
    pub(crate) fn folded_scan(bits: u32, radius: u32, width: u32, seed: Seed) -> Result<Self, SpecError> {
        Self { bits, radius, seed, construction: Construction::FoldedScan { width } }.checked()
    }

    pub(crate) fn checked(self) -> Result<Self, SpecError> {
        self.check()?;
        Ok(self)
    }

    /// The most that hashing and looking up one item costs; a scan looks at every item that is stored on top of it. A spec that no
    /// filter has costs more than any limit.
    pub(crate) fn work_bound(&self) -> WorkBound {
        if self.check_possible().is_ok() { self.work_of_possible() } else { WorkBound::ENDLESS }
    }

    fn work_of_possible(&self) -> WorkBound {
        let bits = u64::from(self.bits);
        let (keys, look_up) = match self.construction {
            Construction::Pigeonhole { blocks, .. } => {
                let probes = Pigeonhole::new(self.bits, self.radius, blocks).map_or(0.0, |cut| cut.probes());
                (u64::from(blocks), PROBE_WORK * probes as u64)
            }
            Construction::Covering { .. } => {
                let masks = covering_masks(self.radius) as u64;
                (10 * masks, PROBE_WORK * masks)
            }
            Construction::FoldedScan { .. } | Construction::SampledScan { .. } => (0, 0),
        };
        WorkBound {
            draw: 40 * bits,
            hash: 3 * bits + keys,
            look_up,
            item_bytes: bits.div_ceil(8),
            ..WorkBound::default()
        }
    }

    /// Checks that a filter of this spec can be, and that its [`work_bound`](Self::work_bound) keeps the usual limit.
    ///
    /// # Errors
    /// If not, saying why.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        self.check_within(WorkLimit::Usual)
    }

    /// [`Self::check`] by another limit on work.
    ///
    /// # Errors
    /// If no filter has this spec, or it asks for too much work.
    pub(crate) fn check_within(&self, limit: WorkLimit) -> Result<(), SpecError> {
        self.check_possible()?;
        limit.check(&self.work_of_possible())
    }

    /// Checks that a filter of this spec can be, whatever work it is: enough for what follows from a spec that was checked.
    pub(crate) fn check_possible(&self) -> Result<(), SpecError> {
        let Self { bits, radius, construction, .. } = *self;
        if !(1..=MOST_ITEM_BITS).contains(&bits) {
            return Err(SpecError::ItemBits { found: bits });
        }
        if radius >= bits {
            return Err(SpecError::Radius { radius, bits });
        }
        match construction {
            Construction::Pigeonhole { blocks, table } => {
                let cut = cut(bits, radius, blocks)?;
                if let Some((length, radius)) = cut.blocks().find(|(length, radius)| radius >= length) {
                    return Err(SpecError::WholeBlock { length, radius });
                }
                // NaN and infinity are too many, too.
                if !(cut.probes() <= MOST_LOOK_UPS) {
                    return Err(SpecError::LookUps { keys: cut.probes() });
                }
                table.check(self.key_bits())
            }
            Construction::Covering { .. } if radius > MOST_COVERED => Err(SpecError::Covering { radius }),
            Construction::Covering { table: Table::Direct } => Err(SpecError::DirectMasks),
            Construction::Covering { table } => table.check(self.key_bits()),
            Construction::FoldedScan { width } => {
                let whole = bits.next_multiple_of(64);
                if width == 0 || !width.is_multiple_of(64) || width > whole {
                    return Err(SpecError::Width { width, whole });
                }
                if radius >= width {
                    return Err(SpecError::Radius { radius, bits: width });
                }
                Ok(())
            }
            Construction::SampledScan { width, within } => {
                let whole = (bits.saturating_sub(1) / 64 * 64).min(MOST_SAMPLED);
                if width == 0 || !width.is_multiple_of(64) || width > whole {
                    return Err(SpecError::Width { width, whole });
                }
                if within >= width {
                    return Err(SpecError::Radius { radius: within, bits: width });
                }
                Ok(())
            }
        }
    }

    /// Bytes that an empty filter of this spec holds; a scan takes more with every item.
    pub(crate) fn bytes(&self) -> u64 {
        let lines = |table: Table| table.num_bits(self.key_bits()).div_ceil(512);
        64 * self.construction.table().map_or(0, lines)
    }

    /// The same filter for so many times the items, its tables that much larger. Direct tables and scans have but one size, and
    /// stay as they are.
    ///
    /// # Errors
    /// If no filter is that large.
    pub(crate) fn with_tables_scaled(&self, factor: u64) -> Result<Self, SpecError> {
        let construction = match self.construction {
            Construction::Pigeonhole { blocks, table } => {
                Construction::Pigeonhole { blocks, table: table.scaled(factor) }
            }
            Construction::Covering { table } => Construction::Covering { table: table.scaled(factor) },
            scan @ (Construction::FoldedScan { .. } | Construction::SampledScan { .. }) => scan,
        };
        let spec = Self { construction, ..*self };
        spec.check_possible()?;
        Ok(spec)
    }

    /// Bits of each block or mask, which say how large a direct table is; none for a scan.
    pub(crate) fn key_bits(&self) -> impl Iterator<Item = u32> + Clone + use<> {
        let Self { bits, radius, construction, .. } = *self;
        let cut = match construction {
            Construction::Pigeonhole { blocks, .. } => Pigeonhole::new(bits, radius, blocks),
            _ => None,
        };
        let masks = match construction {
            Construction::Covering { .. } => covering_masks(radius) as usize,
            _ => 0,
        };
        let blocks = cut.into_iter().flat_map(|cut| cut.blocks()).map(|(length, _)| length);
        blocks.chain(std::iter::repeat_n(bits, masks))
    }

    /// Words of a fold or sample; 0 where there are none.
    pub(crate) fn fold_words(&self) -> usize {
        self.construction.scan(self.radius).map_or(0, |(width, _)| width as usize / 64)
    }

    /// That another filter's bits mean the same.
    ///
    /// # Errors
    /// If they do not, naming the first difference.
    pub(crate) fn expect_equal(&self, other: &ExactSpec) -> Result<(), MergeError> {
        // Taken apart, so that a new field can't be forgotten here.
        let ExactSpec { bits, radius, seed, construction } = self;
        MergeError::unless_equal("number of bits", bits, &other.bits)?;
        MergeError::unless_equal("radius", radius, &other.radius)?;
        MergeError::unless_equal("seed", seed, &other.seed)?;
        MergeError::unless_equal("construction", construction, &other.construction)
    }
}

fn cut(bits: u32, radius: u32, blocks: u32) -> Result<Pigeonhole, SpecError> {
    let most = MOST_BLOCKS.min(bits).min(radius.saturating_add(1));
    let within = (blocks <= most).then(|| Pigeonhole::new(bits, radius, blocks)).flatten();
    within.ok_or(SpecError::Blocks { blocks, most })
}

/// The smallest Bloom table for so many keys and chance hits.
fn planned(capacity: u64, max_false_positive: f64) -> Result<Table, SpecError> {
    let (lines, hashes) = BloomFilter::planned(capacity, max_false_positive)?;
    Ok(Table::Lines { lines, hashes })
}

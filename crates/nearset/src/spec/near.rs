//! What a filter is: everything that decides its answers, and nothing else.
//!
//! Claim: two filters with equal specs can be merged, and two filters that can be merged have equal specs.
//! Not here: choosing a spec for a goal (`plan`), the papers' own choices (`papers`).

use std::ops::Range;

use nearset_theory::binomial;

use super::Rule;
use crate::{
    Family, Layout, MergeError, Seed,
    error::{MOST_BITS, MOST_DIRECT_ROWS, SpecError},
    family::{LshFamily, WorkBound, WorkLimit, product},
    item::Distance,
};

/// A band's table: where its keys go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Table {
    /// `2^rows` bits, addressed by the band's sampled bits themselves (Kirsch & Mitzenmacher 2006). Only for families whose
    /// functions are bits.
    Direct,
    /// One bit a key, anywhere in a table of this many bits.
    Bits(u64),
    /// A blocked Bloom filter: `hashes` bits per key in one of `lines` cache lines of 512 bits.
    Lines {
        /// Cache lines.
        lines: u64,
        /// Bits a key, from 1 to 8.
        hashes: u32,
    },
}

impl Table {
    /// Bits of all tables, one for each of `rows`. They were checked before.
    pub(crate) fn num_bits(self, rows: impl Iterator<Item = u32>) -> u64 {
        rows.map(|rows| match self {
            Table::Direct => 1 << rows,
            Table::Bits(bits) => bits,
            Table::Lines { lines, .. } => 512 * lines,
        })
        .sum()
    }

    /// A table of so many times the size; a direct one has but one size.
    pub(crate) fn scaled(self, factor: u64) -> Self {
        match self {
            Table::Direct => Table::Direct,
            Table::Bits(bits) => Table::Bits(bits.saturating_mul(factor)),
            Table::Lines { lines, hashes } => Table::Lines { lines: lines.saturating_mul(factor), hashes },
        }
    }

    /// That there can be such tables, one for each of `rows`, the number of bits in a band's keys.
    pub(crate) fn check(self, rows: impl Iterator<Item = u32>) -> Result<(), SpecError> {
        let mut bits = 0u128;
        for rows in rows {
            bits += match self {
                Table::Direct if rows > MOST_DIRECT_ROWS => return Err(SpecError::DirectRows { rows }),
                Table::Direct => 1 << rows,
                Table::Bits(0) | Table::Lines { lines: 0, .. } => return Err(SpecError::EmptyTable),
                Table::Lines { hashes, .. } if !(1..=8).contains(&hashes) => return Err(SpecError::Hashes { hashes }),
                Table::Bits(bits) => u128::from(bits),
                Table::Lines { lines, .. } => 512 * u128::from(lines),
            };
        }
        if bits > MOST_BITS { Err(SpecError::TooLarge { bits }) } else { Ok(()) }
    }
}

/// A Bloom filter over the joint tuple of an item's keys, so that hits which come from different items do not add up
/// (Hua et al. 2012).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Verification {
    /// Cache lines of 512 bits.
    pub lines: u64,
    /// Bits a key, from 1 to 8.
    pub hashes: u32,
}

/// Trying the buckets beside an item's own, where its own are empty (Hua et al. 2012's active overflow).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Probing {
    /// How many missing bands may be made good.
    pub bands: u32,
    /// How many steps a single function's value may move.
    pub reach: u32,
}

/// Everything that decides a filter's answers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Spec {
    /// The hash family, with its parameters.
    pub family: Family,
    /// From which functions and tables are drawn.
    pub seed: Seed,
    /// Functions in a band.
    pub rows: u32,
    /// When hits are enough; it also says how many bands there are.
    pub rule: Rule,
    /// Every band's table.
    pub table: Table,
    /// Whether accepted items are looked up once more, all bands together.
    pub verification: Option<Verification>,
    /// Whether neighbouring buckets are tried.
    pub probing: Option<Probing>,
}

impl Spec {
    /// A threshold filter: accept when at least `threshold` of `bands` bands hit, each in a table of its own.
    ///
    /// # Errors
    /// If no filter has this spec.
    pub fn new(
        family: impl Into<Family>,
        layout: Layout,
        threshold: u32,
        table: Table,
        seed: Seed,
    ) -> Result<Self, SpecError> {
        let rule = Rule::threshold(layout.bands, threshold)?;
        let spec =
            Self { family: family.into(), seed, rows: layout.rows, rule, table, verification: None, probing: None };
        spec.check()?;
        Ok(spec)
    }

    /// A filter by any rule, such as an amplification in several steps over the bands' hits: AND-OR is one `Or` over bands of several
    /// rows, OR-AND an `Or` and then an `And`, and so on. Its fields can then be changed one by one; whether there is such a filter is
    /// said when one is made.
    ///
    /// ```
    /// use nearset::{Seed, Spec, Table, family::BitSampling, spec::{Rule, Step}};
    ///
    /// let or_and = Rule::cascade([Step::Or(4), Step::And(4)])?;
    /// let spec = Spec::by_rule(BitSampling::new(64), 1, or_and, Table::Direct, Seed::new(1));
    /// assert_eq!(spec.layout().bands, 16);
    /// # Ok::<(), nearset::spec::SpecError>(())
    /// ```
    pub fn by_rule(family: impl Into<Family>, rows: u32, rule: Rule, table: Table, seed: Seed) -> Self {
        Self { family: family.into(), seed, rows, rule, table, verification: None, probing: None }
    }

    /// Rows and bands.
    pub fn layout(&self) -> Layout {
        Layout { rows: self.rows, bands: self.rule.bands() }
    }

    /// How many functions' values make a key, band by band.
    pub(crate) fn rows_by_band(&self) -> impl Iterator<Item = u32> + Clone + use<> {
        std::iter::repeat_n(self.rows, self.rule.bands() as usize)
    }

    /// Bits of one band's table.
    pub fn bits_per_band(&self) -> u64 {
        match self.table {
            Table::Direct => 1 << self.rows,
            Table::Bits(bits) => bits,
            Table::Lines { lines, .. } => 512 * lines,
        }
    }

    /// Cache lines of 512 bits that all tables take, verification apart.
    pub(crate) fn table_lines(&self) -> u64 {
        (self.bits_per_band() * u64::from(self.rule.bands())).div_ceil(512)
    }

    /// Bytes that a filter of this spec holds.
    pub fn bytes(&self) -> u64 {
        64 * (self.table_lines() + self.verification.map_or(0, |verification| verification.lines))
    }

    /// The most that hashing and looking up one item costs. A spec that no filter has costs more than any limit.
    pub(crate) fn work_bound(&self) -> WorkBound {
        if self.check_possible().is_ok() { self.work_of_possible() } else { WorkBound::ENDLESS }
    }

    fn work_of_possible(&self) -> WorkBound {
        let (rows, bands) = (u64::from(self.rows), u64::from(self.rule.bands()));
        let look_up = LOOK_UP_WORK * bands + self.verification.map_or(0, |_| bands + VERIFICATION_WORK);
        let beside = self.probing.map_or(0, |Probing { bands: made_good, reach }| {
            let buckets = u64::from(self.family.neighbour_buckets(self.rows, reach));
            // Every band may miss; to make a neighbour's key takes all of its rows.
            let visits = product([bands, buckets, rows + LOOK_UP_WORK]);
            let tuples = match self.verification {
                Some(_) => {
                    product([bands + VERIFICATION_WORK, buckets.saturating_pow(made_good.min(self.rule.bands()))])
                }
                None => 0,
            };
            visits.saturating_add(tuples)
        });
        WorkBound { look_up: look_up.saturating_add(beside), ..self.family.work_bound(self.layout()) }
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
        if self.table == Table::Direct && !self.family.values_are_bits() {
            return Err(SpecError::NotBits);
        }
        self.table.check(self.rows_by_band())?;
        if let Some(Verification { lines, hashes }) = self.verification {
            if !self.rule.is_and() {
                return Err(SpecError::VerifiedThreshold);
            }
            if lines == 0 {
                return Err(SpecError::EmptyTable);
            }
            if !(1..=8).contains(&hashes) {
                return Err(SpecError::Hashes { hashes });
            }
            if u128::from(lines) * 512 > MOST_BITS {
                return Err(SpecError::TooLarge { bits: u128::from(lines) * 512 });
            }
        }
        if self.rule.follows_fill() && !matches!(self.table, Table::Direct | Table::Bits(_)) {
            return Err(SpecError::PromiseOverLines);
        }
        if self.probing.is_some() && (self.rule.follows_fill() || self.rule.threshold_at(0.0).is_none()) {
            return Err(SpecError::ProbedCascade);
        }
        self.family.check(self.layout())
    }

    /// The same filter for so many times the items, its tables and its verification that much larger. An item has the same keys for
    /// both. Direct tables have but one size, and stay as they are.
    ///
    /// # Errors
    /// If no filter is that large.
    pub(crate) fn with_tables_scaled(&self, factor: u64) -> Result<Self, SpecError> {
        let verification = self
            .verification
            .map(|Verification { lines, hashes }| Verification { lines: lines.saturating_mul(factor), hashes });
        let spec = Self { table: self.table.scaled(factor), verification, ..self.clone() };
        spec.check_possible()?;
        Ok(spec)
    }

    /// The spec of a filter that holds only some bands of this one, so that a filter too large for one machine is spread over
    /// several: each holds a slice, and is sent the keys of its bands only.
    ///
    /// Whoever asks adds up hits and set bits over all slices, and decides by the whole spec's rule: at least
    /// [`Rule::threshold_at`] of the fill. A slice's own functions serve no one, and its own rule says that any band hit.
    ///
    /// ```
    /// use nearset::plan::Request;
    ///
    /// let plan = Request::default().capacity(1_000_000).plan_dedup()?;
    /// let whole = plan.spec.near().expect("a filter of texts has bands");
    /// let bands = whole.rule.bands();
    /// let half = whole.slice(0..bands / 2)?;
    /// assert_eq!((half.rule.bands(), half.bits_per_band()), (bands / 2, whole.bits_per_band()));
    /// assert_ne!(half, whole.slice(bands / 2..bands)?, "slices are not to be mixed up");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there are no such bands, or hits alone do not decide: verification and probing look at a whole item, and a rule of
    /// several steps at which bands hit.
    pub fn slice(&self, bands: Range<u32>) -> Result<Self, SpecError> {
        if self.verification.is_some() || self.probing.is_some() || self.rule.threshold_at(0.0).is_none() {
            return Err(SpecError::Undivided);
        }
        let all = self.rule.bands();
        if bands.is_empty() || bands.end > all {
            return Err(SpecError::Slice { start: bands.start, end: bands.end, bands: all });
        }
        let rule = Rule::threshold(bands.end - bands.start, 1)?;
        let seed = self.seed.derive("slice", bands.start.into());
        let spec = Self { seed, rule, ..self.clone() };
        spec.check_possible()?;
        Ok(spec)
    }

    /// That another filter's bits mean the same.
    ///
    /// # Errors
    /// If they do not, naming the first difference.
    pub(crate) fn expect_equal(&self, other: &Spec) -> Result<(), MergeError> {
        // Taken apart, so that a new field can't be forgotten here.
        let Spec { family, seed, rows, rule, table, verification, probing } = self;
        MergeError::unless_equal("hash family", family, &other.family)?;
        MergeError::unless_equal("seed", seed, &other.seed)?;
        MergeError::unless_equal("number of rows", rows, &other.rows)?;
        MergeError::unless_equal("rule", rule, &other.rule)?;
        MergeError::unless_equal("table", table, &other.table)?;
        MergeError::unless_equal("verification", verification, &other.verification)?;
        MergeError::unless_equal("probing", probing, &other.probing)
    }

    /// The probability of acceptance for a query at `distance` from one stored item, when a key that is not stored hits a
    /// table with probability `chance`, and a tuple that is not stored passes verification with `false_verification`.
    ///
    /// Exact binomial tails, or the exact distribution where a family's bands are not independent.
    pub fn acceptance_probability(&self, distance: Distance, chance: f64, false_verification: f64) -> f64 {
        let agree = self.family.band_probability(distance, self.rows);
        let reach = self.probing.map_or(0, |probing| probing.reach);
        let beside = self.family.neighbour_probability(distance, self.rows, reach);
        let agreeing = || self.family.agreeing_bands(distance, self.layout());
        self.acceptance(agree, beside, agreeing, chance, false_verification)
    }

    /// The same for a query that has nothing in common with the stored item: no band agrees with it.
    pub(crate) fn unrelated_acceptance(&self, chance: f64, false_verification: f64) -> f64 {
        self.acceptance(0.0, 0.0, || None, chance, false_verification)
    }

    fn acceptance(
        &self,
        agree: f64,
        agree_beside: f64,
        agreeing: impl FnOnce() -> Option<Vec<f64>>,
        chance: f64,
        false_verification: f64,
    ) -> f64 {
        let bands = self.rule.bands();
        let hit = 1.0 - (1.0 - agree) * (1.0 - chance);
        let probing = self.probing.unwrap_or(Probing { bands: 0, reach: 0 });
        let buckets = self.family.neighbour_buckets(self.rows, probing.reach);
        let beside = Beside { agree: agree_beside, buckets, chance };
        if self.verification.is_some() {
            return verified(bands, agree, hit, false_verification, probing.bands.min(bands), &beside);
        }
        let Some(threshold) = self.rule.threshold_at(chance) else {
            return self.rule.probability(hit, chance);
        };
        if self.probing.is_some() {
            // Of the bands that miss, one is made good by the stored item's key in a bucket beside it, or by any key there.
            let made_good = 1.0 - (1.0 - (beside.agree / (1.0 - agree)).min(1.0)) * beside.none_by_chance();
            let least = threshold.saturating_sub(probing.bands);
            return (least..=bands)
                .map(|hits| {
                    let still = threshold.saturating_sub(hits);
                    binomial::pmf(bands, hit, hits) * binomial::at_least(bands - hits, made_good, still)
                })
                .sum();
        }
        match agreeing() {
            Some(agreeing) => (0..)
                .zip(agreeing)
                .map(|(agreeing, p)| {
                    p * binomial::at_least(bands - agreeing, chance, threshold.saturating_sub(agreeing))
                })
                .sum::<f64>()
                .min(1.0),
            None => self.rule.probability(hit, chance),
        }
    }
}

/// What probing can find beside a bucket.
struct Beside {
    /// The chance that the stored item's key lies there.
    agree: f64,
    /// Buckets that are tried.
    buckets: u32,
    /// The chance that a bucket is set by other keys.
    chance: f64,
}

impl Beside {
    fn none_by_chance(&self) -> f64 {
        libm::pow(1.0 - self.chance, f64::from(self.buckets))
    }

    /// The chance that verification lets any of the tuples pass that stand-ins for `missing` bands make with each of `tuples`
    /// others.
    fn passed_falsely(&self, missing: u32, tuples: f64, false_verification: f64) -> f64 {
        // Beyond this depth the sum over all numbers of stand-ins is replaced by their mean; where there are many, at once.
        const FEW: u32 = 256;
        let exact = if self.buckets <= FEW { 2 } else { 0 };
        match missing {
            0 => 1.0 - libm::pow(1.0 - false_verification, tuples),
            _ if missing <= exact => (1..=self.buckets)
                .map(|set| {
                    let p = binomial::pmf(self.buckets, self.chance, set);
                    p * self.passed_falsely(missing - 1, tuples * f64::from(set), false_verification)
                })
                .sum(),
            _ => {
                let mean = f64::from(self.buckets) * self.chance;
                self.passed_falsely(exact, tuples * libm::pow(mean, f64::from(missing - exact)), false_verification)
            }
        }
    }
}

/// Acceptance where all bands must hit, and hit together: either every key is the stored one, but for up to `probed` that
/// lie beside it, were not hit by chance and so were looked for; or the tables were hit by whatever means and verification let
/// a tuple pass that nobody stored.
fn verified(bands: u32, agree: f64, hit: f64, false_verification: f64, probed: u32, beside: &Beside) -> f64 {
    let all = f64::from(bands);
    (0..=probed)
        .map(|missing| {
            let (ways, missed) = (choose(all, f64::from(missing)), f64::from(missing));
            let chosen = |agree: f64, other: f64| ways * libm::pow(agree, all - missed) * libm::pow(other, missed);
            let found = chosen(agree, beside.agree * (1.0 - beside.chance));
            let other = (chosen(hit, 1.0 - hit) - found).max(0.0);
            found + other * beside.passed_falsely(missing, 1.0, false_verification)
        })
        .sum::<f64>()
        .min(1.0)
}

/// `C(n, k)`.
fn choose(n: f64, k: f64) -> f64 {
    libm::round(libm::exp(libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0)))
}

/// Operations of one look-up in a band's table.
pub(crate) const LOOK_UP_WORK: u64 = 2;

/// Operations of one look-up among all keys together, beside one for each key.
const VERIFICATION_WORK: u64 = 10;

//! Why no filter, index or join has a spec, and the limits that specs keep to.

/// The longest shingle.
pub(crate) const LONGEST_SHINGLE: u16 = 255;

/// Direct tables of more bits than this are refused: hash the keys instead.
pub(crate) const MOST_DIRECT_ROWS: u32 = 34;

/// 2^46 bits are 8 TiB: more than a machine has, less than overflows an address.
pub(crate) const MOST_BITS: u128 = 1 << 46;

/// The most lines of 64 bytes that a filter may have.
pub(crate) const MOST_LINES: u64 = 1 << 36;

/// The most bands that a filter may have.
pub(crate) const MOST_BANDS: u32 = 1 << 16;

/// The most steps of a cascade: as many as can each halve the number of bands. A file counts them in one byte.
pub(crate) const MOST_STEPS: usize = 16;

/// The longest bit string: 2 MiB.
pub(crate) const MOST_ITEM_BITS: u32 = 1 << 24;

/// The most keys that a query of an exact near filter may look up, whatever the limit on work.
pub(crate) const MOST_LOOK_UPS: f64 = (1u32 << 24) as f64;

/// The largest radius of covering masks.
pub(crate) const MOST_COVERED: u32 = 6;

/// The most generations that there may be: each is asked for every item.
pub(crate) const MOST_GENERATIONS: usize = 1024;

/// Why no filter, index or join has a spec, or memory for it can't be had.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A shingle is empty or too long.
    #[error("a shingle of {found}: its length must be from 1 to {LONGEST_SHINGLE}, such as words:5")]
    ShingleLength {
        /// The length that was given.
        found: u16,
    },
    /// A text names no shingling.
    #[error("{found:?} is no shingling: write words:N, chars:N, bytes:N, code:N or kmers:N, such as words:5")]
    UnknownShingling {
        /// The text.
        found: String,
    },
    /// A text that is no seed.
    #[error("{found:?} is not a seed: give a whole number below 2^64, or 32 hexadecimal digits")]
    UnknownSeed {
        /// The text.
        found: String,
    },
    /// A layout with no functions in it.
    #[error("{rows} rows in {bands} bands: both must be at least 1")]
    EmptyLayout {
        /// The number of rows requested.
        rows: u32,
        /// The number of bands requested.
        bands: u32,
    },
    /// More functions than a draw may have.
    #[error("{functions} functions were asked for; {limit} is the most")]
    TooManyFunctions {
        /// The number requested.
        functions: usize,
        /// The maximum.
        limit: usize,
    },
    /// A parameter of the hash family is out of range.
    #[error("{parameter} is {value}: it must be {need}")]
    BadParameter {
        /// Its name.
        parameter: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        need: &'static str,
    },
    /// Each item, or drawing the functions, would take too long.
    #[error(
        "{what} would take about {} ms, more than {} ms: use fewer {}, or lift the limit on work if whoever made this is trusted",
        found / 1_000_000, most / 1_000_000, if *what == EACH_ITEM { "rows, bands, probes or generations" } else { "rows or bands" }
    )]
    Work {
        /// What would.
        what: &'static str,
        /// Nominal operations, of about a nanosecond each.
        found: u64,
        /// The maximum.
        most: u64,
    },
    /// More buckets than can be tried.
    #[error("{probes} buckets per table were asked for: this family can look into 1 to {most}")]
    Probes {
        /// The number asked for.
        probes: u32,
        /// The most that this family can look into.
        most: u32,
    },
    /// A rule without levels.
    #[error("a rule needs at least one level")]
    EmptyRule,
    /// A threshold that is always or never reached.
    #[error("{need} of {of} can't be needed: a threshold lies between 1 and the number of bands")]
    Need {
        /// Members needed.
        need: u32,
        /// Members there are.
        of: u32,
    },
    /// Not a probability that a promise can be made of.
    #[error("{what} is {found}: it must lie between 0 and 1")]
    Probability {
        /// Which number.
        what: &'static str,
        /// Its value.
        found: f64,
    },
    /// More steps than a file can say.
    #[error("{found} steps: a cascade has at most {MOST_STEPS}; leave out those of one member")]
    TooManySteps {
        /// The steps asked for.
        found: usize,
    },
    /// More bands than a filter may have.
    #[error("more than {MOST_BANDS} bands: use fewer")]
    TooManyBands,
    /// A direct table of values that are not bits.
    #[error("only families whose functions are single bits can address a direct table: use hashed bits")]
    NotBits,
    /// A direct table that is too large.
    #[error("a direct table of {rows} rows has 2^{rows} bits: use at most {MOST_DIRECT_ROWS} rows, or hashed bits")]
    DirectRows {
        /// The rows.
        rows: u32,
    },
    /// A table without bits.
    #[error("a table needs at least one bit")]
    EmptyTable,
    /// Too many or too few bits per key.
    #[error("{hashes} bits per key: a cache line takes from 1 to 8")]
    Hashes {
        /// The bits.
        hashes: u32,
    },
    /// More bits than can be addressed.
    #[error("{bits} bits are more than the {MOST_BITS} that a filter may have: lower the capacity, or split the items")]
    TooLarge {
        /// The bits.
        bits: u128,
    },
    /// A filter without lines, or with absurdly many.
    #[error("a filter has 1 to {MOST_LINES} lines of 64 bytes, not {found}: ask for fewer items or a higher error")]
    Lines {
        /// The number asked for.
        found: u64,
    },
    /// The allocator refused.
    #[error("no memory for {lines} lines of 64 bytes ({} MiB): ask for fewer items or a higher error", lines >> 14)]
    Memory {
        /// The number asked for.
        lines: u64,
    },
    /// Bytes that do not end with a line.
    #[error("{found} bytes are not a whole number of 64-byte lines: the table was cut off or starts elsewhere")]
    Ragged {
        /// How many bytes were given.
        found: usize,
    },
    /// A filter for nothing.
    #[error("a filter is planned for at least 1 key: give the number of distinct keys that you expect")]
    NoKeys,
    /// A false-positive rate that no filter can keep to.
    #[error("the false-positive rate {found} is not between {lowest} and 1, exclusive: 0.01 suits most uses")]
    FalsePositive {
        /// The rate asked for.
        found: f64,
        /// The least that can be planned for.
        lowest: f64,
    },
    /// Zero false negatives can't be had by a threshold.
    #[error(
        "at distance {radius} up to {lost} bands can miss, which leaves no threshold: sample fewer rows, or use an exact near filter"
    )]
    NoThreshold {
        /// The distance that must not be missed.
        radius: u32,
        /// Bands that can miss.
        lost: u64,
    },
    /// Probing under a rule of several steps.
    #[error(
        "probing makes good a number of missing bands, so the rule must be one fixed threshold: leave one of them out"
    )]
    ProbedCascade,
    /// A promise over tables whose chance hits are not their fill.
    #[error("a rule that follows the fill needs tables of one bit per key: use hashed bits rather than lines")]
    PromiseOverLines,
    /// Verification under a rule that accepts fewer than all bands.
    #[error("verification looks up all keys together, so every band must hit: use the threshold that equals the bands")]
    VerifiedThreshold,
    /// A slice of bands that are not there.
    #[error("bands {start} to {end} of a filter of {bands}: a slice has at least one of them, and none beyond")]
    Slice {
        /// The first band asked for.
        start: u32,
        /// The band after the last.
        end: u32,
        /// The bands there are.
        bands: u32,
    },
    /// A slice of a filter that needs all bands of an item together.
    #[error(
        "verification, probing and rules of several steps look at all bands of an item together: such a filter is not cut into slices"
    )]
    Undivided,
    /// Bit strings without bits, or with absurdly many.
    #[error("an item has from 1 to {MOST_ITEM_BITS} bits, not {found}")]
    ItemBits {
        /// The bits asked for.
        found: u32,
    },
    /// A radius within which everything lies.
    #[error("all of {bits} bits may differ within a radius of {radius}: take a smaller radius, or wider folds")]
    Radius {
        /// The radius asked for.
        radius: u32,
        /// The bits that are compared.
        bits: u32,
    },
    /// No blocks, or more than can be searched.
    #[error("{blocks} blocks: there are from 1 to {most}, one more than the radius at the most")]
    Blocks {
        /// The blocks asked for.
        blocks: u32,
        /// The most that there can be.
        most: u32,
    },
    /// A block that matches whatever it holds.
    #[error("a block of {length} bits searched within {radius} of them accepts everything: take more blocks")]
    WholeBlock {
        /// Bits of the block.
        length: u32,
        /// Its radius.
        radius: u32,
    },
    /// A query that would take seconds.
    #[error("a query would look up {keys:.0} keys, more than {MOST_LOOK_UPS}: take more blocks, or a folded scan")]
    LookUps {
        /// Keys that a query would look up.
        keys: f64,
    },
    /// Too many masks.
    #[error(
        "{radius} is too far for covering masks, whose number doubles with each step: at most {MOST_COVERED}; take pigeonhole blocks"
    )]
    Covering {
        /// The radius asked for.
        radius: u32,
    },
    /// Masks that choose too many bits.
    #[error("a mask chooses about half of all bits, too many to address a table: use hashed bits or lines")]
    DirectMasks,
    /// Folds that can't be.
    #[error("a fold of {width} bits: it has a multiple of 64 bits, and at most {whole}, which hold an item whole")]
    Width {
        /// The width asked for.
        width: u32,
        /// The largest useful width.
        whole: u32,
    },
    /// Terms without room for anything.
    #[error("a capacity of 0: a generation has room for at least 1 item")]
    NoCapacity,
    /// Near is not below far.
    #[error("near is at a distance of {near} and far at {far}: near must be below far")]
    NearNotBelowFar {
        /// Near.
        near: f64,
        /// Far.
        far: f64,
    },
    /// Not a rate.
    #[error("a false-{what} rate of {found} cannot be promised: it must be at least 0 and below 1")]
    NotARate {
        /// Which.
        what: &'static str,
        /// What was asked for.
        found: f64,
    },
    /// No generation, or more than can be asked one after the other.
    #[error("{found} generations: there are from 1 to {MOST_GENERATIONS}; take a larger capacity for fewer of them")]
    Generations {
        /// How many were asked for.
        found: u32,
    },
}

/// What [`SpecError::Work`] is about.
pub(crate) const EACH_ITEM: &str = "each item";
pub(crate) const DRAWING: &str = "drawing the hash functions";

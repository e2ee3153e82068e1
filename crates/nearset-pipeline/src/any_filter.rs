//! A filter of whatever kind a file holds or a plan asks for.

use std::io;

use nearset::codec::Kind;
use nearset::family::{Hashed, LshFamily, Stable};
use nearset::filter::{MergeError, SpecError};
use nearset::plan::{Metric, PlannedSpec};
use nearset::{Check, DecodeError, Distance, ExactNearFilter, Family, Item, ItemError, NearFilter};

use crate::extract::ItemField;

/// A filter of any kind.
#[non_exhaustive]
pub enum AnyFilter<'a> {
    /// Bands and a rule.
    Near(NearFilter<'a>),
    /// Bit strings, of which none within a radius is missed.
    Exact(ExactNearFilter<'a>),
}

/// What a filter says of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// Whether something near was inserted.
    pub near: bool,
    /// Bands that hit, where there are bands.
    pub hits: Option<u32>,
}

impl AnyFilter<'static> {
    /// An empty filter.
    ///
    /// # Errors
    /// If no filter has this spec, or memory for it can't be had.
    pub fn from_planned(planned: &PlannedSpec) -> Result<Self, SpecError> {
        Ok(match planned {
            PlannedSpec::Near(spec) => AnyFilter::Near(NearFilter::from_spec(spec.clone())?),
            PlannedSpec::Exact(spec) => AnyFilter::Exact(ExactNearFilter::from_spec(*spec)?),
            other => unreachable!("a plan of a kind that this build does not make: {other:?}"),
        })
    }
}

impl<'a> AnyFilter<'a> {
    /// Opens a file's bytes.
    ///
    /// # Errors
    /// If they are damaged, newer than this build, or another structure.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        match Kind::of(bytes)? {
            Kind::ExactNear => Ok(AnyFilter::Exact(ExactNearFilter::decode(bytes, Check::Everything)?)),
            _ => Ok(AnyFilter::Near(NearFilter::decode(bytes, Check::Everything)?)),
        }
    }

    /// Writes the filter as a file.
    ///
    /// # Errors
    /// What the writer reports.
    pub fn encode(&self, out: &mut dyn io::Write) -> io::Result<()> {
        match self {
            AnyFilter::Near(filter) => filter.encode(out),
            AnyFilter::Exact(filter) => filter.encode(out),
        }
    }

    /// What near means to it; `None` for families that only programs use.
    pub fn metric(&self) -> Option<Metric> {
        match self {
            AnyFilter::Exact(filter) => Some(Metric::Hamming { bits: filter.spec().bits }),
            AnyFilter::Near(filter) => metric_of(filter.spec().family),
        }
    }

    /// Items inserted, repeats included.
    pub fn len(&self) -> u64 {
        match self {
            AnyFilter::Near(filter) => filter.len(),
            AnyFilter::Exact(filter) => filter.len(),
        }
    }

    /// Whether nothing was inserted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory.
    pub fn bytes(&self) -> u64 {
        match self {
            AnyFilter::Near(filter) => filter.spec().bytes(),
            AnyFilter::Exact(filter) => filter.bytes(),
        }
    }

    /// Inserts an item. True when nothing near was there before.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length.
    pub fn insert(&mut self, item: Item<'_>) -> Result<bool, ItemError> {
        match self {
            AnyFilter::Near(filter) => filter.insert(item),
            AnyFilter::Exact(filter) => filter.insert(item),
        }
    }

    /// Looks an item up; `room` is kept from item to item.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length.
    pub fn find(&self, item: Item<'_>, room: &mut Hashed) -> Result<Found, ItemError> {
        match self {
            AnyFilter::Near(filter) => {
                filter.hash(item, room)?;
                Ok(Found { near: filter.contains_hashed(room), hits: Some(filter.hits_hashed(room).hit) })
            }
            AnyFilter::Exact(filter) => Ok(Found { near: filter.contains_near(item)?, hits: None }),
        }
    }

    /// Takes in all items of another filter.
    ///
    /// # Errors
    /// If the specs differ, naming the first difference; the filter is then unchanged.
    pub fn merge(&mut self, other: &AnyFilter<'_>) -> Result<(), MergeError> {
        match (self, other) {
            (AnyFilter::Near(ours), AnyFilter::Near(theirs)) => ours.merge(theirs),
            (AnyFilter::Exact(ours), AnyFilter::Exact(theirs)) => ours.merge(theirs),
            (ours, theirs) => {
                let (ours, theirs) = (ours.kind().to_owned(), theirs.kind().to_owned());
                Err(MergeError { what: "kind", ours, theirs })
            }
        }
    }

    /// What kind of filter it is.
    pub fn kind(&self) -> &'static str {
        match self {
            AnyFilter::Near(_) => "near filter",
            AnyFilter::Exact(_) => "exact near filter",
        }
    }

    /// The probability, as the filter is now, that a query at `distance` from one stored item is accepted.
    pub fn acceptance_probability(&self, distance: Distance) -> f64 {
        match self {
            AnyFilter::Near(filter) => filter.acceptance_probability(distance),
            AnyFilter::Exact(filter) => filter.acceptance_probability(distance),
        }
    }

    /// The exact distance of two items.
    ///
    /// # Errors
    /// If they are of a wrong kind or length.
    pub fn distance(&self, a: Item<'_>, b: Item<'_>) -> Result<Distance, ItemError> {
        match (self, self.metric()) {
            (AnyFilter::Near(filter), _) => filter.spec().family.distance(a, b),
            (_, Some(metric)) => metric.between(a, b),
            (_, None) => unreachable!("exact filters are of bit strings"),
        }
    }

    /// A copy that owns its tables.
    pub fn into_owned(self) -> AnyFilter<'static> {
        match self {
            AnyFilter::Near(filter) => AnyFilter::Near(filter.into_owned()),
            AnyFilter::Exact(filter) => AnyFilter::Exact(filter.into_owned()),
        }
    }
}

/// What near means to a family; `None` for those that only programs use.
pub fn metric_of(family: Family) -> Option<Metric> {
    Some(match family {
        Family::BitSampling(family) => Metric::Hamming { bits: family.bits },
        Family::SymbolSampling(family) => Metric::Symbols { length: family.length },
        Family::MinHash(family) => Metric::Jaccard { shingling: family.shingling },
        Family::WeightedMinHash(family) => Metric::WeightedJaccard { shingling: family.shingling },
        Family::Hyperplane(family) => Metric::Angle { dimension: family.dimension },
        Family::CrossPolytope(family) => Metric::Angle { dimension: family.dimension },
        Family::PStable(family) if family.stable == Stable::Cauchy => Metric::L1 { dimension: family.dimension },
        Family::PStable(family) => Metric::L2 { dimension: family.dimension },
        _ => return None,
    })
}

/// What a record's field must hold for a metric; `None` where files have no form for it.
pub fn item_field(metric: Metric) -> Option<ItemField> {
    match metric {
        Metric::Hamming { .. } => Some(ItemField::Hex),
        Metric::Jaccard { .. } | Metric::WeightedJaccard { .. } => Some(ItemField::Text),
        Metric::Angle { .. } | Metric::L1 { .. } | Metric::L2 { .. } => Some(ItemField::Vector),
        _ => None,
    }
}

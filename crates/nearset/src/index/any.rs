//! The index, of whichever structure suits its metric.

use super::{HammingIndex, IndexError, Labels, LshIndex, Neighbour};
use crate::{Distance, Item, MergeError, Metric, error::SpecError, spec::IndexSpec};

/// A set of items that are kept, and found again by what is near them.
///
/// ```
/// use nearset::{Index, Metric, plan::Request};
///
/// // Texts that are 70 % alike or more, for up to a thousand of them.
/// let metric = Metric::Jaccard { shingling: "words:2".parse()? };
/// let plan = Request::new(metric, 0.7).far(0.3).capacity(1_000).plan_index()?;
/// let mut index = Index::new(plan.spec)?;
/// let id = index.insert("the boats lay at their ropes until the wind turned at noon")?;
/// index.insert("gulls came back to the quiet water beside the old walls")?;
///
/// let found = index.search("The boats lay at their ropes, until the wind turned!", Some(1), None)?;
/// assert_eq!(found[0].id, id);
/// assert_eq!(found[0].distance.value(), 1.0 - 9.0 / 11.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Bit strings have an index that misses nothing, whatever the distance:
///
/// ```
/// use nearset::{BitString, Distance, Index, Seed, spec::HammingSpec};
///
/// let mut index = Index::new(HammingSpec::new(64, 8, Seed::default()))?;
/// for hash in ["d1c4b1a3f0e8877e", "2e3b4e5c0f177881"] {
///     index.push(&BitString::from_hex(hash)?, Some(hash))?;
/// }
/// index.compact();
/// let found = index.search(&BitString::from_hex("d1c4b1a3f0e88779")?, None, Some(Distance::from_count(8)))?;
/// assert_eq!((found.len(), found[0].id, found[0].distance.value()), (1, 0, 3.0));
/// assert_eq!(index.name(0), "d1c4b1a3f0e8877e");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Index<'a>(pub(crate) Structure<'a>);

/// How items are found.
#[derive(Clone)]
pub(crate) enum Structure<'a> {
    Hamming(HammingIndex<'a>),
    Lsh(LshIndex<'a>),
}

impl Index<'static> {
    /// Creates an empty index.
    ///
    /// # Errors
    /// If no index has this spec.
    pub fn new(spec: impl Into<IndexSpec>) -> Result<Self, SpecError> {
        let spec = spec.into();
        spec.check()?;
        Ok(Self(match spec {
            IndexSpec::Hamming(spec) => Structure::Hamming(HammingIndex::of_checked(spec)),
            IndexSpec::Lsh(spec) => Structure::Lsh(LshIndex::of_checked(spec)),
        }))
    }
}

impl<'a> Index<'a> {
    /// Returns what the index is, without its items.
    pub fn spec(&self) -> IndexSpec {
        match &self.0 {
            Structure::Hamming(index) => IndexSpec::Hamming(*index.spec()),
            Structure::Lsh(index) => IndexSpec::Lsh(index.spec().clone()),
        }
    }

    /// Returns what kind of index it is.
    pub fn kind(&self) -> &'static str {
        match &self.0 {
            Structure::Hamming(_) => "Hamming index",
            Structure::Lsh(_) => "near-neighbour index",
        }
    }

    /// Returns what near means to it; `None` for families that only programs use.
    pub fn metric(&self) -> Option<Metric> {
        match &self.0 {
            Structure::Hamming(index) => Some(Metric::Hamming { bits: index.spec().bits }),
            Structure::Lsh(index) => index.spec().family.metric(),
        }
    }

    /// Returns how many items are in it, repeats included, removed ones not.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Structure::Hamming(index) => u64::from(index.len()),
            Structure::Lsh(index) => u64::from(index.len()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes that items, tables and names take.
    pub fn bytes(&self) -> u64 {
        match &self.0 {
            Structure::Hamming(index) => index.bytes(),
            Structure::Lsh(index) => index.bytes(),
        }
    }

    /// Returns the bits and the radius of each block that a Hamming index searches; none where it compares with every item.
    pub fn blocks(&self) -> Vec<(u32, u32)> {
        match &self.0 {
            Structure::Hamming(index) => index.block_radii().collect(),
            Structure::Lsh(_) => Vec::new(),
        }
    }

    /// Returns whether the item of this id is in it.
    pub fn contains(&self, id: u32) -> bool {
        match &self.0 {
            Structure::Hamming(index) => index.contains(id),
            Structure::Lsh(index) => index.contains(id),
        }
    }

    /// Inserts an item, and returns its id: its place in the order of insertion, which never changes.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or there are too many; the index is then unchanged.
    pub fn insert<'i>(&mut self, item: impl Into<Item<'i>>) -> Result<u32, IndexError> {
        match &mut self.0 {
            Structure::Hamming(index) => index.insert(item),
            Structure::Lsh(index) => index.insert(item),
        }
    }

    /// Inserts one of many items, under a name if it has one, and returns its id. [`Self::compact`] belongs after the last one.
    ///
    /// # Errors
    /// As [`Self::insert`].
    pub fn push<'i>(&mut self, item: impl Into<Item<'i>>, name: Option<&str>) -> Result<u32, IndexError> {
        let id = match &mut self.0 {
            Structure::Hamming(index) => index.push(item)?,
            Structure::Lsh(index) => index.insert(item)?,
        };
        if let Some(name) = name {
            self.labels_mut().insert(id, name);
        }
        Ok(id)
    }

    /// Removes the item of this id, and returns whether it was in. Its id is not given again.
    pub fn remove(&mut self, id: u32) -> bool {
        match &mut self.0 {
            Structure::Hamming(index) => index.remove(id),
            Structure::Lsh(index) => index.remove(id),
        }
    }

    /// Makes searches fast after many insertions or removals.
    pub fn compact(&mut self) {
        match &mut self.0 {
            Structure::Hamming(index) => index.compact(),
            Structure::Lsh(index) => index.compact(),
        }
    }

    pub(super) fn labels(&self) -> &Labels<'a> {
        match &self.0 {
            Structure::Hamming(index) => index.labels(),
            Structure::Lsh(index) => index.labels(),
        }
    }

    pub(super) fn labels_mut(&mut self) -> &mut Labels<'a> {
        match &mut self.0 {
            Structure::Hamming(index) => index.labels_mut(),
            Structure::Lsh(index) => index.labels_mut(),
        }
    }

    /// Returns what an item is called; its number where it has no name.
    pub fn name(&self, id: u32) -> String {
        self.labels().get(id).map_or_else(|| id.to_string(), str::to_owned)
    }

    /// Returns one more than the id of the last item that has a name; 0 where none has one.
    pub fn named(&self) -> usize {
        self.labels().len()
    }

    /// Finds the nearest items, at most `top` of them and none beyond `within`, the nearest first; of equally near ones those
    /// inserted first.
    ///
    /// A Hamming index misses nothing; other ones find near items as often as was planned. All distances are exact.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or the index keeps no items.
    pub fn search<'i>(
        &self,
        item: impl Into<Item<'i>>,
        top: Option<usize>,
        within: Option<Distance>,
    ) -> Result<Vec<Neighbour>, IndexError> {
        match &self.0 {
            Structure::Hamming(index) => index.search(item, top, within),
            Structure::Lsh(index) => index.search(item, top, within),
        }
    }

    /// Returns the ids of what a search would compare an item with, ascending: items that share a bucket with it, near or not. Those
    /// of a Hamming index are all within its radius.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length.
    pub fn candidates<'i>(&self, item: impl Into<Item<'i>>) -> Result<Vec<u32>, IndexError> {
        match &self.0 {
            Structure::Hamming(index) => {
                let found = index.search(item, None, Some(Distance::from_count(index.spec().radius)))?;
                let mut ids: Vec<u32> = found.into_iter().map(|neighbour| neighbour.id).collect();
                ids.sort_unstable();
                Ok(ids)
            }
            Structure::Lsh(index) => index.candidates(item),
        }
    }

    /// Takes in all items of another index, after its own; each gets its old id plus the number that is returned.
    ///
    /// # Errors
    /// If they can't be in one index, saying why; it is then unchanged.
    pub fn merge(&mut self, other: &Index<'_>) -> Result<u32, IndexError> {
        match (&mut self.0, &other.0) {
            (Structure::Hamming(ours), Structure::Hamming(theirs)) => ours.merge(theirs),
            (Structure::Lsh(ours), Structure::Lsh(theirs)) => ours.merge(theirs),
            _ => {
                let (ours, theirs) = (self.kind().to_owned(), other.kind().to_owned());
                Err(MergeError { what: "kind", ours, theirs }.into())
            }
        }
    }

    /// Returns a copy that owns its memory, such as one of a memory-mapped index that is to grow.
    pub fn into_owned(self) -> Index<'static> {
        Index(match self.0 {
            Structure::Hamming(index) => Structure::Hamming(index.into_owned()),
            Structure::Lsh(index) => Structure::Lsh(index.into_owned()),
        })
    }
}

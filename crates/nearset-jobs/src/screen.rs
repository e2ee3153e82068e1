//! Filters built before, by which texts are screened.
//!
//! Not here: comparing. A filter holds no texts, so what it calls near was not compared with anything, and every job says so.

use std::path::PathBuf;

use nearset::family::{Hashed, WorkLimit};
use nearset::spec::Hasher;
use nearset::{Filter, Item, ItemError, Spec};

use crate::filter_file::FilterFile;
use crate::run::{Fingerprint, RunError, of_file};

/// Which filters to screen by, and which of them to believe.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Screen {
    /// Filters built before: what is near anything in them is left out too.
    pub filters: Vec<PathBuf>,
    /// Whether they may hold more than they are made for.
    pub allow_overfull: bool,
    /// How much work they may ask for.
    pub work: WorkLimit,
}

impl Screen {
    /// What people call the filters.
    pub(crate) fn names(&self) -> Vec<String> {
        self.filters.iter().map(|path| path.display().to_string()).collect()
    }

    /// Notes what decides the output's bytes.
    pub(crate) fn note(&self, all: &mut Fingerprint) {
        // Taken apart, so that a new option can't be forgotten here.
        let Self { filters, allow_overfull: _, work: _ } = self;
        all.insert("the number of filters to compare with".to_owned(), filters.len().to_string());
        for path in filters {
            all.insert(format!("the filter {}", path.display()), of_file(path));
        }
    }

    /// Opens the filters for as long as `body` takes. `own` is the filter of the run itself, if it has one.
    pub(crate) fn opened<T>(
        &self,
        own: Option<&Spec>,
        body: impl FnOnce(&[Against<'_>]) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let open = |path: &PathBuf| FilterFile::open(path).map(|file| file.within(self.work));
        let files = self.filters.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let open = if self.allow_overfull { FilterFile::filter } else { FilterFile::filter_to_trust };
        let filters = files.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let screen = |(filter, path): (_, &PathBuf)| {
            Against::new(filter, own).map_err(|cause| RunError::AgainstKind { path: path.clone(), cause })
        };
        let against = filters.iter().zip(&self.filters).map(screen).collect::<Result<Vec<_>, RunError>>()?;
        body(&against)
    }
}

/// A filter built before, and how to hash for it.
pub struct Against<'a> {
    filter: &'a Filter<'a>,
    hasher: Hasher,
    /// Whether the run's own keys are also this filter's.
    same_keys: bool,
}

impl<'a> Against<'a> {
    /// A filter to screen by, beside the run's own of the spec `own`.
    ///
    /// # Errors
    /// If it is a filter of other items than texts.
    pub fn new(filter: &'a Filter<'a>, own: Option<&Spec>) -> Result<Self, ItemError> {
        filter.contains_near("any text", &mut Hashed::default())?;
        let hasher = filter.hasher().expect("a filter that takes texts has bands");
        let spec = filter.spec();
        let same_keys = spec.near().zip(own).is_some_and(|(theirs, own)| {
            theirs.probing.is_none()
                && theirs.family == own.family
                && theirs.seed == own.seed
                && theirs.layout() == own.layout()
        });
        Ok(Self { filter, hasher, same_keys })
    }

    /// Whether a text is near something in the filter.
    pub fn has_seen(&self, text: &str, room: &mut Hashed) -> bool {
        self.hits(text.into(), None, room).is_some()
    }

    /// The bands of an item that hit, if it is near something in the filter. `own` are the run's own keys of it, if it has any.
    pub(crate) fn hits(&self, item: Item<'_>, own: Option<&Hashed>, room: &mut Hashed) -> Option<u32> {
        let hashed = match own {
            Some(own) if self.same_keys => own,
            _ => {
                // That the filter hashes texts was checked when it was opened.
                self.hasher.hash(item, room).ok()?;
                room
            }
        };
        let found = self.filter.find_hashed(hashed);
        found.near.then_some(found.hits)
    }
}

/// The first of the filters that an item is near something in, and how many bands hit there.
pub(crate) fn first_hit(
    against: &[Against<'_>],
    item: Item<'_>,
    own: Option<&Hashed>,
    room: &mut Hashed,
) -> Option<(usize, u32)> {
    against.iter().enumerate().find_map(|(filter, other)| other.hits(item, own, room).map(|hits| (filter, hits)))
}

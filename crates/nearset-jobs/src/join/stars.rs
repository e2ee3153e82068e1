//! Records kept so far, and those that are near one of them.

use std::path::PathBuf;
use std::sync::Arc;

use nearset::index::{Placed, ShingleKeys, StarClusters};
use nearset_records::{Fields, Source, StateFolder};

use super::alarm::{self, Alarm, Cause};
use super::stream::Cutter;
use super::texts::{Place, Texts};
use crate::library::{Library, StoredEntry};
use crate::run::RunError;

/// Where a record belongs.
pub(super) struct Placement {
    /// The entry it is near, and how near.
    pub near: Option<(u32, f64)>,
    /// Its own entry, if others are to be compared with it.
    pub entry: Option<u32>,
}

/// The records kept so far, and how many are near each.
pub(super) struct Stars {
    pub clusters: StarClusters,
    pub texts: Texts,
    /// How many are near each entry.
    pub members: Vec<u32>,
    /// Where the entries of each library end; those of the run itself come behind.
    libraries: Vec<u32>,
    /// Memory that may be taken, cached sets included.
    pub most_bytes: u64,
}

impl Stars {
    pub fn new(
        sources: &Arc<[Source]>,
        fields: &Fields,
        follow_chains: bool,
        cutter: &Cutter<'_>,
        folder: Option<&StateFolder>,
        scratch: PathBuf,
    ) -> Self {
        let clusters = StarClusters::new(&cutter.spec).following_chains(follow_chains);
        let texts = Texts::new(sources, fields, cutter, folder, scratch);
        Self { clusters, texts, members: Vec::new(), libraries: Vec::new(), most_bytes: u64::MAX }
    }

    /// The same, with everything compared that shares a key.
    pub fn exhaustive(mut self, exhaustive: bool) -> Self {
        if exhaustive {
            self.clusters = self.clusters.without_limits();
        }
        self
    }

    /// Makes the records of a library entries, before those of the run itself.
    pub fn add_library(&mut self, library: &Library, cutter: &Cutter<'_>) -> Result<(), RunError> {
        library.expect_same_shingles(cutter.spec.shingling, cutter.spec.seed)?;
        let is_same = library.has_keys_of(&cutter.spec, &cutter.model);
        let first = self.texts.segments.add(library)?;
        // There are fewer than 2^32, or they can't be numbered.
        let records = u32::try_from(library.records()).map_err(|_| RunError::TooMany)? as usize;
        self.clusters.reserve(records);
        self.texts.reserve(records);
        self.members.reserve(records);
        let mut keys = ShingleKeys::default();
        library.each_entry(first, |StoredEntry { keys: stored, set }| {
            let place = Place::from(set);
            if !is_same {
                keys.choose(&self.texts.set(place)?, &cutter.model, &cutter.spec);
            } else if !keys.read(stored) || keys.size() != set.size as usize {
                return Err(library.damaged("the keys of a record make no sense").into());
            }
            self.insert(&keys, place);
            Ok::<_, RunError>(())
        })?;
        self.texts.read_again = 0;
        self.libraries.push(self.members.len() as u32);
        Ok(())
    }

    /// The library that an entry is in, if it is in one.
    pub fn library_of(&self, entry: u32) -> Option<usize> {
        let library = self.libraries.partition_point(|&end| end <= entry);
        (library < self.libraries.len()).then_some(library)
    }

    /// How many entries are in libraries.
    pub fn stored(&self) -> u32 {
        self.libraries.last().copied().unwrap_or(0)
    }

    /// Takes the next record. `place` is asked for if others are to be compared with it.
    pub fn add(
        &mut self,
        keys: &ShingleKeys,
        set: &[u64],
        place: impl FnOnce(&mut Texts) -> Result<Place, RunError>,
    ) -> Result<Placement, RunError> {
        let texts = &mut self.texts;
        let placed = self.clusters.add(keys, |entry, least| texts.compare(entry, set, least))?;
        let (near, entry) = match placed {
            Placed::Member { of, similarity, entry } => {
                self.members[of as usize] += 1;
                (Some((of, similarity.value())), entry)
            }
            Placed::Centre { entry } => (None, entry),
            _ => (None, None),
        };
        if entry.is_some() {
            let place = place(texts)?;
            texts.push(place, set);
            self.members.push(0);
        }
        Ok(Placement { near, entry })
    }

    /// Whether nothing shares a key with a record; it is then kept, without being read.
    pub fn is_alone(&mut self, keys: &ShingleKeys, place: Place) -> bool {
        if keys.size() == 0 {
            return true;
        }
        if self.clusters.has_candidates(keys) {
            return false;
        }
        self.insert(keys, place);
        true
    }

    /// Makes a record an entry that is not compared.
    pub fn insert(&mut self, keys: &ShingleKeys, place: Place) {
        self.clusters.insert(keys);
        self.texts.push_unread(place);
        self.members.push(0);
    }

    /// Entries that records are near, and how many.
    pub fn copied(&self) -> Vec<(u32, u64)> {
        let counted = (0..).zip(&self.members).filter(|(_, members)| **members > 0);
        counted.map(|(entry, &members)| (entry, u64::from(members))).collect()
    }

    /// That there is memory left, behind so many records.
    pub fn expect_memory(&self, other_bytes: u64, records: u64) -> Result<(), RunError> {
        let taken = self.bytes() + other_bytes + self.texts.cached_bytes();
        if taken <= self.most_bytes {
            return Ok(());
        }
        Err(RunError::MemoryTaken { taken, records, resumable: false })
    }

    pub fn bytes(&self) -> u64 {
        self.clusters.index().bytes() + 4 * self.members.len() as u64 + self.texts.bytes()
    }

    pub fn alarms(&mut self, records: u64) -> Result<Vec<Alarm>, RunError> {
        let sizes = (0..).zip(&self.members).map(|(entry, &members)| (entry, u64::from(members) + 1));
        let large = alarm::worth_an_alarm(sizes, records);
        let mut alarms = alarm::lists(&mut self.texts, self.clusters.index())?;
        for (entry, size) in large {
            alarms.push(alarm::around(&mut self.texts, Cause::Cluster, entry, size)?);
        }
        Ok(alarms)
    }
}

//! Near-duplicates among texts that are in memory, compared as a run over files compares them.
//!
//! Claim: the texts kept here are those that [`VerifiedDedup`](super::VerifiedDedup) keeps, but for what its model of common shingles, learnt
//! from several places of a file and here from the first texts, finds otherwise.
//! Limit: the shingle sets of kept texts are held, 8 bytes per shingle.
//!
//! ```
//! use nearset::plan::Request;
//! use nearset_jobs::join::TextComparison;
//!
//! let mut run = TextComparison::new(&Request::default())?;
//! let cutter = run.cutter();
//! let texts = ["to be or not to be", "that is the question", "To be, or not to be!"];
//! run.push(texts.map(|text| cutter.cut(text)));
//! let of: Vec<_> = run.finish().iter().map(|verdict| verdict.map(|near| near.of)).collect();
//! assert_eq!(of, [None, None, Some(0)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use nearset::index::{CommonShingles, Placed, Proposal, ShingleKeys, StarClusters};
use nearset::item::SortedSet;
use nearset::plan::{PlanError, Request};
use nearset::{JoinSpec, Shingler};

use super::stars::MOST_LISTED;
use super::stream::shingle;

/// Texts from which common shingles are learnt.
const LEARNT_FROM: usize = 4000;

/// The text that another is near.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Near {
    /// Its place among all texts, counted from 0.
    pub of: u64,
    /// How similar they are.
    pub similarity: f64,
}

/// Cuts texts, on any thread.
#[derive(Debug, Clone, Copy)]
pub struct TextCutter {
    shingler: Shingler,
}

impl TextCutter {
    /// The shingle set of a text.
    pub fn cut(&self, text: &str) -> SortedSet {
        let mut shingles = Vec::new();
        shingle(&self.shingler, text, &mut shingles);
        shingles.into()
    }
}

/// A run over texts.
pub struct TextComparison {
    spec: JoinSpec,
    shingler: Shingler,
    /// `None` until enough texts have come to learn it from.
    model: Option<CommonShingles>,
    /// Texts that wait for the model.
    waiting: Vec<SortedSet>,
    clusters: StarClusters,
    /// The sets of entries, and which texts they are.
    entries: Vec<(SortedSet, u64)>,
    keys: ShingleKeys,
    verdicts: Vec<Option<Near>>,
}

impl TextComparison {
    /// For texts that are near as `wanted` says.
    ///
    /// # Errors
    /// If the promise can't be made.
    pub fn new(wanted: &Request) -> Result<Self, PlanError> {
        let spec = wanted.plan_join()?;
        Ok(Self {
            shingler: super::stream::shingler(&spec)?,
            model: None,
            waiting: Vec::new(),
            clusters: StarClusters::new(&spec, MOST_LISTED),
            entries: Vec::new(),
            keys: ShingleKeys::default(),
            verdicts: Vec::new(),
            spec,
        })
    }

    /// The same, where what is near only a dropped text goes too.
    pub fn following_chains(mut self, follow: bool) -> Self {
        self.clusters = self.clusters.following_chains(follow);
        self
    }

    /// What cuts texts for this run.
    pub fn cutter(&self) -> TextCutter {
        TextCutter { shingler: self.shingler }
    }

    /// Takes the next texts, in order.
    pub fn push(&mut self, texts: impl IntoIterator<Item = SortedSet>) {
        for set in texts {
            if self.model.is_some() {
                self.decide(set);
                continue;
            }
            self.waiting.push(set);
            if self.waiting.len() == LEARNT_FROM {
                self.learn();
            }
        }
    }

    /// What became of all texts, in their order: the kept one that each is near, or nothing if it stays.
    pub fn finish(mut self) -> Vec<Option<Near>> {
        self.learn();
        self.verdicts
    }

    fn learn(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let model = CommonShingles::of_sample(waiting.iter().map(SortedSet::as_slice), waiting.len());
        self.model.get_or_insert(model);
        waiting.into_iter().for_each(|set| self.decide(set));
    }

    fn decide(&mut self, set: SortedSet) {
        let spec = &self.spec;
        let model = self.model.as_ref().expect("texts wait for the model");
        self.keys.choose(set.as_slice(), model, &self.spec);
        let compare = |entry: u32, least| {
            Ok(spec.similarity_at_least(set.as_slice(), self.entries[entry as usize].0.as_slice(), least))
        };
        let placed: Result<Placed, std::convert::Infallible> =
            self.clusters.add(&self.keys, &Proposal::default(), compare);
        let (near, entry) = match placed {
            Ok(Placed::Member { of, similarity, entry, .. }) => (Some((of, similarity.value())), entry),
            Ok(Placed::Centre { entry, .. }) => (None, entry),
            _ => (None, None),
        };
        let near = near.map(|(of, similarity)| Near { of: self.entries[of as usize].1, similarity });
        if entry.is_some() {
            self.entries.push((set, self.verdicts.len() as u64));
        }
        self.verdicts.push(near);
    }
}

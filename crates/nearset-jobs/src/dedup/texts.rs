//! Near-duplicates among texts that are in memory: the decisions of a run over files, without the files.
//!
//! Claim: at one capacity, the texts kept here are those of the records that [`Dedup`](super::Dedup) keeps.
//!
//! ```
//! use nearset::plan::Request;
//! use nearset_jobs::dedup::{Sketched, TextRun, TextSketcher};
//!
//! let mut run = TextRun::new(Request::default(), Some(3))?;
//! let (mut sketcher, mut sketched) = (TextSketcher::new(run.hasher(), &[]), Sketched::default());
//! for text in ["to be or not to be", "that is the question", "To be, or not to be!"] {
//!     sketched.push(&mut sketcher, text)?;
//! }
//! let mut kept = Vec::new();
//! run.decide(&sketched, |new| kept.push(new))?;
//! assert_eq!(kept, [true, true, false]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use nearset::InsertError;
use nearset::family::Key;
use nearset::plan::{PlanError, Request};
use nearset::spec::Hasher;
use nearset::{Filter, ItemError};

use super::by_filter::TextSketcher;
use crate::capacity::PIPE;

/// What many threads may find out about a piece of the texts before its turn comes.
#[derive(Debug, Default)]
pub struct Sketched {
    keys: Vec<Option<Key>>,
    /// Texts near something in a filter built before, ascending.
    screened: Vec<usize>,
    texts: usize,
}

impl Sketched {
    /// Adds a text.
    ///
    /// # Errors
    /// If the sketcher's filter is of other items than texts.
    pub fn push(&mut self, sketcher: &mut TextSketcher<'_>, text: &str) -> Result<(), ItemError> {
        if sketcher.sketch(text.into(), &mut self.keys)?.is_some() {
            self.screened.push(self.texts);
        }
        self.texts += 1;
        Ok(())
    }
}

/// A run over texts.
pub struct TextRun {
    filter: Filter<'static>,
    hasher: Hasher,
}

impl TextRun {
    /// For so many texts; `None` where their number is not known, and the filter grows as for a pipe.
    ///
    /// # Errors
    /// If the promise can't be made.
    pub fn new(wanted: Request, capacity: Option<u64>) -> Result<Self, PlanError> {
        let plan = wanted.capacity(capacity.map_or(PIPE, |texts| texts.max(1))).plan_dedup()?;
        let filter = Filter::new(&plan.spec)?;
        let hasher = filter.hasher().expect("a filter of texts has bands");
        Ok(Self { filter, hasher })
    }

    /// What hashes texts for this run.
    pub fn hasher(&self) -> Hasher {
        self.hasher.clone()
    }

    /// Decides on the next texts, in order: `each` gets whether a text is kept.
    ///
    /// # Errors
    /// If there is no memory to grow.
    pub fn decide(&mut self, sketched: &Sketched, mut each: impl FnMut(bool)) -> Result<(), InsertError> {
        let mut screened = sketched.screened.iter().peekable();
        for (text, answer) in self.filter.insert_keys(&sketched.keys)?.iter().enumerate() {
            each(screened.next_if(|&&near| near == text).is_none() && !answer.near);
        }
        Ok(())
    }

    /// The filter that the run has filled; it has grown if there were more texts than it was made for.
    pub fn filter(&self) -> &Filter<'static> {
        &self.filter
    }

    /// The same, to keep.
    pub fn into_filter(self) -> Filter<'static> {
        self.filter
    }
}

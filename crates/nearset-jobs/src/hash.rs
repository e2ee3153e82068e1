//! Hashes of pictures, one row per picture.
//!
//! Claim: rows come in the order of the inputs and are the same for any number of threads; the output appears whole or not at all.
//! Not here: decoding and hashing (`nearset-pictures`), and what files are pictures (`nearset-records`).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use nearset_pictures::{Algorithm, LEAST_QUALITY, Picture};
use nearset_records::output::{TableFile, Value};
use nearset_records::{Extracted, Fields, Format, ItemField, OutputOptions, RecordError, Source};
use serde::Serialize;

use crate::join::Counts;
use crate::join::stream::read;
use crate::run::{OnError, Progress, RunError, Worker};

/// How to hash pictures.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HashOptions {
    /// Where rows go.
    pub out: PathBuf,
    /// By what; the first is called `hash`, others by their names.
    pub algorithms: Vec<Algorithm>,
    /// Pictures of a lower quality are left out.
    pub min_quality: u8,
    /// What to do with what is no picture.
    pub on_error: OnError,
    /// Threads that decode and hash.
    pub threads: usize,
    /// Whether an existing output is replaced.
    pub force: bool,
}

impl HashOptions {
    /// PDQ of all pictures, on one thread.
    pub fn new(out: impl Into<PathBuf>) -> Self {
        let (algorithms, on_error) = (vec![Algorithm::Pdq], OnError::Fail);
        Self { out: out.into(), algorithms, min_quality: 0, on_error, threads: 1, force: false }
    }

    fn columns(&self) -> Vec<&'static str> {
        let further = self.algorithms.iter().skip(1).map(|algorithm| algorithm.name());
        ["id", "hash"].into_iter().chain(further).chain(["quality", "width", "height"]).collect()
    }
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HashSummary {
    /// What was read.
    #[serde(flatten)]
    pub counts: Counts,
    /// Rows written.
    pub hashed: u64,
    /// Pictures of so little to see that their hashes say nothing, written or not.
    pub low_quality: u64,
    /// Pictures that were left out for their quality.
    pub left_out: u64,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Hashes all pictures.
///
/// # Errors
/// If an input or the output fails, or a file is no picture and none may be; no output has appeared then.
pub fn hash_pictures(
    sources: Vec<Source>,
    options: &HashOptions,
    progress: &Progress,
) -> Result<HashSummary, RunError> {
    let started = Instant::now();
    let sources: Arc<[Source]> = sources.into();
    let mut output = OutputOptions::protecting(&sources);
    output.force = options.force;
    let columns = options.columns();
    // Hashes are piped into commands that take lines of JSON from a pipe.
    let mut table = TableFile::create_or(&options.out, Format::Jsonl, &columns, &output)?;
    let names: Vec<&str> = options.algorithms.iter().map(|algorithm| algorithm.name()).collect();
    let fields = Fields::new(names.join(","), ItemField::Text);
    let (mut hashed, mut low_quality, mut left_out) = (0, 0, 0);
    let reading = (options.threads, options.on_error);
    let counts = read(&sources, reading, (&Hasher, &fields), progress, |_, pictures| {
        for (id, picture) in pictures {
            low_quality += u64::from(picture.quality < LEAST_QUALITY);
            if picture.quality < options.min_quality {
                left_out += 1;
                continue;
            }
            let digits: Vec<String> = options.algorithms.iter().filter_map(|&one| picture.hex(one)).collect();
            let numbers = [picture.quality.into(), picture.width, picture.height].map(|n| Value::Integer(n.into()));
            let row = [Value::Text(id)].into_iter().chain(digits.iter().map(|digits| Value::Text(digits)));
            table.row(&row.chain(numbers).collect::<Vec<_>>())?;
            hashed += 1;
        }
        Ok(0)
    })?;
    table.finish()?;
    Ok(HashSummary { counts, hashed, low_quality, left_out, seconds: started.elapsed().as_secs_f64() })
}

struct Hasher;

impl Worker for Hasher {
    type Piece = Vec<(Box<str>, Picture)>;
    type Room = ();

    fn room(&self) {}

    fn clear(&self, (): &mut (), pictures: &mut Self::Piece) {
        pictures.clear();
    }

    fn add(
        &self,
        (): &mut (),
        extracted: &Extracted<'_>,
        i: usize,
        pictures: &mut Self::Piece,
    ) -> Result<(), RecordError> {
        extracted.item(i).map_err(Clone::clone)?;
        pictures.extend(extracted.picture().map(|picture| ((**extracted.batch().name()).into(), *picture)));
        Ok(())
    }
}

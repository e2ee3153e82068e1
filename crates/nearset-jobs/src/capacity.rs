//! How many records there will be, before they are read.
//!
//! Claim: what says [`Known::Counted`] is exact but for blank lines. It depends on the records alone and not on how they are
//! split over files, and so does everything that follows from it.
//! Larger inputs are sampled at places spread over all files, since the records at a corpus's start are rarely like those
//! at its end; the estimate then has headroom. It may differ where the same records are split otherwise, so state the
//! capacity if you need the same bytes for those too.

use std::sync::Arc;

use nearset_records::InputError;
use nearset_records::format::Compression;
use nearset_records::input::{Batch, Places, ReadOptions, Reader, Source, expect_soon};

/// The most bytes of plain lines that are counted: a fraction of a second.
const COUNT_LINES: u64 = 1 << 30;

/// The most bytes that are parsed or decompressed in order to count.
const COUNT_RECORDS: u64 = 64 << 20;

/// Files that are sampled.
const SAMPLED_FILES: usize = 64;

/// Places in a plain file, and bytes at each.
const WINDOWS: u64 = 256;
const WINDOW: u64 = 64 << 10;

/// Places in an object: each takes a request.
const REMOTE_WINDOWS: u64 = 16;

/// The most bytes of an object that are fetched in order to count or to sample.
const REMOTE: u64 = 1 << 20;

/// Uncompressed bytes from the start of a compressed file: the only place of it that can be read without all before.
const PREFIX: u64 = 16 << 20;

/// Sampled estimates are raised by this.
const HEADROOM: f64 = 1.1;

/// The guess for a pipe.
pub const PIPE: u64 = 1 << 18;

/// How a capacity is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Known {
    /// The user said it.
    Given,
    /// The records were counted.
    Counted,
    /// A sample was counted.
    Sampled,
    /// There is a pipe among the inputs, so it is a guess.
    Guessed,
}

/// A number of records, and how it is known.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Capacity {
    /// The number to make room for.
    pub records: u64,
    /// How it is known.
    pub known: Known,
    /// Bytes of a record as it lies on disk, on average, where known.
    pub mean_bytes: Option<f64>,
}

/// How much is read before a run.
#[derive(Clone, Copy)]
struct Effort {
    /// The most bytes of plain lines that are counted.
    lines: u64,
    /// The most bytes that are parsed or decompressed in order to count.
    records: u64,
    /// Uncompressed bytes from the start of a compressed file: the only place of it that can be read without all before.
    prefix: u64,
}

/// What a run will have to hold and to copy, if it keeps all records.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Survey {
    pub capacity: Capacity,
    /// Bytes of records that can't be read where they lie.
    pub copied_bytes: u64,
}

/// Looks at the sources. What is damaged counts as nothing here: the run itself reports it.
///
/// # Errors
/// If an object can't be reached.
pub fn estimate(sources: &[Source], options: &ReadOptions) -> Result<Capacity, InputError> {
    Ok(look(sources, options, Effort { lines: COUNT_LINES, records: COUNT_RECORDS, prefix: PREFIX })?.capacity)
}

/// What a look at a source has found, before a run: nothing in what is damaged, which the run itself will name. What can't be reached is an
/// error, or what follows from the look would depend on the network, and each source would be waited for.
pub(crate) fn found<T>(looked: Result<T, InputError>) -> Result<Option<T>, InputError> {
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(error @ InputError::Remote { .. }) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Returns the same at a glance, within some hundredths of a second.
pub(crate) fn survey(sources: &[Source], options: &ReadOptions) -> Result<Survey, InputError> {
    look(sources, options, Effort { lines: 4 << 20, records: 1 << 20, prefix: 1 << 20 })
}

fn look(sources: &[Source], options: &ReadOptions, effort: Effort) -> Result<Survey, InputError> {
    let total: u64 = sources.iter().filter_map(|source| source.bytes).sum();
    let plain = |source: &&Source| source.compression == Compression::None && source.format.is_one_line();
    let plain_bytes: u64 = sources.iter().filter(plain).filter_map(|source| source.bytes).sum();
    let (lines, records) = (plain_bytes <= effort.lines, total - plain_bytes <= effort.records);
    let count = Count { lines, records, prefix: effort.prefix };
    // Every k-th file is looked at where there are many; where all are counted, none may be left out.
    let exact_all = sources.iter().all(|source| count.is_exact(source));
    let step = if exact_all { 1 } else { sources.len().div_ceil(SAMPLED_FILES).max(1) };
    let (mut seen, mut seen_bytes, mut sampled, mut copied) = (0.0, 0u64, false, 0.0);
    let looked_at: Vec<&Source> = sources.iter().step_by(step).collect();
    for (i, source) in looked_at.iter().enumerate() {
        expect_soon(looked_at[i..].iter().copied());
        let Some(bytes) = source.bytes else { continue };
        let (Found { records, raw_bytes }, exact) = count.records_in(source, options, bytes)?;
        sampled |= !exact;
        seen += records;
        if !source.is_read_in_place() {
            copied += raw_bytes;
        }
        seen_bytes += bytes;
    }
    let share = if seen_bytes == 0 { 1.0 } else { total as f64 / seen_bytes as f64 };
    let all = seen * share;
    let mean_bytes = (all > 0.0).then(|| total as f64 / all);
    let of = |records: f64, known| {
        let capacity = Capacity { records: (records as u64).max(1), known, mean_bytes };
        Survey { capacity, copied_bytes: (copied * share) as u64 }
    };
    if sources.iter().any(|source| source.bytes.is_none()) {
        return Ok(of(all.max(PIPE as f64), Known::Guessed));
    }
    if sampled || step > 1 {
        return Ok(of((all * HEADROOM).ceil(), Known::Sampled));
    }
    Ok(of(all, Known::Counted))
}

/// What was found in a source: records, and bytes of them uncompressed.
struct Found {
    records: f64,
    raw_bytes: f64,
}

struct Count {
    lines: bool,
    records: bool,
    prefix: u64,
}

impl Count {
    fn is_exact(&self, source: &Source) -> bool {
        match source.format {
            format if format.states_records() => true,
            _ if source.is_remote() => source.bytes.is_some_and(|bytes| bytes <= REMOTE),
            format if format.is_one_line() && source.compression == Compression::None => self.lines,
            _ => self.records,
        }
    }

    /// Returns how many records a source has, and whether that is exact.
    fn records_in(&self, source: &Source, options: &ReadOptions, bytes: u64) -> Result<(Found, bool), InputError> {
        let exact = self.is_exact(source);
        let prefix = if source.is_remote() { self.prefix.min(REMOTE) } else { self.prefix };
        let records = match source.format {
            format if format.states_records() => {
                let records = found(source.stated_records())?.flatten().unwrap_or(0) as f64;
                // A file that is one record need not be read to know its length.
                if !format.is_columnar() && source.compression == Compression::None {
                    return Ok((Found { records, raw_bytes: bytes as f64 }, exact));
                }
                let start = read_records(source, options, prefix.min(1 << 20), bytes)?;
                let raw_bytes = records * start.raw_bytes / start.records.max(1.0);
                return Ok((Found { records, raw_bytes }, exact));
            }
            // What has to be read from its start is read no further than a prefix.
            format
                if format.is_one_line()
                    && source.compression == Compression::None
                    && (exact || source.is_seekable()) =>
            {
                if exact {
                    count_lines(source)
                } else {
                    sample_lines(source, bytes)
                }
            }
            _ => return Ok((read_records(source, options, if exact { u64::MAX } else { prefix }, bytes)?, exact)),
        };
        Ok((Found { records: found(records)?.unwrap_or(0.0), raw_bytes: bytes as f64 }, exact))
    }
}

fn count_lines(source: &Source) -> Result<f64, InputError> {
    let failed = |cause| InputError::from_io(&source.name, 0, cause);
    let mut file = Places::open(source, &[]).map_err(failed)?;
    let mut buffer = Vec::new();
    let (mut lines, mut open, mut at) = (0usize, false, 0);
    loop {
        buffer.clear();
        at += file.read(at, 1 << 18, &mut buffer).map_err(failed)? as u64;
        let Some(last) = buffer.last() else {
            return Ok((lines + usize::from(open)) as f64);
        };
        open = *last != b'\n';
        lines += memchr::memchr_iter(b'\n', &buffer).count();
    }
}

fn sample_lines(source: &Source, bytes: u64) -> Result<f64, InputError> {
    let failed = |cause| InputError::from_io(&source.name, 0, cause);
    let windows = if source.is_remote() { REMOTE_WINDOWS } else { WINDOWS };
    let place = |window: u64| bytes.saturating_sub(WINDOW) / (2 * windows) * (2 * window + 1);
    let places: Vec<u64> = (0..windows).map(place).collect();
    let mut file = Places::open(source, &places).map_err(failed)?;
    let mut buffer = Vec::new();
    let (mut lines, mut seen) = (0usize, 0usize);
    for place in places {
        buffer.clear();
        seen += file.read(place, WINDOW, &mut buffer).map_err(failed)?;
        lines += memchr::memchr_iter(b'\n', &buffer).count();
    }
    Ok(if seen == 0 { 0.0 } else { lines as f64 * bytes as f64 / seen as f64 })
}

fn read_records(source: &Source, options: &ReadOptions, limit: u64, bytes: u64) -> Result<Found, InputError> {
    let mut reader = Reader::new(Arc::from([source.clone()]), options.clone());
    let mut batch = Batch::new();
    let (mut records, mut read) = (0u64, 0u64);
    while found(reader.read_batch(&mut batch))?.unwrap_or(false) {
        records += batch.len() as u64;
        read += batch.bytes().len() as u64;
        if read >= limit {
            let share = bytes as f64 / batch.disk_bytes().clamp(1, bytes.max(1)) as f64;
            return Ok(Found { records: records as f64 * share, raw_bytes: read as f64 * share });
        }
    }
    Ok(Found { records: records as f64, raw_bytes: read as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearset_records::extract::{Fields, ItemField};
    use nearset_records::input::resolve;
    use std::path::Path;

    fn estimated(files: &[(&str, Vec<u8>)]) -> Capacity {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<String> = files
            .iter()
            .map(|(name, bytes)| {
                let path = folder.path().join(name);
                std::fs::write(&path, bytes).unwrap();
                path.to_str().unwrap().to_owned()
            })
            .collect();
        let sources = resolve(&paths, None).unwrap();
        estimate(&sources.list, &ReadOptions::new(Fields::new("text", ItemField::Text))).unwrap()
    }

    #[test]
    fn small_inputs_are_counted_however_they_are_split() {
        let lines = |n: usize| "{\"text\":\"a\"}\n".repeat(n).into_bytes();
        let one = estimated(&[("a.jsonl", lines(1000))]);
        let two = estimated(&[("a.jsonl", lines(900)), ("b.jsonl", lines(100))]);
        let packed = estimated(&[("a.jsonl.zst", zstd::encode_all(&lines(1000)[..], 3).unwrap())]);
        for capacity in [one, two, packed] {
            assert_eq!((capacity.records, capacity.known), (1000, Known::Counted));
        }
        assert_eq!(estimated(&[("a.csv", b"text\n\"a\nb\"\nc\n".to_vec())]).records, 2);
        assert_eq!(estimated(&[("a.jsonl", b"{}\n{}".to_vec())]).records, 2);
        assert_eq!(estimated(&[("a.jsonl", Vec::new())]).records, 1);
    }

    #[test]
    fn what_must_be_copied_is_told_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        let lines = (0..50_000).map(|i| format!("{{\"text\":\"a line like number {i}\"}}\n")).collect::<String>();
        let (plain, packed) = (folder.path().join("a.jsonl"), folder.path().join("b.jsonl.zst"));
        std::fs::write(&plain, &lines).unwrap();
        std::fs::write(&packed, zstd::encode_all(lines.as_bytes(), 3).unwrap()).unwrap();
        let look = |path: &Path| {
            let sources = resolve(&[path.to_str().unwrap()], None).unwrap();
            survey(&sources.list, &ReadOptions::new(Fields::new("text", ItemField::Text))).unwrap()
        };
        assert_eq!((look(&plain).capacity.records, look(&plain).copied_bytes), (50_000, 0));
        let found = look(&packed).copied_bytes as f64 / lines.len() as f64;
        assert!((0.9..1.1).contains(&found), "{found} of the bytes");
    }

    #[test]
    fn samples_are_spread_over_a_file() {
        // Short lines first, long ones after: its start alone would tell three times too many.
        let mut bytes = "x\n".repeat(1 << 20).into_bytes();
        bytes.extend_from_slice(format!("{}\n", "y".repeat(199)).repeat(20 << 10).as_bytes());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, &bytes).unwrap();
        let truth = ((1 << 20) + (20 << 10)) as f64;
        let source = resolve(&[path.to_str().unwrap()], None).unwrap().list.remove(0);
        let found = sample_lines(&source, bytes.len() as u64).unwrap();
        assert!((found / truth - 1.0).abs() < 0.1, "{found} for {truth}");
    }
}

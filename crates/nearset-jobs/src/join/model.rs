//! Which shingles of a corpus are common, learnt from a sample before the first record is decided on.
//!
//! Invariant: the sample is a function of the sources alone, so that a resumed run learns the same: of plain files of lines records from
//! several places, of others the first ones.
//! Limit: what is common only elsewhere is not learnt. Its lists fill up, and records that they cut short are counted.

use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use nearset::Shingler;
use nearset::index::CommonShingles;
use nearset::item::append_sorted;
use nearset_records::input::{Location, Places, expect_soon, peek_stdin};
use nearset_records::{
    Arena, Batch, Compression, Fields, Format, InputError, Position, ReadOptions, Reader, Source, extract,
};

use super::stream::{shingle, text_of};
use crate::capacity::found;
use crate::run::{Progress, RunError};

/// Records of a sample, at most.
const MOST_RECORDS: usize = 4000;

/// Records of a sample, at least: lists of fewer are short.
const FEWEST_RECORDS: usize = 250;

/// The fraction of a corpus that is sampled, if that is not too many or too few records.
const FRACTION: f64 = 0.1;

/// Records that show which shingles half a per cent has; beyond them a hundredth of the corpus is enough.
const ENOUGH_RECORDS: usize = 2000;

/// Shingles of a sample, at most.
const MOST_SHINGLES: usize = 4_000_000;

/// Places of a plain file at which records are sampled.
const PLACES: u64 = 16;

/// Bytes of a pipe that are read before its first record is decided on.
const PIPE_BYTES: usize = 8 << 20;

/// How often a run that waits for a pipe looks whether it is to stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// Sources that are sampled, at most.
const MOST_SOURCES: usize = 200;

/// Learns which shingles are common. What is damaged is passed over: the run itself will say so. What can't be reached is an error.
pub(super) fn learn(
    sources: &[Source],
    fields: &Fields,
    shingler: &Shingler,
    progress: &Progress,
) -> Result<CommonShingles, RunError> {
    let sampled: Vec<&Source> = sources.iter().step_by(sources.len().div_ceil(MOST_SOURCES).max(1)).collect();
    let total_bytes: u64 = sources.iter().filter_map(|source| source.bytes).sum();
    let mut sample = Sample { sets: Vec::new(), ends: vec![0], shingles: Vec::new(), text_bytes: 0 };
    for (i, source) in sampled.iter().enumerate() {
        progress.go_on()?;
        expect_soon(sampled[i..].iter().copied());
        let most = (MOST_RECORDS / sampled.len()).max(1);
        match (source.bytes, &source.location) {
            (Some(bytes), _) => sample.read((*source).clone(), bytes, most, (fields, shingler), progress)?,
            (None, Location::Stdin) => sample.read_pipe(source, most, fields, shingler, progress)?,
            // A named pipe can't be read twice.
            _ => {}
        }
    }
    let sets = sample.ends.windows(2).map(|ends| &sample.sets[ends[0]..ends[1]]);
    let records = sets.len() as f64 * (total_bytes as f64 / sample.text_bytes.max(1) as f64).max(1.0);
    Ok(CommonShingles::of_sample(sets, records as usize))
}

struct Sample {
    /// All sets, one after the other, and where each ends.
    sets: Vec<u64>,
    ends: Vec<usize>,
    shingles: Vec<u64>,
    /// Bytes of records that were read for it.
    text_bytes: u64,
}

/// Where records are sampled: behind line ends at regular distances, where lines are records and the file can be read at any place.
fn starts(source: &Source, bytes: u64, progress: &Progress) -> Result<Vec<Position>, RunError> {
    let mut starts = vec![Position::default()];
    let is_lines = source.compression == Compression::None && matches!(source.format, Format::Jsonl | Format::Text);
    if !is_lines || !source.is_seekable() || bytes < 1 << 20 {
        return Ok(starts);
    }
    let failed = |cause| InputError::from_io(&source.name, 0, cause);
    let places: Vec<u64> = (1..PLACES).map(|place| bytes / PLACES * place).collect();
    let Some(mut file) = found(Places::open(source, &places).map_err(failed))? else { return Ok(starts) };
    let mut head = Vec::new();
    for from in places {
        progress.go_on()?;
        head.clear();
        // What can't be read at one place won't be at the others.
        let Some(_) = found(file.read(from, 64 << 10, &mut head).map_err(failed))? else { break };
        if let Some(end) = head.iter().position(|&byte| byte == b'\n') {
            // Lines and records are not counted here: nobody is told where a sample came from.
            starts.push(Position { source: 0, record: 1, line: 2, offset: from + end as u64 + 1 });
        }
    }
    Ok(starts)
}

impl Sample {
    /// Adds records of a source of `bytes` bytes.
    fn read(
        &mut self,
        source: Source,
        bytes: u64,
        most: usize,
        texts: (&Fields, &Shingler),
        progress: &Progress,
    ) -> Result<(), RunError> {
        let starts = starts(&source, bytes, progress)?;
        let sources: Arc<[Source]> = Arc::from([source]);
        let pieces = starts.len() as u64;
        for position in starts {
            let most = most.div_ceil(pieces as usize);
            let [fewest, enough] = [FEWEST_RECORDS, ENOUGH_RECORDS].map(|records| records.div_ceil(pieces as usize));
            progress.go_on()?;
            self.read_piece(&sources, position, bytes / pieces, [fewest, enough.min(most), most], texts)?;
        }
        Ok(())
    }

    /// Adds the first records behind a position, of a piece of `bytes` bytes.
    fn read_piece(
        &mut self,
        sources: &Arc<[Source]>,
        position: Position,
        bytes: u64,
        [fewest, enough, most]: [usize; 3],
        (fields, shingler): (&Fields, &Shingler),
    ) -> Result<(), RunError> {
        let mut options = ReadOptions::new(fields.clone());
        options.batch_bytes = 64 << 10;
        let mut reader = Reader::open_at(Arc::clone(sources), options, position);
        let (mut batch, mut arena) = (Batch::new(), Arena::new());
        let (mut records, mut read) = (0, 0);
        while records < most && self.sets.len() < MOST_SHINGLES {
            let fraction = if records >= enough { FRACTION / 10.0 } else { FRACTION };
            if records >= fewest && read as f64 >= fraction * bytes as f64 {
                break;
            }
            if !found(reader.read_batch(&mut batch))?.unwrap_or(false) {
                read = bytes;
                break;
            }
            let extracted = extract(&batch, fields, &mut arena);
            for i in 0..extracted.len() {
                // A run that can't read its records says so; here they only end the sample.
                let Ok(text) = text_of(&extracted, i, fields) else { return Ok(()) };
                shingle(shingler, text, &mut self.shingles);
                append_sorted(&self.shingles, &mut self.sets);
                self.ends.push(self.sets.len());
                records += 1;
            }
            read += (0..batch.len()).map(|i| batch.raw(i).len() as u64).sum::<u64>();
        }
        self.text_bytes += read;
        Ok(())
    }

    /// Adds the first records of a pipe, which stay in it.
    fn read_pipe(
        &mut self,
        source: &Source,
        most: usize,
        fields: &Fields,
        shingler: &Shingler,
        progress: &Progress,
    ) -> Result<(), RunError> {
        // Nobody can wake a thread that waits for a pipe, so a run that stops leaves it behind.
        let (send, receive) = bounded(1);
        thread::spawn(move || send.send(peek_stdin(PIPE_BYTES)));
        let head = loop {
            progress.go_on()?;
            match receive.recv_timeout(PATIENCE) {
                Ok(head) => break head,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        };
        let (Ok(head), Ok(mut file)) = (head, tempfile::NamedTempFile::new()) else { return Ok(()) };
        if file.write_all(&head).is_err() {
            return Ok(());
        }
        if let Ok(copy) = source.at(file.path()) {
            self.read(copy, head.len() as u64, most, (fields, shingler), progress)?;
        }
        Ok(())
    }
}

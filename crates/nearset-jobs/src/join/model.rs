//! Which shingles of a corpus are common, learnt from a sample before the first record is decided on.
//!
//! Invariant: the sample is a function of the sources alone, the first records of each, so that a resumed run learns the same.
//! Limit: a template that appears only later in a file is not learnt. Its lists fill up, and records that they cut short are counted.

use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use nearset::Shingler;
use nearset::index::CommonShingles;
use nearset::item::SortedSet;
use nearset_records::input::{Location, peek_stdin};
use nearset_records::{Arena, Batch, Fields, ReadOptions, Reader, Source, extract};

use super::stream::{shingle, text_of};
use crate::run::{Progress, RunError};

/// Records of a sample, at most.
const MOST_RECORDS: usize = 4000;

/// Records of a sample, at least: lists of fewer are short.
const FEWEST_RECORDS: usize = 250;

/// The fraction of a corpus that is sampled, if that is not too many or too few records.
const FRACTION: f64 = 0.125;

/// Bytes of a pipe that are read before its first record is decided on.
const PIPE_BYTES: usize = 8 << 20;

/// How often a run that waits for a pipe looks whether it is to stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// Sources that are sampled, at most.
const MOST_SOURCES: usize = 200;

/// Learns which shingles are common. What can't be read is passed over: the run itself will say so.
pub(super) fn learn(
    sources: &[Source],
    fields: &Fields,
    shingler: &Shingler,
    progress: &Progress,
) -> Result<CommonShingles, RunError> {
    let sampled: Vec<&Source> = sources.iter().step_by(sources.len().div_ceil(MOST_SOURCES).max(1)).collect();
    let total_bytes: u64 = sources.iter().filter_map(|source| source.bytes).sum();
    let mut sample = Sample { sets: Vec::new(), shingles: Vec::new(), disk_bytes: 0 };
    for source in &sampled {
        progress.go_on()?;
        let most = (MOST_RECORDS / sampled.len()).max(1);
        match (source.bytes, &source.location) {
            (Some(bytes), _) => sample.read((*source).clone(), bytes, most, fields, shingler),
            (None, Location::Stdin) => sample.read_pipe(source, most, fields, shingler, progress)?,
            // A named pipe can't be read twice.
            _ => {}
        }
    }
    let sets = sample.sets.iter().map(SortedSet::as_slice);
    let records = sample.sets.len() as f64 * (total_bytes as f64 / sample.disk_bytes.max(1) as f64).max(1.0);
    Ok(CommonShingles::of_sample(sets, records as usize))
}

struct Sample {
    sets: Vec<SortedSet>,
    shingles: Vec<u64>,
    /// Bytes of the sources that the sample was taken from.
    disk_bytes: u64,
}

impl Sample {
    /// Adds the first records of a source of so many bytes.
    fn read(&mut self, source: Source, bytes: u64, most: usize, fields: &Fields, shingler: &Shingler) {
        let mut options = ReadOptions::new(fields.clone());
        options.batch_bytes = 64 << 10;
        let mut reader = Reader::new(Arc::from([source]), options);
        let (mut batch, mut arena) = (Batch::new(), Arena::new());
        let (mut records, mut read) = (0, 0);
        while records < most && (records < FEWEST_RECORDS || (read as f64) < FRACTION * bytes as f64) {
            if !matches!(reader.read_batch(&mut batch), Ok(true)) {
                read = bytes;
                break;
            }
            let extracted = extract(&batch, fields, &mut arena);
            for i in 0..extracted.len() {
                if let Ok(text) = text_of(&extracted, i, fields) {
                    shingle(shingler, text, &mut self.shingles);
                    self.sets.push(SortedSet::from(&self.shingles[..]));
                    records += 1;
                }
            }
            read = batch.disk_bytes().min(bytes);
        }
        self.disk_bytes += read;
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
            self.read(copy, head.len() as u64, most, fields, shingler);
        }
        Ok(())
    }
}

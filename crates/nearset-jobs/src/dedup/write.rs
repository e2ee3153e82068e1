//! The writing thread: records and the list of removals, in order.

use std::path::Path;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use nearset::Filter;

use super::job::{Job, Verdict};
use super::options::DedupOptions;
use super::state::{Lengths, State, StateFolder};
use nearset_records::error::OutputError;
use nearset_records::input::Source;
use nearset_records::output::{
    Added, AddedKind, AnyWriter, OutputFile, OutputOptions, RecordWriter, Value, is_written_through, json_string,
    partial_path,
};

/// The fields that `--annotate` adds, if it was given.
pub(super) fn added(options: &DedupOptions) -> Vec<Added> {
    let fields = [Added::new("near_duplicate", AddedKind::Bool), Added::new("hits", AddedKind::Integer)];
    if options.annotate { fields.to_vec() } else { Vec::new() }
}

/// Outputs of a run.
pub(super) struct Outputs {
    out: Option<AnyWriter>,
    removed: Option<OutputFile>,
    /// Empty until all records are decided on.
    pub report: Option<OutputFile>,
    annotate: bool,
    bands: u32,
    against: Vec<String>,
    scratch: Vec<u8>,
}

fn options_for(options: &DedupOptions, sources: &[Source], keep_partial: bool) -> OutputOptions {
    let mut output = OutputOptions::protecting(sources);
    output.inputs.extend(options.against.iter().cloned());
    output.force = options.force;
    output.keep_partial = keep_partial;
    output
}

/// Writes the filter beside its place, if it is to be saved.
pub(super) fn write_saved(
    options: &DedupOptions,
    sources: &[Source],
    filter: &Filter<'_>,
) -> Result<Option<OutputFile>, OutputError> {
    let Some(path) = &options.save else { return Ok(None) };
    let mut out = OutputFile::create(path, &options_for(options, sources, false))?;
    crate::filter_file::write_filter(filter, &mut out)?;
    Ok(Some(out))
}

/// That the filter can be saved, found out before the work is done.
pub(super) fn check_save(options: &DedupOptions, sources: &[Source]) -> Result<(), OutputError> {
    match &options.save {
        Some(path) => crate::filter_file::check_save(path, &options_for(options, sources, false)),
        None => Ok(()),
    }
}

impl Outputs {
    pub fn open(
        options: &DedupOptions,
        sources: &Arc<[Source]>,
        resumed: Option<&Lengths>,
        keep_partial: bool,
        bands: u32,
    ) -> Result<Self, OutputError> {
        // What is new is kept only when all of it could be opened; what is resumed, in any case.
        let output = options_for(options, sources, keep_partial && resumed.is_some());
        let checkpoint = resumed.and_then(|lengths| lengths.out);
        let out = match &options.out {
            Some(path) => Some(AnyWriter::open(path, sources, added(options), checkpoint, &output)?),
            None => None,
        };
        let removed = match (&options.removed, resumed.and_then(|lengths| lengths.removed)) {
            (Some(path), Some(length)) => Some(OutputFile::resume(path, length, &output)?),
            (Some(path), None) => Some(OutputFile::create(path, &output)?),
            (None, _) => None,
        };
        let report = options.report.as_ref().map(|path| OutputFile::create(path, &output)).transpose()?;
        let against = options.against.iter().map(|path| path.display().to_string()).collect();
        let mut outputs =
            Self { out, removed, report, annotate: options.annotate, bands, against, scratch: Vec::new() };
        if keep_partial {
            outputs.keep_partial();
        }
        Ok(outputs)
    }

    fn keep_partial(&mut self) {
        if let Some(out) = &mut self.out {
            out.keep_partial();
        }
        for other in [&mut self.removed, &mut self.report].into_iter().flatten() {
            other.keep_partial();
        }
    }

    /// Writes jobs in the order they come, and gives them back to the pool.
    pub fn write_all(
        mut self,
        jobs: &Receiver<Job>,
        pool: &Sender<Job>,
        folder: Option<&StateFolder>,
    ) -> Result<Self, OutputError> {
        for mut job in jobs {
            self.write(&mut job, folder)?;
            // The reader may be done and gone.
            let _ = pool.send(job);
        }
        Ok(self)
    }

    fn write(&mut self, job: &mut Job, folder: Option<&StateFolder>) -> Result<(), OutputError> {
        if let Some(out) = &mut self.out {
            out.begin(&job.batch)?;
        }
        let mut checkpoints = std::mem::take(&mut job.checkpoints).into_iter().peekable();
        for i in 0..job.verdicts.len() {
            self.record(job, i)?;
            if let Some((_, mut state)) = checkpoints.next_if(|(behind, _)| *behind == i + 1)
                && let Some(folder) = folder
            {
                state.outputs = self.lengths()?;
                folder.save(&state)?;
            }
        }
        Ok(())
    }

    fn record(&mut self, job: &Job, i: usize) -> Result<(), OutputError> {
        let verdict = job.verdicts[i];
        if let Some(out) = &mut self.out {
            match verdict {
                Verdict::New { hits } | Verdict::Near { hits } | Verdict::Against { hits, .. } if self.annotate => {
                    let near = !matches!(verdict, Verdict::New { .. });
                    out.annotate(&job.batch, i, &[Value::Bool(near), Value::Integer(i64::from(hits))])?;
                }
                Verdict::New { .. } => out.copy(&job.batch, i)?,
                Verdict::Faulty | Verdict::Near { .. } | Verdict::Against { .. } => out.leave_out(&job.batch)?,
            }
        }
        if self.removed.is_some() && !matches!(verdict, Verdict::New { .. }) {
            self.removal(job, i, verdict)?;
        }
        Ok(())
    }

    fn removal(&mut self, job: &Job, i: usize, verdict: Verdict) -> Result<(), OutputError> {
        let line = &mut self.scratch;
        line.clear();
        line.extend_from_slice(b"{\"id\":");
        json_string(job.ids.get(i), line);
        line.extend_from_slice(b",\"file\":");
        json_string(job.batch.name(), line);
        line.extend_from_slice(format!(",\"line\":{}", job.batch.line(i)).as_bytes());
        let (reason, hits) = match verdict {
            Verdict::Near { hits } => ("near an earlier record".to_owned(), Some(hits)),
            Verdict::Against { filter, hits } => (format!("near {}", self.against[filter]), Some(hits)),
            _ => {
                let fault =
                    job.faults.iter().find(|(faulty, _)| *faulty == i).map(|(_, error)| error.fault.to_string());
                (format!("unreadable: {}", fault.unwrap_or_default()), None)
            }
        };
        if let Some(hits) = hits {
            line.extend_from_slice(format!(",\"hits\":{hits},\"bands\":{}", self.bands).as_bytes());
        }
        line.extend_from_slice(b",\"reason\":");
        json_string(&reason, line);
        line.extend_from_slice(b"}\n");
        match &mut self.removed {
            Some(removed) => removed.write(line),
            None => Ok(()),
        }
    }

    /// Makes all that was written durable and says how long it is.
    pub fn lengths(&mut self) -> Result<Lengths, OutputError> {
        Ok(Lengths {
            out: self.out.as_mut().map_or(Ok(None), AnyWriter::checkpoint)?,
            removed: self.removed.as_mut().map(OutputFile::checkpoint).transpose()?,
            ..Lengths::default()
        })
    }

    /// Lets the outputs appear under their names.
    pub fn finish(self) -> Result<(), OutputError> {
        for other in [self.report, self.removed].into_iter().flatten() {
            other.finish()?;
        }
        self.out.map_or(Ok(()), AnyWriter::finish)
    }
}

/// Gives complete outputs their names, those that do not have them yet.
pub(super) fn finish_named(options: &DedupOptions, sources: &[Source], state: &State) -> Result<(), OutputError> {
    let output = options_for(options, sources, true);
    let waits = |path: &Path| partial_path(path).exists();
    let saved = options.save.as_ref().zip(state.outputs.saved);
    let removed = options.removed.as_ref().zip(state.outputs.removed);
    let report = options.report.as_ref().zip(state.outputs.report);
    for (path, length) in saved.into_iter().chain(removed).chain(report) {
        // One that is neither waiting nor there was lost, which resuming says.
        if waits(path) || !path.exists() {
            OutputFile::resume(path, length, &output)?.finish()?;
        }
    }
    if let (Some(path), Some(checkpoint)) = (&options.out, state.outputs.out)
        && (waits(path) || !path.exists())
    {
        RecordWriter::resume(path, Vec::new(), checkpoint, &output)?.finish()?;
    }
    Ok(())
}

/// Removes what an unfinished run leaves under partial names. Saved filters remove their own.
pub(super) fn remove_partial(options: &DedupOptions) {
    let all = [&options.out, &options.removed, &options.report].into_iter().flatten();
    for path in all.filter(|path| !is_written_through(path)) {
        // What is not there need not be removed, and what cannot be removed is named as partial.
        let _ = std::fs::remove_file(partial_path(path));
    }
}

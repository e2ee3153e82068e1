//! The writing thread: records and the list of removals, in order.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use nearset_records::output::{
    Value, is_folder, is_written_through, json_string, partial_path, publish_shards, remove_partial_shards,
};
use nearset_records::{
    Added, AddedKind, AnyWriter, Fields, OutputError, OutputFile, OutputOptions, RecordWriter, Source, StateFolder,
    chain,
};

use super::commit::text_of;
use super::job::{Job, Verdict};
use super::options::{OnError, RunOptions};
use super::passed::Passing;
use super::state::{Lengths, State};

/// What `dedup` adds beside its mark, by one metric or another.
const OF_DEDUP: [(&str, AddedKind); 5] = [
    ("duplicate_of", AddedKind::Text),
    ("similarity", AddedKind::Number),
    ("containment", AddedKind::Number),
    ("distance", AddedKind::Number),
    ("hits", AddedKind::Integer),
];

/// How a run decides, and so what it can say about a record.
#[derive(Debug, Clone)]
pub(crate) enum Manner {
    /// By hits in bands of a filter.
    Filter { bands: u32, against: Vec<String> },
    /// By comparing with another record; this is why it then goes.
    Compared {
        reason: &'static str,
        /// The similarity from which on records are near; what is removed below it was marked.
        near: f64,
        /// What the number that says how near they are is called.
        measure: &'static str,
        /// Names of filters built before, which compare nothing, and of libraries.
        against: Vec<String>,
        /// Whether what is kept is kept for later runs too, by its name.
        saves: bool,
    },
    /// By what one filter, built before, says of each record alone.
    Screened { filter: String, bands: Option<u32> },
    /// By what it holds; if texts are cut rather than dropped, by the name of their field.
    Leaks { cut: Option<String> },
    /// By what of it was there before: the name of such a part; if texts are cut, the name of their field.
    Units { unit: &'static str, cut: Option<String> },
}

impl Manner {
    /// Returns whether a record goes only because somebody has marked it: it is less near than is wanted.
    pub fn is_marked(&self, verdict: Verdict) -> bool {
        match (verdict, self) {
            (Verdict::NearTo { similarity, library: None, .. }, Manner::Compared { near, measure, .. }) => {
                *measure == "similarity" && similarity < *near
            }
            _ => false,
        }
    }

    /// Returns the fields that annotating adds.
    pub fn added(&self, annotate: bool) -> Vec<Added> {
        if let Manner::Leaks { cut: Some(text) } | Manner::Units { cut: Some(text), .. } = self {
            return vec![Added::own_text(text)];
        }
        let fields = match self {
            _ if !annotate => &[][..],
            Manner::Filter { .. } => &[("near_duplicate", AddedKind::Bool), ("hits", AddedKind::Integer)],
            Manner::Compared { measure, .. } => {
                &[("near_duplicate", AddedKind::Bool), ("duplicate_of", AddedKind::Text), (*measure, AddedKind::Number)]
            }
            Manner::Screened { .. } => &[("near", AddedKind::Bool), ("hits", AddedKind::Integer)],
            Manner::Leaks { .. } => {
                &[("contaminated", AddedKind::Bool), ("leak_of", AddedKind::Text), ("leak_share", AddedKind::Number)]
            }
            Manner::Units { .. } => &[("repeated_share", AddedKind::Number), ("repeated_spans", AddedKind::Text)],
        };
        let mut added: Vec<Added> = fields.iter().map(|&(name, kind)| Added::new(name, kind)).collect();
        if added.first().is_some_and(|mark| mark.name == "near_duplicate") {
            let is_other = |(name, _): &&(&str, AddedKind)| fields.iter().all(|(own, _)| own != name);
            added.extend(OF_DEDUP.iter().filter(is_other).map(|&(name, kind)| Added::stale(name, kind)));
        }
        added
    }
}

/// Outputs of a run.
pub(crate) struct Outputs {
    out: Option<AnyWriter>,
    removed: Option<OutputFile>,
    /// Empty until all records are decided on.
    pub(super) report: Option<OutputFile>,
    annotate: bool,
    /// Whether records that could not be read are written as they are.
    keeps_faulty: bool,
    /// What texts are called, where those of removed records are wanted.
    removed_text: Option<Fields>,
    manner: Manner,
    sources: Arc<[Source]>,
    scratch: Vec<u8>,
}

/// How outputs are opened: over neither inputs nor other files that are read.
pub(super) fn options_for(options: &RunOptions, sources: &[Source], protected: &[PathBuf]) -> OutputOptions {
    let mut output = OutputOptions::protecting(sources).with_force(options.force);
    output.inputs.extend(protected.iter().cloned());
    output
}

impl Outputs {
    pub(super) fn open(
        options: &RunOptions,
        sources: &Arc<[Source]>,
        mut output: OutputOptions,
        manner: Manner,
        resumed: Option<&Lengths>,
        keep_partial: bool,
    ) -> Result<Self, OutputError> {
        // What is new is kept only when all of it could be opened; what is resumed, in any case.
        output.keep_partial = keep_partial && resumed.is_some();
        let checkpoint = resumed.and_then(|lengths| lengths.out);
        let out = match &options.out {
            Some(path) => Some(AnyWriter::open(path, sources, manner.added(options.annotate), checkpoint, &output)?),
            None => None,
        };
        let removed = match (&options.removed, resumed.and_then(|lengths| lengths.removed)) {
            (Some(path), Some(length)) => Some(OutputFile::resume(path, length, &output)?),
            (Some(path), None) => Some(OutputFile::create(path, &output)?),
            (None, _) => None,
        };
        let report = options.report.as_ref().map(|path| OutputFile::create(path, &output)).transpose()?;
        let removed_text = options.removed_text.then(|| options.fields.clone());
        let mut outputs = Self {
            out,
            removed,
            report,
            annotate: options.annotate,
            keeps_faulty: options.on_error == OnError::Keep,
            removed_text,
            manner,
            sources: Arc::clone(sources),
            scratch: Vec::new(),
        };
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
    pub(super) fn write_all<P>(
        mut self,
        jobs: &Receiver<Job<P>>,
        pool: &Sender<Job<P>>,
        mut saved: Option<(&StateFolder, &mut Passing)>,
    ) -> Result<Self, OutputError> {
        for mut job in jobs {
            self.write(&mut job, &mut saved)?;
            // The reader may be done and gone.
            let _ = pool.send(job);
        }
        Ok(self)
    }

    fn write<P>(
        &mut self,
        job: &mut Job<P>,
        saved: &mut Option<(&StateFolder, &mut Passing)>,
    ) -> Result<(), OutputError> {
        if let Some(out) = &mut self.out {
            out.begin(&job.batch)?;
        }
        let mut checkpoints = std::mem::take(&mut job.checkpoints).into_iter().peekable();
        for i in 0..job.verdicts.len() {
            self.record(job, i)?;
            if let Some((_, mut state)) = checkpoints.next_if(|(behind, _)| *behind == i + 1)
                && let Some((folder, passing)) = saved
            {
                passing.pass(&job.batch, state.position.offset);
                state.passed = passing.checkpoint();
                state.outputs = self.lengths()?;
                folder.save(&state, state.tally.checkpoints)?;
            }
        }
        if let (Some((_, passing)), false) = (saved, job.batch.bytes().is_empty()) {
            passing.pass(&job.batch, job.batch.end().offset);
        }
        Ok(())
    }

    fn record<P>(&mut self, job: &Job<P>, i: usize) -> Result<(), OutputError> {
        let verdict = job.verdicts[i];
        if let Some(out) = &mut self.out {
            let near = Value::Bool(!verdict.is_kept());
            match verdict {
                Verdict::Faulty if self.keeps_faulty => out.pass_through(&job.batch, i)?,
                Verdict::Faulty => out.leave_out(&job.batch)?,
                Verdict::Against { .. } if self.annotate && matches!(self.manner, Manner::Compared { .. }) => {
                    out.annotate(&job.batch, i, &[near, Value::Null, Value::Null])?;
                }
                Verdict::New { hits } | Verdict::Near { hits } | Verdict::Against { hits, .. } if self.annotate => {
                    out.annotate(&job.batch, i, &[near, Value::Integer(i64::from(hits))])?;
                }
                Verdict::Kept if self.annotate && matches!(self.manner, Manner::Units { .. }) => {
                    out.annotate(&job.batch, i, &[Value::Number(0.0), Value::Text("[]")])?;
                }
                Verdict::Repeats { spans: Some(spans), share, .. } => {
                    let spans = Value::Text(job.names.get(spans as usize));
                    out.annotate(&job.batch, i, &[Value::Number(share), spans])?;
                }
                Verdict::Kept if self.annotate => out.annotate(&job.batch, i, &[near, Value::Null, Value::Null])?,
                Verdict::NearTo { name, similarity, .. } if self.annotate => {
                    let of = Value::Text(job.names.get(name as usize));
                    out.annotate(&job.batch, i, &[near, of, Value::Number(similarity)])?;
                }
                Verdict::Screened { near, hits, .. } if self.annotate => {
                    let hits = hits.map_or(Value::Null, |hits| Value::Integer(i64::from(hits)));
                    out.annotate(&job.batch, i, &[Value::Bool(near), hits])?;
                }
                Verdict::Leaks { name, share, .. } if self.annotate => {
                    let of = Value::Text(job.names.get(name as usize));
                    out.annotate(&job.batch, i, &[near, of, Value::Number(share)])?;
                }
                Verdict::Leaks { rest: Some(rest), .. } | Verdict::Repeats { rest: Some(rest), .. } => {
                    out.replace(&job.batch, i, job.names.get(rest as usize))?;
                }
                verdict if verdict.is_kept() => out.copy(&job.batch, i)?,
                _ => out.leave_out(&job.batch)?,
            }
        }
        let is_kept = verdict.is_kept() || self.keeps_faulty && matches!(verdict, Verdict::Faulty);
        if self.removed.is_some() && (!is_kept || matches!(verdict, Verdict::Leaks { .. } | Verdict::Repeats { .. })) {
            self.removal(job, i, verdict)?;
        }
        Ok(())
    }

    fn removal<P>(&mut self, job: &Job<P>, i: usize, verdict: Verdict) -> Result<(), OutputError> {
        let line = &mut self.scratch;
        line.clear();
        line.extend_from_slice(b"{\"id\":");
        json_string(job.ids.get(i), line);
        line.extend_from_slice(b",\"file\":");
        json_string(job.batch.name(), line);
        line.extend_from_slice(format!(",\"line\":{}", job.batch.line(i)).as_bytes());
        let counted = match (verdict, &self.manner) {
            (Verdict::Near { hits } | Verdict::Against { hits, .. }, Manner::Filter { bands, .. })
            | (Verdict::Screened { hits: Some(hits), .. }, Manner::Screened { bands: Some(bands), .. }) => {
                Some((hits, bands))
            }
            _ => None,
        };
        if let Some((hits, bands)) = counted {
            line.extend_from_slice(format!(",\"hits\":{hits},\"bands\":{bands}").as_bytes());
        }
        if let (Verdict::NearTo { name, similarity, origin, .. }, Manner::Compared { measure, .. }) =
            (verdict, &self.manner)
        {
            line.extend_from_slice(b",\"near\":");
            json_string(job.names.get(name as usize), line);
            line.extend_from_slice(format!(",\"{measure}\":{similarity}").as_bytes());
            if let Some((origin, source)) = origin.zip(origin.and_then(|of| self.sources.get(of.source as usize))) {
                line.extend_from_slice(b",\"near_file\":");
                json_string(&source.name, line);
                line.extend_from_slice(format!(",\"near_line\":{}", origin.line).as_bytes());
            }
        }
        if let Verdict::Leaks { findings, .. } = verdict {
            line.extend_from_slice(b",\"findings\":");
            line.extend_from_slice(job.names.get(findings as usize).as_bytes());
        }
        if let Verdict::Repeats { listed: Some(listed), share, .. } = verdict {
            line.extend_from_slice(format!(",\"share\":{share:.4},\"repeated\":").as_bytes());
            line.extend_from_slice(job.names.get(listed as usize).as_bytes());
        }
        let reason = match (verdict, &self.manner) {
            (Verdict::Repeats { is_too_much: true, .. }, Manner::Units { unit, .. }) => {
                format!("too much of it is {unit}s that were there before")
            }
            (Verdict::Repeats { rest: Some(_), .. }, Manner::Units { unit, .. }) => {
                format!("{unit}s that were there before")
            }
            (Verdict::Repeats { .. }, Manner::Units { unit, .. }) => {
                format!("nothing but {unit}s that were there before")
            }
            (Verdict::Leaks { rest: Some(_), .. }, _) => "benchmark items were cut out".to_owned(),
            (Verdict::Leaks { .. }, Manner::Leaks { cut: Some(_) }) => {
                "holds benchmark items and nothing else".to_owned()
            }
            (Verdict::Leaks { .. }, _) => "holds benchmark items".to_owned(),
            (Verdict::Against { filter, .. }, Manner::Filter { against, .. }) => format!("near {}", against[filter]),
            (Verdict::Against { filter, .. }, Manner::Compared { against, .. }) => {
                format!("near {}, not compared", against[filter])
            }
            (Verdict::NearTo { library: Some(library), .. }, Manner::Compared { against, .. }) => {
                format!("near a record of {}", against[library])
            }
            (Verdict::NearTo { .. }, _) if self.manner.is_marked(verdict) => {
                "marked as a duplicate of a kept record".to_owned()
            }
            (Verdict::NearTo { .. }, Manner::Compared { reason, .. }) => (*reason).to_owned(),
            (Verdict::Screened { near: true, .. }, Manner::Screened { filter, .. }) => format!("near {filter}"),
            (Verdict::Screened { .. }, Manner::Screened { filter, .. }) => format!("near nothing in {filter}"),
            (Verdict::Faulty, _) => {
                let fault = job.faults.iter().find(|(faulty, _)| *faulty == i);
                format!("unreadable: {}", fault.map(|(_, error)| chain(&error.fault)).unwrap_or_default())
            }
            _ => "near an earlier record".to_owned(),
        };
        line.extend_from_slice(b",\"reason\":");
        json_string(&reason, line);
        if let (Some(fields), false) = (&self.removed_text, matches!(verdict, Verdict::Faulty)) {
            line.extend_from_slice(b",\"text\":");
            json_string(&text_of(&job.batch, i, fields), line);
        }
        line.extend_from_slice(b"}\n");
        match &mut self.removed {
            Some(removed) => removed.write(line),
            None => Ok(()),
        }
    }

    /// Takes note that there are no more records.
    pub(super) fn end(&mut self) -> Result<(), OutputError> {
        self.out.as_mut().map_or(Ok(()), AnyWriter::end)
    }

    /// Makes all that was written durable and says how long it is.
    pub(super) fn lengths(&mut self) -> Result<Lengths, OutputError> {
        Ok(Lengths {
            out: self.out.as_mut().map_or(Ok(None), AnyWriter::checkpoint)?,
            removed: self.removed.as_mut().map(OutputFile::checkpoint).transpose()?,
            ..Lengths::default()
        })
    }

    /// Lets the outputs appear under their names.
    pub(super) fn finish(self) -> Result<(), OutputError> {
        for other in [self.report, self.removed].into_iter().flatten() {
            other.finish()?;
        }
        self.out.map_or(Ok(()), AnyWriter::finish)
    }
}

/// Gives complete outputs their names, those that do not have them yet.
pub(super) fn finish_named(
    options: &RunOptions,
    sources: &[Source],
    mut output: OutputOptions,
    state: &State,
) -> Result<(), OutputError> {
    output.keep_partial = true;
    let waits = |path: &Path| partial_path(path).exists();
    let removed = options.removed.as_ref().zip(state.outputs.removed);
    let report = options.report.as_ref().zip(state.outputs.report);
    let saved = options.save.as_ref().zip(state.outputs.saved);
    let finish = |(path, length): (&PathBuf, u64)| {
        // One that is neither waiting nor there was lost, which resuming says.
        if !waits(path) && path.exists() {
            return Ok(());
        }
        OutputFile::resume(path, length, &output)?.finish()
    };
    removed.into_iter().chain(report).try_for_each(finish)?;
    if let Some(folder) = options.out.as_ref().filter(|out| is_folder(out)) {
        publish_shards(folder, sources)?;
    } else if let (Some(path), Some(checkpoint)) = (&options.out, state.outputs.out)
        && (waits(path) || !path.exists())
    {
        RecordWriter::resume(path, Vec::new(), checkpoint, &output)?.finish()?;
    }
    saved.map_or(Ok(()), finish)
}

/// Removes what an unfinished run leaves under partial names. Saved filters remove their own.
pub(super) fn remove_partial(options: &RunOptions, sources: &[Source]) {
    if let Some(folder) = options.out.as_ref().filter(|out| is_folder(out)) {
        remove_partial_shards(folder, sources);
    }
    let all = [&options.out, &options.removed, &options.report].into_iter().flatten();
    for path in all.filter(|path| !is_written_through(path)) {
        // What is not there need not be removed, and what cannot be removed is named as partial.
        let _ = std::fs::remove_file(partial_path(path));
    }
}

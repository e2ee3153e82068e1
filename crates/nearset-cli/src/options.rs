//! Options that several commands share.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use nearset::Filter;
use nearset::family::WorkLimit;
use nearset_jobs::run::RunOptions;
use nearset_jobs::{FilterFile, FilterFileError};
use nearset_records::format::known_formats;
use nearset_records::input::{expect_id_field, name_by_file};
use nearset_records::{Fields, Format, ItemField, OutputFile, OutputOptions, Sources, chain, output, resolve};

use crate::show::{self, NOTE, WARNING};

/// What is read.
#[derive(Args)]
pub struct Input {
    /// Files, folders, quoted globs, s3://, gs://, az:// or https:// URLs of these, or - for standard input, read as JSON Lines where
    /// --format names nothing else
    #[arg(required = true, value_name = "IN")]
    pub inputs: Vec<String>,

    #[arg(long, value_name = "FORMAT", help = format!("How records lie in the inputs, where the extension does not tell: {}", known_formats()))]
    pub format: Option<Format>,

    /// The field or column of the id; where a record has none, its id is file:line [default: id]
    #[arg(long, value_name = "NAME")]
    pub id_field: Option<String>,

    /// A text file with the ids of an array's rows, one per line in their order
    #[arg(long, value_name = "FILE", conflicts_with = "id_field")]
    pub ids: Option<PathBuf>,
}

impl Input {
    /// Returns the files that are meant, with a word about those that are passed over.
    pub fn sources(&self, quiet: bool) -> Result<Sources> {
        let mut sources = sources_of(&self.inputs, self.format, quiet)?;
        if let Some(path) = &self.ids {
            name_by_file(&mut sources.list, path)?;
        }
        if let Some(field) = &self.id_field {
            expect_id_field(&sources.list, field)?;
        }
        Ok(sources)
    }

    /// Returns the same, where records go to an output that may be a folder: not to one that is walked for inputs.
    pub fn sources_beside(&self, output: &Option<PathBuf>, quiet: bool) -> Result<Sources> {
        if let Some(output) = output {
            self.expect_beside(output)?;
        }
        self.sources(quiet)
    }

    /// Refuses a folder of outputs below one that is walked for inputs: the next run would take its records for more of them.
    fn expect_beside(&self, output: &Path) -> Result<()> {
        let is_folder = output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/");
        let Some(there) = output.ancestors().find(|above| above.exists() || above.as_os_str().is_empty()) else {
            return Ok(());
        };
        let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
        let folders = self.inputs.iter().map(Path::new).filter(|input| is_folder && input.is_dir());
        for input in folders {
            let folder = input.canonicalize()?;
            // One folder for both has inputs among its outputs, which those refuse.
            let is_same = output.canonicalize().is_ok_and(|output| output == folder);
            if !is_same && there.canonicalize()?.starts_with(folder) {
                bail!(
                    "{}: lies in {}, which is an input: a later run would read it too; choose a folder beside it",
                    output.display(),
                    input.display()
                );
            }
        }
        Ok(())
    }

    /// Returns what a record's item and id are called.
    pub fn fields(&self, item: &str, kind: ItemField) -> Fields {
        let fields = Fields::new(item, kind);
        match &self.id_field {
            Some(_) => fields.with_id(self.id_field.clone()),
            None => fields,
        }
    }
}

/// Returns the files that are meant, with a word about those that are passed over.
pub fn sources_of(inputs: &[String], format: Option<Format>, quiet: bool) -> Result<Sources> {
    let sources = resolve(inputs, format)?;
    if !quiet && let Some(first) = sources.skipped.first() {
        let files = show::counted(sources.skipped.len() as u64, "file");
        anstream::eprintln!("{NOTE} passed over {files} of no known format, such as {}", first.display());
    }
    if !quiet && let Some(first) = sources.skipped_pictures.first() {
        let pictures = show::counted(sources.skipped_pictures.len() as u64, "picture");
        anstream::eprintln!(
            "{NOTE} passed over {pictures} beside other records, such as {}: --format picture reads pictures only",
            first.display()
        );
    }
    Ok(sources)
}

/// What to do with a record that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnError {
    /// Stop, and leave no output
    Fail,
    /// Leave it out, count it and say so
    Skip,
    /// Write it as it is, compared with nothing, count it and say so
    Keep,
}

/// What --on-error takes in commands that write no records. `keep` is not shown, and taken to be refused with the reason.
pub fn without_keep() -> impl TypedValueParser<Value = OnError> {
    let shown = |on_error: &OnError| Some(on_error.to_possible_value()?.hide(*on_error == OnError::Keep));
    PossibleValuesParser::new(OnError::value_variants().iter().filter_map(shown))
        .try_map(|name| OnError::from_str(&name, false))
}

impl From<OnError> for nearset_jobs::run::OnError {
    fn from(on_error: OnError) -> Self {
        match on_error {
            OnError::Fail => Self::Fail,
            OnError::Skip => Self::Skip,
            OnError::Keep => Self::Keep,
        }
    }
}

/// How records are worked on.
#[derive(Args)]
pub struct Work {
    /// What to do with a record that cannot be read
    #[arg(long, value_enum, default_value = "fail")]
    pub on_error: OnError,

    /// Threads that work on records; by default one per core
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,
}

impl Work {
    /// Refuses to keep what can't be read where no records are written.
    pub fn writes_no_records(&self) -> Result<(), Usage> {
        match self.on_error {
            OnError::Keep => {
                Err(Usage("--on-error keep is for commands that write records: give --on-error skip".to_owned()))
            }
            OnError::Fail | OnError::Skip => Ok(()),
        }
    }

    /// Returns how many threads there are to be.
    pub fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}

/// How a run that writes records is begun and told about.
#[derive(Args)]
pub struct Running {
    #[command(flatten)]
    pub work: Work,

    /// Replace outputs that exist, and drop the state of an unfinished run, unless --resume goes on with it
    #[arg(long)]
    pub force: bool,

    /// Go on where an earlier run of the same command was stopped, from its last checkpoint: they are some GB of records apart
    #[arg(long)]
    pub resume: bool,

    /// Print the summary as a line of JSON on standard output (on standard error if that is the output)
    #[arg(long)]
    pub json: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,

    /// Bytes of records between checkpoints, for tests
    #[arg(long, hide = true, env = "NEARSET_CHECKPOINT_BYTES")]
    checkpoint_bytes: Option<u64>,
}

impl Running {
    /// Returns the options of a run over records with these fields, no output named.
    pub fn options(&self, fields: Fields) -> RunOptions {
        let mut options = RunOptions::default();
        options.fields = fields;
        options.on_error = self.work.on_error.into();
        options.force = self.force;
        options.resume = self.resume;
        options.checkpoint_bytes = self.checkpoint_bytes;
        options.threads = self.work.threads();
        options
    }
}

fn parse_threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least one thread is needed".to_owned()),
        Ok(threads) => Ok(threads),
        Err(error) => Err(format!("{error}")),
    }
}

/// Which filters are believed.
#[derive(Args)]
pub struct Trust {
    /// Use a filter that holds more items than it is made for, with a warning: it calls unrelated items near
    #[arg(long)]
    pub allow_overfull: bool,
}

impl Trust {
    /// Returns the filter in a file, whose answers are to be acted on.
    pub fn filter<'f>(&self, file: &'f FilterFile) -> Result<Filter<'f>> {
        match file.filter_to_trust() {
            Err(cause @ FilterFileError::Overfull { .. }) if self.allow_overfull => {
                anstream::eprintln!("{WARNING} {}", chain(&cause));
                Ok(file.filter()?)
            }
            outcome => Ok(outcome?),
        }
    }
}

/// How filters and indexes are opened.
#[derive(Args)]
pub struct Opening {
    /// Allow filters and indexes whose items take a seventh of a second or more each: for files that you trust
    #[arg(long)]
    unlimited_work: bool,
}

impl Opening {
    /// Returns how much work each item may take.
    pub fn work(&self) -> WorkLimit {
        if self.unlimited_work { WorkLimit::Unlimited } else { WorkLimit::Usual }
    }

    /// Returns the file of a filter or index.
    pub fn file(&self, path: &Path) -> Result<FilterFile> {
        Ok(FilterFile::open(path)?.within(self.work()))
    }
}

/// A wrong command line, as opposed to a failure.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Where a picture goes.
#[derive(Args)]
pub struct Plot {
    /// Draw the curve of acceptance as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// Replace an existing picture
    #[arg(long, requires = "plot")]
    force: bool,
}

impl Plot {
    /// Writes the picture whole or not at all, and never over the file that it is about.
    pub fn write(&self, svg: &str, about: Option<&str>) -> Result<()> {
        let Some(path) = &self.plot else { return Ok(()) };
        let mut options = OutputOptions::default();
        options.inputs = about.iter().map(PathBuf::from).collect();
        options.force = self.force;
        let mut file = OutputFile::create(path, &options)?;
        file.write(svg.as_bytes())?;
        file.finish().with_context(|| format!("cannot draw {}", path.display()))
    }
}

/// Writes a line of JSON where scripts look for it: to standard output, unless that is taken.
pub fn print_json(value: &serde_json::Value, stdout_taken: bool) -> Result<()> {
    let text = serde_json::to_string(value).context("cannot write the summary as JSON")?;
    if stdout_taken {
        eprintln!("{text}");
        return Ok(());
    }
    use std::io::Write;
    writeln!(std::io::stdout(), "{text}").context("cannot write to standard output")
}

/// Returns whether an output is standard output, by whatever name.
pub fn is_stdout(path: &Option<PathBuf>) -> bool {
    path.as_deref().is_some_and(output::is_stdout)
}

/// Turns a closed standard output, which is no failure by itself, into one if other outputs were wanted: they are missing then.
pub fn missing_outputs(error: anyhow::Error, outputs: &[&Option<PathBuf>]) -> anyhow::Error {
    let missing: Vec<String> = outputs
        .iter()
        .filter(|path| !is_stdout(path))
        .filter_map(|path| path.as_ref().map(|path| path.display().to_string()))
        .collect();
    if missing.is_empty() || !show::is_broken_pipe(&error) {
        return error;
    }
    anyhow::anyhow!(
        "standard output was closed before its end, so {} was not written: read it to its end, or write to a file",
        missing.join(", ")
    )
}

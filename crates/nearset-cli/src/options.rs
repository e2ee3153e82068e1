//! Options that several commands share.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use nearset_pipeline::{Fields, Format, ItemField, Sources, resolve};

/// What is read.
#[derive(Args)]
pub struct Input {
    /// Files, folders, quoted globs, or - for standard input
    #[arg(required = true, value_name = "IN")]
    pub inputs: Vec<String>,

    /// How records lie in the inputs, where the extension does not tell: jsonl, text, text-file, csv, tsv, parquet, npy, fvecs
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,

    /// The field or column of the id; where a record has none, its id is file:line
    #[arg(long, value_name = "NAME", default_value = "id")]
    pub id_field: String,
}

impl Input {
    /// The files that are meant, with a word about those that are passed over.
    pub fn sources(&self, quiet: bool) -> Result<Sources> {
        let sources = resolve(&self.inputs, self.format)?;
        if !quiet && let Some(first) = sources.skipped.first() {
            let count = sources.skipped.len();
            eprintln!("note: {count} files of no known format were passed over, such as {}", first.display());
        }
        Ok(sources)
    }

    /// What a record's item and id are called.
    pub fn fields(&self, item: &str, kind: ItemField) -> Fields {
        Fields::new(item, kind).with_id(Some(self.id_field.clone()))
    }
}

/// What to do with a record that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnError {
    /// Stop, and leave no output
    Fail,
    /// Leave it out, count it and say so
    Skip,
}

impl From<OnError> for nearset_pipeline::dedup::OnError {
    fn from(on_error: OnError) -> Self {
        match on_error {
            OnError::Fail => Self::Fail,
            OnError::Skip => Self::Skip,
        }
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

/// Whether an output is standard output.
pub fn is_stdout(path: &Option<PathBuf>) -> bool {
    path.as_deref() == Some(std::path::Path::new("-"))
}

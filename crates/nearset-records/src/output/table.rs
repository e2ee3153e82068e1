//! Rows of results that are no records: a table with named columns, or one JSON object per line.

use std::path::Path;

use super::annotate::{Value, cell, json_string, json_value};
use super::{OutputFile, OutputOptions, is_written_through};
use crate::error::OutputError;
use crate::format::{Format, KNOWN_PACKINGS, detect};

/// Writes rows as TSV or CSV with a header, or as JSON Lines, by the output's extension; to standard output, and through pipes and devices
/// whose name tells none of them, as TSV.
pub struct TableFile {
    out: OutputFile,
    /// `None` for JSON Lines.
    delimiter: Option<u8>,
    names: Vec<&'static str>,
    line: Vec<u8>,
}

impl TableFile {
    /// Starts an output of these columns.
    ///
    /// # Errors
    /// As [`OutputFile::create`]; and if the extension is that of another kind of file.
    pub fn create(path: &Path, names: &[&'static str], options: &OutputOptions) -> Result<Self, OutputError> {
        Self::create_or(path, Format::Tsv, names, options)
    }

    /// The same, where pipes and devices whose name tells no format get this one.
    ///
    /// # Errors
    /// As [`TableFile::create`].
    pub fn create_or(
        path: &Path,
        otherwise: Format,
        names: &[&'static str],
        options: &OutputOptions,
    ) -> Result<Self, OutputError> {
        let delimiter = match detect(path).0 {
            Some(Format::Jsonl) => None,
            Some(Format::Tsv | Format::Csv) => detect(path).0.and_then(Format::delimiter),
            None if is_written_through(path) => otherwise.delimiter(),
            _ => {
                let why =
                    format!("results are written as .tsv, .csv or .jsonl, each also {KNOWN_PACKINGS}: name it so");
                return Err(OutputError::Unsupported { path: path.to_owned(), why });
            }
        };
        let out = OutputFile::create(path, options)?;
        let mut table = Self { out, delimiter, names: names.to_vec(), line: Vec::new() };
        if let Some(delimiter) = delimiter {
            table.line = names.join(&*char::from(delimiter).to_string()).into_bytes();
            table.line.push(b'\n');
            table.out.write(&table.line)?;
        }
        Ok(table)
    }

    /// Writes a row.
    ///
    /// # Errors
    /// If the device is full or fails.
    ///
    /// # Panics
    /// If there are more or fewer values than columns.
    pub fn row(&mut self, values: &[Value<'_>]) -> Result<(), OutputError> {
        assert_eq!(values.len(), self.names.len(), "a value for each column");
        let line = &mut self.line;
        line.clear();
        match self.delimiter {
            Some(delimiter) => {
                for (i, &value) in values.iter().enumerate() {
                    if i > 0 {
                        line.push(delimiter);
                    }
                    cell(value, delimiter, line);
                }
            }
            None => {
                line.push(b'{');
                for (i, (name, &value)) in self.names.iter().zip(values).enumerate() {
                    if i > 0 {
                        line.push(b',');
                    }
                    json_string(name, line);
                    line.push(b':');
                    json_value(value, line);
                }
                line.push(b'}');
            }
        }
        line.push(b'\n');
        self.out.write(line)
    }

    /// Lets the output appear under its name.
    ///
    /// # Errors
    /// If the device is full or fails.
    pub fn finish(self) -> Result<(), OutputError> {
        self.out.finish()
    }
}

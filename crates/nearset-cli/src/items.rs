//! Items of any metric out of the inputs, for the commands that work on one filter.

use anyhow::{Context, Result, bail};
use nearset::{Item, Metric, MetricName, Shape, Symbols};
use nearset_jobs::run::RunError;
use nearset_records::extract::item_field;
use nearset_records::input::expect_joined_fields;
use nearset_records::{
    Arena, Batch, Fields, InputError, ItemField, ReadOptions, Reader, RecordError, Source, Sources, chain, extract,
};

use crate::goal::length_option;
use crate::options::{Input, OnError, Usage};

/// Returns the field that a kind of item is usually in.
pub fn usual_field(kind: ItemField) -> &'static str {
    match kind {
        ItemField::Text | ItemField::Symbols => "text",
        ItemField::Hex => "hash",
        _ => "vector",
    }
}

/// Returns what to read for a metric.
///
/// # Errors
/// If such items can't be read, or no record has a field that is to be a part of them.
pub fn fields_for(input: &Input, field: Option<&str>, metric: Metric, sources: &[Source]) -> Result<Fields> {
    let Some(kind) = item_field(metric.form()) else {
        bail!("{metric}: such items cannot be read from files; use the library");
    };
    let fields = input.fields(field.unwrap_or(usual_field(kind)), kind);
    expect_joined_fields(sources, &fields)?;
    Ok(fields)
}

/// Records that are looked at for one that tells how long items are.
const LOOKED_AT: usize = 1000;

/// Returns the metric over the inputs' items, whose length the first item tells where `shape` does not.
pub fn metric_of_inputs(
    name: MetricName,
    shape: Shape,
    input: &Input,
    field: Option<&str>,
    sources: &Sources,
) -> Result<Metric> {
    if let Ok(metric) = name.with(shape) {
        return Ok(metric);
    }
    let any = name.with(Shape { length: Some(1), ..shape })?;
    let fields = fields_for(input, field, any, &sources.list)?;
    if sources.list.iter().any(|source| source.bytes.is_none()) {
        let option = length_option(name).unwrap_or("their length");
        return Err(Usage(format!("a pipe does not tell how long its items are: give {option} N")).into());
    }
    let mut reader = Reader::new(sources.list.clone(), ReadOptions::new(fields.clone()));
    let (mut batch, mut arena) = (Batch::new(), Arena::new());
    let (mut looked_at, mut first_error) = (0, None);
    while looked_at < LOOKED_AT && reader.read_batch(&mut batch)? {
        let extracted = extract(&batch, &fields, &mut arena);
        let length = (0..extracted.len()).find_map(|i| match extracted.item(i) {
            Ok(Item::Bits(bits)) => Some(bits.len()),
            Ok(Item::Vector(vector)) => Some(vector.len()),
            Ok(Item::Symbols(Symbols::Wide(symbols))) => Some(symbols.len()),
            _ => None,
        });
        if let Some(length) = length {
            let length = u32::try_from(length).context("items of more than 2^32 components")?;
            return Ok(name.with(Shape { length: Some(length), ..shape })?);
        }
        looked_at += extracted.len();
        if let Some(Err(error)) = (!extracted.is_empty()).then(|| extracted.item(0)) {
            first_error.get_or_insert_with(|| error.clone());
        }
    }
    if let Some(error) = first_error {
        return Err(error.into());
    }
    bail!("the inputs hold no item: there is nothing to build from")
}

/// Returns a word about inputs that plainly hold something else than texts: hashes in the text field, or no text but a hash.
pub fn other_content(input: &Input, sources: &Sources, fields: &Fields) -> Option<String> {
    /// Records that are looked at.
    const FEW: usize = 32;
    /// Digits of the shortest hash.
    const FEWEST_DIGITS: usize = 16;
    if fields.kind != ItemField::Text || sources.list.iter().any(|source| source.bytes.is_none()) {
        return None;
    }
    let first = |fields: &Fields| -> Option<Vec<Result<String, ()>>> {
        let mut reader = Reader::new(sources.list.clone(), ReadOptions::new(fields.clone()));
        let (mut batch, mut arena) = (Batch::new(), Arena::new());
        // What can't be read the run itself will name.
        reader.read_batch(&mut batch).ok().filter(|&is_there| is_there)?;
        let extracted = extract(&batch, fields, &mut arena);
        let text = |i: usize| match extracted.item(i) {
            Ok(Item::Text(text)) => Ok(text.to_owned()),
            _ => Err(()),
        };
        Some((0..extracted.len().min(FEW)).map(text).collect())
    };
    let digits = |texts: &[Result<String, ()>]| {
        let digits = |text: &Result<String, ()>| {
            let text = text.as_ref().ok()?.trim();
            let digits = text.strip_prefix("0x").unwrap_or(text);
            digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(digits.len())
        };
        let length = texts.first().and_then(digits).filter(|&length| length >= FEWEST_DIGITS)?;
        texts.iter().all(|text| digits(text) == Some(length)).then_some(length)
    };
    let texts = first(fields)?;
    if let Some(digits) = digits(&texts) {
        let (field, bits) = (&fields.item, 4 * digits);
        return Some(format!(
            "the texts look like hashes of {bits} bits: --metric hamming --near N --field {field} compares them by differing bits"
        ));
    }
    let hashes = first(&input.fields(usual_field(ItemField::Hex), ItemField::Text))
        .filter(|_| texts.iter().all(Result::is_err))?;
    digits(&hashes).map(|digits| {
        let field = usual_field(ItemField::Hex);
        format!("the field {field:?} holds hashes of {} bits: --metric hamming --near N compares them", 4 * digits)
    })
}

/// Counts records that cannot be read, or fails at the first.
pub struct Faults {
    on_error: OnError,
    /// How many there were.
    pub count: u64,
    first: Option<String>,
}

impl Faults {
    /// Errors that are shown.
    const SHOWN: u64 = 20;

    pub fn new(on_error: OnError) -> Self {
        Self { on_error, count: 0, first: None }
    }

    /// Takes note of a record.
    pub fn record(&mut self, error: RecordError) -> Result<()> {
        self.note(error.into())
    }

    /// Takes note of any error.
    pub fn note(&mut self, error: anyhow::Error) -> Result<()> {
        // What can't be reached now is not damaged.
        let is_fatal = error.downcast_ref().is_some_and(InputError::is_fatal);
        if self.on_error == OnError::Fail || is_fatal {
            return Err(error);
        }
        self.count += 1;
        let error = chain(error.as_ref());
        if self.count <= Self::SHOWN {
            eprintln!("skipped   {error}");
        }
        self.first.get_or_insert(error);
        Ok(())
    }

    /// Refuses to call it done if nothing could be read: a field was misspelt, say.
    pub fn expect_readable(&self, read: u64) -> Result<()> {
        match &self.first {
            Some(first) if read == 0 => {
                Err(RunError::NothingReadable { records: self.count, first: first.clone() }.into())
            }
            _ => Ok(()),
        }
    }
}

//! What a filter or index is, and what it says of an item.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use nearset::family::{Form, Hashed};
use nearset::item::ItemBuffer;
use nearset::{Filter, Kind, Metric, Neighbour};
use nearset_jobs::FilterFile;
use nearset_view::curves::filter_chart;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::info;

/// Items that are shown as near, at most.
const TOP: usize = 10;

/// Which file is to be shown.
#[derive(Deserialize)]
pub struct Which {
    path: PathBuf,
}

/// An item to ask about.
#[derive(Deserialize)]
pub struct Question {
    path: PathBuf,
    item: String,
}

/// Tells what a file holds.
pub fn describe(Which { path }: Which) -> Result<Value> {
    let file = FilterFile::open(&path)?;
    if matches!(file.kind()?, Kind::Hamming | Kind::Lsh) {
        let index = file.index()?;
        let asked = index.metric().map_or("", item_of);
        return Ok(json!({
            "path": path, "index": true, "facts": info::index_facts(&index), "items": index.len(), "asked": asked,
        }));
    }
    let filter = file.filter()?;
    let metric = filter.spec().metric();
    let generation = |state: nearset::GenerationState| json!({ "items": state.len, "capacity": state.capacity, "fill": state.fill, "bytes": state.bytes });
    Ok(json!({
        "path": path,
        "index": false,
        "facts": info::filter_facts(&filter, &file),
        "items": filter.len(),
        "capacity": filter.capacity(),
        "overfull": filter.expect_not_overfull(0).is_err(),
        "generations": filter.generations().map(generation).collect::<Vec<_>>(),
        "svg": metric.map(|metric| filter_chart(&filter, metric).to_svg()),
        "asked": metric.map_or("", item_of),
    }))
}

/// Says what kind of item is typed.
fn item_of(metric: Metric) -> &'static str {
    match metric.form() {
        Form::Bits(_) => "a hash in hexadecimal digits",
        Form::Vector(_) => "a vector: numbers between commas",
        Form::Set(_) | Form::Weighted(_) => "a text",
        _ => "an item",
    }
}

/// Tells what a filter or index says of an item.
pub fn ask(Question { path, item }: Question) -> Result<Value> {
    let file = FilterFile::open(&path)?;
    if matches!(file.kind()?, Kind::Hamming | Kind::Lsh) {
        let index = file.index()?;
        let Some(metric) = index.metric() else { bail!("{}: its items cannot be typed", path.display()) };
        let buffer = parsed(metric, &item)?;
        let found = index.search(buffer.view(), Some(TOP), None).context("the item cannot be searched for")?;
        let near =
            |Neighbour { id, distance }: Neighbour| json!({ "name": index.name(id), "at": metric.own_unit(distance) });
        return Ok(json!({ "unit": metric.unit(), "found": found.into_iter().map(near).collect::<Vec<_>>() }));
    }
    let filter = file.filter()?;
    let Some(metric) = filter.spec().metric() else { bail!("{}: its items cannot be typed", path.display()) };
    let buffer = parsed(metric, &item)?;
    let mut hashed = Hashed::default();
    let found = filter.find(buffer.view(), &mut hashed).context("the item cannot be looked up")?;
    let newest = filter.generations().next_back().and_then(|newest| newest.chance_hit);
    let threshold = newest.zip(filter.spec().near().cloned()).and_then(|(hit, spec)| spec.rule.threshold_at(hit));
    Ok(json!({
        "near": found.near,
        "hits": found.hits,
        "bands": found.bands,
        "threshold": threshold,
        "by_band": hits_by_band(&filter, &hashed),
        "likely": filter.acceptance_of_hits(found),
    }))
}

/// Which bands hit, in any generation: each is asked alone. Filters that probe neighbours can't be asked so.
fn hits_by_band(filter: &Filter<'_>, hashed: &Hashed) -> Vec<bool> {
    let mut alone = vec![None; hashed.keys.len()];
    let hit = |(band, key): (usize, &Option<_>)| {
        alone[band] = *key;
        let found = filter.contains_keys(&alone).ok()?;
        alone[band] = None;
        Some(found.first()?.hits > 0)
    };
    hashed.keys.iter().enumerate().map(hit).collect::<Option<Vec<bool>>>().unwrap_or_default()
}

/// An item as it is typed.
fn parsed(metric: Metric, text: &str) -> Result<ItemBuffer> {
    let mut buffer = ItemBuffer::default();
    match metric.form() {
        Form::Bits(_) => buffer.push_hex(text.trim()).context("this is no hash in hexadecimal digits")?,
        Form::Vector(_) => buffer.push_numbers(text.trim()).context("these are no numbers between commas")?,
        _ => buffer.push(text.into()),
    }
    Ok(buffer)
}

//! Fields added to a record, all other bytes of it kept.
//!
//! A JSON object gets them before its closing brace, a row as cells behind those of its header. Where a record has been annotated before,
//! its values are replaced where they stand, so that each field is there once, however often a run is repeated.
//! Invariant: what a record that nearset has not annotated has under one of these names is not overwritten. Such a record is known by its
//! [`MARKS`]: one of them is true or false in every record that was annotated. A record without a mark that has a value under an added
//! name, or one of another kind, has a field of its own by that name and is refused. A null, or an empty cell, may be set either way.
//! What another annotation has added is emptied only where it stands behind the mark with nothing else between, as annotations append it.

use std::io::Write;

use super::added::{Added, AddedKind, appended};
use crate::error::RecordFault;
use crate::extract::json::{self, Kind, Member};
use crate::extract::{Cells, strip_line_end};
use crate::input::BYTE_ORDER_MARK;

/// Fields of which one is the first that every annotation adds, true or false: by `dedup --annotate`, by `query --tag` and by
/// `decontaminate --annotate`.
const MARKS: [&str; 3] = ["near_duplicate", "near", "contaminated"];

/// Whether a name is the mark of an annotation like this one. Leaks are marked by themselves: what `decontaminate` has not written is
/// not its own because of a mark of the others, nor the other way round.
fn is_mark(name: &str, added: &[Added]) -> bool {
    let is_of_leaks = |name: &str| name == "contaminated";
    MARKS.contains(&name) && is_of_leaks(name) == added.iter().any(|added| is_of_leaks(&added.name))
}

/// What a field is set to.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// A string.
    Text(&'a str),
    /// A whole number.
    Integer(i64),
    /// A number; JSON has no infinities, so what is not finite becomes null.
    Number(f64),
    /// True or false.
    Bool(bool),
    /// null; an empty cell.
    Null,
}

/// Appends the object on the line with the fields set, line end included.
pub(super) fn json_object(
    record: &[u8],
    added: &[Added],
    values: &[Value<'_>],
    out: &mut Vec<u8>,
) -> Result<(), RecordFault> {
    let content = record.trim_ascii_end();
    let Some(body) = content.strip_suffix(b"}") else {
        let why = "a closing brace is needed at the end of the line";
        return Err(RecordFault::InvalidJson { column: content.len() + 1, why });
    };
    let place = |key: &[u8]| added.iter().position(|added| added.name.as_bytes() == key);
    let mark = |key: &[u8]| str::from_utf8(key).is_ok_and(|key| is_mark(key, added)).then_some(added.len());
    let (marks, mut present): (Vec<Member>, Vec<Member>) =
        json::members(content, |key| place(key).or_else(|| mark(key)))?
            .into_iter()
            .partition(|found| found.name == added.len());
    let mut end = present.iter().rfind(|found| found.name == 0 && found.kind == Kind::Bool).map(|mark| mark.span.end);
    present.retain(|found| {
        let is_appended = end == Some(found.behind);
        if is_appended {
            end = Some(found.span.end);
        }
        !added[found.name].is_stale || is_appended && fits(found, added)
    });
    check_members(&marks, &present, added)?;
    let is_missing = |(place, added): (usize, &Added)| added.is_own && present.iter().all(|found| found.name != place);
    if let Some(missing) = added.iter().enumerate().position(is_missing) {
        return Err(RecordFault::Nested { field: added[missing].name.clone() });
    }
    let mut set = vec![false; added.len()];
    let mut at = 0;
    for Member { name, behind, span, .. } in present {
        // Of equal keys the first is set and the others go, with the comma before them.
        let is_first = !std::mem::replace(&mut set[name], true);
        out.extend_from_slice(&record[at..if is_first { span.start } else { behind }]);
        if is_first {
            json_value(value_of(values, name), out);
        }
        at = span.end;
    }
    out.extend_from_slice(&body[at..]);
    let mut separator = if body.trim_ascii_end().ends_with(b"{") { "" } else { "," };
    // Stale fields come last, and have no values.
    for ((Added { name, .. }, value), _) in added.iter().zip(values).zip(set).filter(|(_, set)| !set) {
        out.extend_from_slice(separator.as_bytes());
        separator = ",";
        json_string(name, out);
        out.push(b':');
        json_value(*value, out);
    }
    out.extend_from_slice(&record[body.len()..]);
    Ok(())
}

/// Returns what a field is set to: one that is stale, to null.
fn value_of<'v>(values: &[Value<'v>], field: usize) -> Value<'v> {
    values.get(field).copied().unwrap_or(Value::Null)
}

/// Returns whether a value is of the kind that the field has.
fn fits(member: &Member, added: &[Added]) -> bool {
    match added[member.name].kind {
        AddedKind::Bool => member.kind == Kind::Bool,
        AddedKind::Integer | AddedKind::Number => member.kind == Kind::Number,
        AddedKind::Text => member.kind == Kind::String,
    }
}

/// Refuses values that no earlier run has written. Of equal keys the last one counts, as for every other reader.
fn check_members(marks: &[Member], present: &[Member], added: &[Added]) -> Result<(), RecordFault> {
    let own = present.iter().rfind(|member| is_mark(&added[member.name].name, added));
    let annotated = own.into_iter().chain(marks).any(|mark| mark.kind == Kind::Bool);
    let may_be_set =
        |member: &Member| member.kind == Kind::Null || (annotated || added[member.name].is_own) && fits(member, added);
    match present.iter().find(|member| !may_be_set(member)) {
        Some(member) => {
            let (field, found) = (added[member.name].name.clone(), member.kind.name());
            Err(RecordFault::FieldTaken { field, found })
        }
        None => Ok(()),
    }
}

fn is_bool(text: &str) -> bool {
    text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
}

/// Where added fields go in the rows of a table.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    /// By column of the table: what becomes of it.
    own: Vec<Cell>,
    /// Added fields that the table does not have, in their order.
    new: Vec<usize>,
    /// Columns that are true or false in rows that were annotated.
    marks: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Kept,
    /// Set to this added field.
    Set(usize),
    /// A second column of a name that is set.
    Dropped,
}

impl Columns {
    /// For a table with these columns.
    ///
    /// # Errors
    /// If it has a column of an added name that no earlier run has added.
    pub fn new(columns: &[String], added: &[Added]) -> Result<Self, RecordFault> {
        let place = |added: &Added| columns.iter().position(|column| *column == added.name);
        let places: Vec<Option<usize>> = added.iter().map(place).collect();
        let marks: Vec<usize> = (0..columns.len()).filter(|&column| is_mark(&columns[column], added)).collect();
        let is_taken = |(place, added): (&Option<usize>, &Added)| place.is_some() && !added.is_own && !added.is_stale;
        if let (true, Some(taken)) = (marks.is_empty(), places.iter().zip(added).position(is_taken)) {
            return Err(RecordFault::FieldTaken { field: added[taken].name.clone(), found: "other values" });
        }
        let appended = appended(columns.iter().map(String::as_str), added);
        let cell = |(i, column): (usize, &String)| match added.iter().position(|added| added.name == *column) {
            Some(field) if added[field].is_stale && !appended.contains(&i) => Cell::Kept,
            Some(field) if places[field] == Some(i) => Cell::Set(field),
            Some(field) if added[field].is_stale => Cell::Kept,
            Some(field) if added[field].is_own => Cell::Kept,
            Some(_) => Cell::Dropped,
            None => Cell::Kept,
        };
        let new = (0..Added::values(added)).filter(|&field| places[field].is_none()).collect();
        Ok(Self { own: columns.iter().enumerate().map(cell).collect(), new, marks })
    }

    /// Appends the header with the names added, line end included.
    ///
    /// # Errors
    /// If the header is no row.
    pub fn header(&self, header: &[u8], delimiter: u8, added: &[Added], out: &mut Vec<u8>) -> Result<(), RecordFault> {
        let names = header.strip_prefix(BYTE_ORDER_MARK).unwrap_or(header);
        out.extend_from_slice(&header[..header.len() - names.len()]);
        self.write(names, delimiter, out, |set, own, out| {
            match own {
                Some(own) => out.extend_from_slice(own),
                None => cell(Value::Text(&added[set].name), delimiter, out),
            }
            Ok(())
        })
    }

    /// Appends the row with the cells set, line end included.
    ///
    /// # Errors
    /// If a cell holds what no earlier run has written, or cells can't be told apart.
    pub fn row(
        &self,
        record: &[u8],
        delimiter: u8,
        added: &[Added],
        values: &[Value<'_>],
        out: &mut Vec<u8>,
    ) -> Result<(), RecordFault> {
        let annotated = self.is_annotated(record, delimiter);
        self.write(record, delimiter, out, |set, own, out| {
            let raw = own.unwrap_or_default();
            let text = String::from_utf8_lossy(raw);
            let text = text.trim_matches('"');
            let fits = match added[set].kind {
                AddedKind::Bool => is_bool(text),
                AddedKind::Integer | AddedKind::Number => text.parse::<f64>().is_ok(),
                AddedKind::Text => true,
            };
            if added[set].is_stale && !(annotated && fits) {
                out.extend_from_slice(raw);
                return Ok(());
            }
            if !(text.is_empty() || (annotated || added[set].is_own) && fits) {
                return Err(RecordFault::FieldTaken { field: added[set].name.clone(), found: "another kind of value" });
            }
            cell(value_of(values, set), delimiter, out);
            Ok(())
        })
    }

    /// Returns whether a mark in the row is true or false.
    fn is_annotated(&self, record: &[u8], delimiter: u8) -> bool {
        if self.marks.is_empty() {
            return false;
        }
        let content = strip_line_end(record);
        let mut cells = Cells::new(content, delimiter).enumerate();
        cells.any(|(i, cell)| {
            self.marks.contains(&i)
                && cell.is_ok_and(|cell| is_bool(String::from_utf8_lossy(cell.raw(content)).trim_matches('"')))
        })
    }

    /// Appends a row; `set` writes the cell of an added field, given what is there, as it stands in the row.
    fn write(
        &self,
        record: &[u8],
        delimiter: u8,
        out: &mut Vec<u8>,
        mut set: impl FnMut(usize, Option<&[u8]>, &mut Vec<u8>) -> Result<(), RecordFault>,
    ) -> Result<(), RecordFault> {
        let content = strip_line_end(record);
        let line_end = &record[content.len()..];
        let cells: Result<Vec<_>, RecordFault> = Cells::new(content, delimiter).collect();
        let mut first = true;
        let mut separate = |out: &mut Vec<u8>| {
            if !std::mem::take(&mut first) {
                out.push(delimiter);
            }
        };
        let cells = match cells {
            Ok(cells) => cells,
            // What is broken behind the item may stay so, as long as nothing in it is to be set.
            Err(_) if self.own.iter().all(|&cell| cell == Cell::Kept) => {
                separate(out);
                out.extend_from_slice(content);
                for &field in &self.new {
                    separate(out);
                    set(field, None, out)?;
                }
                out.extend_from_slice(line_end);
                return Ok(());
            }
            Err(fault) => return Err(fault),
        };
        // Short rows are filled up, and what a row has beyond its header stays behind what is added: each cell stands below its name.
        for i in 0..cells.len().max(self.own.len()) + 1 {
            if i == self.own.len() {
                for &field in &self.new {
                    separate(out);
                    set(field, None, out)?;
                }
            }
            let raw = cells.get(i).map(|cell| cell.raw(content));
            match self.own.get(i) {
                Some(Cell::Dropped) => {}
                Some(&Cell::Set(field)) => {
                    separate(out);
                    set(field, raw.or(Some(b"")), out)?;
                }
                Some(Cell::Kept) => {
                    separate(out);
                    out.extend_from_slice(raw.unwrap_or_default());
                }
                None => {
                    if let Some(raw) = raw {
                        separate(out);
                        out.extend_from_slice(raw);
                    }
                }
            }
        }
        out.extend_from_slice(line_end);
        Ok(())
    }
}

/// Appends a cell of a table.
pub(super) fn cell(value: Value<'_>, delimiter: u8, out: &mut Vec<u8>) {
    let text = match value {
        Value::Text(text) => text,
        Value::Null => return,
        plain => return json_value(plain, out),
    };
    if text.bytes().any(|byte| byte == delimiter || matches!(byte, b'"' | b'\r' | b'\n')) {
        out.push(b'"');
        out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

/// Appends a JSON value.
pub(super) fn json_value(value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Text(text) => json_string(text, out),
        Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Number(number) if number.is_finite() => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Bool(flag) => out.extend_from_slice(if flag { b"true" } else { b"false" }),
        Value::Number(_) | Value::Null => out.extend_from_slice(b"null"),
    }
}

/// Appends a JSON string.
pub fn json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let (mut plain, mut specials) = (0, Vec::new());
    // In parts, so that little is remembered of a long text.
    for (part, start) in bytes.chunks(PART).zip((0..).step_by(PART)) {
        specials.clear();
        json::specials(part, &mut specials);
        for at in specials.iter().map(|at| start + at) {
            json::append(bytes, plain..at, out);
            plain = at + 1;
            match bytes[at] {
                b'"' => out.extend_from_slice(b"\\\""),
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                // Writing to a vector does not fail.
                control => drop(write!(out, "\\u{control:04x}")),
            }
        }
    }
    json::append(bytes, plain..bytes.len(), out);
    out.push(b'"');
}

/// Bytes of a string that are looked through at a time.
const PART: usize = 16 << 10;

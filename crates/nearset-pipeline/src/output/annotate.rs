//! Fields added to a record, all of its own bytes kept.
//!
//! A JSON object gets them before its closing brace, so a field of the same name that was there before is overruled in
//! every parser that lets the last one win. A row gets them as cells behind its last.

use std::io::Write;

use super::Added;
use crate::error::RecordFault;
use crate::extract::strip_line_end;

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

/// Appends the object on the line with the fields added, line end included.
pub(super) fn json_object(
    record: &[u8],
    added: &[Added],
    values: &[Value<'_>],
    out: &mut Vec<u8>,
) -> Result<(), RecordFault> {
    let content = record.trim_ascii_end();
    let Some(body) = content.strip_suffix(b"}") else {
        let cause = "a closing brace is needed at the end of the line";
        return Err(RecordFault::InvalidJson { column: content.len() + 1, cause });
    };
    out.extend_from_slice(body);
    let mut separator = if body.trim_ascii_end().ends_with(b"{") { "" } else { "," };
    for (Added { name, .. }, value) in added.iter().zip(values) {
        out.extend_from_slice(separator.as_bytes());
        separator = ",";
        json_string(name, out);
        out.push(b':');
        json_value(*value, out);
    }
    out.extend_from_slice(&record[body.len()..]);
    Ok(())
}

/// Appends the row with the cells added, line end included.
pub(super) fn row(record: &[u8], delimiter: u8, values: &[Value<'_>], out: &mut Vec<u8>) {
    let content = strip_line_end(record);
    out.extend_from_slice(content);
    for &value in values {
        out.push(delimiter);
        cell(value, delimiter, out);
    }
    out.extend_from_slice(&record[content.len()..]);
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
pub(crate) fn json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut plain = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0..0x20 => b"",
            _ => continue,
        };
        out.extend_from_slice(&bytes[plain..at]);
        plain = at + 1;
        if escape.is_empty() {
            // Writing to a vector does not fail.
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            out.extend_from_slice(escape);
        }
    }
    out.extend_from_slice(&bytes[plain..]);
    out.push(b'"');
}

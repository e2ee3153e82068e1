//! Fields of a JSON object, found in one strict pass that copies nothing.
//!
//! Claim: a line is accepted exactly when it is one JSON object by RFC 8259 (nested at most [`MAX_DEPTH`] deep), whichever
//! fields are wanted; the tests compare with `serde_json` on damaged lines. A parser that stops at the wanted field would
//! pass a broken rest of the line on as a kept record.
//! Of equal keys the last wins, as in Python and JavaScript. A field `a.b` is the key `"a.b"`, or failing that the key `b`
//! of the object at `a`.
//! Invariant: the bytes are valid UTF-8, which the caller checks for a whole batch at once.

use std::ops::Range;

use crate::error::RecordFault;

/// How deep values may be nested, as in `serde_json`.
const MAX_DEPTH: usize = 128;

/// What kind of value stands in a range of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The range lies within the quotes.
    String {
        escaped: bool,
    },
    Number,
    Array,
    Object,
    Bool,
    Null,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::String { .. } => "a string",
            Kind::Number => "a number",
            Kind::Array => "an array",
            Kind::Object => "an object",
            Kind::Bool => "a boolean",
            Kind::Null => "null",
        }
    }
}

/// A value, validated but not decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    pub kind: Kind,
    pub range: Range<usize>,
}

/// The wanted fields: the item's and the id's.
pub(crate) type Wanted<'p> = [Option<&'p str>; 2];

/// Values of the wanted fields, and whether each was found under its literal name.
type Found = [Option<(Value, bool)>; 2];

/// Finds the wanted fields of the one object on the line.
pub(crate) fn find(line: &[u8], wanted: Wanted<'_>) -> Result<[Option<Value>; 2], RecordFault> {
    let mut scanner = Scanner { bytes: line, at: 0 };
    scanner.space();
    let mut found = Found::default();
    if scanner.peek() == Some(b'{') {
        scanner.object(wanted, &mut found, MAX_DEPTH)?;
    } else {
        let value = scanner.value(MAX_DEPTH)?;
        scanner.end()?;
        return Err(RecordFault::NotAnObject { found: value.kind.name() });
    }
    scanner.end()?;
    Ok(found.map(|found| found.map(|(value, _)| value)))
}

/// The one value on the line.
pub(crate) fn whole(line: &[u8]) -> Result<Value, RecordFault> {
    let mut scanner = Scanner { bytes: line, at: 0 };
    scanner.space();
    let value = scanner.value(MAX_DEPTH)?;
    scanner.end()?;
    Ok(value)
}

/// The keys of a valid object, for a message.
pub(crate) fn keys(line: &str) -> Vec<String> {
    let mut scanner = Scanner { bytes: line.as_bytes(), at: 0 };
    let mut keys = Vec::new();
    scanner.space();
    let _ = scanner.members(MAX_DEPTH, |scanner, key, escaped, depth| {
        let mut decoded = String::new();
        if !escaped || unescape(line, key.clone(), &mut decoded).is_err() {
            decoded.push_str(&line[key]);
        }
        keys.push(decoded);
        scanner.value(depth).map(drop)
    });
    keys
}

/// Appends the characters that the escaped string in `range` of the line stands for.
pub(crate) fn unescape(line: &str, range: Range<usize>, out: &mut String) -> Result<(), RecordFault> {
    let bytes = line.as_bytes();
    let Range { start: mut at, end } = range;
    out.reserve(end - at);
    while at < end {
        let Some(plain) = memchr::memchr(b'\\', &bytes[at..end]) else {
            out.push_str(&line[at..end]);
            break;
        };
        out.push_str(&line[at..at + plain]);
        at += plain;
        let column = at + 1;
        at += 2;
        out.push(match bytes[at - 1] {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let high = hex4(bytes, at);
                at += 4;
                let mut code = u32::from(high);
                if (0xd800..0xdc00).contains(&high) && bytes[at..end].starts_with(b"\\u") {
                    let low = hex4(bytes, at + 2);
                    if (0xdc00..0xe000).contains(&low) {
                        at += 6;
                        code = 0x10000 + ((code & 0x3ff) << 10) + u32::from(low & 0x3ff);
                    }
                }
                char::from_u32(code).ok_or(RecordFault::LoneSurrogate { column, code: high })?
            }
            // The scanner lets only these three through.
            quote_or_slash => char::from(quote_or_slash),
        });
    }
    Ok(())
}

/// Four hexadecimal digits, which the scanner has checked.
fn hex4(bytes: &[u8], at: usize) -> u16 {
    bytes[at..at + 4].iter().fold(0, |code, &digit| {
        let value = char::from(digit).to_digit(16).unwrap_or(0) as u16;
        code << 4 | value
    })
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn fault<T>(&self, cause: &'static str) -> Result<T, RecordFault> {
        Err(RecordFault::InvalidJson { column: self.at + 1, cause })
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn end(&mut self) -> Result<(), RecordFault> {
        self.space();
        if self.at == self.bytes.len() { Ok(()) } else { self.fault("something follows the value on its line") }
    }

    /// Walks an object: `member` gets each key's range within its quotes and must step over the value.
    fn members(
        &mut self,
        depth: usize,
        mut member: impl FnMut(&mut Self, Range<usize>, bool, usize) -> Result<(), RecordFault>,
    ) -> Result<(), RecordFault> {
        if depth == 0 {
            return self.fault("nested too deep");
        }
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.fault("a key in double quotes is needed here");
            }
            let (key, escaped) = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return self.fault("a colon is needed after a key");
            }
            self.at += 1;
            self.space();
            member(self, key, escaped, depth - 1)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                None => return self.fault("the line ends within an object"),
                Some(_) => return self.fault("a comma or a closing brace is needed here"),
            }
            self.space();
        }
    }

    fn object(&mut self, wanted: Wanted<'_>, found: &mut Found, depth: usize) -> Result<(), RecordFault> {
        self.members(depth, |scanner, key, escaped, depth| {
            let bytes = scanner.bytes;
            let mut decoded = String::new();
            let key: &[u8] = if escaped {
                // A key with half a surrogate pair is no name that can be asked for.
                let text = std::str::from_utf8(&bytes[key.clone()]).unwrap_or_default();
                let _ = unescape(text, 0..text.len(), &mut decoded);
                decoded.as_bytes()
            } else {
                &bytes[key]
            };
            let below = wanted.map(|path| path.and_then(|path| below(path, key)));
            if below.iter().any(Option::is_some) && scanner.peek() == Some(b'{') {
                let mut nested = Found::default();
                scanner.object(below, &mut nested, depth)?;
                for (slot, value) in found.iter_mut().zip(nested) {
                    if let Some((value, _)) = value
                        && !matches!(slot, Some((_, true)))
                    {
                        *slot = Some((value, false));
                    }
                }
                return Ok(());
            }
            let value = scanner.value(depth)?;
            for (slot, path) in found.iter_mut().zip(wanted) {
                if path.is_some_and(|path| path.as_bytes() == key) {
                    *slot = Some((value.clone(), true));
                }
            }
            Ok(())
        })
    }

    fn value(&mut self, depth: usize) -> Result<Value, RecordFault> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'"') => {
                let (range, escaped) = self.string()?;
                return Ok(Value { kind: Kind::String { escaped }, range });
            }
            Some(b'{') => {
                self.members(depth, |scanner, _, _, depth| scanner.value(depth).map(drop))?;
                Kind::Object
            }
            Some(b'[') => self.array(depth)?,
            Some(b't') => self.literal(b"true", Kind::Bool)?,
            Some(b'f') => self.literal(b"false", Kind::Bool)?,
            Some(b'n') => self.literal(b"null", Kind::Null)?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            None => return self.fault("the line ends where a value is needed"),
            Some(_) => return self.fault("a value is needed here"),
        };
        Ok(Value { kind, range: start..self.at })
    }

    fn array(&mut self, depth: usize) -> Result<Kind, RecordFault> {
        if depth == 0 {
            return self.fault("nested too deep");
        }
        self.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Kind::Array);
        }
        loop {
            self.value(depth - 1)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Kind::Array);
                }
                None => return self.fault("the line ends within an array"),
                Some(_) => return self.fault("a comma or a closing bracket is needed here"),
            }
            self.space();
        }
    }

    fn literal(&mut self, word: &[u8], kind: Kind) -> Result<Kind, RecordFault> {
        if !self.bytes[self.at..].starts_with(word) {
            return self.fault("a value is needed here");
        }
        self.at += word.len();
        Ok(kind)
    }

    fn digits(&mut self) -> Result<(), RecordFault> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { self.fault("a digit is needed here") }
    }

    fn number(&mut self) -> Result<Kind, RecordFault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                return self.fault("a number must not start with 0");
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Kind::Number)
    }

    /// Steps over a string; gives the range within its quotes and whether anything in it is escaped.
    fn string(&mut self) -> Result<(Range<usize>, bool), RecordFault> {
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += plain_prefix(&self.bytes[self.at..]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok((start..self.at - 1, escaped));
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return self.fault("a control character in a string must be escaped"),
                None => return self.fault("the line ends within a string"),
            }
        }
    }

    fn escape(&mut self) -> Result<(), RecordFault> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 2..self.at + 6);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return self.fault("\\u needs four hexadecimal digits");
                }
                self.at += 6;
            }
            _ => return self.fault("no escape of this kind exists"),
        }
        Ok(())
    }
}

/// What remains of a dotted path below `key`.
fn below<'p>(path: &'p str, key: &[u8]) -> Option<&'p str> {
    let rest = path.as_bytes().strip_prefix(key)?;
    // A prefix that ends before a dot ends between characters.
    if rest.first() == Some(&b'.') { path.get(key.len() + 1..).filter(|rest| !rest.is_empty()) } else { None }
}

fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

/// How many bytes come before the first quote, backslash or control character.
fn plain_prefix(bytes: &[u8]) -> usize {
    let mut at = 0;
    // A branch a chunk instead of a branch a byte lets the compiler use vector registers.
    while let Some(chunk) = bytes[at..].first_chunk::<32>() {
        if chunk.iter().fold(false, |any, &byte| any | is_special(byte)) {
            break;
        }
        at += 32;
    }
    at + bytes[at..].iter().position(|&byte| is_special(byte)).unwrap_or(bytes.len() - at)
}

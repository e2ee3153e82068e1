//! Fields of a JSON object, found in one strict pass that copies nothing.
//!
//! Claim: a line is accepted exactly when it is one JSON object by RFC 8259 (nested at most [`MAX_DEPTH`] deep), whichever
//! fields are wanted; the tests compare with `serde_json` on damaged lines. A parser that stops at the wanted field would
//! pass a broken rest of the line on as a kept record.
//! Of equal keys the last wins, as in Python and JavaScript. A field `a.b` is the key `"a.b"`, or failing that the key `b`
//! of the object at `a`.
//! Invariant: the bytes are valid UTF-8, which the caller checks for a whole batch at once.

mod strings;

use std::ops::Range;

use self::strings::string_end;
pub(crate) use self::strings::{append, specials};
use crate::error::RecordFault;

/// How deep values may be nested, as in `serde_json`.
const MAX_DEPTH: usize = 128;

/// What kind of value stands in a range of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The range lies within the quotes.
    String,
    Number,
    Array,
    Object,
    Bool,
    Null,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::String => "a string",
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
    /// Which of the line's escapes lie in it.
    pub escapes: Range<usize>,
}

/// The wanted fields: the item's and the id's.
pub(crate) type Wanted<'p> = [Option<&'p str>; 2];

/// Values of the wanted fields, and whether each was found under its literal name.
type Found = [Option<(Value, bool)>; 2];

/// Finds the wanted fields of the one object on the line.
pub(crate) fn find(
    line: &[u8],
    wanted: Wanted<'_>,
    escapes: &mut Vec<usize>,
) -> Result<[Option<Value>; 2], RecordFault> {
    let mut scanner = Scanner::new(line, escapes);
    scanner.space();
    let mut found = Found::default();
    if scanner.peek() == Some(b'{') {
        scanner.object(wanted, &mut found, MAX_DEPTH)?;
    } else {
        let is_array = scanner.peek() == Some(b'[');
        let value = scanner.value(MAX_DEPTH).and_then(|value| scanner.end().map(|()| value));
        // An array over many lines is broken on each of them, and it is an array that the reader must know of.
        return match value {
            Ok(value) => Err(RecordFault::NotAnObject { found: value.kind.name() }),
            Err(_) if is_array => Err(RecordFault::NotAnObject { found: "an array" }),
            Err(fault) => Err(fault),
        };
    }
    scanner.end()?;
    Ok(found.map(|found| found.map(|(value, _)| value)))
}

/// Returns the one value on the line.
pub(crate) fn whole(line: &[u8], escapes: &mut Vec<usize>) -> Result<Value, RecordFault> {
    let mut scanner = Scanner::new(line, escapes);
    scanner.space();
    let value = scanner.value(MAX_DEPTH)?;
    scanner.end()?;
    Ok(value)
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// Which of the names it has.
    pub name: usize,
    /// Where the member before it ends.
    pub behind: usize,
    /// Its value, quotes included.
    pub span: Range<usize>,
    pub kind: Kind,
}

/// Returns the members of the one object on the line whose decoded keys `name` knows, in their order.
pub(crate) fn members(line: &[u8], name: impl Fn(&[u8]) -> Option<usize>) -> Result<Vec<Member>, RecordFault> {
    let mut escapes = Vec::new();
    let mut scanner = Scanner::new(line, &mut escapes);
    let (mut found, mut decoded, mut behind) = (Vec::new(), Vec::new(), 0);
    scanner.space();
    if scanner.peek() != Some(b'{') {
        return scanner.fault("an object is needed here");
    }
    scanner.members(MAX_DEPTH, |scanner, key, depth| {
        let name = name(scanner.key(key, &mut decoded));
        let start = scanner.at;
        let value = scanner.value(depth)?;
        found.extend(name.map(|name| Member { name, behind, span: start..scanner.at, kind: value.kind }));
        behind = scanner.at;
        Ok(())
    })?;
    scanner.end()?;
    Ok(found)
}

/// Returns the keys of a valid object, for a message.
pub(crate) fn keys(line: &str) -> Vec<String> {
    let mut escapes = Vec::new();
    let mut scanner = Scanner::new(line.as_bytes(), &mut escapes);
    let mut keys = Vec::new();
    scanner.space();
    let _ = scanner.members(MAX_DEPTH, |scanner, key, depth| {
        let mut decoded = Vec::new();
        let readable = unescape(line.as_bytes(), key.range.clone(), &scanner.escapes[key.escapes], &mut decoded);
        let raw = || line[key.range].to_owned();
        keys.push(readable.map_or_else(|_| raw(), |()| String::from_utf8_lossy(&decoded).into_owned()));
        scanner.value(depth).map(drop)
    });
    keys
}

/// Appends what the string in `range` of the line stands for, given where its backslashes are: valid UTF-8 if the line is.
pub(crate) fn unescape(
    bytes: &[u8],
    range: Range<usize>,
    escapes: &[usize],
    out: &mut Vec<u8>,
) -> Result<(), RecordFault> {
    let Range { start: mut at, end } = range;
    out.reserve(end - at);
    for &escape in escapes {
        if escape < at {
            // The second half of a surrogate pair went with its first.
            continue;
        }
        append(bytes, at..escape, out);
        at = escape + 2;
        out.push(match bytes[escape + 1] {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
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
                let character = char::from_u32(code);
                let character = character.ok_or(RecordFault::LoneSurrogate { column: escape + 1, code: high })?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            // The scanner lets only these three through.
            quote_or_slash => quote_or_slash,
        });
    }
    append(bytes, at..end, out);
    Ok(())
}

/// Four hexadecimal digits, which the scanner has checked.
fn hex4(bytes: &[u8], at: usize) -> u16 {
    bytes[at..at + 4].iter().fold(0, |code, &digit| {
        let value = char::from(digit).to_digit(16).unwrap_or(0) as u16;
        code << 4 | value
    })
}

/// A string, by its range within the quotes and the range of its backslashes in the scanner's list.
struct Text {
    range: Range<usize>,
    escapes: Range<usize>,
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where backslashes start escapes, in all strings so far, so that decoding need not search again.
    escapes: &'a mut Vec<usize>,
}

impl<'a> Scanner<'a> {
    fn new(bytes: &'a [u8], escapes: &'a mut Vec<usize>) -> Self {
        escapes.clear();
        Self { bytes, at: 0, escapes }
    }

    fn fault<T>(&self, why: &'static str) -> Result<T, RecordFault> {
        // A record that was cut off ends anywhere; one that a program has broken into lines ends here.
        let goes_on = |bytes: &[u8]| matches!(bytes.trim_ascii_end(), [.., b'{' | b'[' | b',']);
        if self.at == self.bytes.len() && goes_on(self.bytes) {
            return Err(RecordFault::SpreadOverLines);
        }
        Err(RecordFault::InvalidJson { column: self.at + 1, why })
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

    /// Walks an object: `member` gets each key and must step over the value.
    fn members(
        &mut self,
        depth: usize,
        mut member: impl FnMut(&mut Self, Text, usize) -> Result<(), RecordFault>,
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
            let key = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return self.fault("a colon is needed after a key");
            }
            self.at += 1;
            self.space();
            member(self, key, depth - 1)?;
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

    /// Returns what a key stands for.
    fn key<'k>(&self, key: Text, decoded: &'k mut Vec<u8>) -> &'k [u8]
    where
        'a: 'k,
    {
        if key.escapes.is_empty() {
            return &self.bytes[key.range];
        }
        decoded.clear();
        // A key with half a surrogate pair is no name that can be asked for.
        let _ = unescape(self.bytes, key.range, &self.escapes[key.escapes], decoded);
        decoded
    }

    fn object(&mut self, wanted: Wanted<'_>, found: &mut Found, depth: usize) -> Result<(), RecordFault> {
        self.members(depth, |scanner, key, depth| {
            let mut decoded = Vec::new();
            let key = scanner.key(key, &mut decoded);
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
                let Text { range, escapes } = self.string()?;
                return Ok(Value { kind: Kind::String, range, escapes });
            }
            Some(b'{') => {
                self.members(depth, |scanner, _, depth| scanner.value(depth).map(drop))?;
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
        Ok(Value { kind, range: start..self.at, escapes: 0..0 })
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

    /// Steps over a string.
    fn string(&mut self) -> Result<Text, RecordFault> {
        let (start, first_escape) = (self.at + 1, self.escapes.len());
        let end = string_end(self.bytes, start, self.escapes);
        for escape in first_escape..self.escapes.len() {
            self.at = self.escapes[escape];
            self.check_escape()?;
        }
        self.at = end;
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                Ok(Text { range: start..end, escapes: first_escape..self.escapes.len() })
            }
            Some(_) => self.fault("a control character in a string must be escaped"),
            None => self.fault("the line ends within a string"),
        }
    }

    fn check_escape(&self) -> Result<(), RecordFault> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(()),
            Some(b'u') => match self.bytes.get(self.at + 2..self.at + 6) {
                Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => Ok(()),
                _ => self.fault("\\u needs four hexadecimal digits"),
            },
            _ => self.fault("no escape of this kind exists"),
        }
    }
}

/// Returns what remains of a dotted path below `key`.
fn below<'p>(path: &'p str, key: &[u8]) -> Option<&'p str> {
    let rest = path.as_bytes().strip_prefix(key)?;
    // A prefix that ends before a dot ends between characters.
    if rest.first() == Some(&b'.') { path.get(key.len() + 1..).filter(|rest| !rest.is_empty()) } else { None }
}

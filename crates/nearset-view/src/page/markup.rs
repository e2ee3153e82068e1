//! The one way into the page: escaped text, and numbers for people, each tied to its unit by a space that does not break.

use std::fmt::Write;

pub(super) use crate::words::{count, similarity};

/// Text as HTML shows it. Control characters, which a browser may drop or act on, are made visible.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\r' => {}
            // Marks that turn the direction of all text behind them, as in a file name that reads "cod.exe" backwards.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Returns a part of a whole, in per cent; what is not nothing is never shown as nothing, nor what is not all as all.
pub(super) fn percent(part: f64) -> String {
    let shown = 100.0 * part;
    if shown > 0.0 && shown < 0.1 {
        return "<\u{a0}0.1\u{a0}%".to_owned();
    }
    if shown < 100.0 && shown > 99.9 {
        return ">\u{a0}99.9\u{a0}%".to_owned();
    }
    let text = format!("{shown:.1}");
    format!("{}\u{a0}%", text.strip_suffix(".0").unwrap_or(&text))
}

/// Formats bytes with their unit.
pub(super) fn bytes(number: u64) -> String {
    crate::words::bytes(number).replace(' ', "\u{a0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_text_becomes_markup() {
        assert_eq!(
            escape("<script>alert('1' & \"2\")</script>"),
            "&lt;script&gt;alert(&#39;1&#39; &amp; &quot;2&quot;)&lt;/script&gt;"
        );
        assert_eq!(escape("a\u{0}b\u{1b}[31m\r\n"), "a\u{fffd}b\u{fffd}[31m\n");
        assert_eq!(escape("\u{202e}txt.exe"), "\\u{202e}txt.exe");
        assert_eq!(escape("条款 \u{2014} عربي"), "条款 \u{2014} عربي");
    }

    #[test]
    fn numbers_are_written_for_people() {
        let plain = |text: String| text.replace('\u{a0}', " ");
        assert_eq!(
            [0.0, 0.0001, 0.25, 0.1234, 0.9999, 1.0].map(percent).map(plain),
            ["0 %", "< 0.1 %", "25 %", "12.3 %", "> 99.9 %", "100 %"]
        );
        assert_eq!([0.8, 0.9 - 0.2, 1.0, 0.825].map(similarity), ["0.8", "0.7", "1", "0.825"]);
        assert_eq!(bytes(3_380_000), "3.4\u{a0}MB");
    }
}

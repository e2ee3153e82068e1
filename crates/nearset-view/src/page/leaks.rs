//! Benchmark items beside what holds them.

use std::fmt::Write;

use super::differences::differences;
use super::markup::{bytes, count, escape, percent};
use super::{END, begun, facts, side};
use crate::run::{BenchmarkSummary, LeakExample, LeakReport};

/// Returns the report as a page.
pub fn render_leaks(report: &LeakReport) -> String {
    let mut page = begun(&report.title, &report.made_by, &report.warnings);
    tiles(&mut page, report);
    benchmarks(&mut page, &report.benchmarks);
    promise(&mut page, report);
    for (benchmark, examples) in report.benchmarks.iter().zip(&report.examples) {
        findings(&mut page, &benchmark.name, examples);
    }
    page.push_str("<h2>Options</h2>\n<div class=\"facts\">");
    facts(&mut page, "option", &report.options);
    page.push_str("</div>\n");
    page.push_str(END);
    page
}

fn tiles(page: &mut String, report: &LeakReport) {
    let share = percent(report.contaminated as f64 / report.records.max(1) as f64);
    let items: u64 = report.benchmarks.iter().map(|benchmark| benchmark.items).sum();
    let found: u64 = report.benchmarks.iter().map(|benchmark| benchmark.found).sum();
    page.push_str("<ul class=\"tiles\">");
    let mut tile = |value: String, what: String| {
        let _ = write!(page, "<li><b>{}</b><span>{}</span></li>", escape(&value), escape(&what));
    };
    tile(count(report.records), format!("records read, {}", bytes(report.bytes)));
    tile(count(report.contaminated), format!("hold benchmark items, {share}"));
    if report.masked > 0 {
        tile(count(report.masked), "of them kept without the items".to_owned());
    }
    tile(count(found), format!("of {} items are in the corpus", count(items)));
    tile(count(report.findings), "findings".to_owned());
    page.push_str("</ul>\n");
}

fn benchmarks(page: &mut String, benchmarks: &[BenchmarkSummary]) {
    page.push_str("<h2>By benchmark</h2>\n<div class=\"scroll\"><table class=\"sources\"><tr><th>benchmark");
    for column in ["items", "in the corpus", "records that hold one", "too short to decide"] {
        let _ = write!(page, "<th class=\"number\">{column}");
    }
    for BenchmarkSummary { name, items, found, records, too_short } in benchmarks {
        let _ = write!(page, "<tr><td>{}", escape(name));
        for number in [*items, *found, *records, too_short.len() as u64] {
            let _ = write!(page, "<td class=\"number\">{}", count(number));
        }
    }
    page.push_str("</table></div>\n");
}

fn promise(page: &mut String, report: &LeakReport) {
    let Some(first) = report.promise.first() else { return };
    page.push_str(
        "<h2>What is found of leaks with edits</h2>\n<p>The share of items that are found if each of their words is replaced or \
         deleted with this probability, computed from the items before anything was read.</p>\n<table><tr><th>words of the \
         item<th class=\"number\">items",
    );
    for (edits, _) in &first.found {
        let _ = write!(page, "<th class=\"number\">{} edited", escape(&percent(*edits)));
    }
    for row in &report.promise {
        let _ = write!(page, "<tr><td>{}<td class=\"number\">{}", escape(&row.words), count(row.items));
        for (_, found) in &row.found {
            let _ = write!(page, "<td class=\"number\">{}", escape(&percent(*found)));
        }
    }
    page.push_str("</table>\n");
}

fn findings(page: &mut String, benchmark: &str, examples: &[LeakExample]) {
    if examples.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "<h2>Found of {}</h2>\n<p>The part of the record beside the item, the most doubtful first: the score is how many times the \
         evidence is there that is needed. Words that only one of them has are marked.</p>\n",
        escape(benchmark)
    );
    for LeakExample { score, share, field, record, item } in examples {
        let _ = write!(
            page,
            "<article class=\"pair\"><header><b>{score:.2}</b> <span class=\"soft\">score; {} of the {} is there</span></header><div>",
            escape(&percent(*share)),
            escape(field)
        );
        let (stretches, more) = differences(&record.text, &item.text);
        side(page, "record", record, 0, &stretches, more[0]);
        side(page, "item", item, 1, &stretches, more[1]);
        page.push_str("</div></article>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Excerpt, Fact, PromiseRow};

    #[test]
    fn nothing_in_a_text_becomes_markup() {
        let word = "<b onclick=x>";
        let excerpt = || Excerpt { id: word.to_owned(), place: word.to_owned(), text: word.to_owned() };
        let example =
            LeakExample { score: 1.25, share: 0.5, field: word.to_owned(), record: excerpt(), item: excerpt() };
        let report = LeakReport {
            title: word.to_owned(),
            made_by: word.to_owned(),
            warnings: vec![word.to_owned()],
            benchmarks: vec![BenchmarkSummary::new(word)],
            promise: vec![PromiseRow { words: word.to_owned(), items: 3, found: vec![(0.1, 0.9)] }],
            examples: vec![vec![example]],
            options: vec![Fact::new(word, word)],
            ..LeakReport::default()
        };
        let page = render_leaks(&report);
        assert!(!page.contains("<b onclick") && page.contains("&lt;b onclick=x&gt;") && page.contains("1.25"));
    }
}

//! What a run did, as one HTML page that needs nothing but itself; and the parts of it that the explorer shows, too.
//!
//! Claim: whatever the texts hold, the page shows it and never obeys it: every string is escaped on its one way into the page,
//! which has no script and forbids any by its content security policy.

mod differences;
mod figures;
mod leaks;
mod markup;
#[cfg(test)]
mod tests;

use std::fmt::Write;

pub use leaks::render_leaks;

use crate::run::{Excerpt, Fact, Others, Removal, Repeated, Report, SourceSummary};
use crate::words::{caught, lost};
use differences::{Stretch, differences, words};
use markup::{bytes, count, escape, percent};

/// The style sheet of pages, and of the parts that are made here.
pub const STYLE: &str = include_str!("style.css");

/// Words of a text that a side of a comparison shows.
const SHOWN_WORDS: usize = 110;
/// Shared words that are left at each end of a run where it is cut.
const AROUND: usize = 9;
/// Fewer words than this are shown rather than counted.
const FEWEST_HIDDEN: usize = 4;
/// Words of an excerpt.
const EXCERPT_WORDS: usize = 40;
/// Characters of a single word: there are texts without a space in a megabyte.
const LONGEST_WORD: usize = 160;

/// Returns the report as a page.
pub fn render(report: &Report) -> String {
    let mut page = begun(&report.title, &report.made_by, &report.warnings);
    tiles(&mut page, report);
    sources(&mut page, &report.sources);
    curve(&mut page, report);
    repeated(&mut page, &report.repeated);
    removals(&mut page, report);
    page.push_str("<h2>Plan and options</h2>\n<div class=\"facts\">");
    facts(&mut page, if report.compared_all { "the index" } else { "the filter" }, &report.plan);
    facts(&mut page, "option", &report.options);
    page.push_str("</div>\n");
    page.push_str(END);
    page
}

const END: &str =
    "<footer>This page stands alone: no scripts, nothing loaded from elsewhere.</footer>\n</main></body></html>\n";

/// The head of a page, its title and what must be said first.
fn begun(title: &str, made_by: &str, warnings: &[String]) -> String {
    let mut page = String::with_capacity(64 << 10);
    let title = escape(title);
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title}</title>\n<style>\n{STYLE}</style></head>\n<body><main>\n<h1>{title}</h1>\n<p class=\"soft\">{}</p>\n",
        escape(made_by)
    );
    for warning in warnings {
        let _ = writeln!(page, "<div class=\"warning\" role=\"note\">{}</div>", escape(warning));
    }
    page
}

fn tiles(page: &mut String, report: &Report) {
    let all = SourceSummary::sum(String::new(), &report.sources);
    let share = |part: u64| percent(part as f64 / all.records.max(1) as f64);
    page.push_str("<ul class=\"tiles\">");
    let mut tile = |value: String, what: String| {
        let _ = write!(page, "<li><b>{}</b><span>{}</span></li>", escape(&value), escape(&what));
    };
    tile(count(all.records), format!("records read, {}", bytes(report.bytes)));
    tile(count(all.kept), format!("kept, {}", share(all.kept)));
    tile(count(all.removed()), format!("removed, {}", share(all.removed())));
    if all.faulty > 0 {
        tile(count(all.faulty), format!("unreadable, {}", share(all.faulty)));
    }
    let each = report.memory as f64 / all.records.max(1) as f64;
    let what = if report.compared_all { "index" } else { "filter" };
    tile(bytes(report.memory), format!("{what}, {each:.0} B per record"));
    page.push_str("</ul>\n");
}

fn sources(page: &mut String, sources: &[SourceSummary]) {
    page.push_str("<h2>What was read, kept and removed</h2>\n<figure>");
    page.push_str(&figures::sources(sources));
    page.push_str("</figure>\n");
    if sources.len() < 2 && sources.iter().all(|source| source.against + source.faulty == 0) {
        return;
    }
    page.push_str(
        "<details><summary>As a table</summary><div class=\"scroll\"><table class=\"sources\"><tr><th>source",
    );
    for column in ["read", "kept", "near an earlier record", "near an earlier filter", "unreadable", "removed"] {
        let _ = write!(page, "<th class=\"number\">{column}");
    }
    let total = SourceSummary::sum("all".to_owned(), sources);
    for source in sources.iter().chain((sources.len() > 1).then_some(&total)) {
        let _ = write!(page, "<tr><td>{}", escape(&source.name));
        for number in [source.records, source.kept, source.near, source.against, source.faulty] {
            let _ = write!(page, "<td class=\"number\">{}", count(number));
        }
        let share = percent(source.removed() as f64 / source.records.max(1) as f64);
        let _ = write!(page, "<td class=\"number\">{}", escape(&share));
    }
    page.push_str("</table></div></details>\n");
}

fn curve(page: &mut String, report: &Report) {
    if report.promised.is_empty() {
        return;
    }
    let tied = |text: String| escape(&text).replace(" %", "\u{a0}%");
    let _ = write!(
        page,
        "<h2>The promise, and what came of it</h2>\n<p>By their similarity with the nearest earlier record there are caught {}. Lost, though \
         not near, are {}.</p>\n<figure>{}<figcaption>",
        tied(caught(&report.promise)),
        tied(lost(&report.promise)),
        figures::curve(report)
    );
    page.push_str(match report.compared_all {
        true => "Line: the probability that the plan states for one neighbour of that similarity. ",
        false => "Line: the probability that the filter states for one neighbour of that similarity. ",
    });
    let others = match report.others {
        Others::Earlier => "all earlier ones",
        Others::EarlierKept => "all earlier ones that were kept",
        Others::Kept => "all that were kept",
    };
    match &report.unchecked {
        Some(why) => page.push_str(&escape(why)),
        None => {
            let decided: u64 = report.sources.iter().map(|source| source.kept + source.near).sum();
            let compared = count(report.compared);
            let _ = match report.compared == decided {
                true => write!(
                    page,
                    "Dots: what was measured on all {compared} records, each compared exactly with {others}."
                ),
                false => write!(
                    page,
                    "Dots: what was measured on {compared} sampled records of up to {}, each compared exactly with {others}; bars \
                     are 95 % intervals.",
                    bytes(report.longest_sampled)
                ),
            };
            if !report.compared_all {
                page.push_str(
                    " A record that shares different parts with several earlier ones is more likely to be removed than the line says.",
                );
            }
        }
    }
    page.push_str("</figcaption></figure>\n");
}

fn repeated(page: &mut String, repeated: &[Repeated]) {
    if repeated.is_empty() {
        return;
    }
    page.push_str(
        "<h2>What was repeated most</h2>\n<p>Records of which near copies came again and again. Counts are lower bounds.</p>\n\
         <table class=\"repeated\"><tr><th class=\"number\">removed<th>one of them<th>how it begins",
    );
    for Repeated { example, removed } in repeated {
        let _ = write!(page, "<tr><td class=\"number\">{}<td>", count(*removed));
        if !example.id.is_empty() {
            let _ = write!(page, "{}<br>", escape(&example.id));
        }
        let _ = write!(page, "<span class=\"soft\">{}</span>", escape(&example.place));
        let _ = write!(page, "<td><p class=\"text\" dir=\"auto\">{}</p>", escape(&beginning(&example.text)));
    }
    page.push_str("</table>\n");
}

/// Returns the first words of a text.
fn beginning(text: &str) -> String {
    let mut all = words(text);
    let mut shown: String = all.by_ref().take(EXCERPT_WORDS).map(shortened).collect();
    if all.next().is_some() {
        shown.push('\u{2026}');
    }
    shown
}

fn shortened(word: &str) -> String {
    if word.len() <= LONGEST_WORD {
        return word.to_owned();
    }
    let start: String = word.chars().take(LONGEST_WORD).collect();
    if start.len() == word.len() { start } else { format!("{start}\u{2026} ") }
}

fn removals(page: &mut String, report: &Report) {
    if report.removals.is_empty() {
        return;
    }
    page.push_str("<h2>Sampled removals</h2>\n<p>");
    match &report.unchecked {
        Some(why) => page.push_str(&escape(why)),
        None => page.push_str(
            "Removed records beside the nearest record that was kept, with the exact similarity of the two, the most doubtful \
             first. Words that only one of them has are marked.",
        ),
    }
    page.push_str("</p>\n");
    for Removal { removed, kept, similarity } in &report.removals {
        page.push_str("<article class=\"pair\">");
        match kept {
            Some(kept) => {
                let _ = write!(
                    page,
                    "<header><b>{similarity:.3}</b> <span class=\"soft\">exact Jaccard similarity</span></header><div>"
                );
                sides(page, ("removed", removed), ("kept", kept));
            }
            None => {
                if report.unchecked.is_none() {
                    page.push_str(
                        "<header><b>no kept record is near</b> <span class=\"soft\">its neighbour was itself removed, or this is a \
                         false positive</span></header>",
                    );
                }
                page.push_str("<div class=\"alone\">");
                let start = words(&removed.text).take(EXCERPT_WORDS).collect();
                let whole = [Stretch { shared: true, words: [start, Vec::new()] }];
                side(page, "removed", removed, 0, &whole, words(&removed.text).nth(EXCERPT_WORDS).is_some());
            }
        }
        page.push_str("</div></article>\n");
    }
}

/// Returns two records side by side, each under its heading; words that only one of them has are marked.
pub fn pair(left: (&str, &Excerpt), right: (&str, &Excerpt)) -> String {
    let mut part = String::from("<div>");
    sides(&mut part, left, right);
    part.push_str("</div>");
    part
}

/// Returns the beginning of a text as a part of a page.
pub fn excerpt(text: &str) -> String {
    format!("<p class=\"text\" dir=\"auto\">{}</p>", escape(&beginning(text)))
}

/// Returns how many pairs have which similarity, as bars on a log scale: each begins at its first number and ends where the next begins. Those
/// from `near` on are set off.
pub fn histogram(bins: &[(f64, u64)], near: f64) -> String {
    figures::histogram(bins, near)
}

fn sides(page: &mut String, left: (&str, &Excerpt), right: (&str, &Excerpt)) {
    let (stretches, more) = differences(&left.1.text, &right.1.text);
    side(page, left.0, left.1, 0, &stretches, more[0]);
    side(page, right.0, right.1, 1, &stretches, more[1]);
}

/// The left or the right text of a comparison: long shared stretches are cut in their middle, on both sides alike, and the
/// whole after as many words as are compared.
fn side(page: &mut String, what: &str, excerpt: &Excerpt, side: usize, stretches: &[Stretch], more: bool) {
    let _ = write!(
        page,
        "<section><h3>{what}: {} <span>{}</span></h3><p class=\"text\" dir=\"auto\">",
        escape(&excerpt.id),
        escape(&excerpt.place)
    );
    let join = |words: &[&str]| escape(&words.iter().map(|word| shortened(word)).collect::<String>());
    let (mut room, mut cut) = (SHOWN_WORDS, more);
    for (i, stretch) in stretches.iter().enumerate() {
        if room == 0 {
            cut = true;
            break;
        }
        let words = &stretch.words[side][..];
        let head = if i == 0 { 0 } else { AROUND };
        let tail = if i + 1 == stretches.len() { 0 } else { AROUND };
        if stretch.shared && stretches.len() > 1 && words.len() > head + tail + FEWEST_HIDDEN {
            let hidden = words.len() - head - tail;
            page.push_str(&join(&words[..head]));
            let _ = write!(page, "<i>{} words the same</i> ", count(hidden as u64));
            page.push_str(&join(&words[head + hidden..]));
            room = room.saturating_sub(head + tail);
            continue;
        }
        let visible = &words[..words.len().min(room)];
        cut |= visible.len() < words.len();
        room -= visible.len();
        let words = join(visible);
        if stretch.shared || visible.is_empty() {
            page.push_str(&words);
        } else {
            let (marked, space) = words.split_at(words.trim_end().len());
            let _ = write!(page, "<mark>{marked}</mark>{space}");
        }
    }
    if cut {
        page.push('\u{2026}');
    }
    page.push_str("</p></section>");
}

fn facts(page: &mut String, heading: &str, facts: &[Fact]) {
    if facts.is_empty() {
        return;
    }
    let _ = write!(page, "<div><table><tr><th>{heading}<th>");
    for Fact { name, value } in facts {
        let _ = write!(page, "<tr><td>{}<td><code>{}</code>", escape(name), escape(value));
    }
    page.push_str("</table></div>");
}

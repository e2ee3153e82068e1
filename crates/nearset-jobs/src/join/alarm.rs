//! Families so large that somebody should look at them before anything is deleted.

use nearset::index::{FullList, ShingleIndex};
use serde::{Deserialize, Serialize};

use super::texts::{Place, Texts};
use crate::run::RunError;

/// No family below this is worth an alarm.
const SMALLEST: u64 = 1000;

/// A family is worth an alarm if it is this part of all records.
const PART: f64 = 0.01;

/// Alarms that are raised at most, those of the largest families.
const MOST: usize = 10;

/// Characters of an excerpt.
const EXCERPT: usize = 120;

/// Words of a text that are searched for what it shares with another.
const WORDS: usize = 4000;

/// What is so large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// Records near one kept record; the excerpt is that record's start.
    Cluster,
    /// Records with the same shingles; the excerpt is the first one's start.
    Copies,
    /// Records that share a shingle, of which only the oldest are compared with a record; the excerpt is what two of them share.
    Shingle,
}

/// A family so large that somebody should look at it: often a template, an error page or an empty form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Alarm {
    /// What is so large.
    pub cause: Cause,
    /// Records in it; for a shingle, at least that many.
    pub records: u64,
    /// The id of its first record.
    pub id: String,
    /// What its records have in common.
    pub excerpt: String,
}

/// Alarms about families of records that are not quoted, each named by its first one.
pub(super) fn named<'n>(
    cause: Cause,
    families: impl Iterator<Item = (u32, u64)>,
    records: u64,
    name: impl Fn(u32) -> &'n str,
) -> Vec<Alarm> {
    let alarm = |(family, records)| Alarm { cause, records, id: name(family).to_owned(), excerpt: String::new() };
    worth_an_alarm(families, records).into_iter().map(alarm).collect()
}

/// The largest of these families, if worth an alarm, largest first and then oldest first.
pub(super) fn worth_an_alarm(families: impl Iterator<Item = (u32, u64)>, records: u64) -> Vec<(u32, u64)> {
    let least = SMALLEST.max((PART * records as f64) as u64);
    let mut large: Vec<_> = families.filter(|&(_, size)| size >= least).collect();
    large.sort_by_key(|&(entry, size)| (std::cmp::Reverse(size), entry));
    large.truncate(MOST);
    large
}

/// An alarm about a family around one record.
pub(super) fn around(texts: &mut Texts, cause: Cause, entry: u32, records: u64) -> Result<Alarm, RunError> {
    let place = texts.place_of(entry)?;
    let excerpt = texts.with_text(place, |text| shortened(text.split_whitespace()))?;
    Ok(Alarm { cause, records, id: texts.id(place)?, excerpt })
}

/// Alarms about shingles of more records than are listed. One family fills many lists, so each is named once.
pub(super) fn lists(texts: &mut Texts, index: &ShingleIndex) -> Result<Vec<Alarm>, RunError> {
    let mut full: Vec<&FullList> = index.full_lists().collect();
    full.sort_by_key(|list| (std::cmp::Reverse(list.cut_short), list.key));
    let (mut named, mut alarms) = (Vec::new(), Vec::new());
    for list in full {
        if alarms.len() < MOST && !named.contains(&list.items[0]) {
            named.push(list.items[0]);
            let [one, other] = list.items;
            let places = [texts.place_of(one)?, texts.place_of(other)?];
            alarms.push(list_alarm(texts, places, list.listed as u64 + list.cut_short)?);
        }
    }
    Ok(alarms)
}

/// An alarm about a shingle, two of whose records are given.
fn list_alarm(texts: &mut Texts, [first, second]: [Place; 2], records: u64) -> Result<Alarm, RunError> {
    let words = |text: &str| -> Vec<String> { text.split_whitespace().take(WORDS).map(str::to_owned).collect() };
    let (a, b) = (texts.with_text(first, words)?, texts.with_text(second, words)?);
    let common = longest_common_run(&a, &b);
    // Scripts without spaces have no words to compare here.
    let quoted = if common.is_empty() { &a[..] } else { common };
    let excerpt = shortened(quoted.iter().map(String::as_str));
    Ok(Alarm { cause: Cause::Shingle, records, id: texts.id(first)?, excerpt })
}

fn shortened<'t>(words: impl Iterator<Item = &'t str>) -> String {
    let mut excerpt = String::new();
    for word in words {
        if !excerpt.is_empty() {
            excerpt.push(' ');
        }
        excerpt.push_str(word);
        if let Some((cut, _)) = excerpt.char_indices().nth(EXCERPT) {
            excerpt.truncate(cut);
            excerpt.push('…');
            break;
        }
    }
    excerpt
}

/// The longest run of words that both have.
fn longest_common_run<'a>(a: &'a [String], b: &[String]) -> &'a [String] {
    let (mut longest, mut end) = (0, 0);
    // Lengths of the runs that end at the word before and at this one.
    let (mut before, mut here) = (vec![0; b.len() + 1], vec![0; b.len() + 1]);
    for (i, word) in a.iter().enumerate() {
        for (j, other) in b.iter().enumerate() {
            here[j + 1] = if word == other { before[j] + 1 } else { 0 };
            if here[j + 1] > longest {
                (longest, end) = (here[j + 1], i + 1);
            }
        }
        std::mem::swap(&mut before, &mut here);
    }
    &a[end - longest..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_common_run_is_found() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (a, b) =
            (words("x all rights reserved by nobody y"), words("all rights kept, rights reserved by nobody z"));
        assert_eq!(longest_common_run(&a, &b).join(" "), "rights reserved by nobody");
        assert!(longest_common_run(&a, &[]).is_empty());
    }

    #[test]
    fn only_large_families_are_worth_an_alarm() {
        let families = || [(0, 999), (1, 5000), (2, 1000), (3, 5000)].into_iter();
        assert_eq!(worth_an_alarm(families(), 50_000), [(1, 5000), (3, 5000), (2, 1000)]);
        assert_eq!(worth_an_alarm(families(), 400_000), [(1, 5000), (3, 5000)]);
    }
}

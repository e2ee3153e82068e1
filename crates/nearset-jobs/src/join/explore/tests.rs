use std::fs;

use nearset::plan::Request;
use nearset::{Rng, Seed};
use nearset_records::input::resolve;

use super::*;
use crate::join::{Decisions, VerifiedDedup, VerifiedDedupOptions};

/// Families of texts with words exchanged, copies among them, and some of a template.
fn corpus(records: usize, seed: u64) -> String {
    let mut rng = Rng::new(Seed::new(seed));
    let template: Vec<String> = (0..60).map(|i| format!("t{i}")).collect();
    let mut families: Vec<Vec<String>> = Vec::new();
    let mut lines = String::new();
    for i in 0..records {
        if i == 0 || rng.below(4) == 0 {
            let own: Vec<String> = (0..40).map(|_| format!("w{}", rng.below(5000))).collect();
            families.push(if rng.below(3) == 0 { [template.clone(), own[..15].to_vec()].concat() } else { own });
        }
        let family = rng.below(families.len() as u64) as usize;
        for _ in 0..rng.below(3) {
            let at = rng.below(families[family].len() as u64) as usize;
            families[family][at] = format!("w{}", rng.below(5000));
        }
        lines += &format!("{{\"id\":\"r{i}\",\"text\":\"{}\"}}\n", families[family].join(" "));
    }
    lines + "{\"id\":\"empty\",\"text\":\"\"}\n"
}

struct Corpus {
    folder: tempfile::TempDir,
    sources: Vec<Source>,
}

impl Corpus {
    fn new(records: usize, seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.jsonl");
        fs::write(&path, corpus(records, seed)).unwrap();
        Self { sources: resolve(&[path.to_str().unwrap()], None).unwrap().list, folder }
    }

    fn explored(&self, most_pairs: usize) -> Explored {
        let mut wanted = Request::default();
        wanted.near = ExploreOptions::LOWEST;
        let mut options = ExploreOptions::new(JoinOptions::new(wanted));
        options.most_pairs = most_pairs;
        explore(self.sources.clone(), &options, &Progress::new()).unwrap()
    }

    /// The ids that a run removes.
    fn removed(&self, near: f64, decisions: &Decisions) -> Vec<String> {
        let mut wanted = Request::default();
        wanted.near = near;
        let mut options = VerifiedDedupOptions::new(wanted);
        options.exhaustive = true;
        options.candidates = Some(ExploreOptions::LOWEST);
        options.decisions = decisions.clone();
        let removed = self.folder.path().join("removed.jsonl");
        options.run.removed = Some(removed.clone());
        options.run.force = true;
        VerifiedDedup::prepare(self.sources.clone(), options).unwrap().run(&Progress::new()).unwrap();
        let id =
            |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        fs::read_to_string(removed).unwrap().lines().map(id).collect()
    }
}

fn shown(explored: &Explored, outcome: &Outcome) -> Vec<String> {
    let gone = (0..explored.records() as u32).filter(|&record| explored.verdict(outcome, record).is_some());
    gone.map(|record| explored.excerpt(record).unwrap().id).collect()
}

#[test]
fn what_is_shown_to_go_is_what_dedup_removes() {
    let corpus = Corpus::new(1500, 1);
    let explored = corpus.explored(usize::MAX);
    assert_eq!(explored.records(), 1501);
    let mut counts = Vec::new();
    for near in [0.5, 0.61, 0.7, 0.8, 0.93, 1.0] {
        let outcome = explored.decide(near, &Marks::new());
        let shown = shown(&explored, &outcome);
        assert_eq!(shown, corpus.removed(near, &Decisions::default()), "near {near}");
        assert_eq!(outcome.removed as usize, shown.len());
        counts.push(outcome.removed);
    }
    assert!(counts.is_sorted_by(|a, b| a > b), "{counts:?}");
}

#[test]
fn marks_are_shown_as_decisions_do_them() {
    let corpus = Corpus::new(800, 2);
    let explored = corpus.explored(usize::MAX);
    let mut rng = Rng::new(Seed::new(9));
    let plain = explored.decide(0.7, &Marks::new());
    let mut marks = Marks::new();
    for record in 1..explored.records() as u32 - 1 {
        // Copies are marked as different, too, and strangers as duplicates.
        match explored.verdict(&plain, record) {
            Some(member) if rng.below(4) == 0 => _ = marks.insert((member.record, record), false),
            None if rng.below(4) == 0 => _ = marks.insert((rng.below(record.into()) as u32, record), true),
            _ => {}
        }
    }
    let lines: String = marks
        .iter()
        .map(|((a, b), duplicate)| format!("{{\"a\":\"r{a}\",\"b\":\"r{b}\",\"duplicate\":{duplicate}}}\n"))
        .collect();
    let path = corpus.folder.path().join("decisions.jsonl");
    fs::write(&path, lines).unwrap();
    let decisions = Decisions::read(&path).unwrap();
    for near in [0.5, 0.7, 0.9] {
        let outcome = explored.decide(near, &marks);
        assert_eq!(shown(&explored, &outcome), corpus.removed(near, &decisions), "near {near}");
        assert_ne!(outcome.removed, explored.decide(near, &Marks::new()).removed);
    }
}

#[test]
fn pairs_beyond_the_limit_raise_the_lowest_threshold_and_change_nothing_above() {
    let corpus = Corpus::new(1000, 3);
    let (all, some) = (corpus.explored(usize::MAX), corpus.explored(600));
    assert!(some.pairs() <= 600 && all.pairs() > 1500, "{} of {}", some.pairs(), all.pairs());
    assert!(some.lowest > all.lowest && some.lowest < 1.0, "{}", some.lowest);
    for near in [some.lowest, 0.97, 1.0] {
        let [all, some] = [&all, &some].map(|explored| shown(explored, &explored.decide(near, &Marks::new())));
        assert_eq!(all, some, "near {near}");
    }
    assert_eq!(some.decide(0.5, &Marks::new()).near, some.lowest);
}

#[test]
fn the_border_is_what_a_small_step_decides_otherwise() {
    let explored = Corpus::new(1000, 4).explored(usize::MAX);
    let outcome = explored.decide(0.8, &Marks::new());
    let border = explored.border(&outcome, &Marks::new(), None, 20);
    assert_eq!(border.len(), 20);
    for pair in &border {
        assert_eq!(pair.goes, pair.similarity >= 0.8);
        let step = explored.decide(if pair.goes { pair.similarity + 1e-9 } else { pair.similarity }, &Marks::new());
        // Another kept record may be as near.
        let other = explored.verdict(&step, pair.other);
        assert!(other.is_none() == pair.goes || other.is_some_and(|other| other.record != pair.kept), "{pair:?}");
    }
    let marks: Marks = border[..5].iter().map(|pair| ((pair.kept, pair.other), pair.goes)).collect();
    assert!(
        explored.border(&outcome, &marks, None, 20).iter().all(|pair| !marks.contains_key(&(pair.kept, pair.other)))
    );
    let precision = explored.precision(&marks);
    assert_eq!(precision[0].marked, 5);
    assert!(precision[0].at_least < precision[0].precision || precision[0].precision == 0.0);
}

#[test]
fn clusters_hold_what_goes_and_the_histogram_every_pair() {
    let corpus = Corpus::new(1000, 5);
    let explored = corpus.explored(usize::MAX);
    let outcome = explored.decide(0.8, &Marks::new());
    let clusters = explored.clusters(&outcome, None, usize::MAX);
    assert_eq!(clusters.iter().map(|cluster| cluster.records - 1).sum::<u64>(), outcome.removed);
    assert!(clusters.iter().any(|cluster| cluster.template) && clusters.iter().any(|cluster| !cluster.template));
    let members = explored.members(&outcome, clusters[0].kept, usize::MAX);
    assert_eq!(members.len() as u64, clusters[0].records - 1);
    let bins = explored.histogram();
    assert_eq!((bins[0].from, bins.len()), (0.5, 51));
    assert!(bins.iter().map(|bin| bin.pairs).sum::<u64>() >= explored.pairs());
    assert_eq!(explored.search("R77", None, 3).unwrap(), [77, 770, 771]);
    assert_eq!(explored.search("R77", Some(1), 3).unwrap(), [0; 0]);
}

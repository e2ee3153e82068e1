//! The skeleton with a decider of its own.

use super::*;
use nearset_records::resolve;

/// Keeps every other record, and panics over a text that says so.
struct EveryOther;

impl Worker for EveryOther {
    type Piece = ();
    type Room = ();

    fn room(&self) {}

    fn clear(&self, (): &mut (), (): &mut ()) {}

    fn add(&self, (): &mut (), extracted: &Extracted<'_>, i: usize, (): &mut ()) -> Result<(), RecordError> {
        assert!(!matches!(extracted.item(i), Ok(nearset::Item::Text("bug"))), "as a bug would");
        Ok(())
    }
}

impl Decider for EveryOther {
    type Piece = ();
    type Outcome = u64;

    fn decide(&mut self, part: Part<'_, ()>, decisions: &mut Vec<Decision>, _: &mut Ids) -> Result<(), RunError> {
        let hits = 0;
        let verdict = |i: u64| if i.is_multiple_of(2) { Verdict::New { hits } } else { Verdict::Near { hits } };
        let number = |i: usize| part.batch.start().record + i as u64;
        decisions.extend(part.sound_records().map(|i| Decision { verdict: verdict(number(i)), family: None }));
        Ok(())
    }

    fn bytes(&self) -> u64 {
        0
    }

    fn checkpoint_bytes(&self) -> u64 {
        0
    }

    fn save(&mut self, _: &StateFolder, _: u64) -> Result<serde_json::Value, RunError> {
        Ok(serde_json::Value::Null)
    }

    fn write(&mut self, _: &mut OutputFile) -> Result<(), RunError> {
        Ok(())
    }

    fn outcome(&mut self, tally: &Tally) -> Result<u64, RunError> {
        Ok(tally.kept)
    }
}

fn run(lines: &str) -> (Result<u64, RunError>, Option<String>) {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("in.txt"), folder.path().join("out.txt"));
    std::fs::write(&path, lines).unwrap();
    let sources = resolve(&[path.to_str().unwrap()], None).unwrap().list;
    let options = RunOptions { out: Some(out.clone()), threads: 3, ..RunOptions::default() };
    let manner = Manner::Filter { bands: 1, against: Vec::new() };
    let mut read = ReadOptions::new(options.fields.clone());
    read.batch_bytes = 100;
    let start = Start::new(sources.into(), options, manner, Fingerprint::new(), &[]).unwrap();
    let done = start.guarded(|outputs| {
        let page = |_: &EveryOther, _: &Tally, _: &u64| Ok(String::new());
        let both = (&EveryOther, &mut EveryOther);
        start.carry_out(outputs, read, both, Seed::default(), &Progress::new(), page)
    });
    (done.map(|done| done.outcome), std::fs::read_to_string(out).ok())
}

#[test]
fn a_decider_of_its_own_is_all_that_a_run_needs() {
    let lines: String = (0..1000).map(|i| format!("line {i}\n")).collect();
    let kept: String = (0..1000).step_by(2).map(|i| format!("line {i}\n")).collect();
    let (done, written) = run(&lines);
    assert_eq!((done.unwrap(), written), (500, Some(kept)));
}

#[test]
fn a_panic_of_a_worker_ends_the_run_and_names_the_records() {
    let lines: String = (0..1000).map(|i| if i == 700 { "bug\n".to_owned() } else { format!("line {i}\n") }).collect();
    let (done, written) = run(&lines);
    let error = done.unwrap_err().to_string();
    assert!(error.contains("in.txt:6") && error.contains("bug in nearset"), "{error}");
    assert_eq!(written, None);
}

//! Many small changes, signed each time: what a fuzzer would try, in the same order in every run.

use nearset::{Check, Rng, Seed};

use crate::{
    any::{Any, payload_start, sign},
    drive::{Step, drive},
    fields, samples,
};

/// Takes some seconds on a slow machine.
const ROUNDS: u32 = 1_000_000;

#[test]
fn mutated_files_are_refused_or_understood() {
    let mut rng = Rng::new(Seed::new(99));
    let samples: Vec<(&str, Vec<u8>)> = samples::all().iter().map(|sample| (sample.name, sample.bytes())).collect();
    let (mut refused, mut understood) = (0, 0);
    for _ in 0..ROUNDS {
        let (name, original) = &samples[rng.below(samples.len() as u64) as usize];
        let mut bytes = original.clone();
        for _ in 0..=rng.below(4) {
            mutate(&mut bytes, &samples, &mut rng);
        }
        sign(&mut bytes);
        match Any::open(&bytes, Check::Everything) {
            Ok(opened) => {
                assert!(
                    opened.encode() == bytes,
                    "{name}: read as something other than what was written: {bytes:02x?}"
                );
                understood += 1;
            }
            Err(_) => refused += 1,
        }
        let _ = Any::open(&bytes, Check::HeaderOnly);
    }
    // Both must happen, or the mutations test nothing.
    assert!(refused > ROUNDS / 10 && understood > ROUNDS / 100, "{refused} refused, {understood} understood");
}

fn mutate(bytes: &mut Vec<u8>, samples: &[(&str, Vec<u8>)], rng: &mut Rng) {
    const NUMBERS: [u64; 12] = [0, 1, 2, 7, 8, 63, 64, 255, 0xffff, u32::MAX as u64, 1 << 40, u64::MAX];
    // Most of what can be wrongly believed stands before the tables.
    let described = payload_start(bytes).unwrap_or(bytes.len()).min(bytes.len());
    let end = if rng.unit() < 0.8 { described } else { bytes.len() };
    if end <= 10 {
        return;
    }
    let at = 10 + rng.below(end as u64 - 10) as usize;
    match rng.below(6) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = rng.next_u64() as u8,
        2 | 3 => {
            let number = NUMBERS[rng.below(NUMBERS.len() as u64) as usize].to_le_bytes();
            let width = (1 << rng.below(4)).min(bytes.len() - at);
            bytes[at..at + width].copy_from_slice(&number[..width]);
        }
        4 => {
            // A piece of another file.
            let (_, other) = &samples[rng.below(samples.len() as u64) as usize];
            let piece = other.get(at..).unwrap_or_default();
            let width = (rng.below(40) as usize).min(bytes.len() - at).min(piece.len());
            bytes[at..at + width].copy_from_slice(&piece[..width]);
        }
        _ => {
            // One line more or less, with a length to match.
            if rng.unit() < 0.5 && bytes.len() > 128 {
                bytes.truncate(bytes.len() - 64);
            } else {
                bytes.resize(bytes.len() + 64, 0);
            }
            let length = (bytes.len() as u64).to_le_bytes();
            bytes[16..24].copy_from_slice(&length);
        }
    }
}

/// Files whose fields were changed one by one go through everything: none takes longer than its spec states.
#[test]
fn files_with_changed_fields_take_no_longer_than_their_specs_state() {
    drive_many(3_000);
}

/// The same with more cases: `cargo test -p nearset --test format -- --ignored --nocapture changed_fields_at_length`.
#[test]
#[ignore = "takes minutes"]
fn files_with_changed_fields_at_length() {
    drive_many(100_000);
}

fn drive_many(cases: u64) {
    let samples: Vec<(&str, Vec<u8>)> = samples::all().iter().map(|sample| (sample.name, sample.bytes())).collect();
    let (mut refused, mut opened) = (0, 0);
    let mut worst: Vec<(f64, String)> = Vec::new();
    for case in 0..cases {
        let mut rng = Rng::new(Seed::new(98).derive("case", case));
        let (name, original) = &samples[rng.below(samples.len() as u64) as usize];
        let mut bytes = original.clone();
        fields::mutate(&mut bytes, &mut rng);
        let part = |step: &Step| step.took.as_secs_f64() / step.allowed.as_secs_f64();
        let (mut steps, outcome) = drive(&bytes, case);
        if steps.iter().any(|step| step.took > step.allowed) {
            // Tries once more, because the machine may have been at fault.
            let again = drive(&bytes, case).0;
            steps.iter_mut().zip(again).for_each(|(step, again)| step.took = step.took.min(again.took));
        }
        for step in &steps {
            let Step { name: what, took, allowed } = step;
            let words = format!("case {case}, {name}: to {what} took {took:?} of {allowed:?}");
            assert!(took <= allowed, "{words}: {bytes:02x?}");
            worst.push((part(step), words));
        }
        worst.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        worst.truncate(20);
        if outcome.is_ok() { opened += 1 } else { refused += 1 }
    }
    println!("{opened} opened, {refused} refused; the part of what is allowed that the worst took:");
    worst.iter().for_each(|(part, step)| println!("{part:.3} {step}"));
    // Both must happen, or the changes test nothing.
    assert!(refused > cases / 10 && opened > cases / 10, "{refused} refused, {opened} opened");
}

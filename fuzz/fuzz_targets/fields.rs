//! Fields of well-formed files are changed, and whatever opens is queried, inserted into, merged and saved: nothing
//! panics, and nothing takes longer than its spec states.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nearset::{Seed, Rng};

#[allow(dead_code)]
#[path = "../../crates/nearset/tests/format/any.rs"]
mod any;
#[allow(dead_code)]
#[path = "../../crates/nearset/tests/format/drive.rs"]
mod drive;
#[allow(dead_code)]
#[path = "../../crates/nearset/tests/format/fields.rs"]
mod fields;
#[allow(dead_code)]
#[path = "../../crates/nearset/tests/format/samples.rs"]
mod samples;

/// How much slower a sanitiser makes everything.
const SLOWER: u32 = 10;

thread_local! {
    static SAMPLES: Vec<Vec<u8>> = samples::all().iter().map(samples::Sample::bytes).collect();
}

// The first byte chooses a sample, then every ten bytes a field (two) and its new value (eight); all of them together
// seed the remaining random choices.
fuzz_target!(|data: &[u8]| {
    let Some((&sample, changes)) = data.split_first() else { return };
    let mut bytes = SAMPLES.with(|samples| samples[usize::from(sample) % samples.len()].clone());
    for change in changes.chunks_exact(10) {
        let places = fields::fields(&bytes);
        let (place, value) = change.split_at(2);
        let place = usize::from(u16::from_le_bytes([place[0], place[1]]));
        let Some(&fields::Field { at, width }) = places.get(place % places.len().max(1)) else { return };
        bytes[at..at + width].copy_from_slice(&value[..width]);
    }
    let seed = data.iter().fold(0u64, |seed, &byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
    fields::make_tables_fit(&mut bytes, &mut Rng::new(Seed::new(seed)));
    fields::sign_all(&mut bytes);
    for step in drive::drive(&bytes, seed).0 {
        assert!(step.took <= SLOWER * step.allowed, "{step:?}");
    }
});

//! Whatever opens is written again as the same bytes, and nothing panics.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nearset::{BloomFilter, Check, Filter, FilterSpec, Index};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Corrects both checksums, since no input would ever get past them otherwise.
fn sign(bytes: &mut [u8]) {
    let Some(described) = bytes.get(12..16) else { return };
    let described = u32::from_le_bytes([described[0], described[1], described[2], described[3]]) as usize;
    let start = 64 + described.next_multiple_of(64);
    if start > bytes.len() {
        return;
    }
    let sum = xxh3_64(&bytes[start..]);
    bytes[24..32].copy_from_slice(&sum.to_le_bytes());
    let mut header = Xxh3::new();
    header.update(&bytes[..56]);
    header.update(&bytes[64..start]);
    bytes[56..64].copy_from_slice(&header.digest().to_le_bytes());
}

/// Readers skip optional sections, so these are not written again.
fn has_optional_section(bytes: &[u8]) -> bool {
    let described = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let mut rest = &bytes[64..64 + described];
    while rest.len() >= 6 {
        if u16::from_le_bytes([rest[0], rest[1]]) >= 0x8000 {
            return true;
        }
        let length = u32::from_le_bytes(rest[2..6].try_into().unwrap()) as usize;
        rest = rest.get(6 + length..).unwrap_or_default();
    }
    false
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    sign(&mut bytes);
    let mut written = Vec::new();
    let opened = if let Ok(filter) = BloomFilter::decode(&bytes, Check::Everything) {
        filter.encode(&mut written)
    } else if let Ok(filter) = Filter::decode(&bytes, Check::Everything) {
        filter.encode(&mut written)
    } else if let Ok(spec) = FilterSpec::decode(&bytes, Check::Everything) {
        written = spec.encode();
        Ok(())
    } else if let Ok(index) = Index::decode(&bytes, Check::Everything) {
        index.encode(&mut written)
    } else {
        return;
    };
    opened.expect("a Vec takes all");
    assert!(written == bytes || has_optional_section(&bytes));
});

//! Perceptual hashes: recognises pictures that were resized, recompressed or blurred; nothing within the radius is ever
//! missed.
//!
//! `cargo run --example image_hashes`

use std::collections::BTreeMap;

use nearset::{BitString, ExactSpec, Filter, FilterSpec, Seed, family::Hashed, spec::Construction};

/// The number of bits in which two PDQ hashes of one picture usually differ at most.
const RADIUS: u32 = 31;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/image-hashes.tsv");
    let lines = std::fs::read_to_string(path)?;
    let rows: Vec<Vec<&str>> = lines.lines().skip(1).map(|line| line.split('\t').collect()).collect();

    let spec = ExactSpec::new(256, RADIUS, Construction::FoldedScan { width: 256 }, Seed::default())?;
    let mut known = Filter::new(&FilterSpec::from(spec))?;
    let mut room = Hashed::default();
    let originals = rows.iter().filter(|row| row[1] == "orig");
    let mut look_alikes = 0;
    for row in originals {
        look_alikes += usize::from(!known.insert(&BitString::from_hex(row[2])?, &mut room)?);
    }
    println!("{} pictures known, {look_alikes} of which resemble an earlier one", known.len());

    let mut found: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row[1] != "orig") {
        let (seen, of) = found.entry(row[1]).or_default();
        *seen += u32::from(known.contains_near(&BitString::from_hex(row[2])?, &mut room)?);
        *of += 1;
    }
    for (change, (seen, of)) in found {
        println!("{change:>10}: {seen} of {of} recognised");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs() {
        super::main().unwrap();
    }
}

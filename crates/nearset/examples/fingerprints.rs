//! Fingerprint screening on simulated prints, as the course notes model them: a grid of 100 x 100 squares, a fifth of
//! which hold a minutia, and four fifths of those again in another print of the same finger.
//!
//! There are two ways: triples of squares joined by OR, and groups of such ORs by AND, where the notes compute .985 and
//! .063 for one group of 1024; and sampled bits for the Hamming distance, with everything up to 1000 near and
//! everything from 2500 on far.
//!
//! `cargo run --release --example fingerprints`

use nearset::{
    BitString, Distance, Filter, Index, Layout, LshSpec, Metric, Rng, Seed,
    family::{Hashed, Minutiae},
    plan::{FarModel, Request},
};
use nearset_theory::{
    amplify::{Cascade, Step},
    minutiae,
};

type Error = Box<dyn std::error::Error>;

/// The number of squares in the grid.
const SQUARES: u32 = 10_000;
const MODEL: minutiae::Minutiae = minutiae::Minutiae::NOTES;

/// How often functions are drawn, and the number of fingers in each draw.
const DRAWS: u64 = 40;
const FINGERS: u32 = 60;

fn print(rng: &mut Rng) -> BitString {
    let mut print = BitString::zeros(SQUARES as usize);
    (0..SQUARES as usize).for_each(|square| print.set(square, rng.unit() < MODEL.occupancy));
    print
}

/// Makes another print of the same finger. An empty square becomes occupied just often enough that a fifth are again.
fn again(first: &BitString, rng: &mut Rng) -> BitString {
    let elsewhere = MODEL.occupancy * (1.0 - MODEL.agreement) / (1.0 - MODEL.occupancy);
    let mut second = first.clone();
    for square in 0..SQUARES as usize {
        let occupied = if first.bits().bit(square) { MODEL.agreement } else { elsewhere };
        second.set(square, rng.unit() < occupied);
    }
    second
}

/// A mean with its standard error, from independent draws.
struct Rate {
    mean: f64,
    error: f64,
}

impl Rate {
    fn of(draws: &[f64]) -> Self {
        let count = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / count;
        let variance = draws.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / (count - 1.0);
        Self { mean, error: (variance / count).sqrt() }
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{:.4} ± {:.4}", self.mean, self.error))
    }
}

/// Measures how often prints of one finger, and of two, share a triple in every one of `groups` groups of `triples`.
fn screen_by_triples(groups: u32, triples: u32) -> Result<(Rate, Rate), Error> {
    let family = Minutiae { squares: SQUARES, occupied: (MODEL.occupancy * f64::from(SQUARES)) as u32 };
    let (mut same, mut other) = (Vec::new(), Vec::new());
    for draw in 0..DRAWS {
        let mut rng = Rng::new(Seed::new(1).derive("fingers", draw));
        let mut indexes = Vec::new();
        for group in 0..groups {
            let seed = Seed::new(draw).derive("group", u64::from(group));
            let mut spec = LshSpec::new(family, Layout::new(1, triples), seed)?;
            spec.keeps_items = false;
            indexes.push(Index::new(spec)?);
        }
        let mut prints = Vec::new();
        for _ in 0..FINGERS {
            let first = print(&mut rng);
            indexes.iter_mut().try_for_each(|index| index.insert(&first).map(|_| ()))?;
            prints.push(again(&first, &mut rng));
        }
        let (mut hits, mut false_hits) = (0, 0);
        for (finger, second) in (0..).zip(&prints) {
            let candidates = indexes.iter().map(|index| index.candidates(second)).collect::<Result<Vec<_>, _>>()?;
            let in_all = |id: &u32| candidates.iter().all(|group| group.binary_search(id).is_ok());
            hits += u32::from(in_all(&finger));
            false_hits += (0..FINGERS).filter(|id| *id != finger && in_all(id)).count() as u32;
        }
        same.push(f64::from(hits) / f64::from(FINGERS));
        other.push(f64::from(false_hits) / f64::from(FINGERS * (FINGERS - 1)));
    }
    Ok((Rate::of(&same), Rate::of(&other)))
}

/// Returns the same rates as the notes compute them, with each triple on its own.
fn computed(groups: u32, triples: u32) -> (f64, f64) {
    let cascade = Cascade::new([Step::Or(triples), Step::And(groups)]);
    (cascade.probability(MODEL.same_finger()), cascade.probability(MODEL.different_fingers()))
}

fn main() -> Result<(), Error> {
    println!("{:<28}{:>18}{:>10}{:>20}{:>10}", "triples", "same finger", "computed", "other finger", "computed");
    for (groups, triples) in [(1, 1024), (2, 1024), (2, 2048), (4, 2048)] {
        let (same, other) = screen_by_triples(groups, triples)?;
        let (expected_same, expected_other) = computed(groups, triples);
        let name = if groups == 1 { format!("OR of {triples}") } else { format!("AND of {groups} ORs of {triples}") };
        println!("{name:<28}{same:>18}{expected_same:>10.4}{other:>20}{expected_other:>10.4}");
    }
    screen_by_distance()
}

/// Returns a print with `squares` squares changed.
fn changed(print: &BitString, squares: u32, rng: &mut Rng) -> BitString {
    let mut changed = print.clone();
    rng.distinct(squares as usize, u64::from(SQUARES)).into_iter().for_each(|square| changed.flip(square as usize));
    changed
}

/// Screens by Hamming distance: a planned filter tells whether a print is known, a planned index whose it is.
fn screen_by_distance() -> Result<(), Error> {
    const KNOWN: u32 = 1_000;
    let (near, far) = (1_000, 2_500);
    let metric = Metric::Hamming { bits: SQUARES };
    let distance = |squares: u32| Distance::new(f64::from(squares));
    let mut request = Request::new(metric, f64::from(near)).far(f64::from(far)).capacity(u64::from(KNOWN));
    // Two fingers differ where one print has a minutia and the other has none.
    let unrelated = 2.0 * MODEL.occupancy * (1.0 - MODEL.occupancy) * f64::from(SQUARES);
    request.far_model = Some(FarModel::Background(unrelated));
    let filter_plan = request.plan_filter()?;
    let index_plan = request.plan_index()?;
    println!("\n{KNOWN} prints known; near up to {near}, far from {far}\n\n{filter_plan}\n{index_plan}");

    let mut rng = Rng::new(Seed::new(2));
    let known: Vec<BitString> = (0..KNOWN).map(|_| print(&mut rng)).collect();
    let mut filter = Filter::new(&filter_plan.spec)?;
    let mut room = Hashed::default();
    let mut index = Index::new(index_plan.spec)?;
    for print in &known {
        filter.insert(print, &mut room)?;
        index.insert(print)?;
    }

    println!("{:<28}{:>18}{:>18}{:>18}", "query", "filter: known", "index: found", "compared");
    type Make = fn(&BitString, &mut Rng) -> BitString;
    let queries: [(&str, Make); 4] = [
        ("same finger", again),
        ("1000 squares changed", |print, rng| changed(print, 1_000, rng)),
        ("2500 squares changed", |print, rng| changed(print, 2_500, rng)),
        ("other finger", |_, rng| print(rng)),
    ];
    for (name, make) in queries {
        let (mut accepted, mut found, mut compared) = (Vec::new(), Vec::new(), 0);
        for finger in &known {
            let query = make(finger, &mut rng);
            accepted.push(f64::from(u8::from(filter.contains_near(&query, &mut room)?)));
            found.push(f64::from(u8::from(!index.search(&query, Some(1), Some(distance(near)?))?.is_empty())));
            compared += index.candidates(&query)?.len();
        }
        let each = compared as f64 / f64::from(KNOWN);
        println!("{name:<28}{:>18}{:>18}{each:>18.1}", Rate::of(&accepted), Rate::of(&found));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs() {
        main().unwrap();
    }

    #[test]
    fn an_or_of_1024_does_what_the_notes_compute() {
        let (same, other) = screen_by_triples(1, 1024).unwrap();
        // Triples that share squares agree together, which costs the OR a little; the tolerance is that plus 6 standard
        // errors.
        assert!((same.mean - 0.985).abs() <= 6.0 * same.error + 0.005, "{same}");
        assert!((other.mean - 0.063).abs() <= 6.0 * other.error + 0.002, "{other}");
    }

    #[test]
    fn an_and_after_it_costs_some_matches_and_removes_most_false_ones() {
        let (same, other) = screen_by_triples(2, 1024).unwrap();
        let (expected_same, expected_other) = computed(2, 1024);
        assert!((same.mean - expected_same).abs() <= 6.0 * same.error + 0.01, "{same}");
        assert!((other.mean - expected_other).abs() <= 6.0 * other.error + 0.001, "{other}");
    }
}

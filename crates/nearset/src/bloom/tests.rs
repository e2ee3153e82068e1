use super::*;
use crate::{
    error::SpecError,
    hash::{Rng, mix},
};

fn hashes(stream: u64, count: u64) -> Vec<u64> {
    let mut rng = Rng::new(Seed::new(stream));
    (0..count).map(|_| rng.next_u64()).collect()
}

fn filled(lines: u64, hashes_per_key: u32, keys: &[u64]) -> BloomFilter<'static> {
    let mut filter = BloomFilter::with_lines(lines, hashes_per_key, Seed::new(1)).unwrap();
    filter.insert_all(keys);
    filter
}

#[test]
fn what_was_inserted_is_found_and_is_no_longer_new() {
    for hashes_per_key in 1..=8 {
        let mut filter = BloomFilter::with_lines(50, hashes_per_key, Seed::new(3)).unwrap();
        for number in 0..2_000u32 {
            filter.insert(&number.to_le_bytes());
            assert!(filter.contains(&number.to_le_bytes()));
            assert!(!filter.insert(&number.to_le_bytes()));
        }
        assert!((0..2_000u32).all(|number| filter.contains(&number.to_le_bytes())));
    }
}

#[test]
fn batches_answer_as_single_calls_do() {
    let keys = hashes(1, 1_000);
    for count in [0, 1, 10, 11, 32, 1_000] {
        // Repeats in quick succession: the second must see the first, though both lines were fetched before.
        let batch: Vec<u64> = keys[..count].iter().flat_map(|&key| [key, mix(key), key]).collect();
        let mut single = BloomFilter::with_lines(40, 6, Seed::new(1)).unwrap();
        let mut whole = single.clone();
        let new: Vec<bool> = batch.iter().map(|&key| single.insert_hash(key)).collect();
        assert_eq!(whole.insert_all(&batch), new);
        assert_eq!(whole, single);
        let asked = hashes(2, count as u64 + 7);
        let found: Vec<bool> = asked.iter().map(|&key| single.contains_hash(key)).collect();
        assert_eq!(whole.contains_all(&asked), found);
    }
}

#[test]
fn measured_false_positives_are_those_expected_and_those_the_bits_tell() {
    // At 10 bits per key; the numbers of lines make the line choice use all the hash's high bits, not a power of two.
    let (keys, lines) = (100_000, 100_000 * 10 / 512);
    let (inserted, asked) = (hashes(11, keys), hashes(12, 400_000));
    for hashes_per_key in 1..=8 {
        let filter = filled(lines, hashes_per_key, &inserted);
        let found = filter.contains_all(&asked).iter().filter(|&&found| found).count() as f64;
        let (now, expected) = (filter.false_positive_rate(), lines_false_positive(keys, lines, hashes_per_key));
        let trials = asked.len() as f64;
        // Six sigma of the binomial count.
        assert!(
            (found - trials * now).abs() <= 6.0 * (trials * now * (1.0 - now)).sqrt(),
            "{hashes_per_key} bits per key: {found} of {trials}, the bits say {now}"
        );
        // The rate of 1953 lines of some 51 keys each strays from its mean by less than 1.5 % of it, one sigma.
        assert!((now / expected - 1.0).abs() < 0.09, "{hashes_per_key} bits per key: {now} against {expected}");
    }
}

#[test]
fn sequential_and_sparse_numbers_serve_as_hashes() {
    // Callers may pass weak hashes; the seeded mixing spreads them. Strides keep the low or the high bits constant.
    for shift in [0, 20, 40] {
        let (keys, lines) = (100_000, 1_954);
        let inserted: Vec<u64> = (0..keys).map(|number| number << shift).collect();
        let asked: Vec<u64> = (keys..keys + 200_000).map(|number| number << shift).collect();
        let filter = filled(lines, 8, &inserted);
        let found = filter.contains_all(&asked).iter().filter(|&&found| found).count() as f64 / 200_000.0;
        // About 2,080 are expected, sigma 46: a quarter more is 11 sigma, and a weak mixing gives several times as many.
        assert!(found < 1.25 * lines_false_positive(keys, lines, 8), "stride 2^{shift}: {found}");
    }
}

#[test]
fn a_planned_filter_keeps_to_its_rate_and_one_line_less_would_not() {
    for (capacity, rate) in [(1, 0.5), (30, 0.2), (1_000, 0.01), (100_000, 0.01), (50_000, 0.0001), (20_000, 1e-6)] {
        let filter = BloomFilter::new(capacity, rate, Seed::new(5)).unwrap();
        let lines = filter.bits().count() as u64;
        assert!(lines_false_positive(capacity, lines, filter.hashes()) <= rate);
        assert!(
            lines == 1
                || (1..=8).all(|hashes_per_key| lines_false_positive(capacity, lines - 1, hashes_per_key) > rate)
        );
    }
}

#[test]
fn the_expected_rate_is_the_poisson_sum_over_line_loads() {
    // With a bit in all lanes the rate is also the mean of (1 - (63/64)^load)^8 over binomial loads.
    let (keys, lines) = (51_200u64, 1_000u64);
    let share = 1.0 / lines as f64;
    let (mut probability, mut sum) = ((1.0 - share).powi(keys as i32), 0.0);
    for load in 0..400 {
        sum += probability * (1.0 - (63f64 / 64.0).powi(load)).powi(8);
        probability *= (keys - load as u64) as f64 / (load + 1) as f64 * share / (1.0 - share);
    }
    let closed = lines_false_positive(keys, lines, 8);
    assert!((closed / sum - 1.0).abs() < 1e-9, "{closed} against {sum}");
    assert!(closed < 0.013, "10 bits per key give {closed}");
}

#[test]
fn merging_equals_inserting_into_one_and_is_a_commutative_idempotent_monoid() {
    let parts: Vec<_> = (0..3).map(|part| hashes(20 + part, 500)).collect();
    for hashes_per_key in [1, 5, 8] {
        let [a, b, c] = [0, 1, 2].map(|part| filled(30, hashes_per_key, &parts[part]));
        let merged = |x: &BloomFilter<'_>, y: &BloomFilter<'_>| {
            let mut union = x.clone().into_owned();
            union.merge(y).unwrap();
            union
        };
        assert_eq!(merged(&merged(&a, &b), &c), filled(30, hashes_per_key, &parts.concat()));
        assert_eq!(merged(&a, &b), merged(&b, &a));
        assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        assert_eq!(merged(&a, &a), a);
        assert_eq!(merged(&a, &filled(30, hashes_per_key, &[])), a);
    }
}

#[test]
fn merging_names_the_first_difference_and_changes_nothing() {
    let make = |lines, hashes_per_key, seed| BloomFilter::with_lines(lines, hashes_per_key, Seed::new(seed)).unwrap();
    let mut ours = make(4, 8, 1);
    ours.insert(b"x");
    let before = ours.clone();
    let error = |what, ours: &str, theirs: &str| Err(MergeError { what, ours: ours.into(), theirs: theirs.into() });
    assert_eq!(ours.merge(&make(5, 7, 2)), error("number of lines", "4", "5"));
    assert_eq!(ours.merge(&make(4, 7, 2)), error("bits per key", "8", "7"));
    assert_eq!(ours.merge(&make(4, 8, 2)), error("seed", "Seed(1)", "Seed(2)"));
    assert_eq!(ours, before);
}

#[test]
fn the_number_of_keys_is_estimated_from_the_fill() {
    for hashes_per_key in [1, 4, 8] {
        let keys = hashes(40, 50_000);
        let mut filter = filled(1_000, hashes_per_key, &keys);
        filter.insert_all(&keys[..20_000]);
        let estimate = filter.estimated_len();
        // One bit a key, the least precise, strays by 0.2 % of the count, one sigma.
        assert!((estimate / 50_000.0 - 1.0).abs() < 0.012, "{hashes_per_key} bits per key: {estimate}");
    }
    assert_eq!(filled(1, 8, &[]).estimated_len(), 0.0);
    assert_eq!(filled(1, 8, &hashes(41, 20_000)).estimated_len(), f64::INFINITY);
}

#[test]
fn seeds_give_unrelated_filters() {
    let keys = hashes(50, 1_000);
    let mut other = BloomFilter::with_lines(30, 8, Seed::new(2)).unwrap();
    other.insert_all(&keys);
    assert_ne!(other.bits(), filled(30, 8, &keys).bits());
}

#[test]
fn impossible_parameters_are_refused() {
    let seed = Seed::new(1);
    assert_eq!(BloomFilter::new(0, 0.01, seed).unwrap_err(), SpecError::NoKeys);
    for rate in [0.0, -1.0, 1.0, 1e-12] {
        assert!(matches!(BloomFilter::new(10, rate, seed), Err(SpecError::FalsePositive { .. })), "{rate}");
    }
    assert!(matches!(BloomFilter::new(10, f64::NAN, seed), Err(SpecError::FalsePositive { .. })));
    assert!(matches!(BloomFilter::new(u64::MAX, 0.01, seed), Err(SpecError::Lines { .. })));
    assert_eq!(BloomFilter::with_lines(4, 0, seed).unwrap_err(), SpecError::Hashes { hashes: 0 });
    assert_eq!(BloomFilter::with_lines(4, 9, seed).unwrap_err(), SpecError::Hashes { hashes: 9 });
}

#[test]
fn a_filter_over_borrowed_bytes_answers_without_copying() {
    let keys = hashes(60, 1_000);
    let owned = filled(30, 8, &keys);
    let bytes = owned.bits().to_bytes().next().unwrap();
    let mut mapped = BloomFilter::from_parts(BitArray::from_bytes(&bytes).unwrap(), 8, Seed::new(1)).unwrap();
    assert!(mapped.contains_all(&keys).iter().all(|&found| found));
    assert!(mapped.bits().is_borrowed() && mapped == owned);
    mapped.insert(b"one more");
    assert!(!mapped.bits().is_borrowed() && mapped != owned);
}

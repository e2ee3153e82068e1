//! What a table costs: from a chance hit to bits, and back.

use std::sync::OnceLock;

use nearset_theory::bloom;

use crate::{BloomFilter, Table};

/// The chance that a key which is not in hits a table that holds `items` keys.
///
/// A direct table is hit by equal keys only, which the model counts as agreement.
pub(super) fn chance_hit(table: Table, items: u64) -> f64 {
    match table {
        Table::Direct => 0.0,
        Table::Bits(bits) => bloom::load(bits as f64, items as f64),
        Table::Lines { lines, hashes } => bloom::lines_false_positive(items, lines, hashes),
    }
}

/// A fill that tables of so many bits hardly ever stay below when this one is expected: three standard deviations of as many
/// coins, which bits of a table vary less than. A threshold that follows the fill must keep the false positives there too.
pub(super) fn low_fill(expected: f64, bits: f64) -> f64 {
    (expected - 3.0 * libm::sqrt(expected * (1.0 - expected) / bits)).max(0.0)
}

/// Above this chance a table of single bits is never larger than one of lines.
const LINES_BELOW: f64 = 0.35;

/// Lines are not planned for less.
const LEAST_CHANCE: f64 = 1e-8;

/// Bits of the smallest hashed table whose chance hit is at most this, `None` where there is none.
pub(super) fn bits_for(chance: f64, items: u64) -> Option<f64> {
    let single = single_bits(chance, items);
    let lines = (LEAST_CHANCE..LINES_BELOW).contains(&chance).then(|| line_bits(chance, items));
    [single, lines].into_iter().flatten().min_by(f64::total_cmp)
}

/// That table.
pub(super) fn table_for(chance: f64, items: u64) -> Option<Table> {
    let single = single_bits(chance, items);
    let lines = (LEAST_CHANCE..LINES_BELOW).contains(&chance).then(|| BloomFilter::planned(items, chance).ok());
    let lines = lines.flatten().map(|(lines, hashes)| Table::Lines { lines, hashes });
    match (single, lines) {
        (Some(bits), Some(Table::Lines { lines, .. })) if bits <= 512.0 * lines as f64 => {
            Some(Table::Bits(bits as u64))
        }
        (_, Some(lines)) => Some(lines),
        (Some(bits), None) => Some(Table::Bits(bits as u64)),
        (None, None) => None,
    }
}

/// The fewest bits `m` with `1 - (1 - 1/m)^items <= chance`.
pub(super) fn single_bits(chance: f64, items: u64) -> Option<f64> {
    if !(chance > 0.0) {
        return None;
    }
    let bits = match chance {
        chance if chance >= 1.0 => 1.0,
        chance => (-1.0 / libm::expm1(libm::log1p(-chance) / items as f64)).ceil().max(2.0),
    };
    // Beyond what a filter may have, and beyond whole numbers, there is nothing to plan.
    (bits < 1e18).then_some(bits)
}

/// Bits of a blocked table with this chance hit, to 1 %.
pub(super) fn line_bits(chance: f64, items: u64) -> f64 {
    512.0 * (items as f64 / keys_per_line(chance)).ceil()
}

/// How many keys a line may hold on average for this chance, with the best number of bits per key; to 1 %, by linear
/// interpolation of logarithms.
fn keys_per_line(chance: f64) -> f64 {
    let grid = grid();
    let log = libm::log(chance);
    let after = grid.partition_point(|(_, known)| *known < log).clamp(1, grid.len() - 1);
    let ((keys_low, low), (keys_high, high)) = (grid[after - 1], grid[after]);
    let part = ((log - low) / (high - low)).clamp(0.0, 1.0);
    libm::exp(keys_low + part * (keys_high - keys_low))
}

/// Logarithms of keys per line and of the lowest chance with any number of bits per key.
fn grid() -> &'static [(f64, f64)] {
    static GRID: OnceLock<Vec<(f64, f64)>> = OnceLock::new();
    GRID.get_or_init(|| {
        const MANY_LINES: u64 = 1 << 30;
        (0..160)
            .map(|step| {
                let log = 0.04 * f64::from(step);
                let keys = (libm::exp(log) * MANY_LINES as f64) as u64;
                let chances = (1..=8).map(|hashes| bloom::lines_false_positive(keys, MANY_LINES, hashes));
                (log, libm::log(chances.fold(1.0, f64::min).max(f64::MIN_POSITIVE)))
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keep_their_chance_in_the_bits_that_were_foreseen() {
        for items in [100u64, 10_000, 3_000_000] {
            for chance in [1e-7, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.9] {
                let table = table_for(chance, items).unwrap();
                assert!(chance_hit(table, items) <= chance * (1.0 + 1e-9), "{table:?}");
                let bits = match table {
                    Table::Bits(bits) => bits as f64,
                    Table::Lines { lines, .. } => 512.0 * lines as f64,
                    Table::Direct => unreachable!("direct tables are not hashed"),
                };
                let foreseen = bits_for(chance, items).unwrap();
                assert!((bits / foreseen - 1.0).abs() < 0.015 || (bits - foreseen).abs() <= 512.0, "{bits} {foreseen}");
            }
        }
        assert_eq!(bits_for(0.0, 5), None);
    }
}

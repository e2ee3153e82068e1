//! Plans keep their promises: 200 random requests over all metrics, built and measured.

mod simulate;

use simulate::{random_plan, simulate};

/// Allows 4 standard errors, one-sided, each by the number of queries or by how much the eight filters differ,
/// whichever is more: 3e-5 by chance for each of 400 promises. Seeds are fixed, so red means a bug.
fn check(numbers: std::ops::Range<u64>) {
    for number in numbers {
        let plan = random_plan(number);
        let measured = simulate(&plan, 8, number);
        assert!(
            measured.worst_excess(plan.terms()) <= 4.0,
            "request {number}: missed {} and accepted {}, with errors {:?}\n{plan}",
            measured.false_negative,
            measured.false_positive,
            measured.errors
        );
    }
}

#[test]
fn promises_of_random_requests_hold_one() {
    check(0..50);
}

#[test]
fn promises_of_random_requests_hold_two() {
    check(50..100);
}

#[test]
fn promises_of_random_requests_hold_three() {
    check(100..150);
}

#[test]
fn promises_of_random_requests_hold_four() {
    check(150..200);
}

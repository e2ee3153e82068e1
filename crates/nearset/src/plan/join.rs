//! Bands for finding the near pairs of a corpus of texts, where every find is verified by comparing the texts.
//!
//! Claim: two texts of similarity `near` or more share a band with probability `1 - max_false_negative` or more.
//! Why these bands: verification makes every answer right, so bands only have to miss little and to bring up few strangers. A
//! band of more rows brings up fewer, but more bands are needed then to miss as little, and each costs memory and one look-up per
//! item. What is chosen costs least, a stranger being a pair of half the similarity, its verification as expensive as [`STRANGER`]
//! look-ups, since it reads a text again and cuts it, and a look-up as expensive as [`SLOTS`] slots of a signature.
//! Not here: the filter that decides without texts (`dedup`).

use super::{
    PlanError, Request, RequestError,
    request::{LOWEST_RATE, check_rate},
};
use crate::{JoinSpec, Layout, Metric, Similarity, family::MinHash};

/// Look-ups in a band that cost as much as one verification.
const STRANGER: f64 = 200.0;

/// Slots of a signature that cost as much as one look-up.
const SLOTS: f64 = 100.0;

/// More rows than any similarity below 1 that is worth planning for can use.
const MOST_ROWS: u32 = 64;

/// Beyond this, signatures would be longer than the texts.
const MOST_BANDS: f64 = 1024.0;

pub(super) fn plan(request: &Request) -> Result<JoinSpec, PlanError> {
    let Metric::Jaccard { shingling } = request.metric else {
        return Err(RequestError::NotTexts { what: "a join", metric: request.metric }.into());
    };
    let near = request.near;
    let similarity = Similarity::jaccard(near).ok().filter(|similarity| similarity.value() > 0.0);
    let similarity = similarity.ok_or(RequestError::Near { found: near })?;
    let missed = request.max_false_negative.unwrap_or(Request::MAX_FALSE_NEGATIVE);
    check_rate("false-negative", missed, LOWEST_RATE)?;
    let shared = |similarity: f64, rows: u32| libm::pow(similarity, f64::from(rows));
    let needed = |rows: u32| libm::ceil(libm::log(missed) / libm::log1p(-shared(near, rows))).max(1.0);
    let cost = |rows: u32| needed(rows) * (1.0 + f64::from(rows) / SLOTS + STRANGER * shared(near / 2.0, rows));
    let rows = (1..=MOST_ROWS)
        .filter(|&rows| needed(rows) <= MOST_BANDS)
        .min_by(|&a, &b| cost(a).total_cmp(&cost(b)))
        .ok_or(PlanError::TooManyBands { near, missed })?;
    let layout = Layout::new(rows, needed(rows) as u32);
    Ok(JoinSpec::new(similarity, MinHash { shingling }, layout, request.seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(near: f64) -> Request {
        Request { near, ..Request::default() }
    }

    #[test]
    fn the_promise_is_kept_by_sensibly_many_bands() {
        for (near, layout) in [(0.5, (4, 61)), (0.7, (6, 32)), (0.8, (7, 17)), (0.9, (8, 7)), (1.0, (14, 1))] {
            let planned = texts(near).plan_join().unwrap();
            assert_eq!((planned.layout.rows, planned.layout.bands), layout, "near {near}");
            assert!(planned.success_probability(planned.near) >= 1.0 - Request::MAX_FALSE_NEGATIVE);
        }
        let strangers = Similarity::jaccard(0.3).unwrap();
        assert!(texts(0.8).plan_join().unwrap().success_probability(strangers) < 0.01, "strangers seldom meet");
    }

    #[test]
    fn senseless_wishes_say_why() {
        let why = |near, missed| {
            Request { max_false_negative: Some(missed), ..texts(near) }.plan_join().unwrap_err().to_string()
        };
        assert!(why(0.0, 0.02).contains("between 0 and 1"));
        assert!(why(1.5, 0.02).contains("between 0 and 1"));
        assert!(why(0.8, 0.0).contains("false-negative"));
        assert!(why(0.001, 0.02).contains("bands"));
    }
}

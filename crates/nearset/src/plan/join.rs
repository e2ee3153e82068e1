//! Keys for finding the near pairs of a corpus of texts, where every find is verified by comparing the texts.
//!
//! Claim: two texts of similarity `near` or more share a key with probability `1 - max_false_negative` or more.
//! Not here: the filter that decides without texts (`dedup`).

use super::{
    PlanError, Request, RequestError,
    request::{LOWEST_RATE, check_rate},
};
use crate::{JoinSpec, Metric, Similarity};

pub(super) fn plan(request: &Request) -> Result<JoinSpec, PlanError> {
    let Metric::Jaccard { shingling } = request.metric else {
        return Err(RequestError::NotTexts { what: "a join", metric: request.metric }.into());
    };
    let near = request.near;
    let similarity = Similarity::jaccard(near).ok().filter(|similarity| similarity.value() > 0.0);
    let similarity = similarity.ok_or(RequestError::Near { found: near })?;
    let missed = request.max_false_negative.unwrap_or(JoinSpec::MAX_FALSE_NEGATIVE);
    check_rate("false-negative", missed, LOWEST_RATE)?;
    let spec = JoinSpec::new(similarity, missed, shingling, request.seed);
    if spec.keys() > JoinSpec::MOST_KEYS {
        return Err(PlanError::TooManyKeys { near, missed });
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(near: f64) -> Request {
        Request { near, ..Request::default() }
    }

    #[test]
    fn the_promise_is_kept_by_few_keys() {
        for (near, keys) in [(0.5, 10), (0.7, 6), (0.8, 5), (0.9, 4), (1.0, 1)] {
            let planned = texts(near).plan_join().unwrap();
            assert_eq!(planned.keys(), keys, "near {near}");
            assert!(planned.success_probability(planned.near) >= 1.0 - JoinSpec::MAX_FALSE_NEGATIVE);
        }
    }

    #[test]
    fn senseless_wishes_say_why() {
        let why = |near, missed| {
            Request { max_false_negative: Some(missed), ..texts(near) }.plan_join().unwrap_err().to_string()
        };
        assert!(why(0.0, 0.02).contains("between 0 and 1"));
        assert!(why(1.5, 0.02).contains("between 0 and 1"));
        assert!(why(0.8, 0.0).contains("false-negative"));
        assert!(why(0.001, 0.02).contains("keys"));
    }
}

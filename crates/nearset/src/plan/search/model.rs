//! How often bands agree under a goal: with the near item, with the far one, and with anything else that is in.

use std::{cell::RefCell, collections::BTreeMap};

use nearset_theory::binomial;

use crate::{
    Distance, Family,
    family::{LshFamily, Unrelated},
    plan::{FarModel, Goal},
};

/// A goal seen through one family.
pub(super) struct Model<'g> {
    pub(super) goal: &'g Goal,
    pub(super) family: Family,
    /// One function's agreement at near, at far and at each of the crowd's distances, where a band's is a power of it.
    single: Option<(f64, f64, Vec<f64>)>,
    crowd: Crowd<'g>,
    /// Bands by rows, as far as they were asked for.
    bands: RefCell<BTreeMap<u32, Band>>,
}

/// The items that a far query has nothing to do with.
enum Crowd<'g> {
    /// Distances with weights; a sum below 1 leaves the rest agreeing never.
    At(Vec<(Distance, f64)>),
    Measured(&'g crate::plan::Background),
}

/// How a band of some rows agrees.
#[derive(Debug, Clone, Copy)]
pub(super) struct Band {
    /// With an item at near.
    pub(super) near: f64,
    /// With an item at far.
    pub(super) far: f64,
    /// With at least one of all others, at capacity.
    pub(super) crowd: f64,
    /// By how much the crowd differs from query to query: the standard deviation of `ln(1 - crowd)`. A query that has some of the
    /// crowd a little nearer than usual meets them in all its bands.
    pub(super) spread: f64,
}

impl Band {
    /// The crowd of a query that is so many deviations worse off than usual.
    pub(super) fn crowd_at(&self, deviations: f64) -> f64 {
        1.0 - (1.0 - self.crowd) * libm::exp(-deviations * self.spread)
    }

    /// The band with a crowd that makes independent hits of so many bands reach as far, `deviations` out, as hits that vary with
    /// the query.
    pub(super) fn widened(&self, bands: u32, deviations: f64) -> Self {
        let hit = self.far_hit(0.0);
        let (own, shared) = (hit * (1.0 - hit) / f64::from(bands), (1.0 - self.crowd) * self.spread);
        let margin = deviations * (libm::sqrt(own + shared * shared) - libm::sqrt(own));
        Self { crowd: (self.crowd + margin).min(1.0), ..*self }
    }

    /// The chance that a near query's band hits when a table is hit by chance with `chance`.
    pub(super) fn near_hit(&self, chance: f64) -> f64 {
        1.0 - (1.0 - self.near) * (1.0 - chance)
    }

    /// The same for a far query, which also meets the crowd.
    pub(super) fn far_hit(&self, chance: f64) -> f64 {
        1.0 - (1.0 - self.far) * (1.0 - self.crowd) * (1.0 - chance)
    }
}

/// Nodes on either side of the mean by which a distribution of distances is summed: a quarter of a deviation apart, where
/// the sum over a bell curve is as good as its integral.
const NODES: i32 = 40;

impl<'g> Model<'g> {
    pub(super) fn new(goal: &'g Goal, family: Family) -> Self {
        let crowd = match &goal.far_model {
            FarModel::WorstCase => Crowd::At(vec![(goal.far, 1.0)]),
            FarModel::Background(own) => {
                let distance = goal.metric.distance(*own).expect("the goal was checked");
                Crowd::At(vec![(distance, 1.0)])
            }
            FarModel::Random => Crowd::At(random_items(goal)),
            FarModel::Measured(background) => Crowd::Measured(background),
        };
        let single = family.positions().is_none().then(|| {
            let p = |distance| family.collision_probability(distance);
            let nodes = match &crowd {
                Crowd::At(nodes) => nodes.iter().map(|(distance, _)| p(*distance)).collect(),
                Crowd::Measured(_) => Vec::new(),
            };
            (p(goal.near), p(goal.far), nodes)
        });
        Self { goal, family, single, crowd, bands: RefCell::default() }
    }

    /// The chance that one random item of the crowd agrees in a band, its upper bound where it was measured, and the variance
    /// of that chance from item to item.
    fn one_of_crowd(&self, rows: u32) -> (f64, f64) {
        let power = |p: f64| libm::pow(p, f64::from(rows));
        let moments = |agreements: &mut dyn Iterator<Item = (f64, f64)>| {
            let (mut mean, mut square) = (0.0, 0.0);
            agreements.for_each(|(weight, p)| (mean, square) = (mean + weight * p, square + weight * p * p));
            (mean, (square - mean * mean).max(0.0))
        };
        match (&self.crowd, &self.single) {
            (Crowd::Measured(background), _) => {
                let band = |distance| self.family.band_probability(distance, rows);
                let high = background.agreement_by(self.goal.far, band).high;
                let square = background.agreement_by(self.goal.far, |distance| libm::pow(band(distance), 2.0)).high;
                (high, (square - high * high).max(0.0))
            }
            (Crowd::At(nodes), Some((.., single))) => {
                moments(&mut nodes.iter().zip(single).map(|((_, weight), p)| (*weight, power(*p))))
            }
            (Crowd::At(nodes), None) => {
                let band = |distance| self.family.band_probability(distance, rows);
                moments(&mut nodes.iter().map(|(distance, weight)| (*weight, band(*distance))))
            }
        }
    }

    pub(super) fn band(&self, rows: u32) -> Band {
        *self.bands.borrow_mut().entry(rows).or_insert_with(|| self.new_band(rows))
    }

    fn new_band(&self, rows: u32) -> Band {
        let (near, far) = match self.single {
            Some((near, far, _)) => (libm::pow(near, f64::from(rows)), libm::pow(far, f64::from(rows))),
            None => {
                let band = |distance| self.family.band_probability(distance, rows);
                (band(self.goal.near), band(self.goal.far))
            }
        };
        let (one, variance) = self.one_of_crowd(rows);
        let spread = libm::sqrt((self.goal.capacity - 1) as f64 * variance);
        Band { near, far, crowd: self.any_of_crowd(one), spread }
    }

    /// From one of the crowd to any of them.
    fn any_of_crowd(&self, one: f64) -> f64 {
        let others = (self.goal.capacity - 1) as f64;
        if one >= 1.0 { f64::from(u8::from(others > 0.0)) } else { -libm::expm1(others * libm::log1p(-one)) }
    }

    /// The chance that any of the crowd does something that a single item at some distance does with `p(distance)`.
    pub(super) fn any_of_crowd_by(&self, p: impl Fn(Distance) -> f64) -> f64 {
        self.any_of_crowd(self.one_of_crowd_by(p))
    }

    /// The chance that a random item of the crowd does it, its upper bound where it was measured.
    pub(super) fn one_of_crowd_by(&self, p: impl Fn(Distance) -> f64) -> f64 {
        match &self.crowd {
            Crowd::At(nodes) => nodes.iter().map(|(distance, weight)| weight * p(*distance)).sum(),
            Crowd::Measured(background) => background.agreement_by(self.goal.far, p).high,
        }
    }

    /// The farthest of the crowd.
    pub(super) fn farthest_of_crowd(&self) -> Distance {
        let farthest = match &self.crowd {
            Crowd::At(nodes) => nodes.iter().map(|(distance, _)| *distance).reduce(|a, b| if a > b { a } else { b }),
            Crowd::Measured(background) => Some(background.quantile(1.0)),
        };
        farthest.unwrap_or(self.goal.far)
    }
}

/// Distances of independent uniform items, those nearer than far left out: they are no far query's.
fn random_items(goal: &Goal) -> Vec<(Distance, f64)> {
    let nodes: Vec<(f64, f64)> = match goal.metric.unrelated() {
        Some(Unrelated::Coins(length)) => {
            let (mean, deviation) = (f64::from(length) / 2.0, f64::from(length).sqrt() / 2.0);
            let step = (10.0 * deviation / f64::from(NODES)).ceil().max(1.0);
            (-NODES..=NODES)
                .map(|node| (mean + f64::from(node) * step).floor())
                .filter(|distance| (0.0..=f64::from(length)).contains(distance))
                .map(|distance| (distance, step * binomial::pmf(length, 0.5, distance as u32)))
                .collect()
        }
        Some(Unrelated::Directions(dimension)) => {
            // The density of the angle is sin^(d-2); twelve of its deviations, or half a turn.
            let reach = (12.0 / f64::from(dimension).sqrt()).min(std::f64::consts::FRAC_PI_2);
            let density = |angle: f64| libm::pow(libm::sin(angle), f64::from(dimension) - 2.0);
            let angle = |node: i32| std::f64::consts::FRAC_PI_2 + reach * (f64::from(node) + 0.5) / f64::from(NODES);
            let total: f64 = (-NODES..NODES).map(|node| density(angle(node))).sum();
            (-NODES..NODES).map(|node| (angle(node), density(angle(node)) / total)).collect()
        }
        Some(Unrelated::Farthest) => goal.metric.farthest().map(|most| (most.value(), 1.0)).into_iter().collect(),
        None => unreachable!("a goal with random items was checked"),
    };
    let distances = nodes.into_iter().filter_map(|(value, weight)| Some((Distance::new(value).ok()?, weight)));
    distances.filter(|(distance, _)| *distance >= goal.far).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Metric,
        family::{BitSampling, Hyperplane},
        plan::Request,
    };

    #[test]
    fn random_bit_strings_agree_by_the_toss_of_a_coin() {
        for bits in [64, 256, 65_536] {
            let request = Request::new(Metric::Hamming { bits }, 1.0).far(3.0).capacity(2);
            let goal = request.filter_goal().unwrap();
            let model = Model::new(&goal, BitSampling::new(bits).into());
            for rows in [1, 8, 20] {
                let ratio = model.band(rows).crowd / libm::exp2(-f64::from(rows));
                assert!((ratio - 1.0).abs() < 1e-3, "{ratio} at {rows} of {bits}");
            }
        }
    }

    #[test]
    fn random_directions_agree_more_often_in_few_dimensions() {
        let agreement = |dimension: u32| {
            let (near, far) = (libm::cos(0.1), libm::cos(0.2));
            let goal = Request::new(Metric::Angle { dimension }, near).far(far).capacity(2).filter_goal().unwrap();
            Model::new(&goal, Hyperplane { dimension }.into()).band(10).crowd * 1024.0
        };
        // By the midpoint rule over sin^6 at 200,000 angles, those below far left out: 5.958 times as often as by coin tosses.
        assert!((agreement(8) - 5.958).abs() < 0.03, "{}", agreement(8));
        assert!(agreement(10_000) > 1.0 && agreement(10_000) < 1.01);
    }
}

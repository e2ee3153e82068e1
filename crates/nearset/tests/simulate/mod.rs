//! Random requests, planned, built and measured: shared by the bounded test and by `make characterise`.
//!
//! A request is simulated in several filters, each with its own seed. While a filter fills, every item's near partner is
//! queried right after the item is inserted, so the false negatives are those of all loads from empty to full; at
//! capacity, partners at the far distance are queried. Unrelated items follow the request's far model.

use nearset::{
    BitString, Distance, Filter, FilterSpec, Item, Metric, Rng, Seed, Shingling, Symbols,
    family::Hashed,
    item::ItemBuffer,
    plan::{FarModel, Plan, Request},
    spec::Terms,
};

/// The number of elements of every simulated set.
const SET: u64 = 240;

/// Returns the number of elements that two sets of `SET` elements have in common at this Jaccard distance.
fn common(distance: Distance) -> usize {
    let similarity = 1.0 - distance.value();
    (2.0 * SET as f64 * similarity / (1.0 + similarity)).round() as usize
}

/// The side of the box in which vectors of L1 and L2 lie, in near distances: so wide that no two share buckets.
const SPREAD: f64 = 1e6;

fn random(metric: Metric, near: Distance, rng: &mut Rng) -> ItemBuffer {
    let gaussians = |dimension: u32, scale: f64, rng: &mut Rng| {
        (0..dimension).map(|_| (scale * rng.gaussian()) as f32).collect::<Vec<f32>>()
    };
    match metric {
        Metric::Hamming { bits } => {
            let mut string = BitString::zeros(bits as usize);
            (0..bits as usize)
                .filter(|_| rng.unit() < 0.5)
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|at| string.flip(at));
            ItemBuffer::from(Item::from(&string))
        }
        Metric::Symbols { length } => ItemBuffer::from(Item::Symbols(Symbols::Wide(
            &(0..length).map(|_| rng.below(2) as u32).collect::<Vec<_>>(),
        ))),
        Metric::Jaccard { .. } => ItemBuffer::from(Item::Set(&(0..SET).map(|_| rng.next_u64()).collect::<Vec<_>>())),
        Metric::WeightedJaccard { .. } => {
            ItemBuffer::from(Item::Weighted(&(0..SET).map(|_| (rng.next_u64(), 1.5)).collect::<Vec<_>>()))
        }
        Metric::Angle { dimension } => ItemBuffer::from(Item::Vector(&gaussians(dimension, 1.0, rng))),
        Metric::L1 { dimension } | Metric::L2 { dimension } => {
            ItemBuffer::from(Item::Vector(&gaussians(dimension, SPREAD * near.value(), rng)))
        }
        metric => unreachable!("{metric} is not simulated"),
    }
}

/// Makes a random item at this distance from another.
fn partner(metric: Metric, item: &ItemBuffer, distance: Distance, rng: &mut Rng) -> ItemBuffer {
    match item.view() {
        Item::Bits(stored) => {
            let mut bits = BitString::zeros(stored.len());
            (0..stored.len()).for_each(|at| bits.set(at, stored.bit(at)));
            let length = stored.len() as u64;
            rng.distinct(distance.value() as usize, length).into_iter().for_each(|at| bits.flip(at as usize));
            ItemBuffer::from(Item::from(&bits))
        }
        Item::Symbols(Symbols::Wide(symbols)) => {
            let mut symbols = symbols.to_vec();
            let length = symbols.len() as u64;
            rng.distinct(distance.value() as usize, length).into_iter().for_each(|at| symbols[at as usize] ^= 1);
            ItemBuffer::from(Item::Symbols(Symbols::Wide(&symbols)))
        }
        Item::Set(set) => {
            let kept = set[..common(distance)].iter().copied();
            let fresh = set.len() - common(distance);
            ItemBuffer::from(Item::Set(&kept.chain((0..fresh).map(|_| rng.next_u64())).collect::<Vec<_>>()))
        }
        Item::Weighted(set) => {
            let kept = set[..common(distance)].iter().copied();
            let fresh = set.len() - common(distance);
            ItemBuffer::from(Item::Weighted(&kept.chain((0..fresh).map(|_| (rng.next_u64(), 1.5))).collect::<Vec<_>>()))
        }
        Item::Vector(vector) => {
            let step: Vec<f64> = vector.iter().map(|_| rng.gaussian()).collect();
            let moved: Vec<f32> = match metric {
                Metric::Angle { .. } => {
                    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
                    let own: Vec<f64> = vector.iter().map(|&x| f64::from(x)).collect();
                    let length = norm(&mut own.iter().copied());
                    let along: f64 = own.iter().zip(&step).map(|(a, b)| a * b).sum::<f64>() / (length * length);
                    let across: Vec<f64> = own.iter().zip(&step).map(|(a, b)| b - along * a).collect();
                    let across_length = norm(&mut across.iter().copied());
                    let (sin, cos) = distance.value().sin_cos();
                    own.iter().zip(&across).map(|(a, b)| (cos * a / length + sin * b / across_length) as f32).collect()
                }
                Metric::L1 { .. } => {
                    let length: f64 = step.iter().map(|x| x.abs()).sum();
                    shifted(vector, &step, distance.value() / length)
                }
                _ => {
                    let length = step.iter().map(|x| x * x).sum::<f64>().sqrt();
                    shifted(vector, &step, distance.value() / length)
                }
            };
            ItemBuffer::from(Item::Vector(&moved))
        }
        _ => unreachable!("such items are not simulated"),
    }
}

fn shifted(vector: &[f32], step: &[f64], factor: f64) -> Vec<f32> {
    vector.iter().zip(step).map(|(x, step)| (f64::from(*x) + factor * step) as f32).collect()
}

/// Returns the plan of this number: random, and feasible with a filter that can be simulated quickly.
pub fn random_plan(number: u64) -> Plan {
    let mut rng = Rng::new(Seed::new(number).derive("goal", 0));
    loop {
        if let Ok(plan) = random_request(number, &mut rng).plan_filter()
            && plan.work.hash_evaluations <= 2_000.0
            && plan.spec.near().is_some()
        {
            return plan;
        }
    }
}

fn random_request(number: u64, rng: &mut Rng) -> Request {
    let between = |low: f64, high: f64, rng: &mut Rng| low + (high - low) * rng.unit();
    let length = |rng: &mut Rng| [128, 256, 512, 1000][rng.below(4) as usize];
    let shingling = Shingling::default();
    let dimension = [50, 100, 200][rng.below(3) as usize];
    let metric = match number % 7 {
        0 => Metric::Hamming { bits: length(rng) },
        1 => Metric::Symbols { length: length(rng) },
        2 => Metric::Jaccard { shingling },
        3 => Metric::WeightedJaccard { shingling },
        4 => Metric::Angle { dimension },
        5 => Metric::L1 { dimension },
        _ => Metric::L2 { dimension },
    };
    // Distances that the simulated items can have exactly.
    let (near, far) = match metric {
        Metric::Hamming { bits: length } | Metric::Symbols { length } => {
            let length = f64::from(length);
            // No random item comes within far: 5 deviations.
            let most = length / 2.0 - 2.5 * length.sqrt();
            ((between(0.01, 0.1, rng) * length).ceil(), (between(0.6, 1.0, rng) * most).floor())
        }
        Metric::Jaccard { .. } | Metric::WeightedJaccard { .. } => {
            let exact = |similarity: f64| {
                let common = common(Distance::new(1.0 - similarity).expect("a similarity")) as f64;
                1.0 - common / (2.0 * SET as f64 - common)
            };
            (exact(between(0.7, 0.97, rng)), exact(between(0.1, 0.6, rng)))
        }
        Metric::Angle { dimension } => {
            let most = std::f64::consts::FRAC_PI_2 - 5.0 / f64::from(dimension).sqrt();
            (between(0.05, 0.4, rng), between(0.7, 1.0, rng) * most)
        }
        _ => {
            let near = between(0.5, 2.0, rng);
            (near, near * between(4.0, 60.0, rng))
        }
    };
    let own = |value| metric.own_unit(Distance::new(value).expect("positive"));
    let request = Request::new(metric, own(near)).far(own(far)).capacity(100 + rng.below(400));
    let mut request = request.errors(between(0.01, 0.1, rng), between(0.002, 0.05, rng));
    if rng.unit() < 0.2 {
        request.far_model = Some(FarModel::WorstCase);
    }
    request
}

/// The results of a simulation.
pub struct Measured {
    /// The fraction of near partners that was missed.
    pub false_negative: f64,
    /// The fraction of far partners that was accepted.
    pub false_positive: f64,
    /// The standard error of each: by the filters' differences or by the number of queries, whichever is more.
    pub errors: [f64; 2],
}

impl Measured {
    /// Returns by how many standard errors the worse of the promises was missed; negative if both were kept.
    pub fn worst_excess(&self, terms: &Terms) -> f64 {
        let [near, far] = self.errors;
        let near = (self.false_negative - terms.max_false_negative) / near;
        near.max((self.false_positive - terms.max_false_positive) / far)
    }
}

/// Simulates a plan in `filters` filters.
pub fn simulate(plan: &Plan, filters: u64, number: u64) -> Measured {
    let (metric, terms) = (plan.request.metric, plan.terms());
    let spec = plan.spec.near().expect("only near filters are simulated");
    let (mut missed, mut accepted) = (Vec::new(), Vec::new());
    for seed in 0..filters {
        let mut rng = Rng::new(Seed::new(number).derive("items", seed));
        let mut spec = spec.clone();
        spec.seed = Seed::new(1 + seed);
        let mut filter = Filter::new(&FilterSpec::from(spec)).expect("a planned spec is valid");
        let mut room = Hashed::default();
        let mut ask = |filter: &Filter<'_>, item: &ItemBuffer| {
            filter.contains_near(item.view(), &mut room).expect("a fitting item")
        };
        let mut items = Vec::new();
        let mut misses = 0;
        for _ in 0..terms.capacity {
            let item = random(metric, terms.near, &mut rng);
            filter.insert(item.view(), &mut Hashed::default()).expect("a fitting item");
            misses += u64::from(!ask(&filter, &partner(metric, &item, terms.near, &mut rng)));
            items.push(item);
        }
        let far = |item: &ItemBuffer| partner(metric, item, terms.far, &mut rng);
        let accepts = items.iter().map(far).filter(|item| ask(&filter, item)).count();
        missed.push(misses as f64 / terms.capacity as f64);
        accepted.push(accepts as f64 / terms.capacity as f64);
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let error = |rates: &[f64], promise: f64| {
        let count = rates.len() as f64;
        let spread = rates.iter().map(|rate| (rate - mean(rates)).powi(2)).sum::<f64>() / (count - 1.0) / count;
        spread.max(promise * (1.0 - promise) / (count * terms.capacity as f64)).sqrt()
    };
    let errors = [error(&missed, terms.max_false_negative), error(&accepted, terms.max_false_positive)];
    Measured { false_negative: mean(&missed), false_positive: mean(&accepted), errors }
}

//! What a filter really does on someone's own items, beside what it predicts.
//!
//! Queries are sampled, the nearest stored item of each is found by comparing it with all of them, and the filter's answers
//! are sorted by that distance.
//! Claim: the distances are exact; the rates have the uncertainty of their counts and nothing else.

use nearset::family::{Form, Hashed};
use nearset::item::ItemBuffer;
use nearset::{Distance, Filter, Item, ItemError, Metric, Shingler};

/// Makes items comparable: texts are cut once, not once a comparison.
pub struct Keeper {
    shingler: Option<Shingler>,
    weighted: bool,
}

impl Keeper {
    /// For the items of a metric.
    pub fn new(metric: Metric) -> Self {
        // Any seed will do: it only has to be the same for both sides.
        let shingler = metric.shape().shingling.and_then(|cut| Shingler::new(cut, nearset::Seed::default()).ok());
        Self { shingler, weighted: matches!(metric.form(), Form::Weighted(_)) }
    }

    /// Keeps an item; `None` for a kind that files don't have.
    pub fn keep(&self, item: Item<'_>) -> Option<ItemBuffer> {
        Some(match (item, &self.shingler) {
            (Item::Text(text), Some(shingler)) if self.weighted => Item::Weighted(&shingler.bag(text)).into(),
            (Item::Text(text), Some(shingler)) => Item::Set(&shingler.shingle_set(text)).into(),
            (Item::Text(_) | Item::Bits(_) | Item::Vector(_) | Item::Symbols(_), _) => item.into(),
            _ => return None,
        })
    }
}

/// A query, the filter's answer to it, and the nearest item so far.
pub struct Query {
    kept: ItemBuffer,
    /// Whether the filter accepts it.
    pub accepted: bool,
    /// The distance of the nearest stored item.
    pub nearest: Option<Distance>,
}

impl Query {
    /// Asks the filter.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length.
    pub fn new(filter: &Filter<'_>, item: Item<'_>, kept: ItemBuffer, room: &mut Hashed) -> Result<Self, ItemError> {
        Ok(Self { kept, accepted: filter.find(item, room)?.near, nearest: None })
    }

    /// Compares it with a stored item.
    ///
    /// # Errors
    /// If the items have no distance.
    pub fn distance(&self, filter: &Filter<'_>, stored: &ItemBuffer) -> Result<Option<Distance>, ItemError> {
        // An empty text is near nothing.
        if let (Item::Set(a), Item::Set(b)) = (self.kept.view(), stored.view())
            && (a.is_empty() || b.is_empty())
        {
            return Ok(None);
        }
        let metric = filter.spec().metric().expect("items that are read from files have a metric");
        metric.between(self.kept.view(), stored.view()).map(Some)
    }
}

/// The queries whose nearest item lies between two distances.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Bin {
    /// From here.
    pub from: f64,
    /// To here, in the metric's own unit.
    pub to: f64,
    /// Queries.
    pub queries: u64,
    /// Those accepted.
    pub accepted: u64,
    /// How many the filter predicts to be accepted.
    pub predicted: f64,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Measured {
    /// Queries with something stored at near or nearer.
    pub near_queries: u64,
    /// Those that were missed.
    pub missed: u64,
    /// How many the filter predicts to be missed.
    pub missed_predicted: f64,
    /// Queries with nothing nearer than far.
    pub far_queries: u64,
    /// Those that were accepted.
    pub wrong: u64,
    /// How many the filter predicts to be accepted.
    pub wrong_predicted: f64,
    /// By distance, nearest first.
    pub bins: Vec<Bin>,
}

/// Bins of the table.
const BINS: usize = 12;

/// Sorts the answers by distance.
pub fn measure(filter: &Filter<'_>, metric: Metric, queries: &[Query], near: Distance, far: Distance) -> Measured {
    let farthest = metric.farthest();
    let known = |query: &Query| query.nearest.or(farthest).map(|distance| (distance, query.accepted));
    let mut all: Vec<(Distance, bool)> = queries.iter().filter_map(known).collect();
    all.sort_by(|a, b| a.0.value().total_cmp(&b.0.value()));
    let predict = |part: &[(Distance, bool)]| {
        part.iter().map(|(distance, _)| filter.acceptance_probability(*distance)).sum::<f64>()
    };
    let accepted = |part: &[(Distance, bool)]| part.iter().filter(|(_, accepted)| *accepted).count() as u64;
    let (near_part, rest) = all.split_at(all.partition_point(|(distance, _)| *distance <= near));
    let far_part = &rest[rest.partition_point(|(distance, _)| *distance < far)..];
    let bins = all.chunk_by(|a, b| bin(metric, a.0) == bin(metric, b.0)).map(|part| Bin {
        from: metric.own_unit(part[0].0),
        to: metric.own_unit(part[part.len() - 1].0),
        queries: part.len() as u64,
        accepted: accepted(part),
        predicted: predict(part),
    });
    Measured {
        near_queries: near_part.len() as u64,
        missed: near_part.len() as u64 - accepted(near_part),
        missed_predicted: near_part.len() as f64 - predict(near_part),
        far_queries: far_part.len() as u64,
        wrong: accepted(far_part),
        wrong_predicted: predict(far_part),
        bins: bins.collect(),
    }
}

/// Returns which bin a distance belongs to; distances without a largest one are told apart by their order of magnitude.
fn bin(metric: Metric, distance: Distance) -> i64 {
    match metric.farthest() {
        Some(farthest) => (distance.value() / farthest.value() * BINS as f64).floor() as i64,
        None => distance.value().max(f64::MIN_POSITIVE).log2().floor() as i64,
    }
}

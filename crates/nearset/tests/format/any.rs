//! Files of any kind opened as the kind that they state, and files signed again after a change.

use nearset::{
    BloomFilter, Check, DecodeError, Distance, Filter, FilterSpec, Index, IndexSpec, InsertError, ItemError, Kind,
    family::Hashed, index::IndexError,
};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::samples::Item;

/// Returns where the tables start, or `None` if the header states more than there is.
pub fn payload_start(bytes: &[u8]) -> Option<usize> {
    let described = u32::from_le_bytes(bytes.get(12..16)?.try_into().ok()?) as usize;
    let start = 64 + described.next_multiple_of(64);
    (start <= bytes.len()).then_some(start)
}

/// Corrects both checksums, so that what lies behind them is tested.
pub fn sign(bytes: &mut [u8]) {
    let Some(start) = payload_start(bytes) else { return };
    let sum = xxh3_64(&bytes[start..]);
    bytes[24..32].copy_from_slice(&sum.to_le_bytes());
    let mut header = Xxh3::new();
    header.update(&bytes[..56]);
    header.update(&bytes[64..start]);
    bytes[56..64].copy_from_slice(&header.digest().to_le_bytes());
}

pub enum Any<'a> {
    Bloom(BloomFilter<'a>),
    Filter(Filter<'a>),
    Index(Index<'a>),
    Description(FilterSpec),
}

/// Returns the only error that an item of a sample can cause.
fn item_error(error: IndexError) -> ItemError {
    match error {
        IndexError::Item(error) => error,
        other => panic!("{other}"),
    }
}

impl<'a> Any<'a> {
    pub fn open(bytes: &'a [u8], check: Check) -> Result<Self, DecodeError> {
        Ok(match Kind::of(bytes)? {
            Kind::Bloom => Any::Bloom(BloomFilter::decode(bytes, check)?),
            Kind::Near | Kind::ExactNear | Kind::Generations => Any::Filter(Filter::decode(bytes, check)?),
            Kind::Hamming | Kind::Lsh => Any::Index(Index::decode(bytes, check)?),
            Kind::Description => Any::Description(FilterSpec::decode(bytes, Check::Everything)?),
            other => panic!("{other} has no sample: add one"),
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let written = match self {
            Any::Bloom(filter) => filter.encode(&mut bytes),
            Any::Filter(filter) => filter.encode(&mut bytes),
            Any::Index(index) => index.encode(&mut bytes),
            Any::Description(description) => return description.encode(),
        };
        written.expect("a Vec takes all");
        bytes
    }

    pub fn insert(&mut self, item: &Item) -> Result<bool, ItemError> {
        match self {
            Any::Bloom(filter) => Ok(filter.insert(item.bytes())),
            Any::Index(index) => index.insert(item.view()).map(|_| true).map_err(item_error),
            Any::Filter(filter) => match filter.insert(item.view(), &mut Hashed::default()) {
                Err(InsertError::Item(error)) => Err(error),
                inserted => Ok(inserted.unwrap_or_else(|error| panic!("{error}"))),
            },
            Any::Description(_) => panic!("a description holds no items"),
        }
    }

    pub fn contains(&self, item: &Item) -> Result<bool, ItemError> {
        match self {
            Any::Bloom(filter) => Ok(filter.contains(item.bytes())),
            Any::Index(index) => {
                let item = item.view();
                let found = match index.spec() {
                    IndexSpec::Hamming(spec) => {
                        let radius = Distance::from_count(spec.radius);
                        index.search(item, None, Some(radius)).map(|found| !found.is_empty())
                    }
                    IndexSpec::Lsh(spec) if spec.keeps_items => index
                        .search(item, Some(1), None)
                        .and_then(|_| index.candidates(item))
                        .map(|ids| !ids.is_empty()),
                    _ => index.candidates(item).map(|ids| !ids.is_empty()),
                };
                found.map_err(item_error)
            }
            Any::Filter(filter) => filter.contains_near(item.view(), &mut Hashed::default()),
            Any::Description(_) => Ok(false),
        }
    }
}

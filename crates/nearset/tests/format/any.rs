//! Files of any kind opened as the kind that they state, and files signed again after a change.

use nearset::{
    BloomFilter, Check, DecodeError, Distance, ExactNearFilter, Filter, FilterSpec, HammingIndex, ItemError,
    NearFilter,
    codec::Kind,
    family::Hashed,
    filter::InsertError,
    index::{IndexError, LshIndex},
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
    Near(NearFilter<'a>),
    ExactNear(ExactNearFilter<'a>),
    Hamming(HammingIndex<'a>),
    Lsh(LshIndex<'a>),
    Generations(Filter<'a>),
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
            Kind::Near => Any::Near(NearFilter::decode(bytes, check)?),
            Kind::ExactNear => Any::ExactNear(ExactNearFilter::decode(bytes, check)?),
            Kind::Hamming => Any::Hamming(HammingIndex::decode(bytes, check)?),
            Kind::Lsh => Any::Lsh(LshIndex::decode(bytes, check)?),
            Kind::Generations => Any::Generations(Filter::decode(bytes, check)?),
            Kind::Description => Any::Description(FilterSpec::decode(bytes)?),
            other => panic!("{other} has no sample: add one"),
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let written = match self {
            Any::Bloom(filter) => filter.encode(&mut bytes),
            Any::Near(filter) => filter.encode(&mut bytes),
            Any::ExactNear(filter) => filter.encode(&mut bytes),
            Any::Hamming(index) => index.encode(&mut bytes),
            Any::Lsh(index) => index.encode(&mut bytes),
            Any::Generations(filter) => filter.encode(&mut bytes),
            Any::Description(description) => return description.encode(),
        };
        written.expect("a Vec takes all");
        bytes
    }

    pub fn insert(&mut self, item: &Item) -> Result<bool, ItemError> {
        match self {
            Any::Bloom(filter) => Ok(filter.insert(item.bytes())),
            Any::Near(filter) => filter.insert(item.view()),
            Any::ExactNear(filter) => filter.insert(item.view()),
            Any::Hamming(index) => index.insert(item.view()).map(|_| true).map_err(item_error),
            Any::Lsh(index) => index.insert(item.view()).map(|_| true).map_err(item_error),
            Any::Generations(filter) => match filter.insert(item.view(), &mut Hashed::new()) {
                Err(InsertError::Item(error)) => Err(error),
                inserted => Ok(inserted.unwrap_or_else(|error| panic!("{error}"))),
            },
            Any::Description(_) => panic!("a description holds no items"),
        }
    }

    pub fn contains(&self, item: &Item) -> Result<bool, ItemError> {
        match self {
            Any::Bloom(filter) => Ok(filter.contains(item.bytes())),
            Any::Near(filter) => filter.contains_near(item.view()),
            Any::ExactNear(filter) => filter.contains_near(item.view()),
            Any::Hamming(index) => {
                let radius = Distance::from_count(index.spec().radius);
                index.within(item.view(), radius).map(|found| !found.is_empty()).map_err(item_error)
            }
            Any::Lsh(index) => {
                if index.spec().keeps_items {
                    index.nearest(item.view(), 1).map_err(item_error)?;
                }
                index.candidates(item.view()).map(|found| !found.is_empty()).map_err(item_error)
            }
            Any::Generations(filter) => filter.contains_near(item.view(), &mut Hashed::new()),
            Any::Description(_) => Ok(false),
        }
    }
}

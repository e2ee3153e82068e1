//! Items that are made ready for an index on any thread, and looked up and inserted when their turn comes.
//!
//! Claim: looking up prepared items and inserting them is what [`Index::search`] and [`Index::push`] do, without hashing them again.

use super::{Index, IndexError, Neighbour, Structure};
use crate::{Distance, Item, ItemError, family::Hashed, item::ItemBuffer};

/// An item in the form in which indexes of one spec keep and compare it, hashed.
#[derive(Debug, Clone)]
pub struct PreparedItem {
    item: ItemBuffer,
    pub(crate) hashed: Hashed,
}

/// The item itself: a text as the set or the bag of its shingles.
impl<'p> From<&'p PreparedItem> for Item<'p> {
    fn from(prepared: &'p PreparedItem) -> Self {
        prepared.item.view()
    }
}

impl Index<'_> {
    /// Makes an item ready, for any index of the same spec.
    ///
    /// # Errors
    /// If the item is of a wrong kind or length, or has no hash.
    pub fn prepare<'i>(&self, item: impl Into<Item<'i>>) -> Result<PreparedItem, ItemError> {
        let item = item.into();
        match &self.0 {
            Structure::Hamming(index) => {
                index.row_of(item)?;
                Ok(PreparedItem { item: item.into(), hashed: Hashed::default() })
            }
            Structure::Lsh(index) => {
                let query = index.query(item)?;
                // What hashing needed on the way is not needed any more.
                let Hashed { keys, rows, offsets, .. } = query.hashed;
                let hashed = Hashed { keys, rows, offsets, ..Hashed::default() };
                Ok(PreparedItem { item: query.item.view().into(), hashed })
            }
        }
    }

    /// Finds what lies within a distance of each of many items, among those whose id is `from` or more: pairs of an item's place and what is near
    /// it, in the order of both. `None` if there are more than `most`, to be asked in smaller parts.
    ///
    /// Many bit strings at once are quicker than one after the other, since they are sorted and compared bucket by bucket.
    ///
    /// # Errors
    /// If the index keeps no items, or an item was prepared for another one.
    pub fn search_prepared(
        &self,
        items: &[&PreparedItem],
        from: u32,
        within: Distance,
        most: usize,
    ) -> Result<Option<Vec<(u32, Neighbour)>>, IndexError> {
        let index = match &self.0 {
            Structure::Hamming(index) => {
                let rows = items.iter().map(|item| index.row_of(*item)).collect::<Result<Vec<_>, _>>();
                let rows = rows.map_err(|_| IndexError::PreparedForAnother)?;
                return Ok(index.join(&rows, from, within.value() as u32, most));
            }
            Structure::Lsh(index) => index,
        };
        let mut found = Vec::new();
        for (place, item) in (0..).zip(items) {
            let mut near = index.within_from((*item).into(), &item.hashed, from, within)?;
            near.sort_unstable_by_key(|near| near.id);
            found.extend(near.into_iter().map(|near| (place, near)));
            if found.len() > most {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    /// Inserts an item, and returns its id. [`Self::compact`] belongs after many.
    ///
    /// # Errors
    /// If it was prepared for another index, or there are too many; the index is then unchanged.
    pub fn insert_prepared(&mut self, item: &PreparedItem) -> Result<u32, IndexError> {
        match &mut self.0 {
            Structure::Hamming(index) => index.push(item),
            Structure::Lsh(index) => index.insert_hashed(item.into(), &item.hashed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BitString, HammingSpec, Metric, Rng, Seed, plan::Request};

    #[test]
    fn prepared_items_are_found_as_others_are_from_any_id_on() {
        let mut rng = Rng::new(Seed::new(5));
        let mut items: Vec<ItemBuffer> = Vec::new();
        let hashes: Vec<BitString> = (0..300)
            .map(|i: u64| {
                let mut bits =
                    [(i / 3).wrapping_mul(0x9E37_79B9_7F4A_7C15), (i / 3).wrapping_mul(0xD1B5_4A32_D192_ED03)];
                bits[0] ^= 1 << rng.below(64) | 1 << rng.below(64);
                BitString::from_bytes(bytemuck::cast_slice(&bits))
            })
            .collect();
        items.extend(hashes.iter().map(|bits| Item::Bits(bits.bits()).into()));
        let exact = Index::new(HammingSpec::new(128, 9, Seed::new(1))).unwrap();
        let request = Request::new(Metric::Hamming { bits: 128 }, 9.0).far(40.0).capacity(300);
        let probable = Index::new(request.plan_index().unwrap().spec).unwrap();
        let within = Distance::from_count(9);
        for mut index in [exact, probable] {
            let mut twin = index.clone();
            let prepared: Vec<PreparedItem> = items.iter().map(|item| index.prepare(item.view()).unwrap()).collect();
            for (i, item) in prepared.iter().enumerate() {
                assert_eq!(index.insert_prepared(item).unwrap(), i as u32);
                twin.push(item, None).unwrap();
                if i == 200 {
                    index.compact();
                }
            }
            let refs: Vec<&PreparedItem> = prepared.iter().collect();
            let mut several = 0;
            for from in [0, 1, 199, 201, 202, 299, 300] {
                let mut expected = Vec::new();
                for (place, item) in (0..).zip(&items) {
                    let mut all = twin.search(item.view(), None, Some(within)).unwrap();
                    all.retain(|near| near.id >= from);
                    all.sort_by_key(|near| near.id);
                    several += usize::from(all.len() > 1);
                    expected.extend(all.into_iter().map(|near| (place, near)));
                }
                let found = |most| index.search_prepared(&refs, from, within, most).unwrap();
                assert_eq!(found(expected.len()).as_ref(), Some(&expected));
                assert_eq!(found(expected.len().saturating_sub(1)), Some(expected).filter(|all| all.is_empty()));
            }
            assert!(several > 300, "{several}");
        }
    }

    #[test]
    fn what_the_index_does_not_take_is_refused_before_its_turn() {
        let index = Index::new(HammingSpec::new(64, 3, Seed::new(1))).unwrap();
        assert!(index.prepare("a text").is_err());
        assert!(index.prepare(&BitString::zeros(63)).is_err());
        let cosine = Request::new(Metric::Angle { dimension: 3 }, 0.9).far(0.3).capacity(10).plan_index().unwrap();
        let index = Index::new(cosine.spec).unwrap();
        assert!(index.prepare(&[0.0f32, 0.0, 0.0][..]).is_err());
        assert!(index.prepare(&[0.0f32, 1.0, 0.0][..]).is_ok());
    }
}

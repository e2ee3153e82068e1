//! Connected components: what chains of near pairs connect.

/// Connected components (Galler & Fischer 1964; Tarjan 1975): which items chains of pairs connect.
#[derive(Debug, Clone, Default)]
pub struct UnionFind {
    parents: Vec<u32>,
}

impl UnionFind {
    /// Adds items, each alone, until there are so many.
    ///
    /// # Panics
    /// Beyond 2^32 items.
    pub fn grow(&mut self, items: usize) {
        let have = self.parents.len();
        let number = |item: usize| u32::try_from(item).expect("at most 2^32 items");
        self.parents.extend((have..items).map(number));
    }

    /// The first item of its component.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn find(&mut self, item: u32) -> u32 {
        let mut at = item;
        while self.parents[at as usize] != at {
            // Halving the path keeps later walks short.
            let grandparent = self.parents[self.parents[at as usize] as usize];
            self.parents[at as usize] = grandparent;
            at = grandparent;
        }
        at
    }

    /// Joins the components of two items.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn union(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        // The first item is the root, whatever order pairs come in.
        self.parents[a.max(b) as usize] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use nearset::{Rng, Seed};

    use super::*;

    #[test]
    fn components_do_not_depend_on_the_order_of_pairs() {
        let mut rng = Rng::new(Seed::new(3));
        let pairs: Vec<(u32, u32)> = (0..150).map(|_| (rng.below(200) as u32, rng.below(200) as u32)).collect();
        let components = |pairs: &mut dyn Iterator<Item = &(u32, u32)>| {
            let mut found = UnionFind::default();
            found.grow(200);
            pairs.for_each(|&(a, b)| found.union(a, b));
            Vec::from_iter((0..200).map(|item| found.find(item)))
        };
        let (forth, back) = (components(&mut pairs.iter()), components(&mut pairs.iter().rev()));
        assert_eq!(forth, back);
        assert!(pairs.iter().all(|&(a, b)| forth[a as usize] == forth[b as usize]));
        assert!((0..200).all(|item| forth[item] <= item as u32 && forth[forth[item] as usize] == forth[item]));
    }
}

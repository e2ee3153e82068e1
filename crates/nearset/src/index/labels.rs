//! What people call the items: a name an id, all in one text.

use std::{borrow::Cow, collections::TryReserveError};

/// Names of items, by id. Those that were not named have none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Labels<'a> {
    /// Where each name ends in the text.
    pub(crate) ends: Cow<'a, [u64]>,
    pub(crate) text: Cow<'a, [u8]>,
}

impl<'a> Labels<'a> {
    /// One more than the last id that was named.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether nothing is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The item's name, if it has one.
    pub(crate) fn get(&self, id: u32) -> Option<&str> {
        let id = id as usize;
        let start = if id == 0 { 0 } else { *self.ends.get(id - 1)? };
        // A file whose tables were not checked may say anything.
        let name = self.text.get(start as usize..*self.ends.get(id)? as usize)?;
        std::str::from_utf8(name).ok().filter(|name| !name.is_empty())
    }

    /// Makes room for so many names of so many bytes.
    pub(crate) fn reserve(&mut self, names: usize, bytes: usize) -> Result<(), TryReserveError> {
        self.ends.to_mut().try_reserve_exact(names)?;
        self.text.to_mut().try_reserve_exact(bytes)
    }

    /// Names an item; those between it and the last one named stay without a name.
    ///
    /// # Panics
    /// If the item, or a later one, was named before.
    pub(crate) fn insert(&mut self, id: u32, name: &str) {
        assert!(id as usize >= self.ends.len(), "names are given in ascending order of ids");
        let ends = self.ends.to_mut();
        let last = ends.last().copied().unwrap_or(0);
        ends.resize(id as usize, last);
        self.text.to_mut().extend_from_slice(name.as_bytes());
        self.ends.to_mut().push(last + name.len() as u64);
    }

    /// Names an item of other labels as one is called here, or by its number where it has no name.
    pub(crate) fn copy(&self, id: u32, others: &mut Labels<'_>, new: u32) {
        match self.get(id) {
            Some(name) => others.insert(new, name),
            None => others.insert(new, &id.to_string()),
        }
    }

    /// Bytes of the name that [`Self::copy`] gives.
    pub(crate) fn bytes_of_copy(&self, id: u32) -> usize {
        let digits = || id.checked_ilog10().unwrap_or(0) as usize + 1;
        self.get(id).map_or_else(digits, str::len)
    }

    /// Takes in the names of items that follow those of ids below `first`.
    pub(crate) fn append(&mut self, first: u32, others: &Labels<'_>) {
        for id in 0..others.len() as u32 {
            if let Some(name) = others.get(id) {
                self.insert(first + id, name);
            }
        }
    }

    /// What is wrong with labels that were read from a file, if anything is.
    pub(crate) fn find_fault(&self) -> Option<&'static str> {
        let Ok(text) = std::str::from_utf8(&self.text) else { return Some("not UTF-8") };
        if !self.ends.is_sorted() || self.ends.last().copied().unwrap_or(0) != text.len() as u64 {
            return Some("the ends do not fit the text");
        }
        let whole = |&end: &u64| text.is_char_boundary(end as usize);
        (!self.ends.iter().all(whole)).then_some("a name ends within a letter")
    }

    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> u64 {
        size_of_val(&*self.ends) as u64 + self.text.len() as u64
    }

    pub(crate) fn into_owned(self) -> Labels<'static> {
        Labels { ends: self.ends.into_owned().into(), text: self.text.into_owned().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_gaps_have_none() {
        let mut labels = Labels::default();
        labels.insert(1, "one");
        labels.insert(4, "vier");
        labels.insert(5, "五");
        let names: Vec<Option<&str>> = (0..7).map(|id| labels.get(id)).collect();
        assert_eq!(names, [None, Some("one"), None, None, Some("vier"), Some("五"), None]);
        assert_eq!(labels.find_fault(), None);
        let mut more = labels.clone();
        more.append(10, &labels);
        assert_eq!((more.get(11), more.get(15), more.len()), (Some("one"), Some("五"), 16));
    }
}

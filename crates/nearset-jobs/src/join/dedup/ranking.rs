//! Records in the order in which they are wanted, the most wanted first. What memory can't hold is sorted part by part in scratch space, and
//! the parts are merged.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;

use nearset_records::Scratch;

use super::super::rank::{Keep, Rank};
use super::super::texts::Place;

/// A record that was read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    pub rank: Rank,
    /// Its number among all records.
    pub number: u64,
    pub place: Place,
    /// Its number among marked records, if it is one.
    pub mark: Option<u32>,
    pub keys: Vec<u64>,
}

impl Candidate {
    fn bytes(&self) -> u64 {
        let text = if let Rank::Text(text) = &self.rank { text.len() } else { 0 };
        (size_of::<Self>() + 8 * self.keys.capacity() + text) as u64
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.place.to_bytes());
        out.extend_from_slice(&self.mark.unwrap_or(u32::MAX).to_le_bytes());
        match &self.rank {
            Rank::Missing => out.push(0),
            Rank::Text(text) => {
                out.push(1);
                out.extend_from_slice(&(text.len() as u64).to_le_bytes());
                out.extend_from_slice(text.as_bytes());
            }
            Rank::Number(value, whole) => {
                out.push(if whole.is_some() { 3 } else { 2 });
                out.extend_from_slice(&value.to_le_bytes());
                out.extend_from_slice(&whole.unwrap_or(0).to_le_bytes());
            }
        }
        self.keys.iter().for_each(|key| out.extend_from_slice(&key.to_le_bytes()));
    }

    fn read(mut bytes: &[u8]) -> Option<Self> {
        fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
            let (taken, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            Some(*taken)
        }
        let number = u64::from_le_bytes(take(&mut bytes)?);
        let place = Place::from_bytes(take(&mut bytes)?);
        let mark = Some(u32::from_le_bytes(take(&mut bytes)?)).filter(|&mark| mark < u32::MAX);
        let rank = match take::<1>(&mut bytes)? {
            [0] => Rank::Missing,
            [1] => {
                let length = u64::from_le_bytes(take(&mut bytes)?);
                let (text, rest) = bytes.split_at_checked(length as usize)?;
                bytes = rest;
                Rank::Text(std::str::from_utf8(text).ok()?.into())
            }
            [kind] => {
                let (value, whole) = (f64::from_le_bytes(take(&mut bytes)?), i128::from_le_bytes(take(&mut bytes)?));
                Rank::Number(value, (kind == 3).then_some(whole))
            }
        };
        let keys = bytes.as_chunks().0.iter().map(|&key| u64::from_le_bytes(key)).collect();
        Some(Self { rank, number, place, mark, keys })
    }
}

/// Records that come in the order of reading and go in the order in which they are wanted.
pub(super) struct Ranking<'k> {
    keep: &'k Keep,
    held: Vec<Candidate>,
    held_bytes: u64,
    most_bytes: u64,
    scratch: Box<dyn Fn() -> io::Result<Scratch> + 'k>,
    sorted: Option<Scratch>,
    /// Where each sorted part ends.
    ends: Vec<u64>,
}

impl<'k> Ranking<'k> {
    /// Holds so many bytes of records at most, and the rest in a file that `scratch` makes.
    pub fn new(keep: &'k Keep, most_bytes: u64, scratch: impl Fn() -> io::Result<Scratch> + 'k) -> Self {
        let (held, sorted, ends) = (Vec::new(), None, Vec::new());
        Self { keep, held, held_bytes: 0, most_bytes, scratch: Box::new(scratch), sorted, ends }
    }

    /// Memory of what is held.
    pub fn bytes(&self) -> u64 {
        self.held_bytes + (self.held.capacity() - self.held.len()) as u64 * size_of::<Candidate>() as u64
    }

    pub fn push(&mut self, candidate: Candidate) -> io::Result<()> {
        self.held_bytes += candidate.bytes();
        self.held.push(candidate);
        if self.held_bytes > self.most_bytes { self.write_part() } else { Ok(()) }
    }

    fn sort(&mut self) {
        self.held.sort_unstable_by(|a, b| order(self.keep, a, b));
    }

    fn write_part(&mut self) -> io::Result<()> {
        self.sort();
        let sorted = match &mut self.sorted {
            Some(sorted) => sorted,
            none => none.insert((self.scratch)()?),
        };
        let mut bytes = Vec::new();
        for candidate in self.held.drain(..) {
            bytes.clear();
            bytes.extend_from_slice(&[0; 8]);
            candidate.write(&mut bytes);
            let length = bytes.len() as u64 - 8;
            bytes[..8].copy_from_slice(&length.to_le_bytes());
            sorted.append(&bytes)?;
        }
        self.ends.push(sorted.len());
        self.held_bytes = 0;
        Ok(())
    }

    /// Ends the reading.
    pub fn sorted(mut self) -> io::Result<RankOrder<'k>> {
        if self.ends.is_empty() {
            self.sort();
            return Ok(RankOrder {
                held_bytes: self.bytes(),
                held: self.held.into_iter(),
                parts: Vec::new(),
                heads: BinaryHeap::new(),
                file: None,
            });
        }
        self.write_part()?;
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let parts = starts.zip(&self.ends).map(|(at, &end)| Part { at, end }).collect();
        let (held, heads, file) = (Vec::new().into_iter(), BinaryHeap::new(), self.sorted.take());
        let mut sorted = RankOrder { held_bytes: 0, held, parts, heads, file };
        for part in 0..sorted.parts.len() {
            sorted.load(self.keep, part)?;
        }
        Ok(sorted)
    }
}

fn order(keep: &Keep, a: &Candidate, b: &Candidate) -> Ordering {
    keep.order(&a.rank, &b.rank).then(a.number.cmp(&b.number))
}

/// A sorted part, as far as it is not read yet.
struct Part {
    at: u64,
    end: u64,
}

/// The first record of a part.
struct Head<'k> {
    keep: &'k Keep,
    candidate: Candidate,
    part: usize,
}

impl Ord for Head<'_> {
    /// The most wanted is the largest.
    fn cmp(&self, other: &Self) -> Ordering {
        order(self.keep, &other.candidate, &self.candidate)
    }
}

impl PartialOrd for Head<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head<'_> {}

/// Records in the order in which they are wanted.
pub(super) struct RankOrder<'k> {
    held: std::vec::IntoIter<Candidate>,
    held_bytes: u64,
    parts: Vec<Part>,
    heads: BinaryHeap<Head<'k>>,
    file: Option<Scratch>,
}

impl<'k> RankOrder<'k> {
    /// Reads the next record of a part, if it has one.
    fn load(&mut self, keep: &'k Keep, part: usize) -> io::Result<()> {
        let (Part { at, end }, Some(file)) = (&mut self.parts[part], &self.file) else { return Ok(()) };
        if at == end {
            return Ok(());
        }
        let mut length = [0; 8];
        file.read_at(*at, &mut length)?;
        let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
        file.read_at(*at + 8, &mut bytes)?;
        *at += 8 + bytes.len() as u64;
        let candidate = Candidate::read(&bytes).ok_or(io::ErrorKind::InvalidData)?;
        self.held_bytes += candidate.bytes();
        self.heads.push(Head { keep, candidate, part });
        Ok(())
    }

    /// Returns the next one.
    pub fn next(&mut self) -> io::Result<Option<Candidate>> {
        let Some(Head { keep, candidate, part }) = self.heads.pop() else {
            // The room of what is gone stays until all are, but for what it points to.
            let next = self.held.next();
            let own = next.as_ref().map_or(0, |candidate| candidate.bytes() - size_of::<Candidate>() as u64);
            self.held_bytes -= own.min(self.held_bytes);
            return Ok(next);
        };
        self.held_bytes -= candidate.bytes().min(self.held_bytes);
        self.load(keep, part)?;
        Ok(Some(candidate))
    }

    /// Memory of those that are held.
    pub fn bytes(&self) -> u64 {
        self.held_bytes
    }
}

#[cfg(test)]
mod tests {
    use nearset::{Rng, Seed};

    use super::*;

    #[test]
    fn what_memory_cannot_hold_comes_in_the_same_order() {
        let folder = tempfile::tempdir().unwrap();
        let mut rng = Rng::new(Seed::new(1));
        let values = ["3", "-1.5", "b", "a", "", "1700000000000000001", "1700000000000000002", "é"];
        for keep in [Keep::Longest, Keep::Max("f".to_owned()), Keep::Min("f".to_owned())] {
            let candidates: Vec<Candidate> = (0..1000)
                .map(|number| {
                    let value = values.get(rng.below(9) as usize).copied();
                    let rank =
                        if keep == Keep::Longest { Rank::Number(rng.below(5) as f64, None) } else { Rank::of(value) };
                    let mark = (rng.below(4) == 0).then_some(number as u32);
                    let place = Place::from_bytes(std::array::from_fn(|_| rng.next_u64() as u8));
                    let keys = (0..rng.below(5)).map(|_| rng.next_u64()).collect();
                    Candidate { rank, number, place, mark, keys }
                })
                .collect();
            let run = |most_bytes| {
                let mut wanted = Ranking::new(&keep, most_bytes, || Scratch::unnamed(folder.path()));
                candidates.iter().for_each(|candidate| wanted.push(candidate.clone()).unwrap());
                let mut sorted = wanted.sorted().unwrap();
                Vec::from_iter(std::iter::from_fn(|| sorted.next().unwrap()))
            };
            let expected = run(u64::MAX);
            assert!(expected.is_sorted_by(|a, b| order(&keep, a, b).is_lt()) && expected.len() == 1000);
            for most_bytes in [0, 500, 20_000] {
                assert!(run(most_bytes) == expected, "{keep} in {most_bytes} bytes");
            }
        }
    }
}

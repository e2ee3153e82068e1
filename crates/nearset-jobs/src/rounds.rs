//! The compared dedup for engines that bring records together by their keys, in any order of time: Spark and its like.
//!
//! ```text
//! texts ──> keys ──shuffle──> buckets: records that share a key, in order ──> near pairs, and records that must wait
//!                                ^                                                     │
//!                                └── what is still undecided <── decisions <───────────┘
//! ```
//!
//! A record is *kept* if no kept record before it is near, so the first of every family can be told at once, and what is near them with
//! it; what remains goes through the next round. In a bucket a record is compared with the *leaders* before it, which are near no leader
//! themselves, rather than with all: a family of a million copies takes a million comparisons.
//!
//! Claim: if a record that waits in no bucket is kept, and one that is near a kept record goes, then after any number of rounds what is
//! decided is what [`VerifiedDedup`](crate::join::VerifiedDedup) decides, and when all is decided, the pairs hold for each record that
//! goes all kept ones that it would be compared with there, but for lists that are full.
//! Invariant: a round of records decides at least on the first undecided one, and what a bucket holds is bounded: the sets of as many
//! leaders as a list holds, and of `MOST_OTHERS` other records; where all pairs are wanted, of [`ShingleIndex::LIMIT`]. What was not compared with
//! more leaders than that is said to be cut short.
//! Not here: how records come together, and what is remembered of them between rounds.

use std::convert::Infallible;

use nearset::JoinSpec;
use nearset::index::{CommonShingles, ShingleIndex, ShingleKeys, StarClusters};
use nearset::item::SortedSet;
use nearset::plan::{PlanError, Request};
use xxhash_rust::xxh3::xxh3_128;

use crate::join::{TextComparison, TextCutter};

/// The smallest common shingles, by which records meet that their common parts alone can make near: of two parts at .74, which the sketches
/// of parts find at .8, 2 in 100,000 share none.
const LINKS: usize = 8;

/// Undecided records of a bucket that are no leaders, whose sets are held.
const MOST_OTHERS: usize = 256;

/// Shingles of a sample, at most.
const MOST_SHINGLES: usize = 4_000_000;

/// What cuts texts and chooses their keys, the same on every machine.
#[derive(Debug, Clone)]
pub struct RoundJoin {
    spec: JoinSpec,
    cutter: TextCutter,
    model: CommonShingles,
}

/// Under what a record meets others.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Meeting {
    /// Its smallest rare shingles.
    pub keys: Vec<u64>,
    /// Its smallest common shingles, where the common part alone can make it near others.
    pub links: Vec<u64>,
    /// How many distinct shingles it has; 0 for an empty text, which is near nothing.
    pub size: usize,
    /// How many of them are in the common part, where links are.
    pub common: usize,
    /// How many rare shingles it may share with another without being found by its keys, at most.
    pub unseen: f64,
    /// By which equal sets are known.
    pub hash: u128,
}

impl RoundJoin {
    /// Records of which common shingles are learnt, at most.
    pub const SAMPLE: usize = 4000;

    /// For texts that are near as `wanted` says, with a model that was learnt before.
    ///
    /// # Errors
    /// If the promise can't be made.
    pub fn new(wanted: &Request, model: CommonShingles) -> Result<Self, PlanError> {
        Ok(Self { spec: wanted.plan_join()?, cutter: TextComparison::new(wanted)?.cutter(), model })
    }

    /// Learns which shingles are common, from a sample of `records` texts, of which the last ones are left out if they are too long.
    ///
    /// # Errors
    /// If the promise can't be made.
    pub fn learn<'t>(
        wanted: &Request,
        sample: impl IntoIterator<Item = &'t str>,
        records: usize,
    ) -> Result<CommonShingles, PlanError> {
        let cutter = TextComparison::new(wanted)?.cutter();
        let (mut sets, mut shingles) = (Vec::new(), 0);
        for text in sample {
            let set = cutter.cut(text);
            shingles += set.as_slice().len();
            sets.push(set);
            if shingles > MOST_SHINGLES {
                break;
            }
        }
        Ok(CommonShingles::of_sample(sets.iter().map(SortedSet::as_slice), records))
    }

    /// Says under what a text meets others.
    pub fn meeting(&self, text: &str, meeting: &mut Meeting) {
        let set = self.cutter.cut(text);
        let (mut keys, mut words) = (ShingleKeys::default(), Vec::new());
        keys.choose(set.as_slice(), &self.model, &self.spec);
        keys.write(&mut words);
        let (rare, common) = words[1..].split_at((words[0] >> 32) as usize);
        let Meeting { keys, links, size, common: in_common, unseen, hash } = meeting;
        keys.clear();
        links.clear();
        keys.extend_from_slice(rare);
        links.extend(common.iter().take(LINKS));
        (*size, *in_common) = (set.as_slice().len(), common.len());
        let others = *size - *in_common;
        // Two rare parts that are as similar as this share a key, but for half of what may be missed.
        let found = 1.0 - libm::pow(self.spec.max_false_negative / 2.0, 1.0 / rare.len().max(1) as f64);
        *unseen = if common.is_empty() || others <= rare.len() { 0.0 } else { found * others as f64 };
        *hash = xxh3_128(bytemuck::cast_slice(set.as_slice()));
    }

    fn keys(&self, set: &SortedSet) -> ShingleKeys {
        let mut keys = ShingleKeys::default();
        keys.choose(set.as_slice(), &self.model, &self.spec);
        keys
    }
}

/// What a record is in a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It is kept: others are compared with it.
    Kept,
    /// It is compared, and others with it unless it is near a leader.
    Undecided,
    /// It is compared, and others are not compared with it.
    Asking,
    /// It is compared, and others with it.
    Paired,
}

/// The shingle that records of a bucket share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bucket {
    /// A rare one.
    Key(i64),
    /// A common one.
    Link(i64),
}

/// What was found in a bucket about a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Finding {
    /// It is near an earlier one.
    Near {
        /// The record.
        record: i64,
        /// The earlier one.
        of: i64,
        /// How similar they are.
        similarity: f64,
    },
    /// It is undecided, and may be near an undecided one that it was not compared with.
    Waits {
        /// The record.
        record: i64,
    },
    /// It is near nothing that it was compared with here, or compared with all, and the bucket had more before it than are compared.
    CutShort {
        /// The record.
        record: i64,
    },
}

/// Goes through buckets, of which the records come in order, one bucket after the other.
#[derive(Debug)]
pub struct Buckets {
    join: RoundJoin,
    current: Option<Bucket>,
    leaders: Members,
    others: Members,
    /// Whether there are undecided records that are no leaders and whose sets are not held.
    has_more: bool,
    /// Whether there was no room for a leader.
    is_cut: bool,
}

/// Records of a bucket that others are compared with.
#[derive(Debug)]
struct Members {
    entries: Vec<(i64, SortedSet)>,
    /// Who is a candidate, where not all are.
    index: Option<StarClusters>,
    limit: usize,
}

impl Buckets {
    /// Leaders of a bucket, as many as a list of [`StarClusters`] holds.
    pub const LEADERS: usize = 1024;

    /// No bucket yet.
    pub fn new(join: RoundJoin) -> Self {
        let members = |limit| Members { entries: Vec::new(), index: None, limit };
        let (leaders, others) = (members(Self::LEADERS), members(MOST_OTHERS));
        Self { join, current: None, leaders, others, has_more: false, is_cut: false }
    }

    /// Sets how many leaders of a bucket others are compared with, at most.
    pub fn with_leaders(mut self, limit: usize) -> Self {
        self.leaders.limit = limit;
        self
    }

    /// Takes the next record, and adds what is found.
    pub fn push(&mut self, bucket: Bucket, record: i64, role: Role, text: &str, findings: &mut Vec<Finding>) {
        let Self { join, current, leaders, others, has_more, is_cut } = self;
        if *current != Some(bucket) {
            *current = Some(bucket);
            (*has_more, *is_cut) = (false, false);
            for members in [&mut *leaders, &mut *others] {
                members.entries.clear();
                // What a bucket holds is limited already.
                members.index = matches!(bucket, Bucket::Link(_)).then(|| StarClusters::new(&join.spec, usize::MAX));
            }
        }
        let set = join.cutter.cut(text);
        if set.as_slice().is_empty() {
            return;
        }
        let mut keys = if matches!(bucket, Bucket::Link(_)) { join.keys(&set) } else { ShingleKeys::default() };
        let mut is_near = false;
        let mut compare = |members: &Members| {
            members.each_near(&join.spec, &mut keys, &set, |of, similarity| {
                is_near = true;
                findings.push(Finding::Near { record, of, similarity });
            });
            is_near
        };
        match role {
            Role::Kept => *is_cut |= !leaders.insert(&keys, record, set),
            Role::Asking => {
                if !compare(leaders) && *is_cut {
                    findings.push(Finding::CutShort { record });
                }
            }
            Role::Paired => {
                compare(leaders);
                if *is_cut {
                    findings.push(Finding::CutShort { record });
                }
                *is_cut |= !leaders.insert_below(ShingleIndex::LIMIT, &keys, record, set);
            }
            Role::Undecided if compare(leaders) || compare(others) => {
                *has_more |= !others.insert(&keys, record, set);
            }
            Role::Undecided => {
                if *has_more {
                    findings.push(Finding::Waits { record });
                }
                if *is_cut {
                    findings.push(Finding::CutShort { record });
                }
                *is_cut |= !leaders.insert(&keys, record, set);
            }
        }
    }
}

impl Members {
    /// Makes a record a member, and returns whether there was room.
    fn insert(&mut self, keys: &ShingleKeys, record: i64, set: SortedSet) -> bool {
        self.insert_below(self.limit, keys, record, set)
    }

    fn insert_below(&mut self, limit: usize, keys: &ShingleKeys, record: i64, set: SortedSet) -> bool {
        if self.entries.len() >= limit {
            return false;
        }
        if let Some(StarClusters { index, .. }) = &mut self.index {
            index.insert(keys);
            index.settle_by(|tasks| tasks.into_iter().for_each(|task| task()));
        }
        self.entries.push((record, set));
        true
    }

    /// Compares a set with the members that are candidates for it.
    fn each_near(&self, spec: &JoinSpec, keys: &mut ShingleKeys, set: &SortedSet, mut each: impl FnMut(i64, f64)) {
        let mut compare = |(record, other): &(i64, SortedSet)| {
            let found = spec.similarity_at_least(set.as_slice(), other.as_slice(), spec.near);
            found.inspect(|similarity| each(*record, similarity.value()))
        };
        let Self { entries, index, .. } = self;
        let Some(index) = index else {
            return entries.iter().for_each(|entry| {
                compare(entry);
            });
        };
        let Ok(_) = index.propose(keys, |entry, least| {
            let found = compare(&entries[entry as usize]);
            Ok::<_, Infallible>(found.filter(|similarity| *similarity >= least))
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use nearset::{Rng, Seed};

    use super::*;

    /// The rounds of an engine with one machine: what goes, the kept text it is nearest to, and how near.
    fn by_rounds(texts: &[String]) -> (Vec<Option<(i64, f64)>>, usize) {
        let wanted = Request::default();
        let model = RoundJoin::learn(&wanted, texts.iter().map(String::as_str), texts.len()).unwrap();
        let join = RoundJoin::new(&wanted, model).unwrap();
        let (mut members, mut first_of) = (BTreeMap::<(bool, u64), Vec<i64>>::new(), BTreeMap::new());
        let (mut meeting, mut roles, mut copies) = (Meeting::default(), BTreeMap::new(), Vec::new());
        for (record, text) in (0..).zip(texts) {
            join.meeting(text, &mut meeting);
            let first = *first_of.entry(meeting.hash).or_insert(record);
            if meeting.size == 0 {
                continue;
            }
            if first < record {
                copies.push((record, first));
                continue;
            }
            roles.insert(record, Role::Undecided);
            let keys = meeting.keys.iter().map(|&key| (false, key));
            keys.chain(meeting.links.iter().map(|&link| (true, link)))
                .for_each(|key| members.entry(key).or_default().push(record));
        }
        let (mut pairs, mut rounds) = (Vec::new(), 0);
        while roles.values().any(|role| *role == Role::Undecided) {
            let (mut buckets, mut findings) = (Buckets::new(join.clone()), Vec::new());
            for (&(is_link, key), records) in &members {
                let bucket = if is_link { Bucket::Link(key as i64) } else { Bucket::Key(key as i64) };
                for record in records.iter().filter(|record| roles[record] != Role::Kept) {
                    buckets.push(bucket, *record, roles[record], &texts[*record as usize], &mut findings);
                }
            }
            let held = |finding: &Finding| match *finding {
                Finding::Near { record, .. } | Finding::Waits { record } => Some(record),
                Finding::CutShort { .. } => None,
            };
            let held: BTreeSet<i64> = findings.iter().filter_map(held).collect();
            let free = roles.iter_mut().filter(|(record, role)| **role == Role::Undecided && !held.contains(record));
            free.for_each(|(_, role)| *role = Role::Kept);
            for finding in &findings {
                let Finding::Near { record, of, similarity } = *finding else { continue };
                pairs.push((record, of, similarity));
                if roles[&of] == Role::Kept && roles[&record] == Role::Undecided {
                    roles.insert(record, Role::Asking);
                }
            }
            rounds += 1;
        }
        let mut verdicts: Vec<Option<(i64, f64)>> = vec![None; texts.len()];
        for (record, of, similarity) in pairs {
            let best = &mut verdicts[record as usize];
            let is_better = best.is_none_or(|(other, most)| similarity > most || similarity == most && of < other);
            if roles[&of] == Role::Kept && is_better {
                *best = Some((of, similarity));
            }
        }
        for (record, first) in copies {
            // Nothing here is kept between a text that goes and its copy.
            verdicts[record as usize] = verdicts[first as usize].or(Some((first, 1.0)));
        }
        (verdicts, rounds)
    }

    fn in_order(texts: &[String]) -> Vec<Option<(i64, f64)>> {
        let mut run = TextComparison::new(&Request::default()).unwrap();
        let cutter = run.cutter();
        run.push(texts.iter().map(|text| cutter.cut(text)));
        run.finish().iter().map(|near| near.map(|near| (near.of as i64, near.similarity))).collect()
    }

    fn words(words: impl Iterator<Item = u64>) -> String {
        words.map(|word| format!("w{word} ")).collect()
    }

    #[test]
    fn what_more_leaders_than_a_list_holds_were_before_is_cut_short() {
        let wanted = Request::default();
        let join = RoundJoin::new(&wanted, std::iter::empty().collect()).unwrap();
        let text = |record: i64| words((0..40).map(|at| 100 * record as u64 + at));
        let cut = |role, near_first: bool| {
            let (mut buckets, mut findings) = (Buckets::new(join.clone()).with_leaders(2), Vec::new());
            for (bucket, records) in [(1, 0..2), (2, 0..3)] {
                let role = if role == Role::Asking { Role::Kept } else { role };
                records
                    .for_each(|record| buckets.push(Bucket::Key(bucket), record, role, &text(record), &mut findings));
            }
            assert_eq!(findings, [], "there was room, or the last one was compared with all before it");
            buckets.push(Bucket::Key(2), 9, role, &text(if near_first { 0 } else { 9 }), &mut findings);
            buckets.push(Bucket::Key(3), 9, role, &text(9), &mut findings);
            findings
        };
        let (near, cut_short) = (Finding::Near { record: 9, of: 0, similarity: 1.0 }, Finding::CutShort { record: 9 });
        assert_eq!([cut(Role::Undecided, false), cut(Role::Undecided, true)], [vec![cut_short], vec![near]]);
        assert_eq!([cut(Role::Asking, false), cut(Role::Asking, true)], [vec![cut_short], vec![near]]);
        assert_eq!(cut(Role::Paired, false), [], "all pairs are wanted of more than leaders");
    }

    #[test]
    fn rounds_decide_as_one_pass_in_order_does() {
        let mut rng = Rng::new(Seed::new(7));
        let mut chain: Vec<String> = (0..120).map(|i| words(2 * i..2 * i + 60)).collect();
        (1..chain.len()).for_each(|at| chain.swap(at, rng.below(at as u64 + 1) as usize));
        let family = |rng: &mut Rng| {
            let start = 1000 * rng.below(3);
            let changed: Vec<u64> = (0..rng.below(8)).map(|_| rng.below(100)).collect();
            words((0..100).map(|at| if changed.contains(&at) { 5000 + rng.below(100_000) } else { start + at }))
        };
        let families: Vec<String> = (0..600).map(|_| family(&mut rng)).collect();
        let template: Vec<String> = (0..400)
            .map(|_| words((0..200).chain((0..5 + rng.below(50)).map(|_| 1000 + rng.next_u64() % 1_000_000))))
            .collect();
        let short = ["", " ", "one two", "one two", "!", "!", "three"].map(str::to_owned).to_vec();
        for (name, texts) in [("chain", chain), ("families", families), ("template", template), ("short", short)] {
            let (verdicts, rounds) = by_rounds(&texts);
            assert_eq!(verdicts, in_order(&texts), "{name}");
            let gone = verdicts.iter().flatten().count();
            assert!(gone >= 1 && rounds <= 30, "{name}: {gone} in {rounds} rounds");
        }
    }
}

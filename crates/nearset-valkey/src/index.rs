//! What a key of the other type holds: an index, and what has come so far of a file whose items it is to take in.
//!
//! Claim: a command takes a bounded time, however many items there are. Segments are merged on another thread while commands go on, and
//! put in place between two of them; answers, replicas and files don't depend on when.
//! Invariant: the lock is taken on the server's thread, or by who has the server's own lock, so that nobody holds it when the server forks.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use nearset::index::{NamedIndex, SegmentMerge};
use nearset::{Bits, Index, IndexSpec, Item, Metric, Symbols};
use redis_module::native_types::RedisType;

use crate::background::{self, Job};
use crate::data_type::{INDEX_TYPE, Stored};
use crate::memory::{self, Floor, Need};
use crate::refusal::Outcome;
use crate::server::Call;
use crate::stream::{Digest, Journal, Stream};
use crate::value::{Dump, Incoming};

/// What grows, as errors name it.
pub const GROWN: &str = "the index, grown,";

/// Bytes that are held against the limits at once, for as many small commands as they last.
const CREDIT: u64 = 1 << 20;

pub struct IndexValue {
    index: Arc<Mutex<NamedIndex>>,
    /// What near means, if people can say items of it.
    pub metric: Option<Metric>,
    /// How many tables every item has an entry in; an exact index has a few more or less, by how many items it has.
    pub tables: u64,
    /// Up to where items are near, in the metric's own unit; `None` if nobody said.
    pub near: Option<f64>,
    pub incoming: Option<Incoming>,
    /// What was held against the limits and is not used yet.
    credit: u64,
    merging: Arc<Merging>,
    /// What is under way with it, beside merges of segments, which may go on.
    pub job: Option<Arc<Job>>,
    /// All items as they were when its last dump began.
    pub dump: Option<Arc<Dump<Index<'static>>>>,
    /// The drawing of its functions.
    drawing: Option<Arc<Job>>,
}

/// How the merging of an index's segments is.
#[derive(Default)]
struct Merging {
    is_under_way: AtomicBool,
    /// When there was no memory to merge some.
    refused: Mutex<Option<Instant>>,
}

/// How long nothing is tried again for which there was no memory.
const PATIENCE: Duration = Duration::from_secs(1);

impl IndexValue {
    pub fn of(index: NamedIndex, near: Option<f64>) -> Self {
        const BLOCKS: u64 = 16;
        let empty = index.empty();
        let tables = match empty.spec() {
            IndexSpec::Lsh(spec) => spec.layout.bands.into(),
            _ => BLOCKS,
        };
        Self {
            metric: empty.metric(),
            tables,
            index: Arc::new(Mutex::new(index)),
            near,
            incoming: None,
            credit: 0,
            merging: Arc::default(),
            job: None,
            dump: None,
            drawing: None,
        }
    }

    pub fn index(&self) -> MutexGuard<'_, NamedIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the description that makes an equal index: its file without items.
    pub fn description(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.index().empty().encode(&mut bytes).expect("a vector takes all bytes");
        bytes
    }

    /// Holds what a command adds against the limits, and what it takes for a moment.
    pub fn hold_growth(&mut self, call: &Call<'_>, more: u64, passing: u64) -> Outcome {
        let total = self.bytes().saturating_add(more);
        memory::hold_against_limit(call, total, GROWN)?;
        let is_foreseen = more <= self.credit;
        if !is_foreseen || passing > memory::UNFORESEEN {
            let asked = if is_foreseen { 0 } else { more.max(CREDIT) };
            memory::allow(call, Need { what: GROWN, total, more: asked, passing }).map(drop)?;
            self.credit += asked;
        }
        self.credit = self.credit.saturating_sub(more);
        Ok(())
    }

    /// Lets a command that hashes items wait until the functions are drawn, where that takes long.
    pub fn expect_functions(&mut self, call: &Call<'_>) -> Outcome {
        let state = self.index().state();
        let bytes = if state.is_prepared { 0 } else { state.bytes_of_functions };
        background::await_functions(call, bytes, &mut self.drawing, || {
            let index = self.index.lock().unwrap_or_else(PoisonError::into_inner).empty();
            move || NamedIndex::from(index).prepare()
        })
    }

    /// Begins to merge segments on another thread, if that is due and there is memory.
    pub fn merge_if_due(&mut self) {
        if self.merging.is_under_way.load(Ordering::Acquire) {
            return;
        }
        let Some(due) = self.merging.due(&self.index()) else { return };
        self.merging.is_under_way.store(true, Ordering::Release);
        let (index, merging) = (Arc::downgrade(&self.index), Arc::clone(&self.merging));
        background::among_tables_later(move || {
            merge_all(&index, &merging, due);
            merging.is_under_way.store(false, Ordering::Release);
        });
    }
}

/// A merge that may begin.
type Due = (SegmentMerge, Floor);

impl Merging {
    /// What is to be merged next, unless there is no memory for it, or was none just now.
    fn due(&self, index: &NamedIndex) -> Option<Due> {
        let refused = *self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.is_some_and(|when| when.elapsed() < PATIENCE) {
            return None;
        }
        let merge = index.merge_due()?;
        let floor = memory::promise(merge.bytes);
        if floor.is_none() {
            self.refuse();
        }
        Some((merge, floor?))
    }

    fn refuse(&self) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

/// Merges segments as long as that is due and there is memory.
fn merge_all(index: &Weak<Mutex<NamedIndex>>, merging: &Arc<Merging>, first: Due) {
    let mut next = Some(first);
    while let Some((mut merge, floor)) = next.take() {
        let merged = memory::expect_room_here("a merge", 0).is_ok_and(|()| merge.run().is_ok());
        drop(floor);
        if !merged {
            return merging.refuse();
        }
        let (index, merging) = (Weak::clone(index), Arc::clone(merging));
        let placed = background::on_main(move || {
            let index = index.upgrade()?;
            let mut locked = index.lock().unwrap_or_else(PoisonError::into_inner);
            locked.put_in_place(&merge);
            let next = merging.due(&locked);
            drop(locked);
            Some((merge, next, index))
        });
        // What was replaced is dropped here, and the index too, if its key is gone.
        let Some((_merge, due, _index)) = placed.flatten() else { return };
        next = due;
    }
}

/// Returns an item's bytes as it is kept, the same on every machine.
pub fn bytes_of_item(item: Item<'_>) -> Vec<u8> {
    match item {
        Item::Set(set) => set.iter().flat_map(|element| element.to_le_bytes()).collect(),
        Item::Weighted(set) => {
            let bytes = |&(element, weight): &(u64, f64)| [element.to_le_bytes(), weight.to_le_bytes()].concat();
            set.iter().flat_map(bytes).collect()
        }
        Item::Bits(bits) => bytes_of_bits(bits),
        Item::Symbols(Symbols::Wide(symbols)) => symbols.iter().map(|&symbol| symbol as u8).collect(),
        Item::Vector(vector) => vector.iter().flat_map(|component| component.to_le_bytes()).collect(),
        _ => Vec::new(),
    }
}

fn bytes_of_bits(bits: Bits<'_>) -> Vec<u8> {
    let mut bytes: Vec<u8> = bits.words().iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.truncate(bits.len().div_ceil(8));
    bytes
}

/// Bits of the parts of a value in a file.
const INDEX: u64 = 1;
const INCOMING: u64 = 2;

impl Stored for IndexValue {
    fn data_type() -> &'static RedisType {
        &INDEX_TYPE
    }

    /// Encoding 1 is a number whose bits say what follows; what is near, or NaN; the description as a part; the number of segments, each as a
    /// part and a string that says what was removed of it; and perhaps the part that is being loaded.
    fn save(&self, to: &Stream) {
        let index = self.index();
        let mut segments = 0;
        index.parts(|_, _| segments += 1);
        to.put_count(INDEX | if self.incoming.is_some() { INCOMING } else { 0 });
        to.put_number(self.near.unwrap_or(f64::NAN));
        to.put_part(&|out| index.empty().encode(out));
        to.put_count(segments);
        index.parts(|part, left_out| {
            to.put_part(&|out| part.encode(out));
            let words: Vec<u8> = left_out.iter().flat_map(|word| word.to_le_bytes()).collect();
            to.put(&words);
        });
        if let Some(incoming) = &self.incoming {
            to.put_part(&|out| incoming.encode(out));
        }
    }

    fn load(from: &Stream) -> Result<Self, String> {
        let present = from.count()?;
        if present & !INCOMING != INDEX {
            return Err(format!("it has parts {present}, which this module does not know: the data is damaged"));
        }
        let near = from.number()?;
        let decoded = |part: Incoming| part.decode_index(from.work_limit()).map_err(|error| error.to_string());
        let mut index = NamedIndex::from(decoded(from.part()?)?);
        for _ in 0..from.count()? {
            let part = decoded(from.part()?)?;
            let left_out = from.string(|bytes| {
                let (words, rest) = bytes.as_chunks::<8>();
                let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>();
                if rest.is_empty() { Ok(words) } else { Err("a list of what was removed is cut off".into()) }
            })?;
            index.take_in(part, &left_out).map_err(|error| error.to_string())?;
        }
        let metric = index.empty().metric();
        let near = Some(near).filter(|near| metric.is_some_and(|metric| metric.distance(*near).is_ok()));
        let mut value = Self::of(index, near);
        if present & INCOMING != 0 {
            value.incoming = Some(from.part()?);
        }
        Ok(value)
    }

    fn rewrite(&self, journal: &Journal) {
        const LOAD: &CStr = c"NEAR.INDEX.LOAD";
        journal.reserve(c"NEAR.INDEX.RESERVE", &self.description(), self.near);
        self.index().parts(|part, left_out| {
            journal.load(LOAD, &|out| part.encode(out), None);
            // Before the next segment, which may bring another item of the same name.
            for (word, bits) in left_out.iter().enumerate() {
                let removed = (0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| 64 * word as u32 + bit);
                removed.for_each(|id| journal.write(c"NEAR.INDEX.REM", part.name(id).as_bytes()));
            }
        });
        if let Some(incoming) = &self.incoming {
            journal.load(LOAD, &|out| incoming.encode(out), None);
        }
    }

    /// By items, since segments depend on when they were merged.
    fn digest(&self, digest: &Digest) {
        digest.add(&self.description());
        self.index().for_each(None, |name, item| {
            digest.add(name.as_bytes());
            digest.add(&item.map_or_else(Vec::new, bytes_of_item));
        });
        if let Some(incoming) = &self.incoming {
            digest.add(&incoming.len().to_le_bytes());
        }
        digest.end();
    }

    /// Functions count once they are drawn.
    fn bytes(&self) -> u64 {
        let state = self.index().state();
        let functions = if state.is_prepared { state.bytes_of_functions } else { 0 };
        let incoming = self.incoming.as_ref().map_or(0, Incoming::held);
        size_of::<Self>() as u64 + state.bytes.saturating_add(functions) + incoming
    }

    fn wait(&mut self, call: &Call<'_>) -> Outcome {
        background::wait(&mut self.job, call)
    }

    /// Segments are shared, being immutable.
    fn copy(&mut self) -> Outcome<Self> {
        let mut copy = Self::of(self.index().clone(), self.near);
        copy.incoming = self.incoming.as_ref().map(Incoming::copy).transpose()?;
        Ok(copy)
    }
}

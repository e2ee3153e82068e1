//! What a key holds: a filter, and what has come so far of one that is being loaded.
//!
//! Claim: a filter that is being loaded is seen by nobody until its last byte is in and checked; whatever was there before
//! answers until then. The bytes are nearset's own file, so what `nearset build` wrote can be loaded and what is dumped can be
//! opened everywhere.
//! Invariant: a key holds at least one of the two.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use std::{io, ptr};

use nearset::DecodeError;
use nearset::family::WorkLimit;
use nearset::{Filter, Index};
use redis_module::native_types::RedisType;

use crate::background::{self, Job};
use crate::data_type::{FILTER_TYPE, Stored};
use crate::memory;
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::Call;
use crate::stream::{Digest, Journal, Part, Stream};
use crate::window::{Window, expect_window, seconds};

/// So many bytes go into one string of the server's files, and are the most that saving a filter takes beside it.
pub const PIECE: usize = 1 << 20;

/// Bits of the parts of a value in a file.
const FILTER: u64 = 1;
const INCOMING: u64 = 2;
const WINDOW: u64 = 4;

pub struct Value {
    pub filter: Option<Filter<'static>>,
    pub incoming: Option<Incoming>,
    /// How long the filter remembers, if not by the number of items alone.
    pub window: Option<Window>,
    /// Whether `COPY` made it.
    is_copy: bool,
    /// What is under way with it.
    pub job: Option<Arc<Job>>,
    /// The filter as it was when its last dump began.
    pub dump: Option<Arc<Dump<Filter<'static>>>>,
    /// The drawing of its functions.
    pub drawing: Option<Arc<Job>>,
}

impl Value {
    pub fn of(filter: Filter<'static>) -> Self {
        Self::loaded(Some(filter), None)
    }

    /// The same, with a filter that remembers for so long.
    pub fn lasting(mut self, window: Option<Window>) -> Self {
        self.window = window;
        self
    }

    /// What has come so far of a filter.
    pub fn begun(incoming: Incoming) -> Self {
        Self::loaded(None, Some(incoming))
    }

    /// What a file of the server's holds.
    pub fn loaded(filter: Option<Filter<'static>>, incoming: Option<Incoming>) -> Self {
        Self { filter, incoming, window: None, is_copy: false, job: None, dump: None, drawing: None }
    }

    /// Returns the filter, unless it has not come in whole.
    pub fn filter(&self) -> Outcome<&Filter<'static>> {
        self.filter.as_ref().ok_or_else(|| not_yet(self.incoming.as_ref()))
    }

    pub fn filter_mut(&mut self) -> Outcome<&mut Filter<'static>> {
        self.filter.as_mut().ok_or_else(|| not_yet(self.incoming.as_ref()))
    }

    /// Returns the filter as it is now for another thread, with how long it remembers.
    pub fn shared(&mut self) -> Outcome<Self> {
        let window = self.window;
        Ok(Self::of(self.filter_mut()?.share()).lasting(window))
    }

    /// Calls `each` with each part's bit, and with what writes it.
    fn parts(&self, mut each: impl FnMut(u64, Part<'_>)) {
        if let Some(filter) = &self.filter {
            each(FILTER, &|out| filter.encode(out));
        }
        if let Some(incoming) = &self.incoming {
            each(INCOMING, &|out| incoming.encode(out));
        }
    }
}

impl Stored for Value {
    fn data_type() -> &'static RedisType {
        &FILTER_TYPE
    }

    /// Encoding 1 is a number whose bits say which parts follow, then the parts; of a window two numbers.
    fn save(&self, to: &Stream) {
        let mut present = if self.window.is_some() { WINDOW } else { 0 };
        self.parts(|bit, _| present |= bit);
        to.put_count(present);
        self.parts(|_, part| to.put_part(part));
        if let Some(Window { lasts, next }) = self.window {
            to.put_count(lasts);
            to.put_count(next);
        }
    }

    fn load(from: &Stream) -> Result<Self, String> {
        let present = from.count()?;
        if present & (FILTER | INCOMING) == 0 || present & !(FILTER | INCOMING | WINDOW) != 0 {
            return Err(format!("it has parts {present}, which this module does not know: the data is damaged"));
        }
        let mut value = Value::loaded(None, None);
        if present & FILTER != 0 {
            value.filter = Some(from.part()?.decode(from.work_limit()).map_err(|error| error.to_string())?);
        }
        if present & INCOMING != 0 {
            value.incoming = Some(from.part()?);
        }
        if present & WINDOW != 0 {
            let window = Window { lasts: from.count()?, next: from.count()? };
            let forgets = value.filter.as_ref().is_some_and(|filter| expect_window(filter).is_ok());
            if !forgets || !window.is_possible() {
                return Err("its window is none that a filter can have: the data is damaged".into());
            }
            value.window = Some(window);
        }
        Ok(value)
    }

    fn rewrite(&self, journal: &Journal) {
        self.parts(|_, part| journal.load(c"NEAR.LOAD", part, Some(c"REPLACE")));
        if let Some(Window { lasts, next }) = self.window {
            journal.window(c"NEAR.WINDOW", &seconds(lasts), next);
        }
    }

    fn digest(&self, digest: &Digest) {
        self.parts(|_, part| {
            Pieces::cut(part, |piece| digest.add(piece));
            digest.end();
        });
        if let Some(Window { lasts, next }) = self.window {
            [lasts, next].iter().for_each(|number| digest.add(&number.to_le_bytes()));
            digest.end();
        }
    }

    /// Memory, both parts together. Functions count once they are drawn, and not for a copy, which shares them.
    fn bytes(&self) -> u64 {
        let functions = |filter: &Filter<'_>| {
            let drawn = filter.spec().bytes_of_functions().saturating_sub(filter.bytes_to_prepare(0));
            if self.is_copy { 0 } else { drawn }
        };
        let filter = self.filter.as_ref().map_or(0, |filter| filter.bytes().saturating_add(functions(filter)));
        let incoming = self.incoming.as_ref().map_or(0, Incoming::held);
        size_of::<Self>() as u64 + filter + incoming
    }

    /// Large tables are shared until either changes.
    fn copy(&mut self) -> Outcome<Self> {
        let filter = self.filter.as_mut().map(|filter| {
            let shared = filter.share();
            if filter.bytes() > background::SMALL { Ok(shared) } else { shared.try_into_owned() }
        });
        let filter = filter.transpose().map_err(|error| memory::refused("the copy", error))?;
        let incoming = self.incoming.as_ref().map(Incoming::copy).transpose()?;
        Ok(Self { filter, incoming, is_copy: true, ..Self::loaded(None, None) }.lasting(self.window))
    }

    fn wait(&mut self, call: &Call<'_>) -> Outcome {
        background::wait(&mut self.job, call)
    }
}

/// Returns the memory of a filter, its functions included: what counts against the limit.
pub fn weight(filter: &Filter<'_>) -> u64 {
    filter.bytes().saturating_add(filter.spec().bytes_of_functions())
}

/// Returns the bytes that inserting so many items copies first, because tables are shared.
pub fn bytes_to_copy(filter: &Filter<'_>, items: u64) -> u64 {
    filter.bytes_to_prepare(items) - filter.bytes_to_prepare(0)
}

fn not_yet(incoming: Option<&Incoming>) -> Refusal {
    let (found, length) = incoming.map_or((0, 0), |incoming| (incoming.len(), incoming.length()));
    Refusal::Because(format!(
        "the key is being loaded, {found} of {length} bytes are in: send the rest with NEAR.LOAD, or DEL the key"
    ))
}

/// A filter or index as it was when a dump of it began, until its last chunk was given or none was wanted for a while.
pub struct Dump<T: Send + Sync + 'static> {
    /// What its cursors have in their upper bits; never 0.
    pub mark: u64,
    /// Bytes of it.
    bytes: u64,
    state: Mutex<Option<Dumped<T>>>,
}

struct Dumped<T> {
    /// `None` until another thread has made it.
    whole: Option<Arc<T>>,
    used: Instant,
}

impl<T: Send + Sync + 'static> Dump<T> {
    /// After so long without a question for the next chunk nobody is taken to want it.
    pub const PATIENCE: Duration = Duration::from_secs(60);

    /// Different from one dump to the next; cursors have 15 bits for it.
    const MARKS: u64 = 0x7fff;

    /// Begins a dump of so many bytes, which is [made](Self::make) when there is something to dump.
    pub fn begin(bytes: u64) -> Self {
        static BEGUN: AtomicU64 = AtomicU64::new(0);
        let mark = BEGUN.fetch_add(1, Ordering::Relaxed) % Self::MARKS + 1;
        Self { mark, bytes, state: Mutex::new(Some(Dumped { whole: None, used: Instant::now() })) }
    }

    /// Says what is dumped.
    pub fn make(&self, whole: T) -> Arc<T> {
        let whole = Arc::new(whole);
        if let Some(state) = self.state.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            *state = Dumped { whole: Some(Arc::clone(&whole)), used: Instant::now() };
        }
        whole
    }

    /// Returns what is dumped, if the dump is still under way.
    pub fn whole(&self) -> Option<Arc<T>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = state.as_mut()?;
        state.used = Instant::now();
        state.whole.as_ref().map(Arc::clone)
    }

    /// Lets go of it.
    pub fn end(&self) {
        let ended = self.state.lock().unwrap_or_else(PoisonError::into_inner).take();
        background::discard(ended, self.bytes);
    }

    /// Ends a dump that nobody wants more of. True while it is under way.
    pub fn end_if_idle(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let used = state.as_ref().map(|state| state.used);
        drop(state);
        let idle = used.is_some_and(|used| used.elapsed() >= Self::PATIENCE);
        if idle {
            self.end();
        }
        used.is_some() && !idle
    }
}

/// A file of which the first bytes have come.
pub struct Incoming {
    /// Shared with a thread that looks at the whole file.
    bytes: Arc<Vec<u8>>,
    /// How many of them have come for good: what replicas have, and files of the server's.
    come: usize,
    length: usize,
}

impl Incoming {
    /// Bytes that are copied at most when there are to be more of them: a few milliseconds.
    const MOST_COPIED: usize = 4 << 20;

    /// Begins with a file's first bytes, of which the header says how many there are to be.
    pub fn begin(first: &[u8]) -> Result<Self, DecodeError> {
        let length = nearset::length_of(first)?;
        let length = usize::try_from(length).map_err(|_| DecodeError::Truncated { expected: length, found: 0 })?;
        Ok(Self { bytes: Arc::default(), come: 0, length })
    }

    /// Returns how many bytes have arrived.
    pub fn len(&self) -> usize {
        self.come
    }

    /// Returns how many bytes the whole has.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns how many bytes to allocate when `chunk` bytes come next, for who holds that against its limits first. What has come is
    /// copied where it can't be extended in place, so behind the first few bytes all that the header tells of is allocated in one go.
    pub fn room_for_all(&self, chunk: usize) -> usize {
        let after = self.come.saturating_add(chunk);
        match after {
            _ if after <= self.bytes.capacity() => 0,
            ..=Self::MOST_COPIED => self.room_for(chunk).min(Self::MOST_COPIED),
            _ => self.length.max(after),
        }
    }

    /// Returns how many bytes to allocate where nobody holds them against a limit: twice what is there at most, whatever the header says.
    pub fn room_for(&self, chunk: usize) -> usize {
        let after = self.come.saturating_add(chunk);
        if after <= self.bytes.capacity() { 0 } else { after.saturating_mul(2).min(self.length.max(after)) }
    }

    /// Takes the next bytes, for which `room` is allocated, or changes nothing.
    pub fn push(&mut self, chunk: &[u8], room: usize) -> Outcome {
        let after = self.come + chunk.len();
        if after > self.length {
            let length = self.length;
            return refuse!("the file has {length} bytes, and {after} would be in: the dump is damaged");
        }
        let Some(bytes) = Arc::get_mut(&mut self.bytes) else {
            return refuse!("the last chunk is being checked: wait for its answer");
        };
        bytes.truncate(self.come);
        if room > 0 {
            let more = room - bytes.len();
            bytes.try_reserve_exact(more).map_err(|_| memory::no_memory("the next bytes of the file"))?;
        }
        bytes.extend_from_slice(chunk);
        self.come = after;
        Ok(())
    }

    /// Lets go of all bytes but the first, as soon as nobody looks at them.
    pub fn truncate(&mut self, length: usize) {
        self.come = self.come.min(length);
    }

    /// Returns all bytes for another thread.
    pub fn share(&self) -> Arc<Vec<u8>> {
        Arc::clone(&self.bytes)
    }

    /// Returns whether these are the bytes that [`Self::share`] gave.
    pub fn is_of(&self, bytes: &Weak<Vec<u8>>) -> bool {
        ptr::eq(Arc::as_ptr(&self.bytes), bytes.as_ptr())
    }

    pub fn copy(&self) -> Outcome<Self> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(self.come).map_err(|_| memory::no_memory("the copy"))?;
        bytes.extend_from_slice(self.bytes());
        Ok(Self { bytes: Arc::new(bytes), come: self.come, length: self.length })
    }

    pub fn is_whole(&self) -> bool {
        self.come == self.length
    }

    /// Returns what has come.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.come]
    }

    /// Returns the filter, every byte checked, and its spec held against a limit on work.
    pub fn decode(&self, limit: WorkLimit) -> Result<Filter<'static>, DecodeError> {
        decode(self.bytes(), limit)
    }

    /// Returns the index, as [`Self::decode`] does the filter.
    pub fn decode_index(&self, limit: WorkLimit) -> Result<Index<'static>, DecodeError> {
        decode_index(self.bytes(), limit)
    }

    /// Returns the bytes that are held for it.
    pub fn held(&self) -> u64 {
        self.bytes.capacity() as u64
    }

    /// What has come, as a file is written.
    pub fn encode(&self, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(self.bytes())
    }
}

/// Returns the filter of a file, every byte checked, and its spec held against a limit on work.
pub fn decode(file: &[u8], limit: WorkLimit) -> Result<Filter<'static>, DecodeError> {
    Ok(Filter::decode(file, limit)?.try_into_owned()?)
}

/// Returns the index of a file, as [`decode`] does the filter.
pub fn decode_index(file: &[u8], limit: WorkLimit) -> Result<Index<'static>, DecodeError> {
    Ok(Index::decode(file, limit)?.into_owned())
}

/// Passes what is written on in pieces of [`PIECE`] bytes, the last one shorter.
pub struct Pieces<F: FnMut(&[u8])> {
    room: Vec<u8>,
    each: F,
}

impl<F: FnMut(&[u8])> Pieces<F> {
    /// Cuts all that `write` writes.
    pub fn cut(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>, each: F) {
        let mut pieces = Self { room: Vec::new(), each };
        write(&mut pieces).expect("pieces are taken without errors");
        if !pieces.room.is_empty() {
            (pieces.each)(&pieces.room);
        }
    }
}

impl<F: FnMut(&[u8])> io::Write for Pieces<F> {
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<usize> {
        let written = bytes.len();
        while !bytes.is_empty() {
            if self.room.is_empty() && bytes.len() >= PIECE {
                (self.each)(&bytes[..PIECE]);
                bytes = &bytes[PIECE..];
                continue;
            }
            let (taken, rest) = bytes.split_at(bytes.len().min(PIECE - self.room.len()));
            self.room.extend_from_slice(taken);
            bytes = rest;
            if self.room.len() == PIECE {
                (self.each)(&self.room);
                self.room.clear();
            }
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

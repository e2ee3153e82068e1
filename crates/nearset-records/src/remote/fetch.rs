//! Ranges of an object, whole or not at all: what breaks off is taken up where it was.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;

use super::http::{self, Pieces};
use super::store::{self, StorePieces};
use super::url::{Scheme, Url};
use super::{Object, RemoteError, Tag};

/// How often something is tried again that gives no byte: in a run, and when an object is looked at before one.
const MOST_FAILURES: u32 = 8;
const MOST_FIRST_FAILURES: u32 = 4;

/// The first pause before that, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What a server sends.
pub(super) struct Answer {
    /// The first byte's place in the object.
    pub start: u64,
    /// Bytes of the whole object.
    pub size: Option<u64>,
    pub tag: Tag,
    /// Whether the server sends parts.
    pub is_ranged: bool,
    pub pieces: AnyPieces,
}

pub(super) enum AnyPieces {
    Http(Box<Pieces>),
    Store(StorePieces),
}

impl From<Pieces> for AnyPieces {
    fn from(pieces: Pieces) -> Self {
        AnyPieces::Http(Box::new(pieces))
    }
}

impl AnyPieces {
    pub fn next(&mut self) -> Result<Option<Bytes>, RemoteError> {
        match self {
            AnyPieces::Http(pieces) => {
                pieces.next().map_err(|cause| RemoteError::Connection { why: cause.to_string() })
            }
            AnyPieces::Store(pieces) => pieces.next(),
        }
    }
}

/// Asks for a part of an object, or for all of it where the server has no parts.
pub(super) fn get(url: &Url<'_>, range: Option<Range<u64>>) -> Result<Answer, RemoteError> {
    match url.scheme {
        Scheme::Http => http::get(url.whole, range),
        _ => store::get(url, range),
    }
}

/// Counts what failed since something came, and waits longer each time.
pub(super) struct Patience {
    failures: u32,
    most: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self { failures: 0, most: MOST_FAILURES }
    }
}

impl Patience {
    /// Something came.
    pub fn renew(&mut self) {
        self.failures = 0;
    }

    /// Waits before the next attempt, unless it would be of no use.
    pub fn wait(&mut self, error: RemoteError) -> Result<(), RemoteError> {
        if !error.is_passing() {
            return Err(error);
        }
        self.failures += 1;
        if self.failures > self.most {
            return Err(RemoteError::CutOff { attempts: self.failures, why: error.to_string() });
        }
        thread::sleep((FIRST_PAUSE * (1 << (self.failures - 1))).min(LONGEST_PAUSE));
        Ok(())
    }
}

/// Does it until it is done, or fails for good.
pub(super) fn patiently<T>(mut attempt: impl FnMut() -> Result<T, RemoteError>) -> Result<T, RemoteError> {
    let mut patience = Patience { failures: 0, most: MOST_FIRST_FAILURES };
    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(error) => patience.wait(error)?,
        }
    }
}

/// Checks that an answer is about the version that was looked at.
pub(super) fn expect_same(object: &Object, answer: &Answer) -> Result<(), RemoteError> {
    let same_size = object.size.is_none() || answer.size.is_none() || object.size == answer.size;
    if same_size && object.tag.agrees(&answer.tag) {
        return Ok(());
    }
    let is = Object { size: answer.size, tag: answer.tag.clone(), ..object.clone() };
    Err(RemoteError::Changed { was: object.state(), is: is.state() })
}

/// Returns a range of an object. Where nobody waits for it any more, it ends early with an error.
pub(super) fn fetch(object: &Object, range: Range<u64>, is_dropped: &AtomicBool) -> Result<Bytes, RemoteError> {
    let Some(url) = Url::parse(&object.url) else { return Err(RemoteError::NotBuilt) };
    let (mut pieces, mut at): (Vec<Bytes>, u64) = (Vec::new(), range.start);
    let mut patience = Patience::default();
    while at < range.end {
        if is_dropped.load(Ordering::Relaxed) {
            return Err(RemoteError::Connection { why: "nobody waits for it".to_owned() });
        }
        let before = at;
        let mut attempt = || {
            let mut answer = get(&url, Some(at..range.end))?;
            expect_same(object, &answer)?;
            if answer.start != at {
                let why =
                    format!("the server sent bytes from {} on, where those from {at} on were asked for", answer.start);
                return Err(RemoteError::Unsupported { why });
            }
            while at < range.end {
                let Some(mut piece) = answer.pieces.next()? else {
                    return Err(RemoteError::Connection { why: "the answer is cut off".to_owned() });
                };
                piece.truncate(usize::try_from(range.end - at).unwrap_or(usize::MAX));
                at += piece.len() as u64;
                pieces.push(piece);
            }
            Ok(())
        };
        if let Err(error) = attempt() {
            if at > before {
                patience.renew();
            }
            patience.wait(error)?;
        }
    }
    match pieces.len() {
        1 => Ok(pieces.swap_remove(0)),
        _ => Ok(pieces.concat().into()),
    }
}

/// A range that a thread of its own fetches.
pub(super) struct Pending {
    thread: thread::JoinHandle<Result<Bytes, RemoteError>>,
}

impl Pending {
    pub fn start(object: &Arc<Object>, range: Range<u64>, is_dropped: &Arc<AtomicBool>) -> std::io::Result<Self> {
        let (object, is_dropped) = (Arc::clone(object), Arc::clone(is_dropped));
        let work = move || fetch(&object, range, &is_dropped);
        Ok(Self { thread: thread::Builder::new().name("fetch".to_owned()).spawn(work)? })
    }

    pub fn wait(self) -> Result<Bytes, RemoteError> {
        let failed = |_| Err(RemoteError::Connection { why: "the thread that fetched it has failed".to_owned() });
        self.thread.join().unwrap_or_else(failed)
    }
}

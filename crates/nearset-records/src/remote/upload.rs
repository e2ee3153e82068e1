//! Writing an object: in parts, several under way, that become the object when the last one has arrived.
//!
//! Invariant: nothing appears under the name before [`Upload::complete`]; what is dropped before is removed from the store.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};

use super::store::{Use, client, explain, look_at, path, run};
use super::url::{Scheme, Url};
use super::{RemoteError, Tag};

/// Bytes of a part. Stores take 10,000 of them, and some want all but the last to be of one length.
const PART: usize = 16 << 20;

/// Parts of that length; later ones are larger, for objects that could not be written otherwise.
const USUAL_PARTS: usize = 9000;
const LARGE_PART: usize = 512 << 20;

/// Parts that are under way.
const MOST_PENDING: usize = 3;

/// An object that is being written.
pub(crate) struct Upload {
    url: String,
    scheme: Scheme,
    client: Arc<dyn ObjectStore>,
    path: Path,
    /// `None` once it is over.
    parts: Option<Box<dyn MultipartUpload>>,
    sent: usize,
    /// Bytes of the whole object, as far as they are known.
    length: u64,
    bytes: Vec<u8>,
    /// What was there before it; `None` where the store did not say.
    before: Option<Before>,
    pending: VecDeque<JoinHandle<Result<(), RemoteError>>>,
}

/// What is under a name before an upload to it: nothing, or a version.
type Before = Option<Tag>;

impl Upload {
    pub fn create(url: &Url<'_>) -> Result<Self, RemoteError> {
        let (client, path) = (client(url, Use::Writing)?, path(url.key)?);
        let before = match look_at(url) {
            Ok(object) => Some(Some(object.tag)),
            Err(error) if error.is_not_found() => Some(None),
            Err(_) => None,
        };
        let begun = run(client.put_multipart(&path))?.map_err(|error| explain(url.scheme, &error))?;
        let (parts, bytes, pending) = (Some(begun), Vec::new(), VecDeque::new());
        let (url, scheme) = (url.whole.to_owned(), url.scheme);
        Ok(Self { url, scheme, client, path, parts, sent: 0, length: 0, bytes, before, pending })
    }

    fn part_bytes(&self) -> usize {
        if self.sent < USUAL_PARTS { PART } else { LARGE_PART }
    }

    fn send_part(&mut self) -> Result<(), RemoteError> {
        let scheme = self.scheme;
        let Some(parts) = &mut self.parts else {
            return Err(RemoteError::Unsupported { why: "the upload is over".to_owned() });
        };
        let payload = PutPayload::from(std::mem::take(&mut self.bytes));
        let part = parts.put_part(payload);
        self.sent += 1;
        let send = move || run(part)?.map_err(|error| explain(scheme, &error));
        let thread = thread::Builder::new().name("upload".to_owned()).spawn(send);
        self.pending.push_back(thread.map_err(|error| RemoteError::Connection { why: error.to_string() })?);
        while self.pending.len() >= MOST_PENDING {
            self.wait_for_first()?;
        }
        Ok(())
    }

    fn wait_for_first(&mut self) -> Result<(), RemoteError> {
        let failed = |_| Err(RemoteError::Connection { why: "the thread that sent it has failed".to_owned() });
        self.pending.pop_front().map_or(Ok(()), |first| first.join().unwrap_or_else(failed))
    }

    /// Lets the object appear.
    pub fn complete(&mut self) -> io::Result<()> {
        // Not all stores take a part of no bytes.
        if self.sent == 0 && self.bytes.is_empty() {
            self.abort();
            let put = run(self.client.put(&self.path, PutPayload::new()))?;
            return Ok(put.map(drop).map_err(|error| explain(self.scheme, &error))?);
        }
        if !self.bytes.is_empty() {
            self.send_part()?;
        }
        while !self.pending.is_empty() {
            self.wait_for_first()?;
        }
        if let Some(mut parts) = self.parts.take() {
            let completed = run(parts.complete())?.map(drop).map_err(|error| explain(self.scheme, &error));
            if let Err(error) = completed
                && !self.is_there()
            {
                self.parts = Some(parts);
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Whether the object has appeared: where the answer to the last request was lost, asking again is refused, since the upload is over.
    fn is_there(&self) -> bool {
        let Some((before, url)) = self.before.as_ref().zip(Url::parse(&self.url)) else { return false };
        look_at(&url).is_ok_and(|object| object.size == Some(self.length) && before.as_ref() != Some(&object.tag))
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.part_bytes() - self.bytes.len();
        let taken = bytes.len().min(room);
        self.bytes.extend_from_slice(&bytes[..taken]);
        self.length += taken as u64;
        if taken == room {
            self.send_part()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Upload {
    fn abort(&mut self) {
        if let Some(mut parts) = self.parts.take() {
            for pending in self.pending.drain(..) {
                let _ = pending.join();
            }
            // Nothing more can be done about a store that does not answer; its own rules remove what is left there.
            let _ = run(parts.abort());
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.abort();
    }
}

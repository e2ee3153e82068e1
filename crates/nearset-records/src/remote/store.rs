//! Objects of S3, Google Cloud Storage and Azure: looked at, listed and fetched.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig};
use tokio::runtime::{Builder, Runtime};

use super::fetch::{Answer, AnyPieces, patiently};
use super::http::{self, Failure, Transport};
use super::url::{Scheme, Url};
use super::{Object, RemoteError, Tag};

/// What a store's client is for, which decides how often it tries again by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    /// Until bytes are there. What then breaks off is taken up elsewhere.
    Reading,
    /// Until a part has arrived: the work of hours may be in an upload, and nothing else tries again.
    Writing,
}

impl Use {
    fn retries(self) -> RetryConfig {
        let seconds = Duration::from_secs;
        match self {
            Use::Reading => {
                let backoff = BackoffConfig { max_backoff: seconds(5), ..BackoffConfig::default() };
                RetryConfig { backoff, max_retries: 4, retry_timeout: seconds(60) }
            }
            Use::Writing => {
                let backoff = BackoffConfig { init_backoff: seconds(1), base: 3.0, max_backoff: seconds(20) };
                RetryConfig { backoff, max_retries: 12, retry_timeout: seconds(300) }
            }
        }
    }
}

/// Bytes of a web server's file by which it is looked at.
const LOOK: u64 = 1 << 10;

/// Runs to its end what a store's client does. It waits for nothing but its own pauses, since requests are done within it.
pub(super) fn run<F: Future>(future: F) -> Result<F::Output, RemoteError> {
    thread_local! {
        static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
    }
    http::take_failure();
    RUNTIME.with_borrow_mut(|held| {
        let runtime = match held {
            Some(runtime) => runtime,
            none => {
                let new = Builder::new_current_thread().enable_time().build();
                none.insert(new.map_err(|error| RemoteError::Connection { why: error.to_string() })?)
            }
        };
        Ok(runtime.block_on(future))
    })
}

/// Returns the client of a bucket or container.
pub(super) fn client(url: &Url<'_>, purpose: Use) -> Result<Arc<dyn ObjectStore>, RemoteError> {
    type Clients = BTreeMap<(String, Use), Arc<dyn ObjectStore>>;
    static CLIENTS: Mutex<Clients> = Mutex::new(BTreeMap::new());
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (url.root.to_owned(), purpose);
    if let Some(client) = clients.get(&key) {
        return Ok(Arc::clone(client));
    }
    let retry = purpose.retries();
    let built = match url.scheme {
        Scheme::S3 => AmazonS3Builder::from_env()
            .with_url(url.root)
            .with_http_connector(Transport)
            .with_retry(retry)
            .build()
            .map(|store| Arc::new(store) as Arc<dyn ObjectStore>),
        Scheme::Google => GoogleCloudStorageBuilder::from_env()
            .with_url(url.root)
            .with_http_connector(Transport)
            .with_retry(retry)
            .build()
            .map(|store| Arc::new(store) as Arc<dyn ObjectStore>),
        Scheme::Azure => MicrosoftAzureBuilder::from_env()
            .with_url(url.root)
            .with_http_connector(Transport)
            .with_retry(retry)
            .build()
            .map(|store| Arc::new(store) as Arc<dyn ObjectStore>),
        Scheme::Http => return Err(RemoteError::NoList),
    };
    let cure = url.scheme.credentials();
    let built =
        built.map_err(|error| RemoteError::Unsupported { why: format!("{}: {cure}", crate::error::chain(&error)) })?;
    clients.insert(key, Arc::clone(&built));
    Ok(built)
}

/// Returns the place of an object in its bucket.
pub(super) fn path(key: &str) -> Result<Path, RemoteError> {
    Path::parse(key)
        .map_err(|error| RemoteError::Unsupported { why: format!("no object can have this name ({error})") })
}

/// Returns what a client's error means. Its own words hide what the server said, so what the last request met is asked first.
pub(super) fn explain(scheme: Scheme, error: &object_store::Error) -> RemoteError {
    match (http::take_failure(), error) {
        (Some(Failure::Refusal { status, body }), _) => RemoteError::of_status(scheme, status, &body),
        (Some(Failure::Connection(error)), _) => error,
        (Some(Failure::NoMetadata), _) => RemoteError::NoCredentials { cure: scheme.credentials() },
        (None, object_store::Error::NotFound { .. }) => RemoteError::NotFound { status: 404, said: String::new() },
        (None, _) => RemoteError::Unsupported { why: crate::error::chain(error) },
    }
}

fn object(url: String, meta: &ObjectMeta) -> Object {
    let tag = Tag::new(meta.e_tag.as_deref(), Some(&meta.last_modified.to_rfc3339()));
    Object { url: url.into(), size: Some(meta.size), tag, is_ranged: true }
}

/// Looks whether there is such an object, and which version it is.
pub(crate) fn look_at(url: &Url<'_>) -> Result<Object, RemoteError> {
    if url.scheme == Scheme::Http {
        return patiently(|| {
            // Signed URLs are good for this and nothing else.
            let mut answer = match http::get(url.whole, Some(0..LOOK)) {
                // So some answer for a file without bytes, of which there is no part.
                Err(RemoteError::Status { status: 416, .. }) => http::get(url.whole, None)?,
                answer => answer?,
            };
            if answer.is_ranged {
                // Only a connection whose answer was read can be used again.
                while answer.pieces.next()?.is_some() {}
            }
            let Answer { mut size, tag, is_ranged, .. } = answer;
            if is_ranged && size.is_none() {
                // With a part some do not say how long the whole is.
                size = http::get(url.whole, None)?.size;
            }
            // Parts that may be of several versions are no parts of one.
            let is_ranged = is_ranged && tag.is_some();
            Ok(Object { url: url.whole.into(), size, tag, is_ranged })
        });
    }
    let (client, path) = (client(url, Use::Reading)?, path(url.key)?);
    let meta = run(client.head(&path))?.map_err(|error| explain(url.scheme, &error))?;
    Ok(object(url.whole.to_owned(), &meta))
}

/// Leaves out the empty objects that stand for folders, which Hadoop and consoles put there: `key/`, whose slash is not told.
fn without_markers(folder: &str, found: &mut Vec<(String, Object)>) {
    let folder = folder.trim_matches('/');
    let above: BTreeSet<String> =
        found.iter().flat_map(|(key, _)| key.match_indices('/').map(|(slash, _)| key[..slash].to_owned())).collect();
    found.retain(|(key, object)| object.size != Some(0) || key != folder && !above.contains(key));
}

/// Returns all objects below a folder of a bucket, with their keys; `""` is the bucket itself.
pub(crate) fn list(url: &Url<'_>, folder: &str) -> Result<Vec<(String, Object)>, RemoteError> {
    let (client, prefix) = (client(url, Use::Reading)?, path(folder)?);
    let mut stream = client.list((!folder.is_empty()).then_some(&prefix));
    let mut found = Vec::new();
    let all = async {
        while let Some(meta) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
            let meta = meta?;
            let key = meta.location.as_ref().to_owned();
            found.push((key.clone(), object(url.with_key(&key), &meta)));
        }
        Ok(())
    };
    run(all)?.map_err(|error: object_store::Error| match error {
        object_store::Error::InvalidPath { source } => RemoteError::Unsupported {
            why: format!("an object below it has a name that is not supported ({source}): name the folders or objects beside that"),
        },
        error => explain(url.scheme, &error),
    })?;
    without_markers(folder, &mut found);
    Ok(found)
}

/// Asks for a part of an object.
pub(super) fn get(url: &Url<'_>, range: Option<Range<u64>>) -> Result<Answer, RemoteError> {
    let (client, path) = (client(url, Use::Reading)?, path(url.key)?);
    let options = GetOptions { range: range.map(GetRange::Bounded), ..GetOptions::default() };
    let result = run(client.get_opts(&path, options))?.map_err(|error| explain(url.scheme, &error))?;
    let Object { size, tag, is_ranged, .. } = object(String::new(), &result.meta);
    let start = result.range.start;
    let stream = result.into_stream();
    Ok(Answer { start, size, tag, is_ranged, pieces: AnyPieces::Store(StorePieces { stream, scheme: url.scheme }) })
}

/// The bytes of an answer, in pieces.
pub(super) struct StorePieces {
    stream: Pin<Box<dyn Stream<Item = object_store::Result<Bytes>> + Send>>,
    scheme: Scheme,
}

impl StorePieces {
    pub fn next(&mut self) -> Result<Option<Bytes>, RemoteError> {
        let next = run(poll_fn(|context| self.stream.as_mut().poll_next(context)))?;
        next.transpose().map_err(|error| match explain(self.scheme, &error) {
            // A body that breaks off is no answer of the store's.
            RemoteError::Unsupported { why } => RemoteError::Connection { why },
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_objects_that_stand_for_folders_are_left_out() {
        let object = |size| Object { url: "s3://b/k".into(), size: Some(size), tag: Tag::default(), is_ranged: true };
        let sizes = [("out", 0), ("out/a", 0), ("out/a/1.txt", 5), ("out/a-b", 0), ("out/b", 7), ("out/b/2.txt", 0)];
        let mut found: Vec<_> = sizes.map(|(key, size)| (key.to_owned(), object(size))).into();
        without_markers("out/", &mut found);
        let keys: Vec<&str> = found.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["out/a/1.txt", "out/a-b", "out/b", "out/b/2.txt"]);
    }
}

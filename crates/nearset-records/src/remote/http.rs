//! Requests by HTTP, of our own and for the clients of stores.
//!
//! Threads wait for their answers: each has one request under way, so there is nothing for a runtime to schedule. The stores' clients are
//! asynchronous; what they wait for is done when they ask, within the call.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, Read};
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use ureq::http::{Method, Request, Response, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, AsSendBody, Body, BodyReader};

use super::fetch::Answer;
use super::url::{Scheme, host_of};
use super::{RemoteError, Tag};

/// How long a connection may take to be made, and how long nothing may come.
const CONNECTING: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(60);

/// The same for the servers that tell a machine in a cloud its credentials: elsewhere nobody is there.
const CONNECTING_TO_METADATA: Duration = Duration::from_secs(1);

/// Where those servers are.
const METADATA: &[&str] = &["169.254.169.254", "169.254.170.2", "metadata.google.internal", "metadata"];

/// Bytes of a body that are given out at once.
const PIECE: usize = 4 << 20;

/// Bytes of a refusal that are read.
const REFUSAL: u64 = 64 << 10;

fn agent() -> &'static Agent {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    AGENT.get_or_init(|| {
        let found = rustls_native_certs::load_native_certs().certs;
        let certificates: Vec<_> = found.iter().map(|found| Certificate::from_der(found).to_owned()).collect();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&certificates))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .user_agent(concat!("nearset/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .timeout_connect(Some(CONNECTING))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .timeout_per_write(Some(SILENCE))
            .max_idle_connections(64)
            .max_idle_connections_per_host(32)
            .build()
            .new_agent()
    })
}

/// Asks a web server for a file, or for a part of it.
pub(super) fn get(url: &str, range: Option<Range<u64>>) -> Result<Answer, RemoteError> {
    let mut request = agent().get(url);
    if let Some(range) = &range {
        request = request.header(header::RANGE, format!("bytes={}-{}", range.start, range.end.saturating_sub(1)));
    }
    let answer = request.call().map_err(|error| explain(url, &error))?;
    let status = answer.status().as_u16();
    let text = |name| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let tag = Tag::new(text(header::ETAG), text(header::LAST_MODIFIED));
    let content = text(header::CONTENT_RANGE).map(str::to_owned);
    match status {
        200 => {
            let size = answer.body().content_length();
            Ok(Answer { start: 0, size, tag, is_ranged: false, pieces: Pieces::of(answer).into() })
        }
        206 => {
            let (start, size) = content.as_deref().and_then(content_range).ok_or_else(|| RemoteError::Unsupported {
                why: format!("the server sent a part and did not say which: {content:?}"),
            })?;
            Ok(Answer { start, size, tag, is_ranged: true, pieces: Pieces::of(answer).into() })
        }
        // No part of nothing can be sent.
        416 if content.as_deref().is_some_and(|range| range.trim().ends_with("*/0")) => {
            Ok(Answer { start: 0, size: Some(0), tag, is_ranged: true, pieces: Pieces::of(answer).into() })
        }
        _ => {
            let mut body = Vec::new();
            let _ = answer.into_body().into_reader().take(REFUSAL).read_to_end(&mut body);
            Err(RemoteError::of_status(Scheme::Http, status, &String::from_utf8_lossy(&body)))
        }
    }
}

/// Returns where a part begins, and the size of the whole where it is told: `bytes 0-9/100`, `bytes 0-9/*`.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, size) = text.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let (start, _) = range.split_once('-')?;
    let size = match size.trim() {
        "*" => None,
        size => Some(size.parse().ok()?),
    };
    Some((start.trim().parse().ok()?, size))
}

/// Returns what a failed request means.
fn explain(url: &str, error: &ureq::Error) -> RemoteError {
    let host = host_of(url);
    match error {
        // Its own words repeat the URL, with what is secret in it.
        ureq::Error::BadUri(_) => RemoteError::Unsupported { why: "not a valid URL".to_owned() },
        ureq::Error::Http(_) => RemoteError::Unsupported { why: format!("not a valid URL ({error})") },
        ureq::Error::Io(cause) => match cause.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) {
            Some(cause) => RemoteError::Unsupported {
                why: format!("{host} is not trusted ({cause}): SSL_CERT_FILE names the certificates of those who are"),
            },
            // A resolver may be away for a moment, and does not say whether it is that.
            None if cause.to_string().contains(NO_ADDRESS) => RemoteError::Connection {
                why: format!("there is no host {host}, or no network ({cause}): check the name"),
            },
            None => RemoteError::Connection { why: format!("{host}: {cause}") },
        },
        _ => RemoteError::Connection { why: format!("{host}: {}", crate::error::chain(error)) },
    }
}

/// How the standard library says that a name has no address.
const NO_ADDRESS: &str = "failed to lookup address";

/// The bytes of an answer, in pieces.
pub(super) struct Pieces {
    reader: BodyReader<'static>,
    left: Option<u64>,
    /// What came after the last piece.
    failure: Option<io::Error>,
}

impl Pieces {
    fn of(answer: Response<Body>) -> Self {
        let left = answer.body().content_length();
        Self { reader: answer.into_body().into_reader(), left, failure: None }
    }

    /// The next bytes; nothing is the end. What came before an error is given out before it.
    pub fn next(&mut self) -> io::Result<Option<Bytes>> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let wanted = self.left.map_or(PIECE, |left| usize::try_from(left).unwrap_or(PIECE).min(PIECE));
        // At the end one more is asked for, by which the connection is found to be free for others.
        let mut bytes = Buffer::new(wanted.max(1));
        let mut filled = 0;
        while filled < bytes.length {
            match self.reader.read(&mut bytes.room[filled..bytes.length]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if filled == 0 => return Err(error),
                Err(error) => {
                    self.failure = Some(error);
                    break;
                }
            }
        }
        bytes.length = filled;
        self.left = self.left.map(|left| left.saturating_sub(filled as u64));
        if self.left == Some(0) && filled > 0 {
            let _ = self.reader.read(&mut [0]);
        }
        Ok((filled > 0).then(|| Bytes::from_owner(bytes)))
    }
}

/// Room for a piece, which goes from one to the next: touching memory that is new costs more than copying the piece into it.
struct Buffer {
    room: Vec<u8>,
    /// Bytes of it that are used.
    length: usize,
}

/// Pieces from which on their room is used again: the small ones are held for long.
const REUSED: usize = 1 << 20;

/// Room that waits for the next piece, at most: for one who reads ahead.
const MOST_WAITING: usize = 9;

static WAITING: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

impl Buffer {
    fn new(length: usize) -> Self {
        let waiting = || WAITING.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut room = if length >= REUSED { waiting().unwrap_or_default() } else { Vec::new() };
        if room.len() < length {
            room = vec![0; length];
        }
        Self { room, length }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.room[..self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        if self.room.len() >= REUSED && waiting.len() < MOST_WAITING {
            waiting.push(std::mem::take(&mut self.room));
        }
    }
}

/// The stores' clients send their requests by it.
#[derive(Debug)]
pub(super) struct Transport;

impl HttpConnector for Transport {
    fn connect(&self, _: &object_store::ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Transport))
    }
}

impl HttpService for Transport {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(send(request))
    }
}

/// Nothing is followed, since a request is signed for one place. What tells credentials is asked without a proxy: it is on this machine's own link,
/// and a proxy would tell its own.
fn configured<B: AsSendBody>(request: Request<B>, is_metadata: bool) -> Request<B> {
    let configured = agent().configure_request(request).max_redirects(0);
    match is_metadata {
        true => configured.timeout_connect(Some(CONNECTING_TO_METADATA)).proxy(None).build(),
        false => configured.timeout_connect(Some(CONNECTING)).build(),
    }
}

async fn send(request: HttpRequest) -> Result<HttpResponse, HttpError> {
    let (parts, mut body) = request.into_parts();
    let mut bytes: Vec<Bytes> = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        bytes.extend(frame?.into_data().ok());
    }
    let uri = parts.uri.to_string();
    let is_metadata = parts.uri.host().is_some_and(|host| METADATA.contains(&host));
    let has_body = !bytes.is_empty() || matches!(parts.method, Method::PUT | Method::POST);
    let whole = match bytes.as_slice() {
        [one] => one.clone(),
        several => several.concat().into(),
    };
    let answer = if has_body {
        let request = Request::from_parts(parts, &whole[..]);
        agent().run(configured(request, is_metadata))
    } else {
        agent().run(configured(Request::from_parts(parts, ()), is_metadata))
    };
    let answer = answer.map_err(|error| {
        note(Some(if is_metadata { Failure::NoMetadata } else { Failure::Connection(explain(&uri, &error)) }));
        let kind = match &error {
            _ if is_metadata => HttpErrorKind::Unknown,
            ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
            error if explain(&uri, error).is_passing() => HttpErrorKind::Interrupted,
            _ => HttpErrorKind::Unknown,
        };
        HttpError::new(kind, error)
    })?;
    let (parts, body) = answer.into_parts();
    if parts.status.is_success() {
        note(None);
        let pieces = Pieces::of(Response::new(body));
        return Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(PiecesBody(Mutex::new(pieces)))));
    }
    let mut said = Vec::new();
    let _ = body.into_reader().take(REFUSAL).read_to_end(&mut said);
    // Azure says here what an answer without a body is about.
    if let Some(code) =
        parts.headers.get("x-ms-error-code").filter(|_| said.is_empty()).and_then(|code| code.to_str().ok())
    {
        said = format!("<Code>{code}</Code>").into();
    }
    let (status, body) = (parts.status.as_u16(), String::from_utf8_lossy(&said).into_owned());
    note(Some(if is_metadata { Failure::NoMetadata } else { Failure::Refusal { status, body } }));
    Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(said)))
}

/// What the last request of a thread met, if that is the reason why a client gave up.
pub(super) enum Failure {
    Refusal {
        status: u16,
        body: String,
    },
    Connection(RemoteError),
    /// There is no server that would tell credentials, or it tells none.
    NoMetadata,
}

thread_local! {
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

fn note(failure: Option<Failure>) {
    LAST.set(failure);
}

/// Returns what the last request of this thread met.
pub(super) fn take_failure() -> Option<Failure> {
    LAST.take()
}

struct PiecesBody(Mutex<Pieces>);

impl http_body::Body for PiecesBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).next();
        Poll::Ready(match next {
            Ok(bytes) => bytes.map(|bytes| Ok(Frame::data(bytes))),
            Err(cause) => {
                note(Some(Failure::Connection(RemoteError::Connection { why: cause.to_string() })));
                Some(Err(HttpError::new(HttpErrorKind::Interrupted, cause)))
            }
        })
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner).left;
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_say_where_they_begin() {
        assert_eq!(content_range("bytes 0-9/100"), Some((0, Some(100))));
        assert_eq!(content_range("bytes 5-9/*"), Some((5, None)));
        assert_eq!(content_range("bytes */100"), None);
        assert_eq!(content_range("lines 1-2/3"), None);
    }
}

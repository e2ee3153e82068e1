//! One request per connection over HTTP/1.1, read with limits and answered whole.
//!
//! Claim: whatever is sent, a connection takes at most [`MOST_HEAD`] + [`MOST_BODY`] bytes of memory and a few seconds of waiting, and what is too large is
//! refused before it is read.
//! Not here: who may ask (`guard`), and what is answered (`api`).

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Bytes of a request's first line and headers.
const MOST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 64;

/// Bytes of a request's body: room for a long text that is pasted.
pub const MOST_BODY: usize = 1 << 20;

/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much of a refused request is thrown away, and for how long, so that its sender sees the refusal.
const MOST_UNREAD: usize = 256 << 10;
const PARTING: Duration = Duration::from_millis(500);

/// A request.
#[derive(Debug, Default)]
pub struct Request {
    pub method: String,
    /// Without what follows a question mark.
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| &value[..])
    }
}

/// An answer.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

impl Response {
    pub fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type, body: body.into() }
    }

    /// A refusal, with its reason.
    pub fn refusal(status: u16, why: &str) -> Self {
        Self::new(status, "application/json", serde_json::json!({ "error": why }).to_string())
    }
}

/// Reads a request.
///
/// # Errors
/// What is answered instead, or nothing if nobody is there to read it.
pub fn read(stream: &mut TcpStream) -> Result<Request, Option<Response>> {
    let until = Instant::now() + PATIENCE;
    let (mut bytes, mut request) = (Vec::new(), Request::default());
    let length = loop {
        if bytes.len() >= MOST_HEAD {
            return Err(Some(Response::refusal(431, "the headers of the request are too long")));
        }
        let mut room = [0; 2048];
        let most = room.len().min(MOST_HEAD - bytes.len());
        let read = receive(stream, &mut room[..most], until).map_err(|_| None)?;
        bytes.extend_from_slice(&room[..read]);
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut head = httparse::Request::new(&mut headers);
        match head.parse(&bytes) {
            Ok(httparse::Status::Partial) if read == 0 => return Err(None),
            Ok(httparse::Status::Partial) => {}
            Ok(httparse::Status::Complete(length)) => {
                request.method = head.method.unwrap_or_default().to_owned();
                let path = head.path.unwrap_or_default();
                request.path = path.split('?').next().unwrap_or_default().to_owned();
                for header in head.headers.iter() {
                    let Ok(value) = std::str::from_utf8(header.value) else {
                        return Err(Some(Response::refusal(400, "a header is no text")));
                    };
                    request.headers.push((header.name.to_owned(), value.trim().to_owned()));
                }
                break length;
            }
            Err(error) => return Err(Some(Response::refusal(400, &format!("this is no request: {error}")))),
        }
    };
    let wanted = body_length(&request).map_err(Some)?;
    request.body = bytes.split_off(length);
    while request.body.len() < wanted {
        let mut room = [0; 16 << 10];
        let read = receive(stream, &mut room, until).map_err(|_| None)?;
        if read == 0 {
            return Err(None);
        }
        request.body.extend_from_slice(&room[..read]);
    }
    request.body.truncate(wanted);
    Ok(request)
}

/// How long the body is, unless that is too much or can't be told.
fn body_length(request: &Request) -> Result<usize, Response> {
    let several = |name: &str| request.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).count() > 1;
    if several("host") || several("content-length") || several("origin") {
        return Err(Response::refusal(400, "a header that can be there once is there twice"));
    }
    if request.header("transfer-encoding").is_some() {
        return Err(Response::refusal(411, "the length of the body must be stated"));
    }
    let Some(length) = request.header("content-length") else { return Ok(0) };
    match length.parse::<u64>() {
        Ok(length) if length <= MOST_BODY as u64 => Ok(length as usize),
        Ok(_) => Err(Response::refusal(413, "the body of the request is too long")),
        Err(_) => Err(Response::refusal(400, "the length of the body is no number")),
    }
}

fn receive(stream: &mut TcpStream, room: &mut [u8], until: Instant) -> io::Result<usize> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left))?;
    stream.read(room)
}

/// What the browser is told with every answer: nothing is loaded from elsewhere, no script stands in the page, nobody frames it, nothing is kept.
const HEADERS: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Cache-Control: no-store\r\n\
    Connection: close\r\n";

/// Writes an answer.
pub fn write(stream: &mut TcpStream, response: &Response) -> io::Result<()> {
    let reason = match response.status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Error",
    };
    let Response { status, content_type, body } = response;
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{HEADERS}\r\n",
        body.len()
    );
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    stream.flush()?;
    stream.shutdown(std::net::Shutdown::Write)?;
    // What is left unread would take the answer with it when the connection is closed.
    let until = Instant::now() + PARTING;
    let (mut room, mut left) = ([0; 4 << 10], MOST_UNREAD);
    while left > 0 {
        match receive(stream, &mut room, until)? {
            0 => break,
            read => left = left.saturating_sub(read),
        }
    }
    Ok(())
}

//! Who may ask: the page that the user opened, and nobody else.
//!
//! A page of another site can send requests to the loopback address, and by rebinding its own name to that address it can even read the answers. So a request
//! must name this address as its host, must not come from another origin, and must carry the key of a session. A session begins with the token in the address
//! that is printed, which is spent with its first use; it stands behind a `#`, which browsers send to nobody.
//!
//! The key is in no cookie: those are shared by all ports of a host, and sent by whoever can make the browser ask.

use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow};

use super::http::{Request, Response};

/// Windows that can be open at once; the oldest is closed for a new one.
const MOST_SESSIONS: usize = 16;

/// Which header the key of a session is in.
pub const SESSION: &str = "x-nearset-session";

/// What must be known to ask.
pub struct Guard {
    port: u16,
    keys: Mutex<Keys>,
}

struct Keys {
    token: String,
    sessions: Vec<String>,
}

impl Guard {
    pub fn new(port: u16) -> Result<Self> {
        Ok(Self { port, keys: Mutex::new(Keys { token: secret()?, sessions: Vec::new() }) })
    }

    /// The address that opens one window.
    pub fn address(&self) -> String {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        format!("http://127.0.0.1:{}/#{}", self.port, keys.token)
    }

    /// Refuses what does not come from this address.
    pub fn check_origin(&self, request: &Request) -> Result<(), Response> {
        let hosts = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let host = request.header("host").unwrap_or_default();
        if !hosts.iter().any(|known| known.eq_ignore_ascii_case(host)) {
            return Err(Response::refusal(403, "this host is another: open the address that nearset explore printed"));
        }
        let is_same = |origin: &str| origin.eq_ignore_ascii_case(&format!("http://{host}"));
        let is_foreign = |site: &str| !matches!(site, "same-origin" | "none");
        let is_navigation = request.method == "GET" && request.header("sec-fetch-mode") == Some("navigate");
        if request.header("origin").is_some_and(|origin| !is_same(origin))
            || !is_navigation && request.header("sec-fetch-site").is_some_and(is_foreign)
        {
            return Err(Response::refusal(403, "requests of other sites are refused"));
        }
        Ok(())
    }

    /// Refuses what belongs to no session.
    pub fn check_session(&self, request: &Request) -> Result<(), Response> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let given = request.header(SESSION).unwrap_or_default();
        match keys.sessions.iter().any(|known| is_equal(known, given)) {
            true => Ok(()),
            false => Err(Response::refusal(
                403,
                "this window has no session: open the address that nearset explore printed last",
            )),
        }
    }

    /// Begins a session, if the token is the one that is awaited. It is spent then.
    pub fn begin(&self, token: &str) -> Result<String, Response> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_equal(&keys.token, token) {
            let why = "the token of this address was used before: open the address that nearset explore printed last";
            return Err(Response::refusal(403, why));
        }
        let (Ok(token), Ok(session)) = (secret(), secret()) else {
            return Err(Response::refusal(503, "the system gives no random numbers"));
        };
        keys.token = token;
        keys.sessions.push(session.clone());
        let surplus = keys.sessions.len().saturating_sub(MOST_SESSIONS);
        keys.sessions.drain(..surplus);
        Ok(session)
    }
}

/// 128 bits that nobody can guess.
fn secret() -> Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|cause| anyhow!("the system gives no random numbers: {cause}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares in a time that does not tell where they differ.
fn is_equal(known: &str, given: &str) -> bool {
    known.len() == given.len() && known.bytes().zip(given.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

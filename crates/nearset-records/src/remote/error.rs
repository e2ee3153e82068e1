//! What can go wrong with objects: each error says what the server answered and what to do.

use super::url::Scheme;

/// Why an object can't be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum RemoteError {
    #[error(
        "this program was built without the feature `remote`, which reads and writes files that lie elsewhere: build it with that, or fetch the \
         file first"
    )]
    NotBuilt,
    #[error("the server answered {status}{}: check the bucket and the name", in_brackets(said))]
    NotFound { status: u16, said: String },
    #[error("the server answered {status}{}: {cure}", in_brackets(said))]
    Refused { status: u16, said: String, cure: &'static str },
    #[error("no credentials were found: {cure}")]
    NoCredentials { cure: &'static str },
    #[error("the server answered {status}{}", in_brackets(said))]
    Status { status: u16, said: String },
    #[error("{why}")]
    Connection { why: String },
    #[error("it has changed since it was looked at: it had {was}, and has {is}")]
    Changed { was: String, is: String },
    #[error("{why} ({attempts} attempts)")]
    CutOff { attempts: u32, why: String },
    #[error("web servers have no list of their files: name each of them")]
    NoList,
    #[error("{why}")]
    Unsupported { why: String },
}

fn in_brackets(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(" ({said})") }
}

impl RemoteError {
    /// Returns the error of an answer that is not the one that was asked for.
    pub(super) fn of_status(scheme: Scheme, status: u16, body: &str) -> Self {
        let said = what_it_says(status, body);
        match status {
            404 | 410 => RemoteError::NotFound { status, said },
            401 | 403 => RemoteError::Refused { status, said, cure: scheme.credentials() },
            // S3 answers so to those who ask another region's server.
            301 | 307 if scheme == Scheme::S3 => {
                RemoteError::Refused { status, said, cure: "the bucket is in another region: set AWS_REGION to that" }
            }
            _ => RemoteError::Status { status, said },
        }
    }

    /// Whether it may be gone if it is tried again.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            RemoteError::Connection { .. } => true,
            RemoteError::Status { status, .. } => matches!(status, 408 | 429 | 500..),
            _ => false,
        }
    }

    /// Whether what is missing is the bucket or container, as far as the store says so.
    pub(crate) fn is_no_container(&self) -> bool {
        let named = |said: &str| ["ContainerNotFound", "NoSuchBucket"].iter().any(|name| said.contains(name));
        matches!(self, RemoteError::NotFound { said, .. } if named(said))
    }

    /// Returns whether there is no such object.
    pub fn is_not_found(&self) -> bool {
        matches!(self, RemoteError::NotFound { .. })
    }
}

/// Returns the name of a status, and what a store's answer says in its first elements.
fn what_it_says(status: u16, body: &str) -> String {
    let element = |name: &str| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(text, _)| text.trim().to_owned())
    };
    let reason = match status {
        301 => "Moved Permanently",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        410 => "Gone",
        416 => "Range Not Satisfiable",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    };
    let parts = [Some(reason.to_owned()), element("Code"), element("Message")];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

impl From<RemoteError> for std::io::Error {
    fn from(error: RemoteError) -> Self {
        std::io::Error::other(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_what_to_do() {
        let body = "<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code><Message>The bucket does not exist</Message></Error>";
        let error = RemoteError::of_status(Scheme::S3, 404, body).to_string();
        assert_eq!(
            error,
            "the server answered 404 (Not Found, NoSuchBucket, The bucket does not exist): check the bucket and the name"
        );
        let error = RemoteError::of_status(Scheme::S3, 403, "").to_string();
        assert!(error.contains("AWS_ACCESS_KEY_ID") && error.contains("403 (Forbidden)"), "{error}");
        assert!(RemoteError::of_status(Scheme::Http, 503, "").is_passing());
        assert!(!RemoteError::of_status(Scheme::Http, 404, "").is_passing());
    }
}

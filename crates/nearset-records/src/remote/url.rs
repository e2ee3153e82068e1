//! Names with a scheme, such as `s3://bucket/folder/part-1.jsonl.gz`.

use std::fmt;
use std::path::Path;

/// A way to reach objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scheme {
    S3,
    Google,
    Azure,
    Http,
}

/// All names of schemes. The first of each is what messages call it.
const SCHEMES: &[(&str, Scheme)] = &[
    ("s3", Scheme::S3),
    ("s3a", Scheme::S3),
    ("gs", Scheme::Google),
    ("az", Scheme::Azure),
    ("abfs", Scheme::Azure),
    ("abfss", Scheme::Azure),
    ("https", Scheme::Http),
    ("http", Scheme::Http),
];

impl Scheme {
    /// Whether objects can be listed and written.
    pub fn is_store(self) -> bool {
        self != Scheme::Http
    }

    /// Which variables hold what a user is known by there.
    pub fn credentials(self) -> &'static str {
        match self {
            Scheme::S3 => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL where they are \
                 needed), or AWS_SKIP_SIGNATURE=true for a public bucket"
            }
            Scheme::Google => {
                "set GOOGLE_APPLICATION_CREDENTIALS to a service account's file, or GOOGLE_SKIP_SIGNATURE=true for a public bucket"
            }
            Scheme::Azure => {
                "set AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY, or AZURE_SKIP_SIGNATURE=true for a \
                 public container"
            }
            Scheme::Http => "the server wants to know who asks: name a signed URL, or https://USER:PASSWORD@HOST/",
        }
    }
}

/// A name taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Url<'u> {
    pub whole: &'u str,
    pub scheme: Scheme,
    /// The bucket or container with its scheme, `s3://bucket`; the scheme and host of a server.
    pub root: &'u str,
    /// What comes behind the root and its slash.
    pub key: &'u str,
}

/// Returns whether both are names of objects, and of the same one.
pub(crate) fn is_same_object(a: &Path, b: &Path) -> bool {
    match (a.to_str().and_then(Url::parse), b.to_str().and_then(Url::parse)) {
        (Some(a), Some(b)) => a.is_same_object(&b),
        _ => false,
    }
}

/// Returns whether a name is that of an object, and not of a file.
pub fn is_url(name: &str) -> bool {
    Url::parse(name).is_some()
}

impl<'u> Url<'u> {
    /// `None` for what is no name of an object, or has no bucket.
    pub fn parse(whole: &'u str) -> Option<Self> {
        let (scheme, rest) = whole.split_once("://")?;
        let (_, scheme) = *SCHEMES.iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name))?;
        let ends_host = |sign| sign == '/' || scheme == Scheme::Http && matches!(sign, '?' | '#');
        let host = rest.find(ends_host).unwrap_or(rest.len());
        let (root, key) = whole.split_at(whole.len() - rest.len() + host);
        (host > 0).then(|| Self { whole, scheme, root, key: key.strip_prefix('/').unwrap_or(key) })
    }

    /// The part of the key that tells the format: on web servers, a query may follow.
    pub fn path(&self) -> &'u str {
        match self.scheme {
            Scheme::Http => self.key.split(['?', '#']).next().unwrap_or(""),
            _ => self.key,
        }
    }

    /// Whether both are names of one object: schemes and slashes can be written in several ways, and an account can be left to the environment.
    pub fn is_same_object(&self, other: &Self) -> bool {
        let host = |url: &Self| url.root.split_once("://").map_or("", |(_, host)| host).to_owned();
        let (own, others) = (host(self), host(other));
        let is_same_root = match self.scheme {
            Scheme::Azure => {
                let parts = |host: &str| match host.split_once('@') {
                    Some((container, account)) => (container.to_owned(), account.split('.').next().map(str::to_owned)),
                    None => (host.to_owned(), None),
                };
                let ((own, own_account), (others, other_account)) = (parts(&own), parts(&others));
                own == others && (own_account == other_account || own_account.is_none() || other_account.is_none())
            }
            Scheme::Http => own.eq_ignore_ascii_case(&others),
            Scheme::S3 | Scheme::Google => own == others,
        };
        self.scheme == other.scheme && is_same_root && self.key.trim_matches('/') == other.key.trim_matches('/')
    }

    /// The object of another key in the same place.
    pub fn with_key(&self, key: &str) -> String {
        format!("{}/{key}", self.root)
    }
}

impl fmt::Display for Url<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_secrets(self.whole))
    }
}

/// Returns a name without what may be secret in it: on web servers, the query, in which signatures are, and a password.
pub(super) fn without_secrets(url: &str) -> String {
    let Some(parsed) = Url::parse(url).filter(|url| url.scheme == Scheme::Http) else { return url.to_owned() };
    let (scheme, _) = parsed.root.split_once("://").unwrap_or(("https", ""));
    format!("{scheme}://{}/{}", host_of(url), parsed.path())
}

/// Returns the host of a URL and its port. What stands in the place of a port and is none may be a password in which a sign was not encoded.
pub(super) fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = host.rsplit('@').next().unwrap_or(host);
    match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') && !port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let url = Url::parse("s3://bucket/a/b.jsonl.gz").unwrap();
        assert_eq!((url.scheme, url.root, url.key), (Scheme::S3, "s3://bucket", "a/b.jsonl.gz"));
        let url = Url::parse("HTTPS://host:8080/a/b.csv?signature=1/2#x").unwrap();
        assert_eq!((url.root, url.path()), ("HTTPS://host:8080", "a/b.csv"));
        assert_eq!(url.to_string(), "HTTPS://host:8080/a/b.csv");
        let url = Url::parse("https://me:secret@host/a?token=secret").unwrap();
        assert_eq!(url.to_string(), "https://host/a");
        assert_eq!(Url::parse("gs://bucket").unwrap().key, "");
        assert_eq!(Url::parse("s3://bucket/what?.csv").unwrap().key, "what?.csv");
        for (whole, shown) in [
            ("https://host?token=secret", "https://host/"),
            ("https://host:80#secret", "https://host:80/"),
            ("https://me:sec?ret@host/a", "https://me/"),
            ("http://[::1]:80/a?secret", "http://[::1]:80/a"),
            ("http://[::1]/a", "http://[::1]/a"),
        ] {
            assert_eq!(Url::parse(whole).unwrap().to_string(), shown);
        }
        for no in ["s3:/bucket/a", "s3://", "s3:///a", "file:///a", "ftp://host/a", "a.jsonl", "C:\\a"] {
            assert_eq!(Url::parse(no), None, "{no}");
        }
    }

    #[test]
    fn an_object_is_known_by_all_its_names() {
        let is_same = |a, b| Url::parse(a).unwrap().is_same_object(&Url::parse(b).unwrap());
        for (a, b) in [
            ("s3://b/k", "S3A://b/k"),
            ("s3://b/k", "s3://b//k"),
            ("az://c/k", "abfss://c@account.dfs.core.windows.net/k"),
            ("abfs://c@account.blob.core.windows.net/k", "abfss://c@account.dfs.core.windows.net/k"),
        ] {
            assert!(is_same(a, b), "{a} {b}");
        }
        for (a, b) in [
            ("s3://b/k", "gs://b/k"),
            ("s3://b/k", "s3://c/k"),
            ("s3://b/k", "s3://b/K"),
            ("abfss://c@one.dfs.core.windows.net/k", "abfss://c@two.dfs.core.windows.net/k"),
        ] {
            assert!(!is_same(a, b), "{a} {b}");
        }
    }

    #[test]
    fn every_scheme_names_its_credentials() {
        assert!(SCHEMES.iter().all(|(_, scheme)| !scheme.credentials().is_empty()));
    }
}

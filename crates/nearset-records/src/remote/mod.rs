//! Files that are not here: objects of S3, Google Cloud Storage and Azure, and what web servers have.
//!
//! Claim: an object is read as a file is, at any place and with the same bytes. Ranges are fetched ahead of the reader, in bounded memory; a
//! connection that breaks is taken up again at the byte that it had reached, and only if the object is still the one that was looked at first.
//! Invariant: what identifies an object (its size, and its ETag or its time) is compared with every answer, so two versions are never mixed.
//! Not here: formats. And without the feature `remote` nothing but names and errors: everything else answers that it was not built.

// What only those use who are not there.
#![cfg_attr(not(feature = "remote"), allow(dead_code))]

mod error;
mod url;

#[cfg(feature = "remote")]
mod ahead;
#[cfg(feature = "remote")]
mod blocks;
#[cfg(feature = "remote")]
mod fetch;
#[cfg(feature = "remote")]
mod http;
#[cfg(feature = "remote")]
mod store;
#[cfg(feature = "remote")]
mod upload;

#[cfg(not(feature = "remote"))]
mod absent;

use std::sync::Arc;

pub use error::RemoteError;
pub use url::is_url;
pub(crate) use url::{Scheme, Url, is_same_object};

#[cfg(not(feature = "remote"))]
pub(crate) use absent::{RemoteFile, RemoteReader, Upload, expect_soon, list, look_at};
#[cfg(feature = "remote")]
pub(crate) use {
    ahead::{RemoteFile, RemoteReader},
    blocks::expect_soon,
    store::{list, look_at},
    upload::Upload,
};

/// An object, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// With what may be secret in it.
    pub(crate) url: Arc<str>,
    /// `None` where the server does not say.
    pub(crate) size: Option<u64>,
    pub(crate) tag: Tag,
    /// Whether it is read in parts: the server sends them, and says which version they are of.
    pub(crate) is_ranged: bool,
}

/// What tells versions of an object apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tag {
    pub etag: Option<Arc<str>>,
    pub modified: Option<Arc<str>>,
}

impl Tag {
    /// Lists state the same ETag without the quotes that answers put around it.
    pub fn new(etag: Option<&str>, modified: Option<&str>) -> Self {
        Self { etag: etag.map(|etag| etag.trim_matches('"').into()), modified: modified.map(Into::into) }
    }

    /// Whether it tells versions apart.
    pub fn is_some(&self) -> bool {
        self.etag.is_some() || self.modified.is_some()
    }

    /// Whether an answer with the other tag is about the same version. One that states nothing of what was stated first may be of any version.
    pub fn agrees(&self, other: &Self) -> bool {
        match (&self.etag, &other.etag) {
            (Some(own), Some(other)) => own == other,
            _ => match (&self.modified, &other.modified) {
                (Some(own), Some(other)) => own == other,
                _ => !self.is_some(),
            },
        }
    }
}

impl Object {
    /// Returns its name, without what may be secret in it.
    pub fn name(&self) -> String {
        url::without_secrets(&self.url)
    }

    /// Returns its size and what else tells its versions apart, for those who want to know whether it has changed.
    pub fn state(&self) -> String {
        let size = self.size.map_or_else(|| "some".to_owned(), |size| size.to_string());
        match (&self.tag.etag, &self.tag.modified) {
            (Some(etag), _) => format!("{size} bytes, ETag {etag}"),
            (None, Some(modified)) => format!("{size} bytes, changed at {modified}"),
            (None, None) => format!("{size} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart_by_what_was_stated_first() {
        let tag = Tag::new;
        assert!(tag(Some("\"a\""), None).agrees(&tag(Some("a"), Some("Monday"))));
        assert!(!tag(Some("a"), Some("Monday")).agrees(&tag(Some("b"), Some("Monday"))));
        assert!(!tag(None, Some("Monday")).agrees(&tag(Some("a"), Some("Tuesday"))));
        assert!(!tag(Some("a"), Some("Monday")).agrees(&tag(None, None)));
        assert!(!tag(Some("a"), None).agrees(&tag(None, Some("Monday"))));
        assert!(tag(None, None).agrees(&tag(Some("a"), Some("Tuesday"))));
    }
}

//! An output that is an object of a store.

use std::io;
use std::path::Path;

use super::OutputOptions;
use crate::error::OutputError;
use crate::remote::{self, Upload, Url};

/// Begins an object, which shows whether there is such a bucket and whether we may write to it. Of Azure, where nothing is begun,
/// [`check_object`] has shown what can be known.
pub(super) fn begin_upload(path: &Path, url: &str) -> Result<Upload, OutputError> {
    let failed = |cause| OutputError::Remote { path: path.to_owned(), cause };
    match Url::parse(url) {
        Some(url) => Upload::create(&url).map_err(failed),
        None => Err(OutputError::Write { path: path.to_owned(), cause: io::ErrorKind::InvalidInput.into() }),
    }
}

/// Checks that an object may be written: that there is none of its name, or that it may be replaced.
pub(super) fn check_object(path: &Path, url: &str, options: &OutputOptions) -> Result<(), OutputError> {
    let Some(url) = Url::parse(url) else { return Ok(()) };
    let unsupported = |why: &str| Err(OutputError::Unsupported { path: path.to_owned(), why: why.to_owned() });
    if !url.scheme.is_store() {
        return unsupported("web servers are read and not written to: name a file, or an object of a store");
    }
    if url.key.is_empty() || url.key.ends_with('/') {
        return unsupported("objects of a store are written one by one: name one, or a folder on this machine");
    }
    let failed = |cause| OutputError::Remote { path: path.to_owned(), cause };
    match remote::look_at(&url) {
        Ok(_) if options.force => Ok(()),
        Ok(_) => Err(OutputError::Exists { path: path.to_owned() }),
        Err(error) if error.is_no_container() => Err(failed(error)),
        Err(error) if error.is_not_found() => Ok(()),
        // Who may write need not be allowed to look.
        Err(remote::RemoteError::Refused { .. }) if options.force => Ok(()),
        Err(cause @ remote::RemoteError::Refused { .. }) => Err(OutputError::Unseen { path: path.to_owned(), cause }),
        Err(cause) => Err(failed(cause)),
    }
}

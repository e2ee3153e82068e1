//! What a build without the feature `remote` has instead: types of which there are no values, and functions that say so.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;

use super::url::Url;
use super::{Object, RemoteError};

pub(crate) struct RemoteReader(Infallible);

impl RemoteReader {
    pub fn open(_: &Object, _: u64) -> Result<Self, RemoteError> {
        Err(RemoteError::NotBuilt)
    }

    pub fn next_bytes(&mut self, _: usize) -> io::Result<Bytes> {
        match self.0 {}
    }
}

impl io::Read for RemoteReader {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}

pub(crate) struct RemoteFile(Infallible);

impl RemoteFile {
    pub fn open(_: &Object) -> Result<Self, RemoteError> {
        Err(RemoteError::NotBuilt)
    }

    pub fn len(&self) -> u64 {
        match self.0 {}
    }

    pub fn read_at(&self, _: u64, _: usize) -> io::Result<Bytes> {
        match self.0 {}
    }
}

pub(crate) struct Upload(Infallible);

impl Upload {
    pub fn create(_: &Url<'_>) -> Result<Self, RemoteError> {
        Err(RemoteError::NotBuilt)
    }

    pub fn complete(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

impl io::Write for Upload {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

pub(crate) fn look_at(_: &Url<'_>) -> Result<Object, RemoteError> {
    Err(RemoteError::NotBuilt)
}

pub(crate) fn list(_: &Url<'_>, _: &str) -> Result<Vec<(String, Object)>, RemoteError> {
    Err(RemoteError::NotBuilt)
}

pub(crate) fn expect_soon(_: &Object, _: &[u64]) {}

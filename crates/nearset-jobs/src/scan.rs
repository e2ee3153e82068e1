//! Batches worked on by many threads and taken in their order.
//!
//! Claim: what `each` sees does not depend on the number of threads. A fixed number of batches is under way at once. A panic of any thread
//! ends the scan with it: nothing waits for a batch that will never be done.

use std::panic;
use std::thread;

use nearset::family::Hashed;

use crate::in_order::{Feed, queue};
use nearset_records::error::InputError;
use nearset_records::extract::{Arena, Extracted, Fields, extract};
use nearset_records::input::{Batch, Reader};

/// Reads all batches; `work` runs on `threads` threads, `each` in the order of reading, on this one. An input that breaks off is
/// an error in its place, and the next input follows.
///
/// # Errors
/// The first of `each`.
pub fn scan<T: Send, E>(
    reader: Reader,
    fields: &Fields,
    threads: usize,
    work: impl Fn(&Extracted<'_>, &mut Hashed) -> T + Sync,
    each: impl FnMut(Batch, Result<T, InputError>) -> Result<(), E>,
) -> Result<(), E> {
    scan_while(reader, fields, threads, work, || Ok(()), each)
}

/// [`scan`], as long as `go_on` says so, which is asked before each batch and while a pipe is waited for.
///
/// # Errors
/// The first of `go_on` and `each`.
pub fn scan_while<T: Send, E>(
    reader: Reader,
    fields: &Fields,
    threads: usize,
    work: impl Fn(&Extracted<'_>, &mut Hashed) -> T + Sync,
    go_on: impl FnMut() -> Result<(), E>,
    mut each: impl FnMut(Batch, Result<T, InputError>) -> Result<(), E>,
) -> Result<(), E> {
    let (feed, queue) = queue(threads);
    // Joined only once it has fed all: nobody can wake a thread that waits for a pipe.
    let reading = thread::spawn(move || read_all(reader, feed));
    queue.take_while(
        || (Arena::new(), Hashed::default()),
        |(arena, hashed), (batch, error): (Batch, Option<InputError>)| {
            let result = match error {
                None => Ok(work(&extract(&batch, fields, arena), hashed)),
                Some(error) => Err(error),
            };
            (batch, result)
        },
        go_on,
        |(batch, result)| each(batch, result),
    )?;
    reading.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
    Ok(())
}

fn read_all(mut reader: Reader, mut feed: Feed<(Batch, Option<InputError>)>) {
    while feed.wait() {
        let mut batch = Batch::new();
        let error = match reader.read_batch(&mut batch) {
            Ok(true) => None,
            Ok(false) => return,
            Err(error) => Some(error),
        };
        if !feed.send((batch, error)) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearset_records::extract::ItemField;
    use nearset_records::input::{ReadOptions, resolve};
    use std::panic::AssertUnwindSafe;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn a_panic_of_a_worker_ends_the_scan() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.txt");
        std::fs::write(&path, "line\n".repeat(10_000)).unwrap();
        let (ended, end) = mpsc::channel();
        let scanning = thread::spawn(move || {
            let fields = Fields::new("text", ItemField::Text);
            let mut options = ReadOptions::new(fields.clone());
            options.batch_bytes = 100;
            let reader = Reader::new(resolve(&[path.to_str().unwrap()], None).unwrap().list, options);
            let work = |extracted: &Extracted<'_>, _: &mut Hashed| {
                assert!(extracted.batch().start().record < 5_000, "as a bug would");
            };
            let outcome =
                panic::catch_unwind(AssertUnwindSafe(|| scan(reader, &fields, 3, work, |_, _| Ok::<(), ()>(()))));
            let _ = ended.send(outcome.is_err());
        });
        assert_eq!(end.recv_timeout(Duration::from_secs(60)), Ok(true), "it hangs, or the panic was swallowed");
        scanning.join().unwrap();
    }
}

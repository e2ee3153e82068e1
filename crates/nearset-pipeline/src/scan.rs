//! Batches worked on by many threads and taken in their order.
//!
//! Claim: what `each` sees does not depend on the number of threads. A fixed number of batches is under way at once. A panic of any thread
//! ends the scan with it: nothing waits for a batch that will never be done.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::thread;

use crossbeam_channel::{Receiver, bounded, select};
use nearset::family::Hashed;

use crate::error::InputError;
use crate::extract::{Arena, Extracted, Fields, extract};
use crate::input::{Batch, Reader};

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
    mut each: impl FnMut(Batch, Result<T, InputError>) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.max(1);
    let under_way = 2 * threads + 2;
    // A permit a batch bounds those that wait for their turn too.
    let (permit, permits) = bounded::<()>(under_way);
    let (batches_in, batches) = bounded(under_way);
    let (done_in, done) = bounded(under_way);
    let (alive, given_up) = bounded::<()>(0);
    for _ in 0..under_way {
        let _ = permit.send(());
    }
    // Not within the scope: nobody can wake a thread that waits for a pipe.
    let reading = thread::spawn(move || read_all(reader, &permits, |numbered| batches_in.send(numbered).is_ok()));
    thread::scope(|scope| {
        for _ in 0..threads {
            let (batches, done_in, given_up, work) = (batches.clone(), done_in.clone(), given_up.clone(), &work);
            scope.spawn(move || {
                let (mut arena, mut hashed) = (Arena::new(), Hashed::new());
                loop {
                    let numbered: Numbered = select! {
                        recv(batches) -> numbered => match numbered { Ok(numbered) => numbered, Err(_) => return },
                        recv(given_up) -> _ => return,
                    };
                    let (number, batch, error) = numbered;
                    let attempt = || match error {
                        None => Ok(work(&extract(&batch, fields, &mut arena), &mut hashed)),
                        Some(error) => Err(error),
                    };
                    // What was half done is never looked at again.
                    let result = panic::catch_unwind(AssertUnwindSafe(attempt));
                    if done_in.send((number, batch, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop((batches, done_in, given_up));
        let mut early = BTreeMap::new();
        let mut next = 0;
        let mut outcome = Ok(());
        let mut stopped = false;
        'all: for (number, batch, result) in &done {
            let result = result.unwrap_or_else(|panic| panic::resume_unwind(panic));
            early.insert(number, (batch, result));
            while let Some((batch, result)) = early.remove(&next) {
                next += 1;
                outcome = each(batch, result);
                if outcome.is_err() {
                    stopped = true;
                    break 'all;
                }
                let _ = permit.send(());
            }
        }
        drop((alive, done));
        if !stopped {
            reading.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
        }
        outcome
    })
}

type Numbered = (u64, Batch, Option<InputError>);

fn read_all(mut reader: Reader, permits: &Receiver<()>, send: impl Fn(Numbered) -> bool) {
    for (number, ()) in (0..).zip(permits) {
        let mut batch = Batch::new();
        let error = match reader.read_batch(&mut batch) {
            Ok(true) => None,
            Ok(false) => return,
            Err(error) => Some(error),
        };
        if !send((number, batch, error)) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::ItemField;
    use crate::input::{ReadOptions, resolve};
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

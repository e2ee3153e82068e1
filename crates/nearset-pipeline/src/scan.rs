//! Batches worked on by many threads and taken in their order.
//!
//! Claim: what `each` sees does not depend on the number of threads. A fixed number of batches is under way at once.

use std::collections::BTreeMap;
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
    thread::spawn(move || read_all(reader, &permits, |numbered| batches_in.send(numbered).is_ok()));
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
                    let result = match error {
                        None => Ok(work(&extract(&batch, fields, &mut arena), &mut hashed)),
                        Some(error) => Err(error),
                    };
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
        'all: for (number, batch, result) in &done {
            early.insert(number, (batch, result));
            while let Some((batch, result)) = early.remove(&next) {
                next += 1;
                outcome = each(batch, result);
                if outcome.is_err() {
                    break 'all;
                }
                let _ = permit.send(());
            }
        }
        drop((alive, done));
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

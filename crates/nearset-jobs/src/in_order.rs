//! Pieces worked on by many threads and taken in their order.
//!
//! Claim: what is taken does not depend on the number of threads, and a bounded number of pieces is under way at once, those
//! that wait for their turn included. A panic of a worker is the taker's: nothing waits for a piece that will never be done.
//! The feeding thread may be blocked for any time, by a pipe or by another language's interpreter: it learns that nobody
//! takes any more when it comes back.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, select};

/// How often a taker that waits looks whether it is to go on.
const LOOK: Duration = Duration::from_millis(50);

/// The end into which pieces go.
pub struct Feed<P> {
    pieces: Sender<(u64, P)>,
    permits: Receiver<()>,
    next: u64,
}

/// The end at which they are worked on and taken.
pub struct Queue<P> {
    pieces: Receiver<(u64, P)>,
    permit: Sender<()>,
    threads: usize,
}

/// Enough that who takes them, and shares the cores with who works on them, may fall behind for a while.
fn pieces_under_way(threads: usize) -> usize {
    4 * threads
}

/// Creates a queue for `threads` threads. It ends when the feed is dropped and all that was fed is taken.
pub fn queue<P>(threads: usize) -> (Feed<P>, Queue<P>) {
    let threads = threads.max(1);
    let under_way = pieces_under_way(threads);
    let (permit, permits) = bounded(under_way);
    let (pieces_in, pieces) = bounded(under_way);
    for _ in 0..under_way {
        let _ = permit.send(());
    }
    (Feed { pieces: pieces_in, permits, next: 0 }, Queue { pieces, permit, threads })
}

impl<P> Feed<P> {
    /// Waits until a piece may be under way. False when nobody takes any more.
    pub fn wait(&self) -> bool {
        self.permits.recv().is_ok()
    }

    /// Hands in the next piece, for which [`Feed::wait`] was called. False when nobody takes any more.
    pub fn send(&mut self, piece: P) -> bool {
        self.next += 1;
        self.pieces.send((self.next - 1, piece)).is_ok()
    }
}

impl<P: Send> Queue<P> {
    /// Takes all pieces: `work` runs on the queue's threads, each with a `room` of its own, and `each` on this one, in order. A queue for
    /// one thread does both on this one.
    ///
    /// # Errors
    /// The first of `each`, after which nothing more is taken.
    pub fn take<R, T: Send, E>(
        self,
        room: impl Fn() -> R + Sync,
        work: impl Fn(&mut R, P) -> T + Sync,
        each: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        self.take_while(room, work, || Ok(()), each)
    }

    /// [`Queue::take`], as long as `go_on` says so, which is asked before each piece and while there is none.
    ///
    /// # Errors
    /// The first of `go_on` and `each`, after which nothing more is taken.
    pub fn take_while<R, T: Send, E>(
        self,
        room: impl Fn() -> R + Sync,
        work: impl Fn(&mut R, P) -> T + Sync,
        mut go_on: impl FnMut() -> Result<(), E>,
        mut each: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        let Queue { pieces, permit, threads } = self;
        if threads == 1 {
            // Another thread would have to be handed every piece, and to hand it back.
            let mut room = room();
            loop {
                go_on()?;
                match pieces.recv_timeout(LOOK) {
                    Ok((_, piece)) => each(work(&mut room, piece))?,
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
                let _ = permit.send(());
            }
        }
        let (done_in, done) = bounded(pieces_under_way(threads));
        // Nothing is ever sent here: it closes when the taker gives up, and with it all workers.
        let (alive, given_up) = bounded::<()>(0);
        thread::scope(|scope| {
            for _ in 0..threads {
                let (pieces, done_in, given_up) = (pieces.clone(), done_in.clone(), given_up.clone());
                let (room, work) = (&room, &work);
                scope.spawn(move || {
                    let mut room = room();
                    loop {
                        let (number, piece) = select! {
                            recv(pieces) -> piece => match piece { Ok(piece) => piece, Err(_) => return },
                            recv(given_up) -> _ => return,
                        };
                        // What was half done is never looked at again.
                        let made = panic::catch_unwind(AssertUnwindSafe(|| work(&mut room, piece)));
                        if done_in.send((number, made)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop((pieces, done_in, given_up));
            let mut early = BTreeMap::new();
            let mut next = 0;
            let mut all = || {
                loop {
                    go_on()?;
                    let (number, made) = match done.recv_timeout(LOOK) {
                        Ok(done) => done,
                        Err(RecvTimeoutError::Timeout) => continue,
                        Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    };
                    early.insert(number, made.unwrap_or_else(|panic| panic::resume_unwind(panic)));
                    while let Some(made) = early.remove(&next) {
                        next += 1;
                        each(made)?;
                        let _ = permit.send(());
                    }
                }
            };
            let outcome = all();
            drop((alive, done));
            outcome
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(threads: usize, last: u64) -> (Result<(), u64>, Vec<u64>, u64) {
        let (mut feed, queue) = queue(threads);
        let feeding = thread::spawn(move || {
            let mut sent = 0;
            while sent < 1_000 && feed.wait() && feed.send(sent) {
                sent += 1;
            }
            sent
        });
        let mut taken = Vec::new();
        let outcome = queue.take(
            || 0u64,
            |room, piece: u64| {
                *room += 1;
                // Some pieces take longer than those behind them.
                thread::sleep(std::time::Duration::from_micros(if piece.is_multiple_of(7) { 300 } else { 10 }));
                piece * piece
            },
            |square| {
                taken.push(square);
                if taken.len() as u64 == last { Err(square) } else { Ok(()) }
            },
        );
        (outcome, taken, feeding.join().unwrap())
    }

    #[test]
    fn pieces_come_out_as_they_went_in() {
        for threads in [1, 2, 5] {
            let (outcome, taken, sent) = fed(threads, u64::MAX);
            assert_eq!((outcome, sent), (Ok(()), 1_000));
            assert!(taken.iter().copied().eq((0..1_000).map(|i| i * i)));
        }
    }

    #[test]
    fn an_error_ends_the_feeding_too() {
        for threads in [1, 2] {
            let (outcome, taken, sent) = fed(threads, 10);
            assert_eq!((outcome, taken.len()), (Err(81), 10));
            assert!(sent <= 10 + pieces_under_way(threads) as u64, "{sent} pieces were fed for 10 that were taken");
        }
    }

    #[test]
    fn who_no_longer_goes_on_leaves_no_thread_behind() {
        for threads in [1, 2] {
            let (mut feed, queue) = queue(threads);
            // Feeds until nobody takes any more, and waits for that.
            let feeding = thread::spawn(move || while feed.wait() && feed.send(0u64) {});
            let mut asked = 0;
            let outcome = queue.take_while(
                || (),
                |(), piece| piece,
                || {
                    asked += 1;
                    if asked == 20 { Err("stopped") } else { Ok(()) }
                },
                |_| Ok(()),
            );
            assert_eq!(outcome, Err("stopped"));
            feeding.join().unwrap();
        }
    }

    #[test]
    fn a_panic_of_a_worker_is_the_takers() {
        for threads in [1, 3] {
            let (mut feed, queue) = queue(threads);
            let feeding = thread::spawn(move || while feed.wait() && feed.send(1u64) {});
            let take = || queue.take(|| (), |(), piece| assert_eq!(piece, 2), |()| Ok::<_, ()>(()));
            assert!(panic::catch_unwind(AssertUnwindSafe(take)).is_err());
            feeding.join().unwrap();
        }
    }
}

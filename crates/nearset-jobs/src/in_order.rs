//! Pieces worked on by many threads and taken in their order.
//!
//! Claim: what is taken does not depend on the number of threads, and a bounded number of pieces is under way at once, those
//! that wait for their turn included. A panic of a worker is the taker's: nothing waits for a piece that will never be done.
//! The feeding thread may be blocked for any time, by a pipe or by another language's interpreter: it learns that nobody
//! takes any more when it comes back.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::iter;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
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

/// Creates a queue for `threads` threads. It ends when the feed is dropped and all that was fed is taken.
pub fn queue<P>(threads: usize) -> (Feed<P>, Queue<P>) {
    let threads = threads.max(1);
    let under_way = 2 * threads + 2;
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
        let (done_in, done) = bounded(2 * threads + 2);
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

/// Does each of some tasks, whichever thread is free, on a thread for each room. The first error of each thread ends its work.
pub(crate) fn share_out<R: Send, T: Send, E: Send>(
    rooms: &mut [R],
    mut tasks: impl Iterator<Item = T> + Send,
    work: impl Fn(&mut R, T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    if let [room] = rooms {
        return tasks.try_for_each(|task| work(room, task));
    }
    let tasks = Mutex::new(tasks);
    let next = || tasks.lock().ok().and_then(|mut tasks| tasks.next());
    let work = |room: &mut R| iter::from_fn(next).try_for_each(|task| work(room, task));
    thread::scope(|scope| {
        let threads: Vec<_> = rooms.iter_mut().map(|room| scope.spawn(|| work(room))).collect();
        let ends = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        // All are waited for.
        ends.fold(Ok(()), Result::and)
    })
}

/// Does each of some tasks, on so many threads, and returns what they come to in their order.
pub(crate) fn in_parallel<T: Send, R: Send>(threads: usize, tasks: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let mut done: Vec<Option<R>> = tasks.iter().map(|_| None).collect();
    let places = tasks.into_iter().zip(&mut done);
    let shared: Result<(), Infallible> = share_out(&mut vec![(); threads.max(1)], places, |(), (task, place)| {
        *place = Some(work(task));
        Ok(())
    });
    let Ok(()) = shared;
    done.into_iter().flatten().collect()
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
            assert!(sent < 10 + 2 * 6, "{sent} pieces were fed for 10 that were taken");
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

//! Threads that stand by for the one that decides.
//!
//! Claim: what comes out does not depend on the number of threads. A panic of any of them is the caller's.
//! Threads of a pool rather than new ones each time: a batch takes milliseconds, and a new thread waits behind all that run before its first turn.

use std::convert::Infallible;
use std::iter;
use std::sync::{Arc, Mutex, OnceLock};

use rayon_core::{ThreadPool, ThreadPoolBuilder};

/// So many threads, which start when they are first needed and end with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct Crew {
    threads: usize,
    /// Nothing if the system grants no threads; all is then done by the caller.
    pool: Arc<OnceLock<Option<ThreadPool>>>,
}

impl Crew {
    pub fn new(threads: usize) -> Self {
        Self { threads: threads.max(1), pool: Arc::default() }
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    fn pool(&self) -> Option<&ThreadPool> {
        let start = || ThreadPoolBuilder::new().num_threads(self.threads).build().ok();
        self.pool.get_or_init(start).as_ref()
    }

    /// Does each of some tasks, whichever thread is free, on a thread for each room. The first error of each thread ends its work.
    pub fn share_out<R: Send, T: Send, E: Send>(
        &self,
        rooms: &mut [R],
        mut tasks: impl Iterator<Item = T> + Send,
        work: impl Fn(&mut R, T) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let pool = if rooms.len() > 1 { self.pool() } else { None };
        let (Some(pool), [_, _, ..]) = (pool, &rooms) else {
            return rooms.first_mut().map_or(Ok(()), |room| tasks.try_for_each(|task| work(room, task)));
        };
        let tasks = Mutex::new(tasks);
        let next = || tasks.lock().ok().and_then(|mut tasks| tasks.next());
        let work = |room: &mut R| iter::from_fn(next).try_for_each(|task| work(room, task));
        let mut ends: Vec<Result<(), E>> = rooms.iter().map(|_| Ok(())).collect();
        pool.in_place_scope(|scope| {
            for (room, end) in rooms.iter_mut().zip(&mut ends) {
                let work = &work;
                scope.spawn(move |_| *end = work(room));
            }
        });
        ends.into_iter().collect()
    }

    /// Does each of some tasks, and returns what they come to in their order.
    pub fn each<T: Send, R: Send>(&self, tasks: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
        let mut done: Vec<Option<R>> = tasks.iter().map(|_| None).collect();
        let mut rooms = vec![(); self.threads.min(tasks.len()).max(1)];
        let places = tasks.into_iter().zip(&mut done);
        let shared: Result<(), Infallible> = self.share_out(&mut rooms, places, |(), (task, place)| {
            *place = Some(work(task));
            Ok(())
        });
        let Ok(()) = shared;
        done.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe};
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn tasks_come_out_in_their_order_by_any_number_of_threads() {
        for threads in [1, 2, 7] {
            let crew = Crew::new(threads);
            for count in [0, 1, 5, 1000] {
                let squares = crew.each((0..count).collect(), |i: u64| i * i);
                assert!(squares.into_iter().eq((0..count).map(|i| i * i)), "{threads} {count}");
            }
        }
    }

    #[test]
    fn tasks_are_done_at_the_same_time() {
        // Ends only if both wait for each other.
        let both = Barrier::new(2);
        assert_eq!(Crew::new(2).each(vec![1, 2], |i| (i, both.wait().is_leader()).0), [1, 2]);
    }

    #[test]
    fn errors_and_panics_are_the_callers_and_leave_the_crew_at_work() {
        for threads in [1, 3] {
            let crew = Crew::new(threads);
            let mut rooms = vec![0u64; threads];
            let failed = crew.share_out(&mut rooms, 0..100, |done, task| {
                *done += 1;
                if task == 40 { Err(task) } else { Ok(()) }
            });
            assert_eq!(failed, Err(40));
            assert!(rooms.iter().sum::<u64>() >= 41);
            let panicking = || crew.each(vec![1, 2, 3], |i| assert!(i < 3, "as a bug would"));
            assert!(panic::catch_unwind(AssertUnwindSafe(panicking)).is_err());
            assert_eq!(crew.each(vec![1, 2], |i| i + 1), [2, 3]);
        }
    }
}

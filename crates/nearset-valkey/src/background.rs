//! Work that takes longer than a command may hold the server: on threads of our own, while the client waits and others are served.
//!
//! Claim: nothing here that grows with a filter, plans, or draws functions runs on the server's thread, except where a client can't
//! wait: in transactions and scripts, on the link from a primary, and while the server loads its files.
//! Invariant: keys, arguments and memory limits are touched under the server's lock only ([`Worker::locked`]); between two locks
//! anything may have happened to a key. A [`Job`] marks values that must not change meanwhile: commands that would change them wait
//! for its end, and one that can't wait takes the mark away, which the job finds out.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::{io, ptr};

use redis_module::raw;

use crate::allocator::touch_zeros;
use crate::memory::{self, Floor, Need};
use crate::refusal::{Outcome, Refusal};
use crate::server::{self, Call, Run, api};
use crate::stats;

/// What takes about this many bytes of memory to be read or written is done in place: a millisecond or two.
pub const SMALL: u64 = 8 << 20;

/// Functions of more bytes than this take longer than a few milliseconds to draw.
pub const FEW_FUNCTIONS: u64 = 256 << 10;

/// Threads that plan and draw functions. One makes tables: allocators keep what a thread had for this thread, so that several would
/// keep several times as much. One gives back memory.
const PLANNERS: usize = 2;

/// How much less urgent than the server's own thread those are that it never waits for: on two cores, questions wait half as long
/// beside large filters.
const LESS_URGENT: c_int = 10;

type Task = Box<dyn FnOnce() + Send>;

/// Tasks for some threads, the oldest first.
struct Queue {
    tasks: Mutex<VecDeque<Task>>,
    came: Condvar,
}

impl Queue {
    const fn new() -> Self {
        Self { tasks: Mutex::new(VecDeque::new()), came: Condvar::new() }
    }

    fn push(&self, task: Task) {
        locked(&self.tasks).push_back(task);
        self.came.notify_one();
    }

    fn serve(&self) -> ! {
        loop {
            let mut tasks = locked(&self.tasks);
            let task = loop {
                match tasks.pop_front() {
                    Some(task) => break task,
                    None => tasks = self.came.wait(tasks).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(tasks);
            // A panic is the task's to report; the thread goes on.
            let _ = catch_unwind(AssertUnwindSafe(task));
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

static PLANS: Queue = Queue::new();
static TABLES: Queue = Queue::new();
static DISCARDED: Queue = Queue::new();

/// The server's thread, which runs commands.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// Starts the threads; now, because there is memory for them.
pub fn start() -> io::Result<()> {
    MAIN.get_or_init(|| thread::current().id());
    // Where memory is short, the server waits for what was discarded.
    for (queue, threads, urgency) in [(&PLANS, PLANNERS, LESS_URGENT), (&TABLES, 1, LESS_URGENT), (&DISCARDED, 1, 0)] {
        for _ in 0..threads {
            thread::Builder::new().name("nearset".into()).spawn(move || {
                give_way(urgency);
                touch_zeros();
                // The first allocation of a thread may take much address space, which should not wait for the first task.
                drop(Box::new(0));
                queue.serve()
            })?;
        }
    }
    Ok(())
}

/// Lets the server's thread go before this one where cores are few. If the system won't have it, this one is like any other.
fn give_way(urgency: c_int) {
    // Elsewhere than on Linux it would be the priority of the whole server.
    if cfg!(target_os = "linux") && urgency > 0 {
        // SAFETY: it changes nothing but the priority of this thread.
        unsafe { libc::nice(urgency) };
    }
}

/// Drops a value of so many bytes, on another thread if they are many: giving back pages takes .2 ms per MB.
pub fn discard<T: Send + 'static>(value: T, bytes: u64) {
    if bytes <= SMALL || !is_main() {
        return drop(value);
    }
    UNDER_WAY.fetch_add(1, Ordering::Relaxed);
    DISCARDED.push(Box::new(move || {
        drop(value);
        UNDER_WAY.fetch_sub(1, Ordering::Release);
    }));
}

fn is_main() -> bool {
    MAIN.get() == Some(&thread::current().id())
}

/// Values that were discarded and are not dropped yet.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// Waits until what was discarded is given back, for who finds no memory. False if there was nothing to wait for.
pub fn await_discarded() -> bool {
    if UNDER_WAY.load(Ordering::Acquire) == 0 {
        return false;
    }
    let (sender, receiver) = sync_channel(1);
    DISCARDED.push(Box::new(move || {
        let _ = sender.send(());
    }));
    receiver.recv().is_ok()
}

/// Runs something on the thread that makes tables, and waits for it.
fn among_tables<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = sync_channel(1);
    TABLES.push(Box::new(move || drop(sender.send(run()))));
    receiver.recv().ok()
}

/// Runs something on the thread that makes tables, when its turn comes.
pub fn among_tables_later(run: impl FnOnce() + Send + 'static) {
    TABLES.push(Box::new(run));
}

/// Runs something on the server's thread, and waits for it. Not under the server's lock, which that thread needs.
pub fn on_main<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = sync_channel(1);
    let task: Task = Box::new(move || drop(sender.send(run())));
    let task = Box::into_raw(Box::new(task)).cast();
    // SAFETY: the server takes this from any thread, and passes the task to the function once.
    unsafe { api!(RedisModule_EventLoopAddOneShot(Some(run_task), task)) };
    receiver.recv().ok()
}

unsafe extern "C" fn run_task(task: *mut c_void) {
    // SAFETY: the server passes what `on_main` gave it, once.
    let task = *unsafe { Box::from_raw(task.cast::<Task>()) };
    let _ = catch_unwind(AssertUnwindSafe(task));
}

/// A client that waits, and what is needed to answer it from another thread.
pub struct Waiting {
    client: *mut raw::RedisModuleBlockedClient,
    ctx: *mut raw::RedisModuleCtx,
    /// Ours until they are freed under the lock.
    arguments: Vec<*mut raw::RedisModuleString>,
}

// SAFETY: the server lets any thread use a blocked client's context, by its rules: replies at any time, all else under its lock.
// Strings are only read without it.
unsafe impl Send for Waiting {}

/// Who does a command's work, and how it gets at the server.
pub enum Worker<'c> {
    /// The server's own thread, in the command itself.
    Command(&'c Call<'c>),
    /// Another thread.
    Thread(Waiting),
}

/// The server's lock, until it is dropped.
struct Lock(*mut raw::RedisModuleCtx);

impl Lock {
    fn of(waiting: &Waiting) -> Self {
        // SAFETY: the context is a thread-safe one, which lives until the client is unblocked.
        unsafe { api!(RedisModule_ThreadSafeContextLock(waiting.ctx)) };
        Self(waiting.ctx)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // SAFETY: this thread took the lock.
        unsafe { api!(RedisModule_ThreadSafeContextUnlock(self.0)) };
    }
}

impl Worker<'_> {
    /// Runs something that touches keys or limits, while no command runs.
    ///
    /// # Errors
    /// Its own, or that the server became a replica in between, which nobody but its primary writes to.
    pub fn locked<T>(&self, run: impl FnOnce(&Call<'_>) -> Outcome<T>) -> Outcome<T> {
        let Worker::Thread(waiting) = self else { return self.unlocked(run) };
        let _lock = Lock::of(waiting);
        self.unlocked(|call| match call.is_replica() {
            true => Err(Refusal::because("the server became a replica: send the command to its primary")),
            false => run(call),
        })
    }

    /// Reads arguments or replies, while commands may run.
    pub fn unlocked<T>(&self, run: impl FnOnce(&Call<'_>) -> T) -> T {
        match self {
            Worker::Command(call) => run(call),
            Worker::Thread(waiting) => run(&Call::of(waiting.ctx, &waiting.arguments, false)),
        }
    }

    pub fn is_thread(&self) -> bool {
        matches!(self, Worker::Thread(_))
    }

    /// [`memory::allow`], not under the lock. The room that is kept free is the server's thread's own, since it needs it.
    pub fn allow(&self, need: Need<'static>) -> Outcome<Floor> {
        match self {
            Worker::Command(call) => memory::allow(call, need),
            Worker::Thread(_) => {
                self.locked(|call| memory::hold_against_limits(call, need))?;
                on_main(move || memory::hold(need)).unwrap_or_else(|| Err(memory::no_memory(need.what)))
            }
        }
    }

    /// Makes tables, on the thread for that.
    pub fn make<T: Send + 'static>(
        &self,
        what: &str,
        make: impl FnOnce() -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        match self {
            Worker::Command(_) => make(),
            Worker::Thread(_) => among_tables(make).unwrap_or_else(|| Err(memory::no_memory(what))),
        }
    }
}

/// Does a command's work with tables: on another thread if it is long, unless the client can't wait.
pub fn work(call: &Call<'_>, is_long: bool, work: impl FnOnce(&Worker<'_>) -> Outcome + Send + 'static) -> Outcome {
    work_in(&TABLES, call, is_long, work)
}

/// The same for what plans.
pub fn plan(call: &Call<'_>, is_long: bool, plan: impl FnOnce(&Worker<'_>) -> Outcome + Send + 'static) -> Outcome {
    work_in(&PLANS, call, is_long, plan)
}

fn work_in(
    queue: &Queue,
    call: &Call<'_>,
    is_long: bool,
    work: impl FnOnce(&Worker<'_>) -> Outcome + Send + 'static,
) -> Outcome {
    if !is_long || !call.can_wait() {
        return work(&Worker::Command(call));
    }
    stats::ON_THREADS.add(1);
    // SAFETY: the context is the command's own, and its client can be blocked. The arguments are kept beyond the command.
    let waiting = unsafe {
        let client = api!(RedisModule_BlockClient(call.context(), None, None, None, 0));
        let ctx = api!(RedisModule_GetThreadSafeContext(client));
        let arguments = call.strings().to_vec();
        arguments.iter().for_each(|string| api!(RedisModule_RetainString(ctx, *string)));
        Waiting { client, ctx, arguments }
    };
    queue.push(Box::new(move || {
        let worker = Worker::Thread(waiting);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            memory::expect_room_here("the command", 0)?;
            work(&worker)
        }));
        worker.unlocked(|call| call.end(outcome));
        let Worker::Thread(waiting) = worker else { return };
        // SAFETY: strings are freed under the lock, once; the context after its last use; and the client is unblocked once.
        unsafe {
            let lock = Lock::of(&waiting);
            waiting.arguments.iter().for_each(|string| api!(RedisModule_FreeString(waiting.ctx, *string)));
            drop(lock);
            api!(RedisModule_FreeThreadSafeContext(waiting.ctx));
            api!(RedisModule_UnblockClient(waiting.client, ptr::null_mut()));
        }
    }));
    Ok(())
}

/// Something that is under way with values of some keys, for which commands wait that would change them.
pub struct Job {
    /// Commands that wait; `None` once the job is over.
    waiting: Mutex<Option<Vec<Postponed>>>,
}

/// A command that is carried out when a job is over.
struct Postponed {
    client: *mut raw::RedisModuleBlockedClient,
    run: Run,
}

// SAFETY: a blocked client may be unblocked on any thread.
unsafe impl Send for Postponed {}

impl fmt::Debug for Job {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Job")
    }
}

impl Job {
    pub fn begin() -> Arc<Self> {
        Arc::new(Self { waiting: Mutex::new(Some(Vec::new())) })
    }

    pub fn is_over(&self) -> bool {
        locked(&self.waiting).is_none()
    }

    /// Carries a command out when the job is over. False if it is already.
    pub fn postpone(&self, call: &Call<'_>, run: Run) -> bool {
        let mut waiting = locked(&self.waiting);
        let Some(waiting) = waiting.as_mut() else { return false };
        // SAFETY: the context is the command's own, and its client can wait.
        let client = unsafe { api!(RedisModule_BlockClient(call.context(), Some(again), None, Some(forget), 0)) };
        waiting.push(Postponed { client, run });
        true
    }

    /// Ends the job, and lets those go on that wait for it.
    fn end(&self) {
        for Postponed { client, run } in locked(&self.waiting).take().into_iter().flatten() {
            // SAFETY: the client was blocked once, and is unblocked once; `forget` frees what it is given.
            unsafe { api!(RedisModule_UnblockClient(client, Box::into_raw(Box::new(run)).cast())) };
        }
    }
}

/// Lets a command wait for what is under way with a value, if it can; else what is under way will find that it is not any more.
pub fn wait(under_way: &mut Option<Arc<Job>>, call: &Call<'_>) -> Outcome {
    match under_way.take() {
        Some(job) if !job.is_over() && call.can_wait() => {
            *under_way = Some(Arc::clone(&job));
            Err(Refusal::Wait(job))
        }
        _ => Ok(()),
    }
}

/// Ends a job when it is dropped, whatever became of the work.
pub struct Ending(pub Arc<Job>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Draws functions on another thread, and lets commands wait for it that need them.
fn draw(draw: impl FnOnce() + Send + 'static) -> Arc<Job> {
    let job = Job::begin();
    let ending = Ending(Arc::clone(&job));
    PLANS.push(Box::new(move || {
        draw();
        drop(ending);
    }));
    job
}

/// Lets a command that hashes items wait until functions of so many bytes are drawn, where that takes long. `drawing` is what was begun
/// before, and `begin` gives what draws them.
pub fn await_functions<D: FnOnce() + Send + 'static>(
    call: &Call<'_>,
    bytes: u64,
    drawing: &mut Option<Arc<Job>>,
    begin: impl FnOnce() -> D,
) -> Outcome {
    if bytes <= FEW_FUNCTIONS || !call.can_wait() {
        return Ok(());
    }
    let under_way = drawing.as_ref().filter(|job| !job.is_over()).map(Arc::clone);
    let job = match under_way {
        Some(job) => job,
        None => {
            let need = Need { what: "the functions", total: 0, more: 0, passing: 2 * bytes };
            drop(memory::allow(call, need)?);
            draw(begin())
        }
    };
    *drawing = Some(Arc::clone(&job));
    Err(Refusal::Wait(job))
}

/// Carries out a command that was postponed.
unsafe extern "C" fn again(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: the server passes what `end` gave it, which lives until `forget`.
    let run = unsafe { *api!(RedisModule_GetBlockedClientPrivateData(ctx)).cast::<Run>() };
    server::answer_again(ctx, argv, argc, run)
}

unsafe extern "C" fn forget(_ctx: *mut raw::RedisModuleCtx, run: *mut c_void) {
    if !run.is_null() {
        // SAFETY: the server passes what `end` gave it, once.
        drop(unsafe { Box::from_raw(run.cast::<Run>()) });
    }
}

//! Memory before it is taken: what a command will allocate is held against every limit first.
//!
//! There are three, each with its own cure: `near.memory-limit` of one key, the server's `maxmemory`, and what the system gives.
//! The last one shows only in a refusal, which neither the server nor most Rust code survives. So a command that needs much takes
//! [`FLOOR`] bytes and what it works with *beside* the tables, allocates the tables in a way that may fail, and gives the rest
//! back: what the server and the command then allocate in ways that can't fail finds at least that much room.
//!
//! Claim: no command of a client takes more than it said here and [`UNFORESEEN`] bytes; builds with debug assertions count what is
//! taken on the server's thread, and log a command that takes more.
//! Not here: what the primary or a file of the server's asks for, which is obeyed as long as the allocator can.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use memmap2::MmapMut;
use nearset::spec::SpecError;

use crate::allocator::Block;
use crate::info::{self, ServerMemory};
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::{self, Call};
use crate::{background, config};

/// What a command leaves to the server for the commands, replies and replicas that come next: twice a chunk of `NEAR.DUMP`, which
/// is what a server takes to read one.
const FLOOR: u64 = 32 << 20;

/// What a command may allocate without saying so: messages, plans, windows of keys. The floor has room for it.
pub const UNFORESEEN: u64 = 4 << 20;

/// What a command is about to allocate.
#[derive(Clone, Copy)]
pub struct Need<'w> {
    /// What takes it, as an error names it.
    pub what: &'w str,
    /// Bytes that the key will come to.
    pub total: u64,
    /// Bytes by which that is more than now.
    pub more: u64,
    /// Bytes that are given back when the command ends, the server's own copies of arguments and replies included.
    pub passing: u64,
}

/// Room that stays free for as long as this lives, so that tables can't take it; but [`give_way`] to what is small.
#[must_use]
pub struct Floor {
    /// Which reserve dropping it gives back, if any.
    held: Option<u64>,
    /// What was allowed and is not allocated yet.
    promised: u64,
}

/// Bytes that commands were allowed which allocate on another thread: until they have, others find as much less.
static PROMISED: AtomicU64 = AtomicU64::new(0);

/// What is held for a floor.
struct Reserve {
    /// In the server's own allocator, which keeps to itself what it once had of the system: so this is what the server gets.
    _blocks: [Option<Block>; BLOCKS],
    /// Of the system, for what a command works with: pieces so large that allocators keep them apart.
    _mapped: Option<MmapMut>,
}

const BLOCKS: usize = 8;

/// The reserves of all floors that are held, by number.
static HELD: Mutex<Vec<(u64, Reserve)>> = Mutex::new(Vec::new());

impl Floor {
    /// No room is kept free.
    fn none() -> Self {
        Self { held: None, promised: 0 }
    }

    /// Keeps free what the server needs and `more` bytes; `None` if there is less.
    fn hold(more: u64) -> Option<Self> {
        let mut blocks = [const { None }; BLOCKS];
        for block in &mut blocks {
            *block = Some(Block::take(FLOOR as usize / BLOCKS)?);
        }
        let mapped = if more == 0 { None } else { Some(MmapMut::map_anon(usize::try_from(more).ok()?).ok()?) };
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        held().push((number, Reserve { _blocks: blocks, _mapped: mapped }));
        Some(Self { held: Some(number), promised: 0 })
    }

    /// Counts what was allowed as taken, for as long as it is not.
    fn promising(mut self, bytes: u64) -> Self {
        self.promised = bytes;
        PROMISED.fetch_add(bytes, Ordering::Relaxed);
        self
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        PROMISED.fetch_sub(self.promised, Ordering::Relaxed);
        let Some(number) = self.held else { return };
        let mut held = held();
        let given_back = held.iter().position(|(other, _)| *other == number).map(|at| held.swap_remove(at));
        drop(held);
        drop(given_back);
    }
}

fn held() -> MutexGuard<'static, Vec<(u64, Reserve)>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allocations below this size may be such as can't fail. Tables that are smaller than this are no danger to the floor.
const SMALL: usize = 1 << 20;

/// Gives up the floor for an allocation of this size that was refused. True if there is more room now.
pub fn give_way(size: usize) -> bool {
    // The holder of the lock takes or gives back a reserve, and allocates nothing here.
    size < SMALL && HELD.try_lock().is_ok_and(|mut held| held.pop().is_some())
}

thread_local! {
    static FORESEEN: Cell<u64> = const { Cell::new(0) };
}

/// Returns the bytes that commands on this thread said they would take since this was last asked.
#[cfg(debug_assertions)]
pub fn foreseen() -> u64 {
    FORESEEN.take()
}

/// Holds a client's need against all limits. What may fail is allocated while the floor is held, and what can't fail after it was
/// dropped.
pub fn allow(call: &Call<'_>, need: Need<'_>) -> Outcome<Floor> {
    if !call.limits_apply() {
        return Ok(Floor::none());
    }
    hold_against_limits(call, need)?;
    hold(need)
}

/// Holds a client's need against the limits of the key and of the server.
pub fn hold_against_limits(call: &Call<'_>, need: Need<'_>) -> Outcome {
    hold_against_limit(call, need.total, need.what)?;
    hold_against_maxmemory(|| call.memory(), need)
}

/// [`allow`] for what has no call: a copy of a key.
pub fn allow_copy(bytes: u64) -> Outcome<Floor> {
    if !server::limits_apply_to_copies() {
        return Ok(Floor::none());
    }
    let need = Need { what: "the copy", total: bytes, more: bytes, passing: 0 };
    hold_against_maxmemory(info::memory, need)?;
    hold(need)
}

/// Holds a need against what the system gives, on the server's thread.
pub fn hold(need: Need<'_>) -> Outcome<Floor> {
    FORESEEN.set(FORESEEN.get().saturating_add(need.more).saturating_add(need.passing));
    if need.more == 0 && need.passing <= UNFORESEEN {
        return Ok(Floor::none());
    }
    let mut floor = Floor::hold(need.passing);
    if floor.is_none() && background::await_discarded() {
        floor = Floor::hold(need.passing);
    }
    let floor = floor.ok_or_else(|| no_memory(need.what))?;
    Ok(floor.promising(need.more))
}

/// Checks on another thread than the server's that what the server allocates there for a reply of so many bytes will be found:
/// allocators keep apart what threads give back, and room on one is none on another.
pub fn expect_room_here(what: &str, reply: usize) -> Outcome {
    Block::take(reply.saturating_add(UNFORESEEN as usize)).map(drop).ok_or_else(|| no_memory(what))
}

/// Counts memory as taken that another thread is about to take, if there is room for it beside what the server needs: for what a server
/// may do without.
pub fn promise(bytes: u64) -> Option<Floor> {
    let promised = PROMISED.load(Ordering::Relaxed);
    let has_room = |memory: ServerMemory| memory.used.saturating_add(promised).saturating_add(bytes) <= memory.most;
    if !info::memory().is_none_or(has_room) {
        return None;
    }
    drop(Floor::hold(bytes)?);
    Some(Floor::none().promising(bytes))
}

/// Returns the refusal of what the system has no memory for.
pub fn no_memory(what: impl std::fmt::Display) -> Refusal {
    Refusal::Memory(format!(
        "the system has no memory for {what} beside the {} MB that the server needs to go on: delete keys, send less at once, or \
         give the process more",
        FLOOR >> 20
    ))
}

/// Returns the refusal of tables: of those that the allocator had no memory for, or that can't be.
pub fn refused(what: &str, error: SpecError) -> Refusal {
    match error {
        SpecError::Memory { .. } => no_memory(what),
        other => Refusal::because(other),
    }
}

/// Checks that a key may come to hold `bytes` bytes, if a client wants it to.
pub fn hold_against_limit(call: &Call<'_>, bytes: u64, what: &str) -> Outcome {
    let limit = config::memory_limit();
    if bytes <= limit || !call.limits_apply() {
        return Ok(());
    }
    refuse!("{what} takes {bytes} bytes, and near.memory-limit allows {limit}: raise it, or ask for less")
}

/// Holds a need against `maxmemory`, if there is one: once more when what was discarded is given back.
fn hold_against_maxmemory(memory: impl Fn() -> Option<ServerMemory>, need: Need<'_>) -> Outcome {
    let fits = || memory().filter(|_| need.more > 0).map_or(Ok(()), |memory| fit_into(memory, need));
    fits().or_else(|refusal| if background::await_discarded() { fits() } else { Err(refusal) })
}

/// Where the server evicts keys, it does so after the command, and makes room for anything that fits into it alone.
fn fit_into(memory: ServerMemory, need: Need<'_>) -> Outcome {
    let promised = PROMISED.load(Ordering::Relaxed);
    let (wanted, taken) =
        if memory.evicts { (need.total, memory.own) } else { (need.more, memory.used.saturating_add(promised)) };
    let left = memory.most.saturating_sub(taken);
    if wanted <= left {
        return Ok(());
    }
    let (what, most) = (need.what, memory.most);
    Err(Refusal::Memory(format!(
        "{what} takes {wanted} bytes, and of maxmemory's {most} there are {left} left for it: raise it, delete keys, or ask for less"
    )))
}

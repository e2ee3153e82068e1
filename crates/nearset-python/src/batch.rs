//! Many items at once, by many threads and in their order, with Python let go.
//!
//! The calling thread reads Python's objects, and holds the interpreter only while it does; others hash; one takes the results
//! in order. Ctrl-C and a progress bar are looked after between two pieces.

use std::ops::Range;
use std::thread;

use nearset::item::ItemBuffer;
use nearset::{BitString, Item, ItemError, Metric};
use nearset_jobs::in_order::{Feed, queue};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::error;
use crate::items::{self, Many, View};

/// Items of a piece, at most.
const PIECE: usize = 512;

/// Bytes of a piece that is copied, about.
const PIECE_BYTES: usize = 1 << 18;

/// Some items that follow each other.
pub struct Piece<'a> {
    metric: Metric,
    first: usize,
    items: Items<'a>,
}

enum Items<'a> {
    InPlace { view: View<'a>, part: usize, rows: Range<usize> },
    Copied(ItemBuffer),
}

/// Items that are to be worked on.
pub struct Input<'m, 'py> {
    pub metric: Metric,
    pub many: &'m Many<'py>,
    /// The position of the first among all, where they are a part of more.
    pub first: usize,
}

impl<'m, 'py> From<(Metric, &'m Many<'py>)> for Input<'m, 'py> {
    fn from((metric, many): (Metric, &'m Many<'py>)) -> Self {
        Self { metric, many, first: 0 }
    }
}

/// An item that could not be taken, counted from 0.
#[derive(Debug)]
pub enum Fault {
    Missing { position: usize },
    Item { position: usize, cause: ItemError },
    Other(PyErr),
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Missing { position } => PyValueError::new_err(format!("item {position} is missing (None or null)")),
            Fault::Item { position, cause } => error::batch(&nearset::item::BatchError { position, cause }),
            Fault::Other(error) => error,
        }
    }
}

impl Piece<'_> {
    pub fn len(&self) -> usize {
        match &self.items {
            Items::InPlace { rows, .. } => rows.len(),
            Items::Copied(copied) => copied.len(),
        }
    }

    /// The position of the piece's item `i` among all.
    pub fn position(&self, i: usize) -> usize {
        self.first + i
    }

    /// Calls `each` for every item in order, `None` being a missing one, until it fails.
    pub fn try_each<E>(
        &self,
        room: &mut BitString,
        mut each: impl FnMut(usize, Option<Item<'_>>) -> Result<(), E>,
    ) -> Result<(), E>
    where
        E: From<Fault>,
    {
        for i in 0..self.len() {
            let item = match &self.items {
                Items::Copied(copied) => copied.get(i),
                Items::InPlace { view, part, rows } => view
                    .item(self.metric, *part, rows.start + i, room)
                    .map_err(|cause| Fault::Item { position: self.position(i), cause })?,
            };
            each(i, item)?;
        }
        Ok(())
    }
}

/// The item, where it must be there.
pub fn present<'i>(position: usize, item: Option<Item<'i>>) -> Result<Item<'i>, Fault> {
    item.ok_or(Fault::Missing { position })
}

/// Room for a matrix of answers, which may be larger than memory.
pub fn room<T>(rows: usize, columns: usize) -> PyResult<Vec<T>> {
    let mut cells = Vec::new();
    let reserved = rows.checked_mul(columns).map(|len| cells.try_reserve_exact(len));
    match reserved {
        Some(Ok(())) => Ok(cells),
        _ => Err(PyMemoryError::new_err(format!("there is no memory for {columns} values of each of {rows} items"))),
    }
}

/// Runs `work` over all pieces on `threads` threads and `each` in order.
pub fn run<'m, 'py: 'm, R, T: Send>(
    py: Python<'_>,
    input: impl Into<Input<'m, 'py>>,
    threads: usize,
    progress: Option<&Py<PyAny>>,
    room: impl Fn() -> R + Sync + Send,
    work: impl Fn(&mut R, Piece<'_>) -> T + Sync + Send,
    each: impl FnMut(T) -> Result<(), Fault> + Send,
) -> PyResult<()> {
    let Input { metric, many, first } = input.into();
    let view = many.view()?;
    py.detach(|| {
        thread::scope(|scope| {
            let (mut feed, queue) = queue(threads);
            let taker = scope.spawn(move || queue.take(room, work, each));
            let fed = feed_all(metric, view, first, &mut feed, progress);
            drop(feed);
            let taken = taker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // What a taker failed at lies before whatever stopped the feeding.
            taken.map_err(PyErr::from)?;
            fed
        })
    })
}

/// Runs `work` over all pieces in order, on one thread.
pub fn each<'m, 'py: 'm>(
    py: Python<'_>,
    input: impl Into<Input<'m, 'py>>,
    work: impl FnMut(Piece<'_>) -> Result<(), Fault> + Send,
) -> PyResult<()> {
    let mut work = work;
    let Input { metric, many, first } = input.into();
    let view = many.view()?;
    if matches!(view, View::Objects(_)) {
        let mut first = first;
        loop {
            let copied = copied(py, metric, view, first)?;
            let count = copied.len();
            if count == 0 {
                return Ok(());
            }
            py.detach(|| work(Piece { metric, first, items: Items::Copied(copied) }))?;
            first += count;
        }
    }
    let mut before = first;
    for (part, count) in view.parts().into_iter().enumerate() {
        py.detach(|| work(Piece { metric, first: before, items: Items::InPlace { view, part, rows: 0..count } }))?;
        before += count;
    }
    Ok(())
}

/// The next objects, none at their end.
fn copied(py: Python<'_>, metric: Metric, view: View<'_>, first: usize) -> PyResult<ItemBuffer> {
    let mut copied = ItemBuffer::default();
    let View::Objects(iterator) = view else { return Ok(copied) };
    let mut iterator = iterator.bind(py).clone();
    while copied.len() < PIECE && copied.bytes() < PIECE_BYTES {
        let Some(object) = iterator.next() else { break };
        let position = first + copied.len();
        items::push(&mut copied, metric, &object?).map_err(|cause| error::at_item(py, position, cause))?;
    }
    Ok(copied)
}

fn feed_all<'a>(
    metric: Metric,
    view: View<'a>,
    mut first: usize,
    feed: &mut Feed<Piece<'a>>,
    progress: Option<&Py<PyAny>>,
) -> PyResult<()> {
    let after = |py: Python<'_>, count: usize| -> PyResult<()> {
        py.check_signals()?;
        progress.map_or(Ok(()), |progress| progress.call1(py, (count,)).map(drop))
    };
    if matches!(view, View::Objects(_)) {
        while feed.wait() {
            let copied = Python::attach(|py| {
                let copied = copied(py, metric, view, first)?;
                after(py, copied.len())?;
                PyResult::Ok(copied)
            })?;
            let count = copied.len();
            if count == 0 || !feed.send(Piece { metric, first, items: Items::Copied(copied) }) {
                break;
            }
            first += count;
        }
        return Ok(());
    }
    for (part, count) in view.parts().into_iter().enumerate() {
        for start in (0..count).step_by(PIECE) {
            let rows = start..count.min(start + PIECE);
            if !feed.wait() {
                return Ok(());
            }
            let count = rows.len();
            if !feed.send(Piece { metric, first, items: Items::InPlace { view, part, rows } }) {
                return Ok(());
            }
            first += count;
            Python::attach(|py| after(py, count))?;
        }
    }
    Ok(())
}

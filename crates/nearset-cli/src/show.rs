//! Numbers and progress for people.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nearset_jobs::run::{Progress, RunError};
use nearset_records::{InputError, OutputError, output};
pub use nearset_view::words::{bytes, count, percent, seconds};

/// Returns whether standard output was closed by its reader, which is no failure. Another pipe that is closed is one: its output was asked for by name.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_broken = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    let output = |error: &OutputError| match error {
        OutputError::Write { path, cause } => output::is_stdout(path) && is_broken(cause),
        _ => false,
    };
    // The first error that knows its file decides; an I/O error outside of all files is one over what the program prints itself.
    let decided = error.chain().find_map(|cause| match (cause.downcast_ref(), cause.downcast_ref::<RunError>()) {
        (Some(error), _) | (_, Some(RunError::Output(error))) => Some(output(error)),
        (_, Some(_)) => Some(false),
        _ if cause.is::<InputError>() => Some(false),
        _ => cause.downcast_ref().map(is_broken),
    });
    decided.unwrap_or(false)
}

/// The width of text where no terminal says another.
const WIDTH: usize = 100;

/// Lines longer than this are hard to read.
const WIDEST: usize = 120;

/// Returns the width of text that the terminal has room for.
pub fn width() -> usize {
    terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0)).clamp(40, WIDEST)
}

/// A line that shows a run's progress, if standard error is a terminal.
pub struct ProgressLine {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressLine {
    /// Starts it. `total` are the bytes on disk, where known.
    pub fn start(progress: Arc<Progress>, total: Option<u64>, quiet: bool) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        if quiet || !io::stderr().is_terminal() {
            return Self { done, thread: None };
        }
        let watched = Arc::clone(&done);
        let thread = thread::spawn(move || draw(&progress, total, &watched));
        Self { done, thread: Some(thread) }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A line that could not be drawn is no reason to fail.
            let _ = thread.join();
        }
    }
}

fn draw(progress: &Progress, total: Option<u64>, done: &AtomicBool) {
    let bar = match total {
        Some(total) => ProgressBar::new(total),
        None => ProgressBar::new_spinner(),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    let template =
        if total.is_some() { "{bar:24} {percent:>3} %  {msg}, {eta} left" } else { "{spinner} {msg}, {elapsed}" };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    while !done.load(Ordering::Relaxed) {
        let mut message = format!("{} records", count(read(&progress.records)));
        let rate = read(&progress.bytes) as f64 / 1e6 / bar.elapsed().as_secs_f64().max(0.1);
        let _ = write!(message, ", {rate:.0} MB/s, {} near", count(read(&progress.removed)));
        let _ = write!(message, ", filter {}", bytes(read(&progress.filter_bytes)));
        let faulty = read(&progress.faulty);
        if faulty > 0 {
            let _ = write!(message, ", {} unreadable", count(faulty));
        }
        if progress.rechecking.load(Ordering::Relaxed) {
            message = "reading once more to check a sample for the report".to_owned();
        }
        bar.set_message(message);
        bar.set_position(read(&progress.disk_bytes));
        thread::park_timeout(Duration::from_millis(100));
    }
    bar.finish_and_clear();
}

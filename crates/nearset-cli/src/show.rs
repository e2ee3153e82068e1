//! Numbers and progress for people.

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anstyle::AnsiColor;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nearset_jobs::run::{Progress, RunError};
use nearset_records::{InputError, OutputError, output};
pub use nearset_view::words::{bytes, count, percent, seconds};

/// Returns how many things there are, of which one is called so.
pub fn counted(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(number), if number == 1 { "" } else { "s" })
}

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

/// A word that stands out where the terminal has colours. It is printed by `anstream`, which leaves them out elsewhere, and where `NO_COLOR` is set.
pub struct Toned {
    word: &'static str,
    colour: AnsiColor,
}

impl fmt::Display for Toned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = self.colour.on_default().bold();
        write!(f, "{style}{}{style:#}", self.word)
    }
}

/// Before what went wrong.
pub const ERROR: Toned = Toned { word: "error:", colour: AnsiColor::Red };
/// Before what to do about it.
pub const HINT: Toned = Toned { word: "hint:", colour: AnsiColor::Cyan };
/// Before what to know about a run that goes on.
pub const NOTE: Toned = Toned { word: "note:", colour: AnsiColor::Cyan };
/// Before what may be wrong.
pub const WARNING: Toned = Toned { word: "warning:", colour: AnsiColor::Yellow };
/// Before what deserves a look before the output is used.
pub const ALARM: Toned = Toned { word: "ALARM", colour: AnsiColor::Yellow };

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

/// Has a progress bar drawn in one line, whose end is cut off where the terminal is too narrow for it.
fn show_on(bar: &ProgressBar, target: ProgressDrawTarget) {
    bar.set_draw_target(target);
    let template = match bar.length() {
        Some(_) => "{bar:16} {percent:>3} %, {eta} left  {wide_msg}",
        None => "{spinner} {elapsed}  {wide_msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

fn draw(progress: &Progress, total: Option<u64>, done: &AtomicBool) {
    let bar = match total {
        Some(total) => ProgressBar::new(total),
        None => ProgressBar::new_spinner(),
    };
    show_on(&bar, ProgressDrawTarget::stderr());
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    while !done.load(Ordering::Relaxed) {
        let mut message = format!("{} records", count(read(&progress.records)));
        let rate = read(&progress.bytes) as f64 / 1e6 / bar.elapsed().as_secs_f64().max(0.1);
        let _ = write!(message, ", {rate:.0} MB/s");
        let (near, filter) = (read(&progress.removed), read(&progress.filter_bytes));
        if near > 0 {
            let _ = write!(message, ", {} near", count(near));
        }
        if filter > 0 {
            let _ = write!(message, ", filter {}", bytes(filter));
        }
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use indicatif::TermLike;

    use super::*;

    /// A terminal of 60 columns that remembers what is written to it.
    #[derive(Debug, Clone, Default)]
    struct Narrow(Arc<Mutex<Vec<String>>>);

    impl Narrow {
        fn note(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push(text.to_owned());
            Ok(())
        }
    }

    impl TermLike for Narrow {
        fn width(&self) -> u16 {
            60
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.note(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.note(text)
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_progress_line_is_never_longer_than_the_terminal_is_wide() {
        for bar in [ProgressBar::new(2_000_000_000), ProgressBar::new_spinner()] {
            let terminal = Narrow::default();
            show_on(&bar, ProgressDrawTarget::term_like(Box::new(terminal.clone())));
            bar.set_message("1,234,567 records, 126 MB/s, 345,678 near, filter 123.4 MB, 1,234 unreadable");
            bar.set_position(1_000_000_000);
            bar.force_draw();
            let drawn = terminal.0.lock().unwrap();
            assert!(drawn.iter().any(|text| text.contains("1,234,567 rec")), "{drawn:?}");
            assert!(drawn.iter().all(|text| text.chars().count() <= 60), "{drawn:?}");
        }
    }
}

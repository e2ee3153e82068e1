//! `NEAR.WINDOW`: a filter that forgets does so by time as well.

use super::docs::{Argument, Command, Keys, entry};
use super::expect_mut;
use crate::items::{number, shown};
use crate::refusal::{Outcome, Refusal, refuse};
use crate::server::Call;
use crate::window::{self, Window, milliseconds, seconds};

pub const WINDOW: Command = Command {
    name: c"NEAR.WINDOW",
    entry: entry!(window),
    flags: c"write deny-oom",
    is_trusted: false,
    summary: c"Lets a filter that forgets do so after some seconds as well; 0 for by the number of items alone",
    complexity: c"O(1), and O(bytes of a generation) for each that is forgotten",
    arity: -3,
    keys: &[Keys::CHANGE],
    arguments: &[
        Argument::KEY,
        Argument::real(c"seconds"),
        Argument::whole(c"unix-time-milliseconds").after(c"AT").optional(),
        Argument::whole(c"generations").after(c"ROTATE").optional(),
    ],
};

/// What replicas and files are told beside how long the window lasts: when the newest generation ends, and how many ended.
#[derive(Default)]
struct Options {
    at: Option<u64>,
    rotate: usize,
}

fn options(call: &Call<'_>) -> Outcome<Options> {
    let mut options = Options::default();
    let mut words = call.arguments_from(3);
    while let Some(name) = words.next() {
        let Some(text) = words.next() else { return refuse!("{} needs a value", shown(name)) };
        let wrong =
            || Refusal::Because(format!("{}: {} is not a whole number that can stand here", shown(name), shown(text)));
        if name.eq_ignore_ascii_case(b"AT") {
            // As far as the server's own numbers go.
            options.at = Some(number(text).filter(|at| *at <= i64::MAX as u64).ok_or_else(wrong)?);
        } else if name.eq_ignore_ascii_case(b"ROTATE") {
            options.rotate = number(text).ok_or_else(wrong)?;
        } else {
            return refuse!("{} is no option: use AT or ROTATE", shown(name));
        }
    }
    Ok(options)
}

fn window(call: &Call<'_>) -> Outcome {
    let text = call.argument(2);
    let Some(lasts) = number::<f64>(text) else { return refuse!("{} is not a number of seconds", shown(text)) };
    let lasts = if lasts == 0.0 { 0 } else { milliseconds(lasts).map_err(Refusal::Because)? };
    let Options { at, rotate } = options(call)?;
    let mut key = call.write(1)?;
    let filter = expect_mut(&mut key)?;
    window::expect_window(filter)?;
    let mut begun = Window::begin(lasts, filter)?;
    begun.next = at.unwrap_or(begun.next);
    let change = window::age(call, filter, rotate)?;
    let rotate = rotate.min(filter.window());
    if let Some(value) = key.value_mut() {
        value.window = (lasts > 0).then_some(begun);
    }
    call.replicate_window(WINDOW.name, &key, &seconds(lasts), begun.next, rotate as u64);
    key.changed(c"near.window");
    change.publish(&key);
    call.ok();
    Ok(())
}

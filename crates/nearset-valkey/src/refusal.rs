//! Why a command was not carried out, as the client reads it. The key is then as it was.

use std::fmt;
use std::sync::Arc;

use crate::background::Job;

/// What a command ends with.
pub type Outcome<T = ()> = Result<T, Refusal>;

#[derive(Debug)]
pub enum Refusal {
    /// Too few or too many arguments.
    Arity,
    /// The key holds something else.
    WrongType,
    /// Not yet: it is carried out when this is over.
    Wait(Arc<Job>),
    /// There is no memory for it, by the server's limit or the system's, in a sentence that says what to do. Clients know this
    /// kind of error from the server.
    Memory(String),
    /// Anything else, in a sentence that says what to do.
    Because(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Refusal::Arity => "the number of arguments is wrong",
            Refusal::WrongType => "the key holds something else",
            Refusal::Wait(_) => "something is under way with the key",
            Refusal::Memory(why) | Refusal::Because(why) => why,
        })
    }
}

impl Refusal {
    pub fn because(why: impl fmt::Display) -> Self {
        Refusal::Because(why.to_string())
    }
}

/// Shorthand for a refusal with a formatted reason.
macro_rules! refuse {
    ($($part:tt)*) => { Err($crate::refusal::Refusal::Because(format!($($part)*))) };
}
pub(crate) use refuse;

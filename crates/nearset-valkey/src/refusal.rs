//! Why a command was not carried out, as the client reads it. The key is then as it was.

use std::fmt;

/// What a command ends with.
pub type Outcome<T = ()> = Result<T, Refusal>;

#[derive(Debug)]
pub enum Refusal {
    /// Too few or too many arguments.
    Arity,
    /// The key holds something else.
    WrongType,
    /// Anything else, in a sentence that says what to do.
    Because(String),
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

//! One paper's run: where its results go, what was claimed, and what drifted.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Context as _;

use crate::{document, figure::Figure, table::Table};

/// The outcome of a claim.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// As the paper says, within this tolerance: only [`Outcome::reproduced_if`] says so.
    Reproduced(Tolerance),
    /// Not as the paper says, for this reason.
    Differs(String),
    /// Undecidable, for this reason.
    Undecided(String),
    /// The paper states nothing to compare with; what this is instead.
    Beyond(String),
}

/// Within what a claim holds.
#[derive(Debug, Clone)]
pub struct Tolerance(String);

impl Outcome {
    /// Returns `Reproduced` within a tolerance if the claim holds, and otherwise `Differs` with the reason.
    pub fn reproduced_if(holds: bool, within: &str, why_not: &str) -> Self {
        if holds { Self::Reproduced(Tolerance(within.into())) } else { Self::Differs(why_not.into()) }
    }

    /// Returns the verdict's name, its tolerance and its reason.
    fn parts(&self) -> (&'static str, &str, &str) {
        match self {
            Outcome::Reproduced(within) => (REPRODUCED, &within.0, ""),
            Outcome::Differs(why) => (DIFFERS, "", why),
            Outcome::Undecided(why) => (UNDECIDED, "", why),
            Outcome::Beyond(why) => (BEYOND, "", why),
        }
    }
}

/// The names of the verdicts.
pub const REPRODUCED: &str = "reproduced";
pub const DIFFERS: &str = "differs";
pub const UNDECIDED: &str = "can't be decided";
pub const BEYOND: &str = "beyond the paper";

/// A paper's run.
pub struct Run {
    name: &'static str,
    quick: bool,
    folder: PathBuf,
    started: Instant,
    verdicts: Table,
    reasons: Table,
    drifted: Vec<String>,
}

impl Run {
    /// Creates a run whose results go to the paper's folder in `output`.
    pub fn new(name: &'static str, quick: bool, output: &Path) -> anyhow::Result<Self> {
        let folder = output.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("{} can't be made", folder.display()))?;
        let verdicts = Table::new(["where", "claim", "command", "theirs", "ours", "verdict", "within", "why"]);
        let reasons = Table::new(["why"]);
        Ok(Self { name, quick, folder, started: Instant::now(), verdicts, reasons, drifted: Vec::new() })
    }

    /// Returns the first value for a full run, and the second for a quick one.
    pub fn full_or_quick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Prints what is being done.
    pub fn progress(&self, what: impl std::fmt::Display) {
        eprintln!("{:7.1} s  {}: {what}", self.started.elapsed().as_secs_f64(), self.name);
    }

    /// Writes `NAME.tsv`.
    pub fn table(&self, name: &str, table: &Table) -> anyhow::Result<()> {
        self.write(&format!("{name}.tsv"), &table.to_tsv())
    }

    /// Writes `NAME.svg`.
    pub fn figure(&self, name: &str, figure: &Figure) -> anyhow::Result<()> {
        self.write(&format!("{name}.svg"), &figure.to_svg())
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let file = self.folder.join(name);
        fs::write(&file, text).with_context(|| format!("{} can't be written", file.display()))
    }

    /// Records a verdict on a claim: its place as the paper numbers it (several are separated by `; `), the claim, the
    /// file with the evidence, what the paper says and what we found. Reasons go to a list of their own, so that the
    /// table stays readable.
    pub fn verdict(&mut self, (place, claim): (&str, &str), file: &str, theirs: &str, ours: &str, outcome: Outcome) {
        let command = format!("[`-- {}`]({file})", self.name);
        let (verdict, within, why) = outcome.parts();
        let note = if why.is_empty() { String::new() } else { format!("note {}", self.reasons.rows().len() + 1) };
        if !why.is_empty() {
            self.reasons.row([format!("*{place}: {claim}.* {why}.")]);
        }
        self.verdicts.row([place, claim, &command, theirs, ours, verdict, within, &note]);
    }

    /// Writes what came of the paper, in one line, for the summary over all.
    pub fn headline(&self, words: &str) -> anyhow::Result<()> {
        let mut table = Table::new(["headline"]);
        table.row([words]);
        self.write(document::HEADLINE_FILE, &table.to_tsv())
    }

    /// Requires a headline number: the run fails unless it holds.
    pub fn require(&mut self, holds: bool, what: impl std::fmt::Display) {
        if !holds {
            self.drifted.push(format!("{}: {what}", self.name));
        }
    }

    /// Writes the verdicts and returns what drifted.
    pub fn finish(self) -> anyhow::Result<Vec<String>> {
        self.write(document::VERDICTS_FILE, &self.verdicts.to_tsv())?;
        self.write(document::REASONS_FILE, &self.reasons.to_tsv())?;
        self.progress("done");
        Ok(self.drifted)
    }
}

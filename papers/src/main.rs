//! The experiments of the papers behind nearset, rerun with nearset's own structures.
//!
//! Claim: every number in `papers/*/README.md` comes from a table that this program wrote, and the program fails when a
//! headline number drifts.
//! Invariant: every seed is fixed and no result depends on the number of threads, so a run repeats bit for bit; only
//! timings differ.
//! Not here: structures and formulas, which belong to the library. A paper's module has its workload, its rivals and
//! its claims.

mod document;
mod figure;
mod format;
mod rate;
mod run;
mod strings;
mod table;
mod time;

mod christophides_2019;
mod gregersen_2014;
mod hua_2012;
mod kesselheim_mehlhorn;
mod kirsch_mitzenmacher_2006;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use run::Run;

/// A paper: the name of its folder, and the function that reruns it.
struct Paper {
    name: &'static str,
    run: fn(&mut Run) -> anyhow::Result<()>,
}

const PAPERS: &[Paper] = &[
    Paper { name: "kirsch-mitzenmacher-2006", run: kirsch_mitzenmacher_2006::run },
    Paper { name: "hua-2012", run: hua_2012::run },
    Paper { name: "gregersen-2014", run: gregersen_2014::run },
    Paper { name: "christophides-2019", run: christophides_2019::run },
    Paper { name: "kesselheim-mehlhorn", run: kesselheim_mehlhorn::run },
];

/// Reruns a paper's experiments: tables as TSV, figures as SVG, and a verdict on each claim.
#[derive(Parser)]
#[command(after_help = "Examples:\n  papers kirsch-mitzenmacher-2006\n  papers all --quick")]
struct Arguments {
    /// Names of papers, as their folders are called, or `all`; with none, only the documents are brought up to date
    #[arg(value_parser = names())]
    papers: Vec<String>,
    /// Use few queries, to see within seconds that nothing drifted; writes below `target/papers`
    #[arg(long)]
    quick: bool,
    /// Where the papers' folders are; a folder's README.md is brought up to date if it exists
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

fn names() -> Vec<&'static str> {
    PAPERS.iter().map(|paper| paper.name).chain(["all"]).collect()
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let home = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let output = match (arguments.output, arguments.quick) {
        (Some(folder), _) => folder,
        (None, true) => home.join("../target/papers"),
        (None, false) => home,
    };
    let mut drifted = Vec::new();
    for paper in PAPERS {
        if arguments.papers.iter().any(|name| name == paper.name || name == "all") {
            let mut run = Run::new(paper.name, arguments.quick, &output)?;
            (paper.run)(&mut run)?;
            drifted.extend(run.finish()?);
        }
    }
    for paper in PAPERS {
        document::refresh(&output.join(paper.name))?;
    }
    document::refresh_summary(&output, PAPERS.iter().map(|paper| paper.name))?;
    for what in &drifted {
        eprintln!("drifted: {what}");
    }
    Ok(if drifted.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

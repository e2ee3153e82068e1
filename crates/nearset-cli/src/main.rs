//! The `nearset` program: one file a subcommand, each a thin translation of options into the library's terms.
//!
//! Exit codes: 0 it was done, 1 it failed, 2 the command line is wrong; `query` adds 10 for "something is near".

mod build;
mod check;
mod dedup;
mod info;
mod items;
mod merge;
mod options;
mod plan;
mod query;
mod show;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Have I seen anything near this? Near-duplicates out of a corpus, and filters that remember what was seen.
#[derive(Parser)]
#[command(name = "nearset", version, max_term_width = 110, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dedup(dedup::Args),
    Plan(plan::Args),
    Build(build::Args),
    Query(query::Args),
    Merge(merge::Args),
    Info(info::Args),
    Check(check::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Dedup(args) => dedup::run(args),
        Command::Build(args) => build::run(args),
        Command::Query(args) => query::run(args),
        Command::Merge(args) => merge::run(args),
        Command::Info(args) => info::run(args),
        Command::Check(args) => check::run(args),
        Command::Plan(args) => plan::run(args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if show::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

//! The `nearset` program: one file a subcommand, each a thin translation of options into the library's terms.
//!
//! Exit codes: 0 it was done, 1 it failed, 2 the command line is wrong; `query` adds 10 for "something is near".

mod dedup;
mod options;
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
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Dedup(args) => dedup::run(args),
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

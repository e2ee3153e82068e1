//! The `nearset` program: one file per subcommand, each a thin translation of options into the library's terms.
//!
//! Exit codes: 0 it was done, 1 it failed, 2 the command line is wrong; `query` adds 10 for "something is near",
//! `search --exit-code` for "something was found", a dry run of `decontaminate` for "something is inside".

mod build;
mod check;
mod cluster;
mod cures;
mod decontaminate;
mod dedup;
mod explore;
mod goal;
mod hash;
mod info;
mod items;
mod join;
mod merge;
mod options;
mod pairs;
mod plan;
mod query;
mod search;
mod shell;
mod show;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use nearset_jobs::memory::HugePages;

#[global_allocator]
static ALLOCATOR: HugePages = HugePages;

/// Have I seen anything near this? Near-duplicates out of a corpus, filters that remember what was seen, and indexes that find it again.
#[derive(Parser)]
#[command(name = "nearset", version, max_term_width = 110, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dedup(dedup::Args),
    Decontaminate(decontaminate::Args),
    Pairs(pairs::Args),
    Cluster(cluster::Args),
    Hash(hash::Args),
    Plan(plan::Args),
    Build(build::Args),
    Query(query::Args),
    Search(search::Args),
    Merge(merge::Args),
    Info(info::Args),
    Check(check::Args),
    Explore(explore::Args),
    Completions(shell::Completions),
    Man(shell::Man),
}

fn main() -> ExitCode {
    let (name, outcome) = match Cli::parse().command {
        Command::Dedup(args) => ("dedup", dedup::run(args)),
        Command::Decontaminate(args) => ("decontaminate", decontaminate::run(args)),
        Command::Pairs(args) => ("pairs", pairs::run(args)),
        Command::Cluster(args) => ("cluster", cluster::run(args)),
        Command::Hash(args) => ("hash", hash::run(args)),
        Command::Plan(args) => ("plan", plan::run(args)),
        Command::Build(args) => ("build", build::run(args)),
        Command::Query(args) => ("query", query::run(args)),
        Command::Search(args) => ("search", search::run(args)),
        Command::Merge(args) => ("merge", merge::run(args)),
        Command::Info(args) => ("info", info::run(args)),
        Command::Check(args) => ("check", check::run(args)),
        Command::Explore(args) => ("explore", explore::run(args)),
        Command::Completions(args) => ("completions", shell::completions(&args)),
        Command::Man(args) => ("man", shell::man(&args)),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if show::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<options::Usage>() => {
            anstream::eprintln!("{} {error:#}\n\nFor examples, try 'nearset {name} --help'.", show::ERROR);
            ExitCode::from(2)
        }
        Err(error) => {
            anstream::eprintln!("{} {}", show::ERROR, cures::words(name, &error));
            if let Some(hint) = cures::hint(name, &error) {
                anstream::eprintln!("{} {hint}", show::HINT);
            }
            if cures::is_senseless(&error) { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

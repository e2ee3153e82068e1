//! `nearset completions` and `nearset man`: what a shell and a reader of manuals look for, from the options themselves.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use nearset_records::{OutputFile, OutputOptions};

use crate::Cli;

const COMPLETIONS: &str = "\
Examples:
  For bash, from the next session on:
    nearset completions bash > ~/.local/share/bash-completion/completions/nearset

  For zsh, in a folder of $fpath:
    nearset completions zsh > ~/.zfunc/_nearset

  For fish:
    nearset completions fish > ~/.config/fish/completions/nearset.fish";

/// Print what a shell needs to complete commands and options
#[derive(clap::Args)]
#[command(after_help = COMPLETIONS)]
pub struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

const MAN: &str = "\
Examples:
  Read it now:
    nearset man | man -l -

  Install the pages of all commands:
    nearset man ~/.local/share/man/man1";

/// Print the manual page, or write those of all commands to a folder
#[derive(clap::Args)]
#[command(after_help = MAN)]
pub struct Man {
    /// Where the pages nearset.1, nearset-dedup.1 and so on go
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Replace existing pages
    #[arg(long, requires = "folder")]
    force: bool,
}

pub fn completions(args: &Completions) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "nearset", &mut script);
    std::io::stdout().write_all(&script).context("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}

pub fn man(args: &Man) -> Result<ExitCode> {
    let mut program = Cli::command();
    // Subcommands are called by their full names, and know the options that they take from the program.
    program.build();
    let Some(folder) = &args.folder else {
        std::io::stdout().write_all(&page(&program)?).context("cannot write to standard output")?;
        return Ok(ExitCode::SUCCESS);
    };
    std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot create the folder", folder.display()))?;
    let options = OutputOptions::default().with_force(args.force);
    write(folder, "nearset", &page(&program)?, &options)?;
    for command in program.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
        let name = format!("nearset-{}", command.get_name());
        write(folder, &name, &page(command)?, &options)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn page(command: &clap::Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page).context("cannot write a manual page")?;
    Ok(page)
}

fn write(folder: &Path, name: &str, page: &[u8], options: &OutputOptions) -> Result<()> {
    let mut file = OutputFile::create(&folder.join(format!("{name}.1")), options)?;
    file.write(page)?;
    Ok(file.finish()?)
}

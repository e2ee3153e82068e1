//! Errors in the program's terms: the one place where cures and options of the lower crates become flags.

use std::error::Error;

use nearset::Overfull;
use nearset::plan::PlanError;
use nearset::spec::SpecError;
use nearset_jobs::FilterFileError;
use nearset_jobs::library::LibraryError;
use nearset_jobs::run::RunError;
use nearset_records::{Cure, InputError, OutputError, RecordError, chain};

/// A failure whose cure is a command of its own.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Advised {
    /// What went wrong.
    pub error: PlanError,
    /// What to type instead.
    pub hint: String,
}

/// Returns what an error of a command says, with its sources.
pub fn words(command: &str, error: &anyhow::Error) -> String {
    match error.downcast_ref() {
        Some(RunError::Changed { what, was, is }) => {
            let (what, was, is) = (option(command, what), was.clone(), is.clone());
            RunError::Changed { what, was, is }.to_string()
        }
        Some(error @ RunError::NotNear { .. }) => {
            let option = if command == "search" { "--within" } else { "--near" };
            error.to_string().replacen("near", option, 1)
        }
        _ => chain(error.as_ref()),
    }
}

/// Whether an option asks for what can't be: a similarity of 1.2, say.
pub fn is_senseless(error: &anyhow::Error) -> bool {
    let of_run = error.downcast_ref::<RunError>().and_then(|error| match error {
        RunError::Wanted(error) => Some(error),
        _ => None,
    });
    let is_not_near = matches!(error.downcast_ref(), Some(RunError::NotNear { .. }));
    is_not_near || matches!(of_run.or(error.downcast_ref()), Some(PlanError::Request(_)))
}

/// Returns what to type so that it works.
pub fn hint(command: &str, error: &anyhow::Error) -> Option<String> {
    if let Some(Advised { hint, .. }) = error.downcast_ref() {
        return Some(hint.clone());
    }
    error.chain().find_map(cure).map(|cure| in_flags(command, cure))
}

fn cure(error: &(dyn Error + 'static)) -> Option<Cure> {
    None.or_else(|| error.downcast_ref().and_then(RunError::cure))
        .or_else(|| error.downcast_ref().and_then(InputError::cure))
        .or_else(|| error.downcast_ref().and_then(OutputError::cure))
        .or_else(|| error.downcast_ref().and_then(RecordError::cure))
        .or_else(|| error.downcast_ref().and_then(FilterFileError::cure))
        .or_else(|| error.downcast_ref().and_then(LibraryError::cure))
        .or_else(|| error.is::<Overfull>().then_some(Cure::AllowOverfull))
        .or_else(|| match error.downcast_ref() {
            Some(SpecError::Work { .. }) => Some(Cure::LiftWorkLimit),
            _ => None,
        })
}

fn in_flags(command: &str, cure: Cure) -> String {
    // Of the commands that copy texts, these have an option for where to.
    let scratch = if ["dedup", "pairs", "cluster"].contains(&command) { "--scratch" } else { "the variable TMPDIR" };
    match cure {
        Cure::NameFormat => "name one with --format".into(),
        Cure::NameFormatOrSkip => {
            "name the format with --format if it is not JSON Lines, or use --on-error skip to leave out such records".into()
        }
        Cure::SplitOrNameFormat => {
            "give each format its own output, or say with --format how all inputs are to be read".into()
        }
        Cure::NameField => "--field names another".into(),
        Cure::NameOneField => "name one with --text-field".into(),
        Cure::NameIdField => "--id-field names another".into(),
        Cure::NameFieldOrSkip => "name another with --field, or use --on-error skip to leave out such records".into(),
        Cure::NameInnerFieldOrSkip => {
            "name a field inside it with --field, such as meta.text, or use --on-error skip to leave out such records".into()
        }
        Cure::NameEvidence => "name the fields that hold questions and answers with --fields, such as --fields prompt,solution".into(),
        Cure::Skip => "use --on-error skip to leave out such records".into(),
        Cure::SkipRest => "use --on-error skip to keep the whole records before it".into(),
        Cure::FetchAgain => "fetch the file again, or use --on-error skip to keep the whole records before it".into(),
        Cure::Replace => "choose another name, or pass --force to replace it".into(),
        Cure::WriteUnseen => "if you may write there and not look, --force writes all the same, and replaces what is there".into(),
        Cure::ExtendOrRemove => {
            "name it in --against too to extend it, choose another name, or remove the folder; --force replaces no library".into()
        }
        Cure::ResumeOrStartAgain => "continue with --resume, or start again with --force".into(),
        Cure::Resume => "continue with the same command and --resume".into(),
        Cure::StartAgain => "start again without --resume, with --force".into(),
        Cure::ChangeBack => "change it back, or start again without --resume, with --force".into(),
        Cure::SaveToFileOrKeepFirst => "save it to a file first, or use --keep first".into(),
        Cure::MakeRoom => format!(
            "make room there, name another folder by {scratch}, or unpack or fetch the inputs first, which are then read in place"
        ),
        Cure::LessMemory if command != "dedup" => {
            "use a machine with more memory, say by --memory how much the run may take, or split the corpus".into()
        }
        Cure::LessMemory => {
            "use a machine with more memory, say by --memory how much the run may take, split the corpus, or, if texts are compared by jaccard, decide \
             by a filter alone with --no-verify"
                .into()
        }
        Cure::AllowOverfull => "--allow-overfull takes it as it is".into(),
        Cure::LiftWorkLimit => "--unlimited-work lifts the limit".into(),
        Cure::Search => {
            "ask it with `nearset search`, or make a filter of its records with `nearset build`, without --index".into()
        }
        Cure::Decontaminate => "`nearset decontaminate --against` looks for its items".into(),
        Cure::CompareWithLibrary => "a library of records is compared with by `nearset dedup --against`".into(),
        Cure::CompareAsVectors => {
            "--metric cosine, l1 or l2 with --near N compares vectors, in `nearset dedup`, `pairs`, `cluster` and `build`".into()
        }
        Cure::BuildFirst if command == "search" => {
            "if it holds records, make an index of them with `nearset build --index`; of texts --metric edit needs none".into()
        }
        Cure::BuildFirst => {
            "if it holds records, make a library of them with `nearset dedup FILE -o KEPT --save seen.library`, or a filter with \
             `nearset build`"
                .into()
        }
        Cure::CreateScratch => format!("create it first, or name another with {scratch}"),
        Cure::BuildIndex => "build an index with `nearset build --index`".into(),
        other => other.to_string(),
    }
}

/// Returns the flag of an option, by the name that runs and reports know it by. Other names stay as they are.
fn option(command: &str, name: &str) -> String {
    let flag = match name {
        "annotate" if command == "query" => "tag",
        "text field" if command == "query" => "field",
        "max false negative" => "max-fn",
        "max false positive" => "max-fp",
        "shingling" => "shingle",
        "text field" | "id field" | "annotate" | "removed" | "save" | "report" | "near" | "metric" | "seed"
        | "capacity" | "against" | "verify" | "keep" | "chain" | "exhaustive" | "candidates" | "decisions" | "mask"
        | "share" | "mass" => name,
        _ => return name.to_owned(),
    };
    format!("--{}", flag.replace(' ', "-"))
}

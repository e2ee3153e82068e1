//! What a user can do about an error, as data: each front end words it in its own terms.
//!
//! Claim: no error text names an option of a front end. An error has a `cure()`, and the program and the bindings turn it into
//! flags or keyword arguments, each in one place.

use std::fmt;

/// What a user can do about an error. Its `Display` names no front end's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cure {
    /// Check the path.
    CheckPath,
    /// Give this user the right to read the file.
    MakeReadable,
    /// Check the file and the disk that it lies on.
    CheckDisk,
    /// Fetch the file again.
    FetchAgain,
    /// Rename a file that is not compressed, or fetch it again.
    RenameOrFetchAgain,
    /// State the format of the inputs.
    NameFormat,
    /// State the format of the input if it is not JSON Lines, or leave out the records that are broken.
    NameFormatOrSkip,
    /// Give each format its own output, or state one format for all inputs.
    SplitOrNameFormat,
    /// Name another field or column.
    NameField,
    /// Name one field instead of several.
    NameOneField,
    /// Name another field of the id.
    NameIdField,
    /// Name another field, or leave out the records that lack it.
    NameFieldOrSkip,
    /// Name a field inside the one that was named, or leave out the records that hold an object there.
    NameInnerFieldOrSkip,
    /// Name the fields of the benchmark that are evidence.
    NameEvidence,
    /// Leave out the records that can't be read.
    Skip,
    /// Take the records before the fault and leave out the rest of the file.
    SkipRest,
    /// Write under another name, or allow the file to be replaced.
    Replace,
    /// Write without having looked whether something is replaced, where this user may write and not look.
    WriteUnseen,
    /// Compare with the library too, so that it is extended, or remove its folder.
    ExtendOrRemove,
    /// Resume the run, or start it again.
    ResumeOrStartAgain,
    /// Resume the run.
    Resume,
    /// Start the run again from the beginning.
    StartAgain,
    /// Change an option back, or start the run again.
    ChangeBack,
    /// Save the pipe to a file.
    SaveToFile,
    /// Save the pipe to a file, or keep the first record of each family.
    SaveToFileOrKeepFirst,
    /// Make room for temporary files, or unpack the inputs.
    MakeRoom,
    /// Give the run more memory, split the corpus, or decide by a filter.
    LessMemory,
    /// Use the overfull filter as it is.
    AllowOverfull,
    /// Lift the limit on the work per item.
    LiftWorkLimit,
    /// Search the index instead of asking it as a filter.
    Search,
    /// Build an index instead of a filter.
    BuildIndex,
    /// Compare the vectors by a metric of vectors.
    CompareAsVectors,
    /// Give the set of benchmark items to the search for them.
    Decontaminate,
    /// Make a filter or a library of the records first.
    BuildFirst,
    /// Create the folder for temporary files, or name another.
    CreateScratch,
    /// Compare records with a library instead of asking it as a filter.
    CompareWithLibrary,
}

impl fmt::Display for Cure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cure::CheckPath => "check the path",
            Cure::MakeReadable => "make it readable for this user",
            Cure::CheckDisk => "check the file and its disk",
            Cure::FetchAgain => "fetch the file again, or keep the whole records before the damage",
            Cure::RenameOrFetchAgain => "rename the file if it is not compressed at all, or fetch it again",
            Cure::NameFormat => "state the format",
            Cure::NameFormatOrSkip => "state the format if it is not JSON Lines, or leave out such records",
            Cure::SplitOrNameFormat => {
                "give each format its own output, or state one format by which all inputs are read"
            }
            Cure::NameField => "name another field",
            Cure::NameOneField => "name one field",
            Cure::NameIdField => "name another field of the id",
            Cure::NameFieldOrSkip => "name another field, or leave out such records",
            Cure::NameInnerFieldOrSkip => "name a field inside it, such as meta.text, or leave out such records",
            Cure::NameEvidence => "name the fields that hold questions and answers",
            Cure::Skip => "leave out such records",
            Cure::SkipRest => "keep the whole records before it and leave out the rest",
            Cure::Replace => "choose another name, or allow the file to be replaced",
            Cure::WriteUnseen => "if you may write there and not look, allow what is there to be replaced",
            Cure::ExtendOrRemove => "compare with it too, which extends it, choose another name, or remove the folder",
            Cure::ResumeOrStartAgain => "resume that run, or start again",
            Cure::Resume => "resume the run with the same options",
            Cure::StartAgain => "start again from the beginning",
            Cure::ChangeBack => "change it back, or start again from the beginning",
            Cure::SaveToFile => "save it to a file first",
            Cure::SaveToFileOrKeepFirst => "save it to a file first, or keep the first record of each family",
            Cure::MakeRoom => {
                "make room there, name another folder for them, or unpack or fetch the inputs first, which are then read in place"
            }
            Cure::LessMemory => "use a machine with more memory, split the corpus, or decide by a filter of fixed size",
            Cure::AllowOverfull => "allow it to be overfull",
            Cure::LiftWorkLimit => "lift the limit, if you trust the file",
            Cure::Search => "search it as an index",
            Cure::BuildIndex => "build an index",
            Cure::CompareAsVectors => "compare them by a metric of vectors, such as cosine",
            Cure::Decontaminate => "search records for its items by decontaminating them",
            Cure::BuildFirst => "if it holds records, make a library or a filter of them first",
            Cure::CreateScratch => "create the folder first, or name another",
            Cure::CompareWithLibrary => "if it is a library of records, remove duplicates against it",
        })
    }
}

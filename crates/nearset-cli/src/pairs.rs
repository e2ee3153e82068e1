//! `nearset pairs`: which records are near which.

use std::process::ExitCode;

use anyhow::Result;
use nearset::index::NearPairs;
use nearset_jobs::join::{PairsOptions, PairsSummary, pairs};

use crate::join::{self, Join};
use crate::options::OnError;
use crate::show;

const EXAMPLES: &str = "\
Examples:
  All pairs of documents that share at least 80 % of their shingles, as a table:
    nearset pairs corpus.jsonl -o pairs.tsv

  The ten nearest pairs that are no copies, from a pipe:
    zstdcat corpus.jsonl.zst | nearset pairs - -q | awk '$3 < 1' | sort -t'\t' -k3 -rn | head

  Looser, of short texts, by characters:
    nearset pairs titles.csv --text-field title --shingle chars:4 --near 0.6 -o pairs.jsonl

Exit codes: 0 done, 1 failed (no output appears), 2 wrong command line.";

/// Find all pairs of records that are near each other
///
/// Writes the ids of both records and their exact Jaccard similarity, each pair once, the earlier record first, in the order of
/// the later one. Candidates share one of their rarest shingles, enough of which are looked at that at most --max-fn of the pairs at
/// exactly --near are missed; each is compared by all of its shingles. Texts are not held in memory but read again where they lie, so the corpus may be larger; those
/// of compressed inputs, Parquet and pipes are copied to an unnamed file in TMPDIR.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    join: Join,

    /// Records with the same shingles that are all paired; of more, each further one is paired with these only
    #[arg(long, value_name = "N", default_value_t = NearPairs::MOST_COPIES)]
    max_copies: usize,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let mut options = PairsOptions::new(args.join.options(), &args.join.output);
    options.most_copies = args.max_copies;
    args.join.carry_out(|sources, progress| pairs(sources, &options, progress), print_summary)
}

fn print_summary(summary: &PairsSummary) {
    join::print_counts(&summary.counts, OnError::Skip, summary.seconds);
    eprintln!("pairs     {}", show::count(summary.pairs));
    if summary.pairs_left_out > 0 {
        let left_out = show::count(summary.pairs_left_out);
        eprintln!(
            "left out  {left_out} more pairs with records that have too many copies: raise --max-copies for them"
        );
    }
    join::print_limited(summary.cut_short, "records");
    eprintln!("copies    {} records have the same shingles as an earlier one", show::count(summary.copies));
    join::print_work(summary.compared, summary.read_again, summary.index_bytes);
    join::print_alarms(&summary.alarms);
}

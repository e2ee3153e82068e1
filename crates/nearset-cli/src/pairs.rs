//! `nearset pairs`: which records are near which.

use std::process::ExitCode;

use anyhow::Result;
use nearset::index::NearPairs;
use nearset_jobs::join::{Pairs, PairsOptions, PairsSummary};

use crate::join::{self, Join};
use crate::options::{OnError, without_keep};
use crate::show;

const EXAMPLES: &str = "\
Examples:
  All pairs of documents that share at least 80 % of their shingles, as a table:
    nearset pairs corpus.jsonl -o pairs.tsv

  The ten nearest pairs that are no copies, from a pipe:
    zstdcat corpus.jsonl.zst | nearset pairs - -q | awk '$3 < 1' | sort -t'\t' -k3 -rn | head

  Pictures by their PDQ hashes, none within 31 bits missed:
    nearset pairs hashes.jsonl --metric hamming --near 31 -o pairs.tsv

  Names with at most two typing errors, none missed:
    nearset pairs people.csv --text-field name --metric edit --near 2 -o pairs.tsv

  Looser, of short texts, by characters:
    nearset pairs titles.csv --text-field title --shingle chars:4 --near 0.6 -o pairs.jsonl

Exit codes: 0 done, 1 failed (no output appears), 2 wrong command line.";

/// Find all pairs of records that are near each other
///
/// Writes the ids of both records and how near they are, exactly: the Jaccard similarity of texts, or what --metric names. Each pair comes
/// once, the earlier record first, in the order of the later one. Of texts, candidates share one of their rarest shingles, enough of which are looked at that at most --max-fn of the pairs at
/// exactly --near are missed; each is compared by all of its shingles. Texts are not held in memory but read again where they lie, so the corpus may be larger; those
/// of compressed inputs, Parquet and pipes are copied to an unnamed file in TMPDIR. Items of other metrics are held in memory.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("on_error", |arg| arg.value_parser(without_keep())))]
pub struct Args {
    #[command(flatten)]
    join: Join,

    /// Records with the same shingles, or equal ones, that are all paired; of more, each further one is paired with these only
    #[arg(long, value_name = "N", default_value_t = NearPairs::MOST_COPIES)]
    max_copies: usize,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let prepare = |sources, join| {
        let mut options = PairsOptions::new(join, &args.join.output);
        options.most_copies = args.max_copies;
        Pairs::prepare(sources, options)
    };
    args.join.carry_out(prepare, Pairs::plan, Pairs::run, print_summary)
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
    join::print_limited(summary.cut_short, "records", "");
    let what = if summary.plan.reads_again() { "have the same shingles as" } else { "are equal to" };
    eprintln!("copies    {} records {what} an earlier one", show::count(summary.copies));
    join::print_work(summary.compared, summary.read_again, summary.index_bytes);
    join::print_alarms(&summary.alarms);
}

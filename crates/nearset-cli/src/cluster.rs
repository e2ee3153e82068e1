//! `nearset cluster`: every record with its cluster.

use std::process::ExitCode;

use anyhow::Result;
use nearset_jobs::join::{Cluster, ClusterOptions, ClusterSummary};

use crate::join::{self, Join};
use crate::options::{OnError, Usage, without_keep};
use crate::show;

const EXAMPLES: &str = "\
Examples:
  Which family does each document belong to?
    nearset cluster corpus.jsonl -o clusters.tsv

  Sizes of the largest families:
    nearset cluster corpus.jsonl -q | tail -n +2 | cut -f2 | sort | uniq -c | sort -rn | head

  Vectors whose cosine is .9 or more:
    nearset cluster vectors.npy --metric cosine --near 0.9 -o clusters.tsv

  Families as chains of near pairs, whose ends may be strangers:
    nearset cluster corpus.jsonl --chain -o clusters.jsonl

Exit codes: 0 done, 1 failed (no output appears), 2 wrong command line.";

/// Group records that are near each other
///
/// Writes a row for each record, in order: its id, its cluster, which is the id of the cluster's first record (its centre), and
/// how near it is to that, exactly: the Jaccard similarity of texts, or what --metric names. A record joins the nearest centre that it is near to, or becomes a centre; so in a
/// chain A ~ B ~ C whose ends are not near, C does not join A. An empty record is like nothing: it has a cluster of its own and
/// no similarity. Memory and inputs are as for `nearset pairs`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("on_error", |arg| arg.value_parser(without_keep())))]
pub struct Args {
    #[command(flatten)]
    join: Join,

    /// Follow chains: a cluster is all that near pairs connect. Reads the input twice, so not from a pipe
    #[arg(long)]
    chain: bool,
}

pub fn run(args: Args) -> Result<ExitCode> {
    if args.chain && args.join.is_contained() {
        return Err(
            Usage("--chain connects what is near both ways, and containment is not: leave it out".into()).into()
        );
    }
    let prepare = |sources, join| {
        let mut options = ClusterOptions::new(join, &args.join.output);
        options.follow_chains = args.chain;
        Cluster::prepare(sources, options)
    };
    args.join.carry_out(prepare, Cluster::plan, Cluster::run, print_summary)
}

fn print_summary(summary: &ClusterSummary) {
    join::print_counts(&summary.counts, OnError::Skip, summary.seconds);
    let (clusters, clustered) = (show::count(summary.clusters), show::count(summary.clustered));
    let largest = show::count(summary.largest);
    eprintln!("clusters  {clusters}; {clustered} records are not alone in theirs; the largest has {largest}");
    join::print_limited(summary.cut_short, "records", "");
    join::print_work(summary.compared, summary.read_again, summary.index_bytes);
    join::print_alarms(&summary.alarms);
}

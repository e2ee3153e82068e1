//! Plans, builds and queries near-neighbour indexes over the vectors of a `.npy` file, for `bench/index.py`.
//!
//! `bench-index VECTORS.npy NEAR FAR STRIDE REPEAT OUT PROMISE...`: every `STRIDE`-th vector is a query for all within
//! the cosine `NEAR`. For each promise (the fraction of them to find) a line of JSON goes to standard output, and a
//! line for each pair found, query and item, goes to `OUT-PROMISE.tsv`.

use std::{fs, time::Instant};

use anyhow::{Context, Result, bail, ensure};
use nearset::{
    Distance, Index, Metric,
    plan::{Background, FarModel, Minimise, Request},
};
use serde_json::json;

/// Reads the rows of a two-dimensional array of little-endian f32.
fn read(path: &str) -> Result<Vec<Vec<f32>>> {
    let file = fs::read(path).with_context(|| format!("reading {path}"))?;
    ensure!(file.starts_with(b"\x93NUMPY\x01"), "{path} is not a .npy file of version 1");
    let end = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    let header = str::from_utf8(&file[10..end])?;
    ensure!(header.contains("'<f4'") && header.contains("'fortran_order': False"), "{path}: not rows of f32");
    let shape = header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(')')).context("no shape")?.0;
    let [_, columns] = shape.split(',').map(str::trim).collect::<Vec<_>>()[..] else { bail!("{path}: not a matrix") };
    let numbers = file[end..].as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    Ok(numbers.collect::<Vec<f32>>().chunks_exact(columns.parse()?).map(<[f32]>::to_vec).collect())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [vectors, near, far, stride, repeat, out, promises @ ..] = &arguments[..] else {
        bail!("give VECTORS.npy NEAR FAR STRIDE REPEAT OUT PROMISE...");
    };
    let vectors = read(vectors)?;
    let dimension = vectors.first().context("no vectors")?.len() as u32;
    let metric = Metric::Angle { dimension };
    let (own_near, own_far): (f64, f64) = (near.parse()?, far.parse()?);
    let (near, far) = (metric.distance(own_near)?, metric.distance(own_far)?);
    let queries: Vec<usize> = (0..vectors.len()).step_by(stride.parse()?).collect();
    let far_model = background(&vectors, metric, far)?;
    for promise in promises {
        let mut request = Request::new(metric, own_near).far(own_far).capacity(vectors.len() as u64);
        request.max_false_negative = Some(1.0 - promise.parse::<f64>()?);
        (request.minimise, request.far_model) = (Minimise::Time, Some(far_model.clone()));
        let plan = request.plan_index()?;
        let started = Instant::now();
        let mut index = Index::new(plan.spec.clone())?;
        for vector in &vectors {
            index.insert(vector.as_slice())?;
        }
        index.compact();
        let build_seconds = started.elapsed().as_secs_f64();
        let (mut seconds, mut found) = (f64::INFINITY, Vec::new());
        for _ in 0..repeat.parse::<u32>()? {
            let started = Instant::now();
            found = queries
                .iter()
                .map(|&query| index.search(vectors[query].as_slice(), None, Some(near)))
                .collect::<Result<Vec<_>, _>>()?;
            seconds = seconds.min(started.elapsed().as_secs_f64());
        }
        let pairs =
            queries.iter().zip(&found).flat_map(|(query, found)| found.iter().map(move |item| (query, item.id)));
        let pairs: Vec<String> = pairs.map(|(query, id)| format!("{query}\t{id}\n")).collect();
        fs::write(format!("{out}-{promise}.tsv"), pairs.concat())?;
        let candidates: usize = queries
            .iter()
            .map(|&query| index.candidates(vectors[query].as_slice()).map(|found| found.len()))
            .sum::<Result<usize, _>>()?;
        let line = json!({
            "promise": promise,
            "family": plan.family,
            "rows": plan.spec.layout.rows,
            "tables": plan.spec.layout.bands,
            "probes": plan.spec.probes,
            "build_seconds": build_seconds,
            "queries_per_second": queries.len() as f64 / seconds,
            "bytes_per_item": index.bytes() as f64 / vectors.len() as f64,
            "expected_candidates": plan.candidates,
            "candidates": candidates as f64 / queries.len() as f64,
        });
        println!("{line}");
    }
    Ok(())
}

/// Models how far apart unrelated vectors are: the first and the last, the second and the last but one...
fn background(vectors: &[Vec<f32>], metric: Metric, far: Distance) -> Result<FarModel> {
    let pairs = vectors.iter().zip(vectors.iter().rev()).take(vectors.len().min(10_000) / 2);
    let distances = pairs.map(|(a, b)| metric.between(a[..].into(), b[..].into())).collect::<Result<Vec<_>, _>>()?;
    let distances = distances.into_iter().filter(|distance| *distance >= far).collect();
    Ok(FarModel::Measured(Background::from_distances(distances).context("too few vectors")?))
}

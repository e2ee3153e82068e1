//! Text: near .8, far .6, 2 % and 1 in 1,000, on the licence corpus, whose exact Jaccard similarities are computed
//! here.

use std::{collections::HashMap, process::Command};

use nearset::{
    Distance, Filter, FilterSpec, Item, Metric, Rng, Seed, Shingler, Shingling,
    family::Hashed,
    plan::{Background, FarModel, Request},
};

/// Reads the documents of 50 words and more in random order, as sets of 5-word shingles. Returns `None` with a message
/// if they are not available.
fn documents() -> Option<Vec<Vec<u64>>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/scancode-licenses/licenses.jsonl.xz");
    let decoded = Command::new("xz").args(["-dc", path]).output().ok().filter(|output| output.status.success());
    let Some(output) = decoded else {
        eprintln!("skipped: `xz -dc {path}` gives nothing here");
        return None;
    };
    let shingler = Shingler::new(Shingling::Words(5), Seed::new(7)).unwrap();
    let lines = std::str::from_utf8(&output.stdout).expect("the corpus is UTF-8").lines();
    let mut sets: Vec<Vec<u64>> = lines
        .map(|line| {
            let record: serde_json::Value = serde_json::from_str(line).expect("a JSON object on each line");
            shingler.shingle_set(record["text"].as_str().expect("a text in each record"))
        })
        .filter(|set| set.len() >= 46)
        .collect();
    let mut rng = Rng::new(Seed::new(8));
    (1..sets.len()).rev().for_each(|end| sets.swap(end, rng.below(end as u64 + 1) as usize));
    Some(sets)
}

/// Returns the similarity of each query to the stored set most like it.
fn nearest(stored: &[Vec<u64>], queries: &[Vec<u64>]) -> Vec<f64> {
    let mut holders: HashMap<u64, Vec<u32>> = HashMap::new();
    for (i, set) in (0..).zip(stored) {
        set.iter().for_each(|shingle| holders.entry(*shingle).or_default().push(i));
    }
    let mut common = vec![0u32; stored.len()];
    let nearest_to = |query: &Vec<u64>| {
        common.fill(0);
        query
            .iter()
            .flat_map(|shingle| holders.get(shingle).into_iter().flatten())
            .for_each(|&i| common[i as usize] += 1);
        let similarity = |(set, &common): (&Vec<u64>, &u32)| {
            f64::from(common) / ((set.len() + query.len()) as f64 - f64::from(common))
        };
        stored.iter().zip(&common).map(similarity).fold(0.0, f64::max)
    };
    queries.iter().map(nearest_to).collect()
}

#[test]
fn promises_hold_on_held_out_licences() {
    let Some(sets) = documents() else { return };
    let (stored, queries) = sets.split_at(sets.len() / 2);
    let metric = Metric::Jaccard { shingling: Shingling::Words(5) };
    let mut request = Request::new(metric, 0.8).far(0.6).capacity(stored.len() as u64).errors(0.02, 0.001);

    let mut rng = Rng::new(Seed::new(9));
    // Queries like those that the promise is about: stored documents with nothing nearer than far among the others.
    let (sample, rest) = stored.split_at(stored.len() / 4);
    let far_queries: Vec<&Vec<u64>> =
        sample.iter().zip(nearest(rest, sample)).filter(|(_, nearest)| *nearest <= 0.6).map(|(set, _)| set).collect();
    let pairs: Vec<Distance> = (0..400_000)
        .map(|_| {
            let query = far_queries[rng.below(far_queries.len() as u64) as usize];
            let other = &rest[rng.below(rest.len() as u64) as usize];
            metric.between(Item::Set(query), Item::Set(other)).unwrap()
        })
        .collect();
    let background = Background::from_distances(pairs).unwrap();
    request.far_model = Some(FarModel::Measured(background));
    let plan = request.plan_filter().unwrap();
    println!("{plan}");

    let mut filter = Filter::new(&FilterSpec::from(plan.spec.near().unwrap().clone())).unwrap();
    filter.insert_all(stored.iter().map(|set| &set[..])).unwrap();
    let truth = nearest(stored, queries);
    let mut room = Hashed::default();
    let hits: Vec<u32> = queries.iter().map(|set| filter.find(&set[..], &mut room).unwrap().hits).collect();
    let of = |wanted: &dyn Fn(f64) -> bool| -> Vec<u32> {
        truth.iter().zip(&hits).filter(|(similarity, _)| wanted(**similarity)).map(|(_, hit)| *hit).collect()
    };
    let (near, far) = (of(&|similarity| similarity >= 0.8), of(&|similarity| similarity <= 0.6));
    let chance = filter.generations().next().and_then(|state| state.chance_hit).unwrap();
    let threshold = plan.spec.near().unwrap().rule.threshold_at(chance).unwrap();
    let missed = near.iter().filter(|&&hit| hit < threshold).count();
    let accepted = far.iter().filter(|&&hit| hit >= threshold).count();
    println!("threshold {threshold}: missed {missed} of {}, accepted {accepted} of {}", near.len(), far.len());
    // 4 standard errors.
    let most = |promise: f64, of: usize| promise * of as f64 + 4.0 * (promise * of as f64).sqrt();
    assert!(near.len() > 1_000 && far.len() > 1_000);
    assert!(missed as f64 <= most(0.02, near.len()), "missed {missed} of {}", near.len());
    assert!(accepted as f64 <= most(0.001, far.len()), "accepted {accepted} of {}", far.len());
}

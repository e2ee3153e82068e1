//! Embeddings by angle: which words mean much the same as one seen before?
//!
//! `cargo run --example embeddings`

use nearset::{
    Filter, Metric,
    family::Hashed,
    plan::{Background, FarModel, Request},
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/words.tsv");
    let lines = std::fs::read_to_string(path)?;
    let mut words: Vec<(&str, Vec<f32>)> = Vec::new();
    for line in lines.lines() {
        let mut fields = line.split('\t');
        let word = fields.next().ok_or("a line without a word")?;
        words.push((word, fields.map(str::parse).collect::<Result<_, _>>()?));
    }

    let metric = Metric::Angle { dimension: 50 };
    let mut request = Request::new(metric, 0.97).far(0.75).capacity(words.len() as u64);
    request.max_false_positive = Some(0.01);
    // Word vectors crowd into part of the sphere, so the plan is given the distances that they really have.
    let mut distances = Vec::new();
    for (i, (_, vector)) in words.iter().enumerate() {
        for (_, earlier) in &words[..i] {
            distances.push(metric.between(vector[..].into(), earlier[..].into())?);
        }
    }
    let background = Background::from_distances(distances).ok_or("fewer than three words")?;
    request.far_model = Some(FarModel::Measured(background));
    let plan = request.plan_filter()?;
    let mut filter = Filter::new(&plan.spec)?;
    // Room for hashing, which is used again for every vector.
    let mut room = Hashed::default();

    println!("near is a cosine of .97, far .75: {:.0} bits a vector", plan.bits_per_item);
    for (i, (word, vector)) in words.iter().enumerate() {
        if filter.insert(&vector[..], &mut room)? {
            continue;
        }
        // A filter only reports that something is near; finding out which word takes a look at all of them.
        let mut nearest = (f64::INFINITY, "");
        for (other, earlier) in &words[..i] {
            let angle = metric.between(vector[..].into(), earlier[..].into())?.value();
            if angle < nearest.0 {
                nearest = (angle, other);
            }
        }
        println!("{word:>12} is near {:<12} cosine {:.3}", nearest.1, nearest.0.cos());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs() {
        super::main().unwrap();
    }
}

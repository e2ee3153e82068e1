//! Near-duplicate texts: plans a filter, inserts licences one after the other, and prints which had a near one before.
//!
//! `cargo run --example texts`

use nearset::{Filter, Metric, family::Hashed, plan::Request};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/licences.jsonl");
    let lines = std::fs::read_to_string(path)?;
    let records: Vec<serde_json::Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;

    let metric = Metric::Jaccard { shingling: "words:5".parse()? };
    let plan = Request::new(metric, 0.8).far(0.5).capacity(records.len() as u64).plan_filter()?;
    let mut filter = Filter::new(&plan.spec)?;
    // Room for hashing, which is used again for every text.
    let mut room = Hashed::default();

    let mut removed = Vec::new();
    for record in &records {
        let (Some(id), Some(text)) = (record["id"].as_str(), record["text"].as_str()) else {
            return Err("a record without id or text".into());
        };
        if !filter.insert(text, &mut room)? {
            removed.push(id);
        }
    }
    let percent = |rate: f64| 100.0 * rate;
    println!(
        "promise: {:.1} % missed at .8, {:.2} % taken at .5",
        percent(plan.false_negative),
        percent(plan.false_positive)
    );
    println!("filter:  {} bytes, {} a text", plan.bytes, plan.bytes / filter.len());
    println!(
        "texts:   {}, of which {} are near an earlier one, such as {}",
        filter.len(),
        removed.len(),
        removed.iter().take(3).copied().collect::<Vec<_>>().join(", ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs() {
        super::main().unwrap();
    }
}

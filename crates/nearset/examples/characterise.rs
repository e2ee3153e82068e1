//! Plans, builds and measures random requests over all metrics, and writes one tab-separated line per request to
//! standard output: `cargo run --release --example characterise -- GOALS FILTERS`.

#[path = "../tests/simulate/mod.rs"]
mod simulate;

fn main() {
    let number = |position: usize, default| std::env::args().nth(position).map_or(Ok(default), |text| text.parse());
    let (Ok(goals), Ok(filters)) = (number(1, 200), number(2, 16)) else {
        eprintln!("usage: characterise [GOALS [FILTERS]]");
        std::process::exit(2);
    };
    println!(
        "goal\tmetric\tnear\tfar\titems\tstructure\tfamily\trows\tbands\tthreshold\tbits_per_item\t\
         max_false_negative\tpredicted\tmeasured\terror\tmax_false_positive\tpredicted\tmeasured\terror\tworst_excess"
    );
    for number in 0..goals {
        let plan = simulate::random_plan(number);
        let measured = simulate::simulate(&plan, filters, number);
        let (request, terms, [near_error, far_error]) = (&plan.request, plan.terms(), measured.errors);
        let layout = plan.spec.near().map(|spec| spec.layout()).expect("near filters have bands");
        println!(
            "{number}\t{}\t{:.4}\t{:.4}\t{}\t{}\t{}\t{}\t{}\t{}\t{:.1}\t{:.5}\t{:.5}\t{:.5}\t{:.5}\t{:.5}\t{:.5}\t{:.5}\t{:.5}\t{:.2}",
            request.metric,
            request.metric.own_unit(terms.near),
            request.metric.own_unit(terms.far),
            terms.capacity,
            plan.structure,
            plan.family,
            layout.rows,
            layout.bands,
            plan.threshold().map_or("-".into(), |threshold| threshold.to_string()),
            plan.bits_per_item,
            terms.max_false_negative,
            plan.false_negative,
            measured.false_negative,
            near_error,
            terms.max_false_positive,
            plan.false_positive,
            measured.false_positive,
            far_error,
            measured.worst_excess(terms),
        );
    }
}

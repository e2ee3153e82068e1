//! A plan for people: first what is promised and what it costs, then how, then what else there is.

use nearset::family::Form;
use nearset::plan::{Advice, FarModel, Minimise, Plan, PlanError, Request, RunnerUp, Structure};
use nearset::spec::Terms;
use nearset::{Distance, Metric};

use crate::terminal;
use crate::words::{axis, bytes, count, metric, number, rate, seconds, shape};

/// What the request's background was measured on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Records that were read.
    pub records: u64,
    /// Items among which the pairs are.
    pub items: u64,
    /// Pairs that are compared at most.
    pub most_pairs: u64,
}

/// How a front end calls the options that an answer may advise to change, and what its users do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wording {
    /// What to type in order to build the planned filter and to ask it, one line per command.
    pub next: Vec<String>,
    /// What to type in order to build an index instead and to search it; empty where there is none for such items.
    pub next_index: Vec<String>,
    /// How to have the distances between one's own items measured.
    pub sample: &'static str,
    /// The option of `Request::near`.
    pub near: &'static str,
    /// The option of `Request::far`.
    pub far: &'static str,
    /// The option of `Request::max_false_negative`.
    pub max_false_negative: &'static str,
    /// The option of `Request::max_false_positive`.
    pub max_false_positive: &'static str,
    /// The option of `Request::capacity`.
    pub capacity: &'static str,
    /// The option that asks for `FarModel::WorstCase`.
    pub worst_case: &'static str,
}

impl Default for Wording {
    /// Returns the library's own names.
    fn default() -> Self {
        Self {
            next: vec!["nearset::Filter::new takes the plan's spec".into()],
            next_index: vec!["nearset::Index::new takes a HammingSpec, or the spec of Request::plan_index".into()],
            sample: "a background measured on them",
            near: "near",
            far: "far",
            max_false_negative: "max_false_negative",
            max_false_positive: "max_false_positive",
            capacity: "capacity",
            worst_case: "the worst case",
        }
    }
}

/// Returns the planner's answer to a request, in lines of at most `width` letters and in the terms of a front end.
pub fn answer(
    request: &Request,
    outcome: &Result<Plan, PlanError>,
    sampled: Option<&Sample>,
    wording: &Wording,
    width: usize,
) -> String {
    let mut page = Page { text: String::new(), wording, width };
    match outcome {
        Ok(plan) => page.plan(plan, sampled),
        Err(PlanError::LargerThanItems { plan, advice, item_bits }) => {
            page.larger(plan, advice, *item_bits, sampled);
        }
        Err(PlanError::Impossible { terms, tried, nearest, advice }) => {
            page.impossible(request, terms, (tried, nearest, advice), sampled);
        }
        Err(error) => page.paragraph(&format!("Not possible: {error}.")),
    }
    page.text
}

struct Page<'w> {
    text: String,
    wording: &'w Wording,
    width: usize,
}

impl Page<'_> {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn paragraph(&mut self, text: &str) {
        self.wrapped("", 0, text);
        self.line("");
    }

    /// A label, and beside it text that is broken between words.
    fn fact(&mut self, label: &str, text: &str) {
        self.wrapped(label, 13, text);
    }

    fn wrapped(&mut self, label: &str, indent: usize, text: &str) {
        let mut line = format!("{label:<indent$}");
        let mut length = line.chars().count();
        let mut first = true;
        for word in text.split(' ') {
            let letters = word.chars().count();
            if !first && length + 1 + letters > self.width {
                self.line(&line);
                line = " ".repeat(indent);
                length = indent;
                first = true;
            }
            if !first {
                line.push(' ');
                length += 1;
            }
            line.push_str(word);
            length += letters;
            first = false;
        }
        self.line(&line);
    }

    fn plan(&mut self, plan: &Plan, sampled: Option<&Sample>) {
        self.paragraph(&format!("{} {}", promise(plan), cost(plan)));
        self.numbers(plan, sampled);
        self.curve(plan);
        self.others(plan);
        self.next(plan);
    }

    fn numbers(&mut self, plan: &Plan, sampled: Option<&Sample>) {
        let (of, terms) = (plan.request.metric, plan.terms());
        self.fact("metric", &format!("{}, {} items", metric(of), count(terms.capacity)));
        self.fact("structure", &format!("{} over {}: {}", plan.structure, plan.family, plan.structure.meaning()));
        self.fact("shape", &shape(plan));
        let (bits, all) = (number(plan.bits_per_item), bytes(plan.bytes));
        self.fact("memory", &format!("{bits} bits per item, {all} in all"));
        self.fact(
            "per query",
            &format!(
                "{} cache lines and {} hash values, about {}",
                number(plan.work.cache_lines),
                number(plan.work.hash_evaluations),
                seconds(1e-9 * plan.work.steps)
            ),
        );
        let (near, far) = (own(of, terms.near), own(of, terms.far));
        let allowed = |most| if most == 0.0 { "none".to_owned() } else { rate(most) };
        self.fact(
            "near",
            &format!("{} missed at {near} ({} allowed)", rate(plan.false_negative), allowed(terms.max_false_negative)),
        );
        self.fact(
            "far",
            &format!(
                "{} called near at {far} ({} allowed)",
                rate(plan.false_positive),
                allowed(terms.max_false_positive)
            ),
        );
        self.fact("grey zone", &format!("{}: nothing is promised there", grey_zone(plan)));
        self.fact("others", &far_model(&plan.request, terms));
        if let (Some(sampled), Some(FarModel::Measured(background)), Some(spec)) =
            (sampled, &plan.request.far_model, plan.spec.near())
        {
            let (mean, within) = background.agreement(&spec.family, spec.rows, terms.far);
            self.fact(
                "",
                &format!(
                    "{} pairs among {} of {} records; a band of two far items agrees with probability {:.2e}, 95 % sure that \
                     it is at most {:.2e}, which is what the plan assumes",
                    count(background.pairs()),
                    count(sampled.items),
                    count(sampled.records),
                    mean,
                    within.end()
                ),
            );
        }
        self.line("");
    }

    fn curve(&mut self, plan: &Plan) {
        let (of, terms) = (plan.request.metric, plan.terms());
        let at = |distance| of.own_unit(distance);
        let mut points: Vec<(f64, f64)> = plan.curve.iter().map(|point| (at(point.distance), point.full)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let ends = [points.first(), points.last()].map(|point| point.map_or(0.0, |point| point.0));
        let mark = |name: &str, value| (value, format!("{name} {}", number(value)));
        let mut marks = vec![mark("near", at(terms.near)), mark("far", at(terms.far))];
        marks.extend(ends.map(|end| (end, number(end))));
        self.line(&format!("Called near, by {}:", axis(of)));
        let chart = terminal::draw(&points, &marks, self.width);
        self.text.push_str(&chart);
        self.line("");
    }

    fn others(&mut self, plan: &Plan) {
        self.line("What else there is:");
        let mut rows: Vec<[String; 4]> = plan.runners_up.iter().map(runner_row).collect();
        let alternatives = plan.request.advise();
        rows.extend(alternatives.iter().map(|advice| advice_row(&plan.request, advice)));
        self.table(["", "bits per item", "per query", ""], &rows);
        self.line("");
    }

    /// Columns as wide as they need to be, the last one broken between words.
    fn table(&mut self, head: [&str; 4], rows: &[[String; 4]]) {
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([head[column].chars().count()]).max().unwrap_or(0)
        };
        let widths = [width(0), width(1), width(2)];
        let start = |cells: [&str; 3]| {
            let pad = |i: usize| " ".repeat(widths[i].saturating_sub(cells[i].chars().count()));
            format!("  {}{}  {}{}  {}{}  ", cells[0], pad(0), pad(1), cells[1], pad(2), cells[2])
        };
        self.line(&format!("{}{}", start([head[0], head[1], head[2]]), head[3]));
        for row in rows {
            let start = start([&row[0], &row[1], &row[2]]);
            let indent = start.chars().count();
            self.wrapped(&start, indent, &row[3]);
        }
    }

    fn commands(&mut self, heading: &str, commands: &[String]) {
        self.line(heading);
        for command in commands {
            self.line(&format!("  {command}"));
        }
    }

    /// Says how to keep the items and compare them, where that is better than any filter.
    fn next_index(&mut self) {
        if !self.wording.next_index.is_empty() {
            self.commands("Next, to keep the items and to be told which is near:", &self.wording.next_index);
        }
    }

    fn next(&mut self, plan: &Plan) {
        self.commands("Next:", &self.wording.next);
        if is_random(&plan.request) {
            let sample = self.wording.sample;
            self.wrapped("  ", 2, &format!("or this with {sample}, to allow for how far apart your items really lie"));
        }
    }

    fn larger(&mut self, plan: &Plan, advice: &[Advice], item_bits: f64, sampled: Option<&Sample>) {
        let (request, terms) = (&plan.request, plan.terms());
        let of = request.metric;
        let (noun, nouns) = (of.form().noun(false), of.form().noun(true));
        self.paragraph(&format!(
            "No filter pays here: the {} that keeps these promises takes {} bits per item, and a {noun} itself takes {}. {} \
             Keeping the {nouns} and comparing them does the same in less memory, misses nothing, and says which {noun} it was.",
            match request.minimise {
                Minimise::Bytes => "smallest filter",
                Minimise::Time => "quickest filter",
            },
            number(plan.bits_per_item),
            number(item_bits),
            why_large(of, terms)
        ));
        self.line(&format!("Ways to answer, for {} {nouns}:", count(terms.capacity)));
        let mut rows: Vec<[String; 4]> = advice.iter().map(|advice| advice_row(request, advice)).collect();
        rows.push([
            "this filter".into(),
            number(plan.bits_per_item),
            seconds(1e-9 * plan.work.steps),
            format!(
                "{} in all; misses {} at {}; says yes or no, never which",
                bytes(plan.bytes),
                rate(plan.false_negative),
                own(of, terms.near)
            ),
        ]);
        self.table(["", "bits per item", "per query", ""], &rows);
        self.line("");
        self.line("How to choose:");
        for advice in advice {
            let each = 1.0 / advice.seconds_per_query;
            let rate = number(rounded(each));
            let (name, when) = match advice.structure {
                Structure::MultiIndex => {
                    ("the index", format!("if you need more: some {rate} queries per second and core"))
                }
                Structure::SketchScan => {
                    ("the sketches", format!("if {rate} queries per second and core are enough and memory is short"))
                }
                _ => (
                    "the scan",
                    format!("if {rate} queries per second and core are enough: nothing to tune, nothing missed"),
                ),
            };
            self.wrapped(&format!("  {name}"), 16, &when);
        }
        self.wrapped(
            "  the filter",
            16,
            &format!("only if the {nouns} must not be kept, say because they are secret, or if filters of many places are to be merged"),
        );
        if let Some(near) = largest_near_that_pays(request, terms) {
            let filter = number(near.bits_per_item);
            self.wrapped(
                "  another goal",
                16,
                &format!(
                    "at {} {} a filter is smaller than the {nouns}: {filter} bits per item",
                    self.wording.near,
                    number(near.request.near),
                ),
            );
        }
        self.line("");
        self.line("The filter in numbers, if you want it all the same:");
        self.numbers(plan, sampled);
        self.curve(plan);
        self.next_index();
    }

    fn impossible(
        &mut self,
        request: &Request,
        terms: &Terms,
        (tried, nearest, advice): (&[RunnerUp], &[Request], &[Advice]),
        sampled: Option<&Sample>,
    ) {
        let of = request.metric;
        self.paragraph(&format!(
            "No filter keeps both promises: finding {} at {}, and calling at most {} of what is at {} near, with {} \
             items stored.",
            match terms.max_false_negative {
                0.0 => "everything".to_owned(),
                rate => format!("{} of what lies", found_in(rate)),
            },
            own(of, terms.near),
            rate(terms.max_false_positive),
            own(of, terms.far),
            count(terms.capacity)
        ));
        if let (Some(sampled), Some(FarModel::Measured(background))) = (sampled, &request.far_model) {
            let pairs = background.pairs();
            let small = match pairs < sampled.most_pairs {
                true => " A larger sample may help: the plan must allow for all that so few pairs leave possible.",
                false => "",
            };
            self.paragraph(&format!("By {} pairs of the sample, {}.{small}", count(pairs), far_model(request, terms)));
        }
        self.line("Tried:");
        let name = |runner: &RunnerUp| format!("  {} over {}  ", runner.structure, runner.family);
        let indent = tried.iter().map(|runner| name(runner).chars().count()).max().unwrap_or(0);
        for runner in tried {
            self.wrapped(&name(runner), indent, &runner.why);
        }
        self.line("");
        self.line("Possible instead:");
        for other in nearest {
            let mut change = Vec::new();
            if let Some(far) = other.far.filter(|far| Some(*far) != request.far) {
                change.push(format!("{} {}", self.wording.far, number(far)));
            }
            if matches!(request.far_model, Some(FarModel::WorstCase)) && is_random(other) {
                change.push(format!("without {} ({})", self.wording.worst_case, far_model(other, terms)));
            }
            self.wrapped("  ", 2, &format!("the same with {}", change.join(" and ")));
        }
        for advice in advice {
            self.wrapped("  ", 2, &format!("no filter, but {advice}"));
        }
        let Wording { max_false_negative, max_false_positive, capacity, .. } = self.wording;
        let looser = format!("a larger {max_false_negative} or {max_false_positive}, or a smaller {capacity}");
        self.wrapped("  ", 2, &looser);
        if !advice.is_empty() {
            self.line("");
            self.next_index();
        }
    }
}

/// Returns whether other items are taken to be random.
fn is_random(request: &Request) -> bool {
    match &request.far_model {
        Some(model) => matches!(model, FarModel::Random),
        None => request.metric.farthest().is_some(),
    }
}

/// Returns the plan for the most distant near, short of the request's, whose filter is smaller than the items.
fn largest_near_that_pays(request: &Request, terms: &Terms) -> Option<Plan> {
    const HALVINGS: u32 = 7;
    let (mut low, mut high) = (0.0, terms.near.value());
    let mut found = None;
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        let middle = if request.metric.is_whole() { middle.floor() } else { middle };
        if middle <= low {
            break;
        }
        let mut nearer = request.clone();
        nearer.near = request.metric.own_unit(Distance::new(middle).ok()?);
        match nearer.plan_filter() {
            Ok(plan) => (low, found) = (middle, Some(plan)),
            Err(_) => high = middle,
        }
    }
    found
}

/// Returns what is promised, in one or two sentences.
fn promise(plan: &Plan) -> String {
    let (of, terms) = (plan.request.metric, plan.terms());
    let noun = of.form().noun(false);
    let (near, far) = (number(of.own_unit(terms.near)), number(of.own_unit(terms.far)));
    let (within, beyond) = match of.unit() {
        "similarity" => (format!("at least {near} similar to a stored {noun}"), format!("at most {far} similar")),
        "cosine" => {
            (format!("with a cosine of {near} or more to a stored {noun}"), format!("at a cosine of {far} or less"))
        }
        "distance" => {
            (format!("within a distance of {near} of a stored {noun}"), format!("at a distance of {far} or more"))
        }
        unit => (format!("within {near} {unit} of a stored {noun}"), format!("{far} {unit} or more away")),
    };
    let found = match plan.false_negative {
        0.0 => "is always found".to_owned(),
        rate => format!("is found in {} of cases", found_in(rate)),
    };
    format!(
        "A query {within} {found}; a query whose nearest {noun} is {beyond} is wrongly called near in {} of cases, with {} \
         stored.",
        rate(plan.false_positive),
        count(terms.capacity)
    )
}

/// Returns one minus a rate, with as many nines as it takes.
fn found_in(missed: f64) -> String {
    let digits = ((-missed.log10()).ceil() - 1.0).clamp(0.0, 11.0) as usize;
    let text = format!("{:.digits$}", 100.0 * (1.0 - missed));
    let short = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{short} %")
}

fn cost(plan: &Plan) -> String {
    format!(
        "That takes {} bits per item, {} in all, and about {} per query.",
        number(plan.bits_per_item),
        bytes(plan.bytes),
        seconds(1e-9 * plan.work.steps)
    )
}

/// Returns why filters get large where near is not very near.
fn why_large(metric: Metric, terms: &Terms) -> String {
    match metric.form() {
        Form::Bits(bits) => {
            let share = 100.0 * terms.near.value() / f64::from(bits);
            format!(
                "A filter remembers samples of a hash's bits, and where {share:.0} % of the bits may differ nearly every sample \
                 contains one that does, so it takes very many of them."
            )
        }
        _ => "A filter remembers hash values that near items share, and so far apart they share few of them, so it takes very \
              many."
            .into(),
    }
}

fn runner_row(runner: &RunnerUp) -> [String; 4] {
    [
        format!("{} over {}", runner.structure, runner.family),
        runner.bits_per_item.map_or("-".into(), number),
        runner.work.map_or("-".into(), |work| seconds(1e-9 * work.steps)),
        runner.why.clone(),
    ]
}

fn advice_row(request: &Request, advice: &Advice) -> [String; 4] {
    let (noun, nouns) = (request.metric.form().noun(false), request.metric.form().noun(true));
    let (name, what) = match (advice.structure, advice.parameter) {
        (Structure::MultiIndex, Some(blocks)) => {
            (format!("index of {blocks} blocks"), format!("finds every near {noun} by its blocks, and says which"))
        }
        (Structure::SketchScan, Some(bits)) => {
            (format!("scan of {bits}-bit sketches"), "compares a short sketch of everything".to_owned())
        }
        _ => (format!("scan of the {nouns}"), format!("compares all {nouns}, misses none, and says which")),
    };
    let all = bytes((advice.bits_per_item / 8.0 * request.capacity as f64) as u64);
    [name, number(advice.bits_per_item), seconds(advice.seconds_per_query), format!("{all} in all; {what}")]
}

/// Returns what the far promise assumes about all other items.
fn far_model(request: &Request, terms: &Terms) -> String {
    let of = request.metric;
    match &request.far_model {
        None if !is_random(request) => format!("every stored item may lie exactly at {}", own(of, terms.far)),
        Some(FarModel::WorstCase) => format!("every stored item may lie exactly at {}", own(of, terms.far)),
        Some(FarModel::Background(at)) => format!("all other stored items lie at {}", in_words(of, *at)),
        Some(FarModel::Measured(background)) => {
            // Quantiles are as coarse as the sample's bins.
            let [half, most] = [0.5, 0.01].map(|part| of.own_unit(background.quantile(part)));
            let [half, most] = [half, most].map(|value| number((1e3 * value).round() / 1e3));
            format!(
                "all other stored items lie as in the sample: half of its pairs beyond {} {half}, 99 % beyond {most}",
                of.unit()
            )
        }
        None | Some(FarModel::Random) => match of.form() {
            Form::Set(_) | Form::Weighted(_) => {
                "all other stored texts are taken to have nothing in common with a query".into()
            }
            Form::Vector(_) => "all other stored vectors are taken to point in random directions".into(),
            Form::Bits(_) => "all other stored hashes are taken to agree with a query in every other bit".into(),
            _ => "all other stored items are taken to be random".into(),
        },
        _ => "other items are taken as the library says".into(),
    }
}

/// Returns a distance in the metric's own unit: `31 bits`, `similarity 0.8`.
fn own(metric: Metric, distance: Distance) -> String {
    in_words(metric, metric.own_unit(distance))
}

fn in_words(metric: Metric, own: f64) -> String {
    let value = number(own);
    if metric.is_whole() { format!("{value} {}", metric.unit()) } else { format!("{} {value}", metric.unit()) }
}

fn grey_zone(plan: &Plan) -> String {
    let metric = plan.request.metric;
    let [from, to] = [plan.grey_zone.start, plan.grey_zone.end].map(|distance| number(metric.own_unit(distance)));
    let unit = metric.unit();
    if metric.is_whole() { format!("{from} to {to} {unit}") } else { format!("{unit} {from} to {to}") }
}

/// To two significant digits, for rough figures.
fn rounded(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor() - 1.0);
    (value / power).round() * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0.019, 0.02, 0.0001, 3e-9].map(found_in), ["98.1 %", "98 %", "99.99 %", "99.9999997 %"]);
        assert_eq!(rounded(15_384.0), 15_000.0);
    }

    #[test]
    fn long_texts_are_broken_between_words() {
        let mut page = Page { text: String::new(), wording: &Wording::default(), width: 20 };
        page.fact("label", "aaa bbb ccc ddd");
        assert_eq!(page.text, "label        aaa bbb\n             ccc ddd\n");
    }
}

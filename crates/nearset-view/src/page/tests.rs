use super::render;
use crate::run::{
    CurvePoint, Excerpt, Fact, Loss, Measured, Others, Promise, Removal, Repeated, Report, SourceSummary,
};

/// Returns a report with every part, in which every string is `word` or made of it.
fn report_of(word: &str) -> Report {
    let excerpt =
        |words: usize| Excerpt { id: word.to_owned(), place: word.to_owned(), text: vec![word; words].join(" ") };
    let source = SourceSummary {
        name: word.to_owned(),
        records: 1000,
        kept: 700,
        near: 250,
        against: 40,
        faulty: 10,
        ..SourceSummary::default()
    };
    Report {
        title: word.to_owned(),
        made_by: word.to_owned(),
        sources: vec![source.clone(), source],
        promise: Promise {
            near: CurvePoint { similarity: 0.8, caught: 0.985 },
            least_near: 0.98,
            above: vec![CurvePoint { similarity: 0.85, caught: 0.999 }],
            lost: Some(Loss { far: CurvePoint { similarity: 0.7, caught: 0.01 }, most_far: 0.02, unrelated: 1e-4 }),
        },
        promised: (0..=20)
            .map(|i| f64::from(i) / 20.0)
            .map(|s| CurvePoint { similarity: s, caught: s.powi(9) })
            .collect(),
        measured: (0..10)
            .map(|tenth| f64::from(tenth) / 10.0)
            .map(|low| Measured {
                low,
                high: low + 0.1,
                similarity: low + 0.05,
                removed: low,
                at_least: 0.9 * low,
                at_most: 0.9 * low + 0.1,
                checked: 40,
            })
            .collect(),
        longest_sampled: 64_000,
        repeated: vec![Repeated { example: excerpt(100), removed: 12_345 }],
        removals: vec![
            Removal { removed: excerpt(90), kept: Some(excerpt(50)), similarity: 0.8125 },
            Removal { removed: excerpt(3), kept: None, similarity: 0.0 },
        ],
        warnings: vec![word.to_owned()],
        plan: vec![Fact::new(word, word)],
        options: vec![Fact::new(word, word)],
        compared: 400,
        unchecked: None,
        bytes: 172_000_000,
        memory: 3_400_000,
        compared_all: false,
        others: Others::Earlier,
    }
}

/// Tags and what stands in them, without the text between.
fn tags(page: &str) -> Vec<&str> {
    page.split('<').skip(1).map(|piece| piece.split_once('>').map_or(piece, |(tag, _)| tag)).collect()
}

#[test]
fn hostile_text_changes_no_tag() {
    let plain = render(&report_of("word"));
    for hostile in [
        "<script>alert(1)</script>",
        "\"><img/src=x/onerror=alert(1)>",
        "'><svg/onload=alert(1)>",
        "</title></style></p></table><style>*{display:none}</style>",
        "&lt;script&gt;",
        "<!--x",
        "x]]>",
    ] {
        let page = render(&report_of(hostile));
        // Positions depend on the length of names only, and these are not compared.
        let shape = |page: &str| -> Vec<String> {
            let no_numbers =
                |tag: &str| tag.chars().filter(|c| !c.is_ascii_digit() && *c != '.' && *c != '-').collect();
            tags(page).into_iter().map(no_numbers).collect()
        };
        assert!(shape(&page) == shape(&plain), "{hostile}");
    }
}

#[test]
fn nothing_is_loaded_and_nothing_runs() {
    let page = render(&report_of("word"));
    for forbidden in
        ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link", "<iframe", "javascript:"]
    {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn every_part_is_on_the_page() {
    let mut report = report_of("word");
    report.removals[0].removed.text = "one two three four".to_owned();
    report.removals[0].kept.as_mut().unwrap().text = "one 2 three four".to_owned();
    let page = render(&report).replace('\u{a0}', " ");
    for part in [
        ">2,000</b><span>records read, 172.0 MB<",
        ">1,400</b><span>kept, 70 %<",
        ">580</b><span>removed, 29 %<",
        ">3.4 MB</b><span>filter, 1700 B per record<",
        "250 near an earlier record",
        "caught 98.5 % at similarity 0.8 (promised: at least 98.0 %), 99.9 % at 0.85.",
        "1.00 % at similarity 0.7 (promised: at most 2.00 %), 0.01 % of what is unrelated.",
        ">0.812</b>",
        "one <mark>two</mark> three four",
        "one <mark>2</mark> three four",
        ">12,345<",
        "no kept record is near",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(!page.contains("NaN") && !page.contains("inf"));
    for tag in ["svg", "ul", "table", "article", "section", "figure", "mark"] {
        assert_eq!(page.matches(&format!("<{tag}")).count(), page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn long_shared_runs_are_cut_and_long_texts_end() {
    let shared = (0..200).map(|i| format!("w{i}")).collect::<Vec<_>>().join(" ");
    let mut report = report_of("word");
    report.removals.truncate(1);
    report.removals[0].removed.text = format!("before {shared} after");
    report.removals[0].kept.as_mut().unwrap().text = format!("previous {shared} afterwards");
    let page = render(&report);
    assert!(page.contains("<mark>before</mark> w0 w1"));
    assert!(page.contains("<i>182 words the same</i> w191"));
    assert!(page.contains("w199 <mark>after</mark>"));
    assert!(!page.contains("w100"));

    report.removals[0].removed.text = "x".repeat(1 << 20);
    report.removals[0].kept = None;
    report.repeated[0].example.text = "字".repeat(100_000);
    assert!(render(&report).len() < 100_000, "a text without spaces must not fill the page");
}

#[test]
fn an_empty_run_has_a_page() {
    let page = render(&Report::default());
    assert!(page.contains(">0</b><span>records read") && !page.contains("NaN"));
}

#[test]
fn what_could_not_be_checked_is_said() {
    let mut report = report_of("word");
    report.measured.clear();
    report.removals[0].kept = None;
    report.unchecked = Some("<pipe> cannot be read twice".to_owned());
    let page = render(&report);
    assert_eq!(page.matches("&lt;pipe&gt; cannot be read twice").count(), 2, "at the curve and at the removals");
    assert!(!page.contains("Dots:") && !page.contains("no kept record is near"));
}

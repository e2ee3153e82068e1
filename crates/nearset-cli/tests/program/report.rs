//! `dedup --report`: a page that says what the run did, and the same page for the same run.

use crate::support::{Workshop, corpus, jsonl, parquet};

/// What follows each occurrence of a mark, up to another mark.
fn between<'p>(page: &'p str, before: &str, after: &str) -> Vec<&'p str> {
    page.split(before).skip(1).map(|rest| rest.split_once(after).map_or(rest, |(inside, _)| inside)).collect()
}

fn number(text: &str) -> u64 {
    text.replace(',', "").parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

#[test]
fn the_page_agrees_with_the_summary() {
    let shop = Workshop::new();
    let (texts, _) = corpus(1500);
    let lines = jsonl(&texts);
    let all: Vec<&str> = lines.split_inclusive('\n').collect();
    shop.write("a.jsonl", all[..700].concat());
    shop.write("b.jsonl.zst", zstd::encode_all(all[700..].concat().as_bytes(), 3).unwrap());
    shop.write("c.jsonl", "{\"text\": 7}\nnonsense\n");
    let ran =
        shop.ok("dedup a.jsonl b.jsonl.zst c.jsonl -o out.jsonl --no-verify --report r.html --on-error skip --json");
    assert!(ran.stderr().contains("report    r.html, in "));
    let summary: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
    let page = shop.text("r.html");
    let tiles: Vec<u64> = between(&page, "<li><b>", "</b>").into_iter().take(4).map(number).collect();
    let stated = ["records", "kept", "near", "faulty"].map(|name| summary[name].as_u64().unwrap());
    assert_eq!(tiles, stated);
    assert_eq!(stated, [1502, 1000, 500, 2]);
    // The table of sources: name, read, kept, near, against, unreadable.
    let rows = between(&page, "<tr><td>", "</table>");
    for (row, source) in rows.iter().zip(summary["sources"].as_array().unwrap()) {
        let cells: Vec<&str> = row.split("<td class=\"number\">").collect();
        assert_eq!(cells[0], source["name"]);
        let numbers: Vec<u64> = cells[1..6].iter().map(|cell| number(cell)).collect();
        let stated = ["records", "kept", "near", "against", "faulty"].map(|name| source[name].as_u64().unwrap());
        assert_eq!(numbers, stated, "{}", cells[0]);
    }
    // Every removal is a copy with one word of a hundred changed, which is 91 of 101 shingles shared or a few more at an end.
    assert!(page.contains("measured on all 1,500 records"));
    let similarities: Vec<f64> = between(&page, "<header><b>", "</b>").iter().map(|s| s.parse().unwrap()).collect();
    assert_eq!(similarities.len(), 24);
    assert!(similarities.is_sorted() && similarities[0] < 0.95 && similarities[0] > 0.5, "{similarities:?}");
    assert!(page.contains("<mark>changed</mark>"));
    assert!(page.contains("2 records could not be read and were left out, the first: c.jsonl:1: "));
}

#[test]
fn compared_runs_have_a_page_too() {
    let shop = Workshop::new();
    let (texts, _) = corpus(900);
    shop.write("in.jsonl", jsonl(&texts));
    for options in ["", "--keep longest", "--chain"] {
        let ran = shop.ok(&format!("dedup in.jsonl --dry-run {options} --report r.html --json --force"));
        assert!(ran.stderr().contains("report    r.html, in "));
        let summary: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
        let page = shop.text("r.html");
        let tiles: Vec<u64> = between(&page, "<li><b>", "</b>").into_iter().take(3).map(number).collect();
        assert_eq!(tiles, ["records", "kept", "near"].map(|name| summary[name].as_u64().unwrap()), "{options}");
        assert!(tiles[0] == 900 && tiles[1] + tiles[2] == 900 && tiles[2] > 250, "{options}: {tiles:?}");
        assert!(page.contains("Lost, though not near, are none below similarity 0.8.") && !page.contains("far 0.7"));
        assert!(page.contains("measured on all 900 records") && page.contains("index, "), "{options}");
        let similarities: Vec<f64> = between(&page, "<header><b>", "</b>").iter().map(|s| s.parse().unwrap()).collect();
        // Each removal stands beside a record that it was compared with, or one as near; chains lead to records that are less near.
        let least = if options == "--chain" { 0.5 } else { 0.8 };
        assert!(similarities.len() == 24 && similarities[0] >= least, "{options}: {similarities:?}");
        assert_eq!(shop.names(), ["in.jsonl", "r.html"], "a dry run writes no records");
    }
}

#[test]
fn threads_and_kills_do_not_show() {
    let shop = Workshop::new();
    let (texts, _) = corpus(3000);
    shop.write("in.jsonl", jsonl(&texts));
    let command = "dedup in.jsonl -o out.jsonl --report r.html -q";
    shop.ok(&format!("{command} --threads 1"));
    let page = shop.read("r.html");
    for threads in [2, 16] {
        shop.ok(&format!("{command} --threads {threads} --force"));
        assert!(shop.read("r.html") == page, "{threads} threads");
    }
    std::fs::remove_file(shop.path("out.jsonl")).unwrap();
    std::fs::remove_file(shop.path("r.html")).unwrap();
    for delay in (5..).step_by(15) {
        let mut child =
            shop.command(&format!("{command} --resume")).env("NEARSET_CHECKPOINT_BYTES", "50000").spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(delay));
        child.kill().unwrap();
        child.wait().unwrap();
        if shop.exists("out.jsonl") && !shop.exists("out.jsonl.resume/state.json") {
            break;
        }
    }
    // The checkpoints' distance does not decide on records, so the page is that of a run without them.
    assert!(shop.read("r.html") == page, "resumed");
    // Killed when it was done and just tidying up, it leaves an empty folder.
    let names = shop.names().into_iter().filter(|name| name != "out.jsonl.resume").collect::<Vec<_>>();
    assert_eq!(names, ["in.jsonl", "out.jsonl", "r.html"]);
}

#[test]
fn every_format_has_a_page() {
    let shop = Workshop::new();
    let (texts, _) = corpus(300);
    let rows: String = texts.iter().enumerate().map(|(i, text)| format!("{i},\"{text}\"\n")).collect();
    shop.write("in.csv", format!("id,text\n{rows}"));
    shop.write("in.jsonl.zst", zstd::encode_all(jsonl(&texts).as_bytes(), 3).unwrap());
    parquet(&shop.path("in.parquet"), &texts);
    for (input, out) in [("in.csv", "out.csv"), ("in.jsonl.zst", "out.jsonl.zst"), ("in.parquet", "out.parquet")] {
        shop.ok(&format!("dedup {input} -o {out} --report {input}.html -q"));
        let page = shop.text(&format!("{input}.html"));
        assert!(page.contains(">200</b><span>kept") && page.contains("measured on all 300 records"), "{input}");
        assert_eq!(between(&page, "<h3>removed: ", "</section>").len(), 24, "{input}");
        assert_eq!(between(&page, "<h3>kept: ", "</section>").len(), 24, "{input}");
    }
    shop.ok("dedup in.csv --dry-run --report dry.html");
    assert!(shop.text("dry.html").contains("This was a dry run"));
}

#[test]
fn texts_are_shown_and_never_obeyed() {
    let shop = Workshop::new();
    let hostile =
        "<script>alert(1)</script> <img src=x onerror=alert(1)> </p></main> &amp; one two three four five six seven";
    let record = |id: &str| serde_json::json!({ "id": id, "text": hostile }).to_string() + "\n";
    let name = "<b>bold<b>.jsonl";
    shop.write(name, [record("<i>first"), record("</article>"), record("\"onload=\"x")].concat());
    shop.ok(&format!("dedup {name} -o out.jsonl --report r.html"));
    let page = shop.text("r.html");
    for markup in ["<script", "<img", "<b>bold", "<i>first", "\"onload"] {
        assert!(!page.contains(markup), "{markup}");
    }
    assert_eq!(page.matches("</main>").count(), 1);
    for shown in ["&lt;script&gt;alert(1)&lt;/script&gt;", "&lt;b&gt;bold&lt;b&gt;.jsonl:2", "&lt;i&gt;first"] {
        assert!(page.contains(shown), "{shown}");
    }
}

#[test]
fn a_pipe_has_a_page_that_says_what_it_lacks() {
    let shop = Workshop::new();
    let (texts, _) = corpus(300);
    let ran = shop.ok_with_stdin("dedup - -o - --report r.html -q", jsonl(&texts).as_bytes());
    assert_eq!(ran.stdout().iter().filter(|&&byte| byte == b'\n').count(), 200);
    let page = shop.text("r.html");
    assert!(page.contains(">200</b><span>kept") && page.contains("&lt;stdin&gt; is a pipe and cannot be read twice"));
    assert!(!page.contains("Dots:") && page.contains("<h3>removed: "));
}

#[test]
fn what_a_filter_of_before_removed_is_counted_apart() {
    let shop = Workshop::new();
    let (texts, _) = corpus(300);
    shop.write("before.jsonl", jsonl(&texts[..100]));
    shop.write("in.jsonl", jsonl(&texts));
    shop.ok("build before.jsonl -o before.nearset --near 0.8 -q");
    let ran = shop.ok("dedup in.jsonl --dry-run --against before.nearset --report r.html --json -q");
    let summary: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
    let (near, against) = (summary["near"].as_u64().unwrap(), summary["against"][0][1].as_u64().unwrap());
    assert!(near > 20 && against >= 100);
    let page = shop.text("r.html");
    assert!(page.contains(&format!("in.jsonl: {against} near an earlier filter")));
    // Only what this run's own filter decided is compared.
    let checked = near + summary["kept"].as_u64().unwrap();
    assert!(page.contains(&format!("measured on all {checked} records")));
}

#[test]
fn a_page_appears_whole_or_not_at_all() {
    let shop = Workshop::new();
    let (texts, _) = corpus(30);
    shop.write("in.jsonl", jsonl(&texts));
    shop.write("bad.jsonl", format!("{}nonsense\n", jsonl(&texts)));
    for (arguments, why) in [
        ("dedup bad.jsonl -o out.jsonl --report r.html", "bad.jsonl:31:"),
        ("dedup in.jsonl -o out.jsonl --report in.jsonl --force", "is also an input"),
        ("dedup in.jsonl -o out.jsonl --report out.jsonl", "named twice"),
        ("dedup in.jsonl -o out.jsonl --report nowhere/r.html", "does not exist"),
    ] {
        let ran = shop.run(arguments);
        assert_eq!(ran.code(), 1, "{arguments}");
        assert!(ran.stderr().contains(why), "{arguments}: {}", ran.stderr());
        assert_eq!(shop.names(), ["bad.jsonl", "in.jsonl"], "{arguments}");
    }
}

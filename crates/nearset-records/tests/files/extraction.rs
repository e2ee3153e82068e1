//! Fields of JSON lines: strict, and every fault with its place.

use nearset_records::{Fields, ItemField};
use proptest::prelude::*;

use crate::support::*;

/// The records of a JSONL file, error messages without the file's path.
fn extract_lines(bytes: impl AsRef<[u8]>, fields: &Fields) -> Vec<Result<(String, String), String>> {
    let folder = Folder::new();
    let path = folder.write("a.jsonl", bytes);
    let place = format!("{}:", path.display());
    let strip = |text: String| text.strip_prefix(&place).map(str::to_owned).unwrap_or(text);
    records(&read(&path, fields), fields)
        .into_iter()
        .map(|record| record.map(|(id, item)| (strip(id), item)).map_err(strip))
        .collect()
}

fn text(line: &str) -> Result<String, String> {
    extract_lines(line, &text_fields()).remove(0).map(|(_, text)| text)
}

fn text_at(line: &str, field: &str) -> Result<String, String> {
    extract_lines(line, &Fields::new(field, ItemField::Text)).remove(0).map(|(_, text)| text)
}

#[test]
fn escapes_are_decoded() {
    assert_eq!(text(r#"{"text":"plain"}"#).unwrap(), "plain");
    assert_eq!(text(r#"{"text":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"}"#).unwrap(), "\"\\/\u{8}\u{c}\n\r\té😀");
    assert_eq!(text(r#"{"\u0074ext":"escaped key"}"#).unwrap(), "escaped key");
    assert_eq!(text(" \t{ \"a\" : [ 1 , { } , [ ] ] , \"text\" : \"\" } \r\n").unwrap(), "");
}

#[test]
fn ids_are_strings_or_numbers_or_the_line() {
    let lines = [
        r#"{"id":"a\tb","text":""}"#,
        r#"{"id":-1.5e3,"text":""}"#,
        r#"{"text":""}"#,
        r#"{"id":null,"text":""}"#,
        r#"{"id":{},"text":""}"#,
    ];
    let ids: Vec<String> =
        extract_lines(lines.join("\n"), &text_fields()).into_iter().map(|record| record.unwrap().0).collect();
    assert_eq!(ids, ["a\tb", "-1.5e3", "3", "4", "5"]);
}

#[test]
fn the_last_of_equal_keys_wins() {
    assert_eq!(text(r#"{"text":"first","text":"last"}"#).unwrap(), "last");
    assert!(text(r#"{"text":"first","text":1}"#).unwrap_err().contains("a number"));
}

#[test]
fn a_dotted_name_is_a_key_or_else_a_path() {
    assert_eq!(text_at(r#"{"meta":{"a":{"text":"deep"}}}"#, "meta.a.text").unwrap(), "deep");
    assert_eq!(text_at(r#"{"meta":{"a.text":"half"}}"#, "meta.a.text").unwrap(), "half");
    assert_eq!(text_at(r#"{"meta.text":"key","meta":{"text":"path"}}"#, "meta.text").unwrap(), "key");
    assert_eq!(text_at(r#"{"meta":{"text":"path"},"meta.text":"key"}"#, "meta.text").unwrap(), "key");
    assert!(text_at(r#"{"meta":1,"metatext":2}"#, "meta.text").unwrap_err().contains(r#""meta", "metatext""#));
}

#[test]
fn faults_name_line_column_and_cause() {
    let bytes = [
        &b"{\"text\":\"fine\"}\n"[..],
        b"{\"text\":\"cut\n",
        b"{\"body\":\"x\",\"title\":\"y\"}\n",
        b"{\"text\":7}\n",
        b"{\"text\":\"\xff\"}\n",
        b"{\"text\":\"a\\ud800b\"}\n",
        b"[1,2]\n",
        b"{\"text\":\"fine\"} {\"text\":\"more\"}\n",
        b"{\"text\":\"tab\there\"}\n",
        b"{\"text\":\"still fine\"}",
    ]
    .concat();
    let records = extract_lines(bytes, &text_fields());
    assert_eq!(records[0].as_ref().unwrap().1, "fine");
    assert_eq!(records[9].as_ref().unwrap().1, "still fine");
    let expected = [
        "2: column 13: invalid JSON: a control character in a string must be escaped",
        "3: no field \"text\": there are \"body\", \"title\"",
        "4: field \"text\" is a number, not a string",
        "5: invalid UTF-8 at byte 9 of the record: convert the file to UTF-8",
        "6: column 11: \\ud800 is half of a surrogate pair and stands for no character",
        "7: an array instead of a JSON object: JSON Lines has one object per line; `jq -c '.[]'` makes such lines of an array",
        "8: column 17: invalid JSON: something follows the value on its line",
        "9: column 13: invalid JSON: a control character in a string must be escaped",
    ];
    let errors: Vec<&str> = records[1..9].iter().map(|record| record.as_ref().unwrap_err().as_str()).collect();
    assert_eq!(errors, expected);
}

#[test]
fn hexadecimal_bit_strings_and_arrays_of_numbers_are_items() {
    let fields = Fields::new("hash", ItemField::Hex);
    let records = extract_lines("{\"hash\":\"f0FF\"}\n{\"hash\":\"xyz\"}\n{\"hash\":\"\\u0030f\"}", &fields);
    assert_eq!(records[0].as_ref().unwrap().1, "16 [fff0]");
    assert!(records[1].as_ref().unwrap_err().starts_with("2: field \"hash\": "), "{records:?}");
    assert_eq!(records[2].as_ref().unwrap().1, "8 [f]");

    let fields = Fields::new("vector", ItemField::Vector);
    let lines =
        ["{\"vector\":[1, -2.5,3e1]}", "[4,5]", "{\"vector\":[1,null]}", "{\"vector\":\"1\"}", "{\"vector\":[1e99]}"];
    let records = extract_lines(lines.join("\n"), &fields);
    assert_eq!(records[0].as_ref().unwrap().1, "[1.0, -2.5, 30.0]");
    assert_eq!(records[1].as_ref().unwrap().1, "[4.0, 5.0]");
    assert_eq!(records[2].as_ref().unwrap_err(), "3: field \"vector\": \"null\" is not a number");
    assert_eq!(records[3].as_ref().unwrap_err(), "4: field \"vector\" is a string, not an array of numbers");
    assert_eq!(records[4].as_ref().unwrap_err(), "5: field \"vector\": \"1e99\" is not a number");
}

#[test]
fn texts_in_lists_and_objects_are_joined_by_lines() {
    let fields = Fields::new("choices", ItemField::Texts);
    let lines = [
        r#"{"choices":["a\n","\u00e9",3]}"#,
        r#"{"choices":{"label":["A","B"],"text":["one","two"]}}"#,
        r#"{"choices":"alone"}"#,
        r#"{"choices":2.50}"#,
        r#"{"choices":[]}"#,
        r#"{"choices":null}"#,
    ];
    let records = extract_lines(lines.join("\n"), &fields);
    let texts: Vec<&str> = records[..5].iter().map(|record| record.as_ref().unwrap().1.as_str()).collect();
    assert_eq!(texts, ["a\n\n\u{e9}\n3", "A\nB\none\ntwo", "alone", "2.50", ""]);
    assert!(records[5].as_ref().unwrap_err().contains("is null, not a string, or strings in an array"), "{records:?}");
}

#[test]
fn several_fields_are_joined_unless_one_has_that_name() {
    assert_eq!(text_at(r#"{"city":"Bath","name":"A\u00efda","no":12}"#, "name,no,city").unwrap(), "A\u{ef}da 12 Bath");
    // What is empty, null or absent is left out, but something must be there.
    assert_eq!(text_at(r#"{"name":"A","street":"","city":"B","x":null}"#, "name, street,x,y,city").unwrap(), "A B");
    assert_eq!(text_at(r#"{"name":""}"#, "name,street").unwrap(), "");
    assert_eq!(text_at(r#"{"at":{"city":"B"},"a":"x"}"#, "a,at.city").unwrap(), "x B");
    assert_eq!(text_at(r#"{"a,b":"both","a":"x","b":"y"}"#, "a,b").unwrap(), "both");
    assert!(text_at(r#"{"text":"t"}"#, "name,street").unwrap_err().contains("\"name,street\""));
    assert!(text_at(r#"{"name":["A"],"street":"s"}"#, "name,street").unwrap_err().contains("\"name\" is an array"));

    let folder = Folder::new();
    let joined = |name: &str, bytes: &str, field: &str| {
        let fields = Fields::new(field, ItemField::Text);
        let path = folder.write(name, bytes);
        records(&read(&path, &fields), &fields)
    };
    let table = "id,name,street,city\n1,\"A \"\"B\"\"\",,Bath\n2,C,\"D, E\",F\n3,,,\n";
    let found = joined("a.csv", table, "city,name,street");
    let expected = [("1", "Bath A \"B\""), ("2", "F C D, E"), ("3", "")];
    assert_eq!(found, expected.map(|(id, text)| Ok((id.to_owned(), text.to_owned()))));
    // A header with a space behind each comma.
    let found = joined("b.csv", "id, name, city\n7,A,B\n", "name,city");
    assert_eq!(found, [Ok(("7".to_owned(), "A B".to_owned()))]);
    let found = joined("c.tsv", "id\ta,b\ta\tb\n1\tboth\tx\ty\n", "a,b");
    assert_eq!(found, [Ok(("1".to_owned(), "both".to_owned()))]);
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| format!("{{\"text\":\"t\",\"x\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(text(&nested(100)).is_ok());
    assert!(text(&nested(100_000)).unwrap_err().contains("nested too deep"));
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        ".{0,80}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::vec(("[a-c\"\\\\é\n]{0,3}", inner), 0..5)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_damaged_line_is_refused_exactly_when_serde_json_refuses_it(
        text in ".{0,100}",
        other in json(),
        cut in any::<prop::sample::Index>(),
        inserted in prop::sample::select(vec!["", "\"", "\\", "{", "}", "[", "]", ",", ":", "0", "1", "-", ".", "e", "\\u12", "t", " ", "\t", "\u{1}"]),
        removed in 0usize..2,
        tail_first in any::<bool>(),
    ) {
        let (text, other) = (serde_json::Value::from(text), other);
        let line = if tail_first {
            format!("{{\"x\":{other},\"text\":{text}}}")
        } else {
            format!("{{\"text\":{text},\"x\":{other}}}")
        };
        let mut at = cut.index(line.len());
        while !line.is_char_boundary(at) {
            at -= 1;
        }
        let mut rest = line[at..].chars();
        for _ in 0..removed {
            rest.next();
        }
        let damaged = format!("{}{inserted}{}", &line[..at], rest.as_str());
        let truth = serde_json::from_str::<serde_json::Value>(&damaged);
        let ours = extract_lines(&damaged, &text_fields());
        match truth {
            // Numbers out of range and half surrogate pairs in fields that nobody asked for are let through.
            Err(error) if ["out of range", "surrogate", "hex escape"].iter().any(|soft| error.to_string().contains(soft)) => {}
            Err(error) => prop_assert!(ours.is_empty() || ours[0].is_err(), "{damaged:?}: {error}"),
            Ok(serde_json::Value::Object(object)) => match object.get("text") {
                Some(serde_json::Value::String(text)) => {
                    prop_assert_eq!(ours[0].as_ref().map(|(_, text)| text), Ok(text), "{:?}", damaged);
                }
                _ => prop_assert!(ours[0].is_err()),
            },
            Ok(_) => prop_assert!(ours[0].is_err()),
        }
    }
}

//! Dependencies point one way: the order is read from ARCHITECTURE.md, what points where from the sources.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The groups of an order such as "`a`, `b` ← `c`", lowest first: what is in one group does not see each other.
fn order(starts: &str) -> Vec<Vec<String>> {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let map = map.split_once(starts).unwrap_or_else(|| panic!("ARCHITECTURE.md says no more: {starts}")).1;
    let (order, _) = map.split_once(':').unwrap();
    order.split('←').map(|group| group.split('`').skip(1).step_by(2).map(str::to_owned).collect()).collect()
}

fn rank(order: &[Vec<String>], name: &str) -> usize {
    let rank = order.iter().position(|group| group.iter().any(|known| known == name));
    rank.unwrap_or_else(|| panic!("ARCHITECTURE.md gives {name} no place among {order:?}"))
}

/// Panics where one of the edges does not point down.
fn check(order: &[Vec<String>], edges: &BTreeMap<(String, String), String>) {
    let wrong: Vec<String> = edges
        .iter()
        .filter(|((from, to), _)| from != to && rank(order, to) >= rank(order, from))
        .map(|((from, to), place)| format!("{from} uses {to}: {place}"))
        .collect();
    assert!(wrong.is_empty(), "against the order of ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

/// All Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// A file without comments and without what is compiled for tests only, which may look at everything.
fn code(path: &Path) -> String {
    let is_test = |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs" || part == "laws.rs";
    let below = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap_or(path);
    if below.iter().any(is_test) {
        return String::new();
    }
    let text = fs::read_to_string(path).unwrap();
    let (mut code, mut lines) = (String::new(), text.lines());
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        if line == "#[cfg(test)]" {
            // An item ends with its line, or where a brace stands as far left as the item does.
            let first = lines.next().unwrap_or_default();
            if !first.ends_with(';') {
                lines.by_ref().find(|line| *line == "}");
            }
            continue;
        }
        code.push_str(line);
        code.push('\n');
    }
    code
}

/// The names that follow `crate::`, alone or in braces.
fn names_of_crate(code: &str) -> Vec<String> {
    let identifier = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut names = Vec::new();
    for (at, start) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + start.len()..];
        let Some(braces) = rest.strip_prefix('{') else {
            names.push(identifier(rest));
            continue;
        };
        let (mut depth, mut begins) = (0, true);
        for (i, c) in braces.char_indices() {
            match c {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if begins && depth == 0 && !c.is_whitespace() => {
                    names.push(identifier(&braces[i..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    names
}

#[test]
fn modules_of_the_library_point_one_way() {
    let order = order("Within the library, ");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    // What the crate's root has from a module is that module's.
    let mut homes = BTreeMap::new();
    for line in fs::read_to_string(folder.join("lib.rs")).unwrap().replace('\n', " ").split(';') {
        let Some((module, names)) = line.trim().strip_prefix("pub use ").and_then(|rest| rest.split_once("::")) else {
            continue;
        };
        for name in names.trim_matches(['{', '}']).split(',') {
            homes.insert(name.trim().to_owned(), module.to_owned());
        }
    }
    let mut edges = BTreeMap::new();
    for path in sources(&folder) {
        let inside = path.strip_prefix(&folder).unwrap();
        let module = inside.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        for name in names_of_crate(&code(&path)) {
            let used = homes.get(&name).unwrap_or(&name).clone();
            edges.entry((module.to_owned(), used)).or_insert_with(|| format!("{name} in {}", inside.display()));
        }
    }
    assert!(edges.len() > 20, "the sources were not read: {edges:?}");
    check(&order, &edges);
}

#[test]
fn crates_point_one_way() {
    let order = order("Around it, ");
    let mut edges = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let depends = manifest.split("\n[").find(|section| section.starts_with("dependencies]")).unwrap_or_default();
        for line in depends.lines().filter(|line| line.starts_with("nearset")) {
            let used = line.split(['.', ' ', '=']).next().unwrap();
            edges.insert((name.clone(), used.to_owned()), line.to_owned());
        }
    }
    assert!(edges.len() > 8, "the manifests were not read: {edges:?}");
    check(&order, &edges);
}

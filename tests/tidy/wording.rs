//! The wording of comments, docs, messages and names: plain sentences, and the terms of
//! `docs/terms.md`.

use std::collections::BTreeMap;

use syn::visit::Visit;

use crate::source::{File, Tree};

/// The most marked lines in 1,000 lines of a folder.
const TARGET: usize = 10;

/// The most functions of a folder whose names are bare participles; other folders have none. The numbers
/// may only be lowered.
const PARTICIPLES: [(&str, usize); 9] = [
    ("crates/derive", 1),
    ("crates/eval", 9),
    ("crates/expr", 5),
    ("crates/factor", 3),
    ("crates/import", 5),
    ("crates/python", 6),
    ("crates/reference", 13),
    ("crates/tensor", 9),
    ("python", 1),
];

/// Words that open a noun clause where a sentence needs a subject.
const OPENERS: [&str; 16] = [
    "What",
    "Whose",
    "Which",
    "Whoever",
    "Who",
    "Whether",
    "Of which",
    "Of what",
    "Of those",
    "How many",
    "How much",
    "How often",
    "How far",
    "How long",
    "Where it",
    "Where the",
];

/// Words after which "is no" and "are no" are idiomatic.
const AFTER_NO: [&str; 9] =
    ["longer", "more", "one", "doubt", "need", "way", "reason", "limit", "such"];

/// Words that form a standard phrase with the verb.
const AFTER_GIVE: [&str; 2] = ["up", "way"];

/// Participles that do not end with "ed" or "ing".
const IRREGULAR: [&str; 21] = [
    "begun", "bound", "built", "done", "drawn", "found", "given", "gone", "held", "kept", "known",
    "lent", "lost", "made", "met", "seen", "sent", "taken", "told", "tried", "written",
];

/// Nouns that end like participles, standard terms, and names that Nx, Optax and the Array API standard
/// define.
const NOUNS: [&str; 21] = [
    "boxed",
    "lowering",
    "masked",
    "replicated",
    "descending",
    "done",
    "searchsorted",
    "bed",
    "building",
    "drawing",
    "embedding",
    "encoding",
    "heading",
    "padding",
    "seed",
    "sharding",
    "speed",
    "string",
    "tracing",
    "feed",
    "warning",
];

/// Folders with more marked lines than their ceilings allow, each with a few of the lines.
pub(crate) fn complaints(tree: &Tree) -> Vec<String> {
    let replaced = replaced_terms(tree);
    let mut complaints = Vec::new();
    for (folder, found) in by_folder(tree, &replaced) {
        if found.marked.len() * 1000 > TARGET * found.lines {
            let (marked, lines) = (found.marked.len(), found.lines);
            complaints
                .push(format!("{folder}: {marked} lines of {lines}, more than {TARGET} in 1,000"));
            complaints.extend(found.marked.into_iter().take(20));
        }
    }
    complaints
}

/// The marked lines in 1,000 lines of each folder.
pub(crate) fn densities(tree: &Tree) -> Vec<(String, usize)> {
    let replaced = replaced_terms(tree);
    let density = |found: &Found| (found.marked.len() * 1000).div_ceil(found.lines.max(1));
    by_folder(tree, &replaced)
        .iter()
        .map(|(folder, found)| (folder.clone(), density(found)))
        .collect()
}

#[derive(Default)]
struct Found {
    lines: usize,
    marked: Vec<String>,
}

fn by_folder(tree: &Tree, replaced: &[(String, String)]) -> BTreeMap<String, Found> {
    let mut folders: BTreeMap<String, Found> = BTreeMap::new();
    // Two files name the words that all other files avoid, and one repeats messages of the sources.
    let lists = ["docs/terms.md", "docs/reference/errors.md", "tests/tidy/wording.rs"];
    let read = |file: &&File| {
        ["rs", "py", "md", "toml"].iter().any(|kind| file.is(kind))
            && !lists.contains(&file.path.as_str())
    };
    for file in tree.files.iter().filter(read) {
        let found = folders.entry(folder_of(&file.path)).or_default();
        found.lines += file.text.lines().count();
        for (number, prose) in prose(file) {
            if let Some(reason) = reason_of(&prose, replaced) {
                found.marked.push(format!("{}:{number}: {reason}: {prose}", file.path));
            }
        }
    }
    folders
}

/// The crate of a file, or its top folder; files of the root are one folder.
fn folder_of(path: &str) -> String {
    let mut parts = path.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("crates"), Some(name), Some(_)) => format!("crates/{name}"),
        (Some(top), Some(_), _) => top.to_owned(),
        _ => "root".to_owned(),
    }
}

/// The terms that `docs/terms.md` lists as replaced, in lower case, with their replacements.
fn replaced_terms(tree: &Tree) -> Vec<(String, String)> {
    let page = tree.find("docs/terms.md").expect("docs/terms.md exists");
    let (_, section) =
        page.text.split_once("## Replaced terms").expect("the page lists replaced terms");
    let rows =
        section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| instead"));
    let mut terms = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [olds, new] = cells[..] else { panic!("a row of replaced terms has two cells: {row}") };
        terms.extend(olds.split(", ").map(|old| (old.to_lowercase(), new.to_owned())));
    }
    assert!(!terms.is_empty(), "docs/terms.md lists no replaced terms");
    terms
}

/// The reason to mark a line of prose.
fn reason_of(prose: &str, replaced: &[(String, String)]) -> Option<String> {
    let start = prose.trim_start_matches(|c: char| !c.is_alphanumeric());
    let opens = |word: &&&str| start.strip_prefix(**word).is_some_and(|rest| rest.starts_with(' '));
    if let Some(word) = OPENERS.iter().find(opens).filter(|_| !prose.contains('?')) {
        return Some(format!("opens with {word:?}; start with a noun or an imperative"));
    }
    let lower = prose.to_lowercase();
    for verb in ["is no ", "are no ", "was no ", "were no ", "be no "] {
        if let Some(at) = find_words(&lower, verb.trim_end()) {
            let next = lower[at + verb.len() - 1..].trim_start();
            if !AFTER_NO.iter().any(|word| next.starts_with(word)) {
                return Some(format!("{verb:?}: write \"not a\""));
            }
        }
    }
    let is_used = |old: &str| {
        let rest = find_words(&lower, old).map(|at| lower[at + old.len()..].trim_start());
        rest.is_some_and(|rest| !AFTER_GIVE.iter().any(|word| rest.starts_with(word)))
    };
    let (old, new) = replaced.iter().find(|(old, _)| is_used(old))?;
    Some(format!("{old:?}: write {new:?}"))
}

/// The offset of whole words in a text.
fn find_words(text: &str, words: &str) -> Option<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '`';
    text.match_indices(words).map(|(at, _)| at).find(|at| {
        let (before, after) = (&text[..*at], &text[at + words.len()..]);
        !before.ends_with(is_word) && !after.starts_with(is_word)
    })
}

/// The lines of a file that are read as prose, with their numbers: comments, docs and long strings.
fn prose(file: &File) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let (mut in_string, mut in_code) = (false, false);
    for (index, line) in file.text.lines().enumerate() {
        let trimmed = line.trim();
        let found = if file.is("md") {
            let fence = trimmed.starts_with("```");
            in_code ^= fence;
            if in_code || fence { String::new() } else { trimmed.to_owned() }
        } else if file.is("rs") {
            comment(line, "//").trim_start_matches(['/', '!']).to_owned() + &strings(line)
        } else {
            let quotes = line.matches("\"\"\"").count();
            let inside = in_string || quotes > 0;
            in_string ^= quotes % 2 == 1;
            let example = trimmed.starts_with(">>>") || trimmed.starts_with("... ");
            if inside && !example {
                trimmed.replace("\"\"\"", "")
            } else {
                comment(line, "#").to_owned() + &strings(line)
            }
        };
        if !found.trim().is_empty() {
            lines.push((index + 1, found));
        }
    }
    lines
}

/// The comment of a line.
fn comment<'a>(line: &'a str, mark: &str) -> &'a str {
    line.find(mark)
        .filter(|at| !line[..*at].ends_with(':'))
        .map_or("", |at| line[at + mark.len()..].trim())
}

/// The string literals of a line that are long enough to be sentences.
fn strings(line: &str) -> String {
    if line.trim_start().starts_with("//") || line.trim_start().starts_with('#') {
        return String::new();
    }
    let quoted =
        line.split('"').skip(1).step_by(2).filter(|text| text.len() >= 20 && text.contains(' '));
    quoted.fold(String::new(), |all, text| all + " " + text)
}

/// Functions whose names are bare participles, in folders that have more of them than allowed.
pub(crate) fn participles(tree: &Tree) -> Vec<String> {
    let mut folders: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let is_source =
        |file: &&File| file.path.contains("/src/") || file.path.starts_with("python/nxla/");
    for file in tree.files.iter().filter(is_source) {
        let names: Vec<String> = if file.is("rs") {
            let mut functions = Functions(Vec::new());
            functions.visit_file(&file.parse());
            functions.0
        } else if file.is("py") {
            python_functions(&file.text).map(str::to_owned).collect()
        } else {
            continue;
        };
        let found = names.into_iter().filter(|name| is_participle(name));
        let found = found.map(|name| format!("{}: {name}", file.path));
        folders.entry(folder_of(&file.path)).or_default().extend(found);
    }
    let mut complaints = Vec::new();
    for (folder, found) in folders {
        let known = PARTICIPLES.iter().find(|(name, _)| *name == folder);
        let most = known.map_or(0, |(_, most)| *most);
        if found.len() > most {
            complaints.push(format!(
                "{folder}: {} names are bare participles, at most {most} may be:",
                found.len()
            ));
            complaints.extend(found);
        }
    }
    complaints
}

/// The functions and methods of a Python module; functions inside functions are left out.
fn python_functions(text: &str) -> impl Iterator<Item = &str> {
    let mut in_class = false;
    text.lines().filter_map(move |line| {
        let indent = line.len() - line.trim_start().len();
        if indent == 0 && !line.is_empty() && !line.starts_with([')', '#', '@']) {
            in_class = line.starts_with("class ");
        }
        let is_seen = indent == 0 || (indent == 4 && in_class);
        let name = line.trim_start().strip_prefix("def ").filter(|_| is_seen)?;
        name.split('(').next()
    })
}

/// The names of functions and methods, also of functions inside functions.
struct Functions(Vec<String>);

impl<'ast> Visit<'ast> for Functions {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.0.push(signature.ident.to_string());
    }
}

/// A single word that is a participle; `is_shared` and `shared_axes` are not.
fn is_participle(name: &str) -> bool {
    let ends = name.ends_with("ed") || name.ends_with("ing");
    !name.contains('_') && !NOUNS.contains(&name) && (ends || IRREGULAR.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(prose: &str) -> Option<String> {
        reason_of(
            prose,
            &[("truth value", "boolean"), ("give", "return")]
                .map(|(old, new)| (old.into(), new.into())),
        )
    }

    #[test]
    fn marks_dialect() {
        for line in ["What is kept.", "Whether it is so.", "It is no tensor.", "A truth value."] {
            assert!(reason(line).is_some(), "{line}");
        }
        for line in [
            "What is a graph?",
            "It is no longer used.",
            "Give up.",
            "The value is true.",
            "truth_value",
        ] {
            assert_eq!(reason(line), None, "{line}");
        }
    }

    #[test]
    fn reads_prose_of_each_language() {
        let lines = |path: &str, text: &str| {
            let file = File { path: path.into(), text: text.into() };
            prose(&file).into_iter().map(|(number, _)| number).collect::<Vec<_>>()
        };
        assert_eq!(lines("a.md", "text\n```\ncode\n```\ntext"), [1, 5]);
        assert_eq!(
            lines("a.rs", "let x = 1; // why\nlet y = \"a sentence of some words\";\nf();"),
            [1, 2]
        );
        assert_eq!(
            lines("a.py", "\"\"\"Doc.\n\n>>> f()\nmore\n\"\"\"\nx = 1  # why\ny = 2"),
            [1, 4, 6]
        );
    }

    #[test]
    fn recognizes_participles() {
        for name in ["given", "joined", "running"] {
            assert!(is_participle(name), "{name}");
        }
        for name in ["sharding", "is_joined", "join", "string"] {
            assert!(!is_participle(name), "{name}");
        }
    }

    #[test]
    fn finds_participles_of_every_visibility() {
        let text =
            "fn taken() { fn kept() {} } struct A; impl A { pub fn joined() {} fn join() {} }";
        let complaints = participles(&Tree::of(&[("crates/new/src/a.rs", text)]));
        assert_eq!(
            complaints,
            [
                "crates/new: 3 names are bare participles, at most 0 may be:",
                "crates/new/src/a.rs: taken",
                "crates/new/src/a.rs: kept",
                "crates/new/src/a.rs: joined",
            ]
        );
    }
}

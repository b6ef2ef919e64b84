//! Rules for comments and docs: no references outside the project, no paths of missing files, absolute
//! links on the front page, which registries show without the other files, lines of comments that fit
//! next to code, and sections about errors that are sentences.

use crate::dependencies::code_spans;
use crate::source::{File, Tree};

/// Folders that a path in a text begins with.
const TOP_FOLDERS: [&str; 7] =
    ["benches/", "crates/", "docs/", "examples/", "python/", "tests/", "tools/"];

/// The readme of all packages.
const FRONT_PAGE: &str = "README.md";

/// The addresses of files in the branch `main`, without the address of the repository.
const VIEWS: [&str; 2] = ["/blob/main/", "/tree/main/"];

/// The address of the same files without a page around them, for images.
const RAW: &str = "https://raw.githubusercontent.com/nxla/nxla/main/";

/// The path of this module, which contains the searched strings.
const THIS: &str = "tests/tidy/text.rs";

/// Returns references to paths and trackers outside the project.
pub(crate) fn foreign_references(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.files.iter().filter(|file| file.path != THIS) {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(found) = foreign_reference(line) {
                let line = index + 1;
                complaints.push(format!("{}:{line}: mentions `{found}`", file.path));
            }
        }
    }
    complaints
}

fn foreign_reference(line: &str) -> Option<String> {
    let places = ["../shared", " shared/", "`shared/", "/work/", "/root/", "/home/"];
    if let Some(place) = places.into_iter().find(|place| line.contains(place)) {
        return Some(place.trim().to_owned());
    }
    let lower = line.to_lowercase();
    let trackers = ["issue #", "issues #", "pr #", "issues/", "pull/", "bug #"];
    trackers.into_iter().find_map(|tracker| {
        let (_, rest) = lower.split_once(tracker)?;
        rest.starts_with(|digit: char| digit.is_ascii_digit()).then(|| tracker.to_owned())
    })
}

/// The most columns of a comment.
const COMMENT_COLUMNS: usize = 120;

/// Comments of Rust files that are wider than [`COMMENT_COLUMNS`]. A row of a table cannot be wrapped.
pub(crate) fn wide_comments(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.rust() {
        for (index, line) in file.text.lines().enumerate() {
            let is_row = line.trim_start().starts_with("//! |");
            if line.trim_start().starts_with("//") && !is_row {
                let (columns, line) = (line.chars().count(), index + 1);
                if columns > COMMENT_COLUMNS {
                    let why = format!("a comment has {COMMENT_COLUMNS} columns at most");
                    complaints.push(format!("{}:{line}: {columns} columns; {why}", file.path));
                }
            }
        }
    }
    complaints
}

/// Sections about errors that do not begin with a sentence: a function returns its errors.
pub(crate) fn error_fragments(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.rust() {
        let lines = file.text.lines().map(str::trim_start);
        for (index, pair) in lines.clone().zip(lines.skip(1)).enumerate() {
            if pair.0 == "/// # Errors" && !pair.1.starts_with("/// Returns ") {
                let line = index + 2;
                complaints.push(format!("{}:{line}: must begin with \"Returns\"", file.path));
            }
        }
    }
    complaints
}

/// Paths between backticks, and relative links of Markdown, that lead nowhere.
pub(crate) fn broken_paths(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.files.iter().filter(|file| file.path != THIS) {
        for (index, line) in file.text.lines().enumerate() {
            for path in mentioned_paths(file, line) {
                if !tree.root.join(&path).exists() {
                    let line = index + 1;
                    complaints.push(format!("{}:{line}: there is no {path}", file.path));
                }
            }
        }
    }
    complaints
}

/// Links of the front page that depend on the location of the page.
pub(crate) fn relative_links(tree: &Tree) -> Vec<String> {
    let page = tree.find(FRONT_PAGE).expect("the project has a front page");
    let lines = page.text.lines().enumerate();
    lines
        .flat_map(|(index, line)| links(line).into_iter().map(move |link| (index + 1, link)))
        .filter(|(_, link)| path_in_project(link).is_none())
        .map(|(line, link)| format!("{FRONT_PAGE}:{line}: {link} is not an absolute address"))
        .collect()
}

/// Paths from the root that a line mentions; patterns such as `crates/*/src` are not paths.
fn mentioned_paths(file: &File, line: &str) -> Vec<String> {
    let is_prose = file.is("md") || line.trim_start().starts_with("//");
    if !is_prose {
        return Vec::new();
    }
    let is_path = |span: &String| {
        TOP_FOLDERS.iter().any(|folder| span.starts_with(folder))
            && !span.contains(['*', '<', '{', ' ', '…', '$'])
    };
    // A test is named by its file and its function: `tests/file.py::test_name`.
    let file_of = |span: String| span.split("::").next().unwrap_or_default().to_owned();
    let spans = code_spans(line).into_iter().filter(is_path);
    let mut paths: Vec<String> = spans.map(file_of).collect();
    if file.is("md") {
        paths.extend(links(line).into_iter().map(|link| resolve_link(file, link)));
    }
    paths
}

/// The targets of the links of a line that lead into the project, without fragments.
fn links(line: &str) -> Vec<&str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .map(|target| target.split('#').next().unwrap_or(target))
        // A target with `::` is a path of rustdoc.
        .filter(|target| !target.is_empty() && !target.contains(' '))
        .filter(|target| path_in_project(target).is_some() || !target.contains("://"))
        .filter(|target| !target.contains("::"))
        .collect()
}

/// Returns the path from the root of an address on the site of the repository.
fn path_in_project(address: &str) -> Option<&str> {
    let page = address.strip_prefix(env!("CARGO_PKG_REPOSITORY"));
    let viewed = page.and_then(|page| VIEWS.iter().find_map(|view| page.strip_prefix(view)));
    viewed.or_else(|| address.strip_prefix(RAW))
}

/// Resolves a link relative to the file that contains it.
fn resolve_link(file: &File, link: &str) -> String {
    if let Some(path) = path_in_project(link) {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = file.folder().split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_foreign_references() {
        for line in ["see ../shared/a.md", "in /root/x", "fixes issue #12", "a/issues/7"] {
            assert!(foreign_reference(line).is_some(), "{line}");
        }
        for line in ["values are shared", "a raw string r#\"1\"#", "the issue #the", "work/"] {
            assert_eq!(foreign_reference(line), None, "{line}");
        }
    }

    #[test]
    fn finds_paths() {
        let file = File { path: "docs/decisions/a.md".into(), text: String::new() };
        let line = "see [the table](../../crates/expr/src/graph/table.rs#L1), `crates/eval/src`, \
                    `crates/*/src`, `crates/eval/src/lib.rs::name`, [a site](https://example.org/a) and \
                    `cargo test`";
        assert_eq!(
            mentioned_paths(&file, line),
            ["crates/eval/src", "crates/eval/src/lib.rs", "crates/expr/src/graph/table.rs"]
        );
    }

    #[test]
    fn finds_files_in_the_repository() {
        let blob = format!("{}/blob/main/docs/ops.md", env!("CARGO_PKG_REPOSITORY"));
        let file = File { path: "docs/a.md".into(), text: String::new() };
        let line = format!("[ops]({blob}#name), ![a graph]({RAW}docs/graph.svg), [b](b.md)");
        assert_eq!(mentioned_paths(&file, &line), ["docs/ops.md", "docs/graph.svg", "docs/b.md"]);
    }

    #[test]
    fn finds_wide_comments_and_fragments() {
        let wide = format!(
            "/// {}\n//! | {} |\n/// # Errors\n/// If so.\n",
            "a".repeat(117),
            "b".repeat(117)
        );
        let full = format!("/// {}\n/// # Errors\n/// Returns an error.\n", "a".repeat(116));
        let tree = |text: &str| Tree::of(&[("a.rs", text)]);
        let found = ["a.rs:1: 121 columns; a comment has 120 columns at most"];
        assert_eq!(wide_comments(&tree(&wide)), found);
        assert_eq!(error_fragments(&tree(&wide)), ["a.rs:4: must begin with \"Returns\""]);
        assert_eq!(wide_comments(&tree(&full)), [""; 0]);
        assert_eq!(error_fragments(&tree(&full)), [""; 0]);
    }

    #[test]
    fn finds_relative_links_of_the_front_page() {
        let text = format!("\n[a](docs/a.md#b) [c]({RAW}c) [d](https://example.org) [e](#e)");
        let tree = Tree::of(&[(FRONT_PAGE, &text)]);
        assert_eq!(relative_links(&tree), ["README.md:2: docs/a.md is not an absolute address"]);
    }
}

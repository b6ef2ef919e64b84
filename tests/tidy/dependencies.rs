//! The crate table of `ARCHITECTURE.md` is the list of dependencies between crates: Cargo would
//! accept any new edge, so this test is what keeps the layers apart.
//!
//! Dependencies of tests do not count. For example, tests of `grad` use `eval`, but `grad` does not.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::source::Tree;

/// For each crate, the crates it uses, by folder name.
pub(crate) type Edges = BTreeMap<String, BTreeSet<String>>;

/// Returns the differences between the table and the manifests.
pub(crate) fn complaints(tree: &Tree) -> Vec<String> {
    let Some(architecture) = tree.find("ARCHITECTURE.md") else {
        return vec!["ARCHITECTURE.md is missing".into()];
    };
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(&tree.root)
        .output()
        .expect("cargo runs, since it runs this test");
    let metadata = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    compare(&documented(&architecture.text, "crate"), &declared(&metadata))
}

/// The rows of the first table whose header begins with this word and ends with `may use`.
pub(crate) fn documented(text: &str, what: &str) -> Edges {
    let is_header =
        |cells: &Vec<&str>| cells.first() == Some(&what) && cells.last() == Some(&"may use");
    text.lines()
        .map(cells)
        .skip_while(|cells| !is_header(cells))
        .skip(2)
        .take_while(|cells| !cells.is_empty())
        .filter_map(|cells| Some((code_spans(cells.first()?).pop()?, code_spans(cells.last()?))))
        .map(|(name, uses)| (name, uses.into_iter().collect()))
        .collect()
}

/// The cells of a line of a Markdown table.
fn cells(line: &str) -> Vec<&str> {
    let Some(row) = line.trim().strip_prefix('|') else { return Vec::new() };
    row.trim_end_matches('|').split('|').map(str::trim).collect()
}

/// Returns the strings between backticks.
pub(crate) fn code_spans(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The normal dependencies between the packages in `crates/`.
pub(crate) fn declared(metadata: &Value) -> Edges {
    let packages: &[Value] = metadata["packages"].as_array().map_or(&[], Vec::as_slice);
    let folder_of: BTreeMap<&str, &str> = packages
        .iter()
        .filter_map(|package| {
            let manifest = package["manifest_path"].as_str()?;
            let (_, folder) = manifest.strip_suffix("/Cargo.toml")?.rsplit_once("/crates/")?;
            Some((package["name"].as_str()?, folder))
        })
        .collect();
    packages
        .iter()
        .filter_map(|package| {
            let name = folder_of.get(package["name"].as_str()?)?;
            let uses = package["dependencies"].as_array()?.iter().filter_map(|dependency| {
                let is_normal = dependency["kind"].is_null();
                let used = folder_of.get(dependency["name"].as_str()?)?;
                is_normal.then(|| (*used).to_owned())
            });
            Some(((*name).to_owned(), uses.collect()))
        })
        .collect()
}

/// Returns the packages whose library `cargo bench` would run as a test program, which refuses the
/// arguments of criterion.
pub(crate) fn benched_libraries(tree: &Tree) -> Vec<String> {
    let manifests = tree.files.iter().filter(|file| file.path.ends_with("Cargo.toml"));
    manifests
        .filter(|file| file.text.contains("[package]") && !file.path.starts_with("fuzz/"))
        .filter(|file| {
            let library = file.text.split("[lib]\n").nth(1).unwrap_or_default();
            !library.split("\n[").next().unwrap_or_default().contains("bench = false")
        })
        .map(|file| format!("{}: [lib] must have `bench = false`", file.path))
        .collect()
}

/// Where tests would have dependencies of the compiled module built a second time: the same crate with
/// other features is another crate, and so is everything above it.
pub(crate) fn built_twice(tree: &Tree) -> Vec<String> {
    let module = built(tree, &["--package=nxla-python", "--edges=normal,build"]);
    let Some(tested) = tree.find("Makefile").and_then(|makefile| {
        makefile.text.lines().find_map(|line| line.strip_prefix("TESTED := "))
    }) else {
        return vec!["Makefile does not say what is TESTED".into()];
    };
    let selection: Vec<&str> =
        tested.split_whitespace().chain(["--edges=normal,build,dev"]).collect();
    let tests = built(tree, &selection);
    let complaint =
        |line| format!("crates/python is compiled with {line}, tests with other features");
    module.difference(&tests).map(complaint).collect()
}

/// Each crate that such a selection builds, with its features.
fn built(tree: &Tree, selection: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--prefix=none", "--format={p} {f}"])
        .args(selection)
        .current_dir(&tree.root)
        .output()
        .expect("cargo runs, since it runs this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("cargo writes text");
    lines.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

/// One complaint for each crate or edge that is on one side only.
pub(crate) fn compare(documented: &Edges, declared: &Edges) -> Vec<String> {
    let none = BTreeSet::new();
    let names: BTreeSet<&String> = documented.keys().chain(declared.keys()).collect();
    let mut complaints = Vec::new();
    for name in names {
        if !declared.contains_key(name) {
            complaints.push(format!("ARCHITECTURE.md lists a crate `{name}` that does not exist"));
        }
        if !documented.contains_key(name) {
            complaints.push(format!("ARCHITECTURE.md does not list the crate `{name}`"));
        }
        let may_use = documented.get(name).unwrap_or(&none);
        let uses = declared.get(name).unwrap_or(&none);
        complaints.extend(uses.difference(may_use).map(|used| {
            format!("`{name}` must not depend on `{used}`: ARCHITECTURE.md does not allow it")
        }));
        complaints.extend(may_use.difference(uses).map(|used| {
            format!("`{name}` does not depend on `{used}`, as ARCHITECTURE.md says it does")
        }));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TABLE: &str = "
Text before the table.

| crate | responsibility | may use |
|---|---|---|
| `tensor` | data | — |
| `expr` | graphs | `tensor` |
| `grad` | derivatives | `expr`, `tensor` |

| crate | another table | may use |
|---|---|---|
| `other` | not part of it | `grad` |
";

    /// A workspace of three crates; `grad` is tested with `eval`-like help from `tensor`.
    fn metadata(expr_uses: &[&str]) -> Value {
        let package = |name: &str, dependencies: Vec<Value>| {
            json!({
                "name": format!("nxla-{name}"),
                "manifest_path": format!("/anywhere/crates/{name}/Cargo.toml"),
                "dependencies": dependencies,
            })
        };
        let normal = |name: &&str| json!({ "name": format!("nxla-{name}"), "kind": null });
        json!({ "packages": [
            package("tensor", vec![json!({ "name": "half", "kind": null })]),
            package("expr", expr_uses.iter().map(normal).collect()),
            package("grad", ["expr", "tensor"].iter().map(normal).collect()),
        ]})
    }

    #[test]
    fn accepts_dependencies_of_the_table() {
        let edges = declared(&metadata(&["tensor"]));
        assert_eq!(compare(&documented(TABLE, "crate"), &edges), [""; 0]);
    }

    #[test]
    fn rejects_forbidden_edges() {
        let edges = declared(&metadata(&["tensor", "grad"]));
        assert_eq!(
            compare(&documented(TABLE, "crate"), &edges),
            ["`expr` must not depend on `grad`: ARCHITECTURE.md does not allow it"]
        );
    }

    #[test]
    fn rejects_missing_edges() {
        let edges = declared(&metadata(&[]));
        assert_eq!(
            compare(&documented(TABLE, "crate"), &edges),
            ["`expr` does not depend on `tensor`, as ARCHITECTURE.md says it does"]
        );
    }

    #[test]
    fn rejects_crates_without_rows() {
        let table = TABLE.replace("| `expr` | graphs | `tensor` |\n", "");
        let complaints = compare(&documented(&table, "crate"), &declared(&metadata(&["tensor"])));
        assert_eq!(complaints[0], "ARCHITECTURE.md does not list the crate `expr`");
    }

    #[test]
    fn ignores_dependencies_of_tests() {
        let mut metadata = metadata(&["tensor"]);
        let dev = json!({ "name": "nxla-grad", "kind": "dev" });
        metadata["packages"][1]["dependencies"].as_array_mut().expect("a list").push(dev);
        assert_eq!(compare(&documented(TABLE, "crate"), &declared(&metadata)), [""; 0]);
    }
}

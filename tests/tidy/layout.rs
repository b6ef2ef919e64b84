//! Rules for the locations of files: equal families in every layer, and no file outside the build.

use std::collections::BTreeSet;

use syn::{Item, ItemMod};

use crate::source::{File, Tree};

/// The families of ops. `ls` of any layer shows the same names.
pub(crate) const FAMILIES: [&str; 9] = [
    "create",
    "elementwise",
    "movement",
    "reduce",
    "window",
    "contract",
    "index",
    "linalg",
    "control",
];

/// The folders that hold one file, or one folder, per family.
pub(crate) const LAYERS: [&str; 9] = [
    "crates/expr/src/infer",
    "crates/expr/src/build",
    "crates/expr/src/batch",
    "crates/eval/src/kernels",
    "crates/reference/src",
    "crates/grad/src/rules",
    "crates/stablehlo/src",
    "crates/nxla/src/ops",
    "crates/python/src/ops",
];

/// Families that a layer has no file for.
pub(crate) fn missing_families(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for layer in LAYERS {
        for family in FAMILIES {
            // The evaluator implements control flow by instructions instead of kernels.
            if (layer, family) == ("crates/eval/src/kernels", "control") {
                continue;
            }
            let names = ["rs", "py"].map(|ending| format!("{layer}/{family}.{ending}"));
            let folder = format!("{layer}/{family}/");
            let exists = |file: &File| names.contains(&file.path) || file.path.starts_with(&folder);
            if !tree.files.iter().any(exists) {
                complaints.push(format!("{layer} has no file for the family {family}"));
            }
        }
    }
    complaints
}

/// Rust files that no `mod` brings into a crate: the compiler never sees them.
pub(crate) fn dead_files(tree: &Tree) -> Vec<String> {
    let modules: BTreeSet<String> = tree.rust().flat_map(declared_modules).collect();
    tree.rust()
        .filter(|file| !is_root(file) && !modules.contains(&module_path(file)))
        .map(|file| format!("{}: no `mod` names this file", file.path))
        .collect()
}

/// Returns whether a file is a target of Cargo, or a file of `ui`, which must not compile.
fn is_root(file: &File) -> bool {
    let folder = file.folder().rsplit('/').next().unwrap_or_default();
    matches!(file.stem(), "lib" | "main" | "build")
        || matches!(folder, "tests" | "benches" | "examples" | "bin" | "ui")
}

/// `a/b` for both `a/b.rs` and `a/b/mod.rs`.
fn module_path(file: &File) -> String {
    match file.stem() {
        "mod" => file.folder().to_owned(),
        stem => format!("{}/{stem}", file.folder()),
    }
}

/// The module paths of the files that a file declares as its modules.
fn declared_modules(file: &File) -> Vec<String> {
    let folder = match file.stem() {
        _ if is_root(file) => file.folder().to_owned(),
        "mod" => file.folder().to_owned(),
        stem => format!("{}/{stem}", file.folder()),
    };
    let mut found = Vec::new();
    collect_modules(&file.parse().items, &folder, &mut found);
    found
}

fn collect_modules(items: &[Item], folder: &str, found: &mut Vec<String>) {
    for item in items {
        let Item::Mod(ItemMod { ident, content, .. }) = item else { continue };
        let path = format!("{folder}/{ident}");
        match content {
            Some((_, items)) => collect_modules(items, &path, found),
            None => found.push(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_undeclared_files() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "mod b; mod d { mod e; }"),
            ("crates/a/src/b.rs", "mod c;"),
            ("crates/a/src/b/c.rs", ""),
            ("crates/a/src/b/lost.rs", ""),
            ("crates/a/src/d/e.rs", ""),
            ("crates/a/tests/one.rs", "mod common;"),
            ("crates/a/tests/common/mod.rs", ""),
        ]);
        assert_eq!(dead_files(&tree), ["crates/a/src/b/lost.rs: no `mod` names this file"]);
    }

    #[test]
    fn finds_layers_without_families() {
        let mut paths: Vec<(String, &str)> = Vec::new();
        for layer in LAYERS {
            for family in FAMILIES {
                paths.push((format!("{layer}/{family}.rs"), ""));
            }
        }
        paths[9].0 = "crates/expr/src/build/create/mod.rs".into();
        let all: Vec<(&str, &str)> = paths.iter().map(|(path, text)| (&**path, *text)).collect();
        assert_eq!(missing_families(&Tree::of(&all)), [""; 0]);
        assert_eq!(
            missing_families(&Tree::of(&all[1..])),
            ["crates/expr/src/infer has no file for the family create"]
        );
    }
}

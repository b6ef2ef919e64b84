//! Leaving out an arm for a new op does not compile.
//!
//! The crates that hold rules are copied, a row is added to the copy's op table and nothing else,
//! and the copy is checked. The compiler must ask for an arm in exactly the files that
//! `docs/add-an-op.md` says it asks in: a rule that swallows unknown ops would go missing here,
//! and so would a recipe that has grown old.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use serde_json::Value;

/// The table, and every layer that has rules of its own.
const CRATES: [&str; 5] = ["tensor", "expr", "grad", "eval", "stablehlo"];

/// The row above which the new one goes.
const PRESENT_ROW: &str = r#"Cbrt cbrt "cbrt""#;

const NEW_ROW: &str = r#"Cospi cospi "cospi" Float (Direct("chlo.cospi")) (-1.0, 1.0);
            /// Cube root, also of negative numbers.
            "#;

/// What the compiler says to a match without an arm for some value.
const NON_EXHAUSTIVE: &str = "E0004";

#[test]
fn a_new_row_asks_for_the_arms_that_the_recipe_names() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the project's folder");
    let copy = copy_crates(root)?;
    let table = copy.join("crates/expr/src/table.rs");
    let rows = fs::read_to_string(&table)?;
    assert_eq!(rows.matches(PRESENT_ROW).count(), 1, "the row to put the new one next to");
    fs::write(&table, rows.replace(PRESENT_ROW, &format!("{NEW_ROW}{PRESENT_ROW}")))?;

    let recipe = fs::read_to_string(root.join("docs/add-an-op.md"))?;
    let expected = promised_files(&recipe);
    assert!(!expected.is_empty(), "the recipe says where the compiler asks for an arm");
    let errors = check(&copy)?;
    let codes: BTreeSet<&str> = errors.iter().map(|error| error.code.as_str()).collect();
    assert_eq!(codes, BTreeSet::from([NON_EXHAUSTIVE]), "{errors:#?}");
    let found: BTreeSet<String> = errors.into_iter().map(|error| error.file).collect();
    assert_eq!(found, expected);
    Ok(())
}

/// A workspace of the crates alone. It stays where it is between runs, so that what Cargo has built
/// for it is found again.
fn copy_crates(root: &Path) -> io::Result<PathBuf> {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("add-op");
    let mut manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    // Cargo tells packages apart by their place in the workspace, which is the same here and
    // there. Another version keeps it from taking one crate for the other.
    for (key, value) in [("members", r#"["crates/*"]"#), ("version", r#""0.0.0-add-op""#)] {
        let line = manifest
            .lines()
            .find(|line| line.starts_with(&format!("{key} = ")))
            .expect("the manifest of the project has members and a version")
            .to_owned();
        manifest = manifest.replacen(&line, &format!("{key} = {value}"), 1);
    }
    fs::create_dir_all(&copy)?;
    fs::write(copy.join("Cargo.toml"), manifest)?;
    fs::copy(root.join("Cargo.lock"), copy.join("Cargo.lock"))?;
    for name in CRATES {
        let target = copy.join("crates").join(name);
        if target.exists() {
            fs::remove_dir_all(&target)?;
        }
        copy_folder(&root.join("crates").join(name), &target)?;
    }
    Ok(copy)
}

fn copy_folder(source: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let to = target.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

#[derive(Debug)]
struct CompileError {
    code: String,
    file: String,
}

/// The errors of `cargo check`, which shares what it needs with the build of this test.
fn check(workspace: &Path) -> io::Result<Vec<CompileError>> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let output = Command::new(env!("CARGO"))
        .args(["check", "--workspace", "--offline", "--keep-going", "--message-format=json"])
        .arg("--target-dir")
        .arg(target)
        .current_dir(workspace)
        .output()?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let errors: Vec<CompileError> = messages.lines().filter_map(compile_error).collect();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.is_empty(), "the copy compiles, or could not be checked at all:\n{stderr}");
    Ok(errors)
}

/// An error with a code; the closing "could not compile" has none.
fn compile_error(line: &str) -> Option<CompileError> {
    let line: Value = serde_json::from_str(line).ok()?;
    let message = line.get("message").filter(|message| message["level"] == "error")?;
    let code = message["code"]["code"].as_str()?.to_owned();
    let spans = message["spans"].as_array()?;
    let file = spans.iter().find(|span| span["is_primary"] == true)?["file_name"].as_str()?;
    Some(CompileError { code, file: file.to_owned() })
}

/// The files in those rows of the recipe's first table whose last cell is `the compiler`.
fn promised_files(recipe: &str) -> BTreeSet<String> {
    let rows = recipe.lines().skip_while(|line| !line.starts_with('|'));
    rows.take_while(|line| line.starts_with('|'))
        .filter(|row| row.trim_end_matches('|').trim_end().ends_with("| the compiler"))
        .flat_map(|row| row.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>())
        .filter(|span| span.starts_with("crates/"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_recipe() {
        let recipe = "
# A recipe

| step | file | asked for by |
|---|---|---|
| a row | `crates/expr/src/table.rs` | you |
| an arm | `crates/eval/src/a.rs`, `crates/eval/src/b.rs` in `f` | the compiler |

| another table | `crates/c.rs` | the compiler |
";
        let files = ["crates/eval/src/a.rs", "crates/eval/src/b.rs"].map(str::to_owned);
        assert_eq!(promised_files(recipe), BTreeSet::from(files));
    }
}

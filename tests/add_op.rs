//! Tests that a new op without its match arms does not compile.
//!
//! The test copies the crates with rules, adds an element-wise op and a structured op to the copy,
//! and checks the copy. The compiler must report a missing arm in exactly the files that
//! `docs/add-an-op.md` lists. The test fails if a rule has a wildcard arm, and if the page is out of
//! date.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use serde_json::Value;

/// The crate with the table of ops, and the crates with rules for ops.
const CRATES: [&str; 8] =
    ["tensor", "expr", "grad", "factor", "fourier", "eval", "reference", "stablehlo"];

/// The row of the table above which the test adds the new row.
const PRESENT_ROW: &str = r#"Cbrt cbrt "cbrt""#;

const NEW_ROW: &str = r#"Cospi cospi "cospi" Float (Direct("chlo.cospi")) 20 (-1.0, 1.0) "cospi" [];
            /// Return the cube root of each element, also of negative ones.
            "#;

/// The compiler's error code for a match with a missing arm.
const NON_EXHAUSTIVE: &str = "E0004";

#[test]
fn compile_errors_of_new_ops_match_the_recipes() -> io::Result<()> {
    let copy = copy_crates("add-op")?;
    replace(
        &copy,
        "crates/expr/src/graph/table.rs",
        PRESENT_ROW,
        &format!("{NEW_ROW}{PRESENT_ROW}"),
    )?;
    let doc = "    /// `[x]`, reversed along these axes.\n";
    let variant = format!("    /// `[x]`, rolled along these axes.\n    Roll(Axes),\n{doc}");
    replace(&copy, "crates/expr/src/graph/op.rs", doc, &variant)?;
    let family = "| $crate::Op::Reverse(_)";
    replace(
        &copy,
        "crates/expr/src/graph/family.rs",
        family,
        &format!("{family} | $crate::Op::Roll(_)"),
    )?;
    let row = promised_files("## An element-wise op", "crates/")?;
    let variant = promised_files("## A structured op", "crates/")?;
    let in_expr = |file: &&String| file.starts_with("crates/expr/");
    assert_eq!(row.iter().find(in_expr), None, "a row needs no arm in `expr`");
    // Crates that depend on `expr` cannot be checked before `expr` compiles.
    let errors = errors_of_check(&copy)?;
    assert_eq!(
        files_without_arm(&errors, "Roll"),
        variant.iter().filter(in_expr).cloned().collect()
    );
    assert_eq!(files_without_arm(&errors, "Cospi"), BTreeSet::new());
    for file in variant.iter().filter(in_expr) {
        let path = copy.join(file);
        let text = fs::read_to_string(&path)?;
        let text = text.replace("Op::Reverse(_)", "Op::Reverse(_) | Op::Roll(_)");
        fs::write(
            path,
            text.replace("Op::Reverse(axes) =>", "Op::Reverse(axes) | Op::Roll(axes) =>"),
        )?;
    }
    let errors = errors_of_check(&copy)?;
    let others = variant.iter().filter(|file| !in_expr(file)).cloned().collect();
    assert_eq!(files_without_arm(&errors, "Roll"), others);
    assert_eq!(files_without_arm(&errors, "Cospi"), row);
    Ok(())
}

/// Replaces a text that must occur exactly once.
fn replace(copy: &Path, file: &str, old: &str, new: &str) -> io::Result<()> {
    let path = copy.join(file);
    let text = fs::read_to_string(&path)?;
    assert_eq!(text.matches(old).count(), 1, "{file} has {old:?} once");
    fs::write(path, text.replace(old, new))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the project")
}

/// A workspace with only the crates under test. It has a fixed location, so that later runs reuse
/// its build outputs.
fn copy_crates(name: &str) -> io::Result<PathBuf> {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let version = format!(r#""{}+{name}""#, env!("CARGO_PKG_VERSION"));
    let mut manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    // Cargo identifies a package by its path in the workspace, which is the same for the copy. A
    // different version keeps Cargo from using files of the original crate.
    for (key, value) in [("members", r#"["crates/*"]"#), ("version", &version)] {
        let line = manifest
            .lines()
            .find(|line| line.starts_with(&format!("{key} = ")))
            .expect("the manifest of the project has members and a version")
            .to_owned();
        manifest = manifest.replacen(&line, &format!("{key} = {value}"), 1);
    }
    fs::create_dir_all(&copy)?;
    fs::write(copy.join("Cargo.toml"), manifest)?;
    fs::copy(root().join("Cargo.lock"), copy.join("Cargo.lock"))?;
    for name in CRATES {
        let target = copy.join("crates").join(name);
        if target.exists() {
            fs::remove_dir_all(&target)?;
        }
        copy_folder(&root().join("crates").join(name), &target)?;
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
    message: String,
    file: String,
}

/// Returns the errors of `cargo check`; an error other than a match without an arm fails the test.
/// The check shares compiled dependencies with the build of this test.
fn errors_of_check(workspace: &Path) -> io::Result<Vec<CompileError>> {
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
    let codes: BTreeSet<&str> = errors.iter().map(|error| error.code.as_str()).collect();
    assert_eq!(codes, BTreeSet::from([NON_EXHAUSTIVE]), "{errors:#?}");
    Ok(errors)
}

/// Returns the files in which a match has no arm for a variant.
fn files_without_arm(errors: &[CompileError], variant: &str) -> BTreeSet<String> {
    let of_variant = |error: &&CompileError| error.message.contains(&format!("::{variant}"));
    errors.iter().filter(of_variant).map(|error| error.file.clone()).collect()
}

/// An error with a code, unlike the final message "could not compile".
fn compile_error(line: &str) -> Option<CompileError> {
    let line: Value = serde_json::from_str(line).ok()?;
    let message = line.get("message").filter(|message| message["level"] == "error")?;
    let code = message["code"]["code"].as_str()?.to_owned();
    let spans = message["spans"].as_array()?;
    let file = spans.iter().find(|span| span["is_primary"] == true)?["file_name"].as_str()?;
    let text = message["message"].as_str()?.to_owned();
    Some(CompileError { code, message: text, file: file.to_owned() })
}

/// Returns the files below `folder` in a section of the page, for the rows with compiler errors.
fn promised_files(section: &str, folder: &str) -> io::Result<BTreeSet<String>> {
    let recipe = fs::read_to_string(root().join("docs/add-an-op.md"))?;
    let files = files_in(&recipe, section, folder);
    assert!(!files.is_empty(), "the recipe has a table in {section:?}");
    Ok(files)
}

fn files_in(recipe: &str, section: &str, folder: &str) -> BTreeSet<String> {
    let lines = recipe.lines().skip_while(|line| *line != section);
    let table = lines.skip_while(|line| !line.starts_with('|'));
    table
        .take_while(|line| line.starts_with('|'))
        .filter(|row| row.trim_end_matches('|').trim_end().ends_with("| the compiler"))
        .flat_map(|row| row.split('`').skip(1).step_by(2))
        .filter(|span| span.starts_with(folder))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipe_is_parsed() {
        let recipe = "
# A recipe
| step | file | asked for by |
|---|---|---|
| not this one | `crates/z.rs` | the compiler |

## One kind
Text.

| step | file | asked for by |
|---|---|---|
| a row | `crates/expr/src/graph/table.rs` | you |
| an arm | `crates/eval/src/a.rs`, `crates/eval/src/b.rs` in `f` | the compiler |

| another table | `crates/c.rs` | the compiler |
";
        let files = ["crates/eval/src/a.rs", "crates/eval/src/b.rs"].map(str::to_owned);
        assert_eq!(files_in(recipe, "## One kind", "crates/"), BTreeSet::from(files));
        assert_eq!(files_in(recipe, "## One kind", "crates/expr/"), BTreeSet::new());
    }
}

//! Compiler messages for common errors, each with a way to fix it.
//!
//! `MESSAGES=overwrite cargo test -p nxla --test ui` writes the current messages.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The crate in the workspace.
const FOLDER: &str = "crates/nxla/";

#[test]
fn compile_errors_name_a_remedy() {
    let programs = Path::new("tests/ui");
    let library = find_library(&programs.join("correct.rs"));
    let overwrite = env::var_os("MESSAGES").is_some();
    let mut differing = Vec::new();
    for program in sorted_files(programs, |name| name.ends_with(".rs")) {
        let (expected, found) = (program.with_extension("stderr"), messages(&program, &library));
        if overwrite {
            fs::write(&expected, &found).unwrap();
        }
        if fs::read_to_string(&expected).unwrap_or_default() != found {
            differing.push(format!("{}:\n{found}", program.display()));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// The library that this test was built with: the newest one that a correct program compiles with. The folder can have
/// others, with fewer features. A separate build would compile all dependencies again.
fn find_library(correct: &Path) -> PathBuf {
    let folder = env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let is_library = |name: &str| name.starts_with("libnxla-") && name.ends_with(".rlib");
    let mut libraries = sorted_files(&folder, is_library);
    libraries.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    let mut newest_first = libraries.into_iter().rev();
    newest_first.find(|library| messages(correct, library).trim().is_empty()).expect("a library")
}

/// The files of a folder whose names match, sorted.
fn sorted_files(folder: &Path, fits: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| fits(&path.file_name().unwrap().to_string_lossy())).collect();
    files.sort();
    files
}

/// The messages of the compiler about a program.
fn messages(program: &Path, library: &Path) -> String {
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let dependencies = format!("dependency={}", library.parent().unwrap().display());
    let output = Command::new(compiler)
        .args(["--edition=2024", "--emit=metadata", "--out-dir", env!("CARGO_TARGET_TMPDIR")])
        .args(["-L", &dependencies, "--extern", &format!("nxla={}", library.display())])
        .arg(Path::new(FOLDER).join(program))
        // The compiler finds the source of the library from here.
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap();
    let output = String::from_utf8(output.stderr).unwrap().replace(FOLDER, "");
    let summaries = ["error: aborting", "For more information", "Some errors have detailed"];
    let is_summary = |line: &&str| summaries.iter().any(|start| line.starts_with(start));
    let lines = output.trim_end().lines().filter(|line| !is_summary(line));
    lines.map(without_numbers).collect::<String>().trim_end().to_owned() + "\n"
}

/// Removes line numbers, their width and the number of types from a line, which depend on the library.
fn without_numbers(line: &str) -> String {
    let start = line.trim_start();
    let excerpt = start.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    match start.strip_prefix("--> ").or_else(|| start.strip_prefix("::: ")) {
        Some(place) if place.starts_with("tests/ui/") => format!(" --> {place}\n"),
        Some(place) => format!(" --> {}\n", place.split(':').next().unwrap_or_default()),
        None if excerpt.starts_with(['|', '=', '-', '+']) => format!("  {excerpt}\n"),
        None if start.starts_with("and ") && start.ends_with(" others") => {
            "    and others\n".into()
        }
        None if line.starts_with(' ') => format!("    {start}\n"),
        None => format!("{line}\n"),
    }
}

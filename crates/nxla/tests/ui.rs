//! Compiler messages for common errors, each with a way to fix it.
//!
//! `MESSAGES=overwrite cargo test -p nxla --test ui` writes the current messages.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[test]
fn compile_errors_name_a_way_out() {
    let programs = Path::new("tests/ui");
    let library = library(&programs.join("correct.rs"));
    let overwrite = env::var_os("MESSAGES").is_some();
    let mut differing = Vec::new();
    for program in sorted(programs, |name| name.ends_with(".rs")) {
        let (expected, found) = (program.with_extension("txt"), messages(&program, &library));
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
fn library(correct: &Path) -> PathBuf {
    let folder = env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let is_library = |name: &str| name.starts_with("libnxla-") && name.ends_with(".rlib");
    let mut libraries = sorted(&folder, is_library);
    libraries.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    let mut newest_first = libraries.into_iter().rev();
    newest_first.find(|library| messages(correct, library).is_empty()).expect("a library")
}

/// The files of a folder whose names fit.
fn sorted(folder: &Path, fits: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| fits(&path.file_name().unwrap().to_string_lossy())).collect();
    files.sort();
    files
}

/// The messages of the compiler, with the place of each error, and without excerpts of the program.
fn messages(program: &Path, library: &Path) -> String {
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let dependencies = format!("dependency={}", library.parent().unwrap().display());
    let output = Command::new(compiler)
        .args(["--edition=2024", "--emit=metadata", "--out-dir", env!("CARGO_TARGET_TMPDIR")])
        .args(["-L", &dependencies, "--extern", &format!("nxla={}", library.display())])
        .arg(program)
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stderr).unwrap();
    let kept = ["error", "warning", "note:", "help:", "= note:", "= help:", "--> tests/ui"];
    let lines = lines.lines().map(str::trim).filter(|line| {
        let is_count = line.starts_with("error: aborting") || line.starts_with("error: could not");
        kept.iter().any(|start| line.starts_with(start)) && !is_count
    });
    lines.map(|line| format!("{line}\n")).collect()
}

//! The files of the project: everything that git tracks or would track.

use std::path::{Path, PathBuf};
use std::process::Command;

use proc_macro2::{TokenStream, TokenTree};

/// Folders without sources, for a tree without git.
const IGNORED: [&str; 6] = [".git", ".venv", "dist", "out", "target", "__pycache__"];

/// Endings of the files that are read; the rest is data.
const TEXTS: [&str; 8] = ["md", "py", "pyi", "rs", "sh", "toml", "yml", "yaml"];

/// A text file of the project.
pub(crate) struct File {
    /// The path from the root, with `/` between its parts.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// Returns whether the file has an extension.
    pub(crate) fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// The folder that holds the file.
    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// The name without folder and ending.
    pub(crate) fn stem(&self) -> &str {
        let name = self.path.rsplit_once('/').map_or(self.path.as_str(), |(_, name)| name);
        name.rsplit_once('.').map_or(name, |(stem, _)| stem)
    }

    /// The parsed file. A file that does not parse does not compile either.
    pub(crate) fn parse(&self) -> syn::File {
        syn::parse_file(&self.text).unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }

    /// The tokens of the file: comments are not among them.
    pub(crate) fn token_stream(&self) -> TokenStream {
        self.text.parse().unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }

    /// The tokens outside and inside of groups, which include the arguments of macros. The tokens of one
    /// group are in order.
    pub(crate) fn tokens(&self) -> Vec<TokenTree> {
        let (mut streams, mut tokens) = (vec![self.token_stream()], Vec::new());
        while let Some(stream) = streams.pop() {
            for token in stream {
                match token {
                    TokenTree::Group(group) => streams.push(group.stream()),
                    token => tokens.push(token),
                }
            }
        }
        tokens
    }
}

/// The text files of the project.
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    pub(crate) files: Vec<File>,
}

impl Tree {
    /// Reads the project that this test belongs to.
    pub(crate) fn load() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .expect("these rules are a folder in a folder of the project")
            .to_path_buf();
        let mut paths = tracked(&root).unwrap_or_else(|| walk(&root));
        paths.sort_unstable();
        let files = paths
            .into_iter()
            .filter(|path| is_text(path))
            .filter_map(|path| {
                // A tracked file may be missing in the working tree.
                let text = std::fs::read_to_string(root.join(&path)).ok()?;
                Some(File { path, text })
            })
            .collect();
        Self { root, files }
    }

    /// A tree of files with these paths and contents, to test a rule.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| File { path: path.into(), text: text.into() };
        Self { root: PathBuf::new(), files: files.iter().map(file).collect() }
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is("rs"))
    }

    pub(crate) fn find(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

fn is_text(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
    path == ".ci/run" || name == "Makefile" || extension.is_some_and(|it| TEXTS.contains(&it))
}

/// Returns the tracked files, and untracked files that git does not ignore.
fn tracked(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    let listing = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !listing.is_empty())
        .then(|| listing.lines().map(str::to_owned).collect())
}

fn walk(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the project can be read").flatten() {
            let path = entry.path();
            if IGNORED.iter().any(|ignored| entry.file_name() == *ignored) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Some(path) = path.strip_prefix(root).ok().and_then(Path::to_str) {
                found.push(path.replace('\\', "/"));
            }
        }
    }
    found
}

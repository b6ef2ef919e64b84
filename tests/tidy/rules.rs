//! Rules for the contents of Rust files: a description of each module, `unsafe` only in listed files,
//! and matches that name every op.

use std::collections::BTreeSet;

use proc_macro2::TokenTree;
use syn::visit::{self, Visit};
use syn::{Arm, ExprMatch, Pat, Path};

use crate::layout::{FAMILIES, LAYERS};
use crate::source::{File, Tree};

/// The crate that talks to a C interface, and the file that shares memory with other Python
/// packages.
const UNSAFE_HOMES: [&str; 3] =
    ["crates/pjrt/", "crates/python/src/dlpack.rs", "crates/python/src/shutdown.rs"];

/// A match with at least this many ops must list all ops. A match with fewer ops only selects nodes of
/// some kinds, and may have a wildcard arm.
const DISPATCH: usize = 4;

/// Files whose first line is not a module comment.
pub(crate) fn missing_module_docs(tree: &Tree) -> Vec<String> {
    tree.rust()
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| format!("{}: the first line must be a `//!` comment", file.path))
        .collect()
}

/// `unsafe` outside its homes, and crates that do not forbid it.
pub(crate) fn misplaced_unsafe(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.rust() {
        if UNSAFE_HOMES.iter().any(|home| file.path.starts_with(home)) {
            continue;
        }
        if let Some(line) = line_of_unsafe(file) {
            complaints.push(format!("{}:{line}: `unsafe` belongs into crates/pjrt", file.path));
        }
        let is_crate = file.path.starts_with("crates/") && file.path.ends_with("/src/lib.rs");
        let has_unsafe_module = file.path.starts_with("crates/python/");
        if is_crate && !has_unsafe_module && !file.text.contains("#![forbid(unsafe_code)]") {
            complaints.push(format!("{}: `#![forbid(unsafe_code)]` is missing", file.path));
        }
    }
    complaints
}

/// Items that the bindings must not define, and their locations.
const RUNTIME_ONLY: [(&str, &str); 6] = [
    ("Condvar", "waiting for each other"),
    ("VecDeque", "queues"),
    ("spawn", "threads"),
    ("mpsc", "queues between threads"),
    ("StageRun", "schedules"),
    ("CacheKey", "caches"),
];

/// Machinery in the bindings that belongs to the runtime: caches, schedules, streams, signatures.
pub(crate) fn deciding_bindings(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.rust().filter(|file| file.path.starts_with("crates/python/src/")) {
        let words: BTreeSet<String> = file.tokens().iter().map(ToString::to_string).collect();
        for (word, what) in RUNTIME_ONLY.iter().filter(|(word, _)| words.contains(*word)) {
            complaints.push(format!(
                "{}: `{word}` does not belong into the bindings; {what} are the runtime's",
                file.path
            ));
        }
    }
    complaints
}

/// The first line with the keyword; looks into macros, but not into comments and strings.
fn line_of_unsafe(file: &File) -> Option<usize> {
    let is_unsafe = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "unsafe");
    let found = file.tokens().into_iter().filter(is_unsafe);
    found.map(|token| token.span().start().line).min()
}

/// Returns matches of family files that name several ops and have a wildcard arm: the compiler would
/// not report the missing rule of a new op.
pub(crate) fn swallowed_ops(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.rust().filter(|file| is_rule_file(file)) {
        let mut matches = Matches { path: &file.path, complaints: &mut complaints };
        matches.visit_file(&file.parse());
    }
    complaints
}

/// Folders in which every file contains rules about ops.
const RULE_FOLDERS: [&str; 3] =
    ["crates/eval/src/lower/", "crates/eval/src/schedule/", "crates/stablehlo/src/"];

/// Returns true for files of the rule folders, the files of the families, and the `mod.rs` that
/// passes each op to its family. `crates/expr/src/simplify` is not among them: a node without a
/// simplification is correct, so its rules may have wildcard arms.
fn is_rule_file(file: &File) -> bool {
    let is_in_layer = |layer: &&str| {
        let Some(rest) = file.path.strip_prefix(*layer).and_then(|rest| rest.strip_prefix('/'))
        else {
            return false;
        };
        let name = rest.split('/').next().unwrap_or(rest);
        let name = name.strip_suffix(".rs").unwrap_or(name);
        name == "mod" || name == "lib" || FAMILIES.contains(&name)
    };
    RULE_FOLDERS.iter().any(|folder| file.path.starts_with(folder))
        || LAYERS.iter().any(is_in_layer)
}

/// The ops that the arms of a match name, each once.
pub(crate) fn named_ops(expression: &ExprMatch) -> Vec<String> {
    let mut ops = Ops::default();
    expression.arms.iter().for_each(|arm| ops.visit_pat(&arm.pat));
    ops.names.sort_unstable();
    ops.names.dedup();
    ops.names
}

/// Returns whether a match is a table of rules.
pub(crate) fn is_dispatch(expression: &ExprMatch) -> bool {
    named_ops(expression).len() >= DISPATCH
}

struct Matches<'a> {
    path: &'a str,
    complaints: &'a mut Vec<String>,
}

impl<'ast> Visit<'ast> for Matches<'_> {
    fn visit_expr_match(&mut self, expression: &'ast ExprMatch) {
        if is_dispatch(expression) && expression.arms.iter().any(is_catch_all) {
            let line = expression.match_token.span.start().line;
            let path = self.path;
            let names = named_ops(expression).join(", ");
            self.complaints.push(format!(
                "{path}:{line}: a match that names {names} must name every op instead of `_`"
            ));
        }
        visit::visit_expr_match(self, expression);
    }
}

/// `_ => …` or `other => …`, also as the op of a tuple; a guard makes no difference.
fn is_catch_all(arm: &Arm) -> bool {
    fn catches(pattern: &Pat) -> bool {
        match pattern {
            Pat::Wild(_) => true,
            Pat::Ident(binding) => binding.subpat.is_none(),
            Pat::Tuple(tuple) => tuple.elems.first().is_some_and(catches),
            _ => false,
        }
    }
    catches(&arm.pat)
}

/// The op variants that a pattern names, such as `Op::Reshape` or `UnaryOp::Sin`.
#[derive(Default)]
struct Ops {
    names: Vec<String>,
}

impl<'ast> Visit<'ast> for Ops {
    fn visit_path(&mut self, path: &'ast Path) {
        let mut segments = path.segments.iter().rev();
        if let (Some(variant), Some(family)) = (segments.next(), segments.next())
            && family.ident.to_string().ends_with("Op")
        {
            self.names.push(variant.ident.to_string());
        }
        visit::visit_path(self, path);
    }
}

/// The number of thresholds of the evaluator. A new one replaces another.
const MAX_THRESHOLDS: usize = 25;

/// The least size that is a threshold rather than a width of a loop.
const LEAST_THRESHOLD: usize = 4096;

/// Thresholds of the evaluator outside of the files `limits.rs`, or more than [`MAX_THRESHOLDS`] in these files.
pub(crate) fn scattered_limits(tree: &Tree) -> Vec<String> {
    let (mut complaints, mut count) = (Vec::new(), 0);
    for file in tree.rust().filter(|file| file.path.starts_with("crates/eval/src/")) {
        let is_limits = file.path.ends_with("/limits.rs");
        for item in file.parse().items {
            let syn::Item::Const(item) = item else { continue };
            count += usize::from(is_limits);
            let is_size = matches!(&*item.ty, syn::Type::Path(ty) if ty.path.is_ident("usize"));
            let is_large = size(&item.expr).is_some_and(|size| size >= LEAST_THRESHOLD);
            if !is_limits && is_size && is_large {
                let why = "belongs into the file limits.rs of its module";
                complaints.push(format!("{}: the threshold {} {why}", file.path, item.ident));
            }
        }
    }
    if count > MAX_THRESHOLDS {
        complaints.push(format!("crates/eval/src has {count} thresholds, over {MAX_THRESHOLDS}"));
    }
    complaints
}

/// The value of an integer without a suffix, or of a power of two that is written as a shift.
fn size(expr: &syn::Expr) -> Option<usize> {
    match expr {
        syn::Expr::Lit(literal) => match &literal.lit {
            syn::Lit::Int(number) if number.suffix().is_empty() => number.base10_parse().ok(),
            _ => None,
        },
        syn::Expr::Binary(shift) if matches!(shift.op, syn::BinOp::Shl(_)) => {
            1_usize.checked_shl(u32::try_from(size(&shift.right)?).ok()?)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(path: &str, text: &str) -> Tree {
        Tree::of(&[(path, text)])
    }

    #[test]
    fn finds_swallowed_ops() {
        let text = "fn rule(op: UnaryOp) -> f64 {
    match op {
        UnaryOp::Sin | UnaryOp::Cos => 1.0,
        UnaryOp::Tan => 2.0,
        UnaryOp::Exp if true => 3.0,
        _ => 0.0,
    }
}";
        let path = "crates/grad/src/rules/elementwise.rs";
        let complaint = "crates/grad/src/rules/elementwise.rs:2: a match that names Cos, Exp, Sin, \
                         Tan must name every op instead of `_`";
        assert_eq!(swallowed_ops(&tree(path, text)), [complaint]);
        let bound = text.replace("_ =>", "other =>");
        assert_eq!(swallowed_ops(&tree(path, &bound)), [complaint]);
        let tuple = text.replace("match op", "match (op, 1)").replace("_ =>", "(_, 2) =>");
        assert_eq!(swallowed_ops(&tree(path, &tuple)), [complaint]);
    }

    #[test]
    fn allows_predicates_and_exhaustive_matches() {
        let path = "crates/eval/src/kernels/elementwise/mod.rs";
        let question =
            "fn known(op: &Op) -> bool { match op { Op::Constant(_) => true, _ => false } }";
        assert_eq!(swallowed_ops(&tree(path, question)), [""; 0]);
        let all = "fn f(op: A) -> u8 { match op { AOp::A | AOp::B => 1, AOp::C | AOp::D => 2 } }";
        assert_eq!(swallowed_ops(&tree(path, all)), [""; 0]);
        let elsewhere =
            "fn f(op: A) -> u8 { match op { AOp::A | AOp::B | AOp::C | AOp::D => 1, _ => 2 } }";
        assert_eq!(swallowed_ops(&tree("crates/expr/src/text/print.rs", elsewhere)), [""; 0]);
    }

    #[test]
    fn finds_unsafe_in_macros_but_not_in_strings() {
        let macro_body = "macro_rules! m { () => { unsafe { f() } } }";
        let text = "// unsafe\nconst A: &str = \"unsafe\";";
        let path = "crates/eval/src/a.rs";
        assert_eq!(misplaced_unsafe(&tree(path, text)), [""; 0]);
        assert_eq!(
            misplaced_unsafe(&tree(path, macro_body)),
            ["crates/eval/src/a.rs:1: `unsafe` belongs into crates/pjrt"]
        );
        assert_eq!(misplaced_unsafe(&tree("crates/pjrt/src/a.rs", macro_body)), [""; 0]);
        assert_eq!(
            misplaced_unsafe(&tree("crates/eval/src/lib.rs", text)),
            ["crates/eval/src/lib.rs: `#![forbid(unsafe_code)]` is missing"]
        );
    }

    #[test]
    fn finds_scattered_limits() {
        let path = "crates/eval/src/kernels/a.rs";
        assert_eq!(scattered_limits(&tree(path, "const LANES: usize = 16;")), [""; 0]);
        for wrong in ["const LIMIT: usize = 4096;", "const LIMIT: usize = 1 << 12;"] {
            let complaints = scattered_limits(&tree(path, wrong));
            let why = "the threshold LIMIT belongs into the file limits.rs of its module";
            assert_eq!(complaints, [format!("{path}: {why}")]);
        }
        let path = "crates/eval/src/kernels/limits.rs";
        let all: String = (0..26).map(|at| format!("const L{at}: usize = {at};")).collect();
        assert_eq!(scattered_limits(&tree(path, &all)).len(), 1);
    }

    #[test]
    fn requires_module_docs() {
        assert_eq!(missing_module_docs(&tree("a.rs", "//! What it is for.\n")), [""; 0]);
        assert_eq!(missing_module_docs(&tree("a.rs", "use b;\n")).len(), 1);
    }
}

//! Limits for the length of files and functions.
//!
//! A match with an arm for each op grows with the ops, and a split would lose the compiler's check
//! for completeness. Its lines do not count, but each arm must be short; longer code belongs in a
//! function.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Arm, Block, ExprMatch, ImplItemFn, ItemFn, Signature, TraitItemFn};

use crate::rules::is_dispatch;
use crate::source::{File, Tree};

const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 70;
const ARM_LINES: usize = 20;

/// Files and functions that are too long.
pub(crate) fn complaints(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in code(tree) {
        let lines = file.text.lines().count();
        if lines > FILE_LINES {
            let path = &file.path;
            complaints.push(format!("{path}: {lines} lines; a file has {FILE_LINES} at most"));
        }
    }
    for file in tree.rust() {
        let mut functions = Functions { path: &file.path, complaints: &mut complaints };
        functions.visit_file(&file.parse());
    }
    complaints
}

/// The number of files and the median of their lengths.
pub(crate) fn median(tree: &Tree) -> (usize, usize) {
    let mut lengths: Vec<usize> = code(tree).map(|file| file.text.lines().count()).collect();
    lengths.sort_unstable();
    (lengths.len(), lengths.get(lengths.len() / 2).copied().unwrap_or(0))
}

fn code(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| file.is("rs") || file.is("py"))
}

struct Functions<'a> {
    path: &'a str,
    complaints: &'a mut Vec<String>,
}

impl Functions<'_> {
    /// Counts from the line of `fn` to the closing brace; comments above are free.
    fn measure(&mut self, signature: &Signature, body: &Block) {
        let first = signature.fn_token.span.start().line;
        let mut tables = Tables { path: self.path, lines: 0, long_arms: Vec::new() };
        tables.visit_block(body);
        self.complaints.append(&mut tables.long_arms);
        let lines = body.brace_token.span.close().end().line + 1 - first - tables.lines;
        if lines > FUNCTION_LINES {
            let (path, name) = (self.path, &signature.ident);
            self.complaints.push(format!(
                "{path}:{first}: `{name}` has {lines} lines; a function has {FUNCTION_LINES} at most"
            ));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(body) = &function.default {
            self.measure(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

/// The tables of a function.
struct Tables<'a> {
    path: &'a str,
    lines: usize,
    long_arms: Vec<String>,
}

impl Tables<'_> {
    fn check(&mut self, arm: &Arm) {
        let span = arm.body.span();
        let (first, last) = (span.start().line, span.end().line);
        let lines = last + 1 - first;
        if lines > ARM_LINES {
            self.long_arms.push(format!(
                "{}:{first}: an arm of {lines} lines; {ARM_LINES} at most, or it is a function",
                self.path
            ));
        }
    }
}

impl<'ast> Visit<'ast> for Tables<'_> {
    fn visit_expr_match(&mut self, expression: &'ast ExprMatch) {
        if !is_dispatch(expression) {
            return visit::visit_expr_match(self, expression);
        }
        let braces = expression.brace_token.span;
        self.lines += braces.close().end().line - braces.open().start().line;
        expression.arms.iter().for_each(|arm| self.check(arm));
    }

    // Nested functions are measured separately.
    fn visit_item_fn(&mut self, _: &'ast ItemFn) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Tree {
        Tree::of(&[("a.rs", text)])
    }

    #[test]
    fn counts_the_lines_of_functions() {
        let body = "    let brace = \"}\";\n".repeat(69);
        let fits =
            format!("impl A {{\n/// Doc.\nfn long() {{\n{}}}\n}}\n", &body[body.len() / 69..]);
        assert_eq!(complaints(&tree(&fits)), [""; 0]);
        let too_long = format!("impl A {{\n/// Doc.\nfn long() {{\n{body}}}\n}}\n");
        assert_eq!(
            complaints(&tree(&too_long)),
            ["a.rs:3: `long` has 71 lines; a function has 70 at most"]
        );
    }

    #[test]
    fn counts_match_arms_separately() {
        let arm = |op: &str, lines: usize| {
            format!(
                "        UnaryOp::{op} => {{\n{}        }}\n",
                "            f();\n".repeat(lines)
            )
        };
        let function = |longest: usize| {
            let arms = [arm("A", longest), arm("B", 18), arm("C", 18), arm("D", 18)].concat();
            format!("fn rule(op: UnaryOp) {{\n    match op {{\n{arms}    }}\n}}\n")
        };
        assert_eq!(complaints(&tree(&function(18))), [""; 0]);
        assert_eq!(
            complaints(&tree(&function(19))),
            ["a.rs:3: an arm of 21 lines; 20 at most, or it is a function"]
        );
    }

    #[test]
    fn counts_the_lines_of_files() {
        assert_eq!(complaints(&tree(&"//\n".repeat(800))), [""; 0]);
        let found = complaints(&tree(&"//\n".repeat(801)));
        assert_eq!(found, ["a.rs: 801 lines; a file has 800 at most"]);
    }
}

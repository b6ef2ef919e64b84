//! Checks the dependencies between the top-level modules of the crates `expr` and `eval` against the tables of
//! `ARCHITECTURE.md`, and finds the largest import cycle.
//!
//! Within a crate the compiler accepts any dependency, and the methods of an `impl Graph` in one
//! folder are visible in all folders. The rule therefore reads paths (in `use`, in code and in
//! macros), which it follows through re-exports to the defining file, and calls of methods of the graph.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, ImplItem, Item, ItemImpl, ItemMod, Macro, Type, UseTree};

use crate::dependencies::{Edges, documented};
use crate::source::Tree;

/// A crate whose modules have restricted dependencies.
#[derive(Clone, Copy)]
pub(crate) struct CheckedCrate {
    /// The folder that contains the modules.
    folder: &'static str,
    /// The first cell of the table in `ARCHITECTURE.md`.
    heading: &'static str,
    /// The number of files that may import each other in a cycle.
    pub(crate) largest_cycle: usize,
}

/// The checked crates. In `expr`, an op can contain a program, which contains a graph, which contains ops, and
/// the digest of a program depends on its encoding.
pub(crate) const CHECKED_CRATES: [CheckedCrate; 2] = [
    CheckedCrate { folder: "crates/expr/src/", heading: "module of `expr`", largest_cycle: 4 },
    CheckedCrate { folder: "crates/eval/src/", heading: "module of `eval`", largest_cycle: 6 },
];

/// The types whose methods are defined in several modules, and the names of their variables.
const SHARED: [&str; 2] = ["Graph", "Program"];
const VARIABLES: [&str; 4] = ["graph", "program", "into", "from"];

/// The dependencies that the table of a crate does not allow.
pub(crate) fn complaints(tree: &Tree, checked: &CheckedCrate) -> Vec<String> {
    let architecture = tree.find("ARCHITECTURE.md").map_or("", |file| &file.text);
    check(&documented(architecture, checked.heading), &CrateSources::of(tree, checked.folder))
}

/// The largest set of files that import each other in a cycle.
pub(crate) fn largest_cycle(tree: &Tree, checked: &CheckedCrate) -> Vec<String> {
    let edges = CrateSources::of(tree, checked.folder).edges();
    let mut cycles: BTreeMap<Vec<&str>, ()> = BTreeMap::new();
    for module in edges.keys() {
        let ahead = reachable(&edges, module);
        let cycle: Vec<&str> = ahead
            .iter()
            .filter(|other| reachable(&edges, other).contains(module.as_str()))
            .copied()
            .collect();
        cycles.insert(cycle, ());
    }
    let largest = cycles.into_keys().max_by_key(Vec::len).unwrap_or_default();
    largest.into_iter().map(str::to_owned).collect()
}

fn reachable<'a>(edges: &'a Edges, start: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&str> = edges[start].iter().map(String::as_str).collect();
    while let Some(module) = waiting.pop() {
        if found.insert(module) {
            waiting.extend(edges[module].iter().map(String::as_str));
        }
    }
    found
}

fn check(table: &Edges, sources: &CrateSources) -> Vec<String> {
    let mut complaints = Vec::new();
    let tops: BTreeSet<&str> = sources.files.keys().map(|module| top_module(module)).collect();
    let none = BTreeSet::new();
    for name in tops.iter().filter(|name| !table.contains_key(**name)) {
        complaints
            .push(format!("{}{name}: ARCHITECTURE.md does not list this module", sources.folder));
    }
    for name in table.keys().filter(|name| !tops.contains(name.as_str())) {
        complaints.push(format!("ARCHITECTURE.md lists a module `{name}` that does not exist"));
    }
    let mut used: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (module, file) in &sources.files {
        let (own, path) = (top_module(module), &file.path);
        let may_use = table.get(own).unwrap_or(&none);
        let allowed = |other: &str| other == own || may_use.contains(other);
        for target in sources.targets(module, file) {
            let other = top_module(&target);
            used.insert((
                own,
                top_module(sources.files.get_key_value(&target).expect("it exists").0),
            ));
            if !allowed(other) {
                complaints.push(format!("{path}: `{own}` must not use `{target}`"));
            }
        }
        for method in &file.calls {
            let Some(homes) = sources.methods.get(method) else { continue };
            used.extend(homes.iter().map(|home| (own, home.as_str())));
            if !homes.iter().any(|home| allowed(home)) {
                complaints.push(format!("{path}: `{own}` must not call the method `{method}`"));
            }
        }
    }
    for (name, may_use) in table {
        let idle = may_use.iter().filter(|other| !used.contains(&(name.as_str(), other.as_str())));
        complaints.extend(idle.map(|other| format!("`{name}` does not use `{other}`")));
    }
    complaints
}

/// The top-level module of a file.
fn top_module(module: &str) -> &str {
    module.split("::").next().unwrap_or(module)
}

/// The modules of the crate, by path.
#[derive(Default)]
struct CrateSources {
    folder: &'static str,
    files: BTreeMap<String, Module>,
    /// The names that `lib.rs` exports.
    root: Module,
    /// The modules that define each method of the shared types.
    methods: BTreeMap<String, BTreeSet<String>>,
}

/// The paths and definitions of one file.
#[derive(Default)]
struct Module {
    path: String,
    /// The paths that the file uses, from the root of the crate or from the file.
    paths: Vec<Vec<String>>,
    /// The names that the file imports, with the path of the definition of each.
    renamed: BTreeMap<String, Vec<String>>,
    /// Modules that the file imports with `*`.
    globs: Vec<Vec<String>>,
    items: BTreeSet<String>,
    /// The methods of shared types that it defines, and the methods that it calls on them.
    methods: Vec<String>,
    calls: BTreeSet<String>,
}

impl CrateSources {
    fn of(tree: &Tree, folder: &'static str) -> Self {
        let mut sources = CrateSources { folder, ..CrateSources::default() };
        for file in tree.rust() {
            let Some(path) = file.path.strip_prefix(folder) else { continue };
            let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
            if path.ends_with("tests") {
                continue;
            }
            let module = path.replace('/', "::");
            let mut reader =
                Reader { module: Module::default(), within: segments(&module), own: None };
            if module == "lib" {
                reader.within.clear();
            }
            reader.visit_file(&file.parse());
            let read = Module { path: file.path.clone(), ..reader.module };
            for method in &read.methods {
                let homes = sources.methods.entry(method.clone()).or_default();
                homes.insert(top_module(&module).to_owned());
            }
            match module.as_str() {
                "lib" => sources.root = read,
                _ => drop(sources.files.insert(module, read)),
            }
        }
        sources
    }

    /// Returns the edges from each module to the modules that it uses.
    fn edges(&self) -> Edges {
        let targets =
            |(module, file): (&String, &Module)| (module.clone(), self.targets(module, file));
        self.files.iter().map(targets).collect()
    }

    /// The other modules that define what a file names.
    fn targets(&self, module: &str, file: &Module) -> BTreeSet<String> {
        let found = file.paths.iter().filter_map(|path| self.resolve(path, 0));
        found.filter(|target| target != module).collect()
    }

    /// Returns the module that defines the item of a path, through re-exports.
    fn resolve(&self, path: &[String], depth: usize) -> Option<String> {
        let mut module = String::new();
        let mut rest = path;
        while let [first, others @ ..] = rest {
            let inner =
                if module.is_empty() { first.clone() } else { format!("{module}::{first}") };
            if !self.files.contains_key(&inner) {
                break;
            }
            (module, rest) = (inner, others);
        }
        let Some((name, others)) = rest.split_first().filter(|_| depth < 8) else {
            return (!module.is_empty()).then_some(module);
        };
        let file = self.files.get(&module).unwrap_or(&self.root);
        if let Some(target) = file.renamed.get(name) {
            let path: Vec<String> = target.iter().chain(others).cloned().collect();
            return self.resolve(&path, depth + 1);
        }
        if !file.items.contains(name) {
            for glob in &file.globs {
                let path: Vec<String> = glob.iter().chain(rest).cloned().collect();
                if self.is_named(glob, name, depth) {
                    return self.resolve(&path, depth + 1);
                }
            }
        }
        (!module.is_empty()).then_some(module)
    }

    /// Returns whether a module defines or re-exports a name.
    fn is_named(&self, module: &[String], name: &str, depth: usize) -> bool {
        let Some(file) = self.files.get(&module.join("::")).filter(|_| depth < 8) else {
            return false;
        };
        let passed_on = || file.globs.iter().any(|glob| self.is_named(glob, name, depth + 1));
        file.items.contains(name) || file.renamed.contains_key(name) || passed_on()
    }
}

fn segments(module: &str) -> Vec<String> {
    module.split("::").map(str::to_owned).collect()
}

struct Reader {
    module: Module,
    /// The path of the module itself.
    within: Vec<String>,
    /// The shared type whose methods are being read.
    own: Option<String>,
}

impl Reader {
    /// Returns a path from the root of the crate, or `None` for a path outside the crate.
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let above = path.iter().take_while(|name| *name == "super").count();
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([&self.within, rest].concat()),
            "super" => {
                let kept = self.within.len().checked_sub(above)?;
                Some([&self.within[..kept], &path[above..]].concat())
            }
            _ if self.module.items.contains(&format!("mod {first}")) => {
                Some([&self.within, path].concat())
            }
            _ => None,
        }
    }

    fn name(&mut self, path: &[String]) {
        self.module.paths.extend(self.absolute(path));
    }

    fn import(&mut self, tree: &UseTree, before: &[String], is_public: bool) {
        let joined = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.import(&path.tree, &joined(&path.ident), is_public),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, before, is_public));
            }
            UseTree::Name(name) => {
                self.imported(&name.ident.to_string(), &joined(&name.ident), is_public)
            }
            UseTree::Rename(name) => {
                self.imported(&name.rename.to_string(), &joined(&name.ident), is_public);
            }
            UseTree::Glob(_) => match (self.absolute(before), is_public) {
                (Some(path), true) => self.module.globs.push(path),
                (Some(path), false) => self.module.paths.push(path),
                (None, _) => {}
            },
        }
    }

    /// Records an import. A re-export is not a use; the importer of the re-export uses the name.
    fn imported(&mut self, name: &str, path: &[String], is_public: bool) {
        let Some(path) = self.absolute(path) else { return };
        if !is_public {
            self.module.paths.push(path.clone());
        }
        self.module.renamed.insert(name.to_owned(), path);
    }

    /// Records paths in the arguments of a macro that start with `crate`.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut streams = vec![tokens];
        while let Some(tokens) = streams.pop() {
            let mut path: Vec<String> = Vec::new();
            for token in tokens {
                match token {
                    TokenTree::Ident(name) if !path.is_empty() || name == "crate" => {
                        path.push(name.to_string());
                    }
                    TokenTree::Punct(colon) if colon.as_char() == ':' => {}
                    other => {
                        self.name(&std::mem::take(&mut path));
                        if let TokenTree::Group(group) = other {
                            streams.push(group.stream());
                        }
                    }
                }
            }
            self.name(&path);
        }
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = |tokens: &syn::MetaList| tokens.tokens.to_string() == "test";
        attribute.path().is_ident("cfg") && attribute.meta.require_list().is_ok_and(is_test)
    })
}

/// Returns the name of a type without its generic arguments.
fn type_name(ty: &Type) -> Option<String> {
    let Type::Path(path) = ty else { return None };
    Some(path.path.segments.last()?.ident.to_string())
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_file(&mut self, file: &'ast syn::File) {
        // Collect names first, because a path can precede its `mod` or `use`.
        for item in &file.items {
            let name = match item {
                Item::Mod(ItemMod { ident, content: None, .. }) => format!("mod {ident}"),
                Item::Struct(item) => item.ident.to_string(),
                Item::Enum(item) => item.ident.to_string(),
                Item::Fn(item) => item.sig.ident.to_string(),
                Item::Type(item) => item.ident.to_string(),
                Item::Const(item) => item.ident.to_string(),
                Item::Trait(item) => item.ident.to_string(),
                _ => continue,
            };
            self.module.items.insert(name);
        }
        visit::visit_file(self, file);
    }

    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_public = !matches!(item.vis, syn::Visibility::Inherited);
        self.import(&item.tree, &[], is_public);
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let outer = self.own.take();
        self.own = type_name(&item.self_ty).filter(|name| SHARED.contains(&name.as_str()));
        if self.own.is_some() && item.trait_.is_none() {
            let methods = item.items.iter().filter_map(|item| match item {
                ImplItem::Fn(method) => Some(method.sig.ident.to_string()),
                _ => None,
            });
            self.module.methods.extend(methods);
        }
        visit::visit_item_impl(self, item);
        self.own = outer;
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let receiver = match &*call.receiver {
            Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
            Expr::Field(field) => match &field.member {
                syn::Member::Named(name) => Some(name.to_string()),
                syn::Member::Unnamed(_) => None,
            },
            _ => None,
        };
        let is_shared = receiver.is_some_and(|name| {
            VARIABLES.contains(&name.as_str()) || (name == "self" && self.own.is_some())
        });
        if is_shared {
            self.module.calls.insert(call.method.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }

    /// `pub(super)` names no one.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.name(&names);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPR: CheckedCrate = CHECKED_CRATES[0];
    const TABLE: &str = "
| module of `expr` | what | may use |
|---|---|---|
| `graph` | data | — |
| `text` | words | `graph` |
";

    fn tree(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::of(files);
        tree.files.iter_mut().for_each(|file| file.path.insert_str(0, EXPR.folder));
        tree
    }

    fn found(graph: &str, text: &str) -> Vec<String> {
        let lib = "mod graph; mod text; pub use graph::Graph; pub use text::lines;";
        let store = "pub struct Graph; impl Graph { fn len(&self) {} }";
        let tree = tree(&[
            ("lib.rs", lib),
            ("graph/mod.rs", "mod store; mod walk; pub use store::Graph;"),
            ("graph/store.rs", store),
            ("graph/walk.rs", graph),
            ("text/mod.rs", text),
        ]);
        check(&documented(TABLE, EXPR.heading), &CrateSources::of(&tree, EXPR.folder))
    }

    const LINES: &str =
        "use crate::graph::Graph; pub fn lines() {} impl Graph { fn show(&self) {} }";

    #[test]
    fn accepts_allowed_edges() {
        assert_eq!(
            found("use super::store::Graph; fn f(graph: &Graph) { graph.len() }", LINES),
            [""; 0]
        );
    }

    #[test]
    fn rejects_reversed_edges() {
        let complaint = ["crates/expr/src/graph/walk.rs: `graph` must not use `text`"];
        for wrong in [
            "use crate::text::lines;",
            "use crate::{text::lines};",
            "use super::super::text;",
            "fn f() { crate::text::lines() }",
            "fn f() { crate::lines() }",
            "fn f() { assert!(crate::lines()) }",
        ] {
            assert_eq!(found(wrong, LINES), complaint, "{wrong}");
        }
        let method = ["crates/expr/src/graph/walk.rs: `graph` must not call the method `show`"];
        assert_eq!(found("fn f(graph: &Graph) { graph.show() }", LINES), method);
        assert_eq!(found("impl Graph { fn f(&self) { self.show() } }", LINES), method);
        assert_eq!(found("#[cfg(test)] mod tests { use crate::text::lines; }", LINES), [""; 0]);
    }

    #[test]
    fn rejects_modules_and_edges_that_do_not_exist() {
        assert_eq!(found("", "pub fn lines() {}"), ["`text` does not use `graph`"]);
        let tree = tree(&[("graph.rs", ""), ("extra.rs", "")]);
        let complaints =
            check(&documented(TABLE, EXPR.heading), &CrateSources::of(&tree, EXPR.folder));
        assert_eq!(
            complaints[0],
            "crates/expr/src/extra: ARCHITECTURE.md does not list this module"
        );
        assert_eq!(complaints[1], "ARCHITECTURE.md lists a module `text` that does not exist");
    }

    #[test]
    fn finds_cycles() {
        let tree = tree(&[
            ("graph/mod.rs", "mod a; mod b; mod c;"),
            ("graph/a.rs", "use super::b::B;"),
            ("graph/b.rs", "use crate::graph::a::A; use super::c::C;"),
            ("graph/c.rs", ""),
        ]);
        assert_eq!(largest_cycle(&tree, &EXPR), ["graph::a", "graph::b"]);
    }
}

//! Names of public types: each name has one meaning in the workspace.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

use crate::source::Tree;

/// The names that each crate has by convention, with the traits that only seal other traits.
const SHARED: [&str; 3] = ["Error", "Result", "Sealed"];

/// Returns a complaint for each name of public types in several files of crates. The stub for a
/// feature that is disabled, in a file `no_….rs`, has the names that it replaces.
pub(crate) fn repeated_types(tree: &Tree) -> Vec<String> {
    let mut files: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let is_source = |path: &str| path.starts_with("crates/") && path.contains("/src/");
    let is_stub = |stem: &str| stem.starts_with("no_");
    for file in tree.rust().filter(|file| is_source(&file.path) && !is_stub(file.stem())) {
        let mut types = PublicTypes::default();
        types.visit_file(&file.parse());
        for name in types.0 {
            files.entry(name).or_default().push(&file.path);
        }
    }
    files
        .into_iter()
        .filter(|(name, paths)| paths.len() > 1 && !SHARED.contains(&name.as_str()))
        .map(|(name, paths)| format!("`{name}` names types in {}", paths.join(" and ")))
        .collect()
}

#[derive(Default)]
struct PublicTypes(Vec<String>);

impl PublicTypes {
    fn note(&mut self, visibility: &syn::Visibility, name: &syn::Ident) {
        if matches!(visibility, syn::Visibility::Public(_)) {
            self.0.push(name.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for PublicTypes {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !item.attrs.iter().any(|attribute| attribute.path().is_ident("cfg")) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.note(&item.vis, &item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.note(&item.vis, &item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.note(&item.vis, &item.ident);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.note(&item.vis, &item.ident);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.note(&item.vis, &item.ident);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_names_with_two_meanings() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "pub struct Slice; pub struct Error; struct Own;"),
            ("crates/b/src/lib.rs", "pub enum Error {} struct Own; mod m { pub trait Slice {} }"),
            ("crates/b/tests/suite.rs", "pub struct Slice;"),
            ("crates/b/src/no_a.rs", "pub struct Slice;"),
        ]);
        let expected = "`Slice` names types in crates/a/src/lib.rs and crates/b/src/lib.rs";
        assert_eq!(repeated_types(&tree), [expected]);
    }
}

//! Differences of two containers, for error messages about arguments.
//!
//! Containers are compared level by level. If two containers have different kinds or sizes, both
//! are printed with a star for each tensor, and their children are not compared. If only tensors
//! differ, their types are printed with their paths.

use pyo3::prelude::*;

use crate::containers::{PyTree, Tree};
use crate::template::LeafType;

/// The maximum number of listed differences; further ones are counted.
const MAX_LISTED: usize = 8;

/// A difference: the path, the expected value and the found value.
struct Difference {
    path: String,
    expected: String,
    found: String,
}

/// The differences of containers, as the last lines of an error; `None` if the containers match.
pub(crate) struct Differences<'a> {
    fits: &'a dyn Fn(&LeafType, &LeafType) -> bool,
    found: Vec<Difference>,
}

/// A container with the types of its leaves.
#[derive(Clone, Copy)]
pub(crate) struct Typed<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) leaves: &'a [LeafType],
}

impl<'a> Differences<'a> {
    /// An empty list of differences. `fits(found, expected)` returns whether a type is acceptable.
    pub(crate) fn new(fits: &'a dyn Fn(&LeafType, &LeafType) -> bool) -> Self {
        Self { fits, found: Vec::new() }
    }

    /// Adds the differences of two containers.
    pub(crate) fn compare(
        &mut self,
        py: Python<'_>,
        path: &str,
        found: Typed<'_>,
        expected: Typed<'_>,
    ) -> PyResult<()> {
        let mut cursors = (found.leaves.iter(), expected.leaves.iter());
        self.trees(py, path, (found.tree, expected.tree), &mut cursors)
    }

    /// Returns the differences, one per line, or `None` without differences.
    pub(crate) fn text(&self) -> Option<String> {
        if self.found.is_empty() {
            return None;
        }
        let mut lines = Vec::new();
        for difference in self.found.iter().take(MAX_LISTED) {
            let Difference { path, expected, found } = difference;
            lines.push(format!("{path}: must be {expected}; got {found}"));
        }
        if self.found.len() > MAX_LISTED {
            lines.push(format!("and {} more", self.found.len() - MAX_LISTED));
        }
        Some(lines.join("\n  "))
    }

    fn trees<'t>(
        &mut self,
        py: Python<'_>,
        path: &str,
        (found, expected): (&Tree, &Tree),
        cursors: &mut (impl Iterator<Item = &'t LeafType>, impl Iterator<Item = &'t LeafType>),
    ) -> PyResult<()> {
        if let (Tree::Leaf, Tree::Leaf) = (found, expected) {
            if let (Some(found), Some(expected)) = (cursors.0.next(), cursors.1.next())
                && !(self.fits)(found, expected)
            {
                self.add(path, found.to_string(), expected.to_string());
            }
            return Ok(());
        }
        if !found.same_level(py, expected)? {
            let (left, right) = (found.leaf_count(), expected.leaf_count());
            cursors.0.by_ref().take(left).for_each(drop);
            cursors.1.by_ref().take(right).for_each(drop);
            let text = |tree: &Tree| match tree {
                Tree::Leaf => Ok("a tensor".into()),
                tree => PyTree::text(tree, py),
            };
            self.add(path, text(found)?, text(expected)?);
            return Ok(());
        }
        let pairs = found.children().iter().zip(expected.children());
        for (index, (found, expected_child)) in pairs.enumerate() {
            let path = expected.child_path(py, path, index)?;
            self.trees(py, &path, (found, expected_child), cursors)?;
        }
        Ok(())
    }

    fn add(&mut self, path: &str, found: String, expected: String) {
        self.found.push(Difference { path: path.to_owned(), expected, found });
    }
}

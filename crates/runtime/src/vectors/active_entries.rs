//! The entries that enter a region; the other entries are computed with safe values.
//!
//! A branch with a vectorized predicate is computed for all entries, although only some take it.
//! While the branch is traced, a value from outside that enters an operation gets safe values for
//! the other entries; see [`Graph::fill_entries`].

use nxla_expr::{ExprId, Graph};
use rustc_hash::FxHashMap;

use super::VectorAxes;
use super::control::Vectorized;
use super::entry::spread;
use crate::error::Result;

/// The entries that take a branch or begin a loop.
#[derive(Clone, Debug)]
pub struct ActiveEntries {
    /// Holds for the entries.
    mask: Vectorized,
    /// The length of the graph before the region: later values are safe.
    start: usize,
    /// Values from outside the region, and their replacements in the region.
    known: FxHashMap<Vectorized, Vectorized>,
}

impl ActiveEntries {
    /// The entries for which a mask holds, in a region that is traced from now on.
    pub fn new(mask: Vectorized, graph: &Graph) -> Self {
        Self { mask, start: graph.len(), known: FxHashMap::default() }
    }

    /// Returns `true` if a value was created before the region.
    fn is_outside(&self, id: ExprId) -> bool {
        id.index() < self.start
    }

    /// Replaces entries of an outer value that the mask excludes from the region. The result has all
    /// vectorized axes of the mask if the value has one of them, because all these axes may decide about
    /// an entry.
    pub(super) fn make_safe(
        &mut self,
        graph: &mut Graph,
        value: &Vectorized,
    ) -> Result<Vectorized> {
        if let Some(known) = self.known.get(value) {
            return Ok(known.clone());
        }
        let (x, own) = value;
        let (mask, axes) = &self.mask;
        let differs = |name: &str| own.position(name).is_some_and(|at| own[at].size > 1);
        if !axes.iter().any(|axis| differs(&axis.name)) {
            return Ok(value.clone());
        }
        let all = VectorAxes::union("cond", [axes, own])?;
        let leading = VectorAxes::new(all[..axes.len()].iter().cloned());
        let mask = spread(graph, *mask, axes, &leading)?;
        let x = spread(graph, *x, own, &all)?;
        let filled = (graph.fill_entries(mask, x)?, all);
        self.known.insert(value.clone(), filled.clone());
        Ok(filled)
    }
}

/// The regions that are being traced inside each other, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct ActiveEntriesStack(Vec<ActiveEntries>);

impl ActiveEntriesStack {
    pub(crate) fn push(&mut self, active: ActiveEntries) {
        self.0.push(active);
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }

    /// Returns a value for use in the innermost region. Data always comes from outside the region.
    pub(crate) fn make_safe(
        &mut self,
        graph: &mut Graph,
        value: Vectorized,
        is_data: bool,
    ) -> Result<Vectorized> {
        let first =
            if is_data { 0 } else { self.0.partition_point(|active| !active.is_outside(value.0)) };
        self.0[first..].iter_mut().try_fold(value, |value, active| active.make_safe(graph, &value))
    }
}

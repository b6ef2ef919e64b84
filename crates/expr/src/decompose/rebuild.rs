//! Rewriting of programs: recreating a program with replaced nodes.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::graph::{ExprId, Graph, IdMap, Op, Operands, Program, Result, SourceMap};

/// A rewrite of the nodes of a program and of its regions.
pub(super) struct Rewrite<'a> {
    /// Returns whether a node is replaced.
    pub(super) changes: &'a dyn Fn(&Graph, ExprId) -> bool,
    /// Creates the replacement, of the same type, for an op on these operands.
    pub(super) make: fn(&mut Graph, &Op, &[ExprId]) -> Result<ExprId>,
}

impl Rewrite<'_> {
    /// Returns the rewritten program, or `None` if no node is replaced.
    pub(super) fn apply(&self, program: &Program) -> Result<Option<Program>> {
        Rewriter { rewrite: self, regions: FxHashMap::default() }.program(program)
    }
}

/// Rewrites the regions of one program, each once, however many nodes share it.
struct Rewriter<'a> {
    rewrite: &'a Rewrite<'a>,
    /// Results by the address of the region; the outermost program keeps all regions alive.
    regions: FxHashMap<*const Program, Option<Arc<Program>>>,
}

impl Rewriter<'_> {
    /// The recursion depth is the nesting depth of regions, which is limited.
    fn program(&mut self, program: &Program) -> Result<Option<Program>> {
        let graph = program.graph();
        for id in graph.ids() {
            if (self.rewrite.changes)(graph, id) || self.changes_region(graph.op(id))? {
                return self.rebuild(program).map(Some);
            }
        }
        Ok(None)
    }

    fn changes_region(&mut self, op: &Op) -> Result<bool> {
        for region in op.regions() {
            if self.region(region)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn region(&mut self, region: &Arc<Program>) -> Result<Option<Arc<Program>>> {
        if let Some(known) = self.regions.get(&Arc::as_ptr(region)) {
            return Ok(known.clone());
        }
        let rewritten = self.program(region)?.map(Arc::new);
        self.regions.insert(Arc::as_ptr(region), rewritten.clone());
        Ok(rewritten)
    }

    fn rebuild(&mut self, program: &Program) -> Result<Program> {
        let from = program.graph();
        let mut graph = Graph::with_options(from.options());
        let mut copied = SourceMap::default();
        // The new id of each node, plus one.
        let mut places: IdMap<u32> = IdMap::default();
        let new = |places: &IdMap<u32>, id: ExprId| ExprId::from_index(places.get(id) as usize - 1);
        for id in from.ids() {
            let operands: Operands = from.operands(id).iter().map(|&id| new(&places, id)).collect();
            graph.copy_source(from, id, &mut copied);
            let made = if (self.rewrite.changes)(from, id) {
                (self.rewrite.make)(&mut graph, from.op(id), &operands)?
            } else {
                let op = self.in_regions(from.op(id))?;
                graph.make(op, &operands)?
            };
            places.set(id, u32::try_from(made.index() + 1).expect("ids fit in 32 bits"));
        }
        let outputs: Vec<ExprId> = program.outputs().iter().map(|&id| new(&places, id)).collect();
        Program::new(&graph, program.inputs().to_vec(), &outputs)
    }

    /// Returns the op with rewritten regions.
    fn in_regions(&mut self, op: &Op) -> Result<Op> {
        let mut failure = None;
        let op = op.map_regions(|region| match self.region(region) {
            Ok(rewritten) => rewritten.unwrap_or_else(|| region.clone()),
            Err(error) => {
                failure = Some(error);
                region.clone()
            }
        });
        failure.map_or(Ok(op), Err)
    }
}

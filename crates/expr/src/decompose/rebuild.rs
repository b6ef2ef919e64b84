//! Rewriting of programs: recreating a program with replaced nodes.

use std::sync::Arc;

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
        if self.changes_any(program) { self.rebuild(program).map(Some) } else { Ok(None) }
    }

    /// The recursion depth is the nesting depth of regions, which is limited.
    fn changes_any(&self, program: &Program) -> bool {
        let graph = program.graph();
        graph.ids().any(|id| {
            (self.changes)(graph, id)
                || graph.op(id).regions().into_iter().any(|region| self.changes_any(region))
        })
    }

    fn rebuild(&self, program: &Program) -> Result<Program> {
        let from = program.graph();
        let mut graph = Graph::with_options(from.options());
        let mut copied = SourceMap::default();
        // The new id of each node, plus one.
        let mut places: IdMap<u32> = IdMap::default();
        let new = |places: &IdMap<u32>, id: ExprId| ExprId::from_index(places.get(id) as usize - 1);
        for id in from.ids() {
            let operands: Operands = from.operands(id).iter().map(|&id| new(&places, id)).collect();
            graph.copy_source(from, id, &mut copied);
            let made = if (self.changes)(from, id) {
                (self.make)(&mut graph, from.op(id), &operands)?
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
    fn in_regions(&self, op: &Op) -> Result<Op> {
        let mut failure = None;
        let op = op.map_regions(|region| match self.apply(region) {
            Ok(Some(region)) => Arc::new(region),
            Ok(None) => region.clone(),
            Err(error) => {
                failure = Some(error);
                region.clone()
            }
        });
        failure.map_or(Ok(op), Err)
    }
}

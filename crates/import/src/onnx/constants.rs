//! Values that are known during the trace: shapes, and values computed from shapes.

use nxla_expr::{ExprId, Graph, Op, Program};
use nxla_tensor::HostTensor;
use rustc_hash::FxHashMap;

/// A function that runs a program without inputs.
pub type Evaluate<'e> = dyn Fn(&Program) -> Result<Vec<HostTensor>, String> + 'e;

/// The largest number of elements of any value that is computed during the trace. Shapes, masks of
/// attention and tables of positions are smaller; a damaged file may request more.
const FOLDED_ELEMENTS: usize = 1 << 22;

/// The known values of a graph.
pub(super) struct Constants<'e> {
    evaluate: &'e Evaluate<'e>,
    /// A flag for each node of a prefix: the node depends on a parameter or has effects.
    is_unknown: Vec<bool>,
    known: FxHashMap<ExprId, HostTensor>,
}

impl<'e> Constants<'e> {
    pub(super) fn new(evaluate: &'e Evaluate<'e>) -> Self {
        Self { evaluate, is_unknown: Vec::new(), known: FxHashMap::default() }
    }

    /// Returns the value of a node, or `None` if it depends on an input.
    pub(super) fn value(
        &mut self,
        graph: &Graph,
        id: ExprId,
    ) -> Result<Option<HostTensor>, String> {
        if let Some(value) = self.known.get(&id) {
            return Ok(Some(value.clone()));
        }
        if self.is_unknown(graph, id) {
            return Ok(None);
        }
        let value = match graph.op(id) {
            Op::Tensor(literal) => (*literal.0).clone(),
            _ => {
                let text = |error: nxla_expr::Error| error.to_string();
                let program = Program::new(graph, Vec::new(), &[id]).map_err(text)?;
                let sizes = program.graph().ids().flat_map(|id| program.graph().ty(id).parts());
                if let Some(ty) = { sizes }
                    .find(|ty| ty.shape.checked_size().is_none_or(|size| size > FOLDED_ELEMENTS))
                {
                    return Err(format!("a constant depends on a value that is too large, {ty}"));
                }
                let mut values = (self.evaluate)(&program)?;
                values.pop().ok_or("the evaluator returned no value")?
            }
        };
        self.known.insert(id, value.clone());
        Ok(Some(value))
    }

    fn is_unknown(&mut self, graph: &Graph, id: ExprId) -> bool {
        for index in self.is_unknown.len()..=id.index() {
            let id = ExprId::from_index(index);
            let op = graph.op(id);
            let unknown = matches!(op, Op::Parameter(_))
                || op.has_effects()
                || graph.operands(id).iter().any(|operand| self.is_unknown[operand.index()]);
            self.is_unknown.push(unknown);
        }
        self.is_unknown[id.index()]
    }
}

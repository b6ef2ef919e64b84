//! Regions: converting the nodes traced inside a loop or a branch to a separate program.
//!
//! While a region is traced, its nodes are part of the graph of the trace, so users can refer to
//! outer values freely. Closing the region copies its nodes into a [`Program`]. The inputs of the
//! program are the parameters of the region, followed by the *captures*: the outer values that it
//! uses, which become operands of the node that contains the region.

use std::sync::Arc;

use super::error::Result;
use super::ids::{ExprId, TailMap};
use super::op::Op;
use super::program::{Program, Roots};
use super::store::Graph;
use super::types::TensorType;

/// A position in a graph; later nodes belong to regions traced after it.
#[derive(Clone, Copy, Debug)]
pub struct Mark(pub(crate) ExprId);

/// The treatment of the nodes of a region that depend on none of its parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Invariants {
    /// They are computed outside and captured, so a loop computes them once.
    Capture,
    /// They are copied into the region, so a branch computes them only if it is taken.
    Copy,
}

/// The results and the hooks of a traced region.
#[derive(Clone, Debug)]
pub struct Traced {
    pub(crate) outputs: Vec<ExprId>,
    pub(crate) effects: Vec<ExprId>,
}

impl Traced {
    /// Returns the results.
    pub fn outputs(&self) -> &[ExprId] {
        &self.outputs
    }

    /// Replaces the results.
    #[must_use]
    pub fn with_outputs(self, outputs: Vec<ExprId>) -> Self {
        Self { outputs, ..self }
    }
}

/// The parameters of a region that is being traced.
#[derive(Clone, Debug)]
pub struct Scope {
    pub(crate) number: u32,
    /// The parameters, in order.
    pub parameters: Vec<ExprId>,
}

/// Closed regions, with the outer values that all of them receive after their own parameters.
pub(crate) struct ClosedRegions {
    pub(crate) programs: Vec<Arc<Program>>,
    pub(crate) captures: Vec<ExprId>,
}

impl Graph {
    /// Returns the current position, for use before the first region of a node is traced.
    pub fn mark(&self) -> Mark {
        Mark(ExprId::from_index(self.len()))
    }

    /// Opens a region with parameters of these types. `name` is what [`Graph::context`] returns for
    /// nodes that depend on them: the name of the op that is to hold the region.
    pub fn open_scope(&mut self, name: &'static str, types: &[TensorType]) -> Scope {
        let number = self.fresh_scope(name);
        let parameters = types
            .iter()
            .enumerate()
            .map(|(index, ty)| self.scope_parameter(number, index, ty.clone()))
            .collect();
        Scope { number, parameters }
    }

    /// Appends a parameter to an open region.
    pub fn grow_scope(&mut self, scope: &mut Scope, ty: TensorType) -> ExprId {
        let parameter = self.scope_parameter(scope.number, scope.parameters.len(), ty);
        scope.parameters.push(parameter);
        parameter
    }

    /// Ends the tracing of a region that started at `mark`; the region takes ownership of its
    /// hooks.
    pub fn traced(&mut self, mark: Mark, outputs: Vec<ExprId>) -> Traced {
        let effects = self.take_effects_since(mark.0);
        Traced { outputs, effects }
    }

    /// Drops the hooks traced since `mark`, for a region that will be traced again.
    pub fn drop_effects(&mut self, mark: Mark) {
        self.take_effects_since(mark.0);
    }

    /// Closes a function that was traced on the parameters of a scope. Returns a program whose
    /// inputs are these parameters and the captured outer values, and the captured values. Nodes
    /// that depend on no parameter are captured.
    ///
    /// # Errors
    /// Returns an error if a result is a value inside another region.
    pub fn close_function(
        &mut self,
        mark: Mark,
        scope: &Scope,
        outputs: Vec<ExprId>,
    ) -> Result<(Arc<Program>, Vec<ExprId>)> {
        let traced = self.traced(mark, outputs);
        let ClosedRegions { mut programs, captures } =
            self.close(mark, Some(scope), &[traced], Invariants::Capture)?;
        Ok((programs.remove(0), captures))
    }

    /// Closes regions that share their parameters and captures.
    ///
    /// Takes time and memory proportional to the number of nodes since `mark`.
    pub(crate) fn close(
        &self,
        mark: Mark,
        scope: Option<&Scope>,
        regions: &[Traced],
        invariants: Invariants,
    ) -> Result<ClosedRegions> {
        let own = self.own_nodes(mark, scope, regions, invariants);
        let parameters = scope.map_or(0, |scope| scope.parameters.len());
        let mut captures = Vec::new();
        let first = mark.0.index();
        let mut position: TailMap<u32> = TailMap::from_position(first);
        let mut capture = |graph: &Graph, id: ExprId, captures: &mut Vec<ExprId>| {
            if !own.get(id) && !is_copied(graph.op(id)) && position.get(id) == 0 {
                captures.push(id);
                let place = u32::try_from(parameters + captures.len()).expect("few captures");
                position.set(id, place);
            }
        };
        let roots: Vec<ExprId> = regions
            .iter()
            .flat_map(|region| region.effects.iter().chain(&region.outputs))
            .copied()
            .collect();
        for &root in &roots {
            capture(self, root, &mut captures);
        }
        for id in self.reachable_within(&roots, &own) {
            for &operand in self.operands(id) {
                capture(self, operand, &mut captures);
            }
        }
        let inputs: Vec<TensorType> = scope
            .iter()
            .flat_map(|scope| &scope.parameters)
            .chain(&captures)
            .map(|&id| self.tensor_type(id).clone())
            .collect();
        let number = scope.map_or(u32::MAX, |scope| scope.number);
        let programs = regions
            .iter()
            .map(|region| {
                let roots = Roots { outputs: &region.outputs, effects: &region.effects };
                let program =
                    Program::close(self, inputs.clone(), &roots, &position, (number, first));
                program.map(Arc::new)
            })
            .collect::<Result<_>>()?;
        Ok(ClosedRegions { programs, captures })
    }

    /// Returns the nodes to copy into the regions: all nodes since the mark or, without invariants, only
    /// the nodes that depend on a parameter or a hook of the regions.
    fn own_nodes(
        &self,
        mark: Mark,
        scope: Option<&Scope>,
        regions: &[Traced],
        invariants: Invariants,
    ) -> TailMap<bool> {
        let mut own = TailMap::from_position(mark.0.index());
        for id in scope.iter().flat_map(|scope| &scope.parameters) {
            own.set(*id, true);
        }
        for id in regions.iter().flat_map(|region| &region.effects) {
            own.set(*id, true);
        }
        for index in mark.0.index()..self.len() {
            let id = ExprId::from_index(index);
            let operands = self.operands(id);
            if matches!(self.op(id), Op::Parameter(_)) {
                // Parameters are copied already. A branch that uses a large tensor can create an
                // input of the program while it is traced; this input is captured.
                continue;
            }
            // An element of an outer tuple is captured itself, because a tuple cannot be passed.
            let follows_operands =
                invariants == Invariants::Capture || matches!(self.op(id), Op::Elem(_));
            if !follows_operands || operands.iter().any(|&operand| own.get(operand)) {
                own.set(id, true);
            }
        }
        own
    }

    /// Returns the nodes of a set that the roots need.
    fn reachable_within(&self, roots: &[ExprId], within: &TailMap<bool>) -> Vec<ExprId> {
        let mut order = Vec::new();
        let mut left = within.clone();
        let mut stack: Vec<ExprId> = roots.iter().rev().copied().collect();
        while let Some(id) = stack.pop() {
            if left.get(id) {
                left.set(id, false);
                order.push(id);
                stack.extend(self.operands(id).iter().rev());
            }
        }
        order
    }
}

/// Returns whether a node without operands is cheaper to copy than to capture.
fn is_copied(op: &Op) -> bool {
    matches!(op, Op::Constant(_) | Op::Iota(_) | Op::Eye(_))
}

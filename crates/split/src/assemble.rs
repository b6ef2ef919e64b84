//! Building the program of each stage.
//!
//! Nodes are recreated in a new graph, with parameters for values from other stages, so they are
//! simplified. Each node keeps its source line.

use std::sync::Arc;

use nxla_expr::{ExprId, Graph, Op, Program, SourceMap};
use rustc_hash::FxHashMap;

use crate::cut::{Cut, Value, is_copied};
use crate::error::SplitError;
use crate::stage::{Stage, StageGraph, StageId, ValueSource};
use crate::wire::Wiring;

/// Builds the stages of a cut program.
pub(crate) fn assemble(program: &Program, cut: &Cut) -> Result<StageGraph, SplitError> {
    let nodes = cut.nodes_by_stage();
    let wiring = Wiring::new(program, cut, &nodes);
    let mut follows = previous_with_effects(cut);
    let mut builder = Builder {
        program,
        cut,
        wiring: &wiring,
        new_id: vec![ExprId::from_index(0); program.graph().len()],
    };
    let count = cut.declared.len();
    let mut stages = Vec::with_capacity(count);
    for stage in 0..count {
        let id = StageId::from_index(stage);
        let program = builder
            .build(stage, nodes.of(stage))
            .map_err(|error| SplitError::Build { stage: id, error: Box::new(error) })?;
        stages.push(Stage {
            id,
            program: Arc::new(program),
            arguments: wiring.arguments[stage].clone(),
            follows: follows.remove(&stage),
            name: None,
        });
    }
    Ok(StageGraph::from_parts(program.inputs().to_vec(), stages, wiring.results))
}

/// Returns for each stage with effects the preceding stage with effects.
fn previous_with_effects(cut: &Cut) -> FxHashMap<usize, StageId> {
    let owners: Vec<usize> = cut.effects.iter().filter_map(|&id| cut.owner(id)).collect();
    let changes = owners.windows(2).filter(|pair| pair[0] != pair[1]);
    changes.map(|pair| (pair[1], StageId::from_index(pair[0]))).collect()
}

struct Builder<'a> {
    program: &'a Program,
    cut: &'a Cut,
    wiring: &'a Wiring,
    /// For each node of the program, its id in the graph of its owner after it is created.
    new_id: Vec<ExprId>,
}

impl Builder<'_> {
    fn build(&mut self, stage: usize, nodes: &[ExprId]) -> Result<Program, nxla_expr::Error> {
        let from = self.program.graph();
        let arguments = &self.wiring.arguments[stage];
        let types: Vec<_> =
            arguments.iter().map(|&source| self.wiring.type_of(self.program, source)).collect();
        let mut graph = Graph::with_options(from.options());
        let parameters: Vec<ExprId> =
            (0..).zip(&types).map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
        let mut local = Local {
            graph,
            parameters,
            position_of: arguments.iter().copied().zip(0..).collect(),
            copies: FxHashMap::default(),
            sources: SourceMap::default(),
        };
        let mut operands = Vec::new();
        for &id in nodes {
            operands.clear();
            for &operand in from.operands(id) {
                let operand = self.translate(&mut local, stage, Value::of(from, operand))?;
                operands.push(operand);
            }
            local.graph.copy_source(from, id, &mut local.sources);
            self.new_id[id.index()] = local.graph.make(from.op(id).clone(), &operands)?;
        }
        let values = &self.wiring.outputs[stage];
        let outputs = values
            .iter()
            .map(|&value| self.translate(&mut local, stage, value))
            .collect::<Result<Vec<_>, _>>()?;
        Program::new(&local.graph, types, &outputs)
    }

    /// Returns the node of a value in the graph of a stage.
    fn translate(
        &self,
        local: &mut Local,
        stage: usize,
        value: Value,
    ) -> Result<ExprId, nxla_expr::Error> {
        if let Some(source) = self.wiring.source(self.program, self.cut, stage, value) {
            return Ok(local.parameter(source));
        }
        let from = self.program.graph();
        if is_copied(from, value.node) {
            return self.copy(local, stage, value.node);
        }
        let new = self.new_id[value.node.index()];
        match from.ty(value.node).as_tensor() {
            Some(_) => Ok(new),
            None => local.graph.make(Op::Elem(value.part), &[new]),
        }
    }

    /// Returns the stage's copy of a node.
    fn copy(
        &self,
        local: &mut Local,
        stage: usize,
        id: ExprId,
    ) -> Result<ExprId, nxla_expr::Error> {
        if let Some(&copy) = local.copies.get(&id) {
            return Ok(copy);
        }
        let from = self.program.graph();
        let operands = from
            .operands(id)
            .iter()
            .map(|&operand| self.translate(local, stage, Value::of(from, operand)))
            .collect::<Result<Vec<_>, _>>()?;
        local.graph.copy_source(from, id, &mut local.sources);
        let copy = local.graph.make(from.op(id).clone(), &operands)?;
        local.copies.insert(id, copy);
        Ok(copy)
    }
}

/// The graph of a stage that is being built.
struct Local {
    graph: Graph,
    parameters: Vec<ExprId>,
    /// The parameter index of each source.
    position_of: FxHashMap<ValueSource, usize>,
    /// The copies of nodes without an owner.
    copies: FxHashMap<ExprId, ExprId>,
    sources: SourceMap,
}

impl Local {
    fn parameter(&self, source: ValueSource) -> ExprId {
        let position = self.position_of.get(&source);
        self.parameters[*position.expect("an imported value is an argument of the stage")]
    }
}

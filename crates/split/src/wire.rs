//! Wiring of stages: finding the values that cross from one stage to another.
//!
//! The outputs of a stage are its declared outputs, in the order of the boundary, followed by
//! *extra outputs*: values that a later stage needs too. Extra outputs are appended in the order in
//! which later stages, and their nodes, need them. A stage takes each value once. After
//! [`split`](crate::split), arguments are sorted: inputs of the program by index, then outputs of
//! earlier stages by stage and index. After a policy, they are in the order in which the stage
//! first needs them, so that stages with equal functions have equal programs for any sources of
//! arguments.

use nxla_expr::{ExprId, Op, Program, TensorType};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::cut::{Cut, Value, is_constant, is_copied};
use crate::lists::Lists;
use crate::stage::{StageId, ValueSource};

/// The arguments and outputs of each stage.
pub(crate) struct Wiring {
    /// The outputs of each stage.
    pub(crate) outputs: Vec<Vec<Value>>,
    /// The sources of the arguments of each stage; distinct.
    pub(crate) arguments: Vec<Vec<ValueSource>>,
    /// The sources of the outputs of the program.
    pub(crate) results: Vec<ValueSource>,
    source_of: FxHashMap<Value, ValueSource>,
}

impl Wiring {
    /// Wires the stages of a cut program.
    pub(crate) fn new(program: &Program, cut: &Cut, nodes: &Lists<ExprId>) -> Self {
        let mut wiring = Wiring {
            outputs: cut.declared.clone(),
            arguments: Vec::with_capacity(cut.declared.len()),
            results: Vec::new(),
            source_of: FxHashMap::default(),
        };
        // No stage takes the outputs of the last stage.
        let inner = &cut.declared[..cut.declared.len() - 1];
        for (stage, declared) in inner.iter().enumerate() {
            for (index, &value) in declared.iter().enumerate() {
                wiring
                    .source_of
                    .insert(value, ValueSource::output(StageId::from_index(stage), index));
            }
        }
        let graph = program.graph();
        for stage in 0..cut.declared.len() {
            let mut arguments = Vec::new();
            for &id in nodes.of(stage) {
                for &operand in graph.operands(id) {
                    let value = Value::of(graph, operand);
                    arguments.extend(wiring.import(program, cut, stage, value));
                }
            }
            for &value in &cut.declared[stage] {
                arguments.extend(wiring.import(program, cut, stage, value));
            }
            if cut.gathers {
                arguments.sort_unstable();
                arguments.dedup();
            } else {
                keep_first(&mut arguments)
            }
            wiring.arguments.push(arguments);
        }
        wiring.results = program
            .outputs()
            .iter()
            .enumerate()
            .map(|(position, &id)| wiring.result(program, cut, position, Value::of(graph, id)))
            .collect();
        wiring
    }

    /// Returns the source of an output of the program.
    fn result(
        &mut self,
        program: &Program,
        cut: &Cut,
        position: usize,
        value: Value,
    ) -> ValueSource {
        let last = cut.declared.len() - 1;
        if cut.gathers {
            return ValueSource::output(StageId::from_index(last), position);
        }
        match (program.graph().op(value.node), cut.owner(value.node)) {
            (Op::Parameter(parameter), _) => ValueSource::input(parameter.index as usize),
            (_, Some(owner)) => self.output_of(owner, value),
            // The last stage declares values without an owner.
            (_, None) => {
                let position = self.outputs[last].iter().position(|&output| output == value);
                let position = position.expect("an output without an owner is declared");
                ValueSource::output(StageId::from_index(last), position)
            }
        }
    }

    /// Returns a value as an output of its owner, adding an extra output if necessary.
    fn output_of(&mut self, owner: usize, value: Value) -> ValueSource {
        let outputs = &mut self.outputs[owner];
        *self.source_of.entry(value).or_insert_with(|| {
            outputs.push(value);
            ValueSource::output(StageId::from_index(owner), outputs.len() - 1)
        })
    }

    /// Adds the arguments that a stage needs for a value. If the owner does not return the value
    /// yet, it becomes an extra output.
    fn import(
        &mut self,
        program: &Program,
        cut: &Cut,
        stage: usize,
        value: Value,
    ) -> Option<ValueSource> {
        let graph = program.graph();
        if let Some(owner) = cut.owner(value.node).filter(|&owner| owner < stage) {
            return Some(self.output_of(owner, value));
        }
        let source = self.source(program, cut, stage, value);
        match graph.operands(value.node) {
            // The stage copies the annotation and takes the annotated value.
            &[operand] if source.is_none() && is_copied(graph, value.node) => {
                self.import(program, cut, stage, Value::of(graph, operand))
            }
            _ => source,
        }
    }

    /// Returns the source of a value after wiring, or `None` if the stage computes it itself.
    pub(crate) fn source(
        &self,
        program: &Program,
        cut: &Cut,
        stage: usize,
        value: Value,
    ) -> Option<ValueSource> {
        let graph = program.graph();
        if let Op::Parameter(parameter) = graph.op(value.node) {
            return Some(ValueSource::input(parameter.index as usize));
        }
        // If a stage received the constant as an input, it could not simplify as the whole program
        // does.
        if is_constant(graph, value.node) || cut.owner(value.node) == Some(stage) {
            return None;
        }
        let before = |source: &ValueSource| source.stage.is_some_and(|from| from.index() < stage);
        self.source_of.get(&value).copied().filter(before)
    }

    /// Returns the type of a source.
    pub(crate) fn type_of(&self, program: &Program, source: ValueSource) -> TensorType {
        match source.stage {
            None => program.inputs()[source.index].clone(),
            Some(stage) => {
                let value = self.outputs[stage.index()][source.index];
                program.graph().ty(value.node).parts()[value.part].clone()
            }
        }
    }
}

/// Removes all but the first of equal entries.
fn keep_first(sources: &mut Vec<ValueSource>) {
    let mut seen = FxHashSet::default();
    sources.retain(|&source| seen.insert(source));
}

//! Connecting the stages: which values cross from one to another.
//!
//! A stage gives its declared outputs first, in the order of the boundary. Behind them come *extra
//! outputs*: values that it computes on the way and that a later stage turns out to need as well.
//! They are appended in the order in which the later stages, and the nodes in them, ask. A stage
//! takes each value once. Where the caller decides about each node, arguments are sorted as Nx does:
//! inputs of the program first, by position, then outputs of earlier stages, by stage and position.
//! Where a program is cut as a whole, they come in the order in which the stage first needs them, so
//! that stages that compute the same have the same program, wherever their arguments come from.

use nxla_expr::{Op, Program, TensorType};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::cut::{Cut, NodesByStage, Value, is_constant, is_copied};
use crate::stage::{Source, StageId};

/// What each stage takes and gives.
pub(crate) struct Wiring {
    /// For each stage the values it gives.
    pub(crate) outputs: Vec<Vec<Value>>,
    /// For each stage where its arguments come from, each once.
    pub(crate) arguments: Vec<Vec<Source>>,
    /// Where the outputs of the program come from.
    pub(crate) results: Vec<Source>,
    source_of: FxHashMap<Value, Source>,
}

impl Wiring {
    /// Wires up a cut program.
    pub(crate) fn new(program: &Program, cut: &Cut, nodes: &NodesByStage) -> Self {
        let mut wiring = Wiring {
            outputs: cut.declared.clone(),
            arguments: Vec::with_capacity(cut.declared.len()),
            results: Vec::new(),
            source_of: FxHashMap::default(),
        };
        // What the last stage gives is nobody's argument.
        let inner = &cut.declared[..cut.declared.len() - 1];
        for (stage, declared) in inner.iter().enumerate() {
            for (index, &value) in declared.iter().enumerate() {
                wiring.source_of.insert(value, Source::output(StageId::from_index(stage), index));
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
            match cut.gathers {
                true => {
                    arguments.sort_unstable();
                    arguments.dedup();
                }
                false => keep_first(&mut arguments),
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

    /// Where an output of the program comes from.
    fn result(&mut self, program: &Program, cut: &Cut, position: usize, value: Value) -> Source {
        let last = cut.declared.len() - 1;
        if cut.gathers {
            return Source::output(StageId::from_index(last), position);
        }
        match (program.graph().op(value.node), cut.owner(value.node)) {
            (Op::Parameter(parameter), _) => Source::input(parameter.index as usize),
            (_, Some(owner)) => self.output_of(owner, value),
            // The last stage declares what no stage owns.
            (_, None) => {
                let position = self.outputs[last].iter().position(|&output| output == value);
                let position = position.expect("an output that nobody owns is declared");
                Source::output(StageId::from_index(last), position)
            }
        }
    }

    /// A value as an output of its owner, an extra one if need be.
    fn output_of(&mut self, owner: usize, value: Value) -> Source {
        let outputs = &mut self.outputs[owner];
        *self.source_of.entry(value).or_insert_with(|| {
            outputs.push(value);
            Source::output(StageId::from_index(owner), outputs.len() - 1)
        })
    }

    /// What a stage takes in order to have a value. What its owner does not give yet becomes an
    /// extra output there.
    fn import(
        &mut self,
        program: &Program,
        cut: &Cut,
        stage: usize,
        value: Value,
    ) -> Option<Source> {
        let graph = program.graph();
        if let Some(owner) = cut.owner(value.node).filter(|&owner| owner < stage) {
            return Some(self.output_of(owner, value));
        }
        let source = self.source(program, cut, stage, value);
        match graph.operands(value.node) {
            // The stage copies the annotation and takes what is annotated.
            &[operand] if source.is_none() && is_copied(graph, value.node) => {
                self.import(program, cut, stage, Value::of(graph, operand))
            }
            _ => source,
        }
    }

    /// Where a stage gets a value from once everything is wired up; `None` if it makes it itself.
    pub(crate) fn source(
        &self,
        program: &Program,
        cut: &Cut,
        stage: usize,
        value: Value,
    ) -> Option<Source> {
        let graph = program.graph();
        if let Op::Parameter(parameter) = graph.op(value.node) {
            return Some(Source::input(parameter.index as usize));
        }
        // A stage that took a constant as an input could not simplify as the whole program does.
        if is_constant(graph, value.node) || cut.owner(value.node) == Some(stage) {
            return None;
        }
        let before = |source: &Source| source.stage.is_some_and(|from| from.index() < stage);
        self.source_of.get(&value).copied().filter(before)
    }

    /// The type of what a source gives.
    pub(crate) fn type_of(&self, program: &Program, source: Source) -> TensorType {
        match source.stage {
            None => program.inputs()[source.index].clone(),
            Some(stage) => {
                let value = self.outputs[stage.index()][source.index];
                program.graph().ty(value.node).parts()[value.part].clone()
            }
        }
    }
}

/// Keeps the first of equal entries.
fn keep_first(sources: &mut Vec<Source>) {
    let mut seen = FxHashSet::default();
    sources.retain(|&source| seen.insert(source));
}

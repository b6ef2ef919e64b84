//! Operations on data, done at once.
//!
//! Such an operation is a little program of its own, whose operands (numbers too) are inputs: it is
//! compiled once for its types, whatever the values. Each thread builds its operations in one graph,
//! its workshop. A graph stores equal nodes once, so an operation that the thread has applied before
//! comes out as the same nodes, and they lead to what runs it: no program is made, and no digest.

use std::cell::Cell;
use std::sync::{Arc, LazyLock, OnceLock};

use nxla_eval::Interrupt;
use nxla_expr::{ExprId, Graph, Op, Program, Source};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::apply::{Ids, build_entries, number_tensor};
use crate::compiler::{Purpose, registry_generation};
use crate::error::Result;
use crate::function::{Entry, ResultVectors, Traced};
use crate::operand::{Operand, View};
use crate::options::{Options, default_options, graph_options, has_default_options};
use crate::tensor::Tensor;
use crate::vectors::Vectors;

/// Data that an operation is applied to; most have few operands.
type Inputs = SmallVec<[Tensor; 2]>;

/// An operation, and the data to apply it to.
pub struct AtOnce {
    operation: Arc<Operation>,
    inputs: Inputs,
    /// The vectorized axes of the results.
    vectors: Vectors,
    /// The options in force; `None` where there are no defaults.
    options: Option<Options>,
}

impl AtOnce {
    /// Builds an operation on data. What is built for the first time comes from `source`, which each
    /// thread asks for now and then.
    ///
    /// # Errors
    /// What `build` raises; a number that no dtype holds.
    ///
    /// # Panics
    /// If an operand is traced: see [`trace_of`](crate::trace_of).
    pub fn new<O: Operand>(
        operands: &[O],
        source: fn() -> Source,
        build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Ids>,
    ) -> Result<Self> {
        let inputs = concrete(operands)?;
        let options = has_default_options().then(default_options);
        let mut vectors = Vectors::NONE;
        let build = |graph: &mut Graph, parameters: &[ExprId]| {
            build_entries(graph, operands, parameters, build, &mut vectors)
        };
        let operation = Workshop::enter(source, |workshop| {
            workshop.operation(&inputs, options.as_ref(), build)
        })?;
        Ok(Self { operation, inputs, vectors, options })
    }

    /// Runs it where the data is, or where the default options say. `interrupt` is asked as by
    /// [`compile_for`](crate::compile_for).
    ///
    /// # Errors
    /// Whatever goes wrong in its compilation or its run; `interrupt` answers `true`.
    pub fn run(&self, interrupt: Option<&Interrupt<'_>>) -> Result<Vec<Tensor>> {
        let options = self.options.as_ref().unwrap_or(&NO_OPTIONS);
        let entry = match self.operation.entry.get() {
            Some(entry) => entry,
            None => {
                let made = self.operation.compile(&self.inputs, options, interrupt)?;
                self.operation.entry.get_or_init(|| made)
            }
        };
        let results = entry.run(&self.inputs(), options, interrupt)?;
        if self.vectors.is_empty() {
            return Ok(results);
        }
        Ok(results.into_iter().map(|data| data.with_vectors(self.vectors.clone())).collect())
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.operation.program
    }

    /// The data that it runs on.
    pub fn inputs(&self) -> SmallVec<[&Tensor; 2]> {
        self.inputs.iter().map(Tensor::data).collect()
    }
}

static NO_OPTIONS: LazyLock<Options> = LazyLock::new(Options::new);

/// The operands as tensors, numbers with the dtype that they take next to the first of the others.
fn concrete<O: Operand>(operands: &[O]) -> Result<Inputs> {
    let next_to = operands.iter().find_map(|operand| match operand.view() {
        View::Tensor(tensor) => Some(tensor.dtype()),
        View::Expr(_) | View::Number(_) => None,
    });
    let tensor = |operand: &O| match operand.view() {
        View::Tensor(tensor) => Ok(tensor.clone()),
        View::Number(number) => number_tensor(number, next_to),
        View::Expr(_) => unreachable!("a traced operand has a trace to build in"),
    };
    operands.iter().map(tensor).collect()
}

/// The program of an operation, and what runs it.
struct Operation {
    program: Arc<Program>,
    /// Compiled by the first run.
    entry: OnceLock<Entry<()>>,
}

impl Operation {
    fn compile(
        &self,
        inputs: &[Tensor],
        options: &Options,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Entry<()>> {
        let program = self.program.clone();
        let name = program.outputs().first().map(|&id| program.graph().op(id).name());
        let name = name.unwrap_or("operation").into();
        let (vectors, captured, lines) = (ResultVectors::default(), Vec::new(), Vec::new());
        let traced = Traced { program, results: (), vectors, captured, lines };
        let data: Vec<Tensor> = inputs.iter().map(|input| input.data().clone()).collect();
        Entry::compile(name, traced, &data, Purpose::Compile, &[], options, interrupt)
    }
}

/// What a workshop holds at most, in nodes: some hundred operations.
const ROOM: usize = 1 << 12;

/// Bytes of a literal that count as a node.
const BYTES_PER_NODE: usize = 64;

thread_local! {
    /// Not there while the thread is in it.
    static WORKSHOP: Cell<Option<Box<Workshop>>> = const { Cell::new(None) };
}

/// Where a thread builds its operations.
struct Workshop {
    graph: Graph,
    known: FxHashMap<Key, Arc<Operation>>,
    /// What the graph holds, in nodes.
    held: usize,
}

/// What tells an operation from others of its workshop.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    /// The nodes of the operands, then those of the results.
    nodes: Ids,
    operands: usize,
    /// A number for everything about options that decides what is compiled.
    options: u64,
}

impl Workshop {
    fn new(source: fn() -> Source) -> Self {
        let mut graph = Graph::with_options(graph_options());
        let source = graph.add_source(source());
        graph.set_source(source);
        Self { graph, known: FxHashMap::default(), held: 0 }
    }

    /// Works in the workshop of this thread. There is none yet for the first operation of a thread, none
    /// at its end, and none for operations that another one applies while it is built: they get a new one.
    fn enter<T>(source: fn() -> Source, work: impl FnOnce(&mut Self) -> T) -> T {
        let kept = WORKSHOP.try_with(Cell::take).ok().flatten();
        let kept = kept.filter(|workshop| workshop.graph.options() == graph_options());
        let mut workshop = kept.unwrap_or_else(|| Box::new(Self::new(source)));
        let result = work(&mut workshop);
        if workshop.is_in_order() {
            // What was there is of an operation within this one.
            let _ = WORKSHOP.try_with(|place| place.set(Some(workshop)));
        }
        result
    }

    /// Whether what is built next finds no hooks that are not its own, and not too much of everything.
    fn is_in_order(&self) -> bool {
        self.graph.effects().is_empty() && self.held < ROOM
    }

    fn operation(
        &mut self,
        inputs: &[Tensor],
        options: Option<&Options>,
        build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Ids>,
    ) -> Result<Arc<Operation>> {
        let before = self.graph.len();
        let (operands, results) = self.build(inputs, build);
        self.held += (before..self.graph.len()).map(|node| self.weight(node)).sum::<usize>();
        let (mut nodes, results) = (operands, results?);
        nodes.extend_from_slice(&results);
        // A name means another compiler once one is registered under it.
        let options = options.map_or(0, Options::fingerprint) ^ registry_generation();
        let key = Key { nodes, operands: inputs.len(), options };
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let types = inputs.iter().map(|input| input.data().ty()).collect();
        let program = Arc::new(Program::new(&self.graph, types, &results)?);
        let operation = Arc::new(Operation { program, entry: OnceLock::new() });
        if self.is_in_order() {
            self.known.insert(key, operation.clone());
        }
        Ok(operation)
    }

    /// The nodes of operands and of results.
    fn build(
        &mut self,
        inputs: &[Tensor],
        build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Ids>,
    ) -> (Ids, Result<Ids>) {
        let graph = &mut self.graph;
        let types = inputs.iter().map(|input| input.data().ty()).enumerate();
        let operands: Ids = types.map(|(index, ty)| graph.parameter(index, ty)).collect();
        let results = build(graph, &operands);
        (operands, results)
    }

    /// What a node takes, as a number of nodes.
    fn weight(&self, node: usize) -> usize {
        match self.graph.op(ExprId::from_index(node)) {
            Op::Tensor(literal) => 1 + literal.0.byte_size() / BYTES_PER_NODE,
            op => 1 + op.regions().iter().map(|region| region.graph().len()).sum::<usize>(),
        }
    }
}

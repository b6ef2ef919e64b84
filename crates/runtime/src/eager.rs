//! Eager operations: ops applied to data outside a trace.
//!
//! An eager operation is a program whose operands, including numbers, are inputs; only exponents are
//! constants. It is compiled once for its types. Each thread builds its operations in one graph.
//! A graph stores equal nodes once, so a repeated operation has the same nodes, and these are the
//! key of its executable: a repetition builds no program and no digest.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use nxla_eval::Interrupt;
use nxla_expr::{BinaryOp, ExprId, Graph, Op, Program, Source};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::apply::{Build, Ids, build_entries, common_dtype, number_scalar, number_tensor};
use crate::compiler::{Purpose, registry_generation};
use crate::donation::Donations;
use crate::error::{Error, Result};
use crate::function::{Entry, ResultVectors, TracedFunction};
use crate::operand::{Operand, View};
use crate::options::{Options, default_options, graph_options, has_default_options};
use crate::tensor::RawTensor;
use crate::thresholds::EAGER_NODES;
use crate::vectors::VectorAxes;

/// Data that an operation is applied to; most have few operands.
type Inputs = SmallVec<[RawTensor; 2]>;

/// An operation with its operands.
pub struct EagerOp {
    operation: Arc<Operation>,
    inputs: Inputs,
    /// The vectorized axes of the results.
    vectors: VectorAxes,
    /// The current options; `None` without defaults.
    options: Option<Options>,
}

impl fmt::Debug for EagerOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EagerOp").field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

impl EagerOp {
    /// Builds an operation on data. `source` returns the source line of the thread's operations; it is
    /// called when the graph of the thread is created.
    ///
    /// # Errors
    /// Returns errors of `build` and an error for a number that fits no dtype.
    ///
    /// # Panics
    /// Panics if an operand is traced: see [`trace_of`](crate::trace_of).
    pub fn new<O: Operand>(
        operands: &[O],
        source: fn() -> Source,
        build: &mut Build<'_>,
    ) -> Result<Self> {
        let inputs = to_tensors(operands)?;
        let options = has_default_options().then(default_options);
        let mut vectors = VectorAxes::NONE;
        let mut build = |graph: &mut Graph, parameters: &[ExprId]| {
            build_entries(graph, None, (operands, parameters), build, &mut vectors)
        };
        let operation = EagerGraph::enter(source, |eager| {
            eager.operation(&inputs, options_fingerprint(options.as_ref()), &mut build)
        })?;
        Ok(Self { operation, inputs, vectors, options })
    }

    /// Applies one op of the table to data.
    ///
    /// # Errors
    /// Returns an error if the op rejects the operands, or if a number fits no dtype.
    ///
    /// # Panics
    /// Panics if an operand is traced, as [`EagerOp::new`] does.
    pub fn of<O: Operand>(op: &Op, operands: &[O], source: fn() -> Source) -> Result<Self> {
        if let (Op::Binary(BinaryOp::Pow), [base, exponent]) = (op, operands)
            && let View::Number(number) = exponent.view()
        {
            // A constant exponent selects a formula, such as products for small integers. With an
            // input, eager and traced calls would return different bits.
            let base = std::slice::from_ref(base);
            let (scalar, dtype) = number_scalar(number, common_dtype(base))?;
            return Self::new(base, source, &mut |graph, ids| {
                let exponent = graph.scalar_constant(scalar, dtype)?;
                Ok(Ids::from_slice(&[graph.make(op.clone(), &[ids[0], exponent])?]))
            });
        }
        let mut build = |graph: &mut Graph, ids: &[ExprId]| {
            Ok(Ids::from_slice(&[graph.make(op.clone(), ids)?]))
        };
        Self::new(operands, source, &mut build)
    }

    /// Runs the operation on the device of the data, or on the device of the default options.
    /// `interrupt` is polled as by [`compile_for`](crate::compile_for).
    ///
    /// # Errors
    /// Returns errors of the compilation or the run and an error if `interrupt`
    /// returns `true`. An error about the operands contains the name that
    /// `function` returns.
    pub fn run<'n>(
        &self,
        function: impl FnOnce() -> &'n str,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Vec<RawTensor>> {
        self.run_unnamed(interrupt).map_err(|error| match error {
            // The program knows only the op that returns its result.
            Error::Arguments { why, .. } => Error::Arguments { function: function().into(), why },
            error => error,
        })
    }

    fn run_unnamed(&self, interrupt: Option<&Interrupt<'_>>) -> Result<Vec<RawTensor>> {
        let options = self.options.as_ref().unwrap_or(&NO_OPTIONS);
        let entry = match self.operation.entry.get() {
            Some(entry) => entry,
            None => {
                let made = self.operation.compile(&self.inputs, options, interrupt)?;
                self.operation.entry.get_or_init(|| made)
            }
        };
        let results = entry.run(None, &self.inputs(), options, interrupt)?;
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
    pub fn inputs(&self) -> SmallVec<[&RawTensor; 2]> {
        self.inputs.iter().map(RawTensor::data).collect()
    }
}

/// Returns a fingerprint of the options that affect compilation.
fn options_fingerprint(options: Option<&Options>) -> u64 {
    // A new registration can change the compiler with a name.
    options.map_or(0, Options::fingerprint) ^ registry_generation()
}

static NO_OPTIONS: LazyLock<Options> = LazyLock::new(Options::new);

/// Returns the operands as tensors. Weak scalars take the common dtype of the other operands.
fn to_tensors<O: Operand>(operands: &[O]) -> Result<Inputs> {
    let common = common_dtype(operands);
    let tensor = |operand: &O| match operand.view() {
        View::Tensor(tensor) => Ok(tensor.clone()),
        View::Number(number) => number_tensor(number, common),
        View::Expr(_) => unreachable!("a traced operand has a trace to build in"),
    };
    operands.iter().map(tensor).collect()
}

/// The program of an operation, and its executable.
struct Operation {
    program: Arc<Program>,
    /// Compiled by the first run.
    entry: OnceLock<Entry<()>>,
}

impl Operation {
    fn compile(
        &self,
        inputs: &[RawTensor],
        options: &Options,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Entry<()>> {
        let program = self.program.clone();
        let name = program.outputs().first().map(|&id| program.graph().op(id).name());
        let name = name.unwrap_or("operation").into();
        let (vectors, captured, lines) = (ResultVectors::default(), Vec::new(), Vec::new());
        let traced = TracedFunction { program, results: (), vectors, captured, lines };
        let data: Vec<RawTensor> = inputs.iter().map(|input| input.data().clone()).collect();
        let none = Donations::default();
        Entry::compile(name, traced, &data, Purpose::Compile, none, options, interrupt)
    }
}

/// Bytes of a literal that count as a node.
const BYTES_PER_NODE: usize = 64;

thread_local! {
    /// The graph of the thread; `None` while the thread uses it.
    static EAGER_GRAPH: Cell<Option<Box<EagerGraph>>> = const { Cell::new(None) };
}

/// The graph in which a thread builds its operations.
struct EagerGraph {
    graph: Graph,
    known: FxHashMap<Key, Arc<Operation>>,
    /// The weight of the graph, in nodes.
    weight: usize,
}

/// The key of an operation in its graph.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    /// The nodes of the operands, then the nodes of the results.
    nodes: Ids,
    operands: usize,
    /// A fingerprint of the options that affect compilation.
    options: u64,
}

impl EagerGraph {
    fn new(source: fn() -> Source) -> Self {
        let mut graph = Graph::with_options(graph_options());
        let source = graph.add_source(source());
        graph.set_source(source);
        Self { graph, known: FxHashMap::default(), weight: 0 }
    }

    /// Calls a function with the graph of this thread. The first operation of a thread, operations
    /// at the end of the thread, and operations inside the construction of another operation get a
    /// new graph.
    fn enter<T>(source: fn() -> Source, work: impl FnOnce(&mut Self) -> T) -> T {
        let kept = EAGER_GRAPH.try_with(Cell::take).ok().flatten();
        let kept = kept.filter(|eager| eager.graph.options() == graph_options());
        let mut eager = kept.unwrap_or_else(|| Box::new(Self::new(source)));
        let result = work(&mut eager);
        if eager.is_reusable() {
            // The replaced value belongs to a nested operation.
            let _ = EAGER_GRAPH.try_with(|cell| cell.set(Some(eager)));
        }
        result
    }

    /// Returns `true` if the next operation can use the graph: it holds no pending hooks, and
    /// its weight is below the limit.
    fn is_reusable(&self) -> bool {
        self.graph.effects().is_empty() && self.weight < EAGER_NODES
    }

    fn operation(
        &mut self,
        inputs: &[RawTensor],
        options: u64,
        build: &mut Build<'_>,
    ) -> Result<Arc<Operation>> {
        let before = self.graph.len();
        let (operands, results) = self.build(inputs, build);
        self.weight += (before..self.graph.len()).map(|node| self.weight_of(node)).sum::<usize>();
        let (mut nodes, results) = (operands, results?);
        nodes.extend_from_slice(&results);
        let key = Key { nodes, operands: inputs.len(), options };
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let types = inputs.iter().map(|input| input.data().ty()).collect();
        let program = Arc::new(Program::new(&self.graph, types, &results)?);
        let operation = Arc::new(Operation { program, entry: OnceLock::new() });
        if self.is_reusable() {
            self.known.insert(key, operation.clone());
        }
        Ok(operation)
    }

    /// The nodes of operands and of results.
    fn build(&mut self, inputs: &[RawTensor], build: &mut Build<'_>) -> (Ids, Result<Ids>) {
        let graph = &mut self.graph;
        let types = inputs.iter().map(|input| input.data().ty()).enumerate();
        let operands: Ids = types.map(|(index, ty)| graph.parameter(index, ty)).collect();
        let results = build(graph, &operands);
        (operands, results)
    }

    /// The weight of a node, in nodes.
    fn weight_of(&self, node: usize) -> usize {
        match self.graph.op(ExprId::from_index(node)) {
            Op::Tensor(literal) => 1 + literal.0.byte_size() / BYTES_PER_NODE,
            op => 1 + op.regions().iter().map(|region| region.graph().len()).sum::<usize>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use nxla_tensor::Number;

    use super::*;
    use crate::operand::Value;

    #[test]
    fn eager_ops_are_cached_by_operands() {
        let of = |op: BinaryOp, left: RawTensor, right: Value| {
            let applied =
                EagerOp::of(&Op::Binary(op), &[Value::Tensor(left), right], Source::default);
            let applied = applied.unwrap();
            (applied.program().clone(), applied.run(|| "test", None).unwrap()[0].to_host().unwrap())
        };
        let single = || RawTensor::new(vec![1.5_f32, -2.0], [2]).unwrap();
        let one = || Value::Number(Number::Float(1.0));
        let (program, sum) = of(BinaryOp::Add, single(), one());
        assert_eq!(sum.as_slice::<f32>().unwrap(), [2.5, -1.0]);
        let (again, difference) =
            of(BinaryOp::Add, single(), Value::Tensor(RawTensor::new(vec![-3.0_f32], []).unwrap()));
        assert!(Arc::ptr_eq(&program, &again), "a number is an operand like others");
        assert_eq!(difference.as_slice::<f32>().unwrap(), [-1.5, -5.0]);
        // Three other keys: another dtype, another shape and another op.
        let double = RawTensor::new(vec![1.5_f64, -2.0], [2]).unwrap();
        let (_, sum) = of(BinaryOp::Add, double, one());
        assert_eq!(sum.as_slice::<f64>().unwrap(), [2.5, -1.0]);
        let (_, sum) = of(BinaryOp::Add, single(), Value::Tensor(single()));
        assert_eq!(sum.as_slice::<f32>().unwrap(), [3.0, -4.0]);
        for op in [BinaryOp::Subtract, BinaryOp::Max, BinaryOp::Less, BinaryOp::Atan2] {
            let (program, _) = of(op, single(), one());
            assert_eq!(program.graph().op(program.outputs()[0]), &Op::Binary(op));
        }
    }
}

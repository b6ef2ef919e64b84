//! Batching: converting a graph for one entry to a graph for many entries.
//!
//! Some arguments of a function have *batch axes* in front of their own axes; all entries share the
//! other arguments. Every node that depends on an argument with batch axes is recreated such that
//! it computes all entries. Other nodes are copied and computed once. The result consists of the
//! same ops, so backends and derivatives need no knowledge of batches.
//!
//! Each op has a batching rule in the file of its family, and the matches are exhaustive. A rule
//! receives the operands, knows which have batch axes, and returns a node with batch axes. The type
//! of the node must be the type of the entry with leading batch axes. One function asserts this for
//! all rules and restores axis names. A few combinations that no op can express, such as a fold
//! whose initial value differs between entries, become loops over the entries.
//!
//! Regions are batched as separate programs. A conditional whose predicate differs between entries
//! computes every branch that some entry takes and selects the results. A loop runs while some
//! entry continues, and finished entries keep their state. Entries that do not take a branch, or
//! are finished, are computed with values for which the region is defined.

mod batched_outputs;
mod batcher;
mod contract;
mod control;
mod create;
mod elementwise;
mod entries;
mod fill_entries;
mod index;
mod linalg;
mod movement;
mod reduce;
mod window;

pub use batcher::{Batched, batched_type};
use batcher::{Batcher, Parts, ids};

use crate::graph::{
    ErrorKind, ExprId, Family, Graph, Op, Program, Result, SourceMap, TensorType, Type,
};

impl Graph {
    /// Appends the nodes that `roots` of another graph need, for a batch of these sizes, with
    /// `arguments` for the inputs. Returns the values of the roots; values that depend on no
    /// batched argument are shared. Hooks of the other graph become hooks of this graph, which are
    /// called once with all entries.
    ///
    /// ```
    /// use nxla_expr::batch::Batched;
    /// use nxla_expr::{Graph, TensorType};
    /// use nxla_tensor::DType;
    ///
    /// // A matrix times a vector, for one entry.
    /// let mut entry = Graph::new();
    /// let matrix = entry.parameter(0, TensorType::new(DType::F32, [2, 3]));
    /// let vector = entry.parameter(1, TensorType::new(DType::F32, [3]));
    /// let product = entry.dot(matrix, vector)?;
    ///
    /// // One matrix, five vectors.
    /// let mut graph = Graph::new();
    /// let matrix = graph.parameter(0, TensorType::new(DType::F32, [2, 3]));
    /// let vectors = graph.parameter(1, TensorType::new(DType::F32, [5, 3]));
    /// let arguments = [Batched::from_shared(matrix), Batched::each(vectors)];
    /// let products = graph.batch(&entry, &[product], &arguments, &[5])?;
    /// assert!(products[0].batched);
    /// assert_eq!(graph.tensor_type(products[0].id).to_string(), "f32[5][2]");
    /// # Ok::<(), nxla_expr::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the number or the types of the arguments do not fit.
    pub fn batch(
        &mut self,
        from: &Graph,
        roots: &[ExprId],
        arguments: &[Batched],
        sizes: &[usize],
    ) -> Result<Vec<Batched>> {
        let source = self.current_source();
        let results = Batcher { graph: self, sizes }.run(from, roots, arguments);
        self.set_source(source);
        results
    }

    /// Returns the value with batch axes, broadcast if it is shared.
    ///
    /// # Errors
    /// Returns an error if the value would have 2^64 or more elements with batch axes.
    pub fn lift(&mut self, x: Batched, sizes: &[usize]) -> Result<ExprId> {
        Batcher { graph: self, sizes }.lift(x)
    }
}

impl Program {
    /// Returns the program for a batch of these sizes, in which the marked inputs and the outputs
    /// that depend on them have leading batch axes, and a flag for each output.
    ///
    /// # Errors
    /// Returns an error if the number of marks differs from the number of inputs.
    pub fn add_batch_axes(&self, inputs: &[bool], sizes: &[usize]) -> Result<(Program, Vec<bool>)> {
        self.add_batch_axes_as(inputs, sizes, None)
    }

    /// Does the same as [`Program::add_batch_axes`], and adds batch axes to the outputs marked in
    /// `outputs`.
    pub(crate) fn add_batch_axes_as(
        &self,
        inputs: &[bool],
        sizes: &[usize],
        outputs: Option<&[bool]>,
    ) -> Result<(Program, Vec<bool>)> {
        let mut graph = Graph::with_options(self.graph().options());
        if inputs.len() != self.inputs().len() {
            let expected = self.inputs().len().to_string();
            return Err(graph.error("batch", ErrorKind::Arity { expected, found: inputs.len() }));
        }
        let types: Vec<TensorType> = self
            .inputs()
            .iter()
            .zip(inputs)
            .map(|(ty, &batched)| if batched { batched_type(ty, sizes) } else { ty.clone() })
            .collect();
        let arguments: Vec<Batched> = types
            .iter()
            .zip(inputs)
            .enumerate()
            .map(|(index, (ty, &batched))| Batched {
                id: graph.parameter(index, ty.clone()),
                batched,
            })
            .collect();
        let mut batcher = Batcher { graph: &mut graph, sizes };
        let mut results = batcher.run(self.graph(), self.outputs(), &arguments)?;
        for (result, &wanted) in results.iter_mut().zip(outputs.into_iter().flatten()) {
            if wanted {
                *result = Batched::each(batcher.lift(*result)?);
            }
        }
        let marks = results.iter().map(|result| result.batched).collect();
        Ok((Program::new(&graph, types, &ids(&results))?, marks))
    }
}

impl Batcher<'_> {
    fn run(
        &mut self,
        from: &Graph,
        roots: &[ExprId],
        arguments: &[Batched],
    ) -> Result<Vec<Batched>> {
        let all: Vec<ExprId> = roots.iter().chain(from.effects()).copied().collect();
        let reachable = from.reachable(&all);
        let count = all.iter().max().map_or(0, |last| last.index() + 1);
        let mut made: Vec<Parts> = Vec::with_capacity(count);
        let mut sources = SourceMap::default();
        for id in from.ids().take(count) {
            if !reachable.contains(id) {
                made.push(Parts::new());
                continue;
            }
            self.graph.copy_source(from, id, &mut sources);
            let operands = from.operands(id);
            let parts = match from.op(id) {
                Op::Parameter(parameter) => {
                    let argument = arguments.get(parameter.index as usize).copied();
                    let argument = argument.ok_or_else(|| {
                        let expected = format!("more than {}", parameter.index);
                        let found = arguments.len();
                        self.graph.error("batch", ErrorKind::Arity { expected, found })
                    })?;
                    Parts::from_elem(argument, 1)
                }
                Op::Elem(index) => Parts::from_elem(made[operands[0].index()][*index], 1),
                op => {
                    let operands: Parts = operands.iter().map(|id| made[id.index()][0]).collect();
                    self.node(op, &operands, from.ty(id))?
                }
            };
            made.push(parts);
        }
        Ok(roots.iter().map(|root| made[root.index()][0]).collect())
    }

    /// Creates a node for all entries.
    fn node(&mut self, op: &Op, operands: &[Batched], ty: &Type) -> Result<Parts> {
        if !operands.iter().any(|operand| operand.batched) {
            let id = self.make(op.clone(), &ids(operands))?;
            return Ok(self.graph.parts(id)?.into_iter().map(Batched::from_shared).collect());
        }
        let id = match op.family() {
            Family::Create => create::batch(op),
            Family::Elementwise => elementwise::batch(self, op, operands),
            Family::Movement => movement::batch(self, op, operands),
            Family::Reduce => reduce::batch(self, op, operands, ty),
            Family::Window => window::batch(self, op, operands, ty),
            Family::Contract => contract::batch(self, op, operands),
            Family::Index => index::batch(self, op, operands),
            Family::Linalg => linalg::batch(self, op, operands),
            Family::Control => {
                let parts = control::batch(self, op, operands, ty)?;
                return parts
                    .into_iter()
                    .zip(ty.parts())
                    .map(|(p, ty)| self.restore_names(p, ty))
                    .collect();
            }
        }?;
        let parts = self.graph.parts(id)?.into_iter().map(Batched::each);
        parts.zip(ty.parts()).map(|(part, ty)| self.restore_names(part, ty)).collect()
    }

    /// Restores the axis names of the entry. A rule may change nothing but names.
    fn restore_names(&mut self, part: Batched, ty: &TensorType) -> Result<Batched> {
        let expected = if part.batched { batched_type(ty, self.sizes) } else { ty.clone() };
        let found = self.graph.tensor_type(part.id);
        assert!(
            found.dtype == expected.dtype && found.shape == expected.shape,
            "a batch of {ty} came out as {found}"
        );
        if found.names == expected.names {
            return Ok(part);
        }
        let id = self.graph.rename(part.id, expected.names)?;
        Ok(Batched { id, ..part })
    }
}

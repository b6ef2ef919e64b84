//! Batching: a graph for one entry becomes a graph for many entries at once.
//!
//! Some of a function's arguments get *batch axes* in front of their own; the others are shared by
//! all entries. Every node that depends on an argument of the first kind is made again so that it
//! does for each entry what it did for one; nodes that do not are copied and computed once. The
//! result is made of the same ops: no engine, and no derivative, knows that there was a batch.
//!
//! Each op owes one rule, in the file of its family, and rules are exhaustive. A rule sees which
//! operands have the batch axes and gives a node that has them. What it gives must be of the
//! entry's type with the batch axes in front: this is asserted, and axis names are restored, for
//! all rules in one place. A few combinations that no op expresses (a fold whose initial value
//! differs between entries) go through the entries in a loop.
//!
//! Regions are batched as programs of their own. A condition that differs between entries becomes
//! a choice: a conditional computes every branch that some entry takes and selects, a loop goes on
//! while some entry does, and entries that are done keep their state. Entries that do not take a
//! branch, or are done, are computed with values at which the region is defined.

mod batcher;
mod contract;
mod control;
mod create;
mod elementwise;
mod entries;
mod index;
mod lanes;
mod linalg;
mod movement;
mod reduce;
mod window;

pub use batcher::{Batched, batched_type};
use batcher::{Batcher, Parts};

use crate::graph::{
    ErrorKind, ExprId, Family, Graph, Op, Operands, Program, Result, SourceMap, TensorType, Type,
};

impl Graph {
    /// Appends what `roots` of another graph need, with `arguments` for the inputs of its program,
    /// for a batch of these sizes. Gives what the roots became; those that depend on no batched
    /// argument are shared. Hooks of the other graph become hooks of this one, called once with
    /// the values of all entries.
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
    /// let arguments = [Batched::shared(matrix), Batched::each(vectors)];
    /// let products = graph.batch(&entry, &[product], &arguments, &[5])?;
    /// assert!(products[0].batched);
    /// assert_eq!(graph.tensor_type(products[0].id).to_string(), "f32[5][2]");
    /// # Ok::<(), nxla_expr::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number or the types of the arguments do not fit.
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

    /// The value with the batch axes, repeated over them if it is shared.
    ///
    /// # Errors
    /// None; the result is fallible like that of every builder.
    pub fn lift(&mut self, x: Batched, sizes: &[usize]) -> Result<ExprId> {
        Batcher { graph: self, sizes }.lift(x)
    }
}

impl Program {
    /// The program for a batch of these sizes: inputs that are marked, and the outputs that
    /// depend on them, have the batch axes in front. Tells which outputs do.
    ///
    /// # Errors
    /// If there is not one mark for each input.
    pub fn batched(&self, inputs: &[bool], sizes: &[usize]) -> Result<(Program, Vec<bool>)> {
        self.batched_as(inputs, sizes, None)
    }

    /// [`Program::batched`] whose outputs have the batch axes where `outputs` says so, too.
    pub(crate) fn batched_as(
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
        let ids: Vec<ExprId> = results.iter().map(|result| result.id).collect();
        let marks = results.iter().map(|result| result.batched).collect();
        Ok((Program::new(&graph, types, &ids)?, marks))
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

    /// One node for all entries.
    fn node(&mut self, op: &Op, operands: &[Batched], ty: &Type) -> Result<Parts> {
        if !operands.iter().any(|operand| operand.batched) {
            let ids: Operands = operands.iter().map(|operand| operand.id).collect();
            let id = self.copy(op, &ids)?;
            return Ok(self.graph.parts(id)?.into_iter().map(Batched::shared).collect());
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
                    .map(|(p, ty)| self.named(p, ty))
                    .collect();
            }
        }?;
        let parts = self.graph.parts(id)?.into_iter().map(Batched::each);
        parts.zip(ty.parts()).map(|(part, ty)| self.named(part, ty)).collect()
    }

    /// A node as it was; one with effects takes its place after those made so far.
    fn copy(&mut self, op: &Op, operands: &[ExprId]) -> Result<ExprId> {
        self.graph.make(op.clone(), operands)
    }

    /// The result with the names of the entry's axes. Rules may lose names, nothing else.
    fn named(&mut self, part: Batched, ty: &TensorType) -> Result<Batched> {
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

//! A graph that is being extended for a batch, and what rules are written with.

use nxla_tensor::{Names, Shape};
use smallvec::SmallVec;

use crate::graph::{Axes, ExprId, Graph, Op, Operands, Reshape, Result, TensorType};

/// A tensor in a graph that computes for a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batched {
    /// The node.
    pub id: ExprId,
    /// Whether it has the batch axes in front of its own. Without them it is shared: the same for
    /// all entries.
    pub batched: bool,
}

impl Batched {
    /// A value with the batch axes.
    pub fn each(id: ExprId) -> Self {
        Self { id, batched: true }
    }

    /// A value that all entries share.
    pub fn shared(id: ExprId) -> Self {
        Self { id, batched: false }
    }
}

/// The results of one node.
pub(super) type Parts = SmallVec<[Batched; 1]>;

/// A type with the batch axes, which have no names, in front.
pub fn batched_type(ty: &TensorType, sizes: &[usize]) -> TensorType {
    let shape = sizes.iter().chain(&ty.shape).copied().collect();
    let names = ty.names.as_ref().map(|names| {
        let batch = sizes.iter().map(|_| None);
        Names::new(batch.chain(names.iter().cloned()))
    });
    TensorType { dtype: ty.dtype, shape, names }
}

/// A graph that is being extended, and the batch.
pub(super) struct Batcher<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) sizes: &'a [usize],
}

impl Batcher<'_> {
    /// The number of batch axes.
    pub(super) fn depth(&self) -> usize {
        self.sizes.len()
    }

    /// An op on nodes.
    pub(super) fn make(&mut self, op: Op, operands: &[ExprId]) -> Result<ExprId> {
        self.graph.make(op, operands)
    }

    /// The shape of one entry.
    pub(super) fn entry_shape(&self, x: Batched) -> Shape {
        let shape = self.graph.shape(x.id);
        if x.batched { Shape::from(&shape[self.depth()..]) } else { shape.clone() }
    }

    /// A shape with the batch axes in front.
    pub(super) fn batch_shape(&self, entry: &[usize]) -> Shape {
        self.sizes.iter().chain(entry).copied().collect()
    }

    /// One value per batch axis, then the entry's.
    pub(super) fn prefixed<T: Clone>(&self, value: T, entry: &[T]) -> Box<[T]> {
        std::iter::repeat_n(value, self.depth()).chain(entry.iter().cloned()).collect()
    }

    /// An axis of an entry as an axis of the batch.
    pub(super) fn shift(&self, axis: usize) -> usize {
        axis + self.depth()
    }

    /// Axes of an entry as axes of the batch.
    pub(super) fn shift_all(&self, axes: &[usize]) -> Axes {
        axes.iter().map(|&axis| self.shift(axis)).collect()
    }

    /// The batch axes, then axes of an entry.
    pub(super) fn with_batch_axes(&self, axes: &[usize]) -> Axes {
        (0..self.depth()).chain(axes.iter().map(|&axis| self.shift(axis))).collect()
    }

    /// The value with the batch axes, repeated if it is shared.
    pub(super) fn lift(&mut self, x: Batched) -> Result<ExprId> {
        if x.batched {
            return Ok(x.id);
        }
        let ty = batched_type(self.graph.tensor_type(x.id), self.sizes);
        self.graph.broadcast_named(x.id, ty.shape, ty.names)
    }

    /// All values with the batch axes.
    pub(super) fn lift_all(&mut self, operands: &[Batched]) -> Result<Operands> {
        operands.iter().map(|&operand| self.lift(operand)).collect()
    }

    /// The value such that it broadcasts with entries of a rank that is not smaller than its own:
    /// axes of size 1 come between the batch axes and its own. Shared values do so as they are.
    pub(super) fn widen(&mut self, x: Batched, rank: usize) -> Result<ExprId> {
        let entry = self.entry_shape(x);
        if !x.batched || entry.rank() == rank {
            return Ok(x.id);
        }
        let ones = rank - entry.rank();
        let sizes: Vec<usize> = std::iter::repeat_n(1, ones).chain(entry.iter().copied()).collect();
        let depth = self.depth();
        let names = self.graph.tensor_type(x.id).names.as_ref().map(|names| {
            let entry = names[depth..].iter().cloned();
            Names::new(std::iter::repeat_n(None, depth + ones).chain(entry))
        });
        let shape = self.batch_shape(&sizes);
        self.make(Op::Reshape(Box::new(Reshape { shape, names })), &[x.id])
    }

    /// Operands whose entries broadcast with each other, as operands that do so themselves.
    pub(super) fn aligned(&mut self, operands: &[Batched]) -> Result<Operands> {
        let ranks = operands.iter().map(|&operand| self.entry_shape(operand).rank());
        let rank = ranks.max().unwrap_or(0);
        operands.iter().map(|&operand| self.widen(operand, rank)).collect()
    }

    /// The value with the batch axes, which begin at `position`, moved to the front.
    pub(super) fn bring_forward(&mut self, x: ExprId, position: usize) -> Result<ExprId> {
        let (depth, rank) = (self.depth(), self.graph.shape(x).rank());
        let batch = position..position + depth;
        let order: Axes = batch.clone().chain(0..position).chain(batch.end..rank).collect();
        self.make(Op::Transpose(order), &[x])
    }

    /// The value with an entry's axes in this order; batch axes stay in front.
    pub(super) fn permute_entry(&mut self, x: ExprId, order: &[usize]) -> Result<ExprId> {
        let order = self.with_batch_axes(order);
        self.make(Op::Transpose(order), &[x])
    }

    /// The value, which has the batch axes, without axis names.
    pub(super) fn unnamed(&mut self, x: ExprId) -> Result<ExprId> {
        self.graph.rename(x, None)
    }
}

//! The graph that batching extends, and helpers for batching rules.

use nxla_tensor::{Names, Shape};
use smallvec::SmallVec;

use crate::graph::{Axes, ExprId, Graph, Op, Operands, Reshape, Result, TensorType};

/// A value in a graph that computes a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batched {
    /// The node.
    pub id: ExprId,
    /// True if the value has leading batch axes. Otherwise all entries share the value.
    pub batched: bool,
}

impl Batched {
    /// Creates a value with batch axes.
    pub fn each(id: ExprId) -> Self {
        Self { id, batched: true }
    }

    /// Creates a value that all entries share.
    pub fn from_shared(id: ExprId) -> Self {
        Self { id, batched: false }
    }
}

/// The results of one node.
pub(super) type Parts = SmallVec<[Batched; 1]>;

/// Returns the nodes of values.
pub(super) fn ids(values: &[Batched]) -> Operands {
    values.iter().map(|value| value.id).collect()
}

/// Returns a type with leading batch axes, which have no names.
pub fn batched_type(ty: &TensorType, sizes: &[usize]) -> TensorType {
    let shape = sizes.iter().chain(&ty.shape).copied().collect();
    let names = ty.names.as_ref().map(|names| {
        let batch = sizes.iter().map(|_| None);
        Names::new(batch.chain(names.iter().cloned()))
    });
    TensorType { dtype: ty.dtype, shape, names }
}

/// The graph that is being extended, and the batch sizes.
pub(super) struct Batcher<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) sizes: &'a [usize],
}

impl Batcher<'_> {
    /// Returns the number of batch axes.
    pub(super) fn depth(&self) -> usize {
        self.sizes.len()
    }

    /// Creates a node.
    pub(super) fn make(&mut self, op: Op, operands: &[ExprId]) -> Result<ExprId> {
        self.graph.make(op, operands)
    }

    /// Returns the shape of one entry.
    pub(super) fn entry_shape(&self, x: Batched) -> Shape {
        let shape = self.graph.shape(x.id);
        if x.batched { Shape::from(&shape[self.depth()..]) } else { shape.clone() }
    }

    /// Returns a shape with leading batch axes.
    pub(super) fn batch_shape(&self, entry: &[usize]) -> Shape {
        self.sizes.iter().chain(entry).copied().collect()
    }

    /// Returns a list with one value per batch axis, then the values of the entry.
    pub(super) fn prepend_batch<T: Clone>(&self, value: T, entry: &[T]) -> Box<[T]> {
        std::iter::repeat_n(value, self.depth()).chain(entry.iter().cloned()).collect()
    }

    /// Converts an axis of an entry to an axis of the batch.
    pub(super) fn shift(&self, axis: usize) -> usize {
        axis + self.depth()
    }

    /// Converts axes of an entry to axes of the batch.
    pub(super) fn shift_all(&self, axes: &[usize]) -> Axes {
        axes.iter().map(|&axis| self.shift(axis)).collect()
    }

    /// Returns the batch axes, then converted axes of an entry.
    pub(super) fn with_batch_axes(&self, axes: &[usize]) -> Axes {
        (0..self.depth()).chain(axes.iter().map(|&axis| self.shift(axis))).collect()
    }

    /// Returns the value with batch axes, broadcast if it is shared.
    pub(super) fn lift(&mut self, x: Batched) -> Result<ExprId> {
        if x.batched {
            return Ok(x.id);
        }
        let ty = batched_type(self.graph.tensor_type(x.id), self.sizes);
        self.graph.broadcast_named(x.id, ty.shape, ty.names)
    }

    /// Returns all values with batch axes.
    pub(super) fn lift_all(&mut self, operands: &[Batched]) -> Result<Operands> {
        operands.iter().map(|&operand| self.lift(operand)).collect()
    }

    /// Returns the value such that it broadcasts with entries of rank `rank`: axes of size 1 are
    /// inserted between the batch axes and the entry axes. Shared values are returned unchanged.
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

    /// Aligns the ranks of operands, so that the batches broadcast as the entries do.
    pub(super) fn align_ranks(&mut self, operands: &[Batched]) -> Result<Operands> {
        let ranks = operands.iter().map(|&operand| self.entry_shape(operand).rank());
        let rank = ranks.max().unwrap_or(0);
        operands.iter().map(|&operand| self.widen(operand, rank)).collect()
    }

    /// Moves the batch axes, which start at `position`, to the front.
    pub(super) fn bring_forward(&mut self, x: ExprId, position: usize) -> Result<ExprId> {
        let (depth, rank) = (self.depth(), self.graph.shape(x).rank());
        let batch = position..position + depth;
        let order: Axes = batch.clone().chain(0..position).chain(batch.end..rank).collect();
        self.make(Op::Transpose(order), &[x])
    }

    /// Moves the batch axes behind `leading` axes of the entry.
    pub(super) fn move_batch_behind(&mut self, x: ExprId, leading: usize) -> Result<ExprId> {
        let (depth, rank) = (self.depth(), self.graph.shape(x).rank());
        let order = (depth..depth + leading).chain(0..depth).chain(depth + leading..rank);
        self.make(Op::Transpose(order.collect()), &[x])
    }

    /// Permutes the axes of the entries; batch axes stay in front.
    pub(super) fn permute_entry(&mut self, x: ExprId, order: &[usize]) -> Result<ExprId> {
        let order = self.with_batch_axes(order);
        self.make(Op::Transpose(order), &[x])
    }

    /// Returns the value, which has batch axes, without axis names.
    pub(super) fn strip_names(&mut self, x: ExprId) -> Result<ExprId> {
        self.graph.rename(x, None)
    }
}

//! Fallback for ops that cannot compute all entries at once: a loop over the entries.

use nxla_tensor::{DType, Scalar, Shape};

use super::batcher::{Batched, Batcher, batched_type};
use crate::build::SliceStart;
use crate::graph::{ExprId, Op, Operands, Replay, Result, TensorType, Type};

/// Applies the op to each entry in a loop that writes the results to a stack.
pub(super) fn one_by_one(
    batcher: &mut Batcher<'_>,
    op: &Op,
    operands: &[Batched],
    ty: &Type,
) -> Result<ExprId> {
    let entry = ty.as_tensor().expect("an op that runs for each entry returns one tensor");
    let count = batcher.sizes.iter().product();
    if count == 0 {
        let none = batched_type(entry, batcher.sizes);
        return batcher.graph.constant(Scalar::zero(none.dtype), none);
    }
    let mut rows = Operands::new();
    for &operand in operands {
        rows.push(if operand.batched {
            let shape = prepend_size(count, &batcher.entry_shape(operand));
            batcher.graph.reshape(operand.id, shape)?
        } else {
            operand.id
        });
    }
    let results = TensorType::new(entry.dtype, prepend_size(count, &entry.shape));
    let zero = Scalar::zero(entry.dtype);
    let initial = [batcher.counter(0)?, batcher.graph.constant(zero, results)?];
    let sizes = batcher.sizes;
    let state = batcher.graph.repeat_while(
        &initial,
        Replay::default(),
        |graph, state| {
            let end = Batcher { graph: &mut *graph, sizes }.counter(count)?;
            graph.less(state[0], end)
        },
        |graph, state| {
            let mut batcher = Batcher { graph, sizes };
            batcher.next_entry(op, operands, &rows, state[0], state[1], entry)
        },
    )?;
    let shape = batcher.batch_shape(&entry.shape);
    batcher.graph.reshape(state[1], shape)
}

impl Batcher<'_> {
    fn counter(&mut self, value: usize) -> Result<ExprId> {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.graph.scalar_constant(Scalar::Int(value), DType::S64)
    }

    /// Returns the loop state after entry `index`.
    fn next_entry(
        &mut self,
        op: &Op,
        operands: &[Batched],
        rows: &[ExprId],
        index: ExprId,
        results: ExprId,
        entry: &TensorType,
    ) -> Result<Vec<ExprId>> {
        let mut own = Operands::new();
        for (operand, &row) in operands.iter().zip(rows) {
            own.push(if operand.batched {
                let shape = self.entry_shape(*operand);
                let one = self.graph.slice_along_axis(row, index, 1, 0, 1)?;
                self.graph.reshape(one, shape)?
            } else {
                row
            });
        }
        let result = self.graph.make(op.clone(), &own)?;
        let row = self.graph.reshape(result, prepend_size(1, &entry.shape))?;
        let mut starts = vec![SliceStart::Static(0); entry.rank() + 1];
        starts[0] = SliceStart::Dynamic(index);
        let results = self.graph.put_slice(results, &starts, row)?;
        let one = self.counter(1)?;
        Ok(vec![self.graph.add(index, one)?, results])
    }
}

fn prepend_size(size: usize, entry: &Shape) -> Shape {
    std::iter::once(size).chain(entry.iter().copied()).collect()
}

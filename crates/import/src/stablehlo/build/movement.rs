//! Shapes: broadcasts, reshapes, transpositions, padding, concatenation.

use nxla_expr::{ExprId, Op, Padding};

use super::operand::{as_array, axes, sizes_of};
use super::{Builder, Fail, malformed};
use crate::stablehlo::syntax::Operation;

impl Builder<'_> {
    pub(super) fn movement(
        &mut self,
        name: &str,
        operation: &Operation,
        x: &[ExprId],
    ) -> Result<Option<ExprId>, Fail> {
        Ok(Some(match name {
            "broadcast_in_dim" => {
                let [x] = as_array(x)?;
                let dims = operation.sizes(&["broadcast_dimensions", "dims"])?;
                self.broadcast_in_dim(operation, x, &dims)?
            }
            "broadcast" => {
                let [x] = as_array(x)?;
                self.graph.broadcast(x, operation.result(0)?.shape.clone(), None)?
            }
            "reshape" => {
                let [x] = as_array(x)?;
                self.graph.reshape(x, operation.result(0)?.shape.clone())?
            }
            "transpose" => {
                let [x] = as_array(x)?;
                let permutation = operation.integers(&["permutation", "dims"])?;
                self.graph.transpose(x, Some(&permutation))?
            }
            "reverse" => {
                let [x] = as_array(x)?;
                let dimensions = operation.integers(&["dimensions", "dims"])?;
                self.graph.reverse(x, Some(&dimensions))?
            }
            "concatenate" => {
                let axis = operation.integer(&["dimension", "dim"])?;
                match self.unstack_operands(x, axis) {
                    Some(rows) => self.graph.stack(&rows, axis, None)?,
                    None => self.graph.concatenate(x, axis)?,
                }
            }
            "pad" => {
                let [x, value] = as_array(x)?;
                let low = operation.integers(&["edge_padding_low", "low"])?;
                let high = operation.integers(&["edge_padding_high", "high"])?;
                let interior = operation.sizes(&["interior_padding", "interior"])?;
                if low.len() != high.len() || low.len() != interior.len() {
                    return malformed("the lists of padding must have equal lengths");
                }
                let padding: Vec<Padding> = (0..low.len())
                    .map(|axis| Padding {
                        low: low[axis],
                        high: high[axis],
                        interior: interior[axis],
                    })
                    .collect();
                self.graph.pad(x, value, &padding)?
            }
            _ => return Ok(None),
        }))
    }

    fn broadcast_in_dim(
        &mut self,
        operation: &Operation,
        x: ExprId,
        dims: &[usize],
    ) -> Result<ExprId, Fail> {
        let shape = operation.result(0)?.shape.clone();
        if dims.len() != self.graph.shape(x).rank() {
            return malformed("broadcast_dimensions must have one entry per axis");
        }
        // nxla requires increasing axes.
        let mut order: Vec<usize> = (0..dims.len()).collect();
        order.sort_by_key(|&axis| dims[axis]);
        let sorted: Vec<usize> = order.iter().map(|&axis| dims[axis]).collect();
        let x = self.graph.transpose(x, Some(&axes(&order)))?;
        if *self.graph.shape(x) == shape {
            return Ok(x);
        }
        Ok(self.graph.broadcast(x, shape, Some(&axes(&sorted)))?)
    }

    /// Returns the tensors whose reshapes add an axis of size 1 for a concatenation along this axis.
    fn unstack_operands(&self, x: &[ExprId], axis: i64) -> Option<Vec<ExprId>> {
        let axis = usize::try_from(axis).ok()?;
        let row = |&id: &ExprId| {
            let Op::Reshape(_) = self.graph.op(id) else { return None };
            let row = self.graph.operands(id)[0];
            let mut shape = self.graph.shape(row).to_vec();
            (axis <= shape.len()).then(|| shape.insert(axis, 1))?;
            (shape[..] == self.graph.shape(id)[..]).then_some(row)
        };
        x.iter().map(row).collect()
    }

    /// Moves the axes `first` of a tensor to the front, in this order. Returns the tensor and the
    /// old position of each of its axes.
    pub(super) fn axes_to_front(
        &mut self,
        x: ExprId,
        first: &[usize],
    ) -> Result<(ExprId, Vec<usize>), Fail> {
        let rank = self.graph.shape(x).rank();
        let rest = (0..rank).filter(|axis| !first.contains(axis));
        let order: Vec<usize> = first.iter().copied().chain(rest).collect();
        Ok((self.graph.transpose(x, Some(&axes(&order)))?, order))
    }

    /// Returns a list of sizes with one entry per axis of a tensor.
    pub(super) fn per_axis(&self, x: ExprId, sizes: &[i64]) -> Result<Vec<usize>, Fail> {
        if sizes.len() != self.graph.shape(x).rank() {
            return malformed("a list must have one entry per axis");
        }
        sizes_of(sizes)
    }
}

//! Slices and gathers.

use nxla_expr::build::SliceStart;
use nxla_expr::{ExprId, Op};

use super::operand::{as_array, numbers, sizes_of};
use super::{Builder, Fail, malformed, unsupported};
use crate::numbers::to_i64;
use crate::stablehlo::syntax::{Attribute, Operation};

impl Builder<'_> {
    pub(super) fn index(
        &mut self,
        name: &str,
        operation: &Operation,
        x: &[ExprId],
    ) -> Result<Option<ExprId>, Fail> {
        Ok(Some(match name {
            "slice" => {
                let [x] = as_array(x)?;
                self.slice(operation, x)?
            }
            "dynamic_slice" => {
                let Some((&x, starts)) = x.split_first() else {
                    return malformed("needs operands");
                };
                let sizes = operation.sizes(&["slice_sizes", "sizes"])?;
                let starts = self.starts_of(x, starts, &sizes);
                self.graph.slice(x, &starts, &sizes, None)?
            }
            "dynamic_update_slice" => {
                let [x, update, starts @ ..] = x else { return malformed("needs operands") };
                let sizes = self.graph.shape(*update).to_vec();
                let starts = self.starts_of(*x, starts, &sizes);
                if starts.is_empty() {
                    return Ok(Some(*update));
                }
                self.graph.put_slice(*x, &starts, *update)?
            }
            "gather" => {
                let [x, indices] = as_array(x)?;
                self.gather(operation, x, indices)?
            }
            "torch_index_select" => {
                let [x, indices] = as_array(x)?;
                if operation.integer(&["batch_dims"])? != 0 {
                    return unsupported("batch axes are not supported");
                }
                self.graph.take(x, indices, operation.integer(&["dim"])?)?
            }
            _ => return Ok(None),
        }))
    }

    /// Returns the starts of a slice with these sizes. Constants are clamped, so that the slice fits.
    fn starts_of(&self, x: ExprId, starts: &[ExprId], sizes: &[usize]) -> Vec<SliceStart> {
        let shape = self.graph.shape(x);
        let start = |(axis, &id): (usize, &ExprId)| {
            let (whole, size) = (shape.get(axis).copied(), sizes.get(axis).copied());
            let last = whole.unwrap_or(0).saturating_sub(size.unwrap_or(0));
            let last = to_i64(last);
            match self.graph.op(id) {
                Op::Constant(constant) => constant.value.as_i64().map(|at| at.clamp(0, last)),
                _ => None,
            }
            .map_or_else(|| id.into(), SliceStart::Static)
        };
        starts.iter().enumerate().map(start).collect()
    }

    fn slice(&mut self, operation: &Operation, x: ExprId) -> Result<ExprId, Fail> {
        let (starts, limits, strides) = if operation.attribute(&["start_indices"]).is_some() {
            (
                operation.integers(&["start_indices"])?,
                operation.integers(&["limit_indices"])?,
                operation.integers(&["strides"])?,
            )
        } else {
            ranges(operation)?
        };
        let rank = self.graph.shape(x).rank();
        if [starts.len(), limits.len(), strides.len()] != [rank; 3] {
            return malformed("a slice must have one range per axis");
        }
        let lengths: Vec<i64> =
            limits.iter().zip(&starts).map(|(limit, start)| limit.saturating_sub(*start)).collect();
        let starts: Vec<SliceStart> = starts.into_iter().map(SliceStart::from).collect();
        let (lengths, strides) = (sizes_of(&lengths)?, sizes_of(&strides)?);
        let is_dense = strides.iter().all(|&stride| stride == 1);
        if is_dense && self.graph.shape(x)[..] == lengths[..] {
            return Ok(x);
        }
        Ok(self.graph.slice(x, &starts, &lengths, Some(&strides))?)
    }
}

/// Reads `[0:2, 1:5:2]`: starts, limits and strides.
fn ranges(operation: &Operation) -> Result<(Vec<i64>, Vec<i64>, Vec<i64>), Fail> {
    let (mut starts, mut limits, mut strides) = (Vec::new(), Vec::new(), Vec::new());
    let list = operation.attribute(&[""]);
    if let Some(Attribute::List(ranges)) = list {
        for range in ranges {
            match numbers(range)?[..] {
                [start, limit] => {
                    starts.push(start);
                    limits.push(limit);
                    strides.push(1);
                }
                [start, limit, stride] => {
                    starts.push(start);
                    limits.push(limit);
                    strides.push(stride);
                }
                _ => return malformed("a range must be start:limit or start:limit:stride"),
            }
        }
    }
    Ok((starts, limits, strides))
}

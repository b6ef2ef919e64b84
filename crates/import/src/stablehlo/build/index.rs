//! Slices and gathers.

use nxla_expr::ExprId;
use nxla_expr::build::SliceStart;

use super::operand::{fixed, numbers, sizes_of};
use super::{Builder, Fail, malformed, unsupported};
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
                let [x] = fixed(x)?;
                self.slice(operation, x)?
            }
            "dynamic_slice" => {
                let Some((&x, starts)) = x.split_first() else {
                    return malformed("needs operands");
                };
                let starts: Vec<SliceStart> =
                    starts.iter().copied().map(SliceStart::from).collect();
                let sizes = operation.sizes(&["slice_sizes", "sizes"])?;
                self.graph.slice(x, &starts, &sizes, None)?
            }
            "dynamic_update_slice" => {
                let [x, update, starts @ ..] = x else { return malformed("needs operands") };
                let starts: Vec<SliceStart> =
                    starts.iter().copied().map(SliceStart::from).collect();
                if starts.is_empty() {
                    return Ok(Some(*update));
                }
                self.graph.put_slice(*x, &starts, *update)?
            }
            "gather" => {
                let [x, indices] = fixed(x)?;
                self.gather(operation, x, indices)?
            }
            "torch_index_select" => {
                let [x, indices] = fixed(x)?;
                if operation.integer(&["batch_dims"])? != 0 {
                    return unsupported("batch axes are not supported");
                }
                self.graph.take(x, indices, operation.integer(&["dim"])?)?
            }
            _ => return Ok(None),
        }))
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

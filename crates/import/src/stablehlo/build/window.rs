//! Reductions over windows.

use nxla_expr::build::{SliceStart, WindowOptions, WindowPadding};
use nxla_expr::{BinaryOp, ExprId, Op, Padding};

use super::operand::{as_array, axes};
use super::reduce::RegionFunction;
use super::{Builder, Fail, Slot, Values, malformed, nodes_of, unsupported};
use crate::numbers::to_i64;
use crate::stablehlo::syntax::{Operation, Region};

/// The largest number of positions in a window of several operands. Each position becomes a slice.
const MAX_POSITIONS: usize = 1024;

/// The attributes of a window, one entry per axis.
struct Geometry {
    sizes: Vec<usize>,
    strides: Vec<usize>,
    dilations: Vec<usize>,
    base: Vec<usize>,
    padding: Vec<(i64, i64)>,
}

impl Geometry {
    fn options(&self) -> WindowOptions {
        WindowOptions {
            strides: Some(self.strides.clone()),
            padding: WindowPadding::Explicit(self.padding.clone()),
            dilations: Some(self.dilations.clone()),
        }
    }

    /// Returns the axis and the direction if the windows hold all elements before or after each
    /// element.
    fn cumulative_axis(&self, shape: &[usize]) -> Option<(usize, bool)> {
        let ones = |list: &[usize]| list.iter().all(|&entry| entry == 1);
        if !ones(&self.strides) || !ones(&self.dilations) || !ones(&self.base) {
            return None;
        }
        let mut long =
            (0..shape.len()).filter(|&at| self.sizes[at] > 1 || self.padding[at] != (0, 0));
        let axis = long.next()?;
        let reach = to_i64(self.sizes[axis]) - 1;
        if long.next().is_some() || self.sizes[axis] != shape[axis] {
            return None;
        }
        match self.padding[axis] {
            (low, 0) if low == reach => Some((axis, false)),
            (0, high) if high == reach => Some((axis, true)),
            _ => None,
        }
    }
}

impl Builder<'_> {
    fn geometry(&self, operation: &Operation, x: ExprId) -> Result<Geometry, Fail> {
        let rank = self.graph.shape(x).rank();
        let list = |name: &str| match operation.optional(&[name])? {
            Some(list) => self.per_axis(x, &list),
            None => Ok(vec![1; rank]),
        };
        let padding = match operation.optional(&["padding"])? {
            Some(flat) if flat.len() == 2 * rank => {
                flat.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
            }
            Some(_) => return malformed("padding must have two entries per axis"),
            None => vec![(0, 0); rank],
        };
        Ok(Geometry {
            sizes: list("window_dimensions")?,
            strides: list("window_strides")?,
            dilations: list("window_dilations")?,
            base: list("base_dilations")?,
            padding,
        })
    }

    pub(super) fn reduce_window(
        &mut self,
        operation: &Operation,
        x: &[ExprId],
        values: &mut Values,
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        let x = &self.accumulators(operation, x)?[..];
        if x.len() != 2 {
            return self.reduce_windows(operation, x, values);
        }
        let [mut x, initial] = as_array(x)?;
        let geometry = self.geometry(operation, x)?;
        let region = operation.region(0)?;
        let dtype = self.graph.dtype(x);
        let combine = RegionFunction::recognize(region);
        if let Some((axis, reverse)) = geometry.cumulative_axis(self.graph.shape(x)) {
            if let Some(RegionFunction::Op(op)) = combine
                && let Some(cumulative) = op.cumulative()
                && self.is_neutral(op, initial)
                && !dtype.is_pred()
            {
                let axis = to_i64(axis);
                return Ok(Some(vec![self.graph.cumulative(cumulative, x, axis, reverse)?]));
            }
            if combine.is_none() {
                match self.scan_function([x, initial], axis, reverse, (region, values)) {
                    // A function that is not element-wise.
                    Err(Fail::Unsupported(_)) => {}
                    scanned => return scanned,
                }
            }
        }
        if geometry.base.iter().any(|&step| step != 1) {
            let padding: Vec<Padding> = geometry
                .base
                .iter()
                .map(|&step| Padding { low: 0, high: 0, interior: step.saturating_sub(1) })
                .collect();
            x = self.graph.pad(x, initial, &padding)?;
        }
        if let Some(RegionFunction::Op(op)) = combine
            && let Some(window) = op.window_reduction()
            && self.is_neutral(op, initial)
            && !dtype.is_pred()
        {
            let options = geometry.options();
            let reduced = self.graph.window_reduction(window, x, &geometry.sizes, &options)?;
            return Ok(Some(vec![reduced]));
        }
        self.window_fold(x, initial, &geometry, (region, values))
    }

    /// Reduces windows of several operands: one slice for each position in a window, combined in order.
    fn reduce_windows(
        &mut self,
        operation: &Operation,
        x: &[ExprId],
        values: &mut Values,
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        if !x.len().is_multiple_of(2) || x.is_empty() {
            return malformed("needs an initial value for each operand");
        }
        let (tensors, initial) = x.split_at(x.len() / 2);
        let geometry = self.geometry(operation, tensors[0])?;
        let count = geometry.sizes.iter().try_fold(1_usize, |n, &size| n.checked_mul(size));
        let Some(count) = count.filter(|&count| count <= MAX_POSITIONS) else {
            return unsupported(format!(
                "windows of several operands must have at most {MAX_POSITIONS} positions"
            ));
        };
        let shape = operation.result(0)?.shape.clone();
        if shape.rank() != geometry.sizes.len() {
            let (expected, found) = (geometry.sizes.len(), shape.rank());
            return malformed(format!("the result must have {expected} axes; got {found}"));
        }
        let mut padded = Vec::new();
        for (&tensor, &initial) in tensors.iter().zip(initial) {
            let padding: Vec<Padding> = geometry
                .padding
                .iter()
                .zip(&geometry.base)
                .map(|(&(low, high), &step)| Padding {
                    low,
                    high,
                    interior: step.saturating_sub(1),
                })
                .collect();
            padded.push(self.graph.pad(tensor, initial, &padding)?);
        }
        let lengths: Vec<usize> = shape
            .iter()
            .zip(&geometry.strides)
            .map(|(&size, &stride)| size.saturating_sub(1).saturating_mul(stride).saturating_add(1))
            .collect();
        let mut current = Vec::new();
        for &value in initial {
            current.push(self.graph.broadcast(value, shape.clone(), None)?);
        }
        let region = operation.region(0)?;
        let elements: Vec<ExprId> = current.iter().chain(&padded).copied().collect();
        let Some(traced) = self.trace_elements(region, values, &elements)? else {
            return Ok(None);
        };
        if traced.outputs.len() != padded.len() {
            return malformed("the region must return one value per operand");
        }
        for position in 0..count {
            let mut rest = position;
            let mut starts = vec![SliceStart::at(0); shape.rank()];
            for axis in (0..shape.rank()).rev() {
                let offset = rest % geometry.sizes[axis];
                rest /= geometry.sizes[axis];
                starts[axis] = SliceStart::at(offset.saturating_mul(geometry.dilations[axis]));
            }
            for &tensor in &padded {
                let part = self.graph.slice(tensor, &starts, &lengths, Some(&geometry.strides))?;
                current.push(part);
            }
            current = self.apply_elementwise(&traced, &current)?;
        }
        Ok(Some(current))
    }

    /// Folds all elements before or after each element, then the initial value. Each step doubles the
    /// number of elements. A fold of windows would combine padding with padding, which is NaN for
    /// the logarithm of a sum of complex exponentials.
    fn scan_function(
        &mut self,
        [x, initial]: [ExprId; 2],
        axis: usize,
        reverse: bool,
        (region, values): (&Region, &mut Values),
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        let Some(traced) = self.trace_elements(region, values, &[x, x])? else {
            return Ok(None);
        };
        let shape = self.graph.shape(x).clone();
        let (size, axis) = (shape[axis], to_i64(axis));
        let mut current = x;
        let mut reach = 1;
        while reach < size {
            let rest = size - reach;
            let first = self.graph.slice_along_axis(current, 0, rest, axis, 1)?;
            let second =
                self.graph.slice_along_axis(current, SliceStart::at(reach), rest, axis, 1)?;
            let combined = self.apply_elementwise(&traced, &[first, second])?;
            let [combined] = as_array(&combined)?;
            // The elements at the end of the scan have no further element.
            let start = if reverse { rest } else { 0 };
            let last =
                self.graph.slice_along_axis(current, SliceStart::at(start), reach, axis, 1)?;
            let parts = if reverse { [combined, last] } else { [last, combined] };
            current = self.graph.concatenate(&parts, axis)?;
            reach *= 2;
        }
        let initial = self.graph.broadcast(initial, shape, None)?;
        self.apply_elementwise(&traced, &[initial, current]).map(Some)
    }

    fn window_fold(
        &mut self,
        x: ExprId,
        initial: ExprId,
        geometry: &Geometry,
        (region, values): (&Region, &mut Values),
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        let fold = self.graph.open_window_fold(x, initial)?;
        let arguments = [Slot::Node(fold.accumulator()), Slot::Node(fold.element())];
        let outputs = self.region(region, values, &arguments)?;
        let Some(outputs) = nodes_of(&outputs) else { return Ok(None) };
        let [result] = as_array(&outputs)?;
        let (function, operands) = self.graph.close_fold(&fold, result)?;
        let options = geometry.options();
        let reduced =
            self.graph.window_reduce_with(function, &operands, &geometry.sizes, &options)?;
        Ok(Some(vec![reduced]))
    }

    /// Builds the gradient of pooling: each window adds its source at the position of its extremum.
    pub(super) fn select_and_scatter(
        &mut self,
        operation: &Operation,
        x: &[ExprId],
        values: &mut Values,
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        let [x, source, initial] = as_array(x)?;
        let mut geometry = self.geometry(operation, x)?;
        if RegionFunction::recognize(operation.region(1)?)
            != Some(RegionFunction::Op(BinaryOp::Add))
        {
            return unsupported("the scatter function must be an addition");
        }
        let Some(traced) = self.trace_elements(operation.region(0)?, values, &[x, x])? else {
            return Ok(None);
        };
        let [selects] = as_array(&traced.outputs)?;
        let selected = match self.graph.op(selects) {
            Op::Binary(op) if self.graph.operands(selects) == traced.parameters => Some(*op),
            _ => None,
        };
        let (largest, first) = match selected {
            Some(BinaryOp::GreaterEqual) => (true, true),
            Some(BinaryOp::Greater) => (true, false),
            Some(BinaryOp::LessEqual) => (false, true),
            Some(BinaryOp::Less) => (false, false),
            _ => return unsupported("the select function must compare its parameters in order"),
        };
        if !first {
            return Ok(Some(vec![self.window_scatter(
                largest,
                [x, source, initial],
                &geometry,
            )?]));
        }
        // StableHLO selects the first of equal elements, but nxla selects the last, so the operands
        // are reversed. The low padding of a reversed operand is the extent of the last
        // window beyond the operand, so that the windows cover the same elements as before.
        let shape = self.graph.shape(x).clone();
        for axis in 0..shape.rank() {
            let windows = self.graph.shape(source).get(axis).copied().unwrap_or(0);
            let (low, _) = geometry.padding[axis];
            let covered = windows
                .saturating_sub(1)
                .saturating_mul(geometry.strides[axis])
                .saturating_add(geometry.sizes[axis]);
            let inside = to_i64(shape[axis]);
            let covered = to_i64(covered);
            let high = covered.saturating_sub(inside).saturating_sub(low);
            geometry.padding[axis] = (high, low);
        }
        let all: Vec<usize> = (0..shape.rank()).collect();
        let (x, source) = (
            self.graph.reverse(x, Some(&axes(&all)))?,
            self.graph.reverse(source, Some(&axes(&all)))?,
        );
        let result = self.window_scatter(largest, [x, source, initial], &geometry)?;
        Ok(Some(vec![self.graph.reverse(result, Some(&axes(&all)))?]))
    }

    fn window_scatter(
        &mut self,
        largest: bool,
        [x, source, initial]: [ExprId; 3],
        geometry: &Geometry,
    ) -> Result<ExprId, Fail> {
        let (options, sizes) = (geometry.options(), &geometry.sizes);
        Ok(if largest {
            self.graph.window_scatter_max(x, source, initial, sizes, &options)?
        } else {
            self.graph.window_scatter_min(x, source, initial, sizes, &options)?
        })
    }
}

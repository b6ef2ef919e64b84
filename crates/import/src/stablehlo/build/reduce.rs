//! Reductions: of the table, with a function, and of several operands.

use nxla_expr::{BinaryOp, ExprId, Op, ReduceOp};
use nxla_tensor::{DType, Scalar, Shape};

use super::gather::distinct;
use super::operand::{as_array, axes};
use super::{Builder, Fail, Slot, Values, elementwise, malformed, nodes_of};
use crate::numbers::to_i64;
use crate::stablehlo::syntax::{Operation, Region};

/// The function of a reduction or scatter, if it is a single operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RegionFunction {
    /// A commutative operation on both parameters.
    Op(BinaryOp),
    /// The second parameter.
    Second,
}

impl RegionFunction {
    /// Recognizes the function of a region with two parameters.
    pub(super) fn recognize(region: &Region) -> Option<Self> {
        let [first, second] = region.parameters[..] else { return None };
        match &region.operations[..] {
            [end] if end.operands[..] == [second] => Some(RegionFunction::Second),
            [apply, end] if end.operands[..] == [apply.first_result] => {
                let (_, name) = apply.name.split_once('.')?;
                let op = elementwise::binary_op(name)?;
                let is_pair =
                    apply.operands[..] == [first, second] || apply.operands[..] == [second, first];
                let is_commutative = matches!(
                    op,
                    BinaryOp::Add
                        | BinaryOp::Multiply
                        | BinaryOp::Max
                        | BinaryOp::Min
                        | BinaryOp::BitwiseAnd
                        | BinaryOp::BitwiseOr
                        | BinaryOp::BitwiseXor
                );
                (is_pair && is_commutative).then_some(RegionFunction::Op(op))
            }
            _ => None,
        }
    }
}

/// Returns the reduction of the table that folds with an op.
fn reduce_op(op: BinaryOp, dtype: DType) -> Option<ReduceOp> {
    match op {
        BinaryOp::Add | BinaryOp::Max | BinaryOp::BitwiseOr if dtype.is_pred() => {
            Some(ReduceOp::Any)
        }
        BinaryOp::Multiply | BinaryOp::Min | BinaryOp::BitwiseAnd if dtype.is_pred() => {
            Some(ReduceOp::All)
        }
        BinaryOp::Max | BinaryOp::Min if dtype.is_complex() => None,
        op => op.reduction(),
    }
}

impl Builder<'_> {
    /// Returns whether a value is the neutral element of an op.
    pub(super) fn is_neutral(&self, op: BinaryOp, value: ExprId) -> bool {
        let constant = match self.graph.op(value) {
            Op::Constant(constant) => constant,
            _ => return false,
        };
        let (value, dtype) = (constant.value, constant.ty.dtype);
        let is_infinite = |sign: f64| dtype.is_float() && value.as_f64() == sign * f64::INFINITY;
        match op {
            BinaryOp::Add | BinaryOp::BitwiseOr | BinaryOp::BitwiseXor => value.is_zero(),
            BinaryOp::Multiply => value.is_one(),
            BinaryOp::BitwiseAnd if dtype.is_pred() => value.is_one(),
            BinaryOp::Max if dtype.is_pred() => value.is_zero(),
            BinaryOp::Min if dtype.is_pred() => value.is_one(),
            BinaryOp::Max => is_infinite(-1.0) || value == dtype.min_value(),
            BinaryOp::Min => is_infinite(1.0) || value == dtype.max_value(),
            _ => false,
        }
    }

    pub(super) fn reduce(
        &mut self,
        operation: &Operation,
        x: &[ExprId],
        values: &mut Values,
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        let dimensions = operation.sizes(&["dimensions"])?;
        let region = operation.region(0)?;
        let x = &self.accumulators(operation, x)?[..];
        if !x.len().is_multiple_of(2) || x.is_empty() {
            return malformed("needs an initial value for each operand");
        }
        let (tensors, initial) = x.split_at(x.len() / 2);
        let rank = self.graph.shape(tensors[0]).rank();
        if dimensions.iter().any(|&axis| axis >= rank) {
            return malformed("a dimension is out of range");
        }
        if !distinct(&dimensions) {
            return malformed(format!("dimensions: must be distinct; got {dimensions:?}"));
        }
        if let (&[x], &[initial]) = (tensors, initial) {
            return self.reduce_one(x, initial, &dimensions, (region, values));
        }
        if let Some(results) = self.arg_reduce(tensors, initial, &dimensions, (region, values))? {
            return Ok(Some(results));
        }
        let shape = self.graph.shape(tensors[0]).clone();
        if tensors.iter().any(|&tensor| *self.graph.shape(tensor) != shape) {
            return malformed("the operands must have equal shapes");
        }
        self.reduce_tree(tensors, initial, &dimensions, (region, values))
    }

    /// Converts operands and initial values to wider dtypes of the results, in which a reduction
    /// accumulates.
    pub(super) fn accumulators(
        &mut self,
        operation: &Operation,
        x: &[ExprId],
    ) -> Result<Vec<ExprId>, Fail> {
        let count = operation.result_types.len().max(1);
        let mut converted = x.to_vec();
        for (position, id) in converted.iter_mut().enumerate() {
            let (narrow, wide) = (self.graph.dtype(*id), operation.result(position % count)?.dtype);
            if narrow.kind() == wide.kind() && narrow.bits() < wide.bits() {
                *id = self.graph.as_type(*id, wide)?;
            }
        }
        Ok(converted)
    }

    fn reduce_one(
        &mut self,
        x: ExprId,
        initial: ExprId,
        dimensions: &[usize],
        (region, values): (&Region, &mut Values),
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        let (dtype, along) = (self.graph.dtype(x), axes(dimensions));
        if let Some(RegionFunction::Op(op)) = RegionFunction::recognize(region)
            && let Some(reduction) = reduce_op(op, dtype)
        {
            let reduced = self.graph.reduction(reduction, x, Some(&along), false)?;
            let reduced = self.graph.as_type(reduced, dtype)?;
            if self.is_neutral(op, initial) {
                return Ok(Some(vec![reduced]));
            }
            return Ok(Some(vec![self.binary(op, reduced, initial)?]));
        }
        let fold = self.graph.open_fold(x, initial)?;
        // The parameters of the StableHLO region are the accumulator and the element.
        let arguments = [Slot::Node(fold.accumulator()), Slot::Node(fold.element())];
        let outputs = self.region(region, values, &arguments)?;
        let Some(outputs) = nodes_of(&outputs) else { return Ok(None) };
        let [result] = as_array(&outputs)?;
        let (function, operands) = self.graph.close_fold(&fold, result)?;
        Ok(Some(vec![self.graph.reduce_with(function, &operands, Some(&along), false)?]))
    }

    /// Recognizes the maximum or minimum with its index, as JAX writes it.
    fn arg_reduce(
        &mut self,
        tensors: &[ExprId],
        initial: &[ExprId],
        dimensions: &[usize],
        (region, values): (&Region, &mut Values),
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        let (&[x, indices], &[axis]) = (tensors, dimensions) else { return Ok(None) };
        let along = match self.graph.op(indices) {
            Op::Iota(iota) => iota.axis,
            _ => None,
        };
        let dtype = self.graph.dtype(indices);
        if along != Some(axis) || !dtype.is_integer() || self.graph.dtype(x).is_complex() {
            return Ok(None);
        }
        let elements = [x, indices, x, indices];
        let Some(traced) = self.trace_elements(region, values, &elements)? else {
            return Ok(None);
        };
        let parameters: [ExprId; 4] = as_array(&traced.parameters)?;
        for (op, combine) in [(BinaryOp::Greater, BinaryOp::Max), (BinaryOp::Less, BinaryOp::Min)] {
            let Some(tie_high) = self.arg_ties(op, parameters, &traced.outputs)? else { continue };
            let start = self.graph.op(initial[1]);
            let starts_at =
                |index: Scalar| matches!(start, Op::Constant(constant) if constant.value == index);
            // An index that loses every tie, or the first index, which wins every tie.
            let is_start = if tie_high {
                starts_at(Scalar::Int(-1))
            } else {
                starts_at(dtype.max_value()) || self.is_neutral(BinaryOp::Add, initial[1])
            };
            if !self.is_neutral(combine, initial[0]) || !is_start {
                return Ok(None);
            }
            let at = Some(to_i64(axis));
            let along = axes(dimensions);
            return Ok(Some(if combine == BinaryOp::Max {
                let value = self.graph.reduce_max(x, Some(&along), false)?;
                vec![value, self.graph.argmax(x, at, false, tie_high, dtype)?]
            } else {
                let value = self.graph.reduce_min(x, Some(&along), false)?;
                vec![value, self.graph.argmin(x, at, false, tie_high, dtype)?]
            }));
        }
        Ok(None)
    }

    /// Returns whether a function selects the larger or smaller value with its index, and the later
    /// index of equal values. Returns `None` for another function.
    fn arg_ties(
        &mut self,
        op: BinaryOp,
        parameters: [ExprId; 4],
        outputs: &[ExprId],
    ) -> Result<Option<bool>, Fail> {
        if self.arg_pattern(op, parameters)? == outputs {
            return Ok(Some(false));
        }
        for tie_high in [false, true] {
            if self.own_arg_pattern(op, tie_high, parameters)? == outputs {
                return Ok(Some(tie_high));
            }
        }
        Ok(None)
    }

    /// Builds the function that nxla writes for the larger or smaller value with its index.
    fn own_arg_pattern(
        &mut self,
        op: BinaryOp,
        tie_high: bool,
        [x, i, y, j]: [ExprId; 4],
    ) -> Result<[ExprId; 2], Fail> {
        let mut left_wins = self.graph.binary(op, x, y)?;
        let mut ties = self.graph.equal(x, y)?;
        if self.graph.dtype(x).is_float() {
            let (left, right) = (self.graph.is_nan(x)?, self.graph.is_nan(y)?);
            let both = self.graph.logical_and(left, right)?;
            left_wins = self.graph.logical_or(left_wins, left)?;
            ties = self.graph.logical_or(ties, both)?;
        }
        let order = if tie_high { BinaryOp::Greater } else { BinaryOp::Less };
        let before = self.graph.binary(order, i, j)?;
        let takes_left = self.graph.select(ties, before, left_wins)?;
        Ok([self.graph.select(takes_left, x, y)?, self.graph.select(takes_left, i, j)?])
    }

    /// Builds the function of JAX for the larger or smaller value with its index.
    fn arg_pattern(&mut self, op: BinaryOp, parameters: [ExprId; 4]) -> Result<[ExprId; 2], Fail> {
        let [x, i, y, j] = parameters;
        let better = self.graph.binary(op, x, y)?;
        let is_nan = self.binary(BinaryOp::NotEqual, x, x)?;
        let pick = self.graph.logical_or(better, is_nan)?;
        let equal = self.graph.equal(x, y)?;
        let earlier = self.graph.less(i, j)?;
        let tie = self.graph.logical_and(equal, earlier)?;
        let pick_index = self.graph.logical_or(pick, tie)?;
        Ok([self.graph.select(pick, x, y)?, self.graph.select(pick_index, i, j)?])
    }

    /// Combines neighbors until one element is left, then the initial values. The function must be
    /// associative, which the format demands of reductions.
    fn reduce_tree(
        &mut self,
        tensors: &[ExprId],
        initial: &[ExprId],
        dimensions: &[usize],
        (region, values): (&Region, &mut Values),
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        let shape = self.graph.shape(tensors[0]).clone();
        // A tensor without elements may have axes whose product is too large for a size.
        let reduced: Shape = dimensions.iter().map(|&axis| shape[axis]).collect();
        let Some(count) = reduced.checked_size() else {
            return malformed("the reduced axes have too many elements");
        };
        let rest: Vec<usize> = (0..shape.rank())
            .filter(|axis| !dimensions.contains(axis))
            .map(|axis| shape[axis])
            .collect();
        let flat: Vec<usize> = std::iter::once(count).chain(rest.iter().copied()).collect();
        let mut current = Vec::new();
        for &tensor in tensors {
            let (front, _) = self.axes_to_front(tensor, dimensions)?;
            current.push(self.graph.reshape(front, flat.clone())?);
        }
        let elements: Vec<ExprId> = current.iter().chain(&current).copied().collect();
        let Some(traced) = self.trace_elements(region, values, &elements)? else {
            return Ok(None);
        };
        if traced.outputs.len() != tensors.len() {
            return malformed("the region must return one value per operand");
        }
        let mut length = count;
        while length > 1 {
            let half = length / 2;
            let mut pairs = Vec::new();
            for start in [0, 1] {
                for &tensor in &current {
                    let range = half * 2 - 1;
                    let start = nxla_expr::build::SliceStart::at(start);
                    pairs.push(self.graph.slice_along_axis(tensor, start, range, 0, 2)?);
                }
            }
            let mut combined = self.apply_elementwise(&traced, &pairs)?;
            if length % 2 == 1 {
                for (result, &tensor) in combined.iter_mut().zip(&current) {
                    let last = nxla_expr::build::SliceStart::at(length - 1);
                    let last = self.graph.slice_along_axis(tensor, last, 1, 0, 1)?;
                    *result = self.graph.concatenate(&[*result, last], 0)?;
                }
            }
            current = combined;
            length = length.div_ceil(2);
        }
        let mut operands = Vec::new();
        for &value in initial {
            operands.push(self.graph.broadcast(value, rest.clone(), None)?);
        }
        if length == 0 {
            return Ok(Some(operands));
        }
        for &tensor in &current {
            operands.push(self.graph.reshape(tensor, rest.clone())?);
        }
        self.apply_elementwise(&traced, &operands).map(Some)
    }

    /// Returns a scalar constant.
    pub(super) fn number(&mut self, value: f64, dtype: DType) -> Result<ExprId, Fail> {
        Ok(self.graph.scalar_constant(Scalar::Float(value).cast(dtype), dtype)?)
    }
}

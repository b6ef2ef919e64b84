//! Sorting with a comparator, as sorting by keys.

use nxla_expr::{BinaryOp, ExprId, Op};
use nxla_tensor::{DType, Scalar};

use super::{Builder, Built, Fail, Slot, TracedElements, Values, malformed, slots_of, unsupported};
use crate::numbers::to_i64;
use crate::stablehlo::syntax::{Attribute, Operation, Region};

/// A key of the order: the expression of the left element, and the direction.
struct Key {
    left: ExprId,
    right: ExprId,
    descending: bool,
}

impl Builder<'_> {
    pub(super) fn sort(
        &mut self,
        operation: &Operation,
        x: &[ExprId],
        values: &mut Values,
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        let Some(&first) = x.first() else { return malformed("needs an operand") };
        let rank = to_i64(self.graph.shape(first).rank());
        let axis = match operation.optional(&["dimension"])?.as_deref() {
            Some(&[axis]) if axis < 0 => axis + rank,
            Some(&[axis]) => axis,
            _ => rank - 1,
        };
        if rank == 0 {
            return Ok(Some(x.to_vec()));
        }
        let stable = operation.flag(&["is_stable"]);
        self.sort_with(operation.region(0)?, values, x, axis, stable)
    }

    /// Builds a call of `ApproxTopK`, which JAX writes for `approx_max_k` and `approx_min_k`, as an exact
    /// selection. The operands are tensors, then an initial value of each. The result has the number of
    /// entries that the call declares.
    pub(super) fn approximate_top_k(&mut self, operation: &Operation, x: &[ExprId]) -> Built {
        if x.is_empty() || !x.len().is_multiple_of(2) {
            return malformed("needs a tensor and an initial value for each result");
        }
        let Some(Attribute::List(names)) = operation.attribute(&["called_computations"]) else {
            return malformed("called_computations must be a list");
        };
        let [Attribute::Symbol(name) | Attribute::String(name)] = &names[..] else {
            return malformed("called_computations must name one function");
        };
        let axis = operation.entry_sizes(&["mhlo.backend_config"], "reduction_dim")?;
        let &[axis] = &axis[..] else { return malformed("reduction_dim is missing") };
        let comparator = self.function_named(name)?;
        let mut values = vec![Slot::Undefined; comparator.values];
        let (tensors, _) = x.split_at(x.len() / 2);
        let sorted = self.sort_with(&comparator.body, &mut values, tensors, to_i64(axis), true)?;
        let Some(sorted) = sorted else { return Ok(None) };
        let mut results = Vec::new();
        for (index, &tensor) in sorted.iter().enumerate() {
            let shape = &operation.result(index)?.shape;
            let Some(&count) = shape.as_slice().get(axis) else {
                return malformed("reduction_dim must be an axis of the result");
            };
            results.push(self.graph.slice_along_axis(tensor, 0, count, to_i64(axis), 1)?);
        }
        Ok(Some(slots_of(&results)))
    }

    /// Sorts tensors by the order of a region with two scalar parameters for each tensor.
    fn sort_with(
        &mut self,
        region: &Region,
        values: &mut Values,
        x: &[ExprId],
        axis: i64,
        stable: bool,
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        let elements: Vec<ExprId> = x.iter().flat_map(|&tensor| [tensor, tensor]).collect();
        let traced = self.trace_elements(region, values, &elements)?;
        let Some(TracedElements { parameters, outputs }) = traced else { return Ok(None) };
        let [root] = outputs[..] else { return malformed("the comparator must have one result") };
        let mut key_tensors = Vec::new();
        if let Some(found) = self.order_with_nan(root, &parameters, x)? {
            key_tensors.push(found);
        } else {
            for key in self.sort_keys(root)? {
                let key = self.left_first(key, &parameters)?;
                let tensor = self.key_tensor(&key, &parameters, x)?;
                key_tensors.push((tensor, key.descending));
            }
        }
        if let (&[x], &[(key, descending)]) = (x, &key_tensors[..])
            && key == x
        {
            return Ok(Some(vec![self.graph.sort(x, axis, descending, stable)?]));
        }
        self.sort_by(x, &key_tensors, axis, stable).map(Some)
    }

    /// Sorts by the last key first; every sort is stable.
    fn sort_by(
        &mut self,
        x: &[ExprId],
        keys: &[(ExprId, bool)],
        axis: i64,
        stable: bool,
    ) -> Result<Vec<ExprId>, Fail> {
        let mut order: Option<ExprId> = None;
        for &(key, descending) in keys.iter().rev() {
            let current = match order {
                Some(order) => self.graph.take_along_axis(key, order, axis)?,
                None => key,
            };
            let step = self.graph.argsort(current, axis, descending, stable, DType::S32)?;
            order = Some(match order {
                Some(order) => self.graph.take_along_axis(order, step, axis)?,
                None => step,
            });
        }
        let Some(order) = order else { return malformed("the comparator has no key") };
        let mut results = Vec::new();
        for &tensor in x {
            let along = match self.graph.op(tensor) {
                Op::Iota(iota) => iota.axis.map(to_i64),
                _ => None,
            };
            let sorted = keys.len() == 1 && keys[0].0 == tensor;
            results.push(if along == Some(axis) {
                self.graph.as_type(order, self.graph.dtype(tensor))?
            } else if sorted {
                self.graph.sort(tensor, axis, keys[0].1, stable)?
            } else {
                self.graph.take_along_axis(tensor, order, axis)?
            });
        }
        Ok(results)
    }

    /// Returns the keys of a comparator: `a < b`, or lexicographically `a < b or (a == b and …)`.
    fn sort_keys(&self, root: ExprId) -> Result<Vec<Key>, Fail> {
        let mut keys = Vec::new();
        let mut current = root;
        loop {
            let operands = self.graph.operands(current);
            match (self.graph.op(current), operands) {
                (Op::Binary(op), &[left, right]) if order_of(*op).is_some() => {
                    let descending = order_of(*op) == Some(true);
                    keys.push(Key { left, right, descending });
                    return Ok(keys);
                }
                (Op::Binary(BinaryOp::LogicalOr), &[a, b]) => {
                    let found = self.lexicographic(a, b).or_else(|| self.lexicographic(b, a));
                    let Some((key, rest)) = found else {
                        return unsupported("the comparator is not a lexicographic order");
                    };
                    keys.push(key);
                    current = rest;
                }
                _ => return unsupported("the comparator must compare keys of two elements"),
            }
        }
    }

    /// Splits `a < b or (a == b and rest)` into its key and `rest`.
    fn lexicographic(&self, less: ExprId, tie: ExprId) -> Option<(Key, ExprId)> {
        let Op::Binary(op) = self.graph.op(less) else { return None };
        let descending = order_of(*op)?;
        let &[left, right] = self.graph.operands(less) else { return None };
        let is_and = matches!(self.graph.op(tie), Op::Binary(BinaryOp::LogicalAnd));
        let &[a, b] = self.graph.operands(tie) else { return None };
        let is_equal = |id: ExprId| {
            matches!(self.graph.op(id), Op::Binary(BinaryOp::Equal))
                && matches!(self.graph.operands(id), &[x, y] if [x, y] == [left, right] || [y, x] == [left, right])
        };
        let rest = if is_equal(a) { b } else { a };
        let known = is_and && (is_equal(a) || is_equal(b));
        known.then_some((Key { left, right, descending }, rest))
    }

    /// Returns a key whose left side depends on left elements. Both sides must be the same function of
    /// their element; exchanged sides mean the opposite direction.
    fn left_first(&mut self, key: Key, parameters: &[ExprId]) -> Result<Key, Fail> {
        let Key { left, right, descending } = key;
        let exchanged = Key { left: right, right: left, descending: !descending };
        let lefts: Vec<ExprId> = parameters.iter().copied().step_by(2).collect();
        let rights: Vec<ExprId> = parameters.iter().copied().skip(1).step_by(2).collect();
        for key in [key, exchanged] {
            let mirrored = self.substitute(&[key.left], &lefts, &rights)?;
            if mirrored[..] == [key.right] && key.left != key.right {
                return Ok(key);
            }
        }
        unsupported("the comparator must compare the same key of two elements")
    }

    /// Recognizes `a < b or (a == a and b != b)`, the order with NaN last that this crate's counterpart
    /// writes, and returns the tensor and the direction.
    fn order_with_nan(
        &mut self,
        root: ExprId,
        parameters: &[ExprId],
        x: &[ExprId],
    ) -> Result<Option<(ExprId, bool)>, Fail> {
        for (pair, &tensor) in parameters.chunks_exact(2).zip(x) {
            if !self.graph.dtype(tensor).is_float() {
                continue;
            }
            for (a, b, descending) in [(pair[0], pair[1], false), (pair[1], pair[0], true)] {
                let less = self.graph.less(a, b)?;
                let is_nan = self.graph.is_nan(b)?;
                let is_number = self.graph.equal(a, a)?;
                let only_nan = self.graph.logical_and(is_number, is_nan)?;
                if self.graph.logical_or(less, only_nan)? == root {
                    return Ok(Some((tensor, descending)));
                }
            }
        }
        Ok(None)
    }

    /// Returns the tensor of keys. The order of graphs has NaN last and equal zeros; JAX writes it as a
    /// total order of a canonical form, which is recognized.
    fn key_tensor(
        &mut self,
        key: &Key,
        parameters: &[ExprId],
        x: &[ExprId],
    ) -> Result<ExprId, Fail> {
        let lefts: Vec<ExprId> = parameters.iter().copied().step_by(2).collect();
        for (&parameter, &tensor) in lefts.iter().zip(x) {
            if self.graph.dtype(parameter).is_float() {
                let canonical = self.canonical(parameter)?;
                if self.total_order_key(canonical).is_ok_and(|total| total == key.left) {
                    return Ok(tensor);
                }
            }
        }
        let tensor = self.substitute(&[key.left], &lefts, x)?[0];
        let shape = self.graph.shape(x[0]).clone();
        if *self.graph.shape(tensor) != shape {
            return unsupported("the comparator must depend on its elements");
        }
        Ok(tensor)
    }

    /// Builds the canonical form of a float: one NaN, one zero.
    fn canonical(&mut self, x: ExprId) -> Result<ExprId, Fail> {
        let dtype = self.graph.dtype(x);
        let zero = self.graph.scalar_constant(Scalar::zero(dtype), dtype)?;
        let nan = self.number(f64::NAN, dtype)?;
        let is_zero = self.graph.equal(x, zero)?;
        let unsigned = self.graph.select(is_zero, zero, x)?;
        let is_nan = self.graph.is_nan(x)?;
        Ok(self.graph.select(is_nan, nan, unsigned)?)
    }
}

/// Returns whether an order is descending, if the op is an order.
fn order_of(op: BinaryOp) -> Option<bool> {
    match op {
        BinaryOp::Less | BinaryOp::LessEqual => Some(false),
        BinaryOp::Greater | BinaryOp::GreaterEqual => Some(true),
        _ => None,
    }
}

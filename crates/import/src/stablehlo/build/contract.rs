//! Products and convolutions.

use nxla_expr::{Conv, ExprId, Op};
use nxla_tensor::{DType, Scalar};

use super::operand::{as_array, axes, numbers, sizes_of};
use super::{Builder, Fail, malformed, unsupported};
use crate::stablehlo::syntax::{Attribute, Operation};

impl Builder<'_> {
    pub(super) fn contract(
        &mut self,
        name: &str,
        operation: &Operation,
        x: &[ExprId],
    ) -> Result<Option<ExprId>, Fail> {
        if !matches!(name, "dot" | "dot_general" | "convolution") {
            return Ok(None);
        }
        let [x, y] = as_array(x)?;
        let dtype = operation.result(0)?.dtype;
        if name == "convolution" && !dtype.is_float() && !dtype.is_complex() {
            let sum = self.convolution_of_integers(operation, x, y, dtype)?;
            return Ok(Some(self.graph.as_type(sum, dtype)?));
        }
        let (x, y) = self.operands_as(x, y, dtype)?;
        let result = match name {
            "dot" => self.graph.dot(x, y)?,
            "dot_general" => self.dot_general(operation, x, y)?,
            _ => self.convolution(operation, x, y)?,
        };
        Ok(Some(self.graph.as_type(result, dtype)?))
    }

    /// Converts operands to the dtype in which the result accumulates. For booleans, the sum of products
    /// counts the pairs that are true, and a count above zero is true. An integer count could wrap to
    /// zero, so booleans become floats.
    fn operands_as(
        &mut self,
        x: ExprId,
        y: ExprId,
        dtype: DType,
    ) -> Result<(ExprId, ExprId), Fail> {
        let dtype = if dtype.is_pred() { DType::F32 } else { dtype };
        if self.graph.dtype(x).bits() > dtype.bits() {
            return Ok((x, y));
        }
        Ok((self.graph.as_type(x, dtype)?, self.graph.as_type(y, dtype)?))
    }

    fn dot_general(&mut self, operation: &Operation, x: ExprId, y: ExprId) -> Result<ExprId, Fail> {
        let names = ["dot_dimension_numbers"];
        let exists = |name| operation.attribute(&[name]).is_some();
        let (batch, contract) = if exists(names[0]) || exists("lhs_contracting_dimensions") {
            let read = |key| operation.entry_sizes(&names, key);
            (
                [read("lhs_batching_dimensions")?, read("rhs_batching_dimensions")?],
                [read("lhs_contracting_dimensions")?, read("rhs_contracting_dimensions")?],
            )
        } else {
            (pair_of(operation, "batching_dims")?, pair_of(operation, "contracting_dims")?)
        };
        let [x_batch, y_batch] = batch;
        let [x_contract, y_contract] = contract;
        let (x, x_contract) = self.batch_first(x, &x_batch, &x_contract)?;
        let (y, y_contract) = self.batch_first(y, &y_batch, &y_contract)?;
        let leading: Vec<usize> = (0..x_batch.len()).collect();
        let y_leading: Vec<usize> = (0..y_batch.len()).collect();
        Ok(self.graph.dot_general(
            x,
            &axes(&x_contract),
            &axes(&leading),
            y,
            &axes(&y_contract),
            &axes(&y_leading),
        )?)
    }

    /// Moves the batch axes to the front, and returns the new positions of the contracted axes.
    fn batch_first(
        &mut self,
        x: ExprId,
        batch: &[usize],
        contract: &[usize],
    ) -> Result<(ExprId, Vec<usize>), Fail> {
        let rank = self.graph.shape(x).rank();
        if batch.iter().chain(contract).any(|&axis| axis >= rank) {
            return malformed("an axis is out of range");
        }
        let (x, order) = self.axes_to_front(x, batch)?;
        let place = |axis: &usize| order.iter().position(|at| at == axis).unwrap_or(0);
        Ok((x, contract.iter().map(place).collect()))
    }

    /// Builds a convolution of integers as `int64`; the result wraps to the bits of `dtype`.
    ///
    /// Expressions convolve floats, and a `float64` holds the sum of `2**21` products of 16-bit integers
    /// exactly. Wider integers are `high * 2**16 + low`: the product of two high parts has no bits below
    /// `2**32`.
    fn convolution_of_integers(
        &mut self,
        operation: &Operation,
        x: ExprId,
        y: ExprId,
        dtype: DType,
    ) -> Result<ExprId, Fail> {
        let bits = self.graph.dtype(x).bits().max(self.graph.dtype(y).bits());
        if dtype.is_pred() || bits > 16 && bits.max(dtype.bits()) > 32 {
            return unsupported("a convolution of booleans or 64-bit integers is not supported");
        }
        if bits <= 16 {
            return self.exact_convolution(operation, x, y);
        }
        let [(x_high, x_low), (y_high, y_low)] = [self.split_integers(x)?, self.split_integers(y)?];
        let left = self.exact_convolution(operation, x_high, y_low)?;
        let right = self.exact_convolution(operation, x_low, y_high)?;
        let low = self.exact_convolution(operation, x_low, y_low)?;
        let high = self.graph.add(left, right)?;
        let scale = self.graph.scalar_constant(Scalar::Int(1 << 16), DType::S64)?;
        let high = self.graph.multiply(high, scale)?;
        Ok(self.graph.add(high, low)?)
    }

    /// Convolves integers of at most 16 bits in `float64`, and returns `int64`.
    fn exact_convolution(
        &mut self,
        operation: &Operation,
        x: ExprId,
        y: ExprId,
    ) -> Result<ExprId, Fail> {
        let x = self.graph.as_type(x, DType::F64)?;
        let y = self.graph.as_type(y, DType::F64)?;
        let sum = self.convolution(operation, x, y)?;
        Ok(self.graph.as_type(sum, DType::S64)?)
    }

    /// Returns `(high, low)` of `x == high * 2**16 + low` with `0 <= low < 2**16`, as `int64`.
    fn split_integers(&mut self, x: ExprId) -> Result<(ExprId, ExprId), Fail> {
        let x = self.graph.as_type(x, DType::S64)?;
        let mask = self.graph.scalar_constant(Scalar::Int(0xFFFF), DType::S64)?;
        let shift = self.graph.scalar_constant(Scalar::Int(16), DType::S64)?;
        let high = self.graph.right_shift(x, shift)?;
        Ok((high, self.graph.bitwise_and(x, mask)?))
    }

    fn convolution(&mut self, operation: &Operation, x: ExprId, y: ExprId) -> Result<ExprId, Fail> {
        let [input_permutation, kernel_permutation, output_permutation] = permutations(operation)?;
        let rank = self.graph.shape(x).rank();
        let spatial = rank.saturating_sub(2);
        let list = |generic: &str, short: &str, default: i64| match operation
            .attribute(&[generic])
            .or(operation.entry(&["window"], short))
        {
            Some(attribute) => numbers(attribute),
            None => Ok(vec![default; spatial]),
        };
        let padding = match list("padding", "pad", 0)? {
            // Without the attribute, the list has no pairs.
            flat if flat.len() == 2 * spatial => {
                flat.chunks_exact(2).map(|p| (p[0], p[1])).collect()
            }
            flat if flat.iter().all(|&size| size == 0) => vec![(0, 0); spatial],
            _ => return malformed("padding must have two entries per axis"),
        };
        let reversed = list("window_reversal", "reverse", 0)?;
        let mut kernel_value = y;
        let flipped: Vec<usize> = reversed
            .iter()
            .zip(kernel_permutation.iter().skip(2))
            .filter(|(flip, _)| **flip != 0)
            .map(|(_, &axis)| axis)
            .collect();
        if !flipped.is_empty() {
            kernel_value = self.graph.reverse(kernel_value, Some(&axes(&flipped)))?;
        }
        let groups = |name: &str| match operation.attribute(&[name]) {
            Some(_) => operation.size(&[name]),
            None => Ok(1),
        };
        let conv = Conv {
            strides: sizes_of(&list("window_strides", "stride", 1)?)?.into(),
            padding: padding.into(),
            input_dilation: sizes_of(&list("lhs_dilation", "lhs_dilate", 1)?)?.into(),
            kernel_dilation: sizes_of(&list("rhs_dilation", "rhs_dilate", 1)?)?.into(),
            feature_groups: groups("feature_group_count")?,
            batch_groups: groups("batch_group_count")?,
            input_permutation: input_permutation.into(),
            kernel_permutation: kernel_permutation.into(),
            output_permutation: output_permutation.into(),
        };
        Ok(self.graph.make(Op::Conv(Box::new(conv)), &[x, kernel_value])?)
    }
}

/// Reads `[0] x [1]`; no axes if the attribute is missing.
fn pair_of(operation: &Operation, name: &str) -> Result<[Vec<usize>; 2], Fail> {
    match operation.attribute(&[name]) {
        Some(Attribute::Pair(left, right)) => {
            Ok([sizes_of(&numbers(left)?)?, sizes_of(&numbers(right)?)?])
        }
        Some(_) => malformed(format!("{name} must be a pair of lists")),
        None => Ok([Vec::new(), Vec::new()]),
    }
}

/// Returns the positions of the axes of the input, the kernel and the output of a convolution: batch
/// and feature, or output and input feature, then the spatial axes.
fn permutations(operation: &Operation) -> Result<[Vec<usize>; 3], Fail> {
    if operation.attribute(&["input_batch_dimension"]).is_some() {
        let read = |names: [&str; 3]| -> Result<_, Fail> {
            let mut axes = vec![operation.size(&names[..1])?, operation.size(&names[1..2])?];
            axes.extend(operation.sizes(&names[2..])?);
            Ok(axes)
        };
        return Ok([
            read(["input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"])?,
            read([
                "kernel_output_feature_dimension",
                "kernel_input_feature_dimension",
                "kernel_spatial_dimensions",
            ])?,
            read([
                "output_batch_dimension",
                "output_feature_dimension",
                "output_spatial_dimensions",
            ])?,
        ]);
    }
    let numbers_of = operation.attribute(&["dimension_numbers", "dim_numbers"]);
    let Some(Attribute::Pair(input, rest)) = numbers_of else {
        return malformed("dimension_numbers are missing");
    };
    let Attribute::Pair(kernel, output) = &**rest else {
        return malformed("dimension_numbers must describe three tensors");
    };
    Ok([
        permutation(input, ["b", "f"])?,
        permutation(kernel, ["o", "i"])?,
        permutation(output, ["b", "f"])?,
    ])
}

/// Returns the positions of two named axes and of the spatial axes in a list such as `[b, 0, 1, f]`.
fn permutation(layout: &Attribute, named: [&str; 2]) -> Result<Vec<usize>, Fail> {
    let Attribute::List(entries) = layout else {
        return malformed("dimension_numbers must be lists");
    };
    let find = |accept: &dyn Fn(&Attribute) -> bool| {
        let position = entries.iter().position(accept);
        position.ok_or_else(|| Fail::Malformed("dimension_numbers lack an axis".into()))
    };
    let mut positions = Vec::with_capacity(entries.len());
    for name in named {
        positions.push(find(&|entry| matches!(entry, Attribute::Keyword(word) if word == name))?);
    }
    for axis in 0..entries.len().saturating_sub(2) {
        positions.push(find(
            &|entry| matches!(entry, Attribute::Int(value) if usize::try_from(*value) == Ok(axis)),
        )?);
    }
    Ok(positions)
}

//! The StableHLO operations that the families use.
//!
//! Methods take values and return values, whose types are inferred. A conversion or broadcast without
//! effect is not written, and equal conversions are written once per block.

use std::fmt;

use nxla_tensor::{DType, Kind, Scalar, Shape};
use smallvec::SmallVec;

use crate::context::Cx;
use crate::error::Result;
use crate::literal::{Element, I64s};
use crate::region::Source;
use crate::types::Ty;
use crate::writer::{Value, Values};

/// Dimensions of a slice, one entry per axis.
pub(crate) struct Range<'a> {
    pub(crate) starts: &'a [usize],
    pub(crate) lengths: &'a [usize],
    pub(crate) strides: &'a [usize],
}

impl Cx<'_> {
    // --- sources and constants ---

    /// The value behind a source.
    pub(crate) fn value(&mut self, source: Source) -> Value {
        match source {
            Source::Value(value) => value,
            Source::Splat(number, ty) => self.constant(number, ty),
        }
    }

    /// A number repeated over a shape.
    pub(crate) fn splat(&mut self, number: Scalar, dtype: DType, shape: &Shape) -> Value {
        let ty = self.ty(dtype, shape);
        self.constant(number, ty)
    }

    /// A number repeated to the type of a value.
    pub(crate) fn splat_like(&mut self, number: Scalar, value: Value) -> Value {
        self.constant(number, value.ty)
    }

    fn constant(&mut self, number: Scalar, ty: Ty) -> Value {
        let dtype = self.dtype(ty);
        let number = number.cast(dtype);
        if let Some(&value) = self.memo.constants.get(&(number, ty)) {
            return value;
        }
        let value = if self.shape(ty).size() == 0 {
            self.writer.constant(format_args!("dense<>"), ty)
        } else {
            self.writer.constant(format_args!("dense<{}>", Element(number, dtype)), ty)
        };
        self.memo.constants.insert((number, ty), value);
        value
    }

    // --- conversions ---

    /// A source with another dtype. As a boolean, a number is true unless it is zero; NaN is true.
    pub(crate) fn cast(&mut self, source: Source, dtype: DType) -> Value {
        match source {
            Source::Value(value) => self.convert(value, dtype),
            Source::Splat(number, ty) => {
                let shape = self.shape(ty).clone();
                self.splat(number, dtype, &shape)
            }
        }
    }

    /// A source with another dtype, broadcast to a shape from the right.
    pub(crate) fn coerce(&mut self, source: Source, dtype: DType, shape: &Shape) -> Value {
        match source {
            Source::Splat(number, _) => self.splat(number, dtype, shape),
            Source::Value(value) => {
                let value = self.convert(value, dtype);
                self.broadcast_right(value, shape)
            }
        }
    }

    /// A value repeated along the axes where it has size 1 or that it lacks on the left.
    pub(crate) fn broadcast_right(&mut self, value: Value, shape: &Shape) -> Value {
        if self.shape(value.ty) == shape {
            return value;
        }
        let missing = shape.rank() - self.shape(value.ty).rank();
        let axes: SmallVec<[usize; 8]> = (missing..shape.rank()).collect();
        self.broadcast(value, &axes, shape)
    }

    /// A value whose axis `i` becomes axis `axes[i]` of `shape`.
    pub(crate) fn broadcast(&mut self, value: Value, axes: &[usize], shape: &Shape) -> Value {
        let ty = self.ty(self.dtype(value.ty), shape);
        let write = |cx: &mut Self| {
            let attributes = format_args!("broadcast_dimensions = {}", I64s(axes));
            cx.writer.operation("stablehlo.broadcast_in_dim", &[value], attributes, ty)
        };
        // Broadcasts to the last axes are reused; other broadcasts are rare.
        let from_right = axes.iter().rev().zip((0..shape.rank()).rev()).all(|(&a, b)| a == b);
        if from_right { self.once(value, ty, write) } else { write(self) }
    }

    /// Writes a conversion of a value to a type, unless the block has it already.
    pub(crate) fn once(
        &mut self,
        value: Value,
        ty: Ty,
        write: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        if let Some(&known) = self.memo.conversions.get(&(value, ty)) {
            return known;
        }
        let converted = write(self);
        self.memo.conversions.insert((value, ty), converted);
        converted
    }

    /// The type of a value with another dtype.
    pub(crate) fn ty_with_dtype(&mut self, value: Value, dtype: DType) -> Ty {
        let shape = self.shape(value.ty).clone();
        self.ty(dtype, &shape)
    }

    // --- element-wise ---

    /// An operation without attributes.
    pub(crate) fn operation(&mut self, name: &str, operands: &[Value], result: Ty) -> Value {
        self.writer.operation(name, operands, format_args!(""), result)
    }

    /// An operation whose operands and result have one type.
    pub(crate) fn uniform(&mut self, name: &str, operands: &[Value]) -> Value {
        self.writer.uniform(name, operands)
    }

    /// Calls a function of the host, with further attributes and a configuration.
    pub(crate) fn call_host(
        &mut self,
        operands: &[Value],
        attributes: &str,
        config: fmt::Arguments<'_>,
        results: &[Ty],
    ) -> Values {
        self.custom_call("nxla_host_call", operands, attributes, config, results)
    }

    /// Calls a target that is registered with the plugin. Layouts are spelled out: XLA would choose
    /// others where it transposes what goes in or comes out.
    pub(crate) fn custom_call(
        &mut self,
        target: &str,
        operands: &[Value],
        attributes: &str,
        config: fmt::Arguments<'_>,
        results: &[Ty],
    ) -> Values {
        let layouts = |types: &mut dyn Iterator<Item = Ty>| -> String {
            let layouts: Vec<String> = types.map(|ty| row_major(self.shape(ty).rank())).collect();
            layouts.join(", ")
        };
        let inside = layouts(&mut operands.iter().map(|x| x.ty));
        let outside = layouts(&mut results.iter().copied());
        let attributes = format_args!(
            "call_target_name = \"{target}\", api_version = 4 : i32, {attributes}\
             operand_layouts = [{inside}], result_layouts = [{outside}], backend_config = {{{config}}}"
        );
        self.writer.operations("stablehlo.custom_call", operands, attributes, results)
    }

    /// Writes a comparison with its type.
    ///
    /// The type is optional in StableHLO, but plugins fold unsigned constants as signed ones without
    /// it.
    pub(crate) fn compare(&mut self, direction: &str, x: Value, y: Value) -> Value {
        let ty = self.ty_with_dtype(x, DType::Pred);
        let kind = match self.dtype(x.ty).kind() {
            Kind::Pred | Kind::Unsigned => "UNSIGNED",
            Kind::Signed => "SIGNED",
            Kind::Float | Kind::Complex => "FLOAT",
        };
        let attributes = format_args!(
            "comparison_direction = #stablehlo<comparison_direction {direction}>, compare_type = \
             #stablehlo<comparison_type {kind}>"
        );
        self.writer.operation("stablehlo.compare", &[x, y], attributes, ty)
    }

    /// The real and the imaginary parts of complex numbers.
    pub(crate) fn parts(&mut self, x: Value) -> [Value; 2] {
        let ty = self.ty_with_dtype(x, self.dtype(x.ty).to_real());
        [self.operation("stablehlo.real", &[x], ty), self.operation("stablehlo.imag", &[x], ty)]
    }

    /// `predicate` is a scalar or has the shape of the other two.
    pub(crate) fn select(&mut self, predicate: Value, on_true: Value, on_false: Value) -> Value {
        self.operation("stablehlo.select", &[predicate, on_true, on_false], on_true.ty)
    }

    // --- movement ---

    pub(crate) fn iota(&mut self, axis: usize, dtype: DType, shape: &Shape) -> Value {
        let ty = self.ty(dtype, shape);
        let attributes = format_args!("iota_dimension = {axis} : i64");
        self.writer.operation("stablehlo.iota", &[], attributes, ty)
    }

    pub(crate) fn reshape(&mut self, value: Value, shape: &Shape) -> Value {
        if self.shape(value.ty) == shape {
            return value;
        }
        let ty = self.ty(self.dtype(value.ty), shape);
        self.operation("stablehlo.reshape", &[value], ty)
    }

    /// Axis `i` of the result is axis `permutation[i]` of the value.
    pub(crate) fn transpose(&mut self, value: Value, permutation: &[usize]) -> Value {
        if permutation.is_sorted() {
            return value;
        }
        let from = self.shape(value.ty);
        let shape: Shape = permutation.iter().map(|&axis| from[axis]).collect();
        let ty = self.ty(self.dtype(value.ty), &shape);
        let attributes = format_args!("permutation = {}", I64s(permutation));
        self.writer.operation("stablehlo.transpose", &[value], attributes, ty)
    }

    /// Slices a range, which must be inside the value.
    pub(crate) fn slice(&mut self, value: Value, range: &Range<'_>) -> Value {
        let Range { starts, lengths, strides } = *range;
        let full = self.shape(value.ty).as_slice() == lengths;
        if full && strides.iter().all(|&stride| stride == 1) {
            return value;
        }
        let shape: Shape =
            lengths.iter().zip(strides).map(|(length, &stride)| length.div_ceil(stride)).collect();
        let limits: SmallVec<[usize; 8]> =
            starts.iter().zip(lengths).map(|(start, length)| start + length).collect();
        let ty = self.ty(self.dtype(value.ty), &shape);
        let attributes = format_args!(
            "start_indices = {}, limit_indices = {}, strides = {}",
            I64s(starts),
            I64s(&limits),
            I64s(strides)
        );
        self.writer.operation("stablehlo.slice", &[value], attributes, ty)
    }

    /// The first elements along each axis.
    pub(crate) fn slice_first(&mut self, value: Value, lengths: &[usize]) -> Value {
        let starts: SmallVec<[usize; 8]> = SmallVec::from_elem(0, lengths.len());
        let strides: SmallVec<[usize; 8]> = SmallVec::from_elem(1, lengths.len());
        self.slice(value, &Range { starts: &starts, lengths, strides: &strides })
    }

    /// A value surrounded by the scalar `filling`; negative amounts trim.
    pub(crate) fn pad(&mut self, value: Value, filling: Value, padding: &Pad<'_>) -> Value {
        let ty = self.ty(self.dtype(value.ty), padding.shape);
        let attributes = format_args!(
            "edge_padding_low = {}, edge_padding_high = {}, interior_padding = {}",
            I64s(&padding.low),
            I64s(&padding.high),
            I64s(&padding.interior)
        );
        self.writer.operation("stablehlo.pad", &[value, filling], attributes, ty)
    }

    /// Values joined along an axis.
    pub(crate) fn concatenate(&mut self, values: &[Value], axis: usize) -> Value {
        if let [value] = values {
            return *value;
        }
        let mut shape = self.shape(values[0].ty).clone();
        shape.as_mut_slice()[axis] = values.iter().map(|value| self.shape(value.ty)[axis]).sum();
        let ty = self.ty(self.dtype(values[0].ty), &shape);
        let attributes = format_args!("dimension = {axis} : i64");
        self.writer.operation("stablehlo.concatenate", values, attributes, ty)
    }

    // --- folds ---

    /// Reduces several values of one shape at once. `body` gets the accumulators and the
    /// elements, all scalar.
    pub(crate) fn reduce(
        &mut self,
        values: &[Value],
        initial: &[Value],
        axes: &[usize],
        body: impl FnOnce(&mut Self, &[Value], &[Value]) -> Result<Values>,
    ) -> Result<Values> {
        let shape: Shape = (self.shape(values[0].ty).iter().enumerate())
            .filter(|(axis, _)| !axes.contains(axis))
            .map(|(_, &size)| size)
            .collect();
        let attributes = format_args!("dimensions = {}", I64s(axes));
        self.fold("stablehlo.reduce", values, initial, &shape, attributes, body)
    }

    /// Reduces a value by an operation of two scalars, from a number that does not change the result.
    pub(crate) fn reduce_by(
        &mut self,
        name: &str,
        neutral: Scalar,
        value: Value,
        axes: &[usize],
    ) -> Result<Value> {
        let initial = self.splat(neutral, self.dtype(value.ty), &Shape::scalar());
        let results = self.reduce(&[value], &[initial], axes, |cx, accumulators, elements| {
            Ok(Values::from_slice(&[cx.uniform(name, &[accumulators[0], elements[0]])]))
        })?;
        Ok(results[0])
    }

    /// An operation whose region folds scalars: `stablehlo.reduce` or `stablehlo.reduce_window`.
    pub(crate) fn fold(
        &mut self,
        name: &str,
        values: &[Value],
        initial: &[Value],
        shape: &Shape,
        attributes: std::fmt::Arguments<'_>,
        body: impl FnOnce(&mut Self, &[Value], &[Value]) -> Result<Values>,
    ) -> Result<Values> {
        let scalars: SmallVec<[Ty; 8]> =
            initial.iter().chain(initial).map(|value| value.ty).collect();
        let results: SmallVec<[Ty; 4]> =
            initial.iter().map(|value| self.ty(self.dtype(value.ty), shape)).collect();
        let operands: Values = values.iter().chain(initial).copied().collect();
        let mut open = self.writer.open(name, &operands, &results);
        let arguments = self.begin_region(&mut open, &scalars);
        let (accumulators, elements) = arguments.split_at(initial.len());
        let folded = body(self, accumulators, elements)?;
        self.end_region(&folded);
        Ok(self.writer.close(open, attributes))
    }
}

/// Padding of each axis, and the resulting shape.
pub(crate) struct Pad<'a> {
    pub(crate) low: SmallVec<[i64; 8]>,
    pub(crate) high: SmallVec<[i64; 8]>,
    pub(crate) interior: SmallVec<[usize; 8]>,
    pub(crate) shape: &'a Shape,
}

impl<'a> Pad<'a> {
    /// Padding at the edges only.
    pub(crate) fn edges(padding: &[(i64, i64)], shape: &'a Shape) -> Self {
        Self {
            low: padding.iter().map(|&(low, _)| low).collect(),
            high: padding.iter().map(|&(_, high)| high).collect(),
            interior: SmallVec::from_elem(0, padding.len()),
            shape,
        }
    }
}

/// Returns the layout in which elements along the last axis are adjacent.
fn row_major(rank: usize) -> String {
    let axes: Vec<String> = (0..rank).rev().map(|axis| axis.to_string()).collect();
    format!("dense<[{}]> : tensor<{rank}xindex>", axes.join(", "))
}

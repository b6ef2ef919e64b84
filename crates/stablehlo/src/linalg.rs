//! Fourier transforms and matrix factorizations.

use nxla_expr::{Fft, Op, TensorType, Transform, TriangularSolve};
use nxla_tensor::{DType, Scalar, Shape, to_i64};
use smallvec::SmallVec;

use crate::builder::{Pad, Range};
use crate::context::Cx;
use crate::error::Result;
use crate::factorize;
use crate::region::Source;
use crate::types::Ty;
use crate::widen;
use crate::writer::Value;

pub(crate) fn lower(
    cx: &mut Cx<'_>,
    op: &Op,
    operands: &[Source],
    ty: &TensorType,
) -> Result<Value> {
    match op {
        Op::Fft(attributes) => Ok(fft(cx, *attributes, operands[0], ty)),
        Op::TriangularSolve(attributes) => Ok(triangular_solve(cx, *attributes, operands, ty)),
        Op::Cholesky => cholesky(cx, operands[0], ty),
        Op::Factorize(_) => unreachable!("it is a call, or composed of other ops"),
        op @ nxla_expr::outside!(linalg) => unreachable!("{} is of another family", op.name()),
    }
}

/// StableHLO transforms the last axis, over its whole length.
fn fft(cx: &mut Cx<'_>, Fft { inverse, length, axis }: Fft, x: Source, ty: &TensorType) -> Value {
    let is_real = !cx.dtype(x.ty()).is_complex() && length > 1;
    let x = cx.cast(x, if is_real { ty.dtype.to_real() } else { ty.dtype });
    let x = fit(cx, x, axis, length);
    // The exchange of two axes is its own inverse.
    let mut exchange: SmallVec<[usize; 8]> = (0..ty.rank()).collect();
    exchange.swap(axis, ty.rank() - 1);
    let x = cx.transpose(x, &exchange);
    let x = match (is_real, inverse) {
        (true, _) => real_fft(cx, x, inverse, ty.dtype),
        (false, true) => one_fft(cx, "IFFT", x, length, x.ty),
        (false, false) => one_fft(cx, "FFT", x, length, x.ty),
    };
    cx.transpose(x, &exchange)
}

fn one_fft(cx: &mut Cx<'_>, kind: &str, x: Value, length: usize, ty: Ty) -> Value {
    let attributes =
        format_args!("fft_type = #stablehlo<fft_type {kind}>, fft_length = array<i64: {length}>");
    cx.writer.operation("stablehlo.fft", &[x], attributes, ty)
}

/// The first half of the transform of real numbers takes half the time, and the other half mirrors
/// it. XLA computes neither more than is read.
fn real_fft(cx: &mut Cx<'_>, x: Value, inverse: bool, dtype: DType) -> Value {
    let mut shape = cx.shape(x.ty).clone();
    let last = shape.rank() - 1;
    let length = shape[last];
    shape.as_mut_slice()[last] = length / 2 + 1;
    let ty = cx.ty(dtype, &shape);
    let mut half = one_fft(cx, "RFFT", x, length, ty);
    if inverse {
        // The inverse transform of real numbers is the conjugate of their forward transform. Its
        // parts are scaled separately, because an infinite part would make the other part NaN.
        let part = cx.ty(dtype.to_real(), &shape);
        let mut scaled = |name: &str, scale: f64| {
            let scale = cx.splat(Scalar::Float(scale), dtype.to_real(), &shape);
            let x = cx.operation(name, &[half], part);
            cx.uniform("stablehlo.multiply", &[x, scale])
        };
        let scale = 1.0 / length as f64;
        let parts = [scaled("stablehlo.real", scale), scaled("stablehlo.imag", -scale)];
        half = cx.operation("stablehlo.complex", &parts, ty);
    }
    let mirrored = length - shape[last];
    if mirrored == 0 {
        return half;
    }
    let mut starts: SmallVec<[usize; 8]> = SmallVec::from_elem(0, shape.rank());
    let strides: SmallVec<[usize; 8]> = SmallVec::from_elem(1, shape.rank());
    starts[last] = 1;
    shape.as_mut_slice()[last] = mirrored;
    let rest = cx.slice(half, &Range { starts: &starts, lengths: &shape, strides: &strides });
    let attributes = format_args!("dimensions = array<i64: {last}>");
    let rest = cx.writer.operation("stablehlo.reverse", &[rest], attributes, rest.ty);
    let rest = conjugate(cx, rest);
    cx.concatenate(&[half, rest], last)
}

/// Cuts an axis to a length, or fills it up with zeros.
fn fit(cx: &mut Cx<'_>, x: Value, axis: usize, length: usize) -> Value {
    let mut shape = cx.shape(x.ty).clone();
    let size = shape[axis];
    shape.as_mut_slice()[axis] = length;
    if length <= size {
        return cx.slice_first(x, &shape);
    }
    let mut padding: SmallVec<[(i64, i64); 8]> = SmallVec::from_elem((0, 0), shape.rank());
    padding[axis].1 = to_i64(length - size);
    let zero = cx.splat(Scalar::UInt(0), cx.dtype(x.ty), &Shape::scalar());
    cx.pad(x, zero, &Pad::edges(&padding, &shape))
}

fn triangular_solve(
    cx: &mut Cx<'_>,
    attributes: TriangularSolve,
    operands: &[Source],
    ty: &TensorType,
) -> Value {
    let TriangularSolve { lower, left_side, transform } = attributes;
    let compute = widen::linalg(ty.dtype);
    let mut a = cx.cast(operands[0], compute);
    let b = cx.cast(operands[1], compute);
    if transform == Transform::Conjugate && compute.is_complex() {
        a = conjugate(cx, a);
    }
    let transform = match transform {
        Transform::None | Transform::Conjugate => "NO_TRANSPOSE",
        Transform::Transpose => "TRANSPOSE",
    };
    // A vector is a matrix with one column, or with one row if it is the left operand.
    let mut matrix = ty.shape.clone();
    if ty.rank() < cx.shape(a.ty).rank() {
        matrix.insert(if left_side { ty.rank() } else { ty.rank() - 1 }, 1);
    }
    let b = cx.reshape(b, &matrix);
    let attributes = format_args!(
        "left_side = {left_side}, lower = {lower}, unit_diagonal = false, \
         transpose_a = #stablehlo<transpose {transform}>"
    );
    let x = cx.writer.operation("stablehlo.triangular_solve", &[a, b], attributes, b.ty);
    let x = cx.reshape(x, &ty.shape);
    cx.convert(x, ty.dtype)
}

pub(crate) fn conjugate(cx: &mut Cx<'_>, x: Value) -> Value {
    let [real, imag] = cx.parts(x);
    let imag = cx.uniform("stablehlo.negate", &[imag]);
    cx.operation("stablehlo.complex", &[real, imag], x.ty)
}

/// The other triangle is undefined in StableHLO and in the library, and so is the result of StableHLO
/// for a matrix that is not positive definite. Here the triangle is zero and the result is NaN.
fn cholesky(cx: &mut Cx<'_>, a: Source, ty: &TensorType) -> Result<Value> {
    let compute = widen::linalg(ty.dtype);
    let mut a = cx.cast(a, compute);
    let rank = ty.rank();
    let row = cx.iota(rank - 2, DType::S32, &ty.shape);
    let column = cx.iota(rank - 1, DType::S32, &ty.shape);
    let is_lower = cx.compare("GE", row, column);
    let is_diagonal = cx.compare("EQ", row, column);
    if compute.is_complex() {
        // The diagonal of a Hermitian matrix is real.
        let part = real_part(cx, a);
        let real = cx.convert(part, compute);
        a = cx.select(is_diagonal, real, a);
    }
    let l = if cx.calls_library() {
        factorize::cholesky(cx, a)
    } else {
        cx.writer.operation("stablehlo.cholesky", &[a], format_args!("lower = true"), a.ty)
    };
    let zero = cx.splat_like(Scalar::UInt(0), l);
    let triangle = cx.select(is_lower, l, zero);

    let part = real_part(cx, l);
    let part_zero = cx.splat_like(Scalar::UInt(0), part);
    let is_positive = cx.compare("GT", part, part_zero);
    let elsewhere = cx.uniform("stablehlo.not", &[is_diagonal]);
    let is_fine = cx.uniform("stablehlo.or", &[elsewhere, is_positive]);
    let matrix = [rank - 2, rank - 1];
    let is_definite = cx.reduce_by("stablehlo.and", Scalar::UInt(1), is_fine, &matrix)?;
    let batch: SmallVec<[usize; 8]> = (0..rank - 2).collect();
    let is_definite = cx.broadcast(is_definite, &batch, &ty.shape);
    let nan = cx.splat_like(Scalar::Float(f64::NAN), l);
    let l = cx.select(is_definite, triangle, nan);
    Ok(cx.convert(l, ty.dtype))
}

/// The real part of a complex value, or a real value.
fn real_part(cx: &mut Cx<'_>, x: Value) -> Value {
    let dtype = cx.dtype(x.ty);
    if !dtype.is_complex() {
        return x;
    }
    let part = cx.ty_with_dtype(x, dtype.to_real());
    cx.operation("stablehlo.real", &[x], part)
}

//! Factorizations as calls of a library for the device, see [`LowerOptions::library_call`].
//!
//! The library stores matrices by columns. Such a matrix is the transpose of the matrix that the same
//! memory holds by rows, so transposes surround the calls where the mathematics does not cancel
//! them.
//!
//! [`LowerOptions::library_call`]: crate::LowerOptions::library_call

use nxla_expr::{Factorization, TensorType};
use nxla_tensor::{DType, Scalar, Shape, to_i64};

use crate::builder::Pad;
use crate::context::Cx;
use crate::error::Result;
use crate::kernel;
use crate::linalg::conjugate;
use crate::region::{Source, Sources};
use crate::types::Ty;
use crate::widen;
use crate::writer::{Value, Values};

/// The name of the calls.
const TARGET: &str = "nxla_factorize";

/// Lowers a factorization to a call; `types` are its results.
pub(crate) fn lower(
    cx: &mut Cx<'_>,
    factorization: Factorization,
    a: Source,
    types: &[TensorType],
) -> Result<Sources> {
    if let Some(nothing) = kernel::empty_results(cx, types) {
        return Ok(nothing);
    }
    let compute = widen::linalg(cx.dtype(a.ty()).to_floating());
    let a = cx.cast(a, compute);
    let a = matrices(cx, a);
    // The other triangle of a Hermitian matrix is not read.
    let is_hermitian = factorization == Factorization::Eigh;
    let a = if is_hermitian { where_axes(cx, "GE", a) } else { a };
    let (a, is_known) = without_nan(cx, a)?;
    let parts = match factorization {
        Factorization::Lu => lu(cx, a),
        Factorization::Qr { complete } => qr(cx, a, complete)?,
        Factorization::Eigh => eigh(cx, a),
        Factorization::Svd { full } => svd(cx, a, full),
    };
    let known = |&part: &Value| {
        let is_order = cx.dtype(part.ty).is_integer();
        if is_order { part } else { where_matrix(cx, is_known, part) }
    };
    let parts: Values = parts.iter().map(known).collect();
    Ok(kernel::results(cx, &parts, types))
}

/// Replaces matrices with NaN by zeros, for which every routine ends, and returns which matrices have
/// none.
fn without_nan(cx: &mut Cx<'_>, a: Value) -> Result<(Value, Value)> {
    let shape = cx.shape(a.ty).clone();
    let is_number = cx.compare("EQ", a, a);
    let is_known = cx.reduce_by("stablehlo.and", Scalar::UInt(1), is_number, &[1, 2])?;
    let everywhere = cx.broadcast(is_known, &[0], &shape);
    let zero = cx.splat_like(Scalar::UInt(0), a);
    Ok((cx.select(everywhere, a, zero), is_known))
}

/// Returns a matrix whose lower triangle holds the Cholesky factor of `a`, or NaN if `a` is not
/// positive definite.
pub(crate) fn cholesky(cx: &mut Cx<'_>, a: Value) -> Value {
    let shape = cx.shape(a.ty).clone();
    let a = matrices(cx, a);
    let info = info_of(cx, a);
    let parts = call(cx, "cholesky", a, &[a.ty, info]);
    let is_fine = is_fine(cx, parts[1]);
    let l = where_matrix(cx, is_fine, parts[0]);
    cx.reshape(l, &shape)
}

/// A value with one leading axis for all matrices.
fn matrices(cx: &mut Cx<'_>, x: Value) -> Value {
    let shape = cx.shape(x.ty);
    let [batch @ .., rows, columns] = shape.as_slice() else { unreachable!("x has two axes") };
    let shape = Shape::from([Shape::from(batch).size(), *rows, *columns]);
    cx.reshape(x, &shape)
}

fn lu(cx: &mut Cx<'_>, a: Value) -> Values {
    let a = transpose(cx, a);
    let [batch, columns, _] = sizes(cx, a);
    let order = cx.ty(DType::S32, &Shape::from([batch, columns]));
    let parts = call(cx, "lu", a, &[a.ty, order]);
    Values::from_slice(&[transpose(cx, parts[0]), parts[1]])
}

fn qr(cx: &mut Cx<'_>, a: Value, complete: bool) -> Result<Values> {
    let [batch, rows, columns] = sizes(cx, a);
    let inner = if complete { rows } else { rows.min(columns) };
    let a = transpose(cx, a);
    let dtype = cx.dtype(a.ty);
    // The library writes the columns of `q` over the columns of `a`.
    let shape = Shape::from([batch, columns.max(inner), rows]);
    let zero = cx.splat(Scalar::UInt(0), dtype, &Shape::scalar());
    let further = to_i64(shape[1] - columns);
    let padded = match further {
        0 => a,
        _ => cx.pad(a, zero, &Pad::edges(&[(0, 0), (0, further), (0, 0)], &shape)),
    };
    let r = cx.ty(dtype, &Shape::from([batch, columns, rows]));
    let parts = call(cx, "qr", padded, &[padded.ty, r]);
    let q = first_rows(cx, parts[0], inner);
    let q = transpose(cx, q);
    let r = transpose(cx, parts[1]);
    let r = first_rows(cx, r, inner);
    let r = where_axes(cx, "LE", r);
    with_positive_diagonal(cx, q, r)
}

/// Multiplies rows of `r` and columns of `q` by numbers of magnitude one, with which the diagonal of
/// `r` is real and not negative.
fn with_positive_diagonal(cx: &mut Cx<'_>, q: Value, r: Value) -> Result<Values> {
    let dtype = cx.dtype(r.ty);
    let on_diagonal = where_axes(cx, "EQ", r);
    let diagonal = cx.reduce_by("stablehlo.add", Scalar::UInt(0), on_diagonal, &[2])?;
    let part = cx.ty_with_dtype(diagonal, dtype.to_real());
    let size = cx.operation("stablehlo.abs", &[diagonal], part);
    let nothing = cx.splat_like(Scalar::UInt(0), size);
    let is_zero = cx.compare("EQ", size, nothing);
    let one = cx.splat_like(Scalar::UInt(1), diagonal);
    let size = cx.convert(size, dtype);
    let quotient = cx.uniform("stablehlo.divide", &[diagonal, size]);
    let phase = cx.select(is_zero, one, quotient);
    let inverse = if dtype.is_complex() { conjugate(cx, phase) } else { phase };
    let mut multiply = |x: Value, factor: Value, axes: &[usize]| {
        let shape = cx.shape(x.ty).clone();
        let factor = cx.broadcast(factor, axes, &shape);
        cx.uniform("stablehlo.multiply", &[x, factor])
    };
    Ok(Values::from_slice(&[multiply(q, phase, &[0, 2]), multiply(r, inverse, &[0, 1])]))
}

/// The library sees the conjugate of a Hermitian matrix, whose eigenvectors are the conjugates.
fn eigh(cx: &mut Cx<'_>, a: Value) -> Values {
    let [batch, side, _] = sizes(cx, a);
    let values = cx.ty(cx.dtype(a.ty).to_real(), &Shape::from([batch, side]));
    let info = info_of(cx, a);
    let parts = call(cx, "eigh", a, &[a.ty, values, info]);
    let vectors = transpose(cx, parts[0]);
    let vectors = if cx.dtype(a.ty).is_complex() { conjugate(cx, vectors) } else { vectors };
    let is_fine = is_fine(cx, parts[2]);
    [parts[1], vectors].iter().map(|&part| where_matrix(cx, is_fine, part)).collect()
}

/// The library wants at least as many rows as columns. A wide matrix by rows is its tall transpose
/// by columns, whose factors are the transposed factors in exchanged order.
fn svd(cx: &mut Cx<'_>, a: Value, full: bool) -> Values {
    let [batch, rows, columns] = sizes(cx, a);
    let is_wide = columns > rows;
    let a = if is_wide { a } else { transpose(cx, a) };
    let (few, many) = (rows.min(columns), rows.max(columns));
    let dtype = cx.dtype(a.ty);
    let types = [
        cx.ty(dtype, &Shape::from([batch, if full { many } else { few }, many])),
        cx.ty(dtype.to_real(), &Shape::from([batch, few])),
        cx.ty(dtype, &Shape::from([batch, few, few])),
        info_of(cx, a),
    ];
    let parts = call(cx, "svd", a, &types);
    let [u, vh] = if is_wide {
        [parts[2], parts[0]]
    } else {
        [transpose(cx, parts[0]), transpose(cx, parts[2])]
    };
    let is_fine = is_fine(cx, parts[3]);
    [u, parts[1], vh].iter().map(|&part| where_matrix(cx, is_fine, part)).collect()
}

fn call(cx: &mut Cx<'_>, routine: &str, a: Value, results: &[Ty]) -> Values {
    cx.custom_call(TARGET, &[a], "", format_args!("routine = \"{routine}\""), results)
}

/// The type of the results that tell failures: a number for each matrix.
fn info_of(cx: &mut Cx<'_>, a: Value) -> Ty {
    let [batch, ..] = sizes(cx, a);
    cx.ty(DType::S32, &Shape::from([batch]))
}

fn is_fine(cx: &mut Cx<'_>, info: Value) -> Value {
    let zero = cx.splat_like(Scalar::UInt(0), info);
    cx.compare("EQ", info, zero)
}

/// A result for some of the matrices, and NaN for the others.
fn where_matrix(cx: &mut Cx<'_>, is_fine: Value, part: Value) -> Value {
    let shape = cx.shape(part.ty).clone();
    let is_fine = cx.broadcast(is_fine, &[0], &shape);
    let nan = cx.splat_like(Scalar::Float(f64::NAN), part);
    cx.select(is_fine, part, nan)
}

fn sizes(cx: &Cx<'_>, x: Value) -> [usize; 3] {
    let [batch, rows, columns] = cx.shape(x.ty)[..] else { unreachable!("x holds matrices") };
    [batch, rows, columns]
}

fn transpose(cx: &mut Cx<'_>, x: Value) -> Value {
    cx.transpose(x, &[0, 2, 1])
}

fn first_rows(cx: &mut Cx<'_>, x: Value, rows: usize) -> Value {
    let [batch, _, columns] = sizes(cx, x);
    cx.slice_first(x, &[batch, rows, columns])
}

/// The elements whose row compares with their column as a direction says, and zeros elsewhere.
fn where_axes(cx: &mut Cx<'_>, direction: &str, x: Value) -> Value {
    let shape = cx.shape(x.ty).clone();
    let row = cx.iota(1, DType::S32, &shape);
    let column = cx.iota(2, DType::S32, &shape);
    let is_part = cx.compare(direction, row, column);
    let zero = cx.splat_like(Scalar::UInt(0), x);
    cx.select(is_part, x, zero)
}

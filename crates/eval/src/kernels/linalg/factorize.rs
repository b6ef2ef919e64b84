//! Matrix factorizations, which a [kernel](crate::kernels::matrix) computes one matrix at a time.
//!
//! The kernel writes all factors of one matrix side by side into one row of numbers, and runs on
//! several threads for large batches. `collect` then copies each factor of all matrices into a tensor.
//! The factors are NaN if the matrix has NaN or infinities, or if an iteration does not converge.

use nxla_expr::{Factorization, TensorType};
use nxla_tensor::{DType, HostTensor};

use super::field::{Field, match_field, matrix_dtype};
use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::convert;

/// The factors of `a`, which has one more axis than its batch of matrices; `types` are the result
/// types of the op. If only the eigenvalues or singular values are read, the vectors are not computed,
/// which takes a fraction of the time; they are empty tensors.
pub(super) fn factorize(
    cx: Cx<'_>,
    factorization: Factorization,
    a: &HostTensor,
    types: &[TensorType],
    is_read: impl Fn(usize) -> bool,
) -> Result<Vec<HostTensor>, Fault> {
    let dtype = a.dtype().to_floating();
    let a = convert(cx, &convert(cx, a, dtype)?, matrix_dtype(dtype))?;
    let values = match factorization {
        Factorization::Eigh => Some(0),
        Factorization::Svd { .. } => Some(1),
        Factorization::Lu | Factorization::Qr { .. } => None,
    };
    let is_only = |values: &usize| (0..types.len()).all(|it| it == *values || !is_read(it));
    let only = values.filter(is_only);
    let mut types = types.to_vec();
    for (index, ty) in types.iter_mut().enumerate() {
        if only.is_some_and(|values| index != values) {
            *ty.shape.as_mut_slice().last_mut().expect("vectors have columns") = 0;
        }
    }
    match_field!(a.dtype(), T => parts::<T>(cx, factorization, only.is_some(), &a, &types))
}

fn parts<T: Field + 'static>(
    cx: Cx<'_>,
    factorization: Factorization,
    values_only: bool,
    a: &HostTensor,
    types: &[TensorType],
) -> Result<Vec<HostTensor>, Fault> {
    let Some(one) = T::FACTORIZE else { unreachable!("the plan runs a decomposition instead") };
    let batch = a.rank() - 2;
    let (rows, columns) = (a.shape()[batch], a.shape()[batch + 1]);
    let count: usize = a.shape()[..batch].iter().product();
    let sizes: Vec<usize> = types.iter().map(|ty| ty.shape[batch..].iter().product()).collect();
    let total: usize = sizes.iter().sum();
    let elements = context::slice::<T>(a);
    let mut results = context::filled(T::NAN, count * total);
    let cost = rows * columns * rows.min(columns) * 8;
    cx.rows(&mut results, total, cost, |first, results| {
        let matrices = elements[first * rows * columns..].chunks_exact(rows * columns);
        for (out, a) in results.chunks_exact_mut(total).zip(matrices) {
            if cx.is_cancelled() || !a.iter().all(|x| x.is_finite()) {
                continue;
            }
            // The kernel allocates several copies of the matrix and of its factors.
            context::require::<T>(3 * (a.len() + total));
            if a.len() < many(factorization) {
                one(factorization, values_only, a, rows, columns, out);
                continue;
            }
            let (a, mut parts) = (
                context::collect_vec(a.iter().copied()),
                context::collect_vec(out.iter().copied()),
            );
            let parts = cx.run_detached(move || {
                one(factorization, values_only, &a, rows, columns, &mut parts);
                parts
            });
            if let Some(parts) = parts {
                out.copy_from_slice(&parts);
            }
        }
    });
    let mut start = 0;
    let mut collected = Vec::with_capacity(types.len());
    for (ty, &size) in types.iter().zip(&sizes) {
        collected.push(collect(cx, &results, start..start + size, total, ty)?);
        start += size;
    }
    Ok(collected)
}

/// The number of elements from which the factorization of a matrix runs on a detached thread,
/// because it cannot be cancelled and takes a tenth of a second or longer.
fn many(factorization: Factorization) -> usize {
    match factorization {
        Factorization::Lu => 1 << 21,
        Factorization::Qr { .. } => 1 << 20,
        Factorization::Eigh | Factorization::Svd { .. } => 1 << 18,
    }
}

/// Copies one factor of every matrix, which is at `range` of each row, into a tensor.
fn collect<T: Field>(
    cx: Cx<'_>,
    results: &[T],
    range: std::ops::Range<usize>,
    total: usize,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let numbers = results.chunks_exact(total).flat_map(|row| &row[range.clone()]);
    let gathered = if ty.dtype.is_complex() || !T::DTYPE.is_complex() {
        context::build(T::DTYPE, &ty.shape, |out: &mut [T]| {
            out.iter_mut().zip(numbers).for_each(|(out, &x)| *out = x);
        })?
    } else {
        context::build(DType::F64, &ty.shape, |out: &mut [f64]| {
            out.iter_mut().zip(numbers).for_each(|(out, &x)| *out = x.real());
        })?
    };
    convert(cx, &gathered, ty.dtype)
}

//! Factorisations of matrices, done by a [kernel](crate::kernels) one matrix at a time.
//!
//! All parts of one matrix lie side by side in a row of numbers while the batch is worked on, by
//! several threads where that pays; then each part is collected into a tensor of its own. A matrix
//! with NaN or infinities gives NaN, as does one for which an iteration does not converge.

use nxla_expr::{Factorization, TensorType};
use nxla_tensor::{DType, HostTensor};

use super::field::{Field, computed, match_field};
use super::systems::{MOST_ROWS, eliminate};
use crate::elementwise::convert;
use crate::error::Fault;
use crate::threads::{Brake, left_behind};
use crate::{memory, parallel, value};

/// The parts of a factorisation of `a`, which has one more than the axes of a batch of matrices;
/// `types` are those that the op has.
pub(super) fn factorize(
    factorization: Factorization,
    a: &HostTensor,
    types: &[TensorType],
) -> Result<Vec<HostTensor>, Fault> {
    let dtype = a.dtype().to_floating();
    let a = convert(&convert(a, dtype)?, computed(dtype))?;
    match_field!(a.dtype(), T => parts::<T>(factorization, &a, types))
}

fn parts<T: Field + 'static>(
    factorization: Factorization,
    a: &HostTensor,
    types: &[TensorType],
) -> Result<Vec<HostTensor>, Fault> {
    let Some(one) = T::FACTORIZE else { unreachable!("the plan has a program in its place") };
    let batch = a.rank() - 2;
    let (rows, columns) = (a.shape()[batch], a.shape()[batch + 1]);
    let count: usize = a.shape()[..batch].iter().product();
    let sizes: Vec<usize> = types.iter().map(|ty| ty.shape[batch..].iter().product()).collect();
    let total: usize = sizes.iter().sum();
    let elements = value::slice::<T>(a);
    let mut results = memory::filled(T::NAN, count * total);
    let cost = rows * columns * rows.min(columns) * 8;
    let brake = Brake::current();
    parallel::rows(&mut results, total, cost, |first, results| {
        let matrices = elements[first * rows * columns..].chunks_exact(rows * columns);
        for (out, a) in results.chunks_exact_mut(total).zip(matrices) {
            if brake.is_pulled() || !a.iter().all(|x| x.is_finite()) {
                continue;
            }
            // What it needs meanwhile are some copies of the matrix and of the parts.
            memory::expect::<T>(3 * (a.len() + total));
            if factorization == Factorization::Lu && rows == columns && rows <= MOST_ROWS {
                let (factors, order) = out.split_at_mut(a.len());
                factors.copy_from_slice(a);
                order.iter_mut().enumerate().for_each(|(at, row)| *row = T::from_real(at as f64));
                eliminate(factors, order, rows);
                continue;
            }
            if a.len() < many(factorization) {
                one(factorization, a, rows, columns, out);
                continue;
            }
            let (a, mut parts) =
                (memory::collected(a.iter().copied()), memory::collected(out.iter().copied()));
            let parts = left_behind(move || {
                one(factorization, &a, rows, columns, &mut parts);
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
        collected.push(collect(&results, start..start + size, total, ty)?);
        start += size;
    }
    Ok(collected)
}

/// Elements of a matrix from which on its factorisation, which cannot be told to stop, is left behind
/// by who does not want it any more. It takes a tenth of a second or longer.
fn many(factorization: Factorization) -> usize {
    match factorization {
        Factorization::Lu => 1 << 21,
        Factorization::Qr { .. } => 1 << 20,
        Factorization::Eigh | Factorization::Svd { .. } => 1 << 18,
    }
}

/// One part of every matrix, which lies at `range` of each row of numbers.
fn collect<T: Field>(
    results: &[T],
    range: std::ops::Range<usize>,
    total: usize,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let numbers = results.chunks_exact(total).flat_map(|row| &row[range.clone()]);
    let gathered = if ty.dtype.is_complex() || !T::DTYPE.is_complex() {
        value::build(T::DTYPE, &ty.shape, |out: &mut [T]| {
            out.iter_mut().zip(numbers).for_each(|(out, &x)| *out = x);
        })?
    } else {
        value::build(DType::F64, &ty.shape, |out: &mut [f64]| {
            out.iter_mut().zip(numbers).for_each(|(out, &x)| *out = x.real());
        })?
    };
    convert(&gathered, ty.dtype)
}

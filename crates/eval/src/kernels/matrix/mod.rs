//! Matrix kernels of [`nxla_factor`], with the feature `linalg`.
//!
//! Without a kernel, products and triangular systems are computed row by row, and factorizations are programs of
//! simpler ops.

#[cfg(feature = "linalg")]
mod faer;
#[cfg(not(feature = "linalg"))]
mod none;

use nxla_expr::Factorization;

use crate::kernels::contract::Factors;
use crate::kernels::linalg::Triangle;

/// Writes one product, split into about this many parts for threads.
pub(crate) type Product<T> = fn(Factors<'_, T>, usize, &mut [T]);

/// Writes the lower-triangular factor of a matrix of this side; returns whether the matrix is
/// positive definite.
pub(crate) type Cholesky<T> = fn(&[T], usize, &mut [T]) -> bool;

/// Solves the systems of a matrix in place. The last arguments are whether the unknowns of each
/// system are contiguous, and the number of parts for threads.
pub(crate) type Substitute<T> = fn(&[T], Triangle, &mut [T], bool, usize);

/// Writes the factors of a matrix of these rows and columns. If the second argument is true, writes only the
/// eigenvalues or singular values.
pub(crate) type Factorize<T> = fn(Factorization, bool, &[T], usize, usize, &mut [T]);

/// The kernels for matrices of a type of numbers.
pub(crate) trait Kernels: Sized {
    const PRODUCT: Option<Product<Self>> = None;
    const CHOLESKY: Option<Cholesky<Self>> = None;
    const SUBSTITUTE: Option<Substitute<Self>> = None;
    const FACTORIZE: Option<Factorize<Self>> = None;
}

// Integers have no fast kernels.
impl Kernels for u32 {}
impl Kernels for u64 {}

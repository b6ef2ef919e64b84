//! Kernels for matrices: those of [`nxla_factor`] with the feature `linalg`, and none without it.
//!
//! Where there is no kernel, products and triangular systems are computed row by row, and
//! factorisations by programs of simpler ops.

#[cfg(feature = "linalg")]
mod faer;
#[cfg(not(feature = "linalg"))]
mod none;

use std::sync::Arc;

use nxla_expr::{Factorization, Program, decompose, direct_products};

use crate::contract::{Factor, Sizes};
use crate::linalg::System;

/// Writes one product, in about so many parts for threads.
pub(crate) type Product<T> = fn(Sizes, Factor<'_, T>, Factor<'_, T>, usize, &mut [T]);

/// Writes the lower-triangular factor of a matrix of this side; whether the matrix is positive
/// definite.
pub(crate) type Cholesky<T> = fn(&[T], usize, &mut [T]) -> bool;

/// Solves the systems of a matrix in place; whether the unknowns of each are neighbours, and in how
/// many parts for threads.
pub(crate) type Substitute<T> = fn(&[T], System, &mut [T], bool, usize);

/// Writes the parts of a factorisation of a matrix of these rows and columns.
pub(crate) type Factorize<T> = fn(Factorization, &[T], usize, usize, &mut [T]);

/// The kernels for matrices of a type of numbers.
pub(crate) trait Kernels: Sized {
    const PRODUCT: Option<Product<Self>> = None;
    const CHOLESKY: Option<Cholesky<Self>> = None;
    const SUBSTITUTE: Option<Substitute<Self>> = None;
    const FACTORIZE: Option<Factorize<Self>> = None;
}

/// A program in ops that can be evaluated, and fast: factorisations are composed of others where there
/// is no kernel for them, and products read their operands as they lie.
pub(crate) fn composed(program: Arc<Program>) -> Arc<Program> {
    let built = "what was built can be built in other words";
    let mut program = program;
    if f64::FACTORIZE.is_none()
        && let Some(composed) = decompose(&program).expect(built)
    {
        program = Arc::new(composed);
    }
    direct_products(&program).expect(built).map_or(program, Arc::new)
}

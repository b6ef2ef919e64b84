//! The kernels of [`nxla_factor`].

use nxla_expr::Factorization;
use nxla_factor::{FactorElement, Matrix, Multiply};
use nxla_tensor::Complex;

use super::{Cholesky, Factorize, Kernels, Product, Substitute};
use crate::kernels::contract::{Factors, Sizes};
use crate::kernels::linalg::Triangle;

macro_rules! kernels {
    ($($number:ty)*) => {
        $(impl Kernels for $number {
            const PRODUCT: Option<Product<Self>> = Some(multiply);
            const CHOLESKY: Option<Cholesky<Self>> = Some(<$number as FactorElement>::cholesky);
            const SUBSTITUTE: Option<Substitute<Self>> = Some(substitute);
            const FACTORIZE: Option<Factorize<Self>> = Some(factorize);
        })*
    };
}
kernels!(f32 f64 Complex<f64>);

impl Kernels for Complex<f32> {
    const PRODUCT: Option<Product<Self>> = Some(multiply);
}

fn multiply<T: Multiply>(factors: Factors<'_, T>, tiles: usize, out: &mut [T]) {
    let Factors { sizes: Sizes { rows, inner, columns, .. }, left, right } = factors;
    let (elements, transposed) = (left.elements, left.inner_first);
    let left = Matrix { elements, rows, columns: inner, transposed };
    let (elements, transposed) = (right.elements, !right.inner_first);
    let right = Matrix { elements, rows: inner, columns, transposed };
    T::multiply(left, right, tiles, out);
}

fn substitute<T: nxla_factor::Substitute>(
    a: &[T],
    system: Triangle,
    x: &mut [T],
    transposed: bool,
    parts: usize,
) {
    let Triangle { side, from_first, swapped, conjugated } = system;
    let how = nxla_factor::Triangle { side, lower: from_first, transposed: swapped, conjugated };
    T::substitute(a, how, x, transposed, parts);
}

fn factorize<T: FactorElement>(
    factorization: Factorization,
    values_only: bool,
    a: &[T],
    rows: usize,
    columns: usize,
    out: &mut [T],
) {
    match factorization {
        Factorization::Lu => T::lu(a, rows, out),
        Factorization::Qr { complete } => T::qr(a, rows, columns, complete, out),
        Factorization::Eigh if values_only => T::eigenvalues(a, rows, out),
        Factorization::Eigh => T::eigh(a, rows, out),
        Factorization::Svd { .. } if values_only => T::singular_values(a, rows, columns, out),
        Factorization::Svd { full } => T::svd(a, rows, columns, full, out),
    }
}

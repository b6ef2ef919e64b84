//! Types of Fourier transforms and matrix factorizations, batched over leading axes.

use nxla_tensor::{DType, Shape, promote};

use super::check;
use super::check::{Inferred, operands, tensor};
use crate::graph::{
    ErrorKind, Factorization, Fft, Op, TensorType, TriangularSolve, Type, shape_text,
};

pub(crate) fn infer(op: &Op, types: &[&TensorType]) -> Inferred {
    match op {
        Op::Fft(attributes) => fft(attributes, types),
        Op::TriangularSolve(attributes) => triangular_solve(attributes, types),
        Op::Cholesky => {
            let [a] = operands(types)?;
            square("operand", a)?;
            tensor(TensorType::new(a.dtype.to_floating(), a.shape.clone()))
        }
        Op::Factorize(factorization) => {
            let [a] = operands(types)?;
            Ok(Type::Tuple(factorization.parts(a)?.into()))
        }
        op @ crate::outside!(linalg) => unreachable!("{} is of another family", op.name()),
    }
}

fn fft(attributes: &Fft, types: &[&TensorType]) -> Inferred {
    let [x] = operands(types)?;
    check::axis_in_range(attributes.axis, x)?;
    if attributes.length == 0 {
        return Err(ErrorKind::invalid("length", "must be at least 1; got 0"));
    }
    let mut result = x.with_dtype(x.dtype.to_complex());
    result.shape.as_mut_slice()[attributes.axis] = attributes.length;
    tensor(result)
}

/// Checks that the last two axes form square matrices.
fn square(argument: &'static str, ty: &TensorType) -> Result<(), ErrorKind> {
    match ty.shape.as_slice() {
        [.., rows, columns] if rows == columns => Ok(()),
        _ => Err(ErrorKind::Shape {
            argument,
            found: ty.to_string(),
            expected: "square matrices in the last two axes".into(),
        }),
    }
}

/// Checks that `b` has a matrix or a vector for each matrix of `a`.
fn triangular_solve(attributes: &TriangularSolve, types: &[&TensorType]) -> Inferred {
    let [a, b] = operands(types)?;
    square("a", a)?;
    let batch = a.rank() - 2;
    let side = a.shape[batch];
    let fits = match (b.rank().checked_sub(batch), attributes.left_side) {
        (Some(1), _) | (Some(2), true) => b.shape[batch] == side,
        (Some(2), false) => b.shape[batch + 1] == side,
        _ => false,
    };
    if !fits || b.shape[..batch] != a.shape[..batch] {
        let equation = if attributes.left_side { "a x = b" } else { "x a = b" };
        return Err(ErrorKind::Shape {
            argument: "b",
            found: shape_text(&b.shape),
            expected: format!("vectors or matrices that fit {equation} for {a}"),
        });
    }
    let dtype = promote(a.dtype, b.dtype).to_floating();
    tensor(TensorType::new(dtype, b.shape.clone()))
}

impl Factorization {
    /// Returns the types of the factors of `a`, batched over leading axes and without axis names.
    ///
    /// # Errors
    /// Returns an error if `a` has fewer than two axes or matrices of an unsupported shape.
    pub fn parts(self, a: &TensorType) -> Result<Vec<TensorType>, ErrorKind> {
        let [.., rows, columns] = a.shape.as_slice() else {
            return Err(not_matrices(a, "matrices in the last two axes"));
        };
        if *rows == 0 || *columns == 0 {
            return Err(not_matrices(a, "matrices with at least one row and one column"));
        }
        self.types(a)
    }

    /// Does the same as [`Factorization::parts`], also for matrices without rows or columns.
    pub(crate) fn types(self, a: &TensorType) -> Result<Vec<TensorType>, ErrorKind> {
        let [batch @ .., rows, columns] = a.shape.as_slice() else {
            return Err(not_matrices(a, "matrices in the last two axes"));
        };
        let (rows, columns) = (*rows, *columns);
        let dtype = a.dtype.to_floating();
        let part = |dtype: DType, sides: &[usize]| {
            TensorType::new(dtype, batch.iter().chain(sides).copied().collect::<Shape>())
        };
        let smaller = rows.min(columns);
        Ok(match self {
            Factorization::Lu => {
                square("operand", a)?;
                vec![part(dtype, &[rows, rows]), part(DType::S32, &[rows])]
            }
            Factorization::Qr { complete } => {
                let inner = if complete { rows } else { smaller };
                vec![part(dtype, &[rows, inner]), part(dtype, &[inner, columns])]
            }
            Factorization::Eigh => {
                square("operand", a)?;
                vec![part(dtype.to_real(), &[rows]), part(dtype, &[rows, rows])]
            }
            Factorization::Svd { full } => {
                let (left, right) = if full { (rows, columns) } else { (smaller, smaller) };
                let values = part(dtype.to_real(), &[smaller]);
                vec![part(dtype, &[rows, left]), values, part(dtype, &[right, columns])]
            }
        })
    }
}

fn not_matrices(found: &TensorType, expected: &str) -> ErrorKind {
    let (found, expected) = (found.to_string(), expected.to_owned());
    ErrorKind::Shape { argument: "operand", found, expected }
}

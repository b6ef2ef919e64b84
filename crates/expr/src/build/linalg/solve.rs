//! Systems of linear equations and inverses.
//!
//! A result has a custom derivative if the derivative of the composition would be slow or wrong:
//! for example, a pseudo-inverse is a smooth function of a matrix whose singular vectors are not.

use nxla_tensor::{DType, Number, Scalar, promote};

use super::super::formula::Formula;
use crate::graph::{
    Axes, BlockKind, ErrorKind, ExprId, Graph, Op, Result, TensorType, Transform, TriangularSolve,
};

/// The threshold for singular values, relative to the largest one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Tolerance {
    /// One value for all matrices.
    Number(f64),
    /// A node with a value for each matrix: its shape broadcasts to the batch.
    Each(ExprId),
}

impl From<f64> for Tolerance {
    fn from(number: f64) -> Self {
        Tolerance::Number(number)
    }
}

/// Returns the attributes for solving with the lower and with the upper triangle.
pub(super) fn triangles(transform: Transform) -> (TriangularSolve, TriangularSolve) {
    let lower = TriangularSolve { lower: true, left_side: true, transform };
    (lower, TriangularSolve { lower: false, ..lower })
}

impl Graph {
    /// Solves `a x = b`, or `x a = b` without `left_side`, for triangular matrices `a`. The other
    /// triangle is not read. `b` holds a matrix or a vector for each matrix of `a`. The dtypes are
    /// promoted to a float; names are dropped.
    ///
    /// # Errors
    /// Returns an error for matrices that are not square or a `b` that does not fit.
    pub fn triangular_solve(
        &mut self,
        a: ExprId,
        b: ExprId,
        options: TriangularSolve,
    ) -> Result<ExprId> {
        self.make(Op::TriangularSolve(options), &[a, b])
    }

    /// Solves `a x = b` for square matrices `a`. `b` holds a matrix or a vector for each matrix of
    /// `a`. The solution for a singular matrix is NaN. The dtypes are promoted to a float; names
    /// are dropped.
    ///
    /// # Errors
    /// Returns an error for matrices that are not square or a `b` that does not fit.
    ///
    /// ```
    /// use nxla_expr::{Graph, TensorType};
    /// use nxla_tensor::DType;
    ///
    /// let mut graph = Graph::new();
    /// let a = graph.parameter(0, TensorType::new(DType::F32, [5, 3, 3]));
    /// let b = graph.parameter(1, TensorType::new(DType::F32, [5, 3, 2]));
    /// let x = graph.solve(a, b)?;
    /// assert_eq!(graph.tensor_type(x).to_string(), "f32[5][3][2]");
    /// # Ok::<(), nxla_expr::Error>(())
    /// ```
    pub fn solve(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        let (a_ty, b_ty) = (self.tensor_type(a).clone(), self.tensor_type(b).clone());
        let side = self.square_side(&a_ty)?;
        let batch = a_ty.rank() - 2;
        let is_vector = b_ty.rank() == batch + 1;
        let fits = (is_vector || b_ty.rank() == batch + 2)
            && b_ty.shape[..batch] == a_ty.shape[..batch]
            && b_ty.shape[batch] == side;
        if !fits {
            let expected = format!("vectors or matrices that fit a x = b for {a_ty}");
            let found = b_ty.to_string();
            return Err(self.error("solve", ErrorKind::Shape { argument: "b", found, expected }));
        }
        let dtype = promote(a_ty.dtype, b_ty.dtype).to_floating();
        if b_ty.shape.size() == 0 {
            return self.constant(Scalar::zero(dtype), TensorType::new(dtype, b_ty.shape));
        }
        let (a, b) = (self.plain_as(a, dtype)?, self.plain_as(b, dtype)?);
        if is_vector {
            let b = self.new_axis(b, -1, None)?;
            let x = self.solve_matrices(a, b)?;
            return self.squeeze(x, Some(&[-1]));
        }
        self.solve_matrices(a, b)
    }

    /// Returns the size of the square matrices in the last two axes.
    pub(super) fn square_side(&self, ty: &TensorType) -> Result<usize> {
        match ty.shape.as_slice() {
            [.., rows, columns] if rows == columns => Ok(*rows),
            _ => {
                let expected = "square matrices in the last two axes".into();
                let found = ty.to_string();
                Err(self.error("solve", ErrorKind::Shape { argument: "operand", found, expected }))
            }
        }
    }

    /// Casts `x` to a dtype and removes its names.
    pub(super) fn plain_as(&mut self, x: ExprId, dtype: DType) -> Result<ExprId> {
        let x = self.rename(x, None)?;
        self.as_type(x, dtype)
    }

    /// Solves `a x = b`. For a cotangent `c` of `x`, the cotangent of `b` is `a^-T c`, and the
    /// cotangent of `a` is `-a^-T c x^T`.
    fn solve_matrices(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        let (factors, order) = self.packed_lu(a)?;
        let x = self.solve_factored(factors, order, b, false)?;
        let outputs = self.custom_grad(&[x], &[a, b], |graph, cotangents| {
            let db = graph.solve_factored(factors, order, cotangents[0], true)?;
            let x = graph.matrix_transpose(x)?;
            let da = graph.matrix_product(db, x)?;
            Ok::<_, crate::Error>(vec![graph.negate(da)?, db])
        })?;
        Ok(outputs[0])
    }

    /// Solves `a x = b`, or `a^T x = b` with `transposed`, from the factors of `a` in one matrix.
    /// Row `i` of their product is row `order[i]` of `a`.
    fn solve_factored(
        &mut self,
        factors: ExprId,
        order: ExprId,
        b: ExprId,
        transposed: bool,
    ) -> Result<ExprId> {
        let kind = BlockKind::Solve { transposed };
        self.single_block(kind, [factors, order, b], |graph, [factors, order, b]| {
            if transposed {
                return graph.solve_transposed(factors, order, b);
            }
            let x = graph.solve_in_order(factors, order, b)?;
            graph.or_nan(x, factors)
        })
    }

    fn solve_in_order(&mut self, factors: ExprId, order: ExprId, b: ExprId) -> Result<ExprId> {
        let (lower, upper) = triangles(Transform::None);
        let b = self.rows_in_order(b, order)?;
        let ones = self.with_ones(factors)?;
        let x = self.triangular_solve(ones, b, lower)?;
        self.triangular_solve(factors, x, upper)
    }

    fn solve_transposed(&mut self, factors: ExprId, order: ExprId, b: ExprId) -> Result<ExprId> {
        let (lower, upper) = triangles(Transform::Transpose);
        let x = self.triangular_solve(factors, b, upper)?;
        let ones = self.with_ones(factors)?;
        let x = self.triangular_solve(ones, x, lower)?;
        let places = self.argsort(order, -1, false, true, DType::S32)?;
        self.rows_in_order(x, places)
    }

    /// Sets the diagonal of the lower triangle of factors to one, for solves that read only this
    /// triangle.
    pub(super) fn with_ones(&mut self, factors: ExprId) -> Result<ExprId> {
        let side = self.shape(factors)[self.shape(factors).rank() - 1];
        let diagonal = self.eye([side, side], DType::Pred)?;
        let one = self.one_like(factors)?;
        self.select(diagonal, one, factors)
    }

    /// Returns `x`, or NaN where a pivot of the factors is zero.
    fn or_nan(&mut self, x: ExprId, factors: ExprId) -> Result<ExprId> {
        let diagonal = self.take_diagonal(factors, 0)?;
        let zero = self.zero_like(diagonal)?;
        let is_zero = self.equal(diagonal, zero)?;
        let is_singular = self.any(is_zero, Some(&[-1]), true)?;
        let is_singular = self.new_axis(is_singular, -1, None)?;
        let nan = self.scalar_constant(Scalar::Float(f64::NAN), self.dtype(x))?;
        self.select(is_singular, nan, x)
    }

    /// Reorders rows: row `i` of the result is row `order[i]` of each matrix.
    pub(super) fn rows_in_order(&mut self, x: ExprId, order: ExprId) -> Result<ExprId> {
        if self.shape(order).rank() == 1 {
            return self.take(x, order, 0);
        }
        let order = self.new_axis(order, -1, None)?;
        let shape = self.shape(x).clone();
        let order = self.broadcast(order, shape, None)?;
        self.take_along_axis(x, order, -2)
    }

    /// Transposes the matrices in the last two axes without conjugation.
    pub(super) fn matrix_transpose(&mut self, x: ExprId) -> Result<ExprId> {
        let rank = self.shape(x).rank();
        let order: Axes = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
        self.make(Op::Transpose(order), &[x])
    }

    /// Returns the inverse of square matrices as a float; NaN for a singular matrix. Names are
    /// dropped.
    ///
    /// # Errors
    /// Returns an error for matrices that are not square.
    pub fn invert(&mut self, a: ExprId) -> Result<ExprId> {
        let ty = self.tensor_type(a).clone();
        let side = self.square_side(&ty)?;
        let eye = self.eye([side, side], ty.dtype.to_floating())?;
        let eye = self.broadcast(eye, ty.shape, None)?;
        self.solve(a, eye)
    }

    /// Returns the number of singular values of each matrix above `relative` times the largest one,
    /// as `s32`; 0 for matrices with NaN. `None` is the larger side times the precision of the
    /// dtype.
    ///
    /// # Errors
    /// Returns an error for an operand without matrices.
    pub fn matrix_rank(&mut self, a: ExprId, relative: Option<Tolerance>) -> Result<ExprId> {
        let s = self.singular_values(a)?;
        let is_large = self.is_large(a, s, relative)?;
        let count = self.as_type(is_large, DType::S32)?;
        self.sum(count, Some(&[-1]), false)
    }

    /// Returns the singular values of each matrix in decreasing order.
    ///
    /// # Errors
    /// Returns an error for an operand without matrices.
    pub fn singular_values(&mut self, a: ExprId) -> Result<ExprId> {
        Ok(self.svd(a, false)?.1)
    }

    /// Returns which singular values exceed a multiple of the largest one.
    fn is_large(&mut self, a: ExprId, s: ExprId, relative: Option<Tolerance>) -> Result<ExprId> {
        let [.., rows, columns] = self.shape(a)[..] else { unreachable!("it has been factorized") };
        let usual = precision(self.dtype(s)) * rows.max(columns) as f64;
        let largest = self.reduce_max(s, Some(&[-1]), true)?;
        let relative = match relative.unwrap_or(Tolerance::Number(usual)) {
            Tolerance::Number(number) => self.weak_number(Number::Float(number), s)?,
            Tolerance::Each(each) => {
                let each = self.as_type(each, self.dtype(s))?;
                self.new_axis(each, -1, None)?
            }
        };
        let limit = self.multiply(largest, relative)?;
        self.greater(s, limit)
    }

    /// Returns the Moore–Penrose pseudo-inverse of each matrix as a float. Singular values up to
    /// `relative` times the largest one are treated as 0; `None` is the larger side times the
    /// precision of the dtype. Names are dropped.
    ///
    /// # Errors
    /// Returns an error for an operand without matrices.
    pub fn pinv(&mut self, a: ExprId, relative: Option<Tolerance>) -> Result<ExprId> {
        let a = self.plain_as(a, self.dtype(a).to_floating())?;
        let (u, s, vh) = self.svd(a, false)?;
        let is_large = self.is_large(a, s, relative)?;
        let formula = Formula::new(self);
        let [s, is_large] = formula.terms([s, is_large]);
        let inverse = is_large.select(1.0 / is_large.select(s, 1.0), 0.0).id()?;
        let columns = self.new_axis(inverse, -2, None)?;
        let v = self.adjoint(vh)?;
        let scaled = self.multiply(v, columns)?;
        let uh = self.adjoint(u)?;
        let p = self.matrix_product(scaled, uh)?;
        let outputs = self.custom_grad(&[p], &[a], |graph, cotangents| {
            graph.pinv_cotangent(a, p, cotangents[0]).map(|da| vec![da])
        })?;
        Ok(outputs[0])
    }

    /// Computes the cotangent of a pseudo-inverse. For `p` of constant rank, `dp = -p da p + p p^H
    /// da^H (1 - a p) + (1 - p a) da^H p^H p` (G. Golub and V. Pereyra, 1973). With `g` the
    /// conjugate of the cotangent, its adjoint is `-p^H g p^H + (1 - a p) g^H p p^H + p^H p g^H (1
    /// - p a)`.
    ///
    /// The products have three factors `p`, which could overflow or underflow. Therefore `a` is first
    /// divided by a power of two, by which `p` is multiplied. Both cotangents are divided by it.
    fn pinv_cotangent(&mut self, a: ExprId, p: ExprId, cotangent: ExprId) -> Result<ExprId> {
        let size = self.abs(a)?;
        let largest = self.reduce_max(size, Some(&[-2, -1]), true)?;
        let (zero, one) = (self.zero_like(largest)?, self.one_like(largest)?);
        let is_zero = self.equal(largest, zero)?;
        let largest = self.select(is_zero, one, largest)?;
        let scale = self.power_of_two(largest)?;
        let [a, p, cotangent] =
            [self.divide(a, scale)?, self.multiply(p, scale)?, self.divide(cotangent, scale)?];
        // The adjoint of the conjugate is the transpose.
        let gh = self.matrix_transpose(cotangent)?;
        let g = self.adjoint(gh)?;
        let ph = self.adjoint(p)?;
        let inner = self.matrix_product(ph, g)?;
        let first = self.matrix_product(inner, ph)?;

        let right = self.matrix_product(gh, p)?;
        let right = self.matrix_product(right, ph)?;
        let inside = self.matrix_product(p, right)?;
        let inside = self.matrix_product(a, inside)?;
        let second = self.subtract(right, inside)?;

        let left = self.matrix_product(ph, p)?;
        let left = self.matrix_product(left, gh)?;
        let inside = self.matrix_product(left, p)?;
        let inside = self.matrix_product(inside, a)?;
        let third = self.subtract(left, inside)?;

        let sum = self.add(second, third)?;
        let bar = self.subtract(sum, first)?;
        let bar = self.divide(bar, scale)?;
        self.conjugate_complex(bar)
    }

    /// Returns the `x` of smallest norm that minimizes the norm of `a x - b`. `b` holds a matrix or
    /// a vector for each matrix of `a`; see [`Graph::pinv`] for `relative`. The dtypes are promoted
    /// to a float; names are dropped.
    ///
    /// # Errors
    /// Returns an error for an `a` without matrices or a `b` that does not fit.
    pub fn least_squares(
        &mut self,
        a: ExprId,
        b: ExprId,
        relative: Option<Tolerance>,
    ) -> Result<ExprId> {
        let op = "least_squares";
        let (a_ty, b_ty) = (self.tensor_type(a).clone(), self.tensor_type(b).clone());
        let batch = a_ty.rank().checked_sub(2);
        let fits = batch.is_some_and(|batch| {
            (b_ty.rank() == batch + 1 || b_ty.rank() == batch + 2)
                && b_ty.shape[..=batch] == a_ty.shape[..=batch]
        });
        if !fits {
            let expected = format!("vectors or matrices with as many rows as {a_ty}");
            let found = b_ty.to_string();
            return Err(self.error(op, ErrorKind::Shape { argument: "b", found, expected }));
        }
        let dtype = promote(a_ty.dtype, b_ty.dtype).to_floating();
        let (a, b) = (self.plain_as(a, dtype)?, self.plain_as(b, dtype)?);
        let inverse = self.pinv(a, relative)?;
        if b_ty.rank() + 1 == a_ty.rank() {
            let b = self.new_axis(b, -1, None)?;
            let x = self.matrix_product(inverse, b)?;
            return self.squeeze(x, Some(&[-1]));
        }
        self.matrix_product(inverse, b)
    }
}

/// Returns the distance from 1 to the next value.
pub(super) fn precision(dtype: DType) -> f64 {
    dtype.float_limits().expect("singular values and pivots are floats").epsilon
}

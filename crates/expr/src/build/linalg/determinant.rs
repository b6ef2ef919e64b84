//! Determinants and their derivatives.
//!
//! The derivative of a determinant is the matrix of its cofactors (Jacobi's formula), which exists
//! for every matrix. An LU factorization has no derivative at a singular matrix, so the cofactors
//! of such a matrix come from its singular value decomposition instead.

use nxla_tensor::{DType, Number, Scalar, Shape};

use super::super::SliceStart;
use super::solve::{precision, triangles};
use crate::graph::{Cumulative, ExprId, Graph, Padding, Result, TensorType, Transform};

impl Graph {
    /// The determinant of square matrices. A float; names are dropped.
    ///
    /// Up to three rows it is a polynomial of the elements; beyond, the product of the diagonal of
    /// an LU factorization. Derivatives are exact at singular matrices too. The exception is a
    /// matrix whose rank is four or more below its size: its derivatives from the fourth order on
    /// count as zero.
    ///
    /// # Errors
    /// Matrices that are not square.
    pub fn determinant(&mut self, a: ExprId) -> Result<ExprId> {
        let ty = self.tensor_type(a).clone();
        let side = self.square_side("determinant", &ty)?;
        let dtype = ty.dtype.to_floating();
        if side == 0 {
            return self.of_no_rows(Scalar::one(dtype), dtype, &ty);
        }
        let a = self.plain_as(a, dtype)?;
        if side <= 3 {
            return self.small_determinant(a, side);
        }
        let (packed, order) = self.packed_lu(a)?;
        let value = self.determinant_of_lu(packed, order)?;
        let is_singular = self.is_singular(packed)?;
        let open = self.open_custom_jvp(&[a]);
        // The block depends on the tangent, so cofactors are only computed for a derivative.
        let operands = [a, is_singular, open.changes()[0]];
        let tangent = self.composite("determinant_tangent", &[], operands, |graph, operands| {
            let [a, is_singular, tangent] = operands;
            let cofactors = graph.cofactors(a, is_singular)?;
            let changes = graph.multiply(cofactors, tangent)?;
            graph.sum(changes, Some(&[-2, -1]), false)
        })?;
        Ok(self.close_custom_jvp(open, &[value], &[a], vec![tangent])?[0])
    }

    /// The determinant from the packed factors and the order of rows.
    fn determinant_of_lu(&mut self, packed: ExprId, order: ExprId) -> Result<ExprId> {
        let diagonal = self.take_diagonal(packed, 0)?;
        let product = self.product(diagonal, Some(&[-1]), false)?;
        let sign = self.sign_of_order(order, self.dtype(packed))?;
        self.multiply(sign, product)
    }

    /// Whether the smallest pivot is zero up to rounding. Second derivatives by way of such a pivot
    /// would lose all digits.
    fn is_singular(&mut self, packed: ExprId) -> Result<ExprId> {
        let diagonal = self.take_diagonal(packed, 0)?;
        let size = self.abs(diagonal)?;
        let smallest = self.reduce_min(size, Some(&[-1]), false)?;
        let largest = self.reduce_max(size, Some(&[-1]), false)?;
        let limit = self.rounding(packed, largest)?;
        let is_small = self.less_equal(smallest, limit)?;
        let is_finite = self.is_finite(largest)?;
        self.logical_and(is_small, is_finite)
    }

    /// The rounding error of a factorization of matrices whose largest value is `largest`.
    fn rounding(&mut self, matrix: ExprId, largest: ExprId) -> Result<ExprId> {
        let side = self.shape(matrix)[self.shape(matrix).rank() - 1];
        let relative = precision(self.dtype(largest)) * side as f64;
        let relative = self.weak_number(Number::Float(relative), largest)?;
        self.multiply(largest, relative)
    }

    /// The cofactors of each matrix: the transpose of its adjugate.
    fn cofactors(&mut self, a: ExprId, is_singular: ExprId) -> Result<ExprId> {
        let side = self.shape(a)[self.shape(a).rank() - 1];
        let eye = self.eye([side, side], self.dtype(a))?;
        let mask = self.for_matrices(is_singular)?;
        // Each of the two formulas sees the identity in place of matrices that it is not for.
        let regular = self.select(mask, eye, a)?;
        let usual = self.regular_cofactors(regular)?;
        let any = self.any(is_singular, None, false)?;
        let mark = self.mark();
        let singular = self.select(mask, a, eye)?;
        let special = self.singular_cofactors(singular)?;
        let special = self.traced(mark, vec![special]);
        let start = self.mark();
        let zeros = self.zeros_of(usual)?;
        let zeros = self.traced(start, vec![zeros]);
        let predicate = self.traced(self.mark(), vec![any]);
        let special = self.cond(mark, vec![(predicate, special)], zeros)?[0];
        self.select(mask, special, usual)
    }

    fn zeros_of(&mut self, x: ExprId) -> Result<ExprId> {
        let ty = self.tensor_type(x).clone();
        self.constant(Scalar::zero(ty.dtype), ty)
    }

    /// One value for each matrix, such that it broadcasts with matrices.
    fn for_matrices(&mut self, x: ExprId) -> Result<ExprId> {
        let x = self.new_axis(x, -1, None)?;
        self.new_axis(x, -1, None)
    }

    /// With `p a = l u`, the adjugate of `a` is `det(p) adj(u) l^-1 p`. The adjugate of `u` is the
    /// inverse of `u` with its rows divided by their pivots, times the product of all other pivots
    /// in each row; this product neither overflows nor underflows unless a cofactor does.
    fn regular_cofactors(&mut self, a: ExprId) -> Result<ExprId> {
        let (packed, order) = self.packed_lu(a)?;
        let (lower, upper) = triangles(Transform::None);
        let diagonal = self.take_diagonal(packed, 0)?;
        let others = self.products_of_others(diagonal)?;
        let rows = self.new_axis(diagonal, -1, None)?;
        let unit = self.divide(packed, rows)?;
        let shape = self.shape(a).clone();
        let eye = self.eye([shape[shape.rank() - 1]; 2], self.dtype(a))?;
        let eye = self.broadcast(eye, shape, None)?;
        let x = self.rows_in_order(eye, order)?;
        let ones = self.with_ones(packed)?;
        let x = self.triangular_solve(ones, x, lower)?;
        let others = self.new_axis(others, -1, None)?;
        let x = self.multiply(others, x)?;
        let x = self.triangular_solve(unit, x, upper)?;
        let sign = self.sign_of_order(order, self.dtype(a))?;
        let sign = self.for_matrices(sign)?;
        let adjugate = self.multiply(sign, x)?;
        self.matrix_transpose(adjugate)
    }

    /// For each element along the last axis, the product of all others.
    fn products_of_others(&mut self, x: ExprId) -> Result<ExprId> {
        let rank = self.shape(x).rank();
        let one = self.scalar_constant(Scalar::one(self.dtype(x)), self.dtype(x))?;
        let shifted = |graph: &mut Graph, reverse: bool| {
            let products = graph.cumulative(Cumulative::Product, x, -1, reverse)?;
            let mut padding = vec![Padding { low: 0, high: 0, interior: 0 }; rank];
            let (low, high) = if reverse { (-1, 1) } else { (1, -1) };
            padding[rank - 1] = Padding { low, high, interior: 0 };
            graph.pad(products, one, &padding)
        };
        let (before, after) = (shifted(self, false)?, shifted(self, true)?);
        self.multiply(before, after)
    }

    /// The cofactors of a singular matrix, with derivatives of their own.
    ///
    /// With the singular vectors of `a` as constants, `b = u^H a v` is linear in `a` and close to
    /// diagonal, with decreasing elements. Its block of all but the last three rows and columns is
    /// regular unless the rank is lower still; with `s` the Schur complement of that block,
    /// `det b = det(b11) det(s)`, and the determinant of three rows is a polynomial.
    fn singular_cofactors(&mut self, a: ExprId) -> Result<ExprId> {
        let constant = self.stop_grad(a)?;
        let (u, s, vh) = self.svd(constant, false)?;
        let (uh, v) = (self.adjoint(u)?, self.adjoint(vh)?);
        let b = self.matrix_product(uh, a)?;
        let b = self.matrix_product(b, v)?;

        let head = self.shape(a)[self.shape(a).rank() - 1] - 3;
        let least = self.slice_along_axis(s, SliceStart::at(head - 1), 1, -1, 1)?;
        let largest = self.slice_along_axis(s, 0, 1, -1, 1)?;
        let limit = self.rounding(a, largest)?;
        let has_rank = self.greater(least, limit)?;
        let has_rank = self.new_axis(has_rank, -1, None)?;

        let adjugate = self.block_adjugate(b, head, has_rank)?;
        let adjugate = self.matrix_product(v, adjugate)?;
        let adjugate = self.matrix_product(adjugate, uh)?;
        let (left, right) = (self.plain_determinant(u)?, self.plain_determinant(vh)?);
        let phase = self.multiply(left, right)?;
        let phase = self.for_matrices(phase)?;
        let adjugate = self.multiply(phase, adjugate)?;
        let zero = self.zero_like(adjugate)?;
        let adjugate = self.select(has_rank, adjugate, zero)?;
        self.matrix_transpose(adjugate)
    }

    /// The determinant whose derivative goes through the LU factorization: of regular matrices.
    fn plain_determinant(&mut self, a: ExprId) -> Result<ExprId> {
        let (packed, order) = self.packed_lu(a)?;
        self.determinant_of_lu(packed, order)
    }

    /// The adjugate of matrices whose first `head` rows and columns are regular where `has_rank`
    /// holds, and which have three more.
    fn block_adjugate(&mut self, b: ExprId, head: usize, has_rank: ExprId) -> Result<ExprId> {
        let block = |graph: &mut Graph, row: usize, column: usize| {
            let part = [(0, head), (head, 3)];
            let (start, size) = part[row];
            let rows = graph.slice_along_axis(b, SliceStart::at(start), size, -2, 1)?;
            let (start, size) = part[column];
            graph.slice_along_axis(rows, SliceStart::at(start), size, -1, 1)
        };
        let eye = self.eye([head, head], self.dtype(b))?;
        let corner = block(self, 0, 0)?;
        let corner = self.select(has_rank, corner, eye)?;
        let inverse = self.invert(corner)?;
        let (above, beside) = (block(self, 0, 1)?, block(self, 1, 0)?);
        let right = self.matrix_product(inverse, above)?;
        let left = self.matrix_product(beside, inverse)?;
        let inner = self.matrix_product(beside, right)?;
        let last = block(self, 1, 1)?;
        let schur = self.subtract(last, inner)?;

        let cofactors = self.cofactors_of_three(schur)?;
        let product = self.multiply(schur, cofactors)?;
        let first = self.slice_along_axis(product, 0, 1, -2, 1)?;
        let small = self.sum(first, Some(&[-1]), true)?;
        let adjugate = self.matrix_transpose(cofactors)?;
        let top_right = self.matrix_product(right, adjugate)?;
        let bottom_left = self.matrix_product(adjugate, left)?;
        let outer = self.matrix_product(top_right, left)?;
        let scaled = self.multiply(small, inverse)?;
        let top_left = self.add(scaled, outer)?;
        let (top_right, bottom_left) = (self.negate(top_right)?, self.negate(bottom_left)?);
        let top = self.concatenate(&[top_left, top_right], -1)?;
        let bottom = self.concatenate(&[bottom_left, adjugate], -1)?;
        let whole = self.concatenate(&[top, bottom], -2)?;
        let scale = self.plain_determinant(corner)?;
        let scale = self.for_matrices(scale)?;
        self.multiply(scale, whole)
    }

    /// The cofactors of matrices of three rows: with indices modulo three,
    /// `a[i+1, j+1] a[i+2, j+2] - a[i+1, j+2] a[i+2, j+1]`.
    fn cofactors_of_three(&mut self, a: ExprId) -> Result<ExprId> {
        let moved = |graph: &mut Graph, rows: i64, columns: i64| {
            let x = graph.roll(a, -rows, -2)?;
            graph.roll(x, -columns, -1)
        };
        let (x, y) = (moved(self, 1, 1)?, moved(self, 2, 2)?);
        let (z, w) = (moved(self, 1, 2)?, moved(self, 2, 1)?);
        let (down, up) = (self.multiply(x, y)?, self.multiply(z, w)?);
        self.subtract(down, up)
    }

    /// One number for each matrix without rows.
    fn of_no_rows(&mut self, number: Scalar, dtype: DType, a: &TensorType) -> Result<ExprId> {
        let batch = Shape::from(a.shape[..a.rank() - 2].to_vec());
        self.constant(number, TensorType::new(dtype, batch))
    }

    /// By the first row (Laplace).
    fn small_determinant(&mut self, a: ExprId, side: usize) -> Result<ExprId> {
        let rank = self.shape(a).rank();
        let at = |graph: &mut Graph, row: usize, column: usize| {
            let lengths: Vec<usize> =
                graph.shape(a)[..rank - 2].iter().copied().chain([1, 1]).collect();
            let mut starts = vec![SliceStart::at(0); rank];
            starts[rank - 2] = SliceStart::at(row);
            starts[rank - 1] = SliceStart::at(column);
            let element = graph.slice(a, &starts, &lengths, None)?;
            graph.squeeze(element, Some(&[-2, -1]))
        };
        let minor = |graph: &mut Graph, top: usize, left: usize, right: usize| {
            let (x, y) = (at(graph, top, left)?, at(graph, top + 1, right)?);
            let (z, w) = (at(graph, top, right)?, at(graph, top + 1, left)?);
            let (down, up) = (graph.multiply(x, y)?, graph.multiply(z, w)?);
            graph.subtract(down, up)
        };
        if side == 2 {
            return minor(self, 0, 0, 1);
        }
        if side == 3 {
            let minors = [minor(self, 1, 1, 2)?, minor(self, 1, 0, 2)?, minor(self, 1, 0, 1)?];
            let first = [at(self, 0, 0)?, at(self, 0, 1)?, at(self, 0, 2)?];
            let x = self.multiply(first[0], minors[0])?;
            let y = self.multiply(first[1], minors[1])?;
            let z = self.multiply(first[2], minors[2])?;
            let rest = self.subtract(x, y)?;
            return self.add(rest, z);
        }
        at(self, 0, 0)
    }

    /// 1 for an order of rows that an even number of exchanges makes, else -1.
    fn sign_of_order(&mut self, order: ExprId, dtype: DType) -> Result<ExprId> {
        let (rows, columns) = (self.new_axis(order, -1, None)?, self.new_axis(order, -2, None)?);
        let exchanged = self.greater(rows, columns)?;
        let inverted = self.triu(exchanged, 1)?;
        let count = self.as_type(inverted, DType::S32)?;
        let count = self.sum(count, Some(&[-2, -1]), false)?;
        let one = self.scalar_constant(Scalar::Int(1), DType::S32)?;
        let odd = self.bitwise_and(count, one)?;
        let twice = self.add(odd, odd)?;
        let sign = self.subtract(one, twice)?;
        self.as_type(sign, dtype)
    }

    /// The sign (for complex numbers the phase) and the logarithm of the magnitude of the
    /// determinant of square matrices, which may be too large or small for a number. A singular
    /// matrix gives 0 and minus infinity. Names are dropped.
    ///
    /// # Errors
    /// Matrices that are not square.
    pub fn slogdet(&mut self, a: ExprId) -> Result<(ExprId, ExprId)> {
        let ty = self.tensor_type(a).clone();
        let dtype = ty.dtype.to_floating();
        if self.square_side("slogdet", &ty)? == 0 {
            let sign = self.of_no_rows(Scalar::one(dtype), dtype, &ty)?;
            let real = dtype.to_real();
            return Ok((sign, self.of_no_rows(Scalar::zero(real), real, &ty)?));
        }
        let a = self.plain_as(a, dtype)?;
        let (packed, order) = self.packed_lu(a)?;
        let diagonal = self.take_diagonal(packed, 0)?;
        let size = self.abs(diagonal)?;
        let logarithms = self.log(size)?;
        let logarithm = self.sum(logarithms, Some(&[-1]), false)?;
        let (zero, one) = (self.zero_like(size)?, self.one_like(size)?);
        let is_zero = self.equal(size, zero)?;
        let safe = self.select(is_zero, one, size)?;
        let phases = self.divide(diagonal, safe)?;
        let phase = self.product(phases, Some(&[-1]), false)?;
        let sign = self.sign_of_order(order, self.dtype(a))?;
        Ok((self.multiply(sign, phase)?, logarithm))
    }
}

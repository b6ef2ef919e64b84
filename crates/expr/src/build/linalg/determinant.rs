//! Determinants and their derivatives.
//!
//! The derivative of a determinant is the cofactor matrix (Jacobi's formula), which exists for
//! every matrix. An LU factorization has no derivative at a singular matrix, so the cofactors of a
//! singular matrix are computed from its singular value decomposition.

use nxla_tensor::{DType, Number, Scalar, Shape};

use super::super::SliceStart;
use super::super::formula::Formula;
use super::solve::{precision, triangles};
use crate::graph::{Cumulative, ExprId, Graph, Padding, Result, RuleFor, TensorType, Transform};

impl Graph {
    /// Returns the determinant of square matrices as a float. Names are dropped.
    ///
    /// For up to three rows it is a polynomial of the elements, otherwise the product of the
    /// diagonal of an LU factorization. Derivatives are exact at singular matrices, with one
    /// exception: if the rank is at least four below the size, derivatives of fourth and higher
    /// order are zero.
    ///
    /// # Errors
    /// Returns an error for matrices that are not square.
    pub fn determinant(&mut self, a: ExprId) -> Result<ExprId> {
        let ty = self.tensor_type(a).clone();
        let side = self.square_side(&ty)?;
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
        let open = self.open_rule(RuleFor::Tangents, &[a]);
        // The block depends on the tangent, so cofactors are computed only for a derivative.
        let operands = [a, is_singular, open.changes()[0]];
        let tangent = self.composite("determinant_tangent", &[], operands, |graph, operands| {
            let [a, is_singular, tangent] = operands;
            let cofactors = graph.cofactors(a, is_singular)?;
            let changes = graph.multiply(cofactors, tangent)?;
            graph.sum(changes, Some(&[-2, -1]), false)
        })?;
        Ok(self.close_rule(open, &[value], &[a], vec![tangent])?[0])
    }

    /// Returns the determinant from the packed factors and the order of rows.
    fn determinant_of_lu(&mut self, packed: ExprId, order: ExprId) -> Result<ExprId> {
        let diagonal = self.take_diagonal(packed, 0)?;
        let product = self.product(diagonal, Some(&[-1]), false)?;
        let sign = self.sign_of_order(order, self.dtype(packed))?;
        self.multiply(sign, product)
    }

    /// Returns whether the smallest pivot is zero up to rounding. Second derivatives through such a
    /// pivot would have no correct digits.
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

    /// Returns the rounding error of factorizing matrices whose largest value is `largest`.
    fn rounding(&mut self, matrix: ExprId, largest: ExprId) -> Result<ExprId> {
        let side = self.shape(matrix)[self.shape(matrix).rank() - 1];
        let relative = precision(self.dtype(largest)) * side as f64;
        let relative = self.weak_number(Number::Float(relative), largest)?;
        self.multiply(largest, relative)
    }

    /// Returns the cofactors of each matrix: the transposed adjugate.
    fn cofactors(&mut self, a: ExprId, is_singular: ExprId) -> Result<ExprId> {
        let side = self.shape(a)[self.shape(a).rank() - 1];
        let eye = self.eye([side, side], self.dtype(a))?;
        let mask = self.for_matrices(is_singular)?;
        // Each of the two formulas uses the identity instead of matrices for which it is invalid.
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

    /// Reshapes one value for each matrix such that it broadcasts with matrices.
    fn for_matrices(&mut self, x: ExprId) -> Result<ExprId> {
        let x = self.new_axis(x, -1, None)?;
        self.new_axis(x, -1, None)
    }

    /// Computes cofactors of regular matrices. With `p a = l u`, the adjugate of `a` is `det(p)
    /// adj(u) l^-1 p`. The adjugate of `u` is the inverse of `u` with its rows divided by their
    /// pivots, times the product of the other pivots in each row. This product overflows or
    /// underflows only if a cofactor does.
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

    /// Returns for each element along the last axis the product of all other elements.
    fn products_of_others(&mut self, x: ExprId) -> Result<ExprId> {
        let rank = self.shape(x).rank();
        let one = self.one_like(x)?;
        let shifted = |graph: &mut Graph, reverse: bool| {
            let products = graph.cumulative(Cumulative::Product, x, -1, reverse)?;
            let mut padding = vec![Padding::NONE; rank];
            let (low, high) = if reverse { (-1, 1) } else { (1, -1) };
            padding[rank - 1] = Padding { low, high, interior: 0 };
            graph.pad(products, one, &padding)
        };
        let (before, after) = (shifted(self, false)?, shifted(self, true)?);
        self.multiply(before, after)
    }

    /// Computes cofactors of singular matrices, with derivatives.
    ///
    /// With the singular vectors of `a` as constants, `b = u^H a v` is linear in `a` and close to
    /// diagonal, with decreasing elements. The block `b11` without the last three rows and columns
    /// is regular unless the rank is lower. With the Schur complement `s` of this block, `det b =
    /// det(b11) det(s)`, and the determinant of three rows is a polynomial.
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

    /// Returns the determinant of regular matrices, with the derivative of the LU factorization.
    fn plain_determinant(&mut self, a: ExprId) -> Result<ExprId> {
        let (packed, order) = self.packed_lu(a)?;
        self.determinant_of_lu(packed, order)
    }

    /// Returns the adjugate of matrices with `head` plus three rows, whose first `head` rows and
    /// columns are regular where `has_rank` is true.
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

    /// Returns the cofactors of matrices with three rows: with indices modulo three, `a[i+1, j+1]
    /// a[i+2, j+2] - a[i+1, j+2] a[i+2, j+1]`.
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

    /// Returns a constant for each matrix without rows.
    fn of_no_rows(&mut self, number: Scalar, dtype: DType, a: &TensorType) -> Result<ExprId> {
        let batch = Shape::from(a.shape[..a.rank() - 2].to_vec());
        self.constant(number, TensorType::new(dtype, batch))
    }

    /// Expands by the first row (Laplace), in a wide dtype, because the products cancel.
    fn small_determinant(&mut self, a: ExprId, side: usize) -> Result<ExprId> {
        let dtype = self.dtype(a);
        let wide = if dtype.is_complex() { DType::C128 } else { DType::F64 };
        let a = self.as_type(a, wide)?;
        let determinant = self.expand_minors(a, side)?;
        self.as_type(determinant, dtype)
    }

    fn expand_minors(&mut self, a: ExprId, side: usize) -> Result<ExprId> {
        let rank = self.shape(a).rank();
        let formula = Formula::new(self);
        let at = |row: usize, column: usize| {
            formula.build(|graph| {
                let batch = graph.shape(a)[..rank - 2].iter().copied();
                let lengths: Vec<usize> = batch.chain([1, 1]).collect();
                let mut starts = vec![SliceStart::at(0); rank];
                starts[rank - 2] = SliceStart::at(row);
                starts[rank - 1] = SliceStart::at(column);
                let element = graph.slice(a, &starts, &lengths, None)?;
                graph.squeeze(element, Some(&[-2, -1]))
            })
        };
        let minor = |top: usize, left: usize, right: usize| {
            let down = at(top, left)? * at(top + 1, right)?;
            Ok::<_, crate::Error>(down - at(top, right)? * at(top + 1, left)?)
        };
        let determinant = match side {
            1 => at(0, 0)?,
            2 => minor(0, 0, 1)?,
            _ => {
                let minors = [minor(1, 1, 2)?, minor(1, 0, 2)?, minor(1, 0, 1)?];
                let first = [at(0, 0)?, at(0, 1)?, at(0, 2)?];
                first[0] * minors[0] - first[1] * minors[1] + first[2] * minors[2]
            }
        };
        determinant.id()
    }

    /// Returns 1 for an even permutation of rows, and -1 for an odd one.
    fn sign_of_order(&mut self, order: ExprId, dtype: DType) -> Result<ExprId> {
        let (rows, columns) = (self.new_axis(order, -1, None)?, self.new_axis(order, -2, None)?);
        let exchanged = self.greater(rows, columns)?;
        let inverted = self.triu(exchanged, 1)?;
        let count = self.as_type(inverted, DType::S32)?;
        let count = self.sum(count, Some(&[-2, -1]), false)?;
        let formula = Formula::new(self);
        let odd = formula.term(count).bitwise_and(1);
        (odd.number(1) - (odd + odd)).as_type(dtype).id()
    }

    /// Returns the sign (the phase for complex numbers) and the logarithm of the magnitude of the
    /// determinant of square matrices, which may overflow or underflow itself. The results for a
    /// singular matrix are 0 and minus infinity. Names are dropped.
    ///
    /// # Errors
    /// Returns an error for matrices that are not square.
    pub fn slogdet(&mut self, a: ExprId) -> Result<(ExprId, ExprId)> {
        let ty = self.tensor_type(a).clone();
        let dtype = ty.dtype.to_floating();
        if self.square_side(&ty)? == 0 {
            let sign = self.of_no_rows(Scalar::one(dtype), dtype, &ty)?;
            let real = dtype.to_real();
            return Ok((sign, self.of_no_rows(Scalar::zero(real), real, &ty)?));
        }
        let a = self.plain_as(a, dtype)?;
        let (packed, order) = self.packed_lu(a)?;
        let diagonal = self.take_diagonal(packed, 0)?;
        let formula = Formula::new(self);
        let diagonal = formula.term(diagonal);
        let size = diagonal.abs();
        let logarithm = size.log().sum(Some(&[-1]), false);
        let phases = diagonal / size.equal(0.0).select(1.0, size);
        let phase = phases.apply(|graph, phases| graph.product(phases, Some(&[-1]), false));
        let [phase, logarithm] = formula.ids([phase, logarithm])?;
        let sign = self.sign_of_order(order, self.dtype(a))?;
        Ok((self.multiply(sign, phase)?, logarithm))
    }
}

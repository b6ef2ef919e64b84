//! Tangents of matrix factorizations. The omitted terms of factors that the matrix does not
//! determine are the same as in reverse mode.

use nxla_expr::{ExprId, Factorization, Padding, Result, Transform, TriangularSolve};
use nxla_tensor::{DType, Scalar, to_i64};
use smallvec::smallvec;

use super::{Rule, ThinFactors};
use crate::builder::{pad_zeros, scale, select_or_zero};
use crate::error::Result as GradResult;
use crate::forward::{JvpStep, Tangents};

/// Returns the tangents of the factors.
pub(crate) fn factorize_tangents(
    step: &mut JvpStep<'_>,
    factorization: Factorization,
) -> GradResult<Tangents> {
    let Some(da) = step.dx(0) else { return Ok(Tangents::new()) };
    let batch = step.graph.shape(da).rank() - 2;
    let node = step.node;
    let mut rule = Rule { graph: &mut *step.graph, batch, node };
    Ok(match factorization {
        Factorization::Lu => smallvec![Some(rule.lu_tangent(da)?), None],
        Factorization::Qr { .. } => {
            let (dq, dr) = rule.qr_tangents(da)?;
            smallvec![Some(dq), Some(dr)]
        }
        Factorization::Eigh => {
            let (dw, dv) = rule.eigh_tangents(da)?;
            smallvec![Some(dw), Some(dv)]
        }
        Factorization::Svd { .. } => rule.svd_tangents(da)?,
    })
}

impl Rule<'_> {
    /// `y^-1 x`, or `x y^-1`, for triangular `y`.
    fn divide(&mut self, y: ExprId, x: ExprId, lower: bool, left_side: bool) -> Result<ExprId> {
        let options = TriangularSolve { lower, left_side, transform: Transform::None };
        self.graph.triangular_solve(y, x, options)
    }

    /// From `da[order] = dl u + l du`: in `l^-1 da[order] u^-1`, the elements below the diagonal
    /// are `l^-1 dl`, and the elements on and above it are `du u^-1`.
    fn lu_tangent(&mut self, da: ExprId) -> Result<ExprId> {
        let (lower, upper, order) = self.lu_factors()?;
        let da = self.rows_in_order(da, order)?;
        let inner = self.divide(lower, da, true, true)?;
        let inner = self.divide(upper, inner, false, false)?;
        let (below, above) = (self.graph.tril(inner, -1)?, self.graph.triu(inner, 0)?);
        let below = self.product(lower, below)?;
        let above = self.product(above, upper)?;
        self.graph.add(below, above)
    }

    /// A matrix with more columns than rows is `a = [x y]` and `r = [u v]` with `x = q u` and `y =
    /// q v`. The first relation is a square factorization, and the second implies `dv = q^H (dy -
    /// dq v)`.
    fn qr_tangents(&mut self, da: ExprId) -> Result<(ExprId, ExprId)> {
        let (q, r) = (self.part(0)?, self.part(1)?);
        let (rows, columns) = (self.rows(q), self.columns(r));
        if rows >= columns {
            return self.tall_qr_tangents(q, r, da);
        }
        let (u, v) = (self.column_range(r, 0, rows)?, self.column_range(r, rows, columns - rows)?);
        let dx = self.column_range(da, 0, rows)?;
        let dy = self.column_range(da, rows, columns - rows)?;
        let (dq, du) = self.tall_qr_tangents(q, u, dx)?;
        let turned = self.product(dq, v)?;
        let rest = self.graph.subtract(dy, turned)?;
        let dv = self.adjoint_product(q, rest)?;
        Ok((dq, self.graph.concatenate(&[du, dv], -1)?))
    }

    /// `c = q^H da r^-1` equals `q^H dq + dr r^-1`. The first term is skew-Hermitian, the second is
    /// upper triangular with a real diagonal. The part of `c` below the diagonal thus determines
    /// the first term.
    fn tall_qr_tangents(&mut self, q: ExprId, r: ExprId, da: ExprId) -> Result<(ExprId, ExprId)> {
        let (side, columns) = (self.columns(q), self.columns(r));
        let leading = self.graph.slice_along_axis(r, 0, columns, -2, 1)?;
        let scaled = self.divide(leading, da, false, false)?;
        let c = self.adjoint_product(q, scaled)?;
        let square = self.append_zero_columns(c, side)?;
        let strict = self.graph.tril(square, -1)?;
        let mirrored = self.adjoint(strict)?;
        let mut turn = self.graph.subtract(strict, mirrored)?;
        if let Some(phases) = self.imaginary_diagonal(square)? {
            turn = self.graph.add(turn, phases)?;
        }
        let own = self.column_range(turn, 0, columns)?;
        let grown = self.graph.subtract(c, own)?;
        let dr = self.product(grown, leading)?;
        let dq = if side == self.rows(q) {
            self.product(q, turn)?
        } else {
            // The change of the columns also has a component orthogonal to their span.
            let inside = self.product(q, grown)?;
            self.graph.subtract(scaled, inside)?
        };
        Ok((dq, dr))
    }

    /// Appends columns of zeros up to `columns` columns.
    fn append_zero_columns(&mut self, x: ExprId, columns: usize) -> Result<ExprId> {
        let mut padding = vec![Padding::NONE; self.graph.shape(x).rank()];
        padding[self.batch + 1].high = to_i64(columns - self.columns(x));
        pad_zeros(self.graph, x, &padding)
    }

    /// Returns the imaginary part of the diagonal, or `None` for a real matrix.
    fn imaginary_diagonal(&mut self, x: ExprId) -> Result<Option<ExprId>> {
        if !self.graph.dtype(x).is_complex() {
            return Ok(None);
        }
        let imaginary = self.graph.imag(x)?;
        let side = self.rows(x);
        let eye = self.graph.eye([side, side], DType::Pred)?;
        let diagonal = select_or_zero(self.graph, eye, imaginary)?;
        let i = self.graph.scalar_constant(Scalar::Complex(0.0, 1.0), self.graph.dtype(x))?;
        self.graph.multiply(i, diagonal).map(Some)
    }

    /// `dw = diag(v^H da v)` and `dv = v (f * (v^H da v))` with `f_ij = 1 / (w_j - w_i)`, for the
    /// Hermitian part of `da`.
    fn eigh_tangents(&mut self, da: ExprId) -> Result<(ExprId, ExprId)> {
        let (w, v) = (self.part(0)?, self.part(1)?);
        let mirrored = self.adjoint(da)?;
        let sum = self.graph.add(da, mirrored)?;
        let da = scale(self.graph, sum, 0.5)?;
        let turned = self.adjoint_product(v, da)?;
        let inner = self.product(turned, v)?;
        let dw = self.graph.take_diagonal(inner, 0)?;
        let f = self.inverse_differences(w)?;
        let turn = self.graph.multiply(f, inner)?;
        Ok((dw, self.product(v, turn)?))
    }

    /// With `p = u^H da v`, whose halves are `p + p^H` and `p - p^H`, `d_ij = 1 / (s_j - s_i)` and
    /// `q_ij = 1 / (s_j + s_i)`, for as many columns as there are singular values: `ds = diag(p)`,
    /// `du = u (d * (p + p^H) / 2 + q * (p - p^H) / 2) + (1 - u u^H) da v s^-1` and
    /// `dv = v (d * (p + p^H) / 2 - q * (p - p^H) / 2) + (1 - v v^H) da^H u s^-1`.
    fn svd_tangents(&mut self, da: ExprId) -> Result<Tangents> {
        let (u, s, vh) = (self.part(0)?, self.part(1)?, self.part(2)?);
        let v = self.adjoint(vh)?;
        let thin = self.thin(u, s, v)?;
        let sent = self.product(da, thin.v)?;
        let p = self.adjoint_product(thin.u, sent)?;
        let mirrored = self.adjoint(p)?;
        let ds = self.graph.take_diagonal(p, 0)?;

        let both = self.graph.add(p, mirrored)?;
        let both = scale(self.graph, both, 0.5)?;
        let both = self.graph.multiply(thin.differences, both)?;
        let skew = self.graph.subtract(p, mirrored)?;
        let skew = scale(self.graph, skew, 0.5)?;
        let skew = self.graph.multiply(thin.sums, skew)?;

        let turn = self.graph.add(both, skew)?;
        let du = self.turned_columns(thin.u, u, turn, sent, &thin)?;
        let turn = self.graph.subtract(both, skew)?;
        let sent = self.adjoint_product(da, thin.u)?;
        let dv = self.turned_columns(thin.v, v, turn, sent, &thin)?;
        let dvh = self.adjoint(dv)?;
        Ok(smallvec![Some(du), Some(ds), Some(dvh)])
    }

    /// `x turn + (1 - x x^H) sent s^-1`. The further columns `x2` of `full`, after `x`, rotate in
    /// the opposite direction: `-x dx^H x2`.
    fn turned_columns(
        &mut self,
        x: ExprId,
        full: ExprId,
        turn: ExprId,
        sent: ExprId,
        thin: &ThinFactors,
    ) -> Result<ExprId> {
        let inside = self.product(x, turn)?;
        let within = self.adjoint_product(x, sent)?;
        let within = self.product(x, within)?;
        let outside = self.graph.subtract(sent, within)?;
        let outside = self.graph.multiply(outside, thin.inverse)?;
        let dx = self.graph.add(inside, outside)?;
        let (count, all) = (self.columns(x), self.columns(full));
        if all == count {
            return Ok(dx);
        }
        let rest = self.column_range(full, count, all - count)?;
        let turned = self.adjoint_product(dx, rest)?;
        let turned = self.product(x, turned)?;
        let turned = self.graph.negate(turned)?;
        self.graph.concatenate(&[dx, turned], -1)
    }
}

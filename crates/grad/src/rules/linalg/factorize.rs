//! Derivatives of matrix factorizations, batched over leading axes.
//!
//! The rules are adjoints of the known formulas for the change of each factor with the matrix.
//! Sources: M. Giles, "An extended collection of matrix derivative results for forward and reverse
//! mode automatic differentiation" (2008); for QR, S. Walter and L. Lehmann, "Algorithmic
//! differentiation of linear algebra functions" (2018), and H. Roberts, "QR and LQ decomposition
//! matrix backpropagation algorithms" (2020); for complex matrices, Z. Wan and S. Zhang, "Automatic
//! differentiation for complex valued SVD" (2019).
//!
//! A bar denotes a cotangent in the convention of the literature, `df = Re(tr(bar^H dx))`, which is
//! the conjugate of a cotangent in this crate.
//!
//! A factor that the matrix does not determine uniquely has no derivative. The result is correct
//! for functions that are independent of the choice: of the phases of eigenvectors, and of the
//! basis of the space of a repeated eigenvalue or singular value. Terms between vectors of such a
//! space divide by a difference of 0 and are omitted. Functions in which these terms matter, such
//! as `v f(w) v^H` or second derivatives of repeated eigenvalues, have limits that these rules do
//! not compute.

mod forward;

use nxla_expr::build::{Formula, SliceStart};
use nxla_expr::{ExprId, Factorization, Graph, Result, Transform, TriangularSolve};
use nxla_tensor::{DType, to_i64};

use super::swap_last;
use crate::builder::{add_optional, scale, select_or_zero};
use crate::error::Result as GradResult;
use crate::reverse::{ReversePass, Visit};

pub(crate) use forward::factorize_tangents;

/// Adds the contribution of every factorization to its operand.
pub(crate) fn factorize(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
    factorization: Factorization,
) -> GradResult<()> {
    let cotangents = pass.parts(visit)?;
    let graph = &mut *pass.graph;
    let rank = graph.shape(visit.operands[0]).rank();
    let mut rule = Rule { graph, batch: rank - 2, node: visit.id };
    let mut bars = Vec::with_capacity(cotangents.len());
    for cotangent in cotangents {
        bars.push(cotangent.map(|cotangent| rule.graph.conjugate_complex(cotangent)).transpose()?);
    }
    let bar = match factorization {
        Factorization::Lu => rule.lu(&bars)?,
        Factorization::Qr { .. } => rule.qr(&bars)?,
        Factorization::Eigh => rule.eigh(&bars)?,
        Factorization::Svd { .. } => rule.svd(&bars)?,
    };
    let Some(bar) = bar else { return Ok(()) };
    let da = rule.graph.conjugate_complex(bar)?;
    pass.add_cotangent(visit, 0, da)
}

/// The cotangents of the factors; `None` for a zero cotangent.
type Bars = [Option<ExprId>];

/// A reverse-mode rule for matrices in the last two axes, behind `batch` batch axes.
struct Rule<'g> {
    graph: &'g mut Graph,
    batch: usize,
    node: ExprId,
}

impl Rule<'_> {
    // --- matrices ---

    fn part(&mut self, index: usize) -> Result<ExprId> {
        self.graph.elem(self.node, index)
    }

    fn rows(&self, x: ExprId) -> usize {
        self.graph.shape(x)[self.batch]
    }

    fn columns(&self, x: ExprId) -> usize {
        self.graph.shape(x)[self.batch + 1]
    }

    fn adjoint(&mut self, x: ExprId) -> Result<ExprId> {
        let x = self.graph.conjugate_complex(x)?;
        swap_last(self.graph, x, self.batch)
    }

    fn product(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        super::matmul(self.graph, (x, self.batch + 1), (y, self.batch), self.batch)
    }

    /// `x^H y`.
    fn adjoint_product(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let x = self.graph.conjugate_complex(x)?;
        super::matmul(self.graph, (x, self.batch), (y, self.batch), self.batch)
    }

    /// `x y^H`.
    fn product_adjoint(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let y = self.graph.conjugate_complex(y)?;
        super::matmul(self.graph, (x, self.batch + 1), (y, self.batch + 1), self.batch)
    }

    /// `x y^-H`, or `y^-H x`, for triangular `y`.
    fn solve(&mut self, y: ExprId, x: ExprId, lower: bool, left_side: bool) -> Result<ExprId> {
        let y = self.graph.conjugate_complex(y)?;
        let options = TriangularSolve { lower, left_side, transform: Transform::Transpose };
        self.graph.triangular_solve(y, x, options)
    }

    /// Returns a range of columns.
    fn column_range(&mut self, x: ExprId, start: usize, length: usize) -> Result<ExprId> {
        self.graph.slice_along_axis(x, SliceStart::at(start), length, -1, 1)
    }

    fn zeros(&mut self, dtype: DType, like: ExprId) -> Result<ExprId> {
        let shape = self.graph.shape(like).clone();
        crate::builder::full(self.graph, 0.0, dtype, &shape)
    }

    fn or_zeros(&mut self, bar: Option<ExprId>, part: ExprId) -> Result<ExprId> {
        match bar {
            Some(bar) => Ok(bar),
            None => self.zeros(self.graph.dtype(part), part),
        }
    }

    /// Reshapes a vector to a column or a row, to scale the columns or the rows of a matrix.
    fn spread(&mut self, x: ExprId, columns: bool) -> Result<ExprId> {
        self.graph.new_axis(x, if columns { -2 } else { -1 }, None)
    }

    /// Returns the diagonal matrix of a vector.
    fn diagonal(&mut self, x: ExprId) -> Result<ExprId> {
        let side = self.graph.shape(x)[self.batch];
        let eye = self.graph.eye([side, side], DType::Pred)?;
        let columns = self.spread(x, true)?;
        select_or_zero(self.graph, eye, columns)
    }

    // --- rules ---

    /// From `da = p (dl u + l du)` with strictly lower `l^-1 dl` and upper `du u^-1`:
    /// `bar(a) = p l^-H (strictly lower (l^H bar(l)) + upper (bar(u) u^H)) u^-H`.
    fn lu(&mut self, bars: &Bars) -> Result<Option<ExprId>> {
        let Some(bar) = bars[0] else { return Ok(None) };
        let (lower, upper, order) = self.lu_factors()?;
        let (bar_lower, bar_upper) = (self.graph.tril(bar, -1)?, self.graph.triu(bar, 0)?);
        let left = self.adjoint_product(lower, bar_lower)?;
        let left = self.graph.tril(left, -1)?;
        let right = self.product_adjoint(bar_upper, upper)?;
        let right = self.graph.triu(right, 0)?;
        let inner = self.graph.add(left, right)?;
        let inner = self.solve(lower, inner, true, true)?;
        let inner = self.solve(upper, inner, false, false)?;
        // Row `i` of the product is row `order[i]` of the matrix.
        let places = self.graph.argsort(order, -1, false, true, DType::S32)?;
        self.rows_in_order(inner, places).map(Some)
    }

    /// Returns the lower factor with a unit diagonal, the upper factor, and the order of the rows.
    fn lu_factors(&mut self) -> Result<(ExprId, ExprId, ExprId)> {
        let (packed, order) = (self.part(0)?, self.part(1)?);
        let (strict, upper) = (self.graph.tril(packed, -1)?, self.graph.triu(packed, 0)?);
        let side = self.rows(packed);
        let eye = self.graph.eye([side, side], self.graph.dtype(packed))?;
        Ok((self.graph.add(strict, eye)?, upper, order))
    }

    /// Reorders rows: row `i` of the result is row `order[i]` of each matrix.
    fn rows_in_order(&mut self, x: ExprId, order: ExprId) -> Result<ExprId> {
        let places = self.spread(order, false)?;
        let shape = self.graph.shape(x).clone();
        let places = self.graph.broadcast(places, shape, None)?;
        self.graph.take_along_axis(x, places, to_i64(self.batch))
    }

    /// A matrix with more columns than rows is `a = [x y]` and `r = [u v]` with `x = q u` and `y =
    /// q v`. The second relation contributes `bar(v)` to `q` and to `y`; the first is a square
    /// factorization.
    fn qr(&mut self, bars: &Bars) -> Result<Option<ExprId>> {
        let (q, r) = (self.part(0)?, self.part(1)?);
        let (rows, columns) = (self.rows(q), self.columns(r));
        if rows >= columns {
            let bar_q = self.or_zeros(bars[0], q)?;
            return self.tall_qr(q, r, bar_q, bars[1]).map(Some);
        }
        let mut bar_q = self.or_zeros(bars[0], q)?;
        let (u, v) = (self.column_range(r, 0, rows)?, self.column_range(r, rows, columns - rows)?);
        let bar_r = self.or_zeros(bars[1], r)?;
        let bar_u = self.column_range(bar_r, 0, rows)?;
        let bar_v = self.column_range(bar_r, rows, columns - rows)?;
        let y = self.product(q, v)?;
        let sent = self.product_adjoint(y, bar_v)?;
        bar_q = self.graph.add(bar_q, sent)?;
        let bar_x = self.tall_qr(q, u, bar_q, Some(bar_u))?;
        let bar_y = self.product(q, bar_v)?;
        self.graph.concatenate(&[bar_x, bar_y], -1).map(Some)
    }

    /// `bar(a) = (bar(q) + q s) r^-H`, where `s` is the lower triangle of
    /// `r bar(r)^H - bar(q)^H q` completed to a Hermitian matrix.
    fn tall_qr(
        &mut self,
        q: ExprId,
        r: ExprId,
        bar_q: ExprId,
        bar_r: Option<ExprId>,
    ) -> Result<ExprId> {
        let crossed = self.adjoint_product(bar_q, q)?;
        let m = match bar_r {
            Some(bar_r) => {
                let product = self.product_adjoint(r, bar_r)?;
                self.graph.subtract(product, crossed)?
            }
            None => self.graph.negate(crossed)?,
        };
        let strict = self.graph.tril(m, -1)?;
        let mirrored = self.adjoint(strict)?;
        let real = self.graph.real(m)?;
        let side = self.rows(m);
        let eye = self.graph.eye([side, side], DType::Pred)?;
        let diagonal = select_or_zero(self.graph, eye, real)?;
        let s = self.graph.add(strict, mirrored)?;
        let s = self.graph.add(s, diagonal)?;
        let inner = self.product(q, s)?;
        let inner = self.graph.add(bar_q, inner)?;
        let columns = self.columns(r);
        let inner = self.column_range(inner, 0, columns)?;
        let leading = self.graph.slice_along_axis(r, 0, columns, -2, 1)?;
        self.solve(leading, inner, false, false)
    }

    /// `1 / (x_j - x_i)`, and 0 where both are equal.
    fn inverse_differences(&mut self, x: ExprId) -> Result<ExprId> {
        let (columns, rows) = (self.spread(x, true)?, self.spread(x, false)?);
        let difference = self.graph.subtract(columns, rows)?;
        self.inverse_or_zero(difference)
    }

    /// `1 / x`, and 0 for 0.
    fn inverse_or_zero(&mut self, x: ExprId) -> Result<ExprId> {
        let formula = Formula::new(self.graph);
        let x = formula.term(x);
        let is_zero = x.equal(0.0);
        is_zero.select(0.0, 1.0 / is_zero.select(1.0, x)).id()
    }

    /// `bar(a) = v (diag(bar(w)) + f * (v^H bar(v))) v^H` with `f_ij = 1 / (w_j - w_i)`, made
    /// Hermitian.
    fn eigh(&mut self, bars: &Bars) -> Result<Option<ExprId>> {
        let (w, v) = (self.part(0)?, self.part(1)?);
        let mut inner = match bars[0] {
            Some(bar) => Some(self.diagonal(bar)?),
            None => None,
        };
        if let Some(bar) = bars[1] {
            let f = self.inverse_differences(w)?;
            let turned = self.adjoint_product(v, bar)?;
            let turned = self.graph.multiply(f, turned)?;
            inner = Some(match inner {
                Some(inner) => self.graph.add(inner, turned)?,
                None => turned,
            });
        }
        let Some(inner) = inner else { return Ok(None) };
        let bar = self.product(v, inner)?;
        let bar = self.product_adjoint(bar, v)?;
        let mirrored = self.adjoint(bar)?;
        let sum = self.graph.add(bar, mirrored)?;
        scale(self.graph, sum, 0.5).map(Some)
    }

    /// With `d_ij = 1 / (s_j - s_i)`, `q_ij = 1 / (s_j + s_i)` and `skew(x) = x - x^H`, for as many
    /// columns as there are singular values:
    /// `bar(a) = u ((d + q) / 2 * skew(u^H bar(u)) + (d - q) / 2 * skew(v^H bar(v)) + diag(bar(s))) v^H
    /// + (1 - u u^H) bar(u) s^-1 v^H + u s^-1 bar(v)^H (1 - v v^H)`.
    ///
    /// The literature uses `f = d q` with the weights `f s` and `s f`. Separate terms keep the sum
    /// term exact for equal singular values; functions such as `u v^H`, which are smooth there,
    /// depend on it.
    fn svd(&mut self, bars: &Bars) -> Result<Option<ExprId>> {
        let (u, s, vh) = (self.part(0)?, self.part(1)?, self.part(2)?);
        let v = self.adjoint(vh)?;
        let bar_v = bars[2].map(|bar| self.adjoint(bar)).transpose()?;
        let thin = self.thin(u, s, v)?;
        let count = self.columns(thin.u);
        let mut sum = None;
        if let Some(bar) = bars[1] {
            let diagonal = self.diagonal(bar)?;
            self.accumulate(&mut sum, diagonal)?;
        }
        if let Some(bar) = bars[0] {
            let bar = self.column_range(bar, 0, count)?;
            let weights = self.graph.add(thin.differences, thin.sums)?;
            let turned = self.rotation(weights, thin.u, bar)?;
            self.accumulate(&mut sum, turned)?;
        }
        if let Some(bar) = bar_v {
            let bar = self.column_range(bar, 0, count)?;
            let weights = self.graph.subtract(thin.differences, thin.sums)?;
            let turned = self.rotation(weights, thin.v, bar)?;
            self.accumulate(&mut sum, turned)?;
        }
        let mut total = None;
        if let Some(inner) = sum {
            let bar = self.product(thin.u, inner)?;
            total = Some(self.product_adjoint(bar, thin.v)?);
        }
        if let Some(bar) = bars[0] {
            let outside = self.orthogonal_part(thin.u, u, bar, &thin)?;
            let outside = self.product_adjoint(outside, thin.v)?;
            self.accumulate(&mut total, outside)?;
        }
        if let Some(bar) = bar_v {
            let outside = self.orthogonal_part(thin.v, v, bar, &thin)?;
            let outside = self.product_adjoint(thin.u, outside)?;
            self.accumulate(&mut total, outside)?;
        }
        Ok(total)
    }

    /// Returns the factors that belong to singular values.
    fn thin(&mut self, u: ExprId, s: ExprId, v: ExprId) -> Result<ThinFactors> {
        let count = self.graph.shape(s)[self.batch];
        Ok(ThinFactors {
            u: self.column_range(u, 0, count)?,
            v: self.column_range(v, 0, count)?,
            inverse: {
                let inverse = self.inverse_or_zero(s)?;
                self.spread(inverse, true)?
            },
            differences: self.inverse_differences(s)?,
            sums: {
                let (columns, rows) = (self.spread(s, true)?, self.spread(s, false)?);
                let sum = self.graph.add(columns, rows)?;
                self.inverse_or_zero(sum)?
            },
        })
    }

    fn accumulate(&mut self, sum: &mut Option<ExprId>, part: ExprId) -> Result<()> {
        *sum = add_optional(self.graph, *sum, Some(part))?;
        Ok(())
    }

    /// `weights / 2 * skew(x^H bar(x))`: the rotation within the space of the columns of `x`.
    fn rotation(&mut self, weights: ExprId, x: ExprId, bar: ExprId) -> Result<ExprId> {
        let product = self.adjoint_product(x, bar)?;
        let mirrored = self.adjoint(product)?;
        let skew = self.graph.subtract(product, mirrored)?;
        let skew = scale(self.graph, skew, 0.5)?;
        self.graph.multiply(weights, skew)
    }

    /// Returns `(1 - x x^H) bar(x) s^-1`, the component of the change that is orthogonal to the columns.
    ///
    /// If `full` has further columns `x2` after the columns of `x`, then `x2` rotates in the opposite
    /// direction, which adds `-x2 bar(x2)^H x s^-1`.
    fn orthogonal_part(
        &mut self,
        x: ExprId,
        full: ExprId,
        bar: ExprId,
        thin: &ThinFactors,
    ) -> Result<ExprId> {
        let (count, all) = (self.columns(x), self.columns(full));
        let own = self.column_range(bar, 0, count)?;
        let inside = self.adjoint_product(x, own)?;
        let inside = self.product(x, inside)?;
        let mut outside = self.graph.subtract(own, inside)?;
        if all > count {
            let rest = self.column_range(full, count, all - count)?;
            let bar_rest = self.column_range(bar, count, all - count)?;
            let turned = self.adjoint_product(bar_rest, x)?;
            let turned = self.product(rest, turned)?;
            outside = self.graph.subtract(outside, turned)?;
        }
        self.graph.multiply(outside, thin.inverse)
    }
}

/// The factors of a singular value decomposition that belong to singular values.
struct ThinFactors {
    u: ExprId,
    v: ExprId,
    /// The inverses of the singular values, as a row that scales columns; 0 for 0.
    inverse: ExprId,
    /// `1 / (s_j - s_i)`, and 0 where both are equal.
    differences: ExprId,
    /// `1 / (s_j + s_i)`, and 0 where both are 0.
    sums: ExprId,
}

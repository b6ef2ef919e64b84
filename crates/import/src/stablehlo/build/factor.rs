//! Factorizations by LAPACK, which JAX calls on CPUs, in the conventions of LAPACK.

use nxla_expr::{ExprId, Factorization, Op, Padding, TensorType, Transform, TriangularSolve};
use nxla_tensor::{DType, Scalar};

use super::operand::{as_array, numbers};
use super::{Builder, Built, Fail, Slot, malformed, unsupported};
use crate::numbers::to_i64;
use crate::stablehlo::syntax::{Attribute, Operation};

impl Builder<'_> {
    /// Builds a call of LAPACK by the name of the routine without the letter of the dtype.
    pub(super) fn lapack(
        &mut self,
        routine: &str,
        operation: &Operation,
        x: &[ExprId],
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        let letter = |key: &str| {
            let found = operation.entry(&["mhlo.backend_config", "backend_config"], key);
            found.and_then(|value| numbers(value).ok()).and_then(|list| list.first().copied())
        };
        let is = |key: &str, expected: u8| letter(key) == Some(i64::from(expected));
        Ok(Some(match routine {
            "potrf" => {
                let [a] = as_array(x)?;
                let factor = self.cholesky_of(a, !is("uplo", b'U'))?;
                let info = self.failure(factor, operation, 1)?;
                vec![factor, info]
            }
            "getrf" => {
                let [a] = as_array(x)?;
                self.getrf(operation, a)?
            }
            "syevd" | "heevd" => {
                let [a] = as_array(x)?;
                let a = if is("uplo", b'U') { self.graph.adjoint(a)? } else { a };
                let (values, vectors) = self.graph.eigh(a)?;
                let info = self.failure(vectors, operation, 2)?;
                vec![vectors, values, info]
            }
            "gesdd" => {
                let [a] = as_array(x)?;
                let (u, s, v) = self.graph.svd(a, is("mode", b'A'))?;
                let info = self.failure(s, operation, 4)?;
                if is("mode", b'N') {
                    // LAPACK computes no vectors and leaves these results undefined.
                    let [u, v] = [operation.result(2)?.clone(), operation.result(3)?.clone()];
                    let u = self.graph.constant(Scalar::zero(u.dtype), u)?;
                    let v = self.graph.constant(Scalar::zero(v.dtype), v)?;
                    return Ok(Some(vec![a, s, u, v, info]));
                }
                vec![a, s, u, v, info]
            }
            "trsm" => {
                let [a, b] = as_array(x)?;
                let is_adjoint = is("trans_x", b'C');
                let transform = if is_adjoint || is("trans_x", b'T') {
                    Transform::Transpose
                } else {
                    Transform::None
                };
                let (lower, left_side) = (is("uplo", b'L'), is("side", b'L'));
                let options = TriangularSolve { lower, left_side, transform };
                vec![self.triangular(a, b, options, is_adjoint, is("diag", b'U'))?]
            }
            "gtsv" => {
                let [low, diagonal, high, b] = as_array(x)?;
                let a = self.tridiagonal_matrix(low, diagonal, high)?;
                let solution = self.graph.solve(a, b)?;
                let info = self.failure(solution, operation, 4)?;
                vec![low, diagonal, high, solution, info]
            }
            _ => return Ok(None),
        }))
    }

    /// Returns the matrix with these diagonals, each with one element for each row. The first element of
    /// `low` and the last of `high` are outside of the matrix.
    fn tridiagonal_matrix(
        &mut self,
        low: ExprId,
        diagonal: ExprId,
        high: ExprId,
    ) -> Result<ExprId, Fail> {
        let [.., count] = self.graph.shape(diagonal)[..] else {
            return malformed("the diagonal must be a vector");
        };
        let dtype = self.graph.dtype(diagonal);
        let row = self.graph.iota([count, 1], Some(0), DType::S32)?;
        let column = self.graph.iota([count], Some(0), DType::S32)?;
        let offset = self.graph.subtract(column, row)?;
        let mut matrix = self.number(0.0, dtype)?;
        for (at, elements) in [(-1, low), (0, diagonal), (1, high)] {
            let at = self.graph.scalar_constant(Scalar::Int(at), DType::S32)?;
            let is_at = self.graph.equal(offset, at)?;
            let of_rows = self.graph.new_axis(elements, -1, None)?;
            matrix = self.graph.select(is_at, of_rows, matrix)?;
        }
        Ok(matrix)
    }

    /// Returns 1 for each matrix with a result that is NaN, otherwise 0.
    fn failure(
        &mut self,
        factor: ExprId,
        operation: &Operation,
        result: usize,
    ) -> Result<ExprId, Fail> {
        let ty = operation.result(result)?.clone();
        let first = to_i64(ty.rank());
        let rank = to_i64(self.graph.shape(factor).rank());
        let matrix: Vec<i64> = (first..rank).collect();
        let is_nan = self.graph.is_nan(factor)?;
        let failed = self.graph.any(is_nan, Some(&matrix), false)?;
        Ok(self.graph.as_type(failed, ty.dtype)?)
    }

    /// Returns the compact factors, the row exchanges starting at 1, and 0 for success.
    fn getrf(&mut self, operation: &Operation, a: ExprId) -> Result<Vec<ExprId>, Fail> {
        let [.., rows, columns] = self.graph.shape(a)[..] else {
            return malformed("the operand must be a matrix");
        };
        let square = self.square(a, rows, columns)?;
        let (packed, order) = self.lu(square)?;
        let pivots = self.exchanges(order)?;
        let packed = self.graph.slice_along_axis(packed, 0, rows, -2, 1)?;
        let packed = self.graph.slice_along_axis(packed, 0, columns, -1, 1)?;
        let pivots = self.graph.slice_along_axis(pivots, 0, rows.min(columns), -1, 1)?;
        let info = operation.result(2)?.clone();
        let info = self.graph.constant(Scalar::zero(info.dtype), info)?;
        Ok(vec![packed, pivots, info])
    }

    /// Returns the packed factors of square matrices and the order of the rows.
    fn lu(&mut self, a: ExprId) -> Result<(ExprId, ExprId), Fail> {
        let node = self.graph.make(Op::Factorize(Factorization::Lu), &[a])?;
        Ok((self.graph.elem(node, 0)?, self.graph.elem(node, 1)?))
    }

    /// Appends rows or columns to a matrix whose LU factorization starts the factorization of the
    /// result. They have ones, with which the result is invertible where the derivative of the
    /// factorization exists.
    fn square(&mut self, a: ExprId, rows: usize, columns: usize) -> Result<ExprId, Fail> {
        if rows == columns {
            return Ok(a);
        }
        let (rank, dtype) = (self.graph.shape(a).rank(), self.graph.dtype(a));
        let zero = self.number(0.0, dtype)?;
        let mut padding = vec![Padding::NONE; rank];
        padding[rank - 2].high = to_i64(columns.saturating_sub(rows));
        padding[rank - 1].high = to_i64(rows.saturating_sub(columns));
        let square = self.graph.pad(a, zero, &padding)?;
        let side = rows.max(columns);
        let row = self.graph.iota([side, 1], Some(0), DType::S32)?;
        let column = self.graph.iota([side], Some(0), DType::S32)?;
        let row_of_one = if rows < columns {
            // Appended rows are zero in the columns of `a`'s pivots, so they are not exchanged.
            column
        } else {
            // Appended columns do not change the pivots, which move the row to the diagonal.
            let (_, order) = self.lu(square)?;
            self.graph.new_axis(order, -2, None)?
        };
        let is_row = self.graph.equal(row, row_of_one)?;
        let first = Scalar::Int(to_i64(rows.min(columns)));
        let first = self.graph.scalar_constant(first, DType::S32)?;
        let is_appended = self.graph.greater_equal(column, first)?;
        let is_one = self.graph.logical_and(is_row, is_appended)?;
        let one = self.number(1.0, dtype)?;
        Ok(self.graph.select(is_one, one, square)?)
    }

    /// Converts an order of rows to exchanges: step `i` exchanges row `i` and a later row.
    fn exchanges(&mut self, order: ExprId) -> Result<ExprId, Fail> {
        let ty = self.graph.tensor_type(order).clone();
        let along = to_i64(ty.rank() - 1);
        let count = to_i64(ty.shape[ty.rank() - 1]);
        let places = self.graph.iota_of(ty.clone(), Some(along))?;
        let zero = self.graph.scalar_constant(Scalar::Int(0), DType::S32)?;
        let mark = self.graph.mark();
        let types = [TensorType::scalar(DType::S32), ty.clone(), ty];
        let scope = self.graph.open_scope("getrf", &types);
        let [step, rows, pivots] = as_array(&scope.parameters)?;
        let limit = self.graph.scalar_constant(Scalar::Int(count), DType::S32)?;
        let more = self.graph.less(step, limit)?;
        let more = self.graph.traced(mark, vec![more]);
        let wanted = self.graph.slice_along_axis(order, step, 1, -1, 1)?;
        let current = self.graph.slice_along_axis(rows, step, 1, -1, 1)?;
        let found = self.graph.equal(rows, wanted)?;
        let place = self.graph.argmax(found, Some(-1), true, false, DType::S32)?;
        // The row at this step moves to the place of the wanted row.
        let is_place = self.graph.equal(places, place)?;
        let moved = self.graph.select(is_place, current, rows)?;
        let is_step = self.graph.equal(places, step)?;
        let exchanged = self.graph.select(is_step, wanted, moved)?;
        let one = self.graph.scalar_constant(Scalar::Int(1), DType::S32)?;
        let numbered = self.graph.add(place, one)?;
        let pivots = self.graph.select(is_step, numbered, pivots)?;
        let next = self.graph.add(step, one)?;
        let body = self.graph.traced(mark, vec![next, exchanged, pivots]);
        let results = self.graph.while_loop(mark, &scope, &[zero, places, places], more, body)?;
        Ok(results[2])
    }

    /// Returns the compact form of a QR factorization: `r` in the upper triangle, and the reflectors,
    /// which only [`Builder::orgqr`] reads.
    pub(super) fn geqrf(&mut self, a: ExprId) -> Result<Vec<Slot>, Fail> {
        let (_, r) = self.graph.qr(a, false)?;
        let shape = self.graph.shape(a).clone();
        let [.., rows, columns] = shape[..] else {
            return malformed("the operand must be a matrix");
        };
        let zero = self.number(0.0, self.graph.dtype(a))?;
        let mut padding = vec![Padding::NONE; shape.rank()];
        padding[shape.rank() - 2].high = to_i64(rows - rows.min(columns));
        let padded = self.graph.pad(r, zero, &padding)?;
        Ok(vec![Slot::Node(padded), Slot::Reflectors(a)])
    }

    /// Expands the orthonormal factor of a matrix that [`Builder::geqrf`] factored.
    pub(super) fn orgqr(&mut self, operation: &Operation, a: ExprId) -> Result<Vec<Slot>, Fail> {
        let shape = operation.result(0)?.shape.clone();
        let [.., rows, columns] = self.graph.shape(a)[..] else {
            return malformed("the operand must be a matrix");
        };
        let (q, _) = self.graph.qr(a, shape.last() != Some(&rows.min(columns)))?;
        if *self.graph.shape(q) != shape {
            return unsupported("the number of columns must be the smaller or the larger side");
        }
        Ok(vec![Slot::Node(q)])
    }

    /// Multiplies by the square orthonormal factor of a matrix that [`Builder::geqrf`] factored, or by
    /// its adjoint.
    pub(super) fn ormqr(&mut self, operation: &Operation, a: ExprId, x: ExprId) -> Built {
        let is_set = |key| {
            let entry = operation.entry(&["mhlo.backend_config", "backend_config"], key);
            matches!(entry, Some(Attribute::Bool(true)))
        };
        let (q, _) = self.graph.qr(a, true)?;
        let q = if is_set("transpose") { self.graph.adjoint(q)? } else { q };
        let (left, right) = if is_set("left") { (q, x) } else { (x, q) };
        Ok(Some(vec![Slot::Node(self.graph.matmul(left, right)?)]))
    }
}

/// Returns the routine of a custom call such as `lapack_sgetrf_ffi`.
pub(super) fn routine(target: &str) -> Option<&str> {
    let name = target.strip_prefix("lapack_")?.strip_suffix("_ffi")?;
    let letter = name.get(..1)?;
    "sdcz".contains(letter).then(|| &name[1..])
}

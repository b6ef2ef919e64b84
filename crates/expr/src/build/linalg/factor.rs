//! Matrix factorizations; [`Factorization`] documents the freedom of their factors.

use nxla_tensor::{DType, Scalar};

use crate::graph::{ExprId, Factorization, Graph, Op, Result, TensorType};

impl Graph {
    /// Returns the lower-triangular `l` with `l l^H = a` for positive definite `a`, as a float.
    /// Only the lower triangle of `a` is read. Names are dropped.
    ///
    /// # Errors
    /// Returns an error for matrices that are not square.
    pub fn cholesky(&mut self, a: ExprId) -> Result<ExprId> {
        self.make(Op::Cholesky, &[a])
    }

    /// Returns `(p, l, u)` with `p l u = a`: a permutation of rows, a lower triangle with a unit
    /// diagonal, and an upper triangle. Names are dropped.
    ///
    /// # Errors
    /// Returns an error for matrices that are not square.
    pub fn lu(&mut self, a: ExprId) -> Result<(ExprId, ExprId, ExprId)> {
        if let Some(parts) = self.factors_of_nothing(a, Factorization::Lu)? {
            let nothing = self.as_type(parts[0], self.dtype(a))?;
            return Ok((nothing, parts[0], parts[0]));
        }
        let (packed, order) = self.packed_lu(a)?;
        let (dtype, side) = (self.dtype(packed), self.shape(order)[self.shape(order).rank() - 1]);
        let strict = self.tril(packed, -1)?;
        let eye = self.eye([side, side], dtype)?;
        let lower = self.add(strict, eye)?;
        let upper = self.triu(packed, 0)?;
        // Row `i` of the product is row `order[i]` of the matrix.
        let columns = self.new_axis(order, -2, None)?;
        let rows = self.iota([side, 1], Some(0), DType::S32)?;
        let is_place = self.equal(columns, rows)?;
        let permutation = self.as_type(is_place, self.dtype(a))?;
        Ok((permutation, lower, upper))
    }

    /// Returns the results of [`Factorization::Lu`].
    pub(super) fn packed_lu(&mut self, a: ExprId) -> Result<(ExprId, ExprId)> {
        let node = self.make(Op::Factorize(Factorization::Lu), &[a])?;
        let parts = self.parts(node)?;
        Ok((parts[0], parts[1]))
    }

    /// Returns `(q, r)` with `q r = a`: orthonormal columns, and an upper triangle with a real,
    /// nonnegative diagonal. With `complete`, `q` is square; otherwise it has as many columns as
    /// the smaller side of `a`. Names are dropped.
    ///
    /// # Errors
    /// Returns an error for an operand without matrices.
    pub fn qr(&mut self, a: ExprId, complete: bool) -> Result<(ExprId, ExprId)> {
        let parts = self.factors(a, Factorization::Qr { complete })?;
        Ok((parts[0], parts[1]))
    }

    /// Returns `(w, v)` with `v diag(w) v^H = a` for Hermitian `a`, whose lower triangle is read:
    /// the eigenvalues in increasing order, and the eigenvectors in columns. Names are dropped.
    ///
    /// # Errors
    /// Returns an error for matrices that are not square.
    pub fn eigh(&mut self, a: ExprId) -> Result<(ExprId, ExprId)> {
        let parts = self.factors(a, Factorization::Eigh)?;
        Ok((parts[0], parts[1]))
    }

    /// Returns `(u, s, v^H)` with `u diag(s) v^H = a` and decreasing singular values `s`. With
    /// `full`, `u` and `v` are square; otherwise they have a column for each singular value. Names
    /// are dropped.
    ///
    /// # Errors
    /// Returns an error for an operand without matrices.
    pub fn svd(&mut self, a: ExprId, full: bool) -> Result<(ExprId, ExprId, ExprId)> {
        let parts = self.factors(a, Factorization::Svd { full })?;
        Ok((parts[0], parts[1], parts[2]))
    }

    fn factors(&mut self, a: ExprId, factorization: Factorization) -> Result<Vec<ExprId>> {
        if let Some(parts) = self.factors_of_nothing(a, factorization)? {
            return Ok(parts);
        }
        let node = self.make(Op::Factorize(factorization), &[a])?;
        self.parts(node)
    }

    /// Returns the factors of matrices without rows or columns, so that backends need not support
    /// them. The square factors are identities, the other factors are empty.
    fn factors_of_nothing(
        &mut self,
        a: ExprId,
        factorization: Factorization,
    ) -> Result<Option<Vec<ExprId>>> {
        let is_empty =
            matches!(self.shape(a)[..], [.., rows, columns] if rows == 0 || columns == 0);
        if !is_empty {
            return Ok(None);
        }
        let types = factorization.types(self.tensor_type(a));
        let types = types.map_err(|kind| self.error("factorize", kind))?;
        let part = |ty: TensorType| match *ty.shape {
            [.., side, other] if side == other && side > 0 => {
                let eye = self.eye([side, side], ty.dtype)?;
                self.broadcast(eye, ty.shape, None)
            }
            _ => self.constant(Scalar::zero(ty.dtype), ty),
        };
        types.into_iter().map(part).collect::<Result<_>>().map(Some)
    }
}

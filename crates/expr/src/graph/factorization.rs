//! Matrix factorizations and the properties of their factors.

use serde::{Deserialize, Serialize};

/// Matrix factorizations with several factors. The factors of all backends are equal up to rounding
/// and up to the freedom that each variant documents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Factorization {
    /// LU factorization of a square matrix with row exchanges. The results are a matrix that holds
    /// `l` without its unit diagonal and `u`, and the order of the rows of `a` in `l u`, as `s32`.
    /// A singular matrix has zeros on the diagonal of `u`.
    Lu,
    /// QR factorization: `q` with orthonormal columns and upper-triangular `r` with a real,
    /// nonnegative diagonal. Columns of `q` at zeros of this diagonal are not determined.
    Qr {
        /// True if `q` is square; if `a` has fewer columns than `q`, the further columns of `q` are
        /// not determined. Otherwise `q` has as many columns, and `r` as many rows, as the smaller
        /// side of `a`.
        complete: bool,
    },
    /// Eigenvalues in increasing order and eigenvectors in columns of a Hermitian matrix, whose
    /// lower triangle is read. An eigenvector is determined up to its phase.
    Eigh,
    /// Singular value decomposition: `u`, the singular values `s` in decreasing order, and `v^H`
    /// with `a = u diag(s) v^H`. Pairs of columns of `u` and `v` are determined up to a common
    /// phase.
    Svd {
        /// True if `u` and `v` are square. Otherwise they have a column for each singular value.
        full: bool,
    },
}

impl Factorization {
    /// All factorizations with all options.
    pub const ALL: &[Factorization] = &[
        Factorization::Lu,
        Factorization::Qr { complete: false },
        Factorization::Qr { complete: true },
        Factorization::Eigh,
        Factorization::Svd { full: false },
        Factorization::Svd { full: true },
    ];

    /// Returns the name in printed expressions.
    pub const fn name(self) -> &'static str {
        match self {
            Factorization::Lu => "lu",
            Factorization::Qr { .. } => "qr",
            Factorization::Eigh => "eigh",
            Factorization::Svd { .. } => "svd",
        }
    }
}

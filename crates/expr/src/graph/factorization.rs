//! What matrices are taken apart into.

use serde::{Deserialize, Serialize};

/// Factorisations of matrices with several factors, each with the parts that it gives. Engines
/// agree on them up to rounding, and up to what each says is not determined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Factorization {
    /// Of a square matrix, with rows exchanged so that no factor is large: `l` without its
    /// diagonal of ones and `u`, in one matrix, and the rows of `a` as they come in `l u`, as
    /// `s32`. A singular matrix gives zeros on the diagonal of `u`.
    Lu,
    /// `q` with orthonormal columns and upper-triangular `r` with a real diagonal that is not
    /// negative. Where that diagonal holds zeros, the column of `q` is not determined.
    Qr {
        /// Whether `q` is square: columns beyond those of `a` are not determined. Otherwise `q`
        /// and `r` have as many columns and rows as the smaller side of `a`.
        complete: bool,
    },
    /// Of a Hermitian matrix, of which the lower triangle is read: the real eigenvalues, which
    /// increase, and the eigenvectors in columns, each determined up to its phase.
    Eigh,
    /// `u`, the singular values `s`, which decrease, and `v^H`, such that `a = u diag(s) v^H`.
    /// Pairs of columns of `u` and `v` are determined up to a common phase.
    Svd {
        /// Whether `u` and `v` are square. Otherwise they have as many columns as there are
        /// singular values.
        full: bool,
    },
}

impl Factorization {
    /// Every factorisation with every choice.
    pub const ALL: &[Factorization] = &[
        Factorization::Lu,
        Factorization::Qr { complete: false },
        Factorization::Qr { complete: true },
        Factorization::Eigh,
        Factorization::Svd { full: false },
        Factorization::Svd { full: true },
    ];

    /// The name in expression text.
    pub const fn name(self) -> &'static str {
        match self {
            Factorization::Lu => "lu",
            Factorization::Qr { .. } => "qr",
            Factorization::Eigh => "eigh",
            Factorization::Svd { .. } => "svd",
        }
    }
}

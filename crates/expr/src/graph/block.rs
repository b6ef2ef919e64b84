//! Blocks: named composites for which a backend may have a faster implementation.
//!
//! A block contains a program that defines its result. A backend runs this program unless it knows
//! a faster method for the kind of the block. The known kinds are the variants of [`BlockKind`];
//! backends match on them without `_`, so each backend must handle a new kind.

use std::fmt;
use std::sync::Arc;

use nxla_tensor::{DType, promote};
use serde::{Deserialize, Serialize};

use super::factorization::Factorization;
use super::table::BinaryOp;

/// The function that a block computes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum BlockKind {
    /// `[x]`: cumulative reduction along an axis.
    Cumulative {
        /// The reduction.
        op: Cumulative,
        /// The axis.
        axis: usize,
        /// True if the reduction starts at the last element.
        reverse: bool,
    },
    /// `[x]`: the largest elements along the last axis in decreasing order, and their indices.
    TopK {
        /// The number of elements.
        k: usize,
    },
    /// A function whose derivative recomputes the values that are not stored.
    Checkpoint {
        /// The values that are stored.
        keep: Keep,
        /// True if this block recomputes values for a derivative. Such a block must not be merged
        /// with the block that computed the values before.
        again: bool,
    },
    /// A function that only its body defines.
    Named {
        /// The name in printed expressions, which a user-defined compiler can match.
        name: Arc<str>,
        /// Static configuration, printed in order as `key: value`.
        attributes: Vec<(Arc<str>, String)>,
    },
    /// `[key]`: random bits of the cipher Threefry-2x32 with 20 rounds, for a key of two words. The
    /// counters 0, 1, 2… are encrypted in pairs of a counter of the first half and one of the
    /// second half. 32-bit words are the first outputs of all pairs, then the second outputs; a
    /// 64-bit word combines both.
    Threefry {
        /// The number of words.
        count: usize,
        /// True if words have 64 bits. Otherwise words have 32 bits.
        wide: bool,
    },
    /// `[sorted, x]` of one dtype: for each element of `x`, the number of elements of an increasing
    /// vector that precede it, by bisection.
    Search(Order),
    /// `[x, indices, updates]` with vectors `x` and `updates`, and `indices` with a last axis of
    /// size 1. Each element of `x` is combined with all updates at its index. Out-of-range updates
    /// are ignored.
    Scatter {
        /// The combining function.
        op: Combine,
    },
    /// `[a]`: the factors of a matrix by simpler ops, for backends without a kernel. Products
    /// inside have the full precision of the dtype, independent of the precision setting.
    Factorize(Factorization),
    /// `[factors, order, b]`: the solutions of `a x = b`, from the triangular factors of `a` in one
    /// matrix and the order of its rows. The solution for a singular matrix is NaN.
    Solve {
        /// True to solve with the transposed matrix. Singularity is not checked in this case.
        transposed: bool,
    },
}

/// The order relation of a search.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Order {
    /// True if elements that are equal to the searched value precede it.
    pub equal: bool,
    /// True if NaN is larger than all numbers and equal to itself. Otherwise no element precedes
    /// NaN.
    pub nan_last: bool,
}

/// The values inside a function that are stored for its derivative. Other values are recomputed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Keep {
    /// No value except the arguments.
    #[default]
    Nothing,
    /// Matrix products and convolutions, which are expensive to recompute.
    Products,
    /// Values with one of these notes.
    Named(Vec<Arc<str>>),
    /// All values that the derivative needs, as without a checkpoint.
    Everything,
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::Nothing => f.write_str("nothing"),
            Keep::Products => f.write_str("products"),
            Keep::Named(names) => write!(f, "[{}]", names.join(", ")),
            Keep::Everything => f.write_str("everything"),
        }
    }
}

/// The cumulative reductions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names describe the values")]
pub enum Cumulative {
    Sum,
    Product,
    Max,
    Min,
}

impl Cumulative {
    /// Returns the name of the function and of its block.
    pub const fn name(self) -> &'static str {
        match self {
            Cumulative::Sum => "cumulative_sum",
            Cumulative::Product => "cumulative_product",
            Cumulative::Max => "cumulative_max",
            Cumulative::Min => "cumulative_min",
        }
    }

    /// Returns the dtype in which the public functions compute for an operand of this dtype. Sums
    /// and products of narrow integers widen to 32 bits, as in reductions, and `u64` stays `u64`.
    /// Extrema keep the dtype; `pred` becomes `u8`.
    ///
    /// ```
    /// use nxla_expr::build::Cumulative;
    /// use nxla_tensor::DType;
    ///
    /// assert_eq!(Cumulative::Sum.widen(DType::U8), DType::U32);
    /// assert_eq!(Cumulative::Max.widen(DType::U8), DType::U8);
    /// ```
    #[must_use]
    pub fn widen(self, dtype: DType) -> DType {
        match (self, dtype) {
            (Cumulative::Sum | Cumulative::Product, DType::U64) => DType::U64,
            (Cumulative::Sum | Cumulative::Product, dtype) => dtype.to_aggregate(),
            (Cumulative::Max | Cumulative::Min, dtype) => promote(dtype, dtype),
        }
    }
}

/// The combining functions of scatters. Sums have the op [`Op::IndexedAdd`](super::Op::IndexedAdd).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names describe the values")]
pub enum Combine {
    Multiply,
    Max,
    Min,
}

impl Combine {
    /// All variants.
    pub const ALL: &[Combine] = &[Combine::Multiply, Combine::Max, Combine::Min];

    /// Returns the op that combines two values.
    pub const fn binary(self) -> BinaryOp {
        match self {
            Combine::Multiply => BinaryOp::Multiply,
            Combine::Max => BinaryOp::Max,
            Combine::Min => BinaryOp::Min,
        }
    }
}

impl BlockKind {
    /// Returns the name in expression text.
    pub fn name(&self) -> &str {
        match self {
            BlockKind::Cumulative { op, .. } => op.name(),
            BlockKind::TopK { .. } => "top_k",
            BlockKind::Search(_) => "search",
            BlockKind::Scatter { .. } => "scatter",
            BlockKind::Checkpoint { .. } => "checkpoint",
            BlockKind::Named { name, .. } => name,
            BlockKind::Threefry { .. } => "threefry2x32",
            BlockKind::Solve { .. } => "solve",
            BlockKind::Factorize(factorization) => factorization.name(),
        }
    }

    /// Returns whether there is an algorithm for this kind that is faster than the body. Backends
    /// run the body of other kinds.
    pub fn has_algorithm(&self) -> bool {
        match self {
            BlockKind::Checkpoint { .. } | BlockKind::Named { .. } => false,
            BlockKind::Cumulative { .. }
            | BlockKind::TopK { .. }
            | BlockKind::Search(_)
            | BlockKind::Scatter { .. }
            | BlockKind::Threefry { .. }
            | BlockKind::Solve { .. }
            | BlockKind::Factorize(_) => true,
        }
    }

    /// Returns the attributes in expression text.
    pub fn attributes(&self) -> Vec<(Arc<str>, String)> {
        match self {
            BlockKind::Cumulative { axis, reverse, .. } => {
                vec![("axis".into(), axis.to_string()), ("reverse".into(), reverse.to_string())]
            }
            BlockKind::TopK { k } => vec![("k".into(), k.to_string())],
            BlockKind::Search(Order { equal, nan_last }) => {
                vec![("equal".into(), equal.to_string()), ("nan_last".into(), nan_last.to_string())]
            }
            BlockKind::Scatter { op } => vec![("op".into(), op.binary().name().to_owned())],
            BlockKind::Checkpoint { keep, again } => {
                vec![("keep".into(), keep.to_string()), ("again".into(), again.to_string())]
            }
            BlockKind::Named { attributes, .. } => attributes.clone(),
            BlockKind::Threefry { count, wide } => {
                let bits = wide.then(|| ("bits".into(), "64".to_owned()));
                std::iter::once(("count".into(), count.to_string())).chain(bits).collect()
            }
            BlockKind::Solve { transposed } => vec![("transposed".into(), transposed.to_string())],
            BlockKind::Factorize(_) => Vec::new(),
        }
    }
}

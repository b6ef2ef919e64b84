//! Composites: what engines may know how to compute better than by their bodies.
//!
//! A block is a program under a name. Whoever computes it may take the program, and has to where the
//! name says nothing to it. The names that engines know are the variants of [`BlockKind`]; an engine
//! matches on them without `_`, so that a new one asks each engine for its answer.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::factorization::Factorization;
use super::table::BinaryOp;

/// What a block computes, as far as engines are told.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum BlockKind {
    /// `[x]`: at each index along an axis, the fold of all elements up to it, or from it on.
    Cumulative {
        /// How two elements are folded.
        op: Cumulative,
        /// The axis.
        axis: usize,
        /// From the last element to the first.
        reverse: bool,
    },
    /// `[x]`: the largest elements along the last axis, which decrease, and their indices.
    TopK {
        /// How many.
        k: usize,
    },
    /// A function whose derivative computes again what is not kept of it.
    Checkpoint {
        /// What is kept.
        keep: Keep,
        /// Whether this computes again, for a derivative, what something else has computed: it must
        /// not be merged with that.
        again: bool,
    },
    /// What only its body tells.
    Named {
        /// A name for readers, and for compilers of the user's.
        name: Arc<str>,
        /// Static configuration, printed in order as `key: value`.
        attributes: Vec<(Arc<str>, String)>,
    },
    /// `[key]`: random bits by the cipher Threefry-2x32 of twenty rounds, for two words of a key. Words
    /// of 32 bits are first those that the counters 0, 1, 2… come out as, paired with those after them,
    /// then what their partners do; one of 64 bits is made of both.
    Threefry {
        /// How many words.
        count: usize,
        /// Whether they have 64 bits.
        wide: bool,
    },
    /// `[sorted, x]` of one dtype: for each of `x`, how many elements of an increasing vector come before
    /// it, by bisection.
    Search(Order),
    /// `[x, indices, updates]` of vectors, of which `indices` has a last axis of one: each element of `x`
    /// combined with all updates of its index. Indices out of range update nothing.
    Scatter {
        /// How two numbers are combined.
        op: Combine,
    },
    /// `[a]`: the parts of a factorization by simpler ops, for engines that have no kernel for it. Its
    /// products are to be as exact as the dtype, whatever products are elsewhere.
    Factorize(Factorization),
    /// `[factors, order, b]`: the solutions of `a x = b`, from the triangular factors of `a` in one matrix and
    /// the order of its rows. A singular matrix has no solution but NaN.
    Solve {
        /// Whether those of the transposed matrix are wanted, which is not asked whether it is singular.
        transposed: bool,
    },
}

/// What comes before a number that is searched for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Whether what equals it does.
    pub equal: bool,
    /// Whether all numbers come before NaN, which equals itself then. Otherwise nothing does.
    pub nan_last: bool,
}

/// What of the values inside of a function is kept for its derivative. All others are computed again
/// when that needs them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Keep {
    /// Nothing but the arguments.
    #[default]
    Nothing,
    /// Products of matrices and convolutions, which take long to compute again.
    Products,
    /// Values with one of these notes.
    Named(Vec<Arc<str>>),
    /// All that the derivative needs, as without a checkpoint.
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
#[expect(missing_docs, reason = "the names say it")]
pub enum Cumulative {
    Sum,
    Product,
    Max,
    Min,
}

impl Cumulative {
    /// The name of the function and of its block.
    pub const fn name(self) -> &'static str {
        match self {
            Cumulative::Sum => "cumulative_sum",
            Cumulative::Product => "cumulative_product",
            Cumulative::Max => "cumulative_max",
            Cumulative::Min => "cumulative_min",
        }
    }
}

/// How scatters combine two numbers. For sums there is [`Op::IndexedAdd`](super::Op::IndexedAdd).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Combine {
    Multiply,
    Max,
    Min,
}

impl Combine {
    /// Every one.
    pub const ALL: &[Combine] = &[Combine::Multiply, Combine::Max, Combine::Min];

    /// The op of two numbers.
    pub const fn binary(self) -> BinaryOp {
        match self {
            Combine::Multiply => BinaryOp::Multiply,
            Combine::Max => BinaryOp::Max,
            Combine::Min => BinaryOp::Min,
        }
    }
}

impl BlockKind {
    /// The name in text.
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

    /// Whether there is an algorithm for it, which engines follow where the body would take them longer;
    /// of others the body is all that is known.
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

    /// The configuration in text.
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

//! Binary ops as monoids: the reductions that combine elements by an op.
//!
//! These functions are not in the file of the op table, which the files of reductions import.

use super::{BinaryOp, Cumulative, ReduceOp, WindowOp};

/// Associative and commutative ops, with the reductions that combine elements by them.
const MONOIDS: [(BinaryOp, ReduceOp, WindowOp, Cumulative); 4] = [
    (BinaryOp::Add, ReduceOp::Sum, WindowOp::Sum, Cumulative::Sum),
    (BinaryOp::Multiply, ReduceOp::Product, WindowOp::Product, Cumulative::Product),
    (BinaryOp::Max, ReduceOp::Max, WindowOp::Max, Cumulative::Max),
    (BinaryOp::Min, ReduceOp::Min, WindowOp::Min, Cumulative::Min),
];

impl WindowOp {
    /// Returns the reduction that combines elements by the same op.
    pub fn reduction(self) -> ReduceOp {
        let row = MONOIDS.iter().find(|row| row.2 == self);
        row.expect("every window reduction has a row").1
    }
}

impl BinaryOp {
    /// Returns the reduction that combines elements by this op.
    pub fn reduction(self) -> Option<ReduceOp> {
        MONOIDS.iter().find(|row| row.0 == self).map(|row| row.1)
    }

    /// Returns the window reduction that combines elements by this op.
    pub fn window_reduction(self) -> Option<WindowOp> {
        MONOIDS.iter().find(|row| row.0 == self).map(|row| row.2)
    }

    /// Returns the cumulative reduction that combines elements by this op.
    pub fn cumulative(self) -> Option<Cumulative> {
        MONOIDS.iter().find(|row| row.0 == self).map(|row| row.3)
    }
}

//! Comparisons of `u64` with signed integers, as compositions of comparisons within one dtype.
//!
//! The promoted dtype `s64` cannot represent all values of `u64`. Each function first clamps one
//! operand to the range of the other dtype, which does not change the result.

use nxla_tensor::{DType, Scalar};

use crate::graph::{BinaryOp, Constant, ExprId, Graph, Op, Result, TensorType, UnaryOp};

impl Graph {
    /// Creates a comparison, `max`, `min` or `clip` of `u64` and signed operands.
    pub(super) fn make_mixed_signs(&mut self, op: &Op, operands: &[ExprId]) -> Result<ExprId> {
        match (op, operands) {
            (Op::Clip, &[x, min, max]) => {
                let x = self.make(Op::Binary(BinaryOp::Max), &[x, min])?;
                self.make(Op::Binary(BinaryOp::Min), &[x, max])
            }
            (&Op::Binary(op), &[x, y]) if self.dtype(x) == DType::U64 => {
                self.make_unsigned_signed(op, x, y)
            }
            (&Op::Binary(op), &[x, y]) => {
                let op = op.swap_operands().expect("comparisons have swapped forms");
                self.make_unsigned_signed(op, y, x)
            }
            _ => unreachable!("{} does not compare its operands", op.name()),
        }
    }

    /// Creates `op` of a `u64` and a signed operand.
    fn make_unsigned_signed(&mut self, op: BinaryOp, x: ExprId, y: ExprId) -> Result<ExprId> {
        let dtype = self.dtype(y);
        match op {
            BinaryOp::Max => {
                // A negative value is never the larger operand.
                let zero = self.make_constant(Scalar::zero(dtype), dtype)?;
                let y = self.make(Op::Binary(BinaryOp::Max), &[y, zero])?;
                let y = self.make(Op::AsType(DType::U64), &[y])?;
                self.make(Op::Binary(op), &[x, y])
            }
            BinaryOp::Min => {
                // A value above the range of `s64` is never the smaller operand.
                let largest = DType::S64.max_value().cast(DType::U64);
                let largest = self.make_constant(largest, DType::U64)?;
                let x = self.make(Op::Binary(BinaryOp::Min), &[x, largest])?;
                let x = self.make(Op::AsType(DType::S64), &[x])?;
                self.make(Op::Binary(op), &[x, y])
            }
            _ => {
                let zero = self.make_constant(Scalar::zero(dtype), dtype)?;
                let is_negative = self.make(Op::Binary(BinaryOp::Less), &[y, zero])?;
                let y = self.make(Op::AsType(DType::U64), &[y])?;
                let compared = self.make(Op::Binary(op), &[x, y])?;
                if is_true_for_negatives(op) {
                    return self.make(Op::Binary(BinaryOp::LogicalOr), &[is_negative, compared]);
                }
                let not_negative = self.make(Op::Unary(UnaryOp::LogicalNot), &[is_negative])?;
                self.make(Op::Binary(BinaryOp::LogicalAnd), &[not_negative, compared])
            }
        }
    }

    fn make_constant(&mut self, value: Scalar, dtype: DType) -> Result<ExprId> {
        let ty = TensorType::scalar(dtype);
        self.make(Op::Constant(Box::new(Constant { value, ty })), &[])
    }
}

/// Returns whether a comparison of any `u64` with a negative value is true.
fn is_true_for_negatives(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::NotEqual | BinaryOp::Greater | BinaryOp::GreaterEqual)
}

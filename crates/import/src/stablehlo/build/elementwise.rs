//! Element-wise operations.

use nxla_expr::{BinaryOp, ExprId, Lowering, Op, UnaryOp};
use nxla_tensor::Scalar;

use super::bits::{opposite, signed_of};
use super::operand::{as_array, sizes_of};
use super::{Builder, Fail, malformed, unsupported};
use crate::stablehlo::syntax::Operation;

/// Returns whether nxla writes an op as one operation of this name.
fn is_written_as(lowering: Lowering, name: &str) -> bool {
    match lowering {
        Lowering::Direct(own) => own == name || own.strip_prefix("stablehlo.") == Some(name),
        Lowering::Compare(_) | Lowering::Composed(_) => false,
    }
}

/// Returns the unary op with the semantics of an operation.
fn unary_op(name: &str) -> Option<UnaryOp> {
    if let Some(&op) = UnaryOp::ALL.iter().find(|op| is_written_as(op.lowering(), name)) {
        return Some(op);
    }
    Some(match name {
        "negate" => UnaryOp::Negate,
        "abs" => UnaryOp::Abs,
        "floor" => UnaryOp::Floor,
        "ceil" => UnaryOp::Ceil,
        "round_nearest_afz" => UnaryOp::Round,
        "round_nearest_even" => UnaryOp::RoundEven,
        "real" => UnaryOp::Real,
        "imag" => UnaryOp::Imag,
        "chlo.conj" => UnaryOp::Conjugate,
        "chlo.is_inf" => UnaryOp::IsInfinity,
        "tan" => UnaryOp::Tan,
        _ => return None,
    })
}

/// Returns the binary op with the semantics of an operation on numbers.
pub(super) fn binary_op(name: &str) -> Option<BinaryOp> {
    let name = name.strip_prefix("chlo.broadcast_").unwrap_or(name);
    if let Some(&op) = BinaryOp::ALL.iter().find(|op| is_written_as(op.lowering(), name)) {
        return Some(op);
    }
    Some(match name {
        "power" => BinaryOp::Pow,
        "remainder" => BinaryOp::Remainder,
        "complex" => BinaryOp::Complex,
        _ => return None,
    })
}

/// Returns the op of booleans: sums and maxima are disjunctions, products and minima are
/// conjunctions.
fn boolean_op(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Add | BinaryOp::Max | BinaryOp::BitwiseOr => BinaryOp::LogicalOr,
        BinaryOp::Multiply | BinaryOp::Min | BinaryOp::BitwiseAnd => BinaryOp::LogicalAnd,
        BinaryOp::BitwiseXor => BinaryOp::LogicalXor,
        other => other,
    }
}

impl Builder<'_> {
    pub(super) fn elementwise(
        &mut self,
        name: &str,
        operation: &Operation,
        x: &[ExprId],
    ) -> Result<Option<ExprId>, Fail> {
        if name.starts_with("chlo.broadcast_") {
            self.check_broadcast(operation, x)?;
        }
        if let Some(op) = unary_op(name) {
            let [x] = as_array(x)?;
            let is_not = op == UnaryOp::BitwiseNot && self.graph.dtype(x).is_pred();
            let op = if is_not { UnaryOp::LogicalNot } else { op };
            return Ok(Some(self.graph.unary(op, x)?));
        }
        if let Some(op) = binary_op(name) {
            let [x, y] = as_array(x)?;
            return self.binary(op, x, y).map(Some);
        }
        let result = match name {
            "shift_right_arithmetic" | "shift_right_logical" => {
                let [x, y] = as_array(x)?;
                self.shift_right(x, y, name == "shift_right_arithmetic")?
            }
            "compare" | "chlo.broadcast_compare" => {
                let [x, y] = as_array(x)?;
                self.compare(operation, x, y)?
            }
            "select" | "chlo.broadcast_select" => {
                let [predicate, yes, no] = as_array(x)?;
                self.select(predicate, yes, no)?
            }
            "clamp" => {
                let [min, x, max] = as_array(x)?;
                self.clamp(x, min, max)?
            }
            "convert" => {
                let [x] = as_array(x)?;
                self.convert(x, operation.result(0)?.dtype)?
            }
            "bitcast_convert" => {
                let [x] = as_array(x)?;
                self.bitcast(x, operation.result(0)?.dtype)?
            }
            "is_finite" => self.graph.is_finite(as_array::<_, 1>(x)?[0])?,
            "reduce_precision" => {
                let [x] = as_array(x)?;
                self.reduce_precision(operation, x)?
            }
            "sign" => self.sign(as_array::<_, 1>(x)?[0])?,
            "chlo.square" => self.graph.square(as_array::<_, 1>(x)?[0])?,
            "chlo.lgamma" => self.graph.log_gamma(as_array::<_, 1>(x)?[0])?,
            "chlo.digamma" => self.digamma(as_array::<_, 1>(x)?[0])?,
            "chlo.next_after" | "chlo.broadcast_next_after" => {
                let [x, y] = as_array(x)?;
                self.graph.next_after(x, y)?
            }
            "chlo.is_pos_inf" | "chlo.is_neg_inf" => {
                let [x] = as_array(x)?;
                let dtype = self.graph.dtype(x);
                let sign = if name == "chlo.is_pos_inf" { 1.0 } else { -1.0 };
                let infinity = self.number(sign * f64::INFINITY, dtype)?;
                self.graph.equal(x, infinity)?
            }
            _ => return Ok(None),
        };
        Ok(Some(result))
    }

    /// Returns the digamma function, which is NaN at the pole 0. The infinities of nxla's digamma there
    /// are the limits from one side. The derivative is unchanged.
    fn digamma(&mut self, x: ExprId) -> Result<ExprId, Fail> {
        let dtype = self.graph.dtype(x);
        let (zero, nan) = (self.number(0.0, dtype)?, self.number(f64::NAN, dtype)?);
        let value = self.graph.digamma(x)?;
        let is_pole = self.graph.equal(x, zero)?;
        let term = self.graph.select(is_pole, nan, zero)?;
        Ok(self.graph.add(value, term)?)
    }

    /// Returns the sign. A zero of a float keeps its sign, which nxla's sign drops.
    fn sign(&mut self, x: ExprId) -> Result<ExprId, Fail> {
        let dtype = self.graph.dtype(x);
        let sign = self.graph.sign(x)?;
        if !dtype.is_float() {
            return Ok(sign);
        }
        let zero = self.number(0.0, dtype)?;
        let is_zero = self.graph.equal(x, zero)?;
        let signed_zero = self.signed_zero(x)?;
        Ok(self.graph.select(is_zero, signed_zero, sign)?)
    }

    /// Checks that the operand of lower rank has the last axes of the result, as in NumPy.
    fn check_broadcast(&self, operation: &Operation, x: &[ExprId]) -> Result<(), Fail> {
        let Some(found) = operation.optional(&["broadcast_dimensions"])? else { return Ok(()) };
        let ranks = || x.iter().map(|&id| self.graph.shape(id).rank());
        let (low, high) = (ranks().min().unwrap_or(0), ranks().max().unwrap_or(0));
        if sizes_of(&found)?.into_iter().eq(high - low..high) {
            return Ok(());
        }
        unsupported(format!("broadcast_dimensions: must be the last {low} axes; got {found:?}"))
    }

    /// Builds a binary operation with the semantics of StableHLO for booleans and integers.
    pub(super) fn binary(&mut self, op: BinaryOp, x: ExprId, y: ExprId) -> Result<ExprId, Fail> {
        let dtype = self.graph.dtype(x);
        let op = if dtype.is_pred() { boolean_op(op) } else { op };
        let op = match op {
            BinaryOp::Divide if dtype.is_integer() => BinaryOp::Quotient,
            other => other,
        };
        if let Some(known) = self.own_form(op, x, y)? {
            return Ok(known);
        }
        let [x, y] = self.without_broadcasts([x, y])?;
        Ok(self.graph.binary(op, x, y)?)
    }

    fn shift_right(&mut self, x: ExprId, y: ExprId, arithmetic: bool) -> Result<ExprId, Fail> {
        let dtype = self.graph.dtype(x);
        if dtype.is_signed() == arithmetic {
            return self.binary(BinaryOp::RightShift, x, y);
        }
        let Some(other) = opposite(dtype) else {
            return malformed("operands must be integers");
        };
        let (x, y) = (self.graph.bitcast(x, other)?, self.graph.bitcast(y, other)?);
        let shifted = self.binary(BinaryOp::RightShift, x, y)?;
        Ok(self.graph.bitcast(shifted, dtype)?)
    }

    fn compare(&mut self, operation: &Operation, x: ExprId, y: ExprId) -> Result<ExprId, Fail> {
        let keywords = operation.keywords();
        let direction = operation.text(&["comparison_direction"]).or(keywords.first().copied());
        let kind = operation.text(&["compare_type"]).or(keywords.get(1).copied());
        let op = match direction {
            Some("EQ") => BinaryOp::Equal,
            Some("NE") => BinaryOp::NotEqual,
            Some("LT") => BinaryOp::Less,
            Some("LE") => BinaryOp::LessEqual,
            Some("GT") => BinaryOp::Greater,
            Some("GE") => BinaryOp::GreaterEqual,
            _ => return malformed("the direction must be EQ, NE, LT, LE, GT or GE"),
        };
        let (mut x, mut y) = (x, y);
        if kind == Some("TOTALORDER") && self.graph.dtype(x).is_float() {
            (x, y) = (self.total_order_key(x)?, self.total_order_key(y)?);
        }
        self.binary(op, x, y)
    }

    /// Returns integers with the total order of floats: -NaN, -infinity, …, -0, 0, …, infinity, NaN.
    pub(super) fn total_order_key(&mut self, x: ExprId) -> Result<ExprId, Fail> {
        let dtype = self.graph.dtype(x);
        let Some(bits) = signed_of(dtype.bits()) else {
            return unsupported(format!("the total order of {dtype} is not supported"));
        };
        let bits_of_x = self.graph.bitcast(x, bits)?;
        let zero = self.graph.scalar_constant(Scalar::zero(bits), bits)?;
        let magnitude = self.graph.scalar_constant(bits.max_value(), bits)?;
        let flipped = self.graph.bitwise_xor(bits_of_x, magnitude)?;
        let is_negative = self.graph.less(bits_of_x, zero)?;
        Ok(self.graph.select(is_negative, flipped, bits_of_x)?)
    }

    fn clamp(&mut self, x: ExprId, min: ExprId, max: ExprId) -> Result<ExprId, Fail> {
        if let (Some(min), Some(max)) = (self.splat(min)?, self.splat(max)?) {
            return Ok(self.graph.clip(x, min, max)?);
        }
        let above = self.graph.max(x, min)?;
        Ok(self.graph.min(above, max)?)
    }

    /// Returns the scalar that a tensor repeats, if that is known.
    fn splat(&mut self, x: ExprId) -> Result<Option<ExprId>, Fail> {
        if self.graph.shape(x).rank() == 0 {
            return Ok(Some(x));
        }
        let scalar = match self.graph.op(x) {
            Op::Constant(constant) => (constant.value, constant.ty.dtype),
            Op::Broadcast(_) => {
                let operand = self.graph.operands(x)[0];
                return Ok((self.graph.shape(operand).rank() == 0).then_some(operand));
            }
            _ => return Ok(None),
        };
        Ok(Some(self.graph.scalar_constant(scalar.0, scalar.1)?))
    }
}

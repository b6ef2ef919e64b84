//! Ops that nxla and JAX write as several operations, and broadcasts that an op implies.

use nxla_expr::{BinaryOp, ExprId, Op, UnaryOp};
use nxla_tensor::{DType, Scalar, Shape, broadcast_shapes};

use super::{Builder, Fail};
use crate::float8::to_float8;

impl Builder<'_> {
    /// Returns the op that this operation on two operands stands for: a test for NaN or infinity, the
    /// identity matrix as a comparison of indices, the conjugate by its parts, and a sigmoid.
    pub(super) fn own_form(
        &mut self,
        op: BinaryOp,
        x: ExprId,
        y: ExprId,
    ) -> Result<Option<ExprId>, Fail> {
        let is_float = self.graph.dtype(x).is_float();
        let known = match (op, self.graph.op(x), self.graph.op(y)) {
            (BinaryOp::NotEqual, ..) if x == y && is_float => self.graph.is_nan(x)?,
            (BinaryOp::Equal, Op::Unary(UnaryOp::Abs), _)
                if is_float && self.is_number(y, f64::INFINITY) =>
            {
                self.graph.is_infinity(self.graph.operands(x)[0])?
            }
            (BinaryOp::Equal, Op::Iota(row), Op::Iota(column))
                if row.ty.rank() >= 2
                    && row.ty.shape == column.ty.shape
                    && row.axis == Some(row.ty.rank() - 2)
                    && column.axis == Some(row.ty.rank() - 1) =>
            {
                self.graph.eye(row.ty.shape.clone(), DType::Pred)?
            }
            (BinaryOp::Complex, Op::Unary(UnaryOp::Real), Op::Unary(UnaryOp::Negate)) => {
                let (z, part) = (self.graph.operands(x)[0], self.graph.operands(y)[0]);
                let is_imaginary = matches!(self.graph.op(part), Op::Unary(UnaryOp::Imag))
                    && self.graph.operands(part)[0] == z
                    && self.graph.dtype(z).is_complex();
                if !is_imaginary {
                    return Ok(None);
                }
                self.graph.conjugate(z)?
            }
            (BinaryOp::Divide, ..) if is_float && self.is_number(x, 1.0) => {
                let Some(z) = self.sigmoid_of(y) else { return Ok(None) };
                self.graph.sigmoid(z)?
            }
            _ => return Ok(None),
        };
        Ok(Some(known))
    }

    /// Returns `z` if a value is `1 + exp(-z)`. JAX writes a sigmoid as the inverse of this sum, whose
    /// derivative is NaN where the exponential overflows.
    fn sigmoid_of(&self, sum: ExprId) -> Option<ExprId> {
        let [one, exp] = self.operands_of(sum, BinaryOp::Add)?;
        let (one, exp) = if self.is_number(one, 1.0) { (one, exp) } else { (exp, one) };
        let z = self.operand_of(self.operand_of(exp, UnaryOp::Exp)?, UnaryOp::Negate)?;
        let is_whole = self.graph.shape(z) == self.graph.shape(sum);
        (is_whole && self.is_number(one, 1.0)).then_some(z)
    }

    /// Returns `[x, y]` if a value is `max(x, y) + log1p(exp(-abs(x - y)))`. JAX writes a softplus in
    /// this way, whose terms have no derivative where `x` and `y` are equal.
    fn log_add_exp_of(&self, sum: ExprId) -> Option<[ExprId; 2]> {
        let terms = self.operands_of(sum, BinaryOp::Add)?;
        let [max, log] = match self.graph.op(terms[0]) {
            Op::Binary(BinaryOp::Max) => terms,
            _ => [terms[1], terms[0]],
        };
        let [x, y] = self.operands_of(max, BinaryOp::Max)?;
        let negated = self.operand_of(self.operand_of(log, UnaryOp::Log1p)?, UnaryOp::Exp)?;
        let difference =
            self.operand_of(self.operand_of(negated, UnaryOp::Negate)?, UnaryOp::Abs)?;
        let is_of = |x: ExprId, y: ExprId| {
            self.operands_of(difference, BinaryOp::Subtract) == Some([x, y])
                || (difference == x && self.is_number(y, 0.0))
        };
        (is_of(x, y) || is_of(y, x)).then_some([x, y])
    }

    /// Returns `x` if a selection is the inverse of the error function by Giles, 2012: a polynomial of
    /// `log1p(-x * x)` times `x`, and `infinity * x` where the magnitude of `x` is 1. `jax.export` writes
    /// the function in this way, whose gradient is `0 * infinity` for every `x`.
    fn erf_inv_of(&self, predicate: ExprId, yes: ExprId, no: ExprId) -> Option<ExprId> {
        let [magnitude, one] = self.operands_of(predicate, BinaryOp::Equal)?;
        let x = self.operand_of(magnitude, UnaryOp::Abs)?;
        let infinity = self.other_factor(yes, x)?;
        let polynomial = self.other_factor(no, x)?;
        // In `float32` each coefficient is selected, and in `float64` the polynomial.
        let selection = match self.operands_of(polynomial, BinaryOp::Add) {
            Some([selected, _]) => selected,
            None => polynomial,
        };
        let (Op::Select, &[is_central, central, _]) =
            (self.graph.op(selection), self.graph.operands(selection))
        else {
            return None;
        };
        let constant = match self.operands_of(central, BinaryOp::Add) {
            Some([constant, _]) => constant,
            None => central,
        };
        let [w, limit] = self.operands_of(is_central, BinaryOp::Less)?;
        let square = self.operand_of(self.operand_of(w, UnaryOp::Negate)?, UnaryOp::Log1p)?;
        let is_of_square = self.operand_of(self.other_factor(square, x)?, UnaryOp::Negate)? == x;
        let of_dtype = |bound: f64, first: f64| {
            self.is_number(limit, bound) && self.is_number(constant, first)
        };
        let is_whole = self.graph.shape(x) == self.graph.shape(no);
        let is_edge = self.is_number(one, 1.0) && self.is_number(infinity, f64::INFINITY);
        let is_known =
            of_dtype(5.0, f64::from(1.501_409_4_f32)) || of_dtype(6.25, 1.653_654_562_683_102_7);
        (is_whole && is_edge && is_of_square && is_known).then_some(x)
    }

    /// Returns `y` if a value is `x * y` or `y * x`.
    fn other_factor(&self, product: ExprId, x: ExprId) -> Option<ExprId> {
        match self.operands_of(product, BinaryOp::Multiply)? {
            [left, right] if right == x => Some(left),
            [left, right] if left == x => Some(right),
            _ => None,
        }
    }

    fn operand_of(&self, id: ExprId, op: UnaryOp) -> Option<ExprId> {
        match (self.graph.op(id), self.graph.operands(id)) {
            (Op::Unary(found), &[x]) if *found == op => Some(x),
            _ => None,
        }
    }

    fn operands_of(&self, id: ExprId, op: BinaryOp) -> Option<[ExprId; 2]> {
        match (self.graph.op(id), self.graph.operands(id)) {
            (Op::Binary(found), &[x, y]) if *found == op => Some([x, y]),
            _ => None,
        }
    }

    /// Converts to a dtype. A number beyond the range of `f8_e4m3fn` becomes NaN, but nxla converts the
    /// number to the largest one, which it writes as a clamp.
    pub(super) fn convert(&mut self, x: ExprId, dtype: DType) -> Result<ExprId, Fail> {
        match (self.graph.op(x), self.graph.operands(x)) {
            (Op::Eye(ty), _) => Ok(self.graph.eye(ty.shape.clone(), dtype)?),
            (Op::Clip, &[x, min, max])
                if dtype == DType::F8E4M3FN
                    && self.is_number(min, -448.0)
                    && self.is_number(max, 448.0) =>
            {
                Ok(self.graph.as_type(x, dtype)?)
            }
            _ if dtype == DType::F8E4M3FN => Ok(to_float8(&mut self.graph, x, dtype, false)?),
            _ => Ok(self.graph.as_type(x, dtype)?),
        }
    }

    /// Removes broadcasts that an element-wise operation implies: of constants, and along leading axes
    /// and axes of size 1. StableHLO has no implicit broadcasts.
    pub(super) fn without_broadcasts<const N: usize>(
        &mut self,
        operands: [ExprId; N],
    ) -> Result<[ExprId; N], Fail> {
        let expected = self.joint_shape(&operands)?;
        let mut found = operands;
        for position in 0..N {
            let whole = found[position];
            let narrow = match self.graph.op(whole) {
                Op::Constant(constant) => {
                    let (value, dtype) = (constant.value, constant.ty.dtype);
                    self.graph.scalar_constant(value, dtype)?
                }
                Op::Broadcast(broadcast) => {
                    let added = broadcast.shape.rank() - broadcast.axes.len();
                    if !broadcast.axes.iter().copied().eq(added..broadcast.shape.rank()) {
                        continue;
                    }
                    self.graph.operands(whole)[0]
                }
                _ => continue,
            };
            found[position] = narrow;
            if self.joint_shape(&found)? != expected {
                found[position] = whole;
            }
        }
        Ok(found)
    }

    /// Returns the shape to which operands are broadcast together.
    fn joint_shape(&self, operands: &[ExprId]) -> Result<Shape, Fail> {
        operands.iter().try_fold(Shape::scalar(), |shape, &id| {
            broadcast_shapes(&shape, self.graph.shape(id))
                .map_err(|_| Fail::Malformed("operands must have one shape".into()))
        })
    }

    /// Returns whether all elements of a value are this number.
    pub(super) fn is_number(&self, id: ExprId, number: f64) -> bool {
        let Op::Constant(constant) = self.graph.op(id) else { return false };
        let (real, imaginary) = constant.value.parts();
        real.to_bits() == number.to_bits() && imaginary == 0.0
    }

    /// Builds a selection, or the op that it stands for: a conversion of a boolean, the sign of a
    /// number, the quotient or remainder of integers where a divisor may be zero, the logarithm of
    /// a sum of exponentials, and the inverse of the error function.
    pub(super) fn select(
        &mut self,
        predicate: ExprId,
        yes: ExprId,
        no: ExprId,
    ) -> Result<ExprId, Fail> {
        let dtype = self.graph.dtype(yes);
        let is_whole = self.graph.shape(predicate) == self.graph.shape(yes);
        let is_boolean = is_whole && self.graph.dtype(predicate).is_pred();
        if is_boolean && self.is_number(yes, 1.0) && self.is_number(no, 0.0) {
            return self.convert(predicate, dtype);
        }
        if let Some((sign, x)) = self.sign_of(no)
            && self.is_number(yes, 0.0)
            && self.is_zero_test(predicate, x)
        {
            return Ok(sign);
        }
        if let Some([x, y]) = self.log_add_exp_of(no)
            && matches!(self.graph.op(predicate), Op::Unary(UnaryOp::IsNan))
            && self.joint_shape(&[x, y])? == *self.graph.shape(no)
        {
            return Ok(self.graph.log_add_exp(x, y)?);
        }
        if let Some(x) = self.erf_inv_of(predicate, yes, no) {
            return Ok(self.graph.erf_inv(x)?);
        }
        if let (&Op::Binary(op @ (BinaryOp::Quotient | BinaryOp::Remainder)), &[x, divisor]) =
            (self.graph.op(no), self.graph.operands(no))
            && let (Op::Select, &[is_zero, one, y]) =
                (self.graph.op(divisor), self.graph.operands(divisor))
            && is_zero == predicate
            && self.is_number(one, 1.0)
            && self.is_zero_test(predicate, y)
            && self.joint_shape(&[x, y])? == *self.graph.shape(no)
        {
            let is_zero_case = match op {
                BinaryOp::Remainder => yes == x,
                _ => self.has_all_bits(yes),
            };
            if is_zero_case {
                return Ok(self.graph.binary(op, x, y)?);
            }
        }
        let [predicate, yes, no] = self.without_broadcasts([predicate, yes, no])?;
        Ok(self.graph.select(predicate, yes, no)?)
    }

    /// Returns the sign in the form of [`Builder::sign`], and its operand.
    fn sign_of(&self, id: ExprId) -> Option<(ExprId, ExprId)> {
        let (is_zero, sign) = match (self.graph.op(id), self.graph.operands(id)) {
            (Op::Select, &[is_zero, _, sign]) => (Some(is_zero), sign),
            _ => (None, id),
        };
        let (Op::Unary(UnaryOp::Sign), &[x]) = (self.graph.op(sign), self.graph.operands(sign))
        else {
            return None;
        };
        let is_own = is_zero.is_none_or(|is_zero| self.is_zero_test(is_zero, x));
        is_own.then_some((sign, x))
    }

    /// Returns whether a predicate is `x == 0`.
    fn is_zero_test(&self, predicate: ExprId, x: ExprId) -> bool {
        let &[left, right] = self.graph.operands(predicate) else { return false };
        let is_equality = matches!(self.graph.op(predicate), Op::Binary(BinaryOp::Equal));
        is_equality && left == x && self.is_number(right, 0.0)
    }

    /// Returns whether all bits of all elements of a value are known to be set.
    fn has_all_bits(&self, id: ExprId) -> bool {
        match (self.graph.op(id), self.graph.operands(id)) {
            (Op::Constant(constant), _) => {
                let dtype = constant.ty.dtype;
                dtype.is_integer() && constant.value == Scalar::Int(-1).cast(dtype)
            }
            (Op::Unary(UnaryOp::BitwiseNot), &[x]) => self.is_number(x, 0.0),
            _ => false,
        }
    }
}

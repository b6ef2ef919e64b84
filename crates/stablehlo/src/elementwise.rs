//! Element-wise ops, written from the lowering column of the op table.

use nxla_expr::{BinaryClass, BinaryOp, Composed, Lowering, Op, TensorType, UnaryOp};
use nxla_tensor::{DType, Scalar, promote_keep_pred};

use crate::complex;
use crate::context::Cx;
use crate::linalg::conjugate;
use crate::power;
use crate::region::Source;
use crate::widen;
use crate::writer::Value;

pub(crate) fn lower(cx: &mut Cx<'_>, op: &Op, operands: &[Source], ty: &TensorType) -> Value {
    match (op, operands) {
        (Op::Unary(op), &[x]) => unary(cx, *op, x, ty),
        (Op::Binary(op), &[x, y]) => binary(cx, *op, x, y, ty),
        (Op::Select, &[predicate, on_true, on_false]) => {
            let on_true = cx.coerce(on_true, ty.dtype, &ty.shape);
            let on_false = cx.coerce(on_false, ty.dtype, &ty.shape);
            let mut predicate = cx.cast(predicate, DType::Pred);
            if cx.shape(predicate.ty).rank() != 0 {
                predicate = cx.broadcast_right(predicate, &ty.shape);
            }
            cx.select(predicate, on_true, on_false)
        }
        (Op::Clip, &[x, min, max]) => {
            let x = cx.cast(x, ty.dtype);
            let (min, max) = (cx.cast(min, ty.dtype), cx.cast(max, ty.dtype));
            cx.operation("stablehlo.clamp", &[min, x, max], x.ty)
        }
        (Op::AsType(dtype), &[x]) => cx.cast(x, *dtype),
        (Op::Bitcast(dtype), &[x]) => bitcast(cx, x, *dtype),
        (
            op @ (Op::Unary(_)
            | Op::Binary(_)
            | Op::Select
            | Op::Clip
            | Op::AsType(_)
            | Op::Bitcast(_)),
            operands,
        ) => unreachable!("{} of {} operands", op.name(), operands.len()),
        (op @ nxla_expr::outside!(elementwise), _) => {
            unreachable!("{} is of another family", op.name())
        }
    }
}

/// A `pred` is one bit in XLA, but one byte that is 0 or 1 to the user.
fn bitcast(cx: &mut Cx<'_>, x: Source, dtype: DType) -> Value {
    let mut value = cx.value(x);
    if cx.dtype(value.ty).is_pred() {
        value = cx.convert(value, DType::U8);
    }
    let whole = if dtype.is_pred() { DType::U8 } else { dtype };
    if cx.dtype(value.ty) != whole {
        let ty = cx.ty_with_dtype(value, whole);
        value = cx.operation("stablehlo.bitcast_convert", &[value], ty);
    }
    if dtype.is_pred() { cx.convert(value, dtype) } else { value }
}

fn unary(cx: &mut Cx<'_>, op: UnaryOp, x: Source, ty: &TensorType) -> Value {
    match op.lowering() {
        Lowering::Composed(composed) => compose(cx, composed, &[x], ty),
        Lowering::Compare(_) => unreachable!("comparisons have two operands"),
        Lowering::Direct(_) if op == UnaryOp::Cbrt && ty.dtype.is_complex() => {
            // StableHLO has the cube root of real numbers only; this is the principal one.
            let x = cx.cast(x, ty.dtype);
            let third = cx.splat(Scalar::Complex(1.0 / 3.0, 0.0), ty.dtype, &ty.shape);
            cx.uniform("stablehlo.power", &[x, third])
        }
        Lowering::Direct(name) => {
            let x = cx.cast(x, widen::unary(op, ty.dtype));
            let whole = if ty.dtype.is_complex() { complex::unary(cx, op, name, x) } else { None };
            let y = whole.unwrap_or_else(|| cx.uniform(name, &[x]));
            cx.convert(y, ty.dtype)
        }
    }
}

fn binary(cx: &mut Cx<'_>, op: BinaryOp, x: Source, y: Source, ty: &TensorType) -> Value {
    let compute = match op.class() {
        BinaryClass::Equality | BinaryClass::Order => {
            promote_keep_pred(cx.dtype(x.ty()), cx.dtype(y.ty()))
        }
        // Logical ops have `pred` results and `pred` operands.
        BinaryClass::Logical => DType::Pred,
        BinaryClass::Parts => ty.dtype.to_real(),
        BinaryClass::Arithmetic
        | BinaryClass::Ordered
        | BinaryClass::Float
        | BinaryClass::Int
        | BinaryClass::Bits => ty.dtype,
    };
    if op == BinaryOp::Pow && ty.dtype.is_integer() {
        return power::integer(cx, x, y, ty);
    }
    let may_be_zero = !matches!(y, Source::Splat(number, _) if !number.cast(compute).is_zero());
    // Operands are rounded to the promoted dtype before the computation.
    let x = cx.coerce(x, compute, &ty.shape);
    let y = cx.coerce(y, compute, &ty.shape);
    let compute = widen::arithmetic(compute);
    let (x, y) = (cx.convert(x, compute), cx.convert(y, compute));
    match op.lowering() {
        Lowering::Direct(name) => {
            let result = cx.uniform(name, &[x, y]);
            cx.convert(result, ty.dtype)
        }
        Lowering::Compare(direction) => cx.compare(direction, x, y),
        Lowering::Composed(Composed::Complex) => {
            let ty = cx.ty_with_dtype(x, ty.dtype);
            cx.operation("stablehlo.complex", &[x, y], ty)
        }
        Lowering::Composed(composed @ (Composed::Quotient | Composed::Remainder))
            if compute.is_integer() && may_be_zero =>
        {
            let result = divide(cx, composed, x, y);
            cx.convert(result, ty.dtype)
        }
        Lowering::Composed(composed) => {
            let operands = [x.into(), y.into()];
            let result = compose(cx, composed, &operands, &ty.with_dtype(compute));
            cx.convert(result, ty.dtype)
        }
    }
}

/// Ops that take more than one operation, or another one for each kind of dtype. The operands of
/// binary ops have been converted to the dtype they are computed in.
fn compose(cx: &mut Cx<'_>, op: Composed, operands: &[Source], ty: &TensorType) -> Value {
    let same = |cx: &mut Cx<'_>, name: &str| -> Value {
        let operands: Vec<Value> = operands.iter().map(|&x| cx.cast(x, ty.dtype)).collect();
        cx.uniform(name, &operands)
    };
    let logical = |cx: &mut Cx<'_>, name: &str| -> Value {
        let operands: Vec<Value> = operands.iter().map(|&x| cx.cast(x, DType::Pred)).collect();
        cx.uniform(name, &operands)
    };
    match op {
        Composed::Negate => same(cx, "stablehlo.negate"),
        Composed::Pow if ty.dtype.is_complex() => {
            let result = same(cx, "stablehlo.power");
            power::of_zero(cx, operands, result)
        }
        Composed::Pow => same(cx, "stablehlo.power"),
        Composed::Quotient => same(cx, "stablehlo.divide"),
        Composed::Remainder => same(cx, "stablehlo.remainder"),
        Composed::RightShift if ty.dtype.is_signed() => {
            same(cx, "stablehlo.shift_right_arithmetic")
        }
        Composed::RightShift => same(cx, "stablehlo.shift_right_logical"),
        Composed::Sign if ty.dtype.is_unsigned() => {
            let x = cx.cast(operands[0], ty.dtype);
            let one = cx.splat(Scalar::UInt(1), ty.dtype, &ty.shape);
            cx.uniform("stablehlo.minimum", &[x, one])
        }
        Composed::Sign => sign(cx, operands[0], ty.dtype),
        Composed::Floor => round_floats(cx, "stablehlo.floor", operands[0], ty),
        Composed::Ceil => round_floats(cx, "stablehlo.ceil", operands[0], ty),
        Composed::Round => round_floats(cx, "stablehlo.round_nearest_afz", operands[0], ty),
        Composed::RoundEven if ty.dtype.is_complex() => {
            parts(cx, operands[0], ty.dtype, "stablehlo.round_nearest_even")
        }
        Composed::RoundEven => round_floats(cx, "stablehlo.round_nearest_even", operands[0], ty),
        Composed::Abs => abs(cx, operands[0], ty.dtype),
        Composed::IsNan => each_part(cx, operands[0], |cx, x| cx.compare("NE", x, x)),
        Composed::IsInfinity => each_part(cx, operands[0], is_infinity),
        Composed::LogicalNot => logical(cx, "stablehlo.not"),
        Composed::LogicalAnd => logical(cx, "stablehlo.and"),
        Composed::LogicalOr => logical(cx, "stablehlo.or"),
        Composed::LogicalXor => logical(cx, "stablehlo.xor"),
        Composed::Real => part(cx, "stablehlo.real", operands[0], ty),
        Composed::Imag if !cx.dtype(operands[0].ty()).is_complex() => {
            cx.splat(Scalar::UInt(0), ty.dtype, &ty.shape)
        }
        Composed::Imag => part(cx, "stablehlo.imag", operands[0], ty),
        Composed::Complex => unreachable!("its operands have another dtype than its result"),
        Composed::Conjugate => {
            let x = cx.cast(operands[0], ty.dtype);
            conjugate(cx, x)
        }
    }
}

/// StableHLO leaves zeros their sign, the standard does not.
fn sign(cx: &mut Cx<'_>, x: Source, dtype: DType) -> Value {
    let x = cx.cast(x, dtype);
    let sign = if dtype.is_complex() {
        complex::direction(cx, x)
    } else {
        cx.uniform("stablehlo.sign", &[x])
    };
    if dtype.is_integer() {
        return sign;
    }
    let zero = cx.splat_like(Scalar::zero(dtype), x);
    let is_zero = cx.compare("EQ", x, zero);
    cx.select(is_zero, zero, sign)
}

/// The quotient or remainder of integers where a divisor may be zero: then the quotient has all
/// bits set, and the remainder is the dividend. A running program would return these values, but
/// where the operands are constants, or become such, XLA's compiler divides by them, which ends the
/// process.
fn divide(cx: &mut Cx<'_>, op: Composed, x: Value, y: Value) -> Value {
    let zero = cx.splat_like(Scalar::UInt(0), y);
    let one = cx.splat_like(Scalar::UInt(1), y);
    let by_zero = cx.compare("EQ", y, zero);
    let divisor = cx.select(by_zero, one, y);
    if op == Composed::Remainder {
        let rest = cx.uniform("stablehlo.remainder", &[x, divisor]);
        return cx.select(by_zero, x, rest);
    }
    let quotient = cx.uniform("stablehlo.divide", &[x, divisor]);
    let ones = cx.uniform("stablehlo.not", &[zero]);
    cx.select(by_zero, ones, quotient)
}

/// Integers are round already.
fn round_floats(cx: &mut Cx<'_>, name: &str, x: Source, ty: &TensorType) -> Value {
    let x = cx.cast(x, ty.dtype);
    if ty.dtype.is_float() { cx.uniform(name, &[x]) } else { x }
}

fn abs(cx: &mut Cx<'_>, x: Source, dtype: DType) -> Value {
    if cx.dtype(x.ty()).is_complex() {
        let x = cx.value(x);
        return complex::abs(cx, x);
    }
    let x = cx.cast(x, dtype);
    if dtype.is_unsigned() { x } else { cx.uniform("stablehlo.abs", &[x]) }
}

/// The real or imaginary part of a complex number; the real part of a real one is itself.
fn part(cx: &mut Cx<'_>, name: &str, x: Source, ty: &TensorType) -> Value {
    if !cx.dtype(x.ty()).is_complex() {
        return cx.cast(x, ty.dtype);
    }
    let x = cx.value(x);
    let ty = cx.ty_with_dtype(x, ty.dtype);
    cx.operation(name, &[x], ty)
}

/// An operation on each part of complex numbers.
fn parts(cx: &mut Cx<'_>, x: Source, dtype: DType, name: &str) -> Value {
    let x = cx.cast(x, dtype);
    let parts = cx.parts(x).map(|part| cx.uniform(name, &[part]));
    cx.operation("stablehlo.complex", &parts, x.ty)
}

/// Tests a float, or either part of a complex number, with a predicate that no integer
/// does.
fn each_part(cx: &mut Cx<'_>, x: Source, predicate: impl Fn(&mut Cx<'_>, Value) -> Value) -> Value {
    let dtype = cx.dtype(x.ty());
    if dtype.is_float() {
        let x = cx.value(x);
        return predicate(cx, x);
    }
    if !dtype.is_complex() {
        let shape = cx.shape(x.ty()).clone();
        return cx.splat(Scalar::UInt(0), DType::Pred, &shape);
    }
    let x = cx.value(x);
    let tests = cx.parts(x).map(|part| predicate(cx, part));
    cx.uniform("stablehlo.or", &tests)
}

fn is_infinity(cx: &mut Cx<'_>, x: Value) -> Value {
    if cx.dtype(x.ty) == DType::F8E4M3FN {
        // This dtype has no infinities.
        let shape = cx.shape(x.ty).clone();
        return cx.splat(Scalar::UInt(0), DType::Pred, &shape);
    }
    let magnitude = cx.uniform("stablehlo.abs", &[x]);
    let infinity = cx.splat_like(Scalar::Float(f64::INFINITY), x);
    cx.compare("EQ", magnitude, infinity)
}

//! Powers of integers.
//!
//! XLA uses only the low six bits of an exponent. Larger exponents are decomposed into digits of base
//! 64: `x^n` is the product of `(x^(64^i))^digit_i`.

use nxla_expr::TensorType;
use nxla_tensor::Scalar;

use crate::context::Cx;
use crate::region::Source;
use crate::writer::Value;

/// The number of bits of an exponent that XLA uses.
const DIGIT_BITS: u32 = 6;

/// Corrects a power of complex numbers for a base of zero: 0 for an exponent with a positive real
/// part. XLA computes the power by the logarithm, and returns NaN.
pub(crate) fn of_zero(cx: &mut Cx<'_>, operands: &[Source], power: Value) -> Value {
    let dtype = cx.dtype(power.ty);
    let (x, y) = (cx.cast(operands[0], dtype), cx.cast(operands[1], dtype));
    let zero = cx.splat_like(Scalar::UInt(0), power);
    let real = cx.ty_with_dtype(power, dtype.to_real());
    let exponent = cx.operation("stablehlo.real", &[y], real);
    let real_zero = cx.splat_like(Scalar::UInt(0), exponent);
    let is_zero = cx.compare("EQ", x, zero);
    let is_right = cx.compare("GT", exponent, real_zero);
    let vanishes = cx.uniform("stablehlo.and", &[is_zero, is_right]);
    cx.select(vanishes, zero, power)
}

/// `x^y`, wrapping; for a negative exponent 1 if `x` is 1, 1 or -1 if it is -1, and else 0.
pub(crate) fn integer(cx: &mut Cx<'_>, x: Source, y: Source, ty: &TensorType) -> Value {
    let exponent_bits = ty.dtype.bits() - u32::from(ty.dtype.is_signed());
    let is_small = match y {
        Source::Splat(number, _) => {
            let number = number.cast(ty.dtype).as_i64();
            number.is_some_and(|number| (0..1 << DIGIT_BITS).contains(&number))
        }
        Source::Value(_) => exponent_bits <= DIGIT_BITS,
    };
    let x = cx.coerce(x, ty.dtype, &ty.shape);
    let y = cx.coerce(y, ty.dtype, &ty.shape);
    if is_small {
        return cx.uniform("stablehlo.power", &[x, y]);
    }
    let number = |cx: &mut Cx<'_>, value: i64| cx.splat(Scalar::Int(value), ty.dtype, &ty.shape);
    let mask = number(cx, (1 << DIGIT_BITS) - 1);
    let (mut base, mut result) = (x, None);
    for shift in (0..exponent_bits).step_by(DIGIT_BITS as usize) {
        if shift > 0 {
            for _ in 0..DIGIT_BITS {
                base = cx.uniform("stablehlo.multiply", &[base, base]);
            }
        }
        let amount = number(cx, i64::from(shift));
        let digit = cx.uniform("stablehlo.shift_right_logical", &[y, amount]);
        let digit = cx.uniform("stablehlo.and", &[digit, mask]);
        let factor = cx.uniform("stablehlo.power", &[base, digit]);
        result = Some(match result {
            None => factor,
            Some(product) => cx.uniform("stablehlo.multiply", &[product, factor]),
        });
    }
    let result = result.expect("an exponent has bits");
    if ty.dtype.is_signed() { with_negative(cx, x, y, result) } else { result }
}

/// `result` where the exponent is not negative, and else the integer part of `1 / x^-y`.
fn with_negative(cx: &mut Cx<'_>, x: Value, y: Value, result: Value) -> Value {
    let [zero, one, minus_one] = [0, 1, -1].map(|value| cx.splat_like(Scalar::Int(value), y));
    let is_negative = cx.compare("LT", y, zero);
    let low_bit = cx.uniform("stablehlo.and", &[y, one]);
    let is_even = cx.compare("EQ", low_bit, zero);
    let sign = cx.select(is_even, one, minus_one);
    let is_one = cx.compare("EQ", x, one);
    let is_minus_one = cx.compare("EQ", x, minus_one);
    let fraction = cx.select(is_minus_one, sign, zero);
    let fraction = cx.select(is_one, one, fraction);
    cx.select(is_negative, fraction, result)
}

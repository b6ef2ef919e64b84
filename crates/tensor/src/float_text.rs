//! Decimal formatting of floats, in two styles.
//!
//! Both styles use the shortest digits that parse to the same number. They differ in the threshold
//! for exponents, and in the mantissa of a single digit: [`shortest_f64`] writes `1.0e-7` as Erlang
//! does, and [`shortest_as`] writes `1e-7` for types narrower than `f64`.

use crate::dtype::DType;
use crate::scalar::round_float;

/// The shortest digits and the position of the point: the number is `0.DIGITS × 10^place`.
struct Decimal {
    negative: bool,
    digits: String,
    place: i32,
}

impl Decimal {
    /// Parses `-1.25e-7`, the format of Rust's `{:e}`; the integer part may have several digits.
    fn from_scientific(text: &str) -> Decimal {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = split_exponent(text);
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}").trim_end_matches('0').to_owned();
        Decimal { negative, digits, place: exponent + whole.len() as i32 }
    }

    fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }

    /// Formats without an exponent: `123.45`, `0.00123`, `12300.0`.
    fn plain(&self) -> String {
        let (sign, digits) = (self.sign(), self.digits.as_str());
        let count = digits.len() as i32;
        if self.place <= 0 {
            let zeros = "0".repeat(self.place.unsigned_abs() as usize);
            format!("{sign}0.{zeros}{digits}")
        } else if self.place >= count {
            let zeros = "0".repeat((self.place - count) as usize);
            format!("{sign}{digits}{zeros}.0")
        } else {
            let (whole, fraction) = digits.split_at(self.place as usize);
            format!("{sign}{whole}.{fraction}")
        }
    }

    /// Formats with an exponent: `1.2345e2`, with `lone` after a mantissa of one digit.
    fn scientific(&self, lone: &str) -> String {
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { lone } else { "." };
        format!("{}{first}{point}{rest}e{}", self.sign(), self.place - 1)
    }

    /// Returns the number of characters that the exponent form adds to the digits.
    fn exponent_cost(&self) -> i32 {
        let point = if self.digits.len() == 1 { 2 } else { 1 };
        (self.place - 1).to_string().len() as i32 + 1 + point
    }
}

/// Splits `-1.25e-7` into `-1.25` and -7.
fn split_exponent(text: &str) -> (&str, i32) {
    let (mantissa, exponent) = text.split_once('e').expect("{:e} always prints an exponent");
    (mantissa, exponent.parse().expect("the exponent is a decimal number"))
}

/// Returns the string of a value without digits.
fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value == f64::INFINITY {
        Some("Inf")
    } else if value == f64::NEG_INFINITY {
        Some("-Inf")
    } else {
        None
    }
}

/// The digits after the decimal point of the smallest `f64`; further digits are zeros. Formatting
/// panics for more than 65,535 digits.
const MOST_DIGITS: usize = 1074;

/// Returns a value with a number of digits after the decimal point, in the style of NumPy: values
/// of at least 1e8, and values that would be rounded to zero, have an exponent.
pub(crate) fn rounded(value: f64, digits: usize) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    let digits = digits.min(MOST_DIGITS);
    let places = digits as i32;
    let size = value.abs();
    if size < 1e8 && (size == 0.0 || size >= 0.5 * 10.0_f64.powi(-places)) {
        return format!("{value:.digits$}");
    }
    let text = format!("{value:.digits$e}");
    let (mantissa, exponent) = split_exponent(&text);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// Returns the shortest string that parses to the same `f64`, in Erlang's style.
///
/// The exponent form is used only if it is shorter, and for integers from 2^53 on, whose plain
/// digits would not all be significant.
pub(crate) fn shortest_f64(value: f64) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0.0" } else { "0.0" }.to_owned();
    }
    let decimal = Decimal::from_scientific(&format!("{value:e}"));
    let (place, count) = (decimal.place, decimal.digits.len() as i32);
    let plain = if place < 0 {
        2 - place <= decimal.exponent_cost()
    } else if place >= count {
        place - count + 2 <= decimal.exponent_cost() && value.abs() < 9_007_199_254_740_992.0
    } else {
        true
    };
    if plain { decimal.plain() } else { decimal.scientific(".0") }
}

/// Returns the shortest string that parses to the same value of the float type `dtype`.
///
/// For `f64` (and types that are not floats) this is [`shortest_f64`]. For other types, an exponent
/// form with a one-digit mantissa counts one character less, so small numbers switch to exponents
/// earlier: `0.001`, `1e-4`, `100.0`, `1e3`.
pub(crate) fn shortest_as(value: f64, dtype: DType) -> String {
    if value == 0.0 || !value.is_finite() {
        return shortest_f64(value);
    }
    let scientific = match dtype {
        DType::F32 => format!("{:e}", value as f32),
        DType::F8E5M2 | DType::F8E4M3FN | DType::BF16 | DType::F16 => narrow_digits(value, dtype),
        _ => return shortest_f64(value),
    };
    let decimal = Decimal::from_scientific(&scientific);
    let count = decimal.digits.len() as i32;
    let cost = (decimal.place - 1).to_string().len() as i32 + 2;
    let plain = if decimal.place >= count {
        decimal.place - count + 2 <= cost + i32::from(count == 1)
    } else {
        decimal.place > 0 || 2 - decimal.place <= cost
    };
    if plain { decimal.plain() } else { decimal.scientific("") }
}

/// Returns the fewest digits that round to `value` in a format narrower than `f32`, as `1.25e-7`.
///
/// `value` must be finite, nonzero, and representable in the format.
fn narrow_digits(value: f64, dtype: DType) -> String {
    // Values above 448 saturate to 448 when parsed. The digits must still be within half a unit of
    // the value, as if the format had a larger number.
    let limit = if dtype == DType::F8E4M3FN { 464.0 } else { f64::INFINITY };
    let reads_back = |text: &str| {
        text.parse().is_ok_and(|read: f64| read.abs() <= limit && round_float(read, dtype) == value)
    };
    // A power of ten just above the value counts as shorter than a digit below it: 0.1 instead of
    // 0.09.
    let (_, exponent) = split_exponent(&format!("{value:e}"));
    let power = format!("{}e{}", 1_f64.copysign(value), exponent + 1);
    if reads_back(&power) {
        return power;
    }
    for precision in 0..17 {
        let nearest = format!("{value:.precision$e}");
        if reads_back(&nearest) {
            return nearest;
        }
        // Below a power of two, the interval of numbers that round to `value` is shorter than above
        // it. The nearest decimal can be outside of the interval, and the next decimal above
        // inside.
        let (mantissa, exponent) = split_exponent(&nearest);
        let mantissa: f64 = mantissa.parse().expect("the mantissa is a decimal number");
        let last_place = 10_f64.powi(-(precision as i32));
        let away = mantissa + last_place.copysign(mantissa);
        let above = format!("{away:.precision$}e{exponent}");
        if reads_back(&above) {
            return above;
        }
    }
    format!("{value:e}")
}

/// Joins the strings of the parts of a complex number: `1.0-2.0i`.
pub(crate) fn complex(real: &str, imag: &str) -> String {
    let plus = if imag.starts_with('-') { "" } else { "+" };
    format!("{real}{plus}{imag}i")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_end_with_the_smallest_float() {
        for value in [0.1, 5e-324, -1e300, 1e9] {
            assert_eq!(rounded(value, usize::MAX), rounded(value, MOST_DIGITS));
            assert_eq!(rounded(value, MOST_DIGITS).parse::<f64>(), Ok(value));
        }
    }

    #[test]
    fn erlang_style() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-2.5, "-2.5"),
            (0.1, "0.1"),
            (0.001, "0.001"),
            (0.0001, "0.0001"),
            (0.00012, "1.2e-4"),
            (0.00001, "1.0e-5"),
            (1e-8, "1.0e-8"),
            (100.0, "100.0"),
            (1000.0, "1.0e3"),
            (8101.0, "8101.0"),
            (8100.0, "8.1e3"),
            (7999.0, "7999.0"),
            (123_456.789, "123456.789"),
            (1e22, "1.0e22"),
            (9_007_199_254_740_991.0, "9007199254740991.0"),
            (9_007_199_254_740_992.0, "9.007199254740992e15"),
            (1.175_494_350_822_287_5e-35, "1.1754943508222875e-35"),
            (5e-324, "5.0e-324"),
            (f64::MAX, "1.7976931348623157e308"),
            (f64::from(0.333_333_34_f32), "0.3333333432674408"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Inf"),
        ];
        for (value, expected) in cases {
            assert_eq!(shortest_f64(value), expected);
        }
    }

    #[test]
    fn narrow_style() {
        let cases = [
            (DType::F32, 0.1, "0.1"),
            (DType::F32, -1e-7, "-1e-7"),
            (DType::F32, 1e7, "1e7"),
            (DType::F32, 1e20, "1e20"),
            (DType::F32, 123_456.79, "123456.79"),
            (DType::F32, 12_345_678.0, "12345678.0"),
            (DType::F32, 100.0, "100.0"),
            (DType::F32, 1000.0, "1e3"),
            (DType::F32, 1100.0, "1.1e3"),
            (DType::F32, 1110.0, "1110.0"),
            (DType::F32, 0.001, "0.001"),
            (DType::F32, 0.0012, "0.0012"),
            (DType::F32, 1e-4, "1e-4"),
            (DType::F32, f64::from(f32::from_bits(1)), "1e-45"),
            (DType::F32, f64::from(f32::MAX), "3.4028235e38"),
            (DType::F32, f64::from(f32::MIN_POSITIVE), "1.1754944e-38"),
            (DType::F32, -0.0, "-0.0"),
            (DType::F32, f64::NAN, "NaN"),
            (DType::F16, 0.1, "0.1"),
            (DType::F16, 65504.0, "6.55e4"),
            (DType::F16, 1.0 / 3.0, "0.3333"),
            (DType::BF16, 1.0 / 3.0, "0.334"),
            (DType::BF16, -f64::INFINITY, "-Inf"),
            (DType::F8E4M3FN, 0.1, "0.1"),
            (DType::F8E4M3FN, 448.0, "450.0"),
            (DType::F8E5M2, 0.1, "0.1"),
            (DType::F8E5M2, 57344.0, "6e4"),
            (DType::F64, 1e-7, "1.0e-7"),
        ];
        for (dtype, value, expected) in cases {
            assert_eq!(shortest_as(round_float(value, dtype), dtype), expected, "{dtype}");
        }
    }

    #[cfg_attr(miri, ignore = "it takes too long")]
    #[test]
    fn narrow_texts_round_trip() {
        use crate::small_float::{BF16, F8_E4M3FN, F8_E5M2, F16};
        let formats = [
            (DType::F8E5M2, &F8_E5M2, 0xff, 2),
            (DType::F8E4M3FN, &F8_E4M3FN, 0xff, 3),
            (DType::BF16, &BF16, 0xffff, 4),
            (DType::F16, &F16, 0xffff, 5),
        ];
        for (dtype, format, last, most_digits) in formats {
            for value in (0..=last).map(|bits| format.decode(bits)) {
                let text = shortest_as(value, dtype);
                if value.is_finite() {
                    assert_eq!(round_float(text.parse().unwrap(), dtype), value, "{dtype} {text}");
                    let scientific = format!("{:e}", text.parse::<f64>().unwrap());
                    let digits = Decimal::from_scientific(&scientific).digits;
                    assert!(digits.len() <= most_digits, "{dtype} {text}");
                }
            }
        }
    }

    #[test]
    fn shortest_decimal_is_not_always_nearest() {
        // The smallest normal bf16 number with a short lower interval whose two-digit decimal is
        // above it, found by comparison with the nearest decimals.
        let mut farther = 0;
        for bits in (0x0080..0x7f80).step_by(0x80) {
            let value = crate::small_float::BF16.decode(bits);
            let text = narrow_digits(value, DType::BF16);
            let precision = text.split_once('e').unwrap().0.len().saturating_sub(2);
            farther += usize::from(format!("{value:.precision$e}") != text);
        }
        assert!(farther > 0);
    }

    #[test]
    fn complex_parts() {
        assert_eq!(complex("NaN", "Inf"), "NaN+Infi");
        assert_eq!(complex("0.5", "-0.0"), "0.5-0.0i");
    }
}

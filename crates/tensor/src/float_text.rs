//! Decimal texts of floats, in the two styles Nx uses.
//!
//! Both start from the shortest digits that read back as the same number. They differ in when
//! they switch to an exponent and in whether a one-digit mantissa keeps its `.0`:
//! [`shortest_f64`] writes `1.0e-7`, the way Erlang prints its floats.

/// The shortest digits and where the point goes: the number is `0.DIGITS × 10^place`.
struct Decimal {
    negative: bool,
    digits: String,
    place: i32,
}

impl Decimal {
    /// Reads what Rust's `{:e}` prints, which has the shortest digits: `-1.25e-7`.
    fn from_scientific(text: &str) -> Decimal {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once('e').expect("{:e} always prints an exponent");
        let digits = mantissa.replace('.', "");
        let exponent: i32 = exponent.parse().expect("{:e} prints a decimal exponent");
        Decimal { negative, digits, place: exponent + 1 }
    }

    fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }

    /// `123.45`, `0.00123`, `12300.0`.
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

    /// `1.2345e2`, with `lone` after a mantissa of one digit.
    fn scientific(&self, lone: &str) -> String {
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { lone } else { "." };
        format!("{}{first}{point}{rest}e{}", self.sign(), self.place - 1)
    }

    /// How many characters the exponent form adds to the digits: `e`, the exponent, the point.
    fn exponent_cost(&self) -> i32 {
        let point = if self.digits.len() == 1 { 2 } else { 1 };
        (self.place - 1).to_string().len() as i32 + 1 + point
    }
}

/// The texts of the values that have no digits.
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

/// The shortest text that reads back as the same `f64`, in Erlang's style.
///
/// Plain notation is used unless the exponent form is shorter. Whole numbers from 2^53 on take
/// the exponent form, since not all of their plain digits would be significant.
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

/// Joins the texts of the two parts of a complex number: `1.0-2.0i`.
pub(crate) fn complex(real: &str, imag: &str) -> String {
    let plus = if imag.starts_with('-') { "" } else { "+" };
    format!("{real}{plus}{imag}i")
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn complex_parts() {
        assert_eq!(complex("NaN", "Inf"), "NaN+Infi");
        assert_eq!(complex("0.5", "-0.0"), "0.5-0.0i");
    }
}

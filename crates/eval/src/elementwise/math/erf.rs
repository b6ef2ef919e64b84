//! The inverse of the error function in `f64`.

use std::f64::consts::FRAC_1_SQRT_2;

use super::double::log;
use super::polynomial;

/// The `y` with `erf(y) = x`; infinite at ±1 and NaN beyond.
///
/// By the rational functions of M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal
/// Distribution" (Applied Statistics 37, 1988), which are right to about 1e-16: one of `x^2` where `x`
/// is not near ±1, and two of the root of the logarithm of what is missing to one. All three are
/// computed, so that there are no branches.
#[inline(always)]
pub(super) fn erf_inv(x: f64) -> f64 {
    let magnitude = x.abs();
    let centre = 0.180_625 - 0.25 * x * x;
    let centre = magnitude * (0.5 * quotient(centre, CENTRE));
    // Half of what is missing is exact.
    let w = (-log(0.5 - 0.5 * magnitude)).sqrt();
    let near = quotient(w - 1.6, NEAR);
    let far = quotient(w - 5.0, FAR);
    let tail = if w <= 5.0 { near } else { far };
    let tail = if magnitude == 1.0 { f64::INFINITY } else { tail };
    let y = if magnitude <= 0.85 { centre } else { tail };
    (y * FRAC_1_SQRT_2).copysign(x)
}

/// The quotient of two polynomials, coefficients from the highest degree down.
#[inline(always)]
fn quotient(x: f64, [above, below]: [[f64; 8]; 2]) -> f64 {
    polynomial(x, above) / polynomial(x, below)
}

const CENTRE: [[f64; 8]; 2] = [
    [
        2.509_080_928_730_122_7e3,
        3.343_057_558_358_813e4,
        6.726_577_092_700_87e4,
        4.592_195_393_154_987e4,
        1.373_169_376_550_946e4,
        1.971_590_950_306_551_3e3,
        1.331_416_678_917_843_8e2,
        3.387_132_872_796_366_5,
    ],
    [
        5.226_495_278_852_854e3,
        2.872_908_573_572_194_3e4,
        3.930_789_580_009_271e4,
        2.121_379_430_158_659_7e4,
        5.394_196_021_424_751e3,
        6.871_870_074_920_579e2,
        4.231_333_070_160_091e1,
        1.0,
    ],
];

const NEAR: [[f64; 8]; 2] = [
    [
        7.745_450_142_783_414e-4,
        2.272_384_498_926_918_4e-2,
        2.417_807_251_774_506e-1,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        5.475_938_084_995_345e-4,
        1.519_866_656_361_645_7e-2,
        1.481_039_764_274_800_8e-1,
        6.897_673_349_851e-1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
];

const FAR: [[f64; 8]; 2] = [
    [
        2.010_334_399_292_288_1e-7,
        2.711_555_568_743_487_6e-5,
        1.242_660_947_388_078_4e-3,
        2.653_218_952_657_612_4e-2,
        2.965_605_718_285_048_7e-1,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_7e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_8e-5,
        7.868_691_311_456_133e-4,
        1.487_536_129_085_061_5e-2,
        1.369_298_809_227_358e-1,
        5.998_322_065_558_88e-1,
        1.0,
    ],
];

#[cfg(test)]
mod tests {
    use super::erf_inv;

    #[test]
    fn inverts_erf() {
        for i in -2000..=2000 {
            let y = f64::from(i) / 400.0;
            let x = libm::erf(y);
            let back = libm::erf(erf_inv(x));
            assert!((back - x).abs() <= 4.0 * f64::EPSILON * x.abs(), "{y}: {x} {back}");
        }
    }

    #[test]
    fn keeps_digits_towards_one() {
        let near_one = 1.0 - 2_f64.powi(-30);
        let y = erf_inv(near_one);
        let relative = libm::erfc(y) / 2_f64.powi(-30) - 1.0;
        assert!(relative.abs() < 1e-13, "{relative}");
        let small = erf_inv(1e-10);
        assert!((small / 8.862_269_254_527_58e-11 - 1.0).abs() < 1e-14, "{small}");
    }

    #[test]
    fn edges() {
        assert_eq!(erf_inv(1.0), f64::INFINITY);
        assert_eq!(erf_inv(-1.0), f64::NEG_INFINITY);
        assert!(erf_inv(1.5).is_nan() && erf_inv(f64::NAN).is_nan());
        assert!(erf_inv(0.0) == 0.0 && erf_inv(-0.0).is_sign_negative());
    }
}

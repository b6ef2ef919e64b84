//! The error function, its complement, and its inverse, without branches and tables.

use std::f64::consts::FRAC_1_SQRT_2;

use super::double::{exp_of_two, log, product_in_two};
use super::{polynomial, polynomial_in_pairs};

/// `erf(x)`, by a polynomial for small `x`; the error is below two units in the last place.
#[inline(always)]
pub(super) fn erf(x: f64) -> f64 {
    let magnitude = x.abs();
    let large = 1.0 - erfc_above(magnitude);
    (if magnitude < 1.0 { erf_near(magnitude) } else { large }).copysign(x)
}

/// `1 - erf(x)`; the error is below four units in the last place.
#[inline(always)]
pub(super) fn erfc(x: f64) -> f64 {
    let magnitude = x.abs();
    let above = erfc_above(magnitude);
    let above = if x < 0.0 { 2.0 - above } else { above };
    if magnitude < 0.5 { 1.0 - erf_near(x) } else { above }
}

/// `erf(x)` for `|x| <= 1`.
#[inline(always)]
fn erf_near(x: f64) -> f64 {
    let series = polynomial_in_pairs(
        x * x,
        [
            5.957_176_147_748_911e-11,
            -1.137_284_885_679_167_4e-9,
            1.465_977_527_404_743_6e-8,
            -1.635_031_270_105_469_5e-7,
            1.646_100_048_412_136_8e-6,
            -1.492_559_526_683_118_2e-5,
            0.000_120_553_311_116_427_1,
            -0.000_854_832_698_083_379,
            0.005_223_977_624_818_014_5,
            -0.026_866_170_645_076_792,
            0.112_837_916_709_548_79,
            -0.376_126_389_031_837_5,
            0.128_379_167_095_512_6,
        ],
    );
    series.mul_add(x, x)
}

/// `erfc(x)` for a nonnegative `x`, as `e^(-x^2) p(t) / (1 + 2 x)` with a polynomial `p` of `t = (x
/// - 3) / (x + 3)`.
#[inline(always)]
fn erfc_above(x: f64) -> f64 {
    // From this value on, the result rounds to zero. NaN passes the comparison.
    let x = if x > 28.0 { 28.0 } else { x };
    let t = (x - 3.0) / (x + 3.0);
    let scaled = polynomial_in_pairs(
        t,
        [
            -4.210_104_975_119_195e-9,
            -8.500_119_502_115_306e-9,
            3.291_634_396_766_32e-8,
            9.186_243_026_143_847e-8,
            -1.311_166_137_536_459e-7,
            -6.050_048_623_933_503e-7,
            3.489_919_788_974_429_3e-7,
            3.463_997_532_352_904e-6,
            -7.275_875_746_667_183e-7,
            -2.009_663_087_595_395e-5,
            4.948_147_875_576_539e-6,
            0.000_125_098_151_748_643_22,
            -0.000_105_159_490_337_759_75,
            -0.000_779_832_037_961_111_5,
            0.001_888_690_312_003_782,
            0.002_529_391_788_270_445,
            -0.023_770_514_914_233_67,
            0.068_308_027_345_804_59,
            -0.119_273_663_415_528_53,
            0.129_645_158_702_705_52,
            -0.047_562_294_353_446_374,
            -0.135_621_106_124_580_7,
            1.253_008_058_269_729_6,
        ],
    ) / (1.0 + 2.0 * x);
    let (square, lost) = product_in_two(x, x);
    exp_of_two(-square, -lost) * scaled
}

/// The `y` with `erf(y) = x`; infinite at ±1 and NaN beyond. The rational functions are from M. J.
/// Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution" (Applied
/// Statistics 37, 1988), and are accurate to about 1e-16: a function of `x^2` if `x` is not near
/// ±1, and two functions of the square root of `-log(1 - |x|)` otherwise. All three are computed,
/// to avoid branches.
#[inline(always)]
pub(super) fn erf_inv(x: f64) -> f64 {
    let magnitude = x.abs();
    let center = 0.180_625 - 0.25 * x * x;
    let center = magnitude * (0.5 * rational(center, CENTER));
    // `0.5 - 0.5 * magnitude` is exact.
    let w = (-log(0.5 - 0.5 * magnitude)).sqrt();
    let near = rational(w - 1.6, NEAR);
    let far = rational(w - 5.0, FAR);
    let tail = if w <= 5.0 { near } else { far };
    let tail = if magnitude == 1.0 { f64::INFINITY } else { tail };
    let y = if magnitude <= 0.85 { center } else { tail };
    (y * FRAC_1_SQRT_2).copysign(x)
}

/// The quotient of two polynomials, coefficients from the highest degree down.
#[inline(always)]
fn rational(x: f64, [above, below]: [[f64; 8]; 2]) -> f64 {
    polynomial(x, above) / polynomial(x, below)
}

const CENTER: [[f64; 8]; 2] = [
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

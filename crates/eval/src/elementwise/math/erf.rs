//! The inverse of the error function in `f64`.

use std::f64::consts::PI;

/// The `y` with `erf(y) = x`; infinite at ±1 and NaN beyond.
///
/// The first guess is the single-precision approximation of M. Giles, "Approximating the erfinv
/// function" (GPU Computing Gems, Jade Edition, 2011), good to about 1e-7 wherever an `f32` can be,
/// and to a few digits closer to ±1. Each step of Halley's method triples the number of correct
/// digits: two are enough. Towards ±1 the residual is taken from `erfc`,
/// as `erf` has no digits left there.
pub(super) fn erf_inv(x: f64) -> f64 {
    let magnitude = x.abs();
    if magnitude.is_nan() || magnitude >= 1.0 {
        let edge = if magnitude == 1.0 { f64::INFINITY } else { f64::NAN };
        return edge.copysign(x);
    }
    let mut y = guess(magnitude);
    for _ in 0..2 {
        let residual = if magnitude < 0.5 {
            libm::erf(y) - magnitude
        } else {
            (1.0 - magnitude) - libm::erfc(y)
        };
        // Newton's step; the second derivative of erf is -2y times the first.
        let step = residual * (PI.sqrt() / 2.0) * (y * y).exp();
        y -= step / (1.0 + y * step);
    }
    y.copysign(x)
}

fn guess(x: f64) -> f64 {
    let w = -super::double::log((1.0 - x) * (1.0 + x));
    let (w, coefficients) = if w < 5.0 { (w - 2.5, CENTRE) } else { (w.sqrt() - 3.0, TAIL) };
    coefficients.iter().fold(0.0, |sum, coefficient| sum * w + coefficient) * x
}

const CENTRE: [f64; 9] = [
    2.810_226_36e-8,
    3.432_739_39e-7,
    -3.523_387_7e-6,
    -4.391_506_54e-6,
    2.185_808_7e-4,
    -1.253_725_03e-3,
    -4.177_681_64e-3,
    2.466_407_27e-1,
    1.501_409_41,
];

const TAIL: [f64; 9] = [
    -2.002_142_57e-4,
    1.009_505_58e-4,
    1.349_343_22e-3,
    -3.673_428_44e-3,
    5.739_507_73e-3,
    -7.622_461_3e-3,
    9.438_870_47e-3,
    1.001_674_06,
    2.832_976_82,
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

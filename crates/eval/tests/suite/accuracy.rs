//! Element-wise functions are accurate to the last bits, for numbers of all sizes and for special cases.

use std::f64::consts::FRAC_PI_2;
use std::slice::from_ref;

use nxla_expr::{BinaryOp, UnaryOp};
use nxla_tensor::{DType, HostTensor};

use super::common::{evaluate_op, tensor};

const INFINITE: f64 = f64::INFINITY;

/// A function: its op, its value in double precision, the largest argument for which the value is accurate, and
/// the units in the last place by which results of `f64` may differ from it.
type Function = (UnaryOp, fn(f64) -> f64, f64, u64);

const FUNCTIONS: [Function; 26] = [
    (UnaryOp::Exp, f64::exp, INFINITE, 1),
    (UnaryOp::Expm1, f64::exp_m1, INFINITE, 2),
    (UnaryOp::Log, f64::ln, INFINITE, 1),
    (UnaryOp::Log1p, f64::ln_1p, INFINITE, 2),
    (UnaryOp::Sigmoid, |x| 1.0 / (1.0 + (-x).exp()), 700.0, 3),
    (UnaryOp::Sin, f64::sin, INFINITE, 1),
    (UnaryOp::Cos, f64::cos, INFINITE, 1),
    (UnaryOp::Tan, f64::tan, INFINITE, 2),
    (UnaryOp::Asin, f64::asin, INFINITE, 2),
    (UnaryOp::Acos, f64::acos, INFINITE, 2),
    (UnaryOp::Atan, f64::atan, INFINITE, 2),
    (UnaryOp::Sinh, libm::sinh, INFINITE, 3),
    (UnaryOp::Cosh, libm::cosh, INFINITE, 2),
    (UnaryOp::Tanh, f64::tanh, INFINITE, 3),
    (UnaryOp::Asinh, libm::asinh, INFINITE, 4),
    (UnaryOp::Acosh, |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }, INFINITE, 4),
    (UnaryOp::Atanh, libm::atanh, INFINITE, 4),
    (UnaryOp::Sqrt, f64::sqrt, INFINITE, 0),
    (UnaryOp::Rsqrt, |x| 1.0 / x.sqrt(), INFINITE, 1),
    (UnaryOp::Cbrt, f64::cbrt, INFINITE, 1),
    (UnaryOp::Erf, libm::erf, INFINITE, 2),
    (UnaryOp::Erfc, libm::erfc, 26.0, 4),
    (UnaryOp::Round, f64::round, INFINITE, 0),
    (UnaryOp::RoundEven, f64::round_ties_even, INFINITE, 0),
    (UnaryOp::Floor, f64::floor, INFINITE, 0),
    (UnaryOp::Ceil, f64::ceil, INFINITE, 0),
];

/// `f64` numbers of all exponents and signs, special numbers, and many numbers of moderate size.
fn doubles() -> Vec<f64> {
    let special = [0.0, -0.0, 1.0, -1.0, INFINITE, -INFINITE, f64::NAN];
    let largest = [f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, -5e-324];
    // Near these arguments, results overflow or become subnormal.
    let edges = [709.78, 709.79, -708.39, -708.4, -745.13, -745.14, 19.0, 19.1, 22.0];
    let angles = (0..2000).map(|k| f64::from(k) * FRAC_PI_2);
    let all = (0..200_000_u64).map(|n| f64::from_bits(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let moderate = (-200_000..200_000).map(|n| f64::from(n) * 0.003_712_345);
    let small = (-20_000..20_000).map(|n| f64::from(n) * 1.234_567e-4);
    let listed = special.into_iter().chain(largest).chain(edges).chain(angles);
    listed.chain(all).chain(moderate).chain(small).collect()
}

/// `f32` numbers of all exponents and signs, and special numbers.
fn singles() -> Vec<f32> {
    let special = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let special = special.into_iter().chain([f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-45]);
    (0..=u32::MAX).step_by(65_521).map(f32::from_bits).chain(special).collect()
}

fn vector<T: nxla_tensor::Element>(numbers: &[T]) -> HostTensor {
    tensor(numbers, [numbers.len()])
}

fn unary<T: nxla_tensor::Element>(op: UnaryOp, numbers: &[T]) -> Vec<T> {
    let found = evaluate_op(&[vector(numbers)], |g, x| g.unary(op, x[0]));
    found.to_vec().expect("the dtype stays")
}

fn binary<T: nxla_tensor::Element>(op: BinaryOp, x: &[T], y: &[T]) -> Vec<T> {
    let found = evaluate_op(&[vector(x), vector(y)], |g, x| g.binary(op, x[0], x[1]));
    found.to_vec().expect("the dtype stays")
}

/// Requires that a result differs by at most `units` in the last place, and that zeros have the same sign.
fn check(what: &str, (found, expected): (f64, f64), ulps: u64, units: u64) {
    let is_same = found == expected || found.is_nan() && expected.is_nan();
    assert!(is_same || ulps <= units, "{what} = {found:e}, expected {expected:e}");
    let is_signed = found == 0.0 && expected == 0.0;
    let is_negative = [found, expected].map(f64::is_sign_negative);
    assert!(!is_signed || is_negative[0] == is_negative[1], "{what} = {found}");
}

fn check_double(what: &str, found: f64, expected: f64, units: u64) {
    check(what, (found, expected), found.to_bits().abs_diff(expected.to_bits()), units);
}

/// Results of `f32` are the rounded exact value or its neighbor.
fn check_single(what: &str, found: f32, exact: f64) {
    let expected = exact as f32;
    let ulps = found.to_bits().abs_diff(expected.to_bits());
    check(what, (found.into(), expected.into()), ulps.into(), 1);
}

#[test]
fn unary_functions_are_accurate_to_the_last_bits() {
    let (doubles, singles) = (doubles(), singles());
    for (op, exact, limit, units) in FUNCTIONS {
        let is_known = |x: f64| !x.is_finite() || x.abs() <= limit;
        for (&x, found) in doubles.iter().zip(unary(op, &doubles)) {
            if is_known(x) {
                check_double(&format!("{}({x:e})", op.name()), found, exact(x), units);
            }
        }
        for (&x, found) in singles.iter().zip(unary(op, &singles)) {
            if is_known(x.into()) {
                check_single(&format!("{}({x:e})", op.name()), found, exact(x.into()));
            }
        }
    }
}

/// Returns the number whose error function is `x`, by bisection.
fn inverse_of_erf(x: f64) -> f64 {
    let magnitude = x.abs();
    if magnitude >= 1.0 || magnitude.is_nan() {
        return if magnitude == 1.0 { INFINITE.copysign(x) } else { f64::NAN };
    }
    let (mut low, mut high) = (0.0, 6.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        // Half of the distance to one is exact.
        let is_below = if magnitude < 0.5 {
            libm::erf(middle) < magnitude
        } else {
            libm::erfc(middle) > 1.0 - magnitude
        };
        (low, high) = if is_below { (middle, high) } else { (low, middle) };
    }
    low.copysign(x)
}

#[test]
fn erf_inv_inverts_erf() {
    let doubles: Vec<f64> = (-2000..=2000).map(|n| libm::erf(f64::from(n) / 400.0)).collect();
    for (&x, y) in doubles.iter().zip(unary(UnaryOp::ErfInv, &doubles)) {
        let erf = libm::erf(y);
        assert!((erf - x).abs() <= 4.0 * f64::EPSILON * x.abs(), "{y}: {x} {erf}");
    }
    let near_one = 1.0 - 2_f64.powi(-30);
    let found = unary(UnaryOp::ErfInv, &[near_one, 1e-10, 1.0, -1.0, 1.5, f64::NAN, 0.0, -0.0]);
    let relative = libm::erfc(found[0]) / 2_f64.powi(-30) - 1.0;
    assert!(relative.abs() < 1e-13, "{relative}");
    assert!((found[1] / 8.862_269_254_527_58e-11 - 1.0).abs() < 1e-14, "{}", found[1]);
    assert_eq!(found[2..4], [INFINITE, -INFINITE]);
    assert!(found[4].is_nan() && found[5].is_nan());
    assert!(found[6] == 0.0 && found[7] == 0.0 && found[7].is_sign_negative());
    let singles = singles();
    for (&x, found) in singles.iter().zip(unary(UnaryOp::ErfInv, &singles)).step_by(7) {
        check_single(&format!("erf_inv({x:e})"), found, inverse_of_erf(x.into()));
    }
}

/// All pairs of some numbers.
fn pairs<T: Copy>(numbers: &[T]) -> (Vec<T>, Vec<T>) {
    let first = numbers.iter().flat_map(|&x| numbers.iter().map(move |_| x)).collect();
    let second = numbers.iter().flat_map(|_| numbers.iter().copied()).collect();
    (first, second)
}

#[test]
fn binary_functions_are_accurate_to_the_last_bits() {
    let special = [0.0, 1.0, 0.5, 2.0, 3.0, 0.75, 1e-310, 3e-45, 2e9, 1e300, 1e308, f64::MAX];
    let mut doubles: Vec<f64> = special.iter().flat_map(|&x| [x, -x]).collect();
    doubles.extend([INFINITE, -INFINITE, f64::NAN, 1.0 + f64::EPSILON, 1e17, 9e15 + 1.0]);
    doubles.extend((0..200_u64).map(|n| f64::from_bits(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))));
    doubles.extend((-250..250).map(|at| f64::from(at) * 0.173));
    // Powers of numbers next to one, whose logarithms are small and exponents large.
    doubles.extend((1..100).map(|at| 1.0 + f64::from(at) * 1.7e-5));
    doubles.extend((1..100).map(|at| f64::from(at) * 5_432.1));
    let mut singles: Vec<f32> = doubles.iter().map(|&x| x as f32).collect();
    singles.extend((0..=u32::MAX).step_by(16_777_213).map(f32::from_bits));
    let functions: [(BinaryOp, fn(f64, f64) -> f64, u64); 3] = [
        (BinaryOp::Pow, f64::powf, 1),
        (BinaryOp::Atan2, f64::atan2, 2),
        (BinaryOp::Remainder, |x, y| x % y, 0),
    ];
    let (x, y) = pairs(&doubles);
    let (single_x, single_y) = pairs(&singles);
    for (op, exact, units) in functions {
        for ((&x, &y), found) in x.iter().zip(&y).zip(binary(op, &x, &y)) {
            check_double(&format!("{}({x:e}, {y:e})", op.name()), found, exact(x, y), units);
        }
        let found = binary(op, &single_x, &single_y);
        for ((&x, &y), found) in single_x.iter().zip(&single_y).zip(found) {
            let what = format!("{}({x:e}, {y:e})", op.name());
            check_single(&what, found, exact(x.into(), y.into()));
        }
    }
}

#[test]
fn remainders_below_integer_quotients_are_exact() {
    let ys: Vec<f64> = (1..2000).flat_map(|n| (1..50).map(move |_| 0.1 * f64::from(n))).collect();
    let multiples = ys.iter().zip((1..50).cycle());
    let xs: Vec<f64> = multiples.map(|(&y, k)| (y * f64::from(k)).next_down()).collect();
    for ((&x, &y), found) in xs.iter().zip(&ys).zip(binary(BinaryOp::Remainder, &xs, &ys)) {
        assert_eq!(found.to_bits(), (x % y).to_bits(), "{x:e} % {y:e}");
    }
    let ys: Vec<f32> = ys.iter().map(|&y| y as f32).collect();
    let xs: Vec<f32> = xs.iter().map(|&x| (x as f32).next_down()).collect();
    for ((&x, &y), found) in xs.iter().zip(&ys).zip(binary(BinaryOp::Remainder, &xs, &ys)) {
        assert_eq!(found.to_bits(), (x % y).to_bits(), "{x:e} % {y:e}");
    }
}

/// Kernels compute blocks of neighbors by fast functions where these apply. An element has the same bits next to
/// any neighbors.
#[test]
fn results_do_not_depend_on_neighbors() {
    let mut numbers: Vec<f64> = doubles().into_iter().step_by(61).collect();
    numbers.truncate(10_007);
    let order: Vec<usize> = (0..numbers.len()).map(|at| at * 7919 % numbers.len()).collect();
    let second: Vec<f64> = numbers.iter().rev().copied().collect();
    for dtype in [DType::F32, DType::F64] {
        let tensor = |numbers: &[f64], order: Option<&[usize]>| {
            let moved = order.map(|order| order.iter().map(|&at| numbers[at]).collect());
            vector(&moved.unwrap_or_else(|| numbers.to_vec())).cast(dtype)
        };
        let check = |name: &str, straight: &HostTensor, moved: &HostTensor| {
            let size = straight.dtype().size();
            let bytes = |x: &HostTensor, at: usize| x.bytes()[at * size..][..size].to_vec();
            for (at, &from) in order.iter().enumerate() {
                assert_eq!(bytes(moved, at), bytes(straight, from), "{name} of {}", numbers[from]);
            }
        };
        let [x, moved_x] = [None, Some(&*order)].map(|order| tensor(&numbers, order));
        let [y, moved_y] = [None, Some(&*order)].map(|order| tensor(&second, order));
        for (op, ..) in FUNCTIONS {
            let result = |x: &HostTensor| evaluate_op(from_ref(x), |g, x| g.unary(op, x[0]));
            check(op.name(), &result(&x), &result(&moved_x));
        }
        for op in [BinaryOp::Pow, BinaryOp::Atan2, BinaryOp::Remainder, BinaryOp::Divide] {
            let result = |x: &HostTensor, y: &HostTensor| {
                evaluate_op(&[x.clone(), y.clone()], |g, x| g.binary(op, x[0], x[1]))
            };
            check(op.name(), &result(&x, &y), &result(&moved_x, &moved_y));
        }
    }
}

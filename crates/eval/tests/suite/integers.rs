//! Quotients, remainders and conversions of integers. Kernels compute them through floats where that is faster.

use std::slice::from_ref;

use nxla_expr::BinaryOp;
use nxla_tensor::{DType, Element, HostTensor, Scalar, bf16};

use super::common::evaluate_op;

/// Quotients and remainders equal the operators of Rust, for all bytes, and near powers of wider integers, where
/// rounding could go wrong. A divisor is an element of a tensor, a single number, or a constant.
#[test]
fn quotients_and_remainders_match_rust_operators() {
    macro_rules! check {
        ($t:ident, $numbers:expr) => {{
            let mut numbers: Vec<$t> = $numbers;
            // Some elements remain after the last full vector.
            numbers.extend([1, 2, 3]);
            let x = HostTensor::from_slice(&numbers, [numbers.len()]).unwrap();
            for &y in numbers.iter().step_by(numbers.len().div_ceil(256)) {
                let ys = vec![y; numbers.len()];
                let ys = HostTensor::from_slice(&ys, [numbers.len()]).unwrap();
                let one = HostTensor::from_slice(&[y], []).unwrap();
                let divided = |op: BinaryOp| {
                    [
                        evaluate_op(&[x.clone(), ys.clone()], |g, x| g.binary(op, x[0], x[1])),
                        evaluate_op(&[x.clone(), one.clone()], |g, x| g.binary(op, x[0], x[1])),
                        evaluate_op(from_ref(&x), |g, x| {
                            let y = g.scalar_constant(one.get(0), x_dtype::<$t>())?;
                            g.binary(op, x[0], y)
                        }),
                    ]
                };
                let quotient = |x: $t| if y == 0 { !0 } else { x.wrapping_div(y) };
                let rest = |x: $t| if y == 0 { x } else { x.wrapping_rem(y) };
                let quotients: Vec<$t> = numbers.iter().map(|&x| quotient(x)).collect();
                let rests: Vec<$t> = numbers.iter().map(|&x| rest(x)).collect();
                for found in divided(BinaryOp::Quotient) {
                    assert_eq!(found.as_slice::<$t>().unwrap(), quotients, "by {y}");
                }
                for found in divided(BinaryOp::Remainder) {
                    assert_eq!(found.as_slice::<$t>().unwrap(), rests, "by {y}");
                }
            }
        }};
    }
    macro_rules! around {
        ($t:ident) => {{
            // Powers of two and of three and their neighbors, up to both ends of the range.
            let powers = (0..$t::BITS).map(|bit| (1 as $t).wrapping_shl(bit));
            let others = (0..).map_while(|power| (3 as $t).checked_pow(power));
            let centers = powers.chain(others).chain([$t::MIN, $t::MAX, 0]);
            let near = |x: $t| (0..3).flat_map(move |by| [x.wrapping_add(by), x.wrapping_sub(by)]);
            centers.flat_map(near).flat_map(|x| [x, x.wrapping_neg()]).collect()
        }};
    }
    check!(u8, (u8::MIN..=u8::MAX).collect());
    check!(i8, (i8::MIN..=i8::MAX).collect());
    check!(u16, around!(u16));
    check!(i16, around!(i16));
    check!(u32, around!(u32));
    check!(i32, around!(i32));
    check!(u64, around!(u64));
    check!(i64, around!(i64));
}

fn x_dtype<T: Element>() -> DType {
    T::DTYPE
}

const SAMPLES: [f64; 27] = [
    0.0,
    -0.0,
    0.5,
    -1.5,
    2.5,
    3.7,
    -3.7,
    127.0,
    200.0,
    255.9,
    300.0,
    -129.0,
    65504.0,
    65520.0,
    2_147_483_648.0,
    -2_147_483_649.0,
    4e9,
    1e19,
    -1e19,
    1e30,
    1e300,
    1e-40,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1.0 + 3.0 / 512.0,
    1.0 + 1.0 / 256.0,
];

/// Every pair of dtypes agrees with [`Scalar::cast`], for whole blocks and for single values.
#[test]
fn conversions_match_scalar_casts() {
    let is_nan = |x: Scalar| x.parts().0.is_nan();
    for (from, to) in DType::ALL.iter().flat_map(|&from| DType::ALL.map(|to| (from, to))) {
        let values: Vec<Scalar> =
            SAMPLES.iter().cycle().take(3 * 27).map(|&x| Scalar::Float(x).cast(from)).collect();
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|&value| HostTensor::scalar(value, from).bytes().to_vec())
            .collect();
        let x = HostTensor::from_bytes(from, [values.len()], &bytes).unwrap();
        let found = evaluate_op(&[x], |g, x| g.as_type(x[0], to));
        let check = |found: Scalar, value: Scalar| {
            let expected = HostTensor::scalar(value.cast(to), to).get(0);
            let is_same = found == expected || is_nan(found) && is_nan(expected);
            assert!(is_same, "{value} {from}->{to}: {found}");
        };
        for (at, &value) in values.iter().enumerate() {
            check(found.get(at), value);
        }
        for &value in &values[..SAMPLES.len()] {
            // The body receives a single value, which is broadcast.
            let x = HostTensor::scalar(value, from);
            let found = evaluate_op(&[x], |g, x| {
                let repeated = g.broadcast(x[0], [70], None)?;
                g.as_type(repeated, to)
            });
            check(found.get(0), value);
            check(found.get(69), value);
        }
    }
}

#[test]
fn float_to_integer_casts_match_rust() {
    let all = (0..=u32::MAX).step_by(997);
    // The implementation of integer operations changes at these numbers.
    let edges = [0.0_f32, 32768.0, 65536.0, 4_194_304.0, 8_388_608.0, 2_147_483_648.0];
    let edges = edges.iter().flat_map(|x| [x.to_bits(), (-x).to_bits()]);
    let edges = edges.flat_map(|bits| (-3..4).map(move |at| bits.wrapping_add_signed(at)));
    let numbers: Vec<f32> = all.chain(edges).map(f32::from_bits).collect();
    let expected: Vec<i32> = numbers.iter().map(|&x| x as i32).collect();
    let x = HostTensor::from_vec(numbers, [expected.len()]).unwrap();
    for dtype in [DType::F32, DType::F64] {
        let found = evaluate_op(&[x.cast(dtype)], |g, x| g.as_type(x[0], DType::S32));
        assert!(found.as_slice::<i32>().unwrap() == expected, "{dtype}");
    }
}

#[test]
fn bf16_rounding_matches_scalar_conversion() {
    let numbers: Vec<f32> = (0..=u32::MAX).step_by(65_521).map(f32::from_bits).collect();
    let x = HostTensor::from_slice(&numbers, [numbers.len()]).unwrap();
    let found = evaluate_op(&[x], |g, x| g.as_type(x[0], DType::BF16));
    for (&x, &found) in numbers.iter().zip(found.as_slice::<bf16>().unwrap()) {
        let expected = bf16::from_scalar(x.to_scalar());
        assert!(found == expected || (found.is_nan() && expected.is_nan()), "{x}");
    }
}

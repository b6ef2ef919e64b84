//! Strategies for operands: shapes, numbers of every dtype, and tensors.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use nxla::host::{Element, Kind, match_dtype};
use nxla::{DType, HostTensor, Scalar, Shape};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// The maximum number of elements of a drawn tensor: enough for every code path, and fast to compare.
const LARGEST: usize = 96;

/// The range of ranks.
pub(crate) const RANKS: RangeInclusive<usize> = 0..=6;

/// The numbers on which an op is compared.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Numbers {
    /// All numbers of the dtype: NaN, infinities, zeros of both signs, the extremes, and numbers of every
    /// order of magnitude.
    Any,
    /// Numbers between 1/64 and 8 of either sign, or with such parts; integers are positive.
    Plane,
    /// Multiples of a quarter from -4 to 4, whose sums and products of a few are exact in `f32`.
    Tame,
    /// Numbers of an interval, or with parts of it.
    Within(f64, f64),
}

/// A shape of one of these ranks, with axes of size 0, 1 and others.
pub(crate) fn shape(ranks: RangeInclusive<usize>) -> BoxedStrategy<Vec<usize>> {
    let size = prop_oneof![1 => Just(0_usize), 8 => Just(1), 12 => 2..=3_usize, 4 => 4..=9_usize];
    ranks.prop_flat_map(move |rank| vec(size.clone(), rank)).prop_map(limit_size).boxed()
}

/// [`shape`] without axes of size 0.
pub(crate) fn full_shape(ranks: RangeInclusive<usize>) -> BoxedStrategy<Vec<usize>> {
    shape(ranks).prop_map(|sizes| sizes.iter().map(|&size| size.max(1)).collect()).boxed()
}

/// Returns the shape with smaller last axes, so that it has at most [`LARGEST`] elements.
fn limit_size(mut sizes: Vec<usize>) -> Vec<usize> {
    for smaller in [2, 1] {
        for axis in (0..sizes.len()).rev() {
            if sizes.iter().product::<usize>() > LARGEST {
                sizes[axis] = sizes[axis].min(smaller);
            }
        }
    }
    sizes
}

/// `count` shapes that broadcast against each other: each has some axes of a common shape, lacks
/// some of the first ones, and has size 1 along others.
pub(crate) fn broadcastable(count: usize) -> BoxedStrategy<Vec<Vec<usize>>> {
    shape(RANKS)
        .prop_flat_map(move |full| {
            let operand = (vec(prop::bool::weighted(0.8), full.len()), 0..=2 * full.len())
                .prop_map({
                    let full = full.clone();
                    move |(keeps, missing)| {
                        let missing = missing.saturating_sub(full.len());
                        let sizes =
                            full.iter().zip(keeps).map(|(&n, keeps)| if keeps { n } else { 1 });
                        sizes.skip(missing).collect::<Vec<usize>>()
                    }
                });
            vec(operand, count)
        })
        .boxed()
}

/// Some axes of a shape of this rank, in order.
pub(crate) fn axes(rank: usize) -> BoxedStrategy<Vec<usize>> {
    subsequence((0..rank).collect::<Vec<_>>(), 0..=rank).boxed()
}

/// Entries for each axis: drawn for two axes at most, and `neutral` for others, so that the results
/// of padding and the like stay small.
pub(crate) fn for_some_axes<T: Clone + Debug + 'static>(
    rank: usize,
    neutral: T,
    drawn: impl Strategy<Value = T> + Clone + 'static,
) -> BoxedStrategy<Vec<T>> {
    let chosen = subsequence((0..rank).collect::<Vec<_>>(), 0..=rank.min(2));
    (chosen, vec(drawn, rank))
        .prop_map(move |(chosen, drawn)| {
            let entry = |(axis, entry)| {
                if chosen.contains(&axis) { entry } else { neutral.clone() }
            };
            drawn.into_iter().enumerate().map(entry).collect()
        })
        .boxed()
}

/// One of these dtypes.
pub(crate) fn dtype_among(dtypes: Vec<DType>) -> BoxedStrategy<DType> {
    select(dtypes).boxed()
}

/// A tensor of drawn elements.
pub(crate) fn tensor(dtype: DType, shape: &[usize], numbers: Numbers) -> BoxedStrategy<HostTensor> {
    let shape = Shape::from(shape);
    vec(number(dtype, numbers), shape.size())
        .prop_map(move |elements| host(dtype, shape.clone(), &elements))
        .boxed()
}

/// A tensor with these elements.
pub(crate) fn host(dtype: DType, shape: impl Into<Shape>, elements: &[Scalar]) -> HostTensor {
    match_dtype!(dtype, T => {
        let elements: Vec<T> = elements.iter().map(|x| T::from_scalar(x.cast(dtype))).collect();
        HostTensor::from_slice_as(dtype, &elements, shape).unwrap()
    })
}

/// One number of a dtype.
pub(crate) fn number(dtype: DType, numbers: Numbers) -> BoxedStrategy<Scalar> {
    let is_zero = matches!(numbers, Numbers::Within(_, high) if high < 1.0);
    let drawn = match dtype.kind() {
        Kind::Pred if is_zero => Just(Scalar::UInt(0)).boxed(),
        Kind::Pred if numbers == Numbers::Plane => Just(Scalar::UInt(1)).boxed(),
        Kind::Pred => any::<bool>().prop_map(|truth| Scalar::UInt(truth.into())).boxed(),
        Kind::Unsigned | Kind::Signed => integer(dtype, numbers),
        Kind::Float => real(dtype, numbers).prop_map(Scalar::Float).boxed(),
        Kind::Complex => {
            let part = real(dtype.to_real(), numbers);
            (part.clone(), part).prop_map(|(re, im)| Scalar::Complex(re, im)).boxed()
        }
    };
    drawn.prop_map(move |scalar| scalar.cast(dtype)).boxed()
}

fn integer(dtype: DType, numbers: Numbers) -> BoxedStrategy<Scalar> {
    let lowest = if dtype.is_signed() { -4 } else { 0 };
    match numbers {
        Numbers::Tame => (lowest..=4_i64).prop_map(Scalar::Int).boxed(),
        #[expect(clippy::cast_possible_truncation, reason = "domains are small")]
        Numbers::Within(low, high) => {
            ((low.ceil() as i64).max(lowest)..=high.floor() as i64).prop_map(Scalar::Int).boxed()
        }
        Numbers::Plane => {
            let highest = dtype.max_value().as_i64().map_or(7, |highest| highest.min(7));
            (1..=highest).prop_map(Scalar::Int).boxed()
        }
        Numbers::Any => {
            let extremes =
                vec![dtype.min_value(), dtype.max_value(), Scalar::Int(-1), Scalar::Int(0)];
            prop_oneof![
                4 => (lowest..=9_i64).prop_map(Scalar::Int),
                1 => select(extremes),
                2 => any::<i64>().prop_map(Scalar::Int),
            ]
            .boxed()
        }
    }
}

fn real(dtype: DType, numbers: Numbers) -> BoxedStrategy<f64> {
    let extremes = || {
        let (large, small) = (largest(dtype), smallest(dtype));
        vec![0.5, 1.0, -1.0, 2.5, large, -large, small, -small]
    };
    let exponents = || {
        let highest = if dtype == DType::F64 { 1000 } else { 120 };
        (-2.0..2.0_f64, -highest..=highest).prop_map(|(digits, power)| digits * 2_f64.powi(power))
    };
    match numbers {
        Numbers::Tame => (-16..=16_i32).prop_map(|quarters| f64::from(quarters) / 4.0).boxed(),
        Numbers::Within(low, high) => (low..=high).boxed(),
        Numbers::Plane => {
            let parts = (1.0 / 64.0..8.0_f64, any::<bool>());
            parts.prop_map(|(size, below)| if below { -size } else { size }).boxed()
        }
        Numbers::Any => {
            let special = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0];
            prop_oneof![
                6 => -8.0..8.0_f64,
                1 => select(extremes()),
                1 => select(special),
                2 => exponents(),
            ]
            .boxed()
        }
    }
}

/// The largest finite number of a float dtype, or of the parts of a complex one.
fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F8E5M2 => 57_344.0,
        DType::F8E4M3FN => 448.0,
        DType::F16 => 65_504.0,
        DType::BF16 => 2_f64.powi(127) * (2.0 - 2_f64.powi(-7)),
        DType::F64 | DType::C128 => f64::MAX,
        _ => f64::from(f32::MAX),
    }
}

/// The smallest number of a float dtype that has all its digits, likewise.
pub(crate) fn smallest(dtype: DType) -> f64 {
    match dtype {
        DType::F8E5M2 | DType::F16 => 2_f64.powi(-14),
        DType::F8E4M3FN => 2_f64.powi(-6),
        DType::F64 | DType::C128 => f64::MIN_POSITIVE,
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

/// The distance between 1 and the next number of a float dtype, likewise.
pub(crate) fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F8E5M2 => 0.25,
        DType::F8E4M3FN => 0.125,
        DType::BF16 => 2_f64.powi(-7),
        DType::F16 => 2_f64.powi(-10),
        DType::F64 | DType::C128 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    }
}

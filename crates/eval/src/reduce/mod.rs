//! Reductions along axes.
//!
//! Sums and products of floats accumulate in `f64` and are rounded once; so do those of `c64`.
//! The order of additions does not depend on the number of threads.

mod arg;
mod kernel;
mod plane;
mod zip;

use bytemuck::cast_slice_mut;
use nxla_expr::{Op, Reduce, ReduceFun, ReduceOp, TensorType};
use nxla_tensor::{Complex, DType, Element, HostTensor, Scalar};

use crate::args::Args;
use crate::elementwise::convert;
use crate::error::{Fault, Stop};
use crate::fold::Fold;
use crate::run::Site;
use crate::value;
use kernel::{Elements, Reducer, reduce};
pub(crate) use kernel::{FEW_LANES, Make, TURN, is_in_pieces, kept_whole, narrowed, piece};
pub(crate) use plane::Plane;
pub(crate) use zip::{Zipped, ZippedRows};

/// Expands to one arm per dtype that sums and products are computed in.
macro_rules! accumulate {
    ($dtype:expr, $x:expr, $out:expr, $start:expr, $wrapping:ident, $operator:tt) => {{
        let (x, out) = ($x, $out);
        macro_rules! with {
            ($t:ty, $start_value:expr, $step:expr, $merge:expr, $finish:expr) => {{
                let reducer = Reducer { start: $start_value, step: $step, merge: $merge };
                reduce::<$t, _, _, _, $t>(x, reducer, $finish, cast_slice_mut(out));
            }};
        }
        macro_rules! integer {
            ($t:ident) => {
                with!($t, $start as $t, |a: $t, x| a.$wrapping(x), |a: $t, b| a.$wrapping(b), |a| a)
            };
        }
        let start = f64::from($start);
        match $dtype {
            DType::U32 => integer!(u32),
            DType::S32 => integer!(i32),
            DType::S64 => integer!(i64),
            DType::F32 => {
                with!(f32, start, |a, x| a $operator f64::from(x), |a, b| a $operator b, |a| a as f32)
            }
            DType::F64 => with!(f64, start, |a, x| a $operator x, |a, b| a $operator b, |a| a),
            DType::C64 => with!(
                Complex<f32>,
                Complex::from(start),
                |a: Complex<f64>, x| a $operator wide(x),
                |a, b| a $operator b,
                narrow
            ),
            DType::C128 => with!(
                Complex<f64>,
                Complex::from(start),
                |a: Complex<f64>, x| a $operator x,
                |a, b| a $operator b,
                |a| a
            ),
            dtype => unreachable!("{dtype} is widened before it is added up"),
        }
    }};
}

/// Binds a type to the elements of a dtype that has an order, after [`widened_float`].
macro_rules! match_ordered {
    ($dtype:expr, $t:ident => $body:expr) => {{
        macro_rules! with {
            ($found:ident) => {{
                type $t = $found;
                $body
            }};
        }
        match $dtype {
            DType::Pred | DType::U2 | DType::U4 | DType::U8 => with!(u8),
            DType::U16 => with!(u16),
            DType::U32 => with!(u32),
            DType::U64 => with!(u64),
            DType::S2 | DType::S4 | DType::S8 => with!(i8),
            DType::S16 => with!(i16),
            DType::S32 => with!(i32),
            DType::S64 => with!(i64),
            DType::F32 => with!(f32),
            DType::F64 => with!(f64),
            dtype @ (DType::F8E5M2
            | DType::F8E4M3FN
            | DType::BF16
            | DType::F16
            | DType::C64
            | DType::C128) => unreachable!("{dtype} is widened or refused before it is compared"),
        }
    }};
}
pub(crate) use match_ordered;

pub(crate) fn evaluate(site: Site<'_>, args: &mut Args<'_>) -> Result<HostTensor, Stop> {
    let ty = site.ty();
    match site.op() {
        Op::Reduce(op, attributes) => Ok(reduced(*op, attributes, args.get(0), ty)?),
        Op::ArgReduce(op, attributes) => Ok(arg::arg_reduce(*op, attributes, args.get(0), ty)?),
        Op::ReduceFun(attributes) => reduce_fun(attributes, site, args),
        op @ nxla_expr::outside!(reduce) => unreachable!("{} is of another family", op.name()),
    }
}

/// Whether an axis is reduced.
fn is_reduced(attributes: &Reduce, axis: usize) -> bool {
    attributes.axes.as_ref().is_none_or(|axes| axes.contains(&axis))
}

fn reduced(
    op: ReduceOp,
    attributes: &Reduce,
    x: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let dtype = accepted(op, x.dtype());
    let x = convert(x, dtype)?;
    let (x, plane) = Plane::of(&x, |axis| is_reduced(attributes, axis))?;
    let mut result = value::fresh(given(op, dtype), &ty.shape)?;
    let neutral = neutral(op, ty.dtype);
    let x = Elements::There(x.bytes(), plane);
    fill(op, neutral, dtype, x, value::bytes_mut(&mut result));
    convert(&result, ty.dtype)
}

/// What an extremum of no elements is; other reductions know it themselves. It is that of the
/// operand's own dtype, which may be narrower than the one that computes it.
fn neutral(op: ReduceOp, dtype: DType) -> Scalar {
    match op {
        ReduceOp::Max => dtype.min_value(),
        ReduceOp::Min => dtype.max_value(),
        ReduceOp::Sum | ReduceOp::Product | ReduceOp::All | ReduceOp::Any => Scalar::UInt(0),
    }
}

/// A reduction that takes elements as they are and where they are.
pub(crate) struct InMemory {
    op: ReduceOp,
    dtype: DType,
    neutral: Scalar,
    plane: Plane,
}

impl InMemory {
    /// A reduction that is of that kind.
    pub(crate) fn of(
        op: ReduceOp,
        attributes: &Reduce,
        x: &TensorType,
        ty: &TensorType,
    ) -> Option<Self> {
        let is_plain = accepted(op, x.dtype) == x.dtype && ty.dtype == given(op, x.dtype);
        let plane = Plane::in_memory(&x.shape, |axis| is_reduced(attributes, axis))?;
        is_plain.then(|| Self { op, dtype: x.dtype, neutral: neutral(op, ty.dtype), plane })
    }

    /// Reduces the bytes of a tensor.
    pub(crate) fn fill(&self, x: &[u8], out: &mut [u8]) {
        fill(self.op, self.neutral, self.dtype, Elements::There(x, self.plane), out);
    }
}

/// The rows and columns of a matrix whose rows are reduced, if a reduction is of that kind and
/// takes elements as they are.
pub(crate) fn by_row(
    op: ReduceOp,
    attributes: &Reduce,
    x: &TensorType,
    ty: &TensorType,
) -> Option<(usize, usize)> {
    let sizes = |wanted: bool| {
        let axes = (0..x.shape.rank()).filter(move |&axis| is_reduced(attributes, axis) == wanted);
        axes.filter(|&axis| x.shape[axis] != 1)
    };
    let is_last = sizes(false).next_back() < sizes(true).next();
    let product = |wanted: bool| sizes(wanted).map(|axis| x.shape[axis]).product();
    let is_plain = accepted(op, x.dtype) == x.dtype && ty.dtype == x.dtype;
    (is_last && is_plain).then(|| (product(false), product(true)))
}

/// How many results a reduction has that takes elements as they are, and can reduce them while they
/// are made: one, or a row of them that is reduced with many others.
pub(crate) fn results_of_made(
    op: ReduceOp,
    attributes: &Reduce,
    x: &TensorType,
    ty: &TensorType,
) -> Option<usize> {
    let axes = (0..x.shape.rank()).filter(|&axis| x.shape[axis] != 1);
    let (reduced, kept): (Vec<_>, Vec<_>) = axes.partition(|&axis| is_reduced(attributes, axis));
    let is_first = reduced.last() < kept.first();
    let product = |axes: &[usize]| axes.iter().map(|&axis| x.shape[axis]).product();
    let is_plain = accepted(op, x.dtype) == x.dtype && ty.dtype == given(op, x.dtype);
    let (count, inner) = (product(&reduced), product(&kept));
    let is_made = kept.is_empty() || is_first && is_in_pieces(count, inner);
    (is_plain && is_made).then_some(inner)
}

/// Reduces rows of `count` elements of a dtype, one result for each.
pub(crate) fn fill_by_row(op: ReduceOp, dtype: DType, x: &[u8], count: usize, out: &mut [u8]) {
    let plane = Plane { times: 1, outer: out.len() / dtype.size(), count, inner: 1 };
    fill(op, neutral(op, dtype), dtype, Elements::There(x, plane), out);
}

/// Reduces so many elements of a dtype, which are made on the way, to rows of results.
pub(crate) fn fill_total(op: ReduceOp, dtype: DType, len: usize, make: &Make<'_>, out: &mut [u8]) {
    fill(op, neutral(op, dtype), dtype, Elements::Made(len, make), out);
}

/// Reduces elements of a dtype that [`accepted`] gives.
fn fill(op: ReduceOp, neutral: Scalar, dtype: DType, x: Elements<'_>, out: &mut [u8]) {
    match op {
        ReduceOp::Sum if is_counted(dtype) => {
            let step = |sum: u32, x: u8| sum.wrapping_add(u32::from(x));
            let counts = Reducer { start: 0, step, merge: u32::wrapping_add };
            reduce(x, counts, |sum| sum, cast_slice_mut(out));
        }
        ReduceOp::Sum => accumulate!(dtype, x, out, 0_u8, wrapping_add, +),
        ReduceOp::Product => accumulate!(dtype, x, out, 1_u8, wrapping_mul, *),
        ReduceOp::All => {
            let all = Reducer { start: 1, step: |all: u8, x: u8| all & x, merge: |a, b| a & b };
            reduce(x, all, |all| all, out);
        }
        ReduceOp::Any => {
            let any = Reducer { start: 0, step: |any: u8, x: u8| any | x, merge: |a, b| a | b };
            reduce(x, any, |any| any, out);
        }
        ReduceOp::Max => match_ordered!(dtype, T => {
            let start = T::from_scalar(neutral);
            let reducer = Reducer { start, step: larger::<T>, merge: larger::<T> };
            reduce::<T, _, _, _, T>(x, reducer, |a| a, cast_slice_mut(out));
        }),
        ReduceOp::Min => match_ordered!(dtype, T => {
            let start = T::from_scalar(neutral);
            let reducer = Reducer { start, step: smaller::<T>, merge: smaller::<T> };
            reduce::<T, _, _, _, T>(x, reducer, |a| a, cast_slice_mut(out));
        }),
    }
}

/// The dtype in which an operand enters its reduction.
fn accepted(op: ReduceOp, dtype: DType) -> DType {
    match op {
        ReduceOp::Sum if is_counted(dtype) => dtype,
        ReduceOp::Sum | ReduceOp::Product => widened_float(dtype.to_aggregate()),
        ReduceOp::All | ReduceOp::Any => DType::Pred,
        ReduceOp::Max | ReduceOp::Min => widened_float(dtype),
    }
}

/// Whether sums of a dtype take its bytes as they are, without a copy in the dtype of the sum.
fn is_counted(dtype: DType) -> bool {
    matches!(dtype, DType::Pred | DType::U2 | DType::U4 | DType::U8)
}

/// The dtype of what a reduction gives of elements that it [accepts](accepted).
pub(crate) fn given(op: ReduceOp, dtype: DType) -> DType {
    if op == ReduceOp::Sum { accepted(op, dtype).to_aggregate() } else { dtype }
}

/// Floats narrower than `f32` are computed in `f32`.
pub(crate) fn widened_float(dtype: DType) -> DType {
    match dtype {
        DType::F8E5M2 | DType::F8E4M3FN | DType::BF16 | DType::F16 => DType::F32,
        DType::Pred
        | DType::U2
        | DType::U4
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::S2
        | DType::S4
        | DType::S8
        | DType::S16
        | DType::S32
        | DType::S64
        | DType::F32
        | DType::F64
        | DType::C64
        | DType::C128 => dtype,
    }
}

pub(crate) fn wide(z: Complex<f32>) -> Complex<f64> {
    Complex::new(f64::from(z.re), f64::from(z.im))
}

pub(crate) fn narrow(z: Complex<f64>) -> Complex<f32> {
    Complex::new(z.re as f32, z.im as f32)
}

/// The larger of the two; NaN if either is.
#[inline(always)]
pub(crate) fn larger<T: Ordered>(a: T, b: T) -> T {
    if (a > b) | a.is_not_a_number() { a } else { b }
}

/// The smaller of the two; NaN if either is.
#[inline(always)]
pub(crate) fn smaller<T: Ordered>(a: T, b: T) -> T {
    if (a < b) | a.is_not_a_number() { a } else { b }
}

/// Elements that have an order, but for NaN.
pub(crate) trait Ordered: nxla_tensor::Element + PartialOrd {
    fn is_not_a_number(self) -> bool;
}

macro_rules! ordered {
    ($($t:ident: $is_nan:expr;)*) => {
        $(impl Ordered for $t {
            #[inline(always)]
            fn is_not_a_number(self) -> bool {
                $is_nan(self)
            }
        })*
    };
}
ordered! {
    u8: |_| false;
    u16: |_| false;
    u32: |_| false;
    u64: |_| false;
    i8: |_| false;
    i16: |_| false;
    i32: |_| false;
    i64: |_| false;
    f32: f32::is_nan;
    f64: f64::is_nan;
}

/// Folds in row-major order of the reduced axes.
fn reduce_fun(
    attributes: &ReduceFun,
    site: Site<'_>,
    args: &mut Args<'_>,
) -> Result<HostTensor, Stop> {
    let ty = site.ty();
    let fold = Fold::new(site, args);
    let (x, initial) = (args.get(0), args.get(1));
    let order = |axis| is_reduced(&attributes.reduce, axis);
    let (elements, plane) = plane::reduced_first(x, order)?;
    let kept = plane.inner;
    let mut accumulator = fold.repeated(initial, kept)?;
    let row = kept * ty.dtype.size();
    for position in 0..plane.count {
        let bytes = &elements.bytes()[position * row..][..row];
        let element = HostTensor::from_bytes(ty.dtype, [kept], bytes).map_err(Fault::from)?;
        accumulator = fold.step(element, accumulator)?;
    }
    Ok(value::reshaped(accumulator, &ty.shape))
}

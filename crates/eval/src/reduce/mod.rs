//! Reductions along axes.
//!
//! Sums and products of floats accumulate in `f64` and are rounded once; so do those of `c64`.
//! The order of additions does not depend on the number of threads.

mod arg;
mod kernel;
mod plane;

use nxla_expr::{Op, Reduce, ReduceFun, ReduceOp, TensorType};
use nxla_tensor::{Complex, DType, HostTensor, Scalar};

use crate::args::Args;
use crate::elementwise::convert;
use crate::error::{Fault, Stop};
use crate::fold::Fold;
use crate::run::Site;
use crate::value;
use kernel::{Reducer, reduce};
pub(crate) use plane::Plane;

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
    let result = match op {
        ReduceOp::Sum => sum(&x, plane, ty)?,
        ReduceOp::Product => product(&x, plane, ty)?,
        ReduceOp::All => {
            let all = Reducer { start: 1, step: |all: u8, x: u8| all & x, merge: |a, b| a & b };
            reduce(&x, plane, all, |all| all, DType::Pred, &ty.shape)?
        }
        ReduceOp::Any => {
            let any = Reducer { start: 0, step: |any: u8, x: u8| any | x, merge: |a, b| a | b };
            reduce(&x, plane, any, |any| any, DType::Pred, &ty.shape)?
        }
        ReduceOp::Max => extremum(&x, plane, ty, true)?,
        ReduceOp::Min => extremum(&x, plane, ty, false)?,
    };
    convert(&result, ty.dtype)
}

/// The dtype in which an operand enters its reduction.
fn accepted(op: ReduceOp, dtype: DType) -> DType {
    match op {
        ReduceOp::Sum | ReduceOp::Product => widened_float(dtype.to_aggregate()),
        ReduceOp::All | ReduceOp::Any => DType::Pred,
        ReduceOp::Max | ReduceOp::Min => widened_float(dtype),
    }
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

/// Expands to one arm per dtype that sums and products are computed in.
macro_rules! accumulate {
    ($x:expr, $plane:expr, $ty:expr, $start:expr, $wrapping:ident, $operator:tt) => {{
        let (x, plane, shape) = ($x, $plane, &$ty.shape);
        macro_rules! integer {
            ($t:ident) => {
                reduce(
                    x,
                    plane,
                    Reducer { start: $start as $t, step: |a: $t, x: $t| a.$wrapping(x), merge: |a: $t, b| a.$wrapping(b) },
                    |a| a,
                    x.dtype(),
                    shape,
                )
            };
        }
        match x.dtype() {
            DType::U32 => integer!(u32),
            DType::S32 => integer!(i32),
            DType::S64 => integer!(i64),
            DType::F32 => {
                let step = |a: f64, x: f32| a $operator f64::from(x);
                let reducer = Reducer { start: f64::from($start), step, merge: |a, b| a $operator b };
                reduce(x, plane, reducer, |a| a as f32, DType::F32, shape)
            }
            DType::F64 => {
                let step = |a: f64, x: f64| a $operator x;
                let reducer = Reducer { start: f64::from($start), step, merge: |a, b| a $operator b };
                reduce(x, plane, reducer, |a| a, DType::F64, shape)
            }
            DType::C64 => {
                let step = |a: Complex<f64>, x: Complex<f32>| a $operator wide(x);
                let start = Complex::from(f64::from($start));
                let reducer = Reducer { start, step, merge: |a, b| a $operator b };
                reduce(x, plane, reducer, narrow, DType::C64, shape)
            }
            DType::C128 => {
                let step = |a: Complex<f64>, x: Complex<f64>| a $operator x;
                let start = Complex::from(f64::from($start));
                let reducer = Reducer { start, step, merge: |a, b| a $operator b };
                reduce(x, plane, reducer, |a| a, DType::C128, shape)
            }
            dtype => unreachable!("{dtype} is widened before it is added up"),
        }
    }};
}

fn sum(x: &HostTensor, plane: Plane, ty: &TensorType) -> Result<HostTensor, Fault> {
    accumulate!(x, plane, ty, 0_u8, wrapping_add, +)
}

fn product(x: &HostTensor, plane: Plane, ty: &TensorType) -> Result<HostTensor, Fault> {
    accumulate!(x, plane, ty, 1_u8, wrapping_mul, *)
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

fn extremum(
    x: &HostTensor,
    plane: Plane,
    ty: &TensorType,
    largest: bool,
) -> Result<HostTensor, Fault> {
    use nxla_tensor::Element;
    // The neutral element is that of the operand's own dtype, which may be narrower than `x`.
    let start: Scalar = if largest { ty.dtype.min_value() } else { ty.dtype.max_value() };
    match_ordered!(x.dtype(), T => {
        let start = T::from_scalar(start);
        if largest {
            let reducer = Reducer { start, step: larger::<T>, merge: larger::<T> };
            reduce(x, plane, reducer, |a| a, x.dtype(), &ty.shape)
        } else {
            let reducer = Reducer { start, step: smaller::<T>, merge: smaller::<T> };
            reduce(x, plane, reducer, |a| a, x.dtype(), &ty.shape)
        }
    })
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

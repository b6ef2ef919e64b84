//! Sums, products and extrema of windows.
//!
//! Such a reduction is done one axis after the other, which takes as many operations as the
//! window has rows and columns rather than elements. Sums and products of floats stay in `f64`
//! between the axes.

use nxla_expr::{TensorType, Window, WindowOp};
use nxla_tensor::{Complex, DType, Element, HostTensor, Scalar};

use super::{WindowAxis, axes};
use crate::elementwise::{Compute, convert, vectorize};
use crate::error::Fault;
use crate::reduce::{larger, match_ordered, smaller, widened_float};
use crate::threads::Brake;
use crate::{memory, parallel, value};

pub(super) fn windows(
    op: WindowOp,
    window: &Window,
    x: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let axes = axes(window, x.shape(), &ty.shape);
    let result = match op {
        WindowOp::Sum | WindowOp::Product => accumulated(op, &axes, x, ty)?,
        WindowOp::Max | WindowOp::Min => {
            let dtype = widened_float(x.dtype());
            let x = convert(x, dtype)?;
            let largest = op == WindowOp::Max;
            let start: Scalar = if largest { ty.dtype.min_value() } else { ty.dtype.max_value() };
            match_ordered!(dtype, T => {
                let (elements, start) = (value::slice::<T>(&x), T::from_scalar(start));
                let elements = if largest {
                    slide(&axes, elements, start, larger::<T>)
                } else {
                    slide(&axes, elements, start, smaller::<T>)
                };
                HostTensor::from_slice_as(dtype, &elements, ty.shape.clone())?
            })
        }
    };
    convert(&result, ty.dtype)
}

/// The dtype in which sums and products of windows are kept between axes.
pub(super) fn wide(dtype: DType) -> DType {
    match Compute::of(dtype) {
        Compute::F32 | Compute::F64 => DType::F64,
        Compute::C64 | Compute::C128 => DType::C128,
        integer @ (Compute::U8
        | Compute::U16
        | Compute::U32
        | Compute::U64
        | Compute::S8
        | Compute::S16
        | Compute::S32
        | Compute::S64) => integer.dtype(),
    }
}

fn accumulated(
    op: WindowOp,
    axes: &[WindowAxis],
    x: &HostTensor,
    ty: &TensorType,
) -> Result<HostTensor, Fault> {
    let x = convert(x, wide(ty.dtype))?;
    let is_sum = op == WindowOp::Sum;
    macro_rules! with {
        ($t:ty, $zero:expr, $one:expr, $add:expr, $multiply:expr) => {{
            let elements = value::slice::<$t>(&x);
            let elements = if is_sum {
                slide(axes, elements, $zero, $add)
            } else {
                slide(axes, elements, $one, $multiply)
            };
            HostTensor::from_slice_as(x.dtype(), &elements, ty.shape.clone())?
        }};
    }
    macro_rules! integer {
        ($t:ident) => {
            with!($t, 0, 1, $t::wrapping_add, $t::wrapping_mul)
        };
    }
    let complex = |re: f64| Complex::new(re, 0.0);
    Ok(match x.dtype() {
        DType::U8 => integer!(u8),
        DType::U16 => integer!(u16),
        DType::U32 => integer!(u32),
        DType::U64 => integer!(u64),
        DType::S8 => integer!(i8),
        DType::S16 => integer!(i16),
        DType::S32 => integer!(i32),
        DType::S64 => integer!(i64),
        DType::F64 => with!(f64, 0.0, 1.0, |a, b| a + b, |a, b| a * b),
        DType::C128 => with!(Complex<f64>, complex(0.0), complex(1.0), |a, b| a + b, |a, b| a * b),
        dtype => unreachable!("{dtype} is widened before it is added up"),
    })
}

/// Combines the elements of each window, one axis after the other.
fn slide<T: Element>(
    axes: &[WindowAxis],
    x: &[T],
    start: T,
    combine: impl Fn(T, T) -> T + Copy + Sync,
) -> Vec<T> {
    let mut elements: std::borrow::Cow<'_, [T]> = x.into();
    for (index, axis) in axes.iter().enumerate() {
        if axis.taps == 1 && axis.stride == 1 && axis.low == 0 && axis.count == axis.size {
            continue;
        }
        // Axes before this one have their windows already, those after it not yet.
        let inner: usize = axes[index + 1..].iter().map(|axis| axis.size).product();
        let outer: usize = axes[..index].iter().map(|axis| axis.count).product();
        let mut out = memory::filled(start, outer * axis.count * inner);
        let (row, source) = (axis.count * inner, axis.size * inner);
        let brake = Brake::current();
        parallel::rows(&mut out, row, row * axis.taps, |first, out| {
            for (number, out) in out.chunks_exact_mut(row).enumerate() {
                let source = &elements[(first + number) * source..][..source];
                slide_axis(axis, source, inner, out, combine, &brake);
            }
        });
        elements = out.into();
    }
    elements.into_owned()
}

/// One axis of one block of `inner` neighbours per element.
#[inline(always)]
fn slide_axis<T: Element>(
    axis: &WindowAxis,
    source: &[T],
    inner: usize,
    out: &mut [T],
    combine: impl Fn(T, T) -> T,
    brake: &Brake,
) {
    let combine_run = |out: &mut [T], source: &[T]| {
        vectorize(
            #[inline(always)]
            || {
                for (out, &x) in out.iter_mut().zip(source) {
                    *out = combine(*out, x);
                }
            },
        );
    };
    for tap in 0..axis.taps {
        if brake.is_pulled() {
            return;
        }
        let seen = axis.seen(tap);
        let Some(first) = axis.place(seen.start, tap).filter(|_| !seen.is_empty()) else {
            continue;
        };
        if axis.stride == 1 {
            let len = seen.len() * inner;
            combine_run(&mut out[seen.start * inner..][..len], &source[first * inner..][..len]);
            continue;
        }
        for (step, window) in seen.enumerate() {
            let place = (first + step * axis.stride) * inner;
            combine_run(&mut out[window * inner..][..inner], &source[place..][..inner]);
        }
    }
}

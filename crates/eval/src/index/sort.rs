//! Sorting along an axis. NaN counts as the largest number, and equal elements keep their order.

use std::cmp::Ordering;

use nxla_expr::Sort;
use nxla_tensor::{DType, HostTensor};
use rayon::prelude::*;

use crate::elementwise::convert;
use crate::error::Fault;
use crate::reduce::{Ordered, Plane, match_ordered, widened_float};
use crate::{parallel, value};

/// Smallest first, NaN last.
#[inline(always)]
fn ascending<T: Ordered>(a: T, b: T) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_not_a_number().cmp(&b.is_not_a_number()))
}

pub(super) fn sort(attributes: Sort, x: &HostTensor) -> Result<HostTensor, Fault> {
    let (dtype, shape) = (x.dtype(), x.shape());
    let x = convert(x, widened_float(dtype))?;
    let plane = Plane::along(shape, attributes.axis);
    let sorted = match_ordered!(x.dtype(), T => {
        let elements = value::slice::<T>(&x);
        value::build(x.dtype(), shape, |out: &mut [T]| {
            each_run(plane, elements, out, |run: &mut [T], out: &mut [T]| {
                if attributes.descending {
                    sort_by(run, |a, b| ascending(*b, *a));
                } else {
                    sort_by(run, |a, b| ascending(*a, *b));
                }
                out.copy_from_slice(run);
            });
        })?
    });
    convert(&sorted, dtype)
}

pub(super) fn argsort(attributes: Sort, x: &HostTensor, to: DType) -> Result<HostTensor, Fault> {
    let shape = x.shape();
    let x = convert(x, widened_float(x.dtype()))?;
    let plane = Plane::along(shape, attributes.axis);
    let positions = match_ordered!(x.dtype(), T => {
        let elements = value::slice::<T>(&x);
        value::build(DType::S64, shape, |out: &mut [i64]| {
            each_run(plane, elements, out, |run: &mut [T], out: &mut [i64]| {
                let mut pairs: Vec<(T, i64)> = run.iter().copied().zip(0..).collect();
                if attributes.descending {
                    sort_by(&mut pairs, |a, b| ascending(b.0, a.0));
                } else {
                    sort_by(&mut pairs, |a, b| ascending(a.0, b.0));
                }
                out.iter_mut().zip(pairs).for_each(|(out, (_, position))| *out = position);
            });
        })?
    });
    convert(&positions, to)
}

fn sort_by<T: Send>(elements: &mut [T], compare: impl Fn(&T, &T) -> Ordering + Sync) {
    if parallel::pays(elements.len()) {
        elements.par_sort_by(compare);
    } else {
        elements.sort_by(compare);
    }
}

/// Calls `sort` with the elements of each run along the axis and room for what becomes of them.
fn each_run<T: Ordered, R: Copy + Default + Send>(
    plane: Plane,
    x: &[T],
    out: &mut [R],
    sort: impl Fn(&mut [T], &mut [R]) + Sync,
) {
    let Plane { count, inner, .. } = plane;
    let block = count * inner;
    // Sorting takes a number of passes that grows with the logarithm of the length.
    let cost = block * (1 + count.max(1).ilog2() as usize);
    parallel::rows(out, block, cost, |first, out| {
        let (mut run, mut sorted) = (Vec::with_capacity(count), vec![R::default(); count]);
        for (x, out) in x[first * block..].chunks_exact(block).zip(out.chunks_exact_mut(block)) {
            for column in 0..inner {
                run.clear();
                run.extend(x[column..].iter().step_by(inner));
                sort(&mut run, &mut sorted);
                let places = out[column..].iter_mut().step_by(inner);
                places.zip(&sorted).for_each(|(out, &x)| *out = x);
            }
        }
    });
}

//! Views of a tensor as an outer, a reduced and an inner part.

use nxla_tensor::{HostTensor, Shape};
use smallvec::SmallVec;

use crate::context::{Cx, Fault};
use crate::kernels::movement::permute;

/// A row-major tensor as `[times][outer][count][inner]`. A reduction reduces `times` and `count`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plane {
    /// The size of a reduced part at the front; it is 1 unless `inner` is 1.
    pub(crate) times: usize,
    pub(crate) outer: usize,
    pub(crate) count: usize,
    pub(crate) inner: usize,
}

impl Plane {
    /// The plane of one axis.
    pub(crate) fn along(shape: &[usize], axis: usize) -> Self {
        Self {
            times: 1,
            outer: shape[..axis].iter().product(),
            count: shape[axis],
            inner: shape[axis + 1..].iter().product(),
        }
    }

    /// The plane of a set of axes. Axes that are neither adjacent nor at both ends are moved to the
    /// end.
    pub(crate) fn of(
        cx: Cx<'_>,
        x: &HostTensor,
        is_reduced: impl Fn(usize) -> bool,
    ) -> Result<(HostTensor, Self), Fault> {
        if let Some(plane) = Self::in_memory(x.shape(), &is_reduced) {
            return Ok((x.clone(), plane));
        }
        let moved = move_first(cx, x, |axis| !is_reduced(axis))?;
        let (outer, count) = (size(x, |axis| !is_reduced(axis)), size(x, is_reduced));
        Ok((moved, Self { times: 1, outer, count, inner: 1 }))
    }

    /// The plane of a set of axes that are adjacent or at both ends, of a tensor with elements: the
    /// sizes of an empty tensor can overflow.
    pub(super) fn in_memory(shape: &Shape, is_reduced: impl Fn(usize) -> bool) -> Option<Self> {
        if shape.size() == 0 {
            return None;
        }
        // Neighboring axes that are reduced, or kept, and their elements. Axes of size 1 may count as either.
        let mut parts: SmallVec<[(bool, usize); 4]> = SmallVec::new();
        for axis in (0..shape.rank()).filter(|&axis| shape[axis] != 1) {
            match parts.last_mut() {
                Some((kind, size)) if *kind == is_reduced(axis) => *size *= shape[axis],
                _ => parts.push((is_reduced(axis), shape[axis])),
            }
        }
        let (times, outer, count, inner) = match parts[..] {
            [] => (1, 1, 1, 1),
            [(false, outer)] => (1, outer, 1, 1),
            [(true, count)] => (1, 1, count, 1),
            [(false, outer), (true, count)] => (1, outer, count, 1),
            [(true, count), (false, inner)] => (1, 1, count, inner),
            [(false, outer), (true, count), (false, inner)] => (1, outer, count, inner),
            [(true, times), (false, outer), (true, count)] => (times, outer, count, 1),
            _ => return None,
        };
        Some(Self { times, outer, count, inner })
    }
}

/// The tensor with its reduced axes first, as `[count][inner]`.
pub(crate) fn reduced_first(
    cx: Cx<'_>,
    x: &HostTensor,
    is_reduced: impl Fn(usize) -> bool,
) -> Result<(HostTensor, Plane), Fault> {
    let moved = move_first(cx, x, &is_reduced)?;
    let (inner, count) = (size(x, |axis| !is_reduced(axis)), size(x, is_reduced));
    Ok((moved, Plane { times: 1, outer: 1, count, inner }))
}

/// The number of elements along some axes.
fn size(x: &HostTensor, is_counted: impl Fn(usize) -> bool) -> usize {
    let axes = (0..x.rank()).filter(|&axis| is_counted(axis));
    x.shape().size_along(axes)
}

/// The tensor with some axes before the others, in order.
fn move_first(
    cx: Cx<'_>,
    x: &HostTensor,
    is_first: impl Fn(usize) -> bool,
) -> Result<HostTensor, Fault> {
    let (first, last): (Vec<_>, Vec<_>) = (0..x.rank()).partition(|&axis| is_first(axis));
    permute(cx, x, &[first, last].concat())
}

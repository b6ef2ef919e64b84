//! Shapes, broadcasting and axis arithmetic.
//!
//! Sizes of zero are valid everywhere. A shape prints as in a type: `[2][3]`, and an empty string
//! for a scalar.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

use crate::dtype::DType;

/// The sizes of the axes of a tensor, outermost first.
///
/// ```
/// use nxla_tensor::Shape;
///
/// let shape = Shape::from([2, 3]);
/// assert_eq!(shape.to_string(), "[2][3]");
/// assert_eq!(shape.size(), 6);
/// assert_eq!(shape.strides().as_slice(), [3, 1]);
/// assert_eq!(Shape::scalar().size(), 1);
/// ```
#[derive(PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Shape(SmallVec<[usize; 4]>);

impl Clone for Shape {
    /// Copies the sizes at once instead of one by one.
    #[inline]
    fn clone(&self) -> Self {
        Shape(SmallVec::from_slice(&self.0))
    }
}

/// An error of shapes and axes.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// Two shapes differ along an axis where neither size is 1.
    #[error("cannot broadcast shapes {left:?} and {right:?}")]
    Broadcast {
        /// The left shape.
        left: Shape,
        /// The right shape.
        right: Shape,
    },
    /// An axis is outside of `-rank..rank`.
    #[error("axis {axis} is out of range for a tensor of rank {rank}")]
    AxisOutOfRange {
        /// The axis.
        axis: i64,
        /// The rank.
        rank: usize,
    },
    /// An axis is repeated, possibly once as a negative number.
    #[error("axes must be distinct; got axis {axis} twice in {axes:?}")]
    DuplicateAxis {
        /// The axes.
        axes: Vec<i64>,
        /// The repeated axis after resolving.
        axis: usize,
    },
    /// The size of an axis exceeds the limit.
    #[error("an axis must have at most {} elements; got {size}", MAX_AXIS)]
    AxisSize {
        /// The size.
        size: usize,
    },
    /// The number of axes exceeds the limit.
    #[error("a tensor must have at most {} axes; got {rank}", MAX_RANK)]
    Rank {
        /// The number of axes.
        rank: usize,
    },
}

crate::debug_as_message!(ShapeError);

/// The largest number of axes of a tensor, which is NumPy's limit.
pub const MAX_RANK: usize = 64;

/// The largest size of an axis, so that positions and sizes fit in `s64`.
pub const MAX_AXIS: usize = isize::MAX as usize;

impl Shape {
    /// Returns the shape of a scalar: no axes, one element.
    #[must_use]
    pub fn scalar() -> Shape {
        Shape(SmallVec::new())
    }

    /// Returns the number of axes.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Checks the limits of a tensor. An empty tensor can have any number of elements along its
    /// other axes, so memory does not limit them.
    ///
    /// # Errors
    /// Returns [`ShapeError::Rank`] if the rank is larger than [`MAX_RANK`], and
    /// [`ShapeError::AxisSize`] if an axis is larger than [`MAX_AXIS`].
    pub fn check_limits(&self) -> Result<(), ShapeError> {
        if self.rank() > MAX_RANK {
            return Err(ShapeError::Rank { rank: self.rank() });
        }
        match self.0.iter().find(|&&size| size > MAX_AXIS) {
            Some(&size) => Err(ShapeError::AxisSize { size }),
            None => Ok(()),
        }
    }

    /// Returns the number of elements, 1 for a scalar. Saturates at `usize::MAX`, which no buffer
    /// can have; use [`Shape::checked_size`] to detect overflow.
    #[must_use]
    pub fn size(&self) -> usize {
        self.checked_size().unwrap_or(usize::MAX)
    }

    /// Returns the number of elements, or `None` if it does not fit in `usize`.
    #[must_use]
    pub fn checked_size(&self) -> Option<usize> {
        // A size of zero makes the number of elements zero, for any other sizes.
        if self.0.contains(&0) {
            return Some(0);
        }
        self.0.iter().try_fold(1_usize, |size, &dim| size.checked_mul(dim))
    }

    /// Returns the bytes of a tensor of this shape and a dtype. Saturates as [`Shape::size`] does.
    ///
    /// ```
    /// use nxla_tensor::{DType, Shape};
    ///
    /// assert_eq!(Shape::from([2, 3]).byte_size(DType::F32), 24);
    /// assert_eq!(Shape::from([usize::MAX, 2]).checked_byte_size(DType::F32), None);
    /// ```
    #[must_use]
    pub fn byte_size(&self, dtype: DType) -> usize {
        self.checked_byte_size(dtype).unwrap_or(usize::MAX)
    }

    /// Returns the bytes of a tensor of this shape and a dtype, or `None` if they do not fit in
    /// `usize`.
    #[must_use]
    pub fn checked_byte_size(&self, dtype: DType) -> Option<usize> {
        self.checked_size()?.checked_mul(dtype.size())
    }

    /// Returns the number of elements along some axes, 1 for none. Saturates as [`Shape::size`] does.
    ///
    /// ```
    /// use nxla_tensor::Shape;
    ///
    /// assert_eq!(Shape::from([2, 3, 5]).size_along([0, 2]), 10);
    /// ```
    #[must_use]
    pub fn size_along(&self, axes: impl IntoIterator<Item = usize>) -> usize {
        axes.into_iter().map(|axis| self.0[axis]).collect::<Shape>().size()
    }

    /// Returns the row-major strides in elements.
    #[must_use]
    pub fn strides(&self) -> SmallVec<[usize; 4]> {
        let mut strides: SmallVec<[usize; 4]> = SmallVec::from_elem(1, self.rank());
        for axis in (1..self.rank()).rev() {
            strides[axis - 1] = strides[axis].saturating_mul(self.0[axis]);
        }
        strides
    }

    /// Returns the index of the element at a position in row-major order.
    #[must_use]
    pub fn index_at(&self, mut position: usize) -> Vec<usize> {
        let mut index = vec![0; self.rank()];
        for (at, &size) in index.iter_mut().zip(&self.0).rev() {
            *at = position % size.max(1);
            position /= size.max(1);
        }
        index
    }

    /// Returns the sizes as a slice.
    #[must_use]
    pub fn as_slice(&self) -> &[usize] {
        &self.0
    }

    /// Returns the sizes as a mutable slice; the rank cannot change.
    pub fn as_mut_slice(&mut self) -> &mut [usize] {
        &mut self.0
    }

    /// Appends an innermost axis.
    pub fn push(&mut self, dim: usize) {
        self.0.push(dim);
    }

    /// Inserts an axis before `axis`.
    ///
    /// # Panics
    /// Panics if `axis > rank`.
    pub fn insert(&mut self, axis: usize, dim: usize) {
        self.0.insert(axis, dim);
    }

    /// Removes an axis and returns its size.
    ///
    /// # Panics
    /// Panics if `axis >= rank`.
    pub fn remove(&mut self, axis: usize) -> usize {
        self.0.remove(axis)
    }
}

impl Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl AsRef<[usize]> for Shape {
    fn as_ref(&self) -> &[usize] {
        &self.0
    }
}

impl Borrow<[usize]> for Shape {
    fn borrow(&self) -> &[usize] {
        &self.0
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Shape {
        Shape(SmallVec::from_slice(dims))
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Shape {
        shape.clone()
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Shape {
        Shape(SmallVec::from_vec(dims))
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Shape {
        Shape(SmallVec::from_slice(&dims))
    }
}

impl<const N: usize> From<&[usize; N]> for Shape {
    fn from(dims: &[usize; N]) -> Shape {
        Shape(SmallVec::from_slice(dims))
    }
}

/// The shape of a vector.
impl From<usize> for Shape {
    fn from(size: usize) -> Shape {
        Shape::from([size])
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(dims: I) -> Shape {
        Shape(dims.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a Shape {
    type Item = &'a usize;
    type IntoIter = std::slice::Iter<'a, usize>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl PartialEq<[usize]> for Shape {
    fn eq(&self, other: &[usize]) -> bool {
        self.as_slice() == other
    }
}

impl PartialEq<&[usize]> for Shape {
    fn eq(&self, other: &&[usize]) -> bool {
        self.as_slice() == *other
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape {
    fn eq(&self, other: &[usize; N]) -> bool {
        self.as_slice() == other
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|dim| write!(f, "[{dim}]"))
    }
}

/// A shape is written as the list of its sizes.
impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_slice().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Shape, D::Error> {
        Vec::deserialize(deserializer).map(Shape::from)
    }
}

/// Returns the broadcast shape of two operands: aligned from the right, each pair of sizes must be
/// equal or contain 1.
///
/// # Errors
/// Returns [`ShapeError::Broadcast`] with both shapes.
///
/// ```
/// use nxla_tensor::broadcast_shapes;
///
/// assert_eq!(broadcast_shapes(&[4, 1, 3], &[5, 1]).unwrap(), [4, 5, 3]);
/// assert!(broadcast_shapes(&[2], &[3]).is_err());
/// ```
pub fn broadcast_shapes(left: &[usize], right: &[usize]) -> Result<Shape, ShapeError> {
    let rank = left.len().max(right.len());
    let dim = |shape: &[usize], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |index| shape[index])
    };
    (0..rank)
        .map(|axis| match (dim(left, axis), dim(right, axis)) {
            (a, b) if a == b => Some(a),
            (1, b) => Some(b),
            (a, 1) => Some(a),
            (_, _) => None,
        })
        .collect::<Option<SmallVec<_>>>()
        .map(Shape)
        .ok_or_else(|| ShapeError::Broadcast { left: left.into(), right: right.into() })
}

/// Returns the inverse of a permutation of `0..permutation.len()`.
///
/// ```
/// assert_eq!(*nxla_tensor::inverse_permutation(&[2, 0, 1]), [1, 2, 0]);
/// ```
#[must_use]
pub fn inverse_permutation(permutation: &[usize]) -> Box<[usize]> {
    let mut inverse = vec![0; permutation.len()];
    for (position, &axis) in permutation.iter().enumerate() {
        inverse[axis] = position;
    }
    inverse.into()
}

/// Resolves an axis that may count from the end (`-1` is the last) to `0..rank`.
///
/// # Errors
/// Returns [`ShapeError::AxisOutOfRange`] otherwise.
pub fn normalize_axis(axis: i64, rank: usize) -> Result<usize, ShapeError> {
    let error = ShapeError::AxisOutOfRange { axis, rank };
    let resolved = if axis < 0 {
        usize::try_from(axis.unsigned_abs()).ok().and_then(|back| rank.checked_sub(back))
    } else {
        usize::try_from(axis).ok()
    };
    resolved.filter(|&axis| axis < rank).ok_or(error)
}

/// Converts a size, an index or an axis to the signed type of arguments that may be negative.
///
/// ```
/// assert_eq!(-nxla_tensor::to_i64(3), -3);
/// ```
///
/// # Panics
/// Panics above [`MAX_AXIS`], which [`Shape::check_limits`] refuses.
#[must_use]
pub fn to_i64(size: usize) -> i64 {
    i64::try_from(size).expect("sizes of tensors fit in 63 bits")
}

/// Resolves several axes and keeps their order.
///
/// # Errors
/// Returns [`ShapeError::AxisOutOfRange`], or [`ShapeError::DuplicateAxis`] if two resolve to the
/// same axis.
pub fn normalize_axes(axes: &[i64], rank: usize) -> Result<SmallVec<[usize; 4]>, ShapeError> {
    let mut seen: SmallVec<[bool; 8]> = SmallVec::from_elem(false, rank);
    axes.iter()
        .map(|&axis| {
            let resolved = normalize_axis(axis, rank)?;
            if std::mem::replace(&mut seen[resolved], true) {
                return Err(ShapeError::DuplicateAxis { axes: axes.to_vec(), axis: resolved });
            }
            Ok(resolved)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_strides() {
        assert_eq!(Shape::scalar().strides().as_slice(), [0_usize; 0]);
        assert_eq!(Shape::from([2, 3, 4]).strides().as_slice(), [12, 4, 1]);
        assert_eq!(Shape::from([2, 0]).size(), 0);
        assert_eq!(Shape::from([usize::MAX, usize::MAX, 0]).checked_size(), Some(0));
        assert_eq!(Shape::from([usize::MAX, 2]).checked_size(), None);
        assert_eq!(Shape::from([usize::MAX, 2]).size(), usize::MAX);
    }

    #[test]
    fn printing() {
        assert_eq!(Shape::scalar().to_string(), "");
        assert_eq!(Shape::from([2, 0]).to_string(), "[2][0]");
        assert_eq!(format!("{:?}", Shape::from([2, 0])), "[2, 0]");
    }

    #[test]
    fn ranks_and_sizes_are_limited() {
        assert_eq!(Shape::from(vec![1; MAX_RANK]).check_limits(), Ok(()));
        let error = Shape::from(vec![1; MAX_RANK + 1]).check_limits().unwrap_err();
        assert_eq!(error.to_string(), "a tensor must have at most 64 axes; got 65");
        assert_eq!(Shape::from([0, MAX_AXIS]).check_limits(), Ok(()));
        let error = Shape::from([0, MAX_AXIS + 1]).check_limits().unwrap_err();
        let expected =
            "an axis must have at most 9223372036854775807 elements; got 9223372036854775808";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn broadcasting() {
        assert_eq!(broadcast_shapes(&[], &[]).unwrap(), Shape::scalar());
        assert_eq!(broadcast_shapes(&[], &[2, 0]).unwrap(), [2, 0]);
        assert_eq!(broadcast_shapes(&[1], &[0]).unwrap(), [0]);
        assert_eq!(broadcast_shapes(&[2, 1], &[3]).unwrap(), [2, 3]);
        let error = broadcast_shapes(&[0], &[2]).unwrap_err();
        assert_eq!(error.to_string(), "cannot broadcast shapes [0] and [2]");
    }

    #[test]
    fn axes() {
        assert_eq!(normalize_axis(-1, 3), Ok(2));
        assert_eq!(normalize_axis(0, 1), Ok(0));
        for (axis, rank) in [(0, 0), (3, 3), (-4, 3), (i64::MIN, 3), (i64::MAX, 3)] {
            assert_eq!(normalize_axis(axis, rank), Err(ShapeError::AxisOutOfRange { axis, rank }));
        }
        assert_eq!(normalize_axes(&[-1, 0], 3).unwrap().as_slice(), [2, 0]);
        assert_eq!(normalize_axes(&[], 0).unwrap().as_slice(), [0_usize; 0]);
        let error = normalize_axes(&[2, -1], 3).unwrap_err();
        assert_eq!(error.to_string(), "axes must be distinct; got axis 2 twice in [2, -1]");
    }
}

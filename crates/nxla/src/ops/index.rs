//! Slices, gathers, scatters and sorts.
//!
//! Indices that are out of range when a program runs are no error: slices and gathers clamp them,
//! scatters drop what would land outside.

use nxla_expr::build::SliceStart;
use nxla_tensor::DType;

use super::axes::{Axis, Over};
use super::methods;

/// Which elements along each axis: where a slice starts, how many it takes, and in which steps.
///
/// ```
/// use nxla::{Slice, Tensor};
///
/// let x = Tensor::from(vec![0, 1, 2, 3, 4, 5]);
/// assert_eq!(x.slice(&Slice::of([1], [3]))?.to_vec::<i32>()?, [1, 2, 3]);
/// assert_eq!(x.slice(&Slice::of([1], [4]).strides([2]))?.to_vec::<i32>()?, [1, 3]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice {
    starts: Vec<i64>,
    lengths: Vec<usize>,
    strides: Option<Vec<usize>>,
}

impl Slice {
    /// From a start so many elements along each axis.
    #[must_use]
    pub fn of(starts: impl Into<Vec<i64>>, lengths: impl Into<Vec<usize>>) -> Self {
        Self { starts: starts.into(), lengths: lengths.into(), strides: None }
    }

    /// Of the elements in the slice, every so manieth along each axis.
    #[must_use]
    pub fn strides(self, strides: impl Into<Vec<usize>>) -> Self {
        Self { strides: Some(strides.into()), ..self }
    }

    fn starts(&self) -> Vec<SliceStart> {
        self.starts.iter().map(|&start| start.into()).collect()
    }
}

/// Along which axis elements are sorted, and how.
///
/// ```
/// use nxla::{Sort, Tensor};
///
/// let x = Tensor::from(vec![2, 3, 1]);
/// assert_eq!(x.sort(0)?.to_vec::<i32>()?, [1, 2, 3]);
/// assert_eq!(x.argsort(Sort::axis(0).descending())?.to_vec::<i32>()?, [1, 0, 2]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sort {
    axis: Axis,
    descending: bool,
    stable: bool,
    dtype: DType,
}

impl Sort {
    /// Along an axis, the smallest first; equal elements keep their order.
    #[must_use]
    pub fn axis(axis: impl Into<Axis>) -> Self {
        Self { axis: axis.into(), descending: false, stable: true, dtype: DType::S32 }
    }

    /// The largest first.
    #[must_use]
    pub fn descending(self) -> Self {
        Self { descending: true, ..self }
    }

    /// Equal elements may change their order, which can be faster.
    #[must_use]
    pub fn unstable(self) -> Self {
        Self { stable: false, ..self }
    }

    /// `argsort` gives positions of this dtype instead of `s32`.
    #[must_use]
    pub fn dtype(self, dtype: DType) -> Self {
        Self { dtype, ..self }
    }
}

impl From<i64> for Sort {
    fn from(axis: i64) -> Self {
        Sort::axis(axis)
    }
}

impl From<i32> for Sort {
    fn from(axis: i32) -> Self {
        Sort::axis(axis)
    }
}

impl From<&str> for Sort {
    fn from(axis: &str) -> Self {
        Sort::axis(axis)
    }
}

methods! {
    /// A part of the tensor.
    fn slice(x; slice: &Slice) one |graph|
        graph.slice(x, &slice.starts(), &slice.lengths, slice.strides.as_deref());

    /// `length` elements along an axis, from `start` on, which may be computed; it is moved so
    /// that the slice fits.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![0, 1, 2, 3]);
    /// assert_eq!(x.slice_along_axis(1, 2, 0)?.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn slice_along_axis(x, start; length: usize, axis: impl Into<Axis>) one |graph| {
        let axis = axis.into().of(graph, "slice", x)?;
        graph.slice_along_axis(x, start, length, axis, 1)
    };

    /// One element along an axis, which is dropped; the index may be computed.
    fn at(x, index; axis: impl Into<Axis>) one |graph| {
        let axis = axis.into().of(graph, "slice", x)?;
        let part = graph.slice_along_axis(x, index, 1, axis, 1)?;
        graph.squeeze(part, Some(&[axis]))
    };

    /// With `update` in the place of a part that starts there, moved so that it fits.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![0, 0, 0]);
    /// assert_eq!(x.put_slice(Tensor::from(vec![7, 8]), &[1])?.to_vec::<i32>()?, [0, 7, 8]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn put_slice(x, update; starts: &[i64]) one |graph| {
        let starts: Vec<SliceStart> = starts.iter().map(|&start| start.into()).collect();
        graph.put_slice(x, &starts, update)
    };

    /// With `update` in the place of as many elements along an axis, from `start` on, which may be
    /// computed. The update has the tensor's shape in all other axes.
    fn put_slice_along_axis(x, start, update; axis: impl Into<Axis>) one |graph| {
        let axis = axis.into().of(graph, "put_slice", x)?;
        graph.put_slice_along_axis(x, start, update, axis)
    };

    /// The elements at indices along an axis, whose place the axes of the indices take.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::new(vec![1, 2, 3, 4], [2, 2])?;
    /// let rows = x.take(Tensor::from(vec![1, 1, 0]), 0)?;
    /// assert_eq!(rows.to_vec::<i32>()?, [3, 4, 3, 4, 1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn take(x, indices; axis: impl Into<Axis>) one |graph| {
        let axis = axis.into().of(graph, "take", x)?;
        graph.take(x, indices, axis)
    };

    /// The elements at indices along an axis, one index for each element of the result.
    fn take_along_axis(x, indices; axis: impl Into<Axis>) one |graph| {
        let axis = axis.into().of(graph, "take_along_axis", x)?;
        graph.take_along_axis(x, indices, axis)
    };

    /// The elements at positions, which are the last axis of the indices: one number for each of
    /// these axes, which are all for `()`.
    fn gather(x, indices; over: impl Into<Over>) one |graph| {
        let axes = over.into().of(graph, "gather", x)?;
        graph.gather(x, indices, axes.as_deref())
    };

    /// With updates added at positions, told as for [`gather`](Self::gather).
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let at = Tensor::new(vec![2, 2, 0], [3, 1])?;
    /// let counts = Tensor::from(vec![0, 0, 0]).indexed_add(at, Tensor::from(vec![1, 1, 5]), ())?;
    /// assert_eq!(counts.to_vec::<i32>()?, [5, 0, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn indexed_add(x, indices, updates; over: impl Into<Over>) one |graph| {
        let axes = over.into().of(graph, "indexed_add", x)?;
        graph.indexed_add(x, indices, updates, axes.as_deref())
    };

    /// With updates put at positions, told as for [`gather`](Self::gather). Of several at one
    /// position one stays.
    fn indexed_put(x, indices, updates; over: impl Into<Over>) one |graph| {
        let axes = over.into().of(graph, "indexed_put", x)?;
        graph.indexed_put(x, indices, updates, axes.as_deref())
    };

    /// The differences of neighbours along an axis, `order` times over.
    fn diff(x; order: usize, axis: impl Into<Axis>) one |graph| {
        let axis = axis.into().of(graph, "diff", x)?;
        graph.diff(x, order, axis)
    };

    /// In order along an axis; NaN comes last.
    fn sort(x; sort: impl Into<Sort>) one |graph| {
        let sort = sort.into();
        let axis = sort.axis.of(graph, "sort", x)?;
        graph.sort(x, axis, sort.descending, sort.stable)
    };

    /// Where the elements in order are along an axis.
    fn argsort(x; sort: impl Into<Sort>) one |graph| {
        let sort = sort.into();
        let axis = sort.axis.of(graph, "argsort", x)?;
        graph.argsort(x, axis, sort.descending, sort.stable, sort.dtype)
    };

    /// The `k` largest elements along the last axis, the largest first, and where they are.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (values, indices) = Tensor::from(vec![1, 9, 5]).top_k(2)?;
    /// assert_eq!((values.to_vec::<i32>()?, indices.to_vec::<i32>()?), (vec![9, 5], vec![1, 2]));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn top_k(x; k: usize) two |graph| graph.top_k(x, k);
}

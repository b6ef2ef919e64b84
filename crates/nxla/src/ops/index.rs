//! Slices, gathers, scatters and sorts.
//!
//! Out-of-range indices at run time are not errors: slices and gathers clamp them, and scatters
//! ignore their updates. `position.rs` contains the functions with constant indices.

use std::panic::Location;

use nxla_expr::build::SliceStart;
use nxla_expr::{ErrorKind, ExprId, Graph};
use nxla_tensor::{DType, Number};

use super::axes::{Axis, Over, from_axis};
use super::methods;
use crate::Result;
use crate::apply::{in_trace, run_eagerly};
use crate::expr::Expr;
use crate::tensor::Tensor;
use crate::{Operand, Value};

/// A range along each axis: its start, which may be computed, its length and its stride.
///
/// ```
/// use nxla::{Slice, Tensor};
///
/// let x = Tensor::from(vec![0, 1, 2, 3, 4, 5]);
/// assert_eq!(x.slice(&Slice::new([1], [3]))?.to_vec::<i32>()?, [1, 2, 3]);
/// assert_eq!(x.slice(&Slice::new([1], [4]).strides([2]))?.to_vec::<i32>()?, [1, 3]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Slice {
    starts: Starts,
    lengths: Vec<usize>,
    strides: Option<Vec<usize>>,
}

impl Slice {
    /// Creates a slice with a start and a length along each axis.
    ///
    /// ```
    /// use nxla::{Slice, Tensor};
    ///
    /// let x = Tensor::from([0, 1, 2, 3]);
    /// assert_eq!(x.slice(&Slice::new([1], [2]))?.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn new<T: Operand>(
        starts: impl IntoIterator<Item = T>,
        lengths: impl Into<Vec<usize>>,
    ) -> Self {
        Self { starts: Starts::of(starts), lengths: lengths.into(), strides: None }
    }

    /// Takes every `strides`-th element of the slice along each axis.
    ///
    /// ```
    /// use nxla::{Slice, Tensor};
    ///
    /// let x = Tensor::from([0, 1, 2, 3]);
    /// assert_eq!(x.slice(&Slice::new([0], [4]).strides([3]))?.to_vec::<i32>()?, [0, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn strides(self, strides: impl Into<Vec<usize>>) -> Self {
        Self { strides: Some(strides.into()), ..self }
    }

    /// Builds the slice of the first node; the other nodes are computed starts.
    fn build(&self, graph: &mut Graph, ids: &[ExprId]) -> Result<ExprId> {
        let starts = self.starts.among(&ids[1..]);
        Ok(graph.slice(ids[0], &starts, &self.lengths, self.strides.as_deref())?)
    }
}

/// The start of a slice along each axis.
#[derive(Clone, Debug)]
struct Starts(Vec<Start>);

#[derive(Clone, Debug)]
enum Start {
    Known(i64),
    Computed(Value),
}

impl Starts {
    fn of<T: Operand>(starts: impl IntoIterator<Item = T>) -> Self {
        let start = |start: T| match start.to_value() {
            // Larger starts are clamped in any case.
            Value::Number(Number::Int(at)) => {
                Start::Known(at.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
            }
            value => Start::Computed(value),
        };
        Self(starts.into_iter().map(start).collect())
    }

    /// Returns these operands, then the computed starts.
    fn after<const N: usize>(&self, operands: [Value; N]) -> Vec<Value> {
        let computed = self.0.iter().filter_map(|start| match start {
            Start::Known(_) => None,
            Start::Computed(value) => Some(value.clone()),
        });
        operands.into_iter().chain(computed).collect()
    }

    /// Returns the starts, with the nodes of computed starts.
    fn among(&self, computed: &[ExprId]) -> Vec<SliceStart> {
        let mut computed = computed.iter();
        let start = |start: &Start| match start {
            Start::Known(at) => SliceStart::Static(*at),
            Start::Computed(_) => SliceStart::Dynamic(*computed.next().expect("each has a node")),
        };
        self.0.iter().map(start).collect()
    }

    /// Writes the second node over a part of the first; the other nodes are computed starts.
    fn put(&self, graph: &mut Graph, ids: &[ExprId]) -> Result<ExprId> {
        Ok(graph.put_slice(ids[0], &self.among(&ids[2..]), ids[1])?)
    }
}

impl Expr {
    /// Returns a slice of the tensor, clamped so that it fits.
    ///
    /// ```
    /// use nxla::{Expr, Slice, Tensor, jit};
    ///
    /// let block = jit(|x: Expr, i: Expr, j: Expr| x.slice(&Slice::new([i, j], [1, 2])));
    /// let x = Tensor::new(vec![1, 2, 3, 4, 5, 6], [2, 3])?;
    /// assert_eq!(block.call((x, 1, 1))?.to_vec::<i32>()?, [5, 6]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn slice(&self, slice: &Slice) -> Expr {
        let operands = slice.starts.after([self.to_value()]);
        let location = Location::caller();
        in_trace("slice", self.trace(), location, &operands, |graph, ids| slice.build(graph, ids))
    }

    /// Writes `update` over a part of the tensor from `starts`, clamped so that it fits. The starts
    /// may be computed.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, jit};
    ///
    /// let put = jit(|x: Expr, at: Expr| x.put_slice(Expr::of(7).new_axis(0), &[at]));
    /// assert_eq!(put.call((Tensor::from([0, 0, 0]), 1))?.to_vec::<i32>()?, [0, 7, 0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn put_slice<T: Operand>(&self, update: impl Operand, starts: &[T]) -> Expr {
        let starts = Starts::of(starts);
        let operands =
            starts.after([self.to_value(), nxla_runtime::element(&update, self.dtype())]);
        let location = Location::caller();
        in_trace("put_slice", self.trace(), location, &operands, |graph, ids| {
            starts.put(graph, ids)
        })
    }
}

impl Tensor {
    /// Returns a slice of the tensor, clamped so that it fits.
    ///
    /// ```
    /// use nxla::{Slice, Tensor};
    ///
    /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.slice(&Slice::new([1, 0], [1, 2]))?.to_vec::<i32>()?, [4, 5]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for invalid arguments, and the errors of the computation.
    #[track_caller]
    pub fn slice(&self, slice: &Slice) -> Result<Tensor> {
        let operands = slice.starts.after([self.to_value()]);
        run_eagerly("slice", &operands, |graph, ids| slice.build(graph, ids))
    }

    /// Writes `update` over a part of the tensor from `starts`, clamped so that it fits.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![0, 0, 0]);
    /// assert_eq!(x.put_slice(Tensor::from(vec![7, 8]), &[1])?.to_vec::<i32>()?, [0, 7, 8]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for invalid arguments, and the errors of the computation.
    #[track_caller]
    pub fn put_slice<T: Operand>(&self, update: impl Operand, starts: &[T]) -> Result<Tensor> {
        let starts = Starts::of(starts);
        let operands =
            starts.after([self.to_value(), nxla_runtime::element(&update, self.dtype())]);
        run_eagerly("put_slice", &operands, |graph, ids| starts.put(graph, ids))
    }
}

/// The axis and options of a sort.
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
    dtype: Option<DType>,
}

impl Sort {
    /// Sorts along an axis in increasing order; equal elements keep their order.
    ///
    /// ```
    /// use nxla::{Sort, Tensor};
    ///
    /// assert_eq!(Tensor::from([2, 3, 1]).sort(Sort::axis(0))?.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn axis(axis: impl Into<Axis>) -> Self {
        Self { axis: axis.into(), descending: false, stable: true, dtype: None }
    }

    /// Sorts in decreasing order.
    ///
    /// ```
    /// use nxla::{Sort, Tensor};
    ///
    /// let x = Tensor::from([2, 3, 1]);
    /// assert_eq!(x.sort(Sort::axis(0).descending())?.to_vec::<i32>()?, [3, 2, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn descending(self) -> Self {
        Self { descending: true, ..self }
    }

    /// Allows equal elements to change their order, which can be faster.
    ///
    /// ```
    /// use nxla::{Sort, Tensor};
    ///
    /// let x = Tensor::from([2, 3, 1]);
    /// assert_eq!(x.sort(Sort::axis(0).unstable())?.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn unstable(self) -> Self {
        Self { stable: false, ..self }
    }

    /// Makes `argsort` return indices of this dtype instead of `s32`.
    ///
    /// ```
    /// use nxla::{DType, Sort, Tensor};
    ///
    /// let x = Tensor::from([2, 1]);
    /// assert_eq!(x.argsort(Sort::axis(0).dtype(DType::U8))?.to_vec::<u8>()?, [1, 0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn dtype(self, dtype: DType) -> Self {
        Self { dtype: Some(dtype), ..self }
    }
}

from_axis!(Sort);

methods! {
    /// Returns the elements at indices along an axis, one index for each element of the result.
    /// Negative indices count from the end, and indices out of range are clamped.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// let taken = x.take_along_axis(Tensor::from([[1], [0]]), 1)?;
    /// assert_eq!(taken.to_vec::<i32>()?, [2, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn take_along_axis(x, indices as position; axis into Axis) one |graph|
        graph.take_along_axis(x, indices, axis.of(graph, x)?);

    /// Returns the elements at coordinates, which are the last axis of `indices`: one for each of
    /// these axes, or for all axes with `()`. Negative indices count from the end, and indices out of
    /// range are clamped.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.gather(Tensor::from([[1, 0], [0, 1]]), ())?.to_vec::<i32>()?, [3, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn gather(x, indices as position; over into Over) one |graph|
        graph.gather(x, indices, over.of(graph, x)?.as_deref());

    /// Adds updates at indices with the layout of [`gather`](Self::gather).
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let at = Tensor::new(vec![2, 2, 0], [3, 1])?;
    /// let counts = Tensor::from(vec![0, 0, 0]).indexed_add(at, Tensor::from(vec![1, 1, 5]), ())?;
    /// assert_eq!(counts.to_vec::<i32>()?, [5, 0, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn indexed_add(x, indices as position, updates as element; over into Over) one |graph|
        graph.indexed_add(x, indices, updates, over.of(graph, x)?.as_deref());

    /// Writes updates at indices with the layout of [`gather`](Self::gather). Of several updates of
    /// one element, one remains. Updates at indices out of range are dropped.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2, 3]);
    /// let put = x.indexed_put(Tensor::from([[2], [0]]), Tensor::from([7, 8]), ())?;
    /// assert_eq!(put.to_vec::<i32>()?, [8, 2, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn indexed_put(x, indices as position, updates as element; over into Over) one |graph|
        graph.indexed_put(x, indices, updates, over.of(graph, x)?.as_deref());

    /// Returns the differences of neighbors along an axis, applied `order` times.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([1, 4, 9]).diff(1, 0)?.to_vec::<i32>()?, [3, 5]);
    /// assert_eq!(Tensor::from([1, 4, 9]).diff(2, 0)?.to_vec::<i32>()?, [2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn diff(x; order: usize, axis into Axis) one |graph| graph.diff(x, order, axis.of(graph, x)?);

    /// Sorts along an axis; NaN comes last.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([2, 3, 1]).sort(0)?.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn sort(x; sort into Sort) one |graph| {
        let axis = sort.axis.of(graph, x)?;
        if sort.dtype.is_some() {
            let why = "must have no dtype, which is for the indices of `argsort`; remove `dtype`";
            return Err(graph.error("sort", ErrorKind::invalid("sort", why)).into());
        }
        graph.sort(x, axis, sort.descending, sort.stable)
    };

    /// Returns the indices that sort an axis.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([2, 3, 1]).argsort(0)?.to_vec::<i32>()?, [2, 0, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn argsort(x; sort into Sort) one |graph| {
        let axis = sort.axis.of(graph, x)?;
        graph.argsort(x, axis, sort.descending, sort.stable, sort.dtype.unwrap_or(DType::S32))
    };

    /// Returns the `k` largest elements along the last axis in decreasing order, and their indices.
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

//! Elements by index: constant indices are checked when the node is built, and negative indices
//! count from the end.
//!
//! Computed indices are known only at run time; out-of-range indices are then clamped.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use std::panic::Location;

use nxla_expr::build::SliceStart;
use nxla_expr::{ErrorKind, ExprId, Graph};
use nxla_tensor::{Number, to_i64};

use super::axes::Axis;
use crate::apply::{in_trace, run_eagerly};
use crate::expr::Expr;
use crate::tensor::Tensor;
use crate::{Operand, Result, Value};

/// An index along an axis.
#[derive(Clone, Debug)]
enum Position {
    /// A constant, which may be negative.
    Known(i128),
    /// A computed value, which is the next operand.
    Computed(Value),
}

impl Position {
    fn of(operand: impl Operand) -> Self {
        match operand.to_value() {
            Value::Number(Number::Int(at)) => Position::Known(at),
            value => Position::Computed(nxla_runtime::position(&value)),
        }
    }

    /// Returns these operands, and the index if it is computed.
    fn after<const N: usize>(&self, operands: [Value; N]) -> Vec<Value> {
        operands.into_iter().chain(self.operand()).collect()
    }

    fn operand(&self) -> Option<Value> {
        match self {
            Position::Known(_) => None,
            Position::Computed(value) => Some(value.clone()),
        }
    }

    /// Returns the start of `length` elements of an axis; `computed` is the operand.
    fn start(
        &self,
        graph: &Graph,
        (x, axis): (ExprId, usize),
        length: usize,
        computed: Option<ExprId>,
    ) -> Result<SliceStart> {
        let (Position::Known(at), size) = (self, graph.shape(x)[axis]) else {
            return Ok(SliceStart::Dynamic(computed.expect("a computed position is an operand")));
        };
        let from_start = if *at < 0 { at + size as i128 } else { *at };
        match usize::try_from(from_start) {
            Ok(start) if start.saturating_add(length) <= size => Ok(SliceStart::at(start)),
            _ => {
                let found = match length {
                    1 => at.to_string(),
                    _ => format!("{length} elements from {at}"),
                };
                let why = format!("must be inside axis {axis} of size {size}; got {found}");
                Err(graph.error("index", ErrorKind::invalid("index", why)).into())
            }
        }
    }

    /// Returns `length` elements along an axis of the first node.
    fn part(&self, graph: &mut Graph, ids: &[ExprId], along: AxisLength<'_>) -> Result<ExprId> {
        let axis = position_of(graph, ids[0], along.axis)?;
        let start = self.start(graph, (ids[0], axis), along.length, ids.get(1).copied())?;
        Ok(graph.slice_along_axis(ids[0], start, along.length, to_i64(axis), 1)?)
    }

    /// Returns one element along an axis of the first node, without the axis.
    fn element(&self, graph: &mut Graph, ids: &[ExprId], axis: &Axis) -> Result<ExprId> {
        let axis = axis.of(graph, ids[0])?;
        let part = self.part(graph, ids, AxisLength { axis: &Axis::Number(axis), length: 1 })?;
        Ok(graph.squeeze(part, Some(&[axis]))?)
    }

    /// Returns the elements at an index, or at the indices in the second node.
    fn take(&self, graph: &mut Graph, ids: &[ExprId], axis: &Axis) -> Result<ExprId> {
        let &[x, indices] = ids else { return self.element(graph, ids, axis) };
        let axis = axis.of(graph, x)?;
        Ok(graph.take(x, indices, axis)?)
    }

    /// Writes the second node over elements of the first node, from an index on.
    fn put(&self, graph: &mut Graph, ids: &[ExprId], axis: &Axis) -> Result<ExprId> {
        let (x, update) = (ids[0], ids[1]);
        let axis = position_of(graph, x, axis)?;
        let length = graph.shape(update).get(axis).copied().unwrap_or_default();
        let start = self.start(graph, (x, axis), length, ids.get(2).copied())?;
        Ok(graph.put_slice_along_axis(x, start, update, to_i64(axis))?)
    }
}

/// Returns the nonnegative index of an axis.
fn position_of(graph: &Graph, x: ExprId, axis: &Axis) -> Result<usize> {
    Ok(axis.position(graph.tensor_type(x)).map_err(|kind| graph.error("axis", kind))?)
}

/// A number of elements along an axis.
struct AxisLength<'a> {
    axis: &'a Axis,
    length: usize,
}

/// The selection along one axis: an element, which drops the axis, or a range.
///
/// Integers, ranges and `..` convert to an index; negative values count from the end. A computed
/// element index is clamped.
///
/// ```
/// use nxla::{Index, Tensor};
///
/// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
/// assert_eq!(x.at((Index::from(-1), Index::from(1..)))?.to_vec::<i32>()?, [5, 6]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Index {
    kind: Kind,
    /// The distance between selected elements, which must be 1 except for a range.
    step: usize,
}

#[derive(Clone, Debug)]
enum Kind {
    One(Position),
    Range { start: Option<i128>, end: Option<i128> },
    New,
}

/// An [`Index`] that inserts a new axis of size 1.
///
/// ```
/// use nxla::{NewAxis, Tensor};
///
/// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
/// assert_eq!(x.at((0, NewAxis))?.shape()[..], [1, 3]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewAxis;

impl Index {
    /// Creates a range from `start` up to and excluding `end`, like `start..end`. Clippy treats
    /// `1..-1` as an empty range.
    ///
    /// ```
    /// use nxla::{Index, Tensor};
    ///
    /// let x = Tensor::from([0, 1, 2, 3]);
    /// assert_eq!(x.at(Index::between(1, -1))?.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn between(start: i64, end: i64) -> Self {
        Index::range(Some(start.into()), Some(end.into()))
    }

    /// Takes every `step`-th element of the range. The step of an element index or a new axis is an
    /// error of the selection, except for 1.
    ///
    /// ```
    /// use nxla::{Index, Tensor};
    ///
    /// let x = Tensor::from([0, 1, 2, 3, 4, 5]);
    /// assert_eq!(x.at(Index::from(1..).step(2))?.to_vec::<i32>()?, [1, 3, 5]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn step(self, step: usize) -> Self {
        Self { step, ..self }
    }

    fn operand(&self) -> Option<Value> {
        match &self.kind {
            Kind::One(position) => position.operand(),
            Kind::Range { .. } | Kind::New => None,
        }
    }

    fn range(start: Option<i128>, end: Option<i128>) -> Self {
        Self { kind: Kind::Range { start, end }, step: 1 }
    }

    /// Returns the end of a range whose last element is `last`, where -1 is the last element of the
    /// axis.
    fn past(last: i128) -> Option<i128> {
        (last != -1).then_some(last + 1)
    }
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Self {
        Index::range(None, None)
    }
}

impl From<NewAxis> for Index {
    fn from(_: NewAxis) -> Self {
        Index { kind: Kind::New, step: 1 }
    }
}

/// A selection for each axis: an [`Index`], or a tuple of indices for the leading axes. Other axes
/// are not changed.
///
/// ```
/// use nxla::{NewAxis, Tensor};
///
/// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
/// assert_eq!(x.at(-1)?.to_vec::<i32>()?, [4, 5, 6]);
/// assert_eq!(x.at((.., 1..))?.to_vec::<i32>()?, [2, 3, 5, 6]);
/// assert_eq!(x.at((0, NewAxis, 2))?.shape()[..], [1]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an index nor a tuple of indices",
    note = "write the indices of several axes as a tuple: `x.at((0, 1..))`",
    note = "select a list of positions along one axis with `x.take(Tensor::from(list), axis)`"
)]
pub trait Indices: sealed::Sealed {
    /// Returns the indices in the order of the axes.
    fn indices(self) -> Vec<Index>;
}

mod sealed {
    /// Restricts [`super::Indices`] to types that convert to an index, and tuples of them.
    pub trait Sealed {}
}

macro_rules! indices {
    ($($ty:ty)*) => {
        $(
            impl sealed::Sealed for $ty {}

            impl Indices for $ty {
                fn indices(self) -> Vec<Index> {
                    vec![self.into()]
                }
            }
        )*
    };
    (@tuples $(($($name:ident $index:tt),+))*) => {
        $(
            impl<$($name: Into<Index>),+> sealed::Sealed for ($($name,)+) {}

            impl<$($name: Into<Index>),+> Indices for ($($name,)+) {
                fn indices(self) -> Vec<Index> {
                    vec![$(self.$index.into()),+]
                }
            }
        )*
    };
    (@numbers $($ty:ty)*) => {
        $(
            indices!(@one $ty);
            indices!($ty Range<$ty> RangeFrom<$ty> RangeTo<$ty> RangeInclusive<$ty>
                RangeToInclusive<$ty>);

            impl From<Range<$ty>> for Index {
                fn from(range: Range<$ty>) -> Self {
                    Index::range(Some(range.start as i128), Some(range.end as i128))
                }
            }

            impl From<RangeFrom<$ty>> for Index {
                fn from(range: RangeFrom<$ty>) -> Self {
                    Index::range(Some(range.start as i128), None)
                }
            }

            impl From<RangeTo<$ty>> for Index {
                fn from(range: RangeTo<$ty>) -> Self {
                    Index::range(None, Some(range.end as i128))
                }
            }

            impl From<RangeInclusive<$ty>> for Index {
                fn from(range: RangeInclusive<$ty>) -> Self {
                    let (start, last) = range.into_inner();
                    Index::range(Some(start as i128), Index::past(last as i128))
                }
            }

            impl From<RangeToInclusive<$ty>> for Index {
                fn from(range: RangeToInclusive<$ty>) -> Self {
                    Index::range(None, Index::past(range.end as i128))
                }
            }
        )*
    };
    (@one $($ty:ty)*) => {
        $(
            impl From<$ty> for Index {
                fn from(position: $ty) -> Self {
                    Index { kind: Kind::One(Position::of(position)), step: 1 }
                }
            }
        )*
    };
}

indices!(@numbers i32 i64 u32 usize);
indices!(@one Expr &Expr Tensor &Tensor);
indices!(Index RangeFull NewAxis Expr &Expr Tensor &Tensor);
indices!(@tuples
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
);

/// Returns the bounds of a range in an axis of this size, from its start.
fn bounds(start: Option<i128>, end: Option<i128>, size: usize) -> Option<(usize, usize)> {
    let from_start = |at: i128| usize::try_from(if at < 0 { at + size as i128 } else { at }).ok();
    let (start, end) = (from_start(start.unwrap_or(0))?, from_start(end.unwrap_or(size as i128))?);
    (start <= end && end <= size).then_some((start, end))
}

/// Selects elements of the first node by indices; the other nodes are computed indices.
fn pick(graph: &mut Graph, ids: &[ExprId], indices: &[Index]) -> Result<ExprId> {
    let (x, mut computed) = (ids[0], ids[1..].iter().copied());
    let shape = graph.shape(x).clone();
    let axes = indices.iter().filter(|index| !matches!(index.kind, Kind::New)).count();
    let wrong = |graph: &Graph, why: String| {
        Err(graph.error("at", ErrorKind::invalid("index", why)).into())
    };
    if axes > shape.rank() {
        let ty = graph.tensor_type(x).to_string();
        return wrong(
            graph,
            format!("must have at most one entry for each axis of {ty}; got {axes}"),
        );
    }
    let mut starts = vec![SliceStart::Static(0); shape.rank()];
    let (mut lengths, mut strides) = (shape.to_vec(), vec![1; shape.rank()]);
    let (mut dropped, mut new) = (Vec::new(), Vec::new());
    let (mut axis, mut kept) = (0, 0);
    for index in indices {
        if !matches!(index.kind, Kind::Range { .. }) && index.step != 1 {
            let why = format!("must be a range to have a step; got a step of {}", index.step);
            return wrong(graph, why);
        }
        match &index.kind {
            Kind::New => new.push(to_i64(kept)),
            Kind::One(position) => {
                let operand = position.operand().and_then(|_| computed.next());
                starts[axis] = position.start(graph, (x, axis), 1, operand)?;
                lengths[axis] = 1;
                dropped.push(to_i64(axis));
            }
            Kind::Range { start, end } => {
                let size = shape[axis];
                let Some((from, to)) = bounds(*start, *end, size) else {
                    let text =
                        |bound: &Option<i128>| bound.map_or(String::new(), |at| at.to_string());
                    let range = format!("{}..{}", text(start), text(end));
                    let why = format!("must be inside axis {axis} of size {size}; got {range}");
                    return wrong(graph, why);
                };
                starts[axis] = SliceStart::at(from);
                (lengths[axis], strides[axis]) = (to - from, index.step);
            }
        }
        let is_axis = !matches!(index.kind, Kind::New);
        axis += usize::from(is_axis);
        kept += usize::from(!matches!(index.kind, Kind::One(_)));
    }
    let part = graph.slice(x, &starts, &lengths, Some(&strides))?;
    let mut part = graph.squeeze(part, Some(&dropped))?;
    for axis in new {
        part = graph.new_axis(part, axis, None)?;
    }
    Ok(part)
}

/// Defines a method of both `Expr` and `Tensor`, from the operands and the body.
macro_rules! positioned {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($self:ident $(, $arg:ident: $ty:ty)*) {
            $(let $let:ident = $value:expr;)*
            $operands:expr => |$graph:ident, $ids:ident| $body:expr
        }
    )*) => {
        impl Expr {
            $(
                $(#[$meta])*
                #[must_use]
                #[track_caller]
                pub fn $name(&$self $(, $arg: $ty)*) -> Expr {
                    $(let $let = $value;)*
                    let location = Location::caller();
                    let function = stringify!($name);
                    in_trace(function, $self.trace(), location, &$operands, |$graph, $ids| $body)
                }
            )*
        }

        impl Tensor {
            $(
                $(#[$meta])*
                ///
                /// # Errors
                /// Returns an error for invalid operands or arguments, and the errors of the
                /// computation.
                #[track_caller]
                pub fn $name(&$self $(, $arg: $ty)*) -> Result<Tensor> {
                    $(let $let = $value;)*
                    run_eagerly(stringify!($name), &$operands, |$graph, $ids| $body)
                }
            )*
        }
    };
}

positioned! {
    /// Selects elements by ranges and indices, one for each of the leading axes; an index drops its
    /// axis. Negative values count from the end, and out-of-range constants are errors.
    ///
    /// ```
    /// use nxla::{NewAxis, Tensor};
    ///
    /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.at((.., 1..3))?.to_vec::<i32>()?, [2, 3, 5, 6]);
    /// assert_eq!(x.at(-1)?.to_vec::<i32>()?, [4, 5, 6]);
    /// assert_eq!(x.at((0, -1))?.item::<i32>()?, 3);
    /// assert_eq!(x.at((NewAxis, .., 1))?.shape()[..], [1, 2]);
    /// assert!(x.at((.., 1..4)).is_err());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn at(self, indices: impl Indices) {
        let indices = indices.indices();
        let computed = indices.iter().filter_map(Index::operand);
        let operands = std::iter::once(self.to_value()).chain(computed).collect::<Vec<_>>();
        operands => |graph, ids| pick(graph, ids, &indices)
    }

    /// Returns one element along an axis, which is dropped; the index may be computed. A negative
    /// constant counts from the end, and an out-of-range constant is an error.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.at_axis(-1, 1)?.to_vec::<i32>()?, [3, 6]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn at_axis(self, index: impl Operand, axis: impl Into<Axis>) {
        let index = Position::of(index);
        let axis = axis.into();
        index.after([self.to_value()]) => |graph, ids| index.element(graph, ids, &axis)
    }

    /// Returns `length` elements along an axis from `start`. A negative constant counts from the
    /// end, and an out-of-range constant is an error; a computed start is clamped.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([0, 1, 2, 3]);
    /// assert_eq!(x.slice_along_axis(1, 2, 0)?.to_vec::<i32>()?, [1, 2]);
    /// assert_eq!(x.slice_along_axis(-2, 2, 0)?.to_vec::<i32>()?, [2, 3]);
    /// assert!(x.slice_along_axis(3, 2, 0).is_err());
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn slice_along_axis(self, start: impl Operand, length: usize, axis: impl Into<Axis>) {
        let start = Position::of(start);
        let axis = axis.into();
        start.after([self.to_value()]) => |graph, ids|
            start.part(graph, ids, AxisLength { axis: &axis, length })
    }

    /// Writes `update` over as many elements along an axis, from `start` as in
    /// [`slice_along_axis`](Self::slice_along_axis). Other axes of the update must have the sizes
    /// of the tensor.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
    /// let put = x.put_slice_along_axis(1, Tensor::from([[0], [0]]), 1)?;
    /// assert_eq!(put.to_vec::<i32>()?, [1, 0, 3, 4, 0, 6]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn put_slice_along_axis(
        self,
        start: impl Operand,
        update: impl Operand,
        axis: impl Into<Axis>
    ) {
        let start = Position::of(start);
        let axis = axis.into();
        start.after([self.to_value(), nxla_runtime::element(&update, self.dtype())]) => |graph, ids|
            start.put(graph, ids, &axis)
    }

    /// Returns the elements at indices along an axis, which the axes of the indices replace. A
    /// scalar is one index, as in [`at_axis`](Self::at_axis); computed indices are clamped.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// let rows = x.take(Tensor::from([1, 1, 0]), 0)?;
    /// assert_eq!(rows.to_vec::<i32>()?, [3, 4, 3, 4, 1, 2]);
    /// assert_eq!(x.take(-1, 1)?.to_vec::<i32>()?, [2, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn take(self, indices: impl Operand, axis: impl Into<Axis>) {
        let indices = Position::of(indices);
        let axis = axis.into();
        indices.after([self.to_value()]) => |graph, ids| indices.take(graph, ids, &axis)
    }
}

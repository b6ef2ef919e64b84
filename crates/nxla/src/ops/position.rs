//! Elements by position: what is told by numbers is checked when it is built, and negative numbers
//! count from the end.
//!
//! Positions that are computed are known when the program runs; those out of range are clamped then.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use std::panic::Location;

use nxla_expr::build::SliceStart;
use nxla_expr::{ErrorKind, ExprId, Graph};
use nxla_tensor::Number;

use super::axes::Axis;
use crate::apply::{at_once, in_trace};
use crate::expr::Expr;
use crate::tensor::Tensor;
use crate::{Operand, Result, Value};

/// Where something is along an axis.
#[derive(Clone, Debug)]
enum Position {
    /// Told by a number, which may be negative.
    Known(i128),
    /// Told by a value, the next operand.
    Computed(Value),
}

impl Position {
    fn of(operand: impl Operand) -> Self {
        match operand.to_value() {
            Value::Number(Number::Int(at)) => Position::Known(at),
            value => Position::Computed(nxla_runtime::position(&value)),
        }
    }

    /// These operands, and the position if it is computed.
    fn after<const N: usize>(&self, operands: [Value; N]) -> Vec<Value> {
        operands.into_iter().chain(self.operand()).collect()
    }

    fn operand(&self) -> Option<Value> {
        match self {
            Position::Known(_) => None,
            Position::Computed(value) => Some(value.clone()),
        }
    }

    /// Where so many elements of an axis begin; `computed` is the operand.
    fn start(
        &self,
        graph: &Graph,
        (op, x, axis): (&str, ExprId, usize),
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
                let what = match length {
                    1 => format!("element {at} is"),
                    _ => format!("{length} elements from {at} on are"),
                };
                let why = format!("{what} out of range of axis {axis}, which has {size}");
                Err(graph.error(op, ErrorKind::invalid("index", why)).into())
            }
        }
    }

    /// So many elements along an axis of the first node.
    fn part(
        &self,
        op: &str,
        graph: &mut Graph,
        ids: &[ExprId],
        along: Along<'_>,
    ) -> Result<ExprId> {
        let axis = position_of(graph, op, ids[0], along.axis)?;
        let start = self.start(graph, (op, ids[0], axis), along.length, ids.get(1).copied())?;
        Ok(graph.slice_along_axis(ids[0], start, along.length, axis as i64, 1)?)
    }

    /// One element along an axis of the first node, without the axis.
    fn element(&self, op: &str, graph: &mut Graph, ids: &[ExprId], axis: &Axis) -> Result<ExprId> {
        let axis = axis.of(graph, op, ids[0])?;
        let part = self.part(op, graph, ids, Along { axis: &Axis::Number(axis), length: 1 })?;
        Ok(graph.squeeze(part, Some(&[axis]))?)
    }

    /// The elements at a position, or at as many as there are in the second node.
    fn taken(&self, graph: &mut Graph, ids: &[ExprId], axis: &Axis) -> Result<ExprId> {
        let &[x, indices] = ids else { return self.element("take", graph, ids, axis) };
        let axis = axis.of(graph, "take", x)?;
        Ok(graph.take(x, indices, axis)?)
    }

    /// The first node with the second one from a position on.
    fn put(&self, graph: &mut Graph, ids: &[ExprId], axis: &Axis) -> Result<ExprId> {
        let (op, x, update) = ("put_slice", ids[0], ids[1]);
        let axis = position_of(graph, op, x, axis)?;
        let length = graph.shape(update).get(axis).copied().unwrap_or_default();
        let start = self.start(graph, (op, x, axis), length, ids.get(2).copied())?;
        Ok(graph.put_slice_along_axis(x, start, update, axis as i64)?)
    }
}

/// The position of an axis, from 0 on.
fn position_of(graph: &Graph, op: &str, x: ExprId, axis: &Axis) -> Result<usize> {
    Ok(axis.position(graph.tensor_type(x)).map_err(|kind| graph.error(op, kind))?)
}

/// Elements along an axis.
struct Along<'a> {
    axis: &'a Axis,
    length: usize,
}

/// What is taken along one axis: an element, which drops the axis, or a range of them.
///
/// Numbers, ranges and `..` become one; numbers below 0 count from the end. An element can be
/// computed: then it is moved so that it exists.
///
/// ```
/// use nxla::{Index, Tensor};
///
/// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
/// assert_eq!(x.at((Index::from(-1), Index::from(1..)))?.to_vec::<i32>()?, [5, 6]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Index(Kind);

#[derive(Clone, Debug)]
enum Kind {
    One(Position),
    Range { start: Option<i128>, end: Option<i128>, step: usize },
    New,
}

/// An [`Index`] that is a new axis of size 1.
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
    /// A range from one position up to, and without, another one, as `start..end` is. Clippy takes
    /// `1..-1` for an empty range.
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

    /// Of the elements in the range, every so manieth.
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
        match self.0 {
            Kind::Range { start, end, .. } => Self(Kind::Range { start, end, step }),
            kind @ (Kind::One(_) | Kind::New) => Self(kind),
        }
    }

    fn operand(&self) -> Option<Value> {
        match &self.0 {
            Kind::One(position) => position.operand(),
            Kind::Range { .. } | Kind::New => None,
        }
    }

    fn range(start: Option<i128>, end: Option<i128>) -> Self {
        Self(Kind::Range { start, end, step: 1 })
    }

    /// The end of a range whose last element is this one; the last of all is -1.
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
        Index(Kind::New)
    }
}

/// What tells which elements along each axis: an [`Index`], or a tuple of them for the first axes.
/// Axes after that stay whole.
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
pub trait Indices: sealed::Sealed {
    /// One for each axis.
    fn indices(self) -> Vec<Index>;
}

mod sealed {
    /// Keeps [`super::Indices`] to what becomes an index, and tuples of it.
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
                    Index(Kind::One(Position::of(position)))
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

/// The bounds of a range, from the start of an axis of this size on.
fn bounds(start: Option<i128>, end: Option<i128>, size: usize) -> Option<(usize, usize)> {
    let from_start = |at: i128| usize::try_from(if at < 0 { at + size as i128 } else { at }).ok();
    let (start, end) = (from_start(start.unwrap_or(0))?, from_start(end.unwrap_or(size as i128))?);
    (start <= end && end <= size).then_some((start, end))
}

/// The elements of the first node that indices tell; the other nodes are those that are computed.
fn pick(graph: &mut Graph, ids: &[ExprId], indices: &[Index]) -> Result<ExprId> {
    let (x, mut computed) = (ids[0], ids[1..].iter().copied());
    let shape = graph.shape(x).clone();
    let axes = indices.iter().filter(|index| !matches!(index.0, Kind::New)).count();
    let wrong = |graph: &Graph, why: String| {
        Err(graph.error("at", ErrorKind::invalid("index", why)).into())
    };
    if axes > shape.rank() {
        let ty = graph.tensor_type(x).to_string();
        return wrong(graph, format!("there are {axes} indices for {ty}"));
    }
    let mut starts = vec![SliceStart::Static(0); shape.rank()];
    let (mut lengths, mut strides) = (shape.to_vec(), vec![1; shape.rank()]);
    let (mut dropped, mut new) = (Vec::new(), Vec::new());
    let (mut axis, mut kept) = (0, 0);
    for index in indices {
        match &index.0 {
            Kind::New => new.push(kept as i64),
            Kind::One(position) => {
                let operand = position.operand().and_then(|_| computed.next());
                starts[axis] = position.start(graph, ("at", x, axis), 1, operand)?;
                lengths[axis] = 1;
                dropped.push(axis as i64);
            }
            Kind::Range { start, end, step } => {
                let size = shape[axis];
                let Some((from, to)) = bounds(*start, *end, size) else {
                    let text =
                        |bound: &Option<i128>| bound.map_or(String::new(), |at| at.to_string());
                    let range = format!("{}..{}", text(start), text(end));
                    let why = format!("{range} is out of range of axis {axis}, which has {size}");
                    return wrong(graph, why);
                };
                starts[axis] = SliceStart::at(from);
                (lengths[axis], strides[axis]) = (to - from, *step);
            }
        }
        let is_axis = !matches!(index.0, Kind::New);
        axis += usize::from(is_axis);
        kept += usize::from(!matches!(index.0, Kind::One(_)));
    }
    let part = graph.slice(x, &starts, &lengths, Some(&strides))?;
    let mut part = graph.squeeze(part, Some(&dropped))?;
    for axis in new {
        part = graph.new_axis(part, axis, None)?;
    }
    Ok(part)
}

/// A method of both `Expr` and `Tensor`, from the operands and the body.
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
                    in_trace($self.trace(), location, &$operands, |$graph, $ids| $body)
                }
            )*
        }

        impl Tensor {
            $(
                $(#[$meta])*
                ///
                /// # Errors
                /// Operands or arguments that do not fit, and whatever stops the computation.
                pub fn $name(&$self $(, $arg: $ty)*) -> Result<Tensor> {
                    $(let $let = $value;)*
                    at_once(stringify!($name), &$operands, |$graph, $ids| $body)
                }
            )*
        }
    };
}

positioned! {
    /// The elements that ranges and positions tell, one for each of the first axes; a position drops
    /// its axis. Negative numbers count from the end, and numbers out of range are mistakes.
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

    /// One element along an axis, which is dropped; the index may be computed. A number below 0
    /// counts from the end, one out of range is a mistake.
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
        index.after([self.to_value()]) => |graph, ids| index.element("at_axis", graph, ids, &axis)
    }

    /// `length` elements along an axis, from `start` on. A number below 0 counts from the end, and
    /// what is out of range is a mistake; a start that is computed is moved so that the slice fits.
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
            start.part("slice_along_axis", graph, ids, Along { axis: &axis, length })
    }

    /// With `update` in the place of as many elements along an axis, from `start` on, which is told
    /// as for [`slice_along_axis`](Self::slice_along_axis). The update has the tensor's shape in all
    /// other axes.
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

    /// The elements at indices along an axis, whose place the axes of the indices take. A number
    /// is one index, as for [`at_axis`](Self::at_axis); indices that are computed are clamped.
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
        indices.after([self.to_value()]) => |graph, ids| indices.taken(graph, ids, &axis)
    }
}

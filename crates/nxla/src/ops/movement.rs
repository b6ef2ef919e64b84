//! Functions that move elements without computing.

use nxla_expr::build::OuterPadding;
use nxla_expr::{ErrorKind, Padding};
use nxla_tensor::{AxisName, Shape};

use super::axes::{Axis, Over};
use super::{joiners, methods};
use crate::numbers::IntoNames;

methods! {
    /// Returns the same elements in row-major order with another shape of equal size.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![1, 2, 3, 4]);
    /// assert_eq!(x.reshape([2, 2])?.shape()[..], [2, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn reshape(x; shape into Shape) one |graph| graph.reshape(x, shape);

    /// Does the same as [`reshape`](Self::reshape), with one size that may be `None` and follows
    /// from the others.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2, 3, 4]).reshape_auto(&[Some(2), None])?;
    /// assert_eq!(x.shape()[..], [2, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn reshape_auto(x; sizes: &[Option<usize>]) one |graph| graph.reshape_auto(x, sizes);

    /// Replaces the axis names, as in `["row", "column"]`, or removes them for `()`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]).rename(["row", "column"])?;
    /// assert_eq!(x.sum_over("column")?.to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn rename(x; names: impl IntoNames) one |graph| {
        let names = names.into_names();
        if let Some(names) = names.as_ref().filter(|names| names.check_unique().is_err()) {
            let why = format!("must be distinct; got {names:?}");
            return Err(graph.error("rename", ErrorKind::invalid("names", why)).into());
        }
        graph.rename(x, names)
    };

    /// Merges adjacent axes into one.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let x = Tensor::zeros([2, 3, 4], DType::F32)?;
    /// assert_eq!(x.flatten(())?.shape()[..], [24]);
    /// assert_eq!(x.flatten([0, 1])?.shape()[..], [6, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn flatten(x; over into Over) one |graph| graph.flatten(x, over.of(graph, x)?.as_deref());

    /// Removes these axes, which must have size 1; `()` removes all axes of size 1.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let x = Tensor::zeros([1, 3, 1], DType::F32)?;
    /// assert_eq!(x.squeeze(())?.shape()[..], [3]);
    /// assert_eq!(x.squeeze(0)?.shape()[..], [3, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn squeeze(x; over into Over) one |graph| graph.squeeze(x, over.of(graph, x)?.as_deref());

    /// Inserts an axis of size 1 at a position; -1 appends.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([1, 2, 3]).new_axis(-1)?.shape()[..], [3, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[doc(alias = "expand_dims")]
    #[doc(alias = "unsqueeze")]
    fn new_axis(x; axis: i64) one |graph| graph.new_axis(x, axis, None);

    /// Inserts a named axis of size 1 at a position; -1 appends.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2, 3]).new_named_axis(0, "batch")?;
    /// assert_eq!(x.axis_size("batch")?, 1);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn new_named_axis(x; axis: i64, name: &str) one |graph|
        graph.new_axis(x, axis, Some(AxisName::from(name)));

    /// Exchanges two axes.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let x = Tensor::zeros([2, 3, 5], DType::F32)?;
    /// assert_eq!(x.swap_axes(0, -1)?.shape()[..], [5, 3, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn swap_axes(x; first into Axis, second into Axis) one |graph|
        graph.swap_axes(x, first.of(graph, x)?, second.of(graph, x)?);

    /// Exchanges the last two axes.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]).matrix_transpose()?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn matrix_transpose(x) one |graph| graph.swap_axes(x, -2, -1);

    /// Rotates by multiples of 90 degrees in the plane of two axes, from the first to the second.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::new(vec![1, 2, 3, 4], [2, 2])?;
    /// assert_eq!(x.rotate(1, [0, 1])?.to_vec::<i32>()?, [2, 4, 1, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn rotate(x; quarters: i64, plane: [i64; 2]) one |graph| graph.rotate(x, quarters, plane);

    /// Permutes the axes; `()` reverses their order.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let x = Tensor::zeros([2, 3, 5], DType::F32)?;
    /// assert_eq!(x.transpose(())?.shape()[..], [5, 3, 2]);
    /// assert_eq!(x.transpose([0, 2, 1])?.shape()[..], [2, 5, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn transpose(x; order into Over) one |graph| graph.transpose(x, order.of(graph, x)?.as_deref());

    /// Moves the axes `from` to the positions `to`; the others keep their order.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let x = Tensor::zeros([2, 3, 5], DType::F32)?;
    /// assert_eq!(x.move_axes(&[0], &[2])?.shape()[..], [3, 5, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn move_axes(x; from: &[i64], to: &[i64]) one |graph| graph.move_axes(x, from, to);

    /// Reverses the elements along these axes; `()` means all axes.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([1, 2, 3]).reverse(())?.to_vec::<i32>()?, [3, 2, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn reverse(x; over into Over) one |graph| graph.reverse(x, over.of(graph, x)?.as_deref());

    /// Broadcasts to a shape, with axes aligned from the right.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([1, 2]).broadcast_to([2, 2])?.to_vec::<i32>()?, [1, 2, 1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn broadcast_to(x; shape into Shape) one |graph| graph.broadcast(x, shape, None);

    /// Broadcasts to a shape in which the axes of the operand have these positions.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1, 2]);
    /// assert_eq!(x.broadcast_along([2, 2], &[0])?.to_vec::<i32>()?, [1, 1, 2, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn broadcast_along(x; shape into Shape, axes: &[i64]) one |graph|
        graph.broadcast(x, shape, Some(axes));

    /// Pads with a value: the numbers of elements before and after each axis. Negative numbers
    /// remove elements.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![1, 2, 3]);
    /// assert_eq!(x.pad(0, [(1, -1)])?.to_vec::<i32>()?, [0, 1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn pad(x, value; around each (i64, i64)) one |graph| {
        let padding = |&(low, high): &(i64, i64)| Padding { low, high, interior: 0 };
        graph.pad(x, value, &around.iter().map(padding).collect::<Vec<_>>())
    };

    /// Pads with a value around and between the elements.
    ///
    /// ```
    /// use nxla::{Padding, Tensor};
    ///
    /// let padding = [Padding { low: 1, high: 0, interior: 1 }];
    /// let x = Tensor::from([1, 2]);
    /// assert_eq!(x.pad_between(0, &padding)?.to_vec::<i32>()?, [0, 1, 0, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn pad_between(x, value; padding: &[Padding]) one |graph| graph.pad(x, value, padding);

    /// Pads with elements of the tensor itself before and after each axis.
    ///
    /// ```
    /// use nxla::{OuterPadding, Tensor};
    ///
    /// let x = Tensor::from(vec![1, 2, 3]);
    /// let padded = x.pad_outer(OuterPadding::Reflect, &[(1, 2)])?;
    /// assert_eq!(padded.to_vec::<i32>()?, [2, 1, 2, 3, 2, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn pad_outer(x; rule: OuterPadding, widths: &[(usize, usize)]) one |graph|
        graph.pad_outer(x, rule, widths);

    /// Splits before an index along an axis; a negative index counts from the end.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (head, tail) = Tensor::from(vec![1, 2, 3]).split(1, 0)?;
    /// assert_eq!((head.to_vec::<i32>()?, tail.to_vec::<i32>()?), (vec![1], vec![2, 3]));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn split(x; index: i64, axis into Axis) two |graph| graph.split(x, index, axis.of(graph, x)?);

    /// Repeats the whole tensor along each axis.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([1, 2]).tile(&[2])?.to_vec::<i32>()?, [1, 2, 1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn tile(x; repetitions: &[usize]) one |graph| graph.tile(x, repetitions);

    /// Repeats each element along an axis. `counts` holds a count for each element, or one for all.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![1, 2]);
    /// assert_eq!(x.repeat(&[2, 1], 0)?.to_vec::<i32>()?, [1, 1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn repeat(x; counts: &[usize], axis into Axis) one |graph|
        graph.repeat(x, counts, axis.of(graph, x)?);

    /// Shifts along an axis; elements beyond one end enter at the other.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([1, 2, 3]).roll(1, 0)?.to_vec::<i32>()?, [3, 1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn roll(x; shift: i64, axis into Axis) one |graph| graph.roll(x, shift, axis.of(graph, x)?);
}

methods! {
    /// Splits an axis into parts without this axis.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let rows = Tensor::from([[1, 2], [3, 4]]).unstack(0)?;
    /// assert_eq!(rows[1].to_vec::<i32>()?, [3, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn unstack(x; axis into Axis) many |graph| graph.unstack(x, axis.of(graph, x)?);
}

joiners! {
    /// Concatenates values along an axis; other axes must have equal sizes. The dtypes are
    /// promoted.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (x, y) = (Tensor::from(vec![1, 2]), Tensor::from(vec![3]));
    /// assert_eq!(Tensor::concatenate(&[x, y], 0)?.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[doc(alias = "concat")]
    #[doc(alias = "cat")]
    fn concatenate(parts; axis into Axis) one |graph| {
        let axis = match parts.first() {
            Some(&first) => axis.of(graph, first)?,
            None => 0,
        };
        graph.concatenate(parts, axis)
    };

    /// Stacks values of equal shapes along a new axis. The dtypes are promoted.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (x, y) = (Tensor::from([1, 2]), Tensor::from([3, 4]));
    /// assert_eq!(Tensor::stack(&[x, y], 1)?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn stack(parts; axis: i64) one |graph| graph.stack(parts, axis, None);

    /// Broadcasts values to their common shape.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (x, y) = (Tensor::from([[1], [2]]), Tensor::from([3, 4]));
    /// let both = Tensor::broadcast_together(&[x, y])?;
    /// assert_eq!(both[0].to_vec::<i32>()?, [1, 1, 2, 2]);
    /// assert_eq!(both[1].to_vec::<i32>()?, [3, 4, 3, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn broadcast_together(values) many |graph| graph.broadcast_together(values);
}

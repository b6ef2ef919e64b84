//! Collective functions, which the devices of a mesh call together, inside
//! [`shard_map`](super::shard_map).
//!
//! A function in [`shard_map`](super::shard_map) receives the part of each tensor that one device
//! has. A value that is computed from parts differs between devices: it *varies* along the mesh
//! axes along which the parts were divided. A value that does not depend on a part is equal on all
//! devices. Collectives combine or exchange the values of all devices.
//!
//! Values that vary along a mesh axis have this axis as a vectorized axis, so collectives are
//! compositions of ordinary functions: they have derivatives, and run on any compiler. The
//! partitioner of XLA converts them to communication between devices.
//!
//! ```
//! use nxla::sharding::collectives::psum;
//! # use nxla::{Expr, Result, jit, Tensor};
//! # use nxla::sharding::{Mesh, shard_map};
//! # fn example(mesh: &Mesh) -> Result<()> {
//! let rows = mesh.sharding(["data"])?;
//! let normalized = |x: Expr| &x / psum(&x.sum(), "data");
//! let f = jit(shard_map(normalized, mesh, rows.clone(), rows.clone()));
//! assert_eq!(f.call(Tensor::from([1.0f32, 3.0]))?.to_vec::<f32>()?, [0.25, 0.75]);
//! # Ok(())
//! # }
//! # if nxla::devices()?.len() > 1 {
//! #     example(&Mesh::new([("data", 2)])?)?;
//! # }
//! # Ok::<(), nxla::Error>(())
//! ```

use std::panic::Location;

use nxla_expr::{ExprId, Graph, TensorType};
use nxla_runtime::{Result, VectorAxes};
use nxla_tensor::{DType, HostTensor, Scalar, to_i64};

use super::varying::{
    Value, annotate_layout, axis_to_devices, build_value, chunks, devices_to_axis, element_axis,
    merge_axes, vary, wrong,
};
use crate::expr::Expr;

pub use super::varying::axis_size;

/// Reduces the values of all devices along an axis.
fn reduce_devices(
    x: &Expr,
    axis: &str,
    location: &'static Location<'static>,
    reduce: impl FnOnce(&mut Graph, ExprId, &[i64]) -> nxla_expr::Result<ExprId>,
) -> Expr {
    build_value(x, location, |graph, x| {
        let x = devices_to_axis(graph, x, axis)?;
        let id = reduce(graph, x.id, &[to_i64(x.entry())])?;
        annotate_layout(graph, Value { id, ..x })
    })
}

/// Returns the sum over all devices along a mesh axis. A value that does not vary is multiplied by
/// the number of devices. The result has the shape and dtype of `x`, but booleans are counted.
///
/// ```
/// # use nxla::{Expr, Result, jit, Tensor};
/// # use nxla::sharding::{Mesh, collectives::psum, shard_map};
/// # fn example(mesh: &Mesh) -> Result<()> {
/// let (rows, everywhere) = (mesh.sharding(["data"])?, mesh.replicated());
/// let f = jit(shard_map(|x: Expr| psum(&x, "data"), mesh, rows, everywhere));
/// assert_eq!(f.call(Tensor::from([1, 2, 3, 4]))?.to_vec::<i32>()?, [4, 6]);
/// # Ok(())
/// # }
/// # if nxla::devices()?.len() > 1 {
/// #     example(&Mesh::new([("data", 2)])?)?;
/// # }
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// An axis that the mesh does not have, and a call outside of [`shard_map`](super::shard_map), are
/// errors, as in all collectives.
#[must_use]
#[track_caller]
pub fn psum(x: &Expr, axis: &str) -> Expr {
    reduce_devices(x, axis, Location::caller(), |graph, x, over| {
        let dtype = graph.dtype(x);
        let total = graph.sum(x, Some(over), false)?;
        if dtype == DType::Pred { Ok(total) } else { graph.as_type(total, dtype) }
    })
}

/// Returns the mean over all devices along a mesh axis. The mean has the dtype of
/// [`Expr::mean`](crate::Expr::mean): it is computed in at least `f32`, and the mean of integers and
/// booleans is an `f32`.
///
/// ```
/// # use nxla::{Expr, Result, jit, Tensor};
/// # use nxla::sharding::{Mesh, collectives::pmean, shard_map};
/// # fn example(mesh: &Mesh) -> Result<()> {
/// let (rows, everywhere) = (mesh.sharding(["data"])?, mesh.replicated());
/// let f = jit(shard_map(|x: Expr| pmean(&x, "data"), mesh, rows, everywhere));
/// assert_eq!(f.call(Tensor::from([1.0f32, 2.0, 3.0, 4.0]))?.to_vec::<f32>()?, [2.0, 3.0]);
/// # Ok(())
/// # }
/// # if nxla::devices()?.len() > 1 {
/// #     example(&Mesh::new([("data", 2)])?)?;
/// # }
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn pmean(x: &Expr, axis: &str) -> Expr {
    reduce_devices(x, axis, Location::caller(), |graph, x, over| graph.mean(x, Some(over), false))
}

/// Returns the element-wise maximum over all devices along an axis.
///
/// ```
/// # use nxla::{Expr, Result, jit, Tensor};
/// # use nxla::sharding::{Mesh, collectives::pmax, shard_map};
/// # fn example(mesh: &Mesh) -> Result<()> {
/// let (rows, everywhere) = (mesh.sharding(["data"])?, mesh.replicated());
/// let f = jit(shard_map(|x: Expr| pmax(&x, "data"), mesh, rows, everywhere));
/// assert_eq!(f.call(Tensor::from([1, 5, 3, 4]))?.to_vec::<i32>()?, [3, 5]);
/// # Ok(())
/// # }
/// # if nxla::devices()?.len() > 1 {
/// #     example(&Mesh::new([("data", 2)])?)?;
/// # }
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn pmax(x: &Expr, axis: &str) -> Expr {
    reduce_devices(x, axis, Location::caller(), |graph, x, over| {
        graph.reduce_max(x, Some(over), false)
    })
}

/// Returns the element-wise minimum over all devices along an axis.
///
/// ```
/// # use nxla::{Expr, Result, jit, Tensor};
/// # use nxla::sharding::{Mesh, collectives::pmin, shard_map};
/// # fn example(mesh: &Mesh) -> Result<()> {
/// let (rows, everywhere) = (mesh.sharding(["data"])?, mesh.replicated());
/// let f = jit(shard_map(|x: Expr| pmin(&x, "data"), mesh, rows, everywhere));
/// assert_eq!(f.call(Tensor::from([1, 5, 3, 4]))?.to_vec::<i32>()?, [1, 4]);
/// # Ok(())
/// # }
/// # if nxla::devices()?.len() > 1 {
/// #     example(&Mesh::new([("data", 2)])?)?;
/// # }
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn pmin(x: &Expr, axis: &str) -> Expr {
    reduce_devices(x, axis, Location::caller(), |graph, x, over| {
        graph.reduce_min(x, Some(over), false)
    })
}

/// Marks a value as varying along an axis. The initial state of a loop must be marked if the state
/// varies after the first iteration.
///
/// ```
/// # use nxla::{Expr, Result, fori, jit, Tensor};
/// # use nxla::sharding::{Mesh, collectives::pvary, shard_map};
/// # fn example(mesh: &Mesh) -> Result<()> {
/// let rows = mesh.sharding(["data"])?;
/// let thrice = |x: Expr| {
///     let total = pvary(&Expr::of(Tensor::from([0.0f32])), "data");
///     fori(0, 3, total, |_, total| total + &x)
/// };
/// let f = jit(shard_map(thrice, mesh, rows.clone(), rows));
/// assert_eq!(f.call(Tensor::from([1.0f32, 2.0]))?.to_vec::<f32>()?, [3.0, 6.0]);
/// # Ok(())
/// # }
/// # if nxla::devices()?.len() > 1 {
/// #     example(&Mesh::new([("data", 2)])?)?;
/// # }
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn pvary(x: &Expr, axis: &str) -> Expr {
    build_value(x, Location::caller(), |graph, x| vary(graph, x, axis))
}

/// Returns the index of the device along an axis, as `s32`.
///
/// ```
/// # use nxla::{Expr, Result, jit, Tensor};
/// # use nxla::sharding::{Mesh, collectives::axis_index, shard_map};
/// # fn example(mesh: &Mesh) -> Result<()> {
/// let rows = mesh.sharding(["data"])?;
/// let f = jit(shard_map(|x: Expr| x + axis_index("data"), mesh, rows.clone(), rows));
/// assert_eq!(f.call(Tensor::from([10, 10, 10, 10]))?.to_vec::<i32>()?, [10, 10, 11, 11]);
/// # Ok(())
/// # }
/// # if nxla::devices()?.len() > 1 {
/// #     example(&Mesh::new([("data", 2)])?)?;
/// # }
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn axis_index(axis: &str) -> Expr {
    let location = Location::caller();
    build_value(&Expr::of(0), location, |graph, _| {
        let id = graph.iota([axis_size(axis)?], None, DType::S32)?;
        axis_to_devices(graph, Value { id, vectors: VectorAxes::NONE }, axis)
    })
}

/// Concatenates the values of all devices along a mesh axis: along the axis `at` of `x` if `tiled`,
/// and otherwise along a new axis.
///
/// ```
/// # use nxla::{Expr, Result, jit, Tensor};
/// # use nxla::sharding::{Mesh, collectives::all_gather, shard_map};
/// # fn example(mesh: &Mesh) -> Result<()> {
/// let (rows, everywhere) = (mesh.sharding(["data"])?, mesh.replicated());
/// let f = jit(shard_map(|x: Expr| all_gather(&x, "data", 0, false), mesh, rows, everywhere));
/// assert_eq!(f.call(Tensor::from([1, 2, 3, 4]))?.shape()[..], [2, 2]);
/// # Ok(())
/// # }
/// # if nxla::devices()?.len() > 1 {
/// #     example(&Mesh::new([("data", 2)])?)?;
/// # }
/// # Ok::<(), nxla::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn all_gather(x: &Expr, axis: &str, at: i64, tiled: bool) -> Expr {
    build_value(x, Location::caller(), |graph, x| {
        let x = devices_to_axis(graph, x, axis)?;
        let rank = graph.shape(x.id).rank() - x.entry();
        let to = element_axis("all_gather", at, rank - usize::from(tiled))?;
        let (first, last) = (to_i64(x.entry()), to_i64(x.entry() + to));
        let id = graph.move_axes(x.id, &[first], &[last])?;
        let x = Value { id, ..x };
        let x = if tiled { merge_axes(graph, x, to)? } else { x };
        annotate_layout(graph, x)
    })
}

/// Sums over all devices along a mesh axis, divides the sum along the axis `at`, and returns the
/// part of each device.
///
/// ```
/// # use nxla::{Expr, Result, jit, Tensor};
/// # use nxla::sharding::{Mesh, collectives::psum_scatter, shard_map};
/// # fn example(mesh: &Mesh) -> Result<()> {
/// let rows = mesh.sharding(["data"])?;
/// let f = jit(shard_map(|x: Expr| psum_scatter(&x, "data", 0), mesh, rows.clone(), rows));
/// assert_eq!(f.call(Tensor::from([1, 2, 3, 4]))?.to_vec::<i32>()?, [4, 6]);
/// # Ok(())
/// # }
/// # if nxla::devices()?.len() > 1 {
/// #     example(&Mesh::new([("data", 2)])?)?;
/// # }
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// An axis that cannot be divided into equal parts is an error.
#[must_use]
#[track_caller]
pub fn psum_scatter(x: &Expr, axis: &str, at: i64) -> Expr {
    let location = Location::caller();
    build_value(&psum(x, axis), location, |graph, x| {
        let rank = graph.shape(x.id).rank() - x.entry();
        let at = element_axis("psum_scatter", at, rank)?;
        let parts = chunks(graph, "psum_scatter", x, at, axis_size(axis)?)?;
        axis_to_devices(graph, parts, axis)
    })
}

/// Divides the value of each device along the axis `split`, sends each part to a device, and
/// concatenates the received parts along the axis `concat`, in the order of the senders.
///
/// ```
/// # use nxla::{Expr, Result, jit, Tensor};
/// # use nxla::sharding::{Mesh, collectives::all_to_all, shard_map};
/// # fn example(mesh: &Mesh) -> Result<()> {
/// let (rows, columns) = (mesh.sharding(["data"])?, mesh.sharding([None, Some("data")])?);
/// let f = jit(shard_map(|x: Expr| all_to_all(&x, "data", 1, 0), mesh, rows, columns));
/// let x = Tensor::from([[1, 2, 3, 4], [5, 6, 7, 8]]);
/// assert_eq!(f.call(&x)?.to_vec::<i32>()?, x.to_vec::<i32>()?);
/// # Ok(())
/// # }
/// # if nxla::devices()?.len() > 1 {
/// #     example(&Mesh::new([("data", 2)])?)?;
/// # }
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// An axis that cannot be divided into equal parts is an error.
#[must_use]
#[track_caller]
pub fn all_to_all(x: &Expr, axis: &str, split: i64, concat: i64) -> Expr {
    build_value(x, Location::caller(), |graph, x| {
        let x = devices_to_axis(graph, x, axis)?;
        let (size, rank) = (axis_size(axis)?, graph.shape(x.id).rank() - x.entry() - 1);
        let split = element_axis("all_to_all", split, rank)?;
        let to = element_axis("all_to_all", concat, rank)?;
        // The axis of the receivers comes first, then the axis of the senders, then the parts.
        let x = chunks(graph, "all_to_all", x, split + 1, size)?;
        let (first, last) = (to_i64(x.entry() + 1), to_i64(x.entry() + 1 + to));
        let id = graph.move_axes(x.id, &[first], &[last])?;
        let x = merge_axes(graph, Value { id, ..x }, to + 1)?;
        axis_to_devices(graph, x, axis)
    })
}

/// Sends values between devices along a mesh axis: each pair is a sender and a receiver. Devices
/// that receive nothing have zeros.
///
/// ```
/// # use nxla::{Expr, Result, jit, Tensor};
/// # use nxla::sharding::{Mesh, collectives::ppermute, shard_map};
/// # fn example(mesh: &Mesh) -> Result<()> {
/// let rows = mesh.sharding(["data"])?;
/// let exchange = |x: Expr| ppermute(&x, "data", &[(0, 1), (1, 0)]);
/// let f = jit(shard_map(exchange, mesh, rows.clone(), rows));
/// assert_eq!(f.call(Tensor::from([1, 2, 3, 4]))?.to_vec::<i32>()?, [3, 4, 1, 2]);
/// # Ok(())
/// # }
/// # if nxla::devices()?.len() > 1 {
/// #     example(&Mesh::new([("data", 2)])?)?;
/// # }
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// A device that does not exist, or that sends or receives twice, is an error.
#[must_use]
#[track_caller]
pub fn ppermute(x: &Expr, axis: &str, pairs: &[(usize, usize)]) -> Expr {
    build_value(x, Location::caller(), |graph, x| {
        let size = axis_size(axis)?;
        check_pairs(pairs, size)?;
        let x = devices_to_axis(graph, x, axis)?;
        let ty = graph.tensor_type(x.id);
        let (rank, zero) = (ty.shape.rank(), TensorType::new(ty.dtype, ty.shape.clone()));
        let mut result = graph.constant(Scalar::zero(zero.dtype), zero)?;
        for distance in 0..size {
            let receives: Vec<bool> =
                (0..size).map(|to| pairs.contains(&((to + size - distance) % size, to))).collect();
            if !receives.contains(&true) {
                continue;
            }
            // The partitioner recognizes a rotation, and no other permutation.
            let mut sent = graph.roll(x.id, to_i64(distance), to_i64(x.entry()))?;
            if receives.contains(&false) {
                let mut shape = vec![1; rank];
                shape[x.entry()] = size;
                let mask = graph.tensor(HostTensor::from_slice(&receives, shape)?)?;
                sent = graph.select(mask, sent, result)?;
            }
            result = sent;
        }
        axis_to_devices(graph, Value { id: result, ..x }, axis)
    })
}

fn check_pairs(pairs: &[(usize, usize)], size: usize) -> Result<()> {
    let distinct = |mut devices: Vec<usize>| {
        devices.sort_unstable();
        devices.windows(2).all(|pair| pair[0] < pair[1])
            && devices.last().is_none_or(|&last| last < size)
    };
    let (sources, targets) = pairs.iter().copied().unzip();
    if distinct(sources) && distinct(targets) {
        Ok(())
    } else {
        wrong(
            "ppermute",
            format!(
                "perm: each of {size} devices must be a source at most once and a target at most \
             once; got {pairs:?}"
            ),
        )
    }
}

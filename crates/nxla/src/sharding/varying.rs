//! Values that vary along axes of a mesh: they differ between devices.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::panic::Location;

use nxla_expr::{ExprId, Graph, Layout, Metadata, sharding_note};
use nxla_runtime::{Error, Mesh, Result, VectorAxes, VectorAxis};
use nxla_tensor::{AxisName, normalize_axis, to_i64};

use crate::expr::Expr;

thread_local! {
    /// Names and sizes of the axes of the mesh for which a function is being traced on this thread.
    static ENTERED: RefCell<Vec<(String, usize)>> = const { RefCell::new(Vec::new()) };
}

/// Makes the axes of a mesh available to the collectives of the thread until it is dropped.
pub(super) struct AxisScope {
    /// The number of axes that were available before.
    before: usize,
    not_send: PhantomData<*const ()>,
}

impl AxisScope {
    pub(super) fn into(mesh: &Mesh) -> Self {
        ENTERED.with_borrow_mut(|axes| {
            let before = axes.len();
            axes.extend_from_slice(mesh.axes());
            Self { before, not_send: PhantomData }
        })
    }
}

impl Drop for AxisScope {
    fn drop(&mut self) {
        ENTERED.with_borrow_mut(|axes| axes.truncate(self.before));
    }
}

pub(super) fn wrong<T>(function: &str, why: String) -> Result<T> {
    Err(Error::Arguments { function: function.into(), why })
}

/// Returns the number of devices along a mesh axis.
///
/// ```
/// # use nxla::{Expr, Result, jit, Tensor};
/// # use nxla::sharding::{Mesh, collectives::axis_size, shard_map};
/// # fn example(mesh: &Mesh) -> Result<()> {
/// let rows = mesh.sharding(["data"])?;
/// let scaled = |x: Expr| -> Expr { x * i32::try_from(axis_size("data").unwrap_or(0)).unwrap_or(0) };
/// let f = jit(shard_map(scaled, mesh, rows.clone(), rows));
/// assert_eq!(f.call(Tensor::from([1, 2]))?.to_vec::<i32>()?, [2, 4]);
/// # Ok(())
/// # }
/// # if nxla::devices()?.len() > 1 {
/// #     example(&Mesh::new([("data", 2)])?)?;
/// # }
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns an error for an axis that the mesh does not have, and outside of
/// [`shard_map`](super::shard_map).
pub fn axis_size(axis: &str) -> Result<usize> {
    ENTERED.with_borrow(|axes| match axes.iter().rev().find(|(name, _)| name == axis) {
        Some((_, size)) => Ok(*size),
        None if axes.is_empty() => {
            let why = format!(
                "axis: must be an axis of the mesh of shard_map; got {axis:?} outside shard_map"
            );
            wrong("collectives", why)
        }
        None => {
            let names: Vec<&str> = axes.iter().map(|(name, _)| name.as_str()).collect();
            let names = names.join(", ");
            wrong(
                "collectives",
                format!("axis: must be an axis of the mesh ({names}); got {axis:?}"),
            )
        }
    })
}

/// A node and its vectorized axes, which are its leading axes.
pub(super) struct Value {
    pub(super) id: ExprId,
    pub(super) vectors: VectorAxes,
}

impl Value {
    /// Returns the index of the first axis after the vectorized axes.
    pub(super) fn entry(&self) -> usize {
        self.vectors.len()
    }
}

/// Builds a value; the trace records the first error.
pub(super) fn build_value(
    x: &Expr,
    location: &'static Location<'static>,
    build: impl FnOnce(&mut Graph, Value) -> Result<Value>,
) -> Expr {
    let trace = x.trace().clone();
    let found = trace.attempt(location, || {
        let id = trace.id(x)?;
        trace.build(|graph| build(graph, Value { id, vectors: x.vectors().clone() }))
    });
    match found {
        Some(value) => Expr::of_node(trace, value.id, value.vectors),
        None => x.clone(),
    }
}

/// Tells the partitioner that each device has its own entries completely.
pub(super) fn annotate_layout(graph: &mut Graph, x: Value) -> Result<Value> {
    let along = |axis: &VectorAxis| match axis_size(&axis.name) {
        Ok(_) => vec![axis.name.to_string()],
        Err(_) => Vec::new(),
    };
    let layout: Layout = x.vectors.iter().map(along).collect();
    let note = sharding_note(&layout, graph.shape(x.id).rank());
    let metadata = Metadata { inspect: Some(note.into()), ..Metadata::default() };
    let id = graph.metadata(&[x.id], metadata)?;
    let id = graph.parts(id)?[0];
    Ok(Value { id, ..x })
}

/// Makes a value vary along an axis by broadcasting it.
pub(super) fn vary(graph: &mut Graph, x: Value, axis: &str) -> Result<Value> {
    let size = axis_size(axis)?;
    if x.vectors.position(axis).is_some() {
        return Ok(x);
    }
    let at = x.entry();
    let mut shape: Vec<usize> = graph.shape(x.id).to_vec();
    let kept = (0..=shape.len()).filter(|&axis| axis != at).map(to_i64);
    let kept: Vec<i64> = kept.collect();
    shape.insert(at, size);
    let mut names = names_of(graph, x.id);
    names.insert(at, None);
    let id = graph.broadcast(x.id, shape, Some(&kept))?;
    let id = graph.rename(id, Some(names.into_iter().collect()))?;
    annotate_layout(graph, Value { id, vectors: x.vectors.with(axis, size) })
}

/// Moves the values of all devices along an axis to the first axis of the elements.
pub(super) fn devices_to_axis(graph: &mut Graph, x: Value, axis: &str) -> Result<Value> {
    let x = vary(graph, x, axis)?;
    let Some(at) = x.vectors.position(axis) else { return Ok(x) };
    let id = graph.move_axes(x.id, &[to_i64(at)], &[to_i64(x.entry() - 1)])?;
    Ok(Value { id, vectors: x.vectors.without(axis) })
}

/// Returns to each device along an axis its entry of the first axis of the elements.
pub(super) fn axis_to_devices(graph: &mut Graph, x: Value, axis: &str) -> Result<Value> {
    let (at, mut names) = (x.entry(), names_of(graph, x.id));
    names[at] = None;
    let id = graph.rename(x.id, Some(names.into_iter().collect()))?;
    let size = graph.shape(id)[at];
    annotate_layout(graph, Value { id, vectors: x.vectors.with(axis, size) })
}

pub(super) fn names_of(graph: &Graph, id: ExprId) -> Vec<Option<AxisName>> {
    let ty = graph.tensor_type(id);
    let name = |axis| ty.names.as_ref().and_then(|names| names.name(axis).cloned());
    (0..ty.shape.rank()).map(name).collect()
}

/// Resolves an axis of the elements that may be negative.
pub(super) fn element_axis(function: &str, axis: i64, rank: usize) -> Result<usize> {
    normalize_axis(axis, rank).map_err(|_| {
        let why = format!("axis: must be an axis of a tensor with {rank} axes; got {axis}");
        Error::Layout(format!("{function}: {why}"))
    })
}

/// Divides an axis into one part for each device; the parts become the first axis of the elements.
pub(super) fn chunks(
    graph: &mut Graph,
    function: &str,
    x: Value,
    axis: usize,
    size: usize,
) -> Result<Value> {
    let (at, first) = (x.entry() + axis, x.entry());
    let mut shape: Vec<usize> = graph.shape(x.id).to_vec();
    let length = shape[at];
    if !length.is_multiple_of(size) {
        return Err(Error::Layout(format!(
            "{function}: axis: size of the divided axis must be a multiple of {size}; got \
             {length}"
        )));
    }
    let mut names = names_of(graph, x.id);
    names.insert(at, None);
    shape.splice(at..=at, [size, length / size]);
    let id = graph.reshape_named(x.id, shape, Some(names.into_iter().collect()))?;
    let id = graph.move_axes(id, &[to_i64(at)], &[to_i64(first)])?;
    Ok(Value { id, ..x })
}

/// Merges an axis of the elements with the next axis, whose name remains.
pub(super) fn merge_axes(graph: &mut Graph, x: Value, axis: usize) -> Result<Value> {
    let at = x.entry() + axis;
    let mut shape: Vec<usize> = graph.shape(x.id).to_vec();
    let mut names = names_of(graph, x.id);
    names.remove(at);
    let length = shape[at] * shape[at + 1];
    shape.splice(at..=at + 1, [length]);
    let id = graph.reshape_named(x.id, shape, Some(names.into_iter().collect()))?;
    Ok(Value { id, ..x })
}

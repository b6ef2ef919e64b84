//! Functions that read and write at indices, and sorting.

use nxla_runtime::DType;
use nxla_runtime::graph::ExprId;
use nxla_runtime::graph::build::SliceStart;
use pyo3::prelude::*;

use super::args::{Axis, AxisList, axes_of, count, counts};
use super::functions;
use crate::apply::{apply, apply_all, many, one};
use crate::dtype::DTypeArg;
use crate::value::{FromPython, Value};

/// Starts of slices: plain ints are static, everything else is an operand.
struct Starts {
    fixed: Vec<Option<i64>>,
    dynamic: Vec<Value>,
}

impl Starts {
    fn read(starts: &[Bound<'_, PyAny>], function: &str) -> PyResult<Self> {
        let (mut fixed, mut dynamic) = (Vec::new(), Vec::new());
        for start in starts {
            match start.extract::<i64>() {
                Ok(index) if start.is_instance_of::<pyo3::types::PyInt>() => {
                    fixed.push(Some(index))
                }
                _ => {
                    fixed.push(None);
                    dynamic.push(Value::of(start, function)?);
                }
            }
        }
        Ok(Self { fixed, dynamic })
    }

    /// The starts for the builder, `ids` being the dynamic ones.
    fn resolve(&self, ids: &[ExprId]) -> Vec<SliceStart> {
        let mut dynamic = ids.iter();
        self.fixed
            .iter()
            .map(|start| match start {
                Some(index) => SliceStart::from(*index),
                None => SliceStart::from(*dynamic.next().expect("one operand for each")),
            })
            .collect()
    }
}

/// The elements of a range of each axis.
#[pyfunction]
#[pyo3(signature = (x, starts, lengths, strides=None))]
fn slice(
    x: &Bound<'_, PyAny>,
    starts: Vec<Bound<'_, PyAny>>,
    lengths: Vec<i64>,
    strides: Option<Vec<i64>>,
) -> PyResult<Py<PyAny>> {
    let lengths = counts("slice", "lengths", &lengths)?;
    let strides = strides.map(|strides| counts("slice", "strides", &strides)).transpose()?;
    let starts = Starts::read(&starts, "slice")?;
    let mut operands = vec![Value::of(x, "slice")?];
    operands.extend(starts.dynamic.iter().cloned());
    apply(x.py(), &operands, |graph, ids| {
        one(graph.slice(ids[0], &starts.resolve(&ids[1..]), &lengths, strides.as_deref()))
    })
}

/// The elements of a range of one axis.
#[pyfunction]
#[pyo3(signature = (x, start, length, axis=Axis::Number(0), stride=1))]
fn slice_along_axis(
    x: &Bound<'_, PyAny>,
    start: Bound<'_, PyAny>,
    length: i64,
    axis: Axis,
    stride: i64,
) -> PyResult<Py<PyAny>> {
    let length = count("slice_along_axis", "length", length)?;
    let stride = count("slice_along_axis", "stride", stride)?;
    let starts = Starts::read(&[start], "slice_along_axis")?;
    let mut operands = vec![Value::of(x, "slice_along_axis")?];
    operands.extend(starts.dynamic.iter().cloned());
    apply(x.py(), &operands, |graph, ids| {
        let axis = axis.of(graph, "slice_along_axis", ids[0])?;
        let start = starts.resolve(&ids[1..])[0];
        one(graph.slice_along_axis(ids[0], start, length, axis, stride))
    })
}

/// `x` with `update` written from `starts` on.
#[pyfunction]
fn put_slice(
    x: &Bound<'_, PyAny>,
    starts: Vec<Bound<'_, PyAny>>,
    update: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let starts = Starts::read(&starts, "put_slice")?;
    let mut operands = vec![Value::of(x, "put_slice")?, Value::of(update, "put_slice")?];
    operands.extend(starts.dynamic.iter().cloned());
    apply(x.py(), &operands, |graph, ids| {
        one(graph.put_slice(ids[0], &starts.resolve(&ids[2..]), ids[1]))
    })
}

/// Elements at index tuples in the last axis of `indices`.
#[pyfunction]
#[pyo3(signature = (x, indices, axes=None))]
fn gather(
    x: &Bound<'_, PyAny>,
    indices: &Bound<'_, PyAny>,
    axes: Option<AxisList>,
) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(x, "gather")?, Value::of(indices, "gather")?];
    apply(x.py(), &operands, |graph, ids| {
        let axes = axes_of(&axes, graph, "gather", ids[0])?;
        one(graph.gather(ids[0], ids[1], axes.as_deref()))
    })
}

/// Generates the two indexed updates.
macro_rules! indexed {
    ($($(#[$doc:meta])* $function:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (x, indices, updates, axes=None))]
            fn $function(
                x: &Bound<'_, PyAny>,
                indices: &Bound<'_, PyAny>,
                updates: &Bound<'_, PyAny>,
                axes: Option<AxisList>,
            ) -> PyResult<Py<PyAny>> {
                let name = stringify!($function);
                let operands =
                    [Value::of(x, name)?, Value::of(indices, name)?, Value::of(updates, name)?];
                apply(x.py(), &operands, |graph, ids| {
                    let axes = axes_of(&axes, graph, name, ids[0])?;
                    one(graph.$function(ids[0], ids[1], ids[2], axes.as_deref()))
                })
            }
        )*
    };
}

indexed! {
    /// `x` with updates added at indices.
    indexed_add;
    /// `x` with updates written at indices.
    indexed_put;
}

/// Elements of an axis by index.
#[pyfunction]
#[pyo3(signature = (x, indices, axis=Axis::Number(0)))]
fn take(x: &Bound<'_, PyAny>, indices: &Bound<'_, PyAny>, axis: Axis) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(x, "take")?, Value::of(indices, "take")?];
    apply(x.py(), &operands, |graph, ids| {
        let axis = axis.of(graph, "take", ids[0])?;
        one(graph.take(ids[0], ids[1], axis))
    })
}

/// Elements of an axis by an index for each place of the others.
#[pyfunction]
#[pyo3(signature = (x, indices, axis=Axis::Number(0)))]
fn take_along_axis(
    x: &Bound<'_, PyAny>,
    indices: &Bound<'_, PyAny>,
    axis: Axis,
) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(x, "take_along_axis")?, Value::of(indices, "take_along_axis")?];
    apply(x.py(), &operands, |graph, ids| {
        let axis = axis.of(graph, "take_along_axis", ids[0])?;
        one(graph.take_along_axis(ids[0], ids[1], axis))
    })
}

/// Elements in order along an axis.
#[pyfunction]
#[pyo3(signature = (x, axis=Axis::Number(-1), descending=false, stable=true))]
fn sort(x: &Bound<'_, PyAny>, axis: Axis, descending: bool, stable: bool) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "sort")?;
    apply(x.py(), &[operand], |graph, ids| {
        let axis = axis.of(graph, "sort", ids[0])?;
        one(graph.sort(ids[0], axis, descending, stable))
    })
}

/// The indices that sort along an axis.
#[pyfunction]
#[pyo3(signature = (x, axis=Axis::Number(-1), descending=false, stable=true, dtype=None))]
fn argsort(
    x: &Bound<'_, PyAny>,
    axis: Axis,
    descending: bool,
    stable: bool,
    dtype: Option<DTypeArg>,
) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "argsort")?;
    let dtype = dtype.map_or(DType::S32, |dtype| dtype.0);
    apply(x.py(), &[operand], |graph, ids| {
        let axis = axis.of(graph, "argsort", ids[0])?;
        one(graph.argsort(ids[0], axis, descending, stable, dtype))
    })
}

/// The largest elements of the last axis, and their indices.
#[pyfunction]
#[pyo3(signature = (x, k=1))]
fn top_k(x: &Bound<'_, PyAny>, k: i64) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let k = count("top_k", "k", k)?;
    let operand = Value::of(x, "top_k")?;
    let mut results = apply_all(x.py(), &[operand], |graph, ids| {
        let (values, indices) = graph.top_k(ids[0], k)?;
        many(Ok::<_, nxla_runtime::Error>([values, indices]))
    })?;
    let indices = results.pop().expect("two results");
    Ok((results.pop().expect("two results"), indices))
}

/// Differences of neighbours.
#[pyfunction]
#[pyo3(signature = (x, order=1, axis=Axis::Number(-1)))]
fn diff(x: &Bound<'_, PyAny>, order: i64, axis: Axis) -> PyResult<Py<PyAny>> {
    let order = count("diff", "n", order)?;
    let operand = Value::of(x, "diff")?;
    apply(x.py(), &[operand], |graph, ids| {
        let axis = axis.of(graph, "diff", ids[0])?;
        one(graph.diff(ids[0], order, axis))
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(module: slice, slice_along_axis, put_slice, gather, indexed_add, indexed_put,
        take, take_along_axis, sort, argsort, top_k, diff);
    Ok(())
}

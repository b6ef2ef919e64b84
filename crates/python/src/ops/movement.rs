//! Functions that move elements without computing.

use std::borrow::Cow;

use nxla_runtime::Result;
use nxla_runtime::graph::build::OuterPadding;
use nxla_runtime::graph::{ErrorKind, ExprId, Padding};
use nxla_runtime::host::AxisName;
use pyo3::prelude::*;

use super::add_functions;
use super::args::{Axis, AxisList, Count, Integer, NamesArg, OperandSequence, ShapeArg, sizes};
use super::declare::{Argument, ArgumentContext, Converted, functions, plain_arguments};
use super::window::PerAxis;
use crate::apply::{apply, one};
use crate::errors::{argument_error, user_error};
use crate::expr::PyExpr;
use crate::tensor::PyTensor;
use crate::value::{FromPython, Value};

/// The axes in reverse order.
pub(crate) fn reversed_axes(x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "permute_dims")?;
    apply(x.py(), "permute_dims", &[operand], |graph, ids| one(graph.transpose(ids[0], None)))
}

/// A shape with at most one size of -1, which is inferred.
struct Sizes(Vec<i64>);

impl<'a, 'py> FromPyObject<'a, 'py> for Sizes {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        sizes(&value).map(Sizes)
    }
}

impl Argument for Sizes {
    type Value = Vec<Option<usize>>;

    fn annotation() -> Cow<'static, str> {
        "Shape".into()
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<Self::Value> {
        resolve_sizes(site.function, self.0)
    }
}

/// Converts sizes; -1 becomes `None`, a size that is inferred.
pub(super) fn resolve_sizes(function: &str, sizes: Vec<i64>) -> Result<Vec<Option<usize>>> {
    let size = |size: i64| match size {
        -1 => Ok(None),
        size => usize::try_from(size).map(Some).map_err(|_| {
            let why = format!("sizes: must be at least -1; got {size}");
            user_error(argument_error(function, why))
        }),
    };
    sizes.into_iter().map(size).collect()
}

/// The positions of new axes: one int, or a sequence.
struct NewAxes(Vec<Integer>);

impl From<i64> for NewAxes {
    fn from(axis: i64) -> Self {
        NewAxes(vec![Integer(axis)])
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for NewAxes {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match value.extract() {
            Ok(axis) => Ok(NewAxes(vec![axis])),
            Err(_) if value.try_iter().is_ok() => value.extract().map(NewAxes),
            Err(cause) => Err(cause),
        }
    }
}

plain_arguments! {
    NewAxes as "int | Sequence[int]": Vec<i64> = |axes| numbers(axes.0);
}

fn numbers(integers: Vec<Integer>) -> Vec<i64> {
    integers.into_iter().map(|Integer(number)| number).collect()
}

/// The axis along which a list of tensors is joined.
struct AxisOfList<T>(T);

impl<T: From<i64>> From<i64> for AxisOfList<T> {
    fn from(axis: i64) -> Self {
        AxisOfList(axis.into())
    }
}

impl<'a, 'py, T: FromPyObject<'a, 'py, Error = PyErr>> FromPyObject<'a, 'py> for AxisOfList<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if value.is_instance_of::<PyTensor>() || value.is_instance_of::<PyExpr>() {
            let why = "must be an int; got a tensor; pass all tensors as one list, as in [x, y]";
            return Err(argument_error("axis", why));
        }
        value.extract().map(AxisOfList)
    }
}

impl<T: Argument> Argument for AxisOfList<T> {
    type Value = T::Value;

    fn annotation() -> Cow<'static, str> {
        T::annotation()
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<Self::Value> {
        self.0.into_value(site)
    }
}

/// An axis, or None for all elements in row-major order.
struct AxisOrNone(Option<Axis>);

impl From<i64> for AxisOrNone {
    fn from(axis: i64) -> Self {
        AxisOrNone(Some(axis.into()))
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for AxisOrNone {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        value.extract().map(AxisOrNone)
    }
}

impl Argument for AxisOrNone {
    type Value = Option<i64>;

    fn annotation() -> Cow<'static, str> {
        Option::<Axis>::annotation()
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<Option<i64>> {
        self.0.into_value(site)
    }
}

/// The padding of each axis: before, after, and optionally between the elements.
struct PaddingOfAxes(Vec<[Integer; 3]>);

impl<'a, 'py> FromPyObject<'a, 'py> for PaddingOfAxes {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let of_axis = |tuple: Bound<'py, PyAny>| {
            if tuple.len()? == 2 {
                return tuple.extract().map(|[low, high]: [Integer; 2]| [low, high, Integer(0)]);
            }
            tuple.extract()
        };
        let axes = value.try_iter().and_then(|axes| axes.map(|axis| of_axis(axis?)).collect());
        axes.map(PaddingOfAxes).map_err(|_| {
            let why = "config: must have one tuple of 2 or 3 integers for each axis";
            argument_error("pad", format!("{why}; got {}", value.to_owned()))
        })
    }
}

impl Argument for PaddingOfAxes {
    type Value = Vec<Padding>;

    fn annotation() -> Cow<'static, str> {
        "Sequence[tuple[int, int] | tuple[int, int, int]]".into()
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<Vec<Padding>> {
        let axes = self.0.into_iter().map(|[Integer(low), Integer(high), Integer(interior)]| {
            let interior = usize::try_from(interior).map_err(|_| {
                site.refuse(format!("interior: must not be negative; got {interior}"))
            })?;
            Ok(Padding { low, high, interior })
        });
        axes.collect()
    }
}

functions! {
    /// Exchange two axes.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// axis1, axis2 : int or str
    ///     The axes.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the axis does not exist.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.swapaxes(nx.zeros((2, 3, 4)), 0, 2).shape
    /// (4, 3, 2)
    fn swapaxes(x, /, axis1: Axis, axis2: Axis) |graph| graph.swap_axes(x, axis1, axis2);

    /// Rotate a plane by multiples of 90 degrees, from its first axis to its second.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     A tensor with at least two axes.
    /// k : int
    ///     The number of rotations by 90 degrees; negative numbers rotate in the other direction.
    /// axes : (int or str, int or str), optional
    ///     The plane; the first two axes by default.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If an axis does not exist, or both axes are the same.
    /// ArgumentError
    ///     If there are not two of them.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.rot90([[1, 2], [3, 4]]).tolist()
    /// [[2, 4], [1, 3]]
    fn rot90(x, /, k: Integer = 1, axes: Option<AxisList> = None) |graph| {
        let axes = axes.unwrap_or_else(|| vec![0, 1]);
        let plane: [i64; 2] = axes.try_into().map_err(|axes: Vec<i64>| {
            let why = format!("axes: must be two; got {}", axes.len());
            user_error(argument_error("rot90", why))
        })?;
        graph.rotate(x, k, plane)
    };

    /// Change the shape; the elements keep their row-major order.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// shape : int or sequence of int
    ///     The new sizes. One of them may be -1; it follows from the number of elements.
    /// *sizes : int
    ///     Further sizes, if `shape` is an int.
    /// names : sequence of (str or None), optional
    ///     The names of the new axes.
    /// copy : bool, optional
    ///     Part of the standard. It makes no difference: tensors never change.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A tensor with the new shape, and the dtype and elements of `x`.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If the number of elements differs.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.reshape([1, 2, 3, 4], (2, -1)).tolist()
    /// [[1, 2], [3, 4]]
    fn reshape(
        x, /, shape: Sizes, *sizes: Integer, names: Option<NamesArg> = None, copy: Option<bool> = None
    ) |graph| {
        let shape = [shape, resolve_sizes("reshape", sizes)?].concat();
        // Tensors are immutable, so `copy` has no observable effect.
        let _ = copy;
        let reshaped = graph.reshape_auto(x, &shape)?;
        match names.flatten() {
            Some(names) => graph.rename(reshaped, Some(names)),
            None => Ok(reshaped),
        }
    };

    /// Merge adjacent axes into one; all axes by default.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// axes : int or str, or a sequence, optional
    ///     The axes. A scalar without axes becomes a vector of size 1.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If the axes are not neighbors in increasing order.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.flatten([[1, 2], [3, 4]]).tolist()
    /// [1, 2, 3, 4]
    fn flatten(x, /, *, axes: Option<AxisList> = None) |graph| graph.flatten(x, axes.as_deref());

    /// Rename the axes.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// names : sequence of (str or None)
    ///     One for each axis.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the number of names differs from the number of axes.
    /// ArgumentError
    ///     If a name is repeated.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> rows = nx.rename([[1, 2], [3, 4]], ["row", None])
    /// >>> nx.sum(rows, axis="row").tolist()
    /// [4, 6]
    fn rename(x, names: NamesArg, /) |graph| graph.rename(x, names);

    /// Drop axes of size 1.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// axis : int or str, or a sequence, optional
    ///     The axes; by default all of size 1.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If the size of an axis is not 1.
    /// ShapeError
    ///     If an axis does not exist.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.squeeze([[1, 2]], axis=0).shape
    /// (2,)
    fn squeeze(x, /, axis: Option<AxisList> = None) |graph| graph.squeeze(x, axis.as_deref());

    /// Insert an axis of size 1.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// axis : int or sequence of int
    ///     The position of the new axis in the result, or the positions of several.
    /// name : str, optional
    ///     The name of the axis, if it is one.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If a position is out of range or repeated, or if a name is passed for several axes.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.expand_dims([1, 2], axis=-1).tolist()
    /// [[1], [2]]
    /// >>> nx.expand_dims([1, 2], axis=(0, -1)).shape
    /// (1, 2, 1)
    fn expand_dims(x, /, axis: NewAxes = 0, *, name: Option<String> = None) |graph|
        match (&axis[..], name) {
            (&[axis], name) => graph.new_axis(x, axis, name.map(AxisName::from)),
            (axes, None) => graph.new_axes(x, axes),
            (_, Some(_)) => {
                let why = "requires one new axis";
                Err(graph.error("expand_dims", ErrorKind::invalid("name", why)))
            }
        };

    /// Reorder the axes.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// axes : sequence of int or str, optional
    ///     The axis of `x` for each axis of the result; the reverse order by default.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the axes are not a permutation.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.permute_dims([[1, 2], [3, 4]], (1, 0)).tolist()
    /// [[1, 3], [2, 4]]
    fn permute_dims(x, /, axes: Option<AxisList> = None) |graph|
        graph.transpose(x, axes.as_deref());

    /// Reverse the order of elements along axes, along all by default.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// axis : int or str, or a sequence, optional
    ///     The axes; all by default.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the axis does not exist.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.flip([1, 2, 3]).tolist()
    /// [3, 2, 1]
    fn flip(x, /, axis: Option<AxisList> = None) |graph| graph.reverse(x, axis.as_deref());

    /// Broadcast a tensor to a shape.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// shape : int or sequence of int
    ///     The sizes of the result.
    /// axes : sequence of int, optional
    ///     The axis of the result that each axis of `x` becomes, increasing; the last ones by
    ///     default.
    /// names : sequence of (str or None), optional
    ///     The names of the axes of the result; the names of `x` are dropped.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If a size of `x` is neither 1 nor the size of the result.
    /// ShapeError
    ///     If `x` has more axes than the result.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.broadcast_to([1, 2], (2, 2)).tolist()
    /// [[1, 2], [1, 2]]
    /// >>> nx.broadcast_to([1, 2], (2, 2), axes=[0]).tolist()
    /// [[1, 1], [2, 2]]
    fn broadcast_to(
        x, /, shape: ShapeArg, *, axes: Option<Vec<Integer>> = None, names: Option<NamesArg> = None
    ) |graph| graph.broadcast_and_name(x, shape, axes.as_deref(), names.flatten());

    /// Broadcast several tensors to their common shape.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If the shapes do not broadcast.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> [x.tolist() for x in nx.broadcast_arrays([1, 2], 3)]
    /// [[1, 2], [3, 3]]
    fn broadcast_arrays(*arrays) -> Vec<ExprId> |graph| graph.broadcast_together(&arrays);

    /// Concatenate tensors along an axis.
    ///
    /// Parameters
    /// ----------
    /// arrays : sequence of tensor_like
    ///     At least one; their shapes are equal but for `axis`, their dtypes promote.
    /// axis : int or str, optional
    ///     The axis; None flattens the tensors first.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If `arrays` is empty, or other axes differ in size.
    /// ShapeError
    ///     If the axis does not exist.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.concat([[1, 2], [3.5]]).tolist()
    /// [1.0, 2.0, 3.5]
    fn concat(arrays: OperandSequence<'_>, /, axis: AxisOfList<AxisOrNone> = 0) |graph|
        match axis {
            Some(axis) => graph.concatenate(&arrays, axis),
            None => {
                let flat = arrays.iter().map(|&x| graph.flatten(x, None));
                let flat = flat.collect::<nxla_runtime::graph::Result<Vec<_>>>()?;
                graph.concatenate(&flat, 0)
            }
        };

    /// Stack tensors of one shape along a new axis.
    ///
    /// Parameters
    /// ----------
    /// arrays : sequence of tensor_like
    ///     At least one.
    /// axis : int
    ///     The position of the new axis in the result.
    /// name : str, optional
    ///     Its name.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If `arrays` is empty, the shapes differ, or the axis does not exist.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.stack([[1, 2], [3, 4]], axis=1).tolist()
    /// [[1, 3], [2, 4]]
    fn stack(
        arrays: OperandSequence<'_>, /, axis: AxisOfList<Integer> = 0, *, name: Option<String> = None
    ) |graph| graph.stack(&arrays, axis, name.map(AxisName::from));

    /// Repeat a whole tensor along its axes.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// repetitions : int or sequence of int
    ///     The number of copies along each axis. The shorter of `repetitions` and the shape is
    ///     extended by ones in front; an integer applies to the last axis.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.tile([1, 2], (2, 2)).tolist()
    /// [[1, 2, 1, 2], [1, 2, 1, 2]]
    /// >>> nx.tile([1, 2], 2).tolist()
    /// [1, 2, 1, 2]
    fn tile(x, repetitions: PerAxis, /) |graph| graph.tile(x, &repetitions.of(1));

    /// Pad a tensor with a value, around and between the elements.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// value : number or scalar tensor
    ///     The fill value.
    /// config : sequence of tuples
    ///     For each axis ``(before, after)`` or ``(before, after, between)``. Negative numbers cut
    ///     elements off.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the number of tuples differs from the number of axes, or the value is not a scalar.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.pad([1, 2], 0, [(1, 2)]).tolist(), nx.pad([1, 2, 3], 0, [(-1, 0, 1)]).tolist()
    /// ([0, 1, 2, 0, 0], [0, 2, 0, 3])
    fn pad(x, value, config: Option<PaddingOfAxes> = None, /) |graph| {
        let Some(config) = config else {
            let why = "config: must follow the fill value, as in nx.pad(x, 0, [(1, 1)])";
            return Err(user_error(argument_error("pad", why)));
        };
        graph.pad(x, value, &config)
    };
}

/// Pad a tensor with its own elements beyond the ends of each axis: `(low, high)` for each.
#[pyfunction]
fn pad_with_own(
    x: &Bound<'_, PyAny>,
    rule: &str,
    widths: Converted<Vec<(Count, Count)>>,
) -> PyResult<Py<PyAny>> {
    let name = "pad_outer";
    let Some(rule) = OuterPadding::ALL.into_iter().find(|known| known.name() == rule) else {
        let known = OuterPadding::ALL.map(OuterPadding::name).join(", ");
        let why = format!("mode: must be a number or one of {known}; got {rule:?}");
        return Err(argument_error(name, why));
    };
    let widths = widths.or_name(x.py(), name, "widths", "Sequence[tuple[int, int]]")?;
    let widths: Vec<_> = widths.into_iter().map(|(low, high)| (low.0, high.0)).collect();
    let operand = Value::of(x, name)?;
    apply(x.py(), name, &[operand], |graph, ids| one(graph.pad_outer(ids[0], rule, &widths)))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    declared_functions(module)?;
    add_functions!(module: pad_with_own);
    Ok(())
}

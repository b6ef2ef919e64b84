//! Products that contract axes.

use nxla_runtime::graph::build::ConvOptions;
use pyo3::prelude::*;

use super::args::{AxisList, AxisOfOperands, Count};
use super::declare::functions;
use super::window::{PaddingArg, PerAxis};
use crate::apply::{apply, one};
use crate::operands::{Operands, Role};
use crate::value::{FromPython, Value};

/// The operator `@`.
pub(crate) fn matmul_operator(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let mut operands = Operands::default();
    for operand in [x, y] {
        if !operands.try_push(operand, Role::Element)? {
            return Ok(x.py().NotImplemented());
        }
    }
    apply(x.py(), "matmul", &operands.values()?, |graph, ids| one(graph.matmul(ids[0], ids[1])))
}

functions! {
    /// Multiply each element of one tensor with all of the other, as blocks.
    ///
    /// The Kronecker product. The operand with fewer axes is padded with leading axes.
    ///
    /// Parameters
    /// ----------
    /// x1, x2 : tensor_like
    ///     Numbers.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A tensor whose sizes are the products of the sizes of the operands.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.kron([1, 10], [1, 2, 3]).tolist()
    /// [1, 2, 3, 10, 20, 30]
    fn kron(x1, x2, /) |graph| graph.kron(x1, x2);

    /// Multiply matrices; the operator ``@``.
    ///
    /// Parameters
    /// ----------
    /// x1, x2 : tensor_like
    ///     Matrices in the last two axes; the other axes broadcast. A vector counts as a row on the
    ///     left and as a column on the right, and the result does not have the added axis.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The products, of shape (..., rows of `x1`, columns of `x2`); the dtypes promote.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the number of columns of `x1` differs from the number of rows of `x2`, if other axes do
    ///     not broadcast, or if an operand is a scalar.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.matmul([[1, 2], [3, 4]], [5, 6]).tolist()
    /// [17, 39]
    fn matmul(x1, x2, /) |graph| graph.matmul(x1, x2);

    /// Multiply and sum over given axes.
    ///
    /// Parameters
    /// ----------
    /// x1, x2 : tensor_like
    ///     Operands.
    /// x1_contract, x2_contract : int or str, or a sequence, optional
    ///     The axes to sum over, in pairs. By default, the last axis of
    ///     `x1` and the last but one of `x2` (the last one of a vector); a scalar has no such axis.
    /// x1_batch, x2_batch : int or str, or a sequence, optional
    ///     Batch axes; they must be the first axes of both operands.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The batch axes, then the free axes of `x1`, then the free axes of `x2`.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If paired axes differ in size.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.dot([1, 2, 3], [4, 5, 6]).item()
    /// 32
    /// >>> nx.dot(nx.ones((5, 2, 3)), nx.ones((5, 3)), x1_contract=2, x2_contract=1,
    /// ...        x1_batch=0, x2_batch=0).shape
    /// (5, 2)
    fn dot(
        x1, x2, /, *, x1_contract: Option<AxisList> = None,
        x2_contract: Option<AxisList<1>> = None, x1_batch: Option<AxisList> = None,
        x2_batch: Option<AxisList<1>> = None
    ) |graph| {
        let given = [&x1_contract, &x2_contract, &x1_batch, &x2_batch];
        if given.iter().all(|axes| axes.is_none()) {
            return Ok(graph.dot(x1, x2)?);
        }
        let [x1_contract, x2_contract, x1_batch, x2_batch] =
            given.map(|axes| axes.as_deref().unwrap_or_default());
        graph.dot_general(x1, x1_contract, x1_batch, x2, x2_contract, x2_batch)
    };

    /// Multiply and sum over one axis of both; the other axes broadcast.
    ///
    /// Elements of `x1` are conjugated. The dtype is the promoted dtype of both operands.
    ///
    /// Parameters
    /// ----------
    /// x1, x2 : tensor_like
    ///     Operands.
    /// axis : int or str
    ///     The axis of the broadcast operands.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the shapes do not broadcast.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.vecdot([[1, 2], [3, 4]], [1, 1]).tolist()
    /// [3, 7]
    fn vecdot(x1, x2, /, axis: AxisOfOperands = -1) |graph| graph.vecdot(x1, x2, axis);

    /// Multiply every element of one tensor by every element of the other.
    ///
    /// Complex elements of `x2` are conjugated, as in Nx. `nxla.linalg.outer` conjugates nothing.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A row for each element of `x1`, a column for each of `x2`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.outer([1, 2], [3, 4]).tolist()
    /// [[3, 4], [6, 8]]
    fn outer(x1, x2, /) |graph| graph.outer(x1, x2);

    /// Convolve an input with a kernel, as neural networks define it.
    ///
    /// The kernel is not flipped (it is a cross-correlation).
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Axes: batch, channels, then the spatial ones.
    /// kernel : tensor_like
    ///     Axes: output channels, input channels, then the spatial ones.
    /// strides : int or sequence of int, optional
    ///     The stride along each spatial axis; 1 by default.
    /// padding : {"valid", "same"} or sequence of (int, int)
    ///     Zeros around the spatial axes: none, ``dilation * (window - 1)`` for any strides, or pairs
    ///     for each axis.
    /// input_dilation, kernel_dilation : int or sequence of int, optional
    ///     The dilation: the distance of elements, with zeros in between; 1 by default.
    /// feature_groups, batch_groups : int
    ///     Groups of channels, or of the batch, that are convolved separately.
    /// input_permutation, kernel_permutation, output_permutation : sequence of int or str, optional
    ///     Orders of axes for other layouts: where the axes named above are found.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A tensor with the axes batch, output channels, and spatial axes; a spatial axis has size
    ///     0 if the kernel does not fit. Integers become ``float32``.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If there are fewer than three axes, or if channels do not match.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> x = nx.reshape(nx.arange(5), (1, 1, 5))
    /// >>> nx.conv(x, [[[1, 0, -1]]]).tolist()
    /// [[[-2.0, -2.0, -2.0]]]
    fn conv(
        x, kernel, /, *, strides: Option<PerAxis> = None, padding: PaddingArg = "valid",
        input_dilation: Option<PerAxis> = None, kernel_dilation: Option<PerAxis> = None,
        feature_groups: Count = 1, batch_groups: Count = 1,
        input_permutation: Option<AxisList> = None, kernel_permutation: Option<AxisList<1>> = None,
        output_permutation: Option<AxisList> = None
    ) |graph| {
        let spatial = graph.shape(x).rank().saturating_sub(2);
        let each = |given: Option<PerAxis>| given.map(|given| given.of(spatial));
        let options = ConvOptions {
            strides: each(strides),
            padding,
            input_dilation: each(input_dilation),
            kernel_dilation: each(kernel_dilation),
            feature_groups,
            batch_groups,
            input_permutation,
            kernel_permutation,
            output_permutation,
        };
        graph.conv(x, kernel, &options)
    };
}

/// A sum of products in subscript notation, with an optional order of contractions.
#[pyfunction]
fn sum_of_products(
    py: Python<'_>,
    subscripts: &str,
    operands: Vec<Bound<'_, PyAny>>,
    order: Option<Vec<Vec<usize>>>,
) -> PyResult<Py<PyAny>> {
    let operands: Vec<Value> =
        operands.iter().map(|operand| Value::of(operand, "einsum")).collect::<PyResult<_>>()?;
    apply(py, "einsum", &operands, |graph, ids| {
        one(graph.einsum(subscripts, ids, order.as_deref()))
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    declared_functions(module)?;
    module.add_function(wrap_pyfunction!(sum_of_products, module)?)
}

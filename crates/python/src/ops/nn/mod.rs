//! Activations of neural networks; layers and losses are in `layers.rs`.

mod layers;

use nxla_runtime::graph::build::RunningNorm;
use pyo3::prelude::*;

use super::add_functions;
use super::args::{Axis, Count, Integer};
use super::declare::{Positions, Signature, functions};
use super::random::Drawing;
use crate::apply::{apply_parts, many};
use crate::dtype::DTypeArg;
use crate::value::{FromPython, Value};

functions! {
    /// Return the elements that are positive, and 0 in place of the others.
    ///
    /// K. Fukushima, "Visual feature extraction by a multilayered network of analog threshold
    /// elements" (1969). The derivative at 0 is 0.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers; integers count as ``float32``.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A tensor with the shape and dtype of `x`.
    ///
    /// Raises
    /// ------
    /// DTypeError
    ///     If `x` is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.relu([-1.0, 2.0]).tolist()
    /// [0.0, 2.0]
    fn relu(x, /) |graph| graph.relu(x);

    /// Limit elements to the range from 0 to 6.
    ///
    /// A. Krizhevsky, "Convolutional deep belief networks on CIFAR-10" (2010). Operand, result and
    /// errors are the same as for `relu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.relu6([-1.0, 2.0, 9.0]).tolist()
    /// [0.0, 2.0, 6.0]
    fn relu6(x, /) |graph| graph.relu6(x);

    /// Limit elements to the range from -1 to 1.
    ///
    /// R. Collobert, "Large scale machine learning" (2004). Operand, result and errors are the same
    /// as for
    /// `relu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.hard_tanh([-3.0, 0.5]).tolist()
    /// [-1.0, 0.5]
    fn hard_tanh(x, /) |graph| graph.hard_tanh(x);

    /// Return a sigmoid of straight lines, ``relu6(x + 3) / 6``.
    ///
    /// A. Howard et al., "Searching for MobileNetV3" (2019). Operand, result and errors are the
    /// same as for
    /// `relu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.hard_sigmoid([-5.0, 0.0, 5.0]).tolist()
    /// [0.0, 0.5, 1.0]
    fn hard_sigmoid(x, /) |graph| graph.hard_sigmoid(x);

    /// Return ``x * hard_sigmoid(x)``.
    ///
    /// A. Howard et al., "Searching for MobileNetV3" (2019). Operand, result and errors are the
    /// same as for
    /// `relu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.hard_silu([-5.0, 0.0, 5.0]).tolist()
    /// [-0.0, 0.0, 5.0]
    fn hard_silu(x, /) |graph| graph.hard_silu(x);

    /// Return ``x * sigmoid(x)``.
    ///
    /// S. Elfwing et al., "Sigmoid-weighted linear units for neural network function approximation
    /// in reinforcement learning" (2017), where it is SiLU; also known as swish. Operand, result
    /// and errors are the same as for `relu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.silu([0.0, 100.0]).tolist()
    /// [0.0, 100.0]
    fn silu(x, /) |graph| graph.silu(x);

    /// Return each element times the probability that a normal variable is below it.
    ///
    /// D. Hendrycks and K. Gimpel, "Gaussian error linear units" (2016).
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers; integers count as ``float32``.
    /// approximate : bool
    ///     If True, approximate the probability with a hyperbolic tangent, which is also the default
    ///     of JAX. PyTorch uses the exact form by default.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> round(nx.nn.gelu(1.0).item(), 4), round(nx.nn.gelu(1.0, approximate=False).item(), 4)
    /// (0.8412, 0.8413)
    fn gelu(x, /, *, approximate: bool = true) |graph| graph.gelu(x, approximate);

    /// Return the elements that are positive, and ``alpha * (exp(x) - 1)`` for the others.
    ///
    /// D.-A. Clevert et al., "Fast and accurate deep network learning by exponential linear units"
    /// (2015). Result and errors are the same as for `relu`.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers; integers count as ``float32``.
    /// alpha : float
    ///     The scale of the negative part, whose limit is ``-alpha``.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.elu([-100.0, 2.0]).tolist()
    /// [-1.0, 2.0]
    fn elu(x, /, *, alpha: f64 = 1) |graph| graph.elu(x, alpha);

    /// Return `elu` with constants that keep mean and variance from layer to layer.
    ///
    /// G. Klambauer et al., "Self-normalizing neural networks" (2017). Operand, result and errors
    /// are the same as for `relu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> [round(y, 4) for y in nx.nn.selu([-100.0, 1.0]).tolist()]
    /// [-1.7581, 1.0507]
    fn selu(x, /) |graph| graph.selu(x);

    /// Return the elements that are positive, and ``alpha * (exp(x / alpha) - 1)`` for the others.
    ///
    /// J. T. Barron, "Continuously differentiable exponential linear units" (2017).
    ///
    /// Parameters, result and errors are the same as for `elu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.celu([-100.0, 2.0], alpha=0.5).tolist()
    /// [-0.5, 2.0]
    fn celu(x, /, *, alpha: f64 = 1) |graph| graph.celu(x, alpha);

    /// Return ``log(1 + exp(x))`` without overflow.
    ///
    /// C. Dugas et al., "Incorporating second-order functional knowledge for better option pricing"
    /// (2001). Operand, result and errors are the same as for `relu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.softplus([-1000.0, 1000.0]).tolist()
    /// [0.0, 1000.0]
    fn softplus(x, /) |graph| graph.softplus(x);

    /// Return ``log(sigmoid(x))`` without overflow.
    ///
    /// Operand, result and errors are the same as for `relu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.log_sigmoid([-1000.0, 1000.0]).tolist()
    /// [-1000.0, -0.0]
    fn log_sigmoid(x, /) |graph| graph.log_sigmoid(x);

    /// Return ``x / (1 + abs(x))``.
    ///
    /// J. Turian et al., "Quadratic features and deep architectures for chunking" (2009). Operand,
    /// result and errors are the same as for `relu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.soft_sign([-1.0, 3.0]).tolist()
    /// [-0.5, 0.75]
    fn soft_sign(x, /) |graph| graph.soft_sign(x);

    /// Return the elements that are positive, and a fraction of the others.
    ///
    /// A. L. Maas et al., "Rectifier nonlinearities improve neural network acoustic models" (2013).
    /// Result and errors are the same as for `relu`.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers; integers count as ``float32``.
    /// negative_slope : float
    ///     The fraction.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.leaky_relu([-2.0, 2.0], negative_slope=0.5).tolist()
    /// [-1.0, 2.0]
    fn leaky_relu(x, /, *, negative_slope: f64 = 0.01) |graph| graph.leaky_relu(x, negative_slope);

    /// Return ``x * tanh(softplus(x))``.
    ///
    /// D. Misra, "Mish: a self regularized non-monotonic activation function" (2019). Operand,
    /// result and errors are the same as for `relu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> round(nx.nn.mish(1.0).item(), 4)
    /// 0.8651
    fn mish(x, /) |graph| graph.mish(x);

    /// Return ``(x + sqrt(x ** 2 + b)) / 2``.
    ///
    /// J. T. Barron, "Squareplus: a softplus-like algebraic rectifier" (2021). Result and errors
    /// are the same as for `relu`.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers; integers count as ``float32``.
    /// b : float
    ///     The curvature at 0, a non-negative number; 0 is `relu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.squareplus([0.0, 1e30]).tolist()[0]
    /// 1.0
    fn squareplus(x, /, *, b: f64 = 4) |graph| graph.squareplus(x, b);

    /// Return 0 below -1, the elements above 1, and a parabola between them.
    ///
    /// A. F. T. Martins and R. F. Astudillo, "From softmax to sparsemax" (2016). Operand, result
    /// and errors are the same as for `relu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.sparse_plus([-2.0, 0.0, 3.0]).tolist()
    /// [0.0, 0.25, 3.0]
    fn sparse_plus(x, /) |graph| graph.sparse_plus(x);

    /// Return ``(x + 1) / 2`` limited to the range from 0 to 1: the derivative of `sparse_plus`.
    ///
    /// Operand, result and errors are the same as for `relu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.sparse_sigmoid([-2.0, 0.0, 3.0]).tolist()
    /// [0.0, 0.5, 1.0]
    fn sparse_sigmoid(x, /) |graph| graph.sparse_sigmoid(x);

    /// Return ``log(1 - exp(-x))`` of positive numbers without loss of digits.
    ///
    /// M. Mächler, "Accurately computing ``log(1 - exp(-|a|))``" (2012). Operand, result and errors
    /// are the same as for `relu`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> round(nx.nn.log1mexp(1e-10).item(), 3)
    /// -23.026
    fn log1mexp(x, /) |graph| graph.log1mexp(x);

    /// Return exponentials divided by their sum, without overflow.
    ///
    /// J. S. Bridle, "Probabilistic interpretation of feedforward classification network outputs"
    /// (1990).
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers; integers count as ``float32``.
    /// axis : int or str
    ///     The axis along which the results add up to 1.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A tensor with the shape and dtype of `x`.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the axis does not exist.
    /// DTypeError
    ///     If `x` is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.softmax([1000.0, 1000.0]).tolist()
    /// [0.5, 0.5]
    fn softmax(x, /, axis: Axis = -1) |graph| graph.softmax(x, axis);

    /// Return the logarithm of `softmax` without overflow or loss of digits.
    ///
    /// Parameters, result and errors are the same as for `softmax`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.log_softmax([0.0, 1000.0]).tolist()
    /// [-1000.0, 0.0]
    fn log_softmax(x, /, axis: Axis = -1) |graph| graph.log_softmax(x, axis);

    /// Return one half of an axis times the sigmoid of the other: a gated linear unit.
    ///
    /// Y. N. Dauphin et al., "Language modeling with gated convolutional networks" (2016).
    /// Parameters and errors are the same as for `softmax`.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If the size of the axis is odd.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.glu([2.0, 4.0, 0.0, 100.0]).tolist()
    /// [1.0, 4.0]
    fn glu(x, /, axis: Axis = -1) |graph| graph.glu(x, axis);

    /// Return one-hot vectors: 1 at the index that each integer selects on a new axis, 0 elsewhere.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Integers; an integer outside the range produces zeros.
    /// num_classes : int
    ///     The size of the new axis.
    /// axis : int
    ///     The position of the new axis in the result.
    /// dtype : dtype_like
    ///     The dtype of the result.
    ///
    /// Raises
    /// ------
    /// DTypeError
    ///     If `x` has no integers.
    /// ArgumentError
    ///     If the axis does not exist.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.one_hot([1, 0], 3).tolist()
    /// [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    fn one_hot(
        x, /, num_classes: Count, *, axis: Integer = -1, dtype: DTypeArg = "float32"
    ) |graph| graph.one_hot(x, num_classes, axis, dtype);

    /// Return rows of a table by index.
    ///
    /// Parameters
    /// ----------
    /// table : tensor_like
    ///     Rows along the first axis.
    /// x : tensor_like
    ///     Integers, from 0 on; an index out of range selects the nearest row.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A tensor with the axes of `x`, followed by the axes of a row.
    ///
    /// Raises
    /// ------
    /// DTypeError
    ///     If `x` has no integers.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.nn.embedding([[1.0, 2.0], [3.0, 4.0]], [1, 0]).tolist()
    /// [[3.0, 4.0], [1.0, 2.0]]
    fn embedding(table, x: Positions<'_>, /) |graph| graph.embedding(table, x);
}

/// Channels with their own mean and variance, and the running statistics that these move.
#[pyfunction]
fn batch_norm_parts(
    x: &Bound<'_, PyAny>,
    mean: &Bound<'_, PyAny>,
    variance: &Bound<'_, PyAny>,
    scale: Option<&Bound<'_, PyAny>>,
    bias: Option<&Bound<'_, PyAny>>,
    axis: Axis,
    epsilon: f64,
    momentum: f64,
) -> PyResult<Vec<Py<PyAny>>> {
    const NAME: &str = "batch_norm_train";
    let mut operands =
        vec![Value::of(x, NAME)?, Value::of(mean, NAME)?, Value::of(variance, NAME)?];
    for given in [scale, bias].into_iter().flatten() {
        operands.push(Value::of(given, NAME)?);
    }
    let (has_scale, has_bias) = (scale.is_some(), bias.is_some());
    apply_parts(x.py(), NAME, &operands, |graph, ids| {
        let axis = axis.of(graph, ids[0])?;
        let mut rest = ids[3..].iter().copied();
        let affine = [has_scale, has_bias].map(|given| if given { rest.next() } else { None });
        let options = RunningNorm { axis, epsilon, momentum };
        let (y, mean, variance) =
            graph.batch_norm_train(ids[0], [ids[1], ids[2]], affine, options)?;
        many(Ok::<_, nxla_runtime::Error>([y, mean, variance]))
    })
}

/// A tensor with elements dropped.
#[pyfunction]
fn dropout_with(
    key: &Bound<'_, PyAny>,
    x: &Bound<'_, PyAny>,
    rate: f64,
    advance: bool,
) -> PyResult<Vec<Py<PyAny>>> {
    let drawing = Drawing::new("dropout", advance);
    let operands = [Value::of(key, &drawing.function)?, Value::of(x, &drawing.function)?];
    drawing.run(key.py(), &operands, |graph, key, ids| graph.dropout(key, ids[0], rate))
}

/// The signatures of both files.
pub(super) fn all_signatures() -> impl Iterator<Item = Signature> {
    signatures().into_iter().chain(layers::signatures())
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    declared_functions(module)?;
    layers::declared_functions(module)?;
    add_functions!(module: batch_norm_parts, dropout_with);
    Ok(())
}

//! Initializers: distributions of the first values of parameters.
//!
//! [`Tensor::initialize`](crate::Tensor::initialize) draws with a key, which should be used once;
//! [`random_split`](crate::Tensor::random_split) makes several keys. Equal keys have the same values
//! as in Python.
//!
//! Initializers that depend on the number of inputs or outputs read the shape as `dot` and `conv` do:
//! a matrix is (inputs, outputs), and a tensor of more axes is a kernel of a convolution (outputs,
//! inputs, positions…). [`Initializer::axes`] sets other axes.
//!
//! ```
//! use nxla::initializers::he_normal;
//! use nxla::{Draw, Tensor};
//!
//! let keys = Tensor::random_key(0)?.random_split(2)?;
//! let weights = keys.at(0)?.initialize(he_normal(), Draw::new([300, 20]))?;
//! let deviation = weights.standard_deviation((), 0)?.item::<f64>()?;
//! assert!((deviation - (2f64 / 300.0).sqrt()).abs() < 0.003);
//! # Ok::<(), nxla::Error>(())
//! ```

use nxla_expr::build::Draw;
use nxla_expr::{ErrorKind, ExprId, Graph, Result};
use nxla_tensor::{DType, Number, normalize_axis, to_i64};

/// The standard deviation of the standard normal distribution between -2 and 2.
const TRUNCATED: f64 = 0.879_625_661_034_239_8;

/// A distribution of the first values of parameters, created by a function of this module.
///
/// ```
/// use nxla::initializers::{Initializer, glorot_uniform, zeros};
/// use nxla::{Draw, Tensor};
///
/// struct Layer {
///     weights: Initializer,
///     bias: Initializer,
/// }
///
/// let layer = Layer { weights: glorot_uniform(), bias: zeros() };
/// let key = Tensor::random_key(0)?;
/// assert_eq!(key.initialize(layer.bias, Draw::new([2]))?.to_vec::<f32>()?, [0.0, 0.0]);
/// assert_eq!(key.initialize(layer.weights, Draw::new([3, 2]))?.shape()[..], [3, 2]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[must_use]
pub struct Initializer {
    rule: Rule,
    /// The axes of inputs and outputs, if they are not the default ones.
    axes: Option<[i64; 2]>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Rule {
    Constant(f64),
    Uniform { low: f64, high: f64 },
    Normal { deviation: f64 },
    TruncatedNormal { deviation: f64, low: f64, high: f64 },
    Scaled { scale: f64, fan: Fan, distribution: Distribution },
    Orthogonal { scale: f64 },
}

/// The number by which [`variance_scaling`] divides the variance.
///
/// ```
/// use nxla::initializers::{Distribution, Fan, glorot_normal, variance_scaling};
///
/// assert_eq!(glorot_normal(), variance_scaling(1.0, Fan::Average, Distribution::TruncatedNormal));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fan {
    /// The inputs of an output.
    In,
    /// The outputs of an input.
    Out,
    /// The mean of both.
    Average,
}

/// The shape of the distribution of [`variance_scaling`].
///
/// ```
/// use nxla::initializers::{Distribution, Fan, he_uniform, variance_scaling};
///
/// assert_eq!(he_uniform(), variance_scaling(2.0, Fan::In, Distribution::Uniform));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distribution {
    /// A normal distribution without values beyond two standard deviations.
    TruncatedNormal,
    /// A normal distribution.
    Normal,
    /// A uniform distribution around 0.
    Uniform,
}

impl Rule {
    const fn initializer(self) -> Initializer {
        Initializer { rule: self, axes: None }
    }
}

/// Creates an initializer of zeros.
///
/// ```
/// use nxla::initializers::{constant, zeros};
///
/// assert_eq!(zeros(), constant(0.0));
/// ```
pub fn zeros() -> Initializer {
    constant(0.0)
}

/// Creates an initializer of ones.
///
/// ```
/// use nxla::initializers::{constant, ones};
///
/// assert_eq!(ones(), constant(1.0));
/// ```
pub fn ones() -> Initializer {
    constant(1.0)
}

/// Creates an initializer of one value.
///
/// ```
/// use nxla::{Draw, Tensor, initializers::constant};
///
/// let x = Tensor::random_key(0)?.initialize(constant(0.5), Draw::new([2]))?;
/// assert_eq!(x.to_vec::<f32>()?, [0.5, 0.5]);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn constant(value: f64) -> Initializer {
    Rule::Constant(value).initializer()
}

/// Creates a uniform initializer of the values from 0 up to `scale`.
///
/// ```
/// use nxla::{Draw, Tensor, initializers::uniform};
///
/// let x = Tensor::random_key(0)?.initialize(uniform(0.01), Draw::new([50]))?;
/// assert!(x.reduce_min()?.item::<f32>()? >= 0.0 && x.reduce_max()?.item::<f32>()? < 0.01);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn uniform(scale: f64) -> Initializer {
    Rule::Uniform { low: 0.0, high: scale }.initializer()
}

/// Creates a normal initializer of mean 0.
///
/// ```
/// use nxla::{Draw, Tensor, initializers::normal};
///
/// let x = Tensor::random_key(0)?.initialize(normal(0.1), Draw::new([1000]))?;
/// assert!((x.standard_deviation((), 0)?.item::<f64>()? - 0.1).abs() < 0.01);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn normal(deviation: f64) -> Initializer {
    Rule::Normal { deviation }.initializer()
}

/// Creates a normal initializer between two bounds, in units of the standard deviation, which is the
/// one before the truncation.
///
/// ```
/// use nxla::{Draw, Tensor, initializers::truncated_normal};
///
/// let x = Tensor::random_key(0)?.initialize(truncated_normal(0.1, -2.0, 2.0), Draw::new([50]))?;
/// assert!(x.abs()?.reduce_max()?.item::<f32>()? <= 0.2);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn truncated_normal(deviation: f64, low: f64, high: f64) -> Initializer {
    Rule::TruncatedNormal { deviation, low, high }.initializer()
}

/// Creates an initializer of mean 0 and the variance `scale / fan`.
///
/// ```
/// use nxla::initializers::{Distribution, Fan, variance_scaling};
/// use nxla::{Draw, Tensor};
///
/// let init = variance_scaling(1.0, Fan::In, Distribution::Uniform);
/// let kernel = Tensor::random_key(0)?.initialize(init, Draw::new([16, 8, 3, 3]))?;
/// assert!(kernel.abs()?.reduce_max()?.item::<f64>()? < (3f64 / (8.0 * 9.0)).sqrt());
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn variance_scaling(scale: f64, fan: Fan, distribution: Distribution) -> Initializer {
    Rule::Scaled { scale, fan, distribution }.initializer()
}

/// Creates the uniform initializer of X. Glorot and Y. Bengio, "Understanding the difficulty of
/// training deep feedforward neural networks" (2010), with the variance `1 / average fan`.
///
/// ```
/// use nxla::initializers::{Distribution, Fan, glorot_uniform, variance_scaling};
///
/// assert_eq!(glorot_uniform(), variance_scaling(1.0, Fan::Average, Distribution::Uniform));
/// ```
#[doc(alias = "xavier")]
pub fn glorot_uniform() -> Initializer {
    variance_scaling(1.0, Fan::Average, Distribution::Uniform)
}

/// Creates the truncated normal initializer with the variance of [`glorot_uniform`].
///
/// ```
/// use nxla::initializers::{Distribution, Fan, glorot_normal, variance_scaling};
///
/// assert_eq!(glorot_normal(), variance_scaling(1.0, Fan::Average, Distribution::TruncatedNormal));
/// ```
#[doc(alias = "xavier")]
pub fn glorot_normal() -> Initializer {
    variance_scaling(1.0, Fan::Average, Distribution::TruncatedNormal)
}

/// Creates the uniform initializer of K. He et al., "Delving deep into rectifiers: surpassing
/// human-level performance on ImageNet classification" (2015), with the variance `2 / fan in`.
///
/// ```
/// use nxla::initializers::{Distribution, Fan, he_uniform, variance_scaling};
///
/// assert_eq!(he_uniform(), variance_scaling(2.0, Fan::In, Distribution::Uniform));
/// ```
#[doc(alias = "kaiming")]
pub fn he_uniform() -> Initializer {
    variance_scaling(2.0, Fan::In, Distribution::Uniform)
}

/// Creates the truncated normal initializer with the variance of [`he_uniform`].
///
/// ```
/// use nxla::initializers::{Distribution, Fan, he_normal, variance_scaling};
///
/// assert_eq!(he_normal(), variance_scaling(2.0, Fan::In, Distribution::TruncatedNormal));
/// ```
#[doc(alias = "kaiming")]
pub fn he_normal() -> Initializer {
    variance_scaling(2.0, Fan::In, Distribution::TruncatedNormal)
}

/// Creates the uniform initializer of Y. LeCun et al., "Efficient backprop" (1998), with the variance
/// `1 / fan in`.
///
/// ```
/// use nxla::initializers::{Distribution, Fan, lecun_uniform, variance_scaling};
///
/// assert_eq!(lecun_uniform(), variance_scaling(1.0, Fan::In, Distribution::Uniform));
/// ```
pub fn lecun_uniform() -> Initializer {
    variance_scaling(1.0, Fan::In, Distribution::Uniform)
}

/// Creates the truncated normal initializer with the variance of [`lecun_uniform`].
///
/// ```
/// use nxla::initializers::{Distribution, Fan, lecun_normal, variance_scaling};
///
/// assert_eq!(lecun_normal(), variance_scaling(1.0, Fan::In, Distribution::TruncatedNormal));
/// ```
pub fn lecun_normal() -> Initializer {
    variance_scaling(1.0, Fan::In, Distribution::TruncatedNormal)
}

/// Creates an initializer of matrices with orthonormal rows or columns, times `scale`. All such matrices
/// are equally likely: A. M. Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep
/// linear neural networks" (2013). The axis of outputs has the columns.
///
/// ```
/// use nxla::initializers::orthogonal;
/// use nxla::{DType, Draw, Tensor};
///
/// let w = Tensor::random_key(0)?.initialize(orthogonal(1.0), Draw::new([5, 3]))?;
/// let product = w.transpose(())?.dot(&w)?;
/// assert!(product.all_close(Tensor::eye([3, 3], DType::F32)?, 1e-5, 1e-5, false)?.item::<bool>()?);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn orthogonal(scale: f64) -> Initializer {
    Rule::Orthogonal { scale }.initializer()
}

impl Initializer {
    /// Sets the axes of inputs and outputs; all other axes are positions of a kernel. Negative numbers
    /// count from the end.
    ///
    /// ```
    /// use nxla::initializers::he_normal;
    /// use nxla::{Draw, Tensor};
    ///
    /// // A stack of ten matrices with 400 inputs each.
    /// let init = he_normal().axes(-2, -1);
    /// let stack = Tensor::random_key(0)?.initialize(init, Draw::new([10, 400, 5]))?;
    /// // The stack counts as positions of a kernel.
    /// let expected = (2f64 / (400.0 * 10.0)).sqrt();
    /// assert!((stack.standard_deviation((), 0)?.item::<f64>()? - expected).abs() < 0.001);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn axes(self, inputs: i64, outputs: i64) -> Self {
        Self { axes: Some([inputs, outputs]), ..self }
    }

    /// Builds the nodes of a draw with a key.
    pub(crate) fn build(self, graph: &mut Graph, key: ExprId, draw: &Draw) -> Result<ExprId> {
        let dtype = draw.dtype.unwrap_or(DType::F32);
        let draw = Draw { dtype: Some(dtype), ..draw.clone() };
        match self.rule {
            Rule::Constant(value) => {
                let value = distribution_parameter(graph, value, &draw)?;
                let x = graph.as_type(value, dtype)?;
                graph.broadcast_and_name(x, draw.shape, None, draw.names)
            }
            Rule::Uniform { low, high } => draw_uniform(graph, key, [low, high], &draw),
            Rule::Normal { deviation } => draw_normal(graph, key, [0.0, deviation], &draw),
            Rule::TruncatedNormal { deviation, low, high } => {
                let [low, high] = [
                    distribution_parameter(graph, low, &draw)?,
                    distribution_parameter(graph, high, &draw)?,
                ];
                let x = graph.random_truncated_normal(key, low, high, &draw)?;
                let deviation = distribution_parameter(graph, deviation, &draw)?;
                graph.multiply(x, deviation)
            }
            Rule::Scaled { scale, fan, distribution } => {
                let [inputs, outputs] = self.fans(&draw)?;
                let fan = match fan {
                    Fan::In => inputs,
                    Fan::Out => outputs,
                    Fan::Average => (inputs + outputs) / 2.0,
                };
                let deviation = (scale / fan.max(1.0)).sqrt();
                let limit = 3f64.sqrt() * deviation;
                let rule = match distribution {
                    Distribution::Uniform => Rule::Uniform { low: -limit, high: limit },
                    Distribution::Normal => Rule::Normal { deviation },
                    Distribution::TruncatedNormal => {
                        let deviation = deviation / TRUNCATED;
                        Rule::TruncatedNormal { deviation, low: -2.0, high: 2.0 }
                    }
                };
                rule.initializer().build(graph, key, &draw)
            }
            Rule::Orthogonal { scale } => self.build_orthogonal(graph, key, scale, &draw),
        }
    }

    /// Returns the axes of inputs and outputs.
    fn resolve_axes(self, draw: &Draw) -> Result<[usize; 2]> {
        let rank = draw.shape.rank();
        let invalid = |why: String| ErrorKind::invalid("shape", why).of("initialize");
        if rank < 2 {
            let why = format!("must have axes of inputs and outputs; got {:?}", draw.shape);
            return Err(invalid(why));
        }
        let Some(axes) = self.axes else {
            return Ok(if rank == 2 { [0, 1] } else { [1, 0] });
        };
        let resolve = |axis: i64| {
            normalize_axis(axis, rank)
                .map_err(|_| invalid(format!("must have the axis {axis}; got {:?}", draw.shape)))
        };
        let [inputs, outputs] = [resolve(axes[0])?, resolve(axes[1])?];
        if inputs == outputs {
            let why = format!("must be two distinct axes of {:?}; got {inputs} twice", draw.shape);
            return Err(ErrorKind::invalid("axes", why).of("initialize"));
        }
        Ok([inputs, outputs])
    }

    /// Returns the number of inputs of an output, and of outputs of an input.
    fn fans(self, draw: &Draw) -> Result<[f64; 2]> {
        let [inputs, outputs] = self.resolve_axes(draw)?.map(|axis| draw.shape[axis] as f64);
        let pairs = inputs * outputs;
        let positions = if pairs > 0.0 { draw.shape.size() as f64 / pairs } else { 0.0 };
        Ok([inputs * positions, outputs * positions])
    }

    /// Draws a matrix by the QR factorization of a normal one, with the signs that make all matrices
    /// equally likely: F. Mezzadri, "How to generate random matrices from the classical compact groups"
    /// (2006).
    fn build_orthogonal(
        self,
        graph: &mut Graph,
        key: ExprId,
        scale: f64,
        draw: &Draw,
    ) -> Result<ExprId> {
        let [_, column_axis] = self.resolve_axes(draw)?;
        if draw.shape.size() == 0 {
            return Rule::Constant(0.0).initializer().build(graph, key, draw);
        }
        let columns = draw.shape[column_axis];
        let rows = draw.shape.size() / columns;
        let tall = Draw { dtype: draw.dtype, ..Draw::new([rows.max(columns), rows.min(columns)]) };
        let normal = Rule::Normal { deviation: 1.0 }.initializer().build(graph, key, &tall)?;
        let (q, r) = graph.qr(normal, false)?;
        let signs = graph.take_diagonal(r, 0)?;
        let signs = graph.sign(signs)?;
        let q = graph.multiply(q, signs)?;
        let matrix = if rows >= columns { q } else { graph.transpose(q, None)? };
        let mut sizes: Vec<usize> = draw.shape.to_vec();
        sizes.remove(column_axis);
        sizes.push(columns);
        let matrix = graph.reshape(matrix, sizes)?;
        let last = to_i64(draw.shape.rank() - 1);
        let mut order: Vec<i64> = (0..last).collect();
        order.insert(column_axis, last);
        let matrix = graph.transpose(matrix, Some(&order))?;
        let scale = distribution_parameter(graph, scale, draw)?;
        let matrix = graph.multiply(matrix, scale)?;
        graph.rename(matrix, draw.names.clone())
    }
}

/// Draws uniformly between two bounds.
pub(crate) fn draw_uniform(
    graph: &mut Graph,
    key: ExprId,
    [low, high]: [f64; 2],
    draw: &Draw,
) -> Result<ExprId> {
    let [low, high] =
        [distribution_parameter(graph, low, draw)?, distribution_parameter(graph, high, draw)?];
    graph.random_uniform(key, low, high, draw)
}

/// Draws from a normal distribution with a mean and a standard deviation.
pub(crate) fn draw_normal(
    graph: &mut Graph,
    key: ExprId,
    [mean, deviation]: [f64; 2],
    draw: &Draw,
) -> Result<ExprId> {
    let mean = distribution_parameter(graph, mean, draw)?;
    let deviation = distribution_parameter(graph, deviation, draw)?;
    graph.random_normal(key, mean, deviation, draw)
}

/// Returns a parameter of a distribution, in the dtype of the drawn numbers if it is a float.
fn distribution_parameter(graph: &mut Graph, value: f64, draw: &Draw) -> Result<ExprId> {
    let drawn = draw.dtype.filter(|dtype| dtype.is_float() || dtype.is_complex());
    graph.weak_constant(Number::Float(value), drawn)
}

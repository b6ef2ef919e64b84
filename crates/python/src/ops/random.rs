//! Random numbers from keys.

use std::borrow::Cow;

use nxla_runtime::graph::build::{Choice, Covariance, Draw, check_integer_range};
use nxla_runtime::graph::{ExprId, Graph};
use nxla_runtime::{DType, Error, Number};
use pyo3::prelude::*;

use super::add_functions;
use super::args::{Axis, NamesArg, ShapeArg};
use crate::apply::{Ids, apply, apply_parts, many, number_tensor, one};
use crate::dtype::DTypeArg;
use crate::errors::{OrRaise, argument_error};
use crate::operands::{Operands, Role};
use crate::value::{FromPython, Value, is_numpy_scalar, number_of};

type Parts = Vec<Py<PyAny>>;

/// The key of a seed.
#[pyfunction]
fn random_key(seed: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(seed, "key")?;
    apply(seed.py(), "key", &[operand], |graph, ids| one(graph.random_key(ids[0])))
}

/// Several keys from one.
#[pyfunction]
fn random_split(key: &Bound<'_, PyAny>, parts: usize) -> PyResult<Py<PyAny>> {
    let operand = Value::of(key, "split")?;
    apply(key.py(), "split", &[operand], |graph, ids| one(graph.random_split(ids[0], parts)))
}

/// A key for each integer.
#[pyfunction]
fn random_fold_in(key: &Bound<'_, PyAny>, data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    // An integer must not adapt to the dtype of the key, because it may be negative.
    let data = alone(Value::of(data, "fold_in")?)?;
    let operands = [Value::of(key, "fold_in")?, data];
    apply(key.py(), "fold_in", &operands, |graph, ids| one(graph.random_fold_in(ids[0], ids[1])))
}

/// A scalar as a tensor with its default dtype.
fn alone(value: Value) -> PyResult<Value> {
    let Value::Number(number) = value else { return Ok(value) };
    number_tensor(number, None).map(Value::Tensor).or_raise()
}

/// A key and the parameters of a distribution. Python scalars take the promoted dtype of the
/// parameters, or the dtype of the samples if the parameters are integers and the scalar is a
/// float.
fn key_and_parameters(
    name: &str,
    key: &Bound<'_, PyAny>,
    parameters: &[Bound<'_, PyAny>],
    drawn: Option<DType>,
) -> PyResult<Vec<Value>> {
    let mut operands = Operands::default();
    for parameter in parameters {
        operands.push(parameter, name, Role::Free)?;
    }
    let values = operands.values()?;
    let common = nxla_runtime::common_dtype(&values);
    let typed = |value| match common {
        Some(common) => nxla_runtime::try_element(&value, common).or_raise(),
        None => Ok(nxla_runtime::parameter(&value, drawn)),
    };
    let key = std::iter::once(Value::of(key, name));
    key.chain(values.into_iter().map(typed)).collect()
}

/// A function that draws from a distribution.
pub(super) struct Drawing {
    /// The name of the function, for its errors.
    pub(super) function: Cow<'static, str>,
    /// True if the function splits its key and returns the second half.
    advance: bool,
}

impl Drawing {
    /// Creates the function of a distribution. A function that does not split its key has the
    /// ending `_split`, since its key has been split.
    pub(super) fn new(distribution: &'static str, advance: bool) -> Self {
        let function =
            if advance { distribution.into() } else { format!("{distribution}_split").into() };
        Self { function, advance }
    }

    /// Draws with a key, the first operand.
    pub(super) fn run<E>(
        &self,
        py: Python<'_>,
        operands: &[Value],
        build: impl FnOnce(&mut Graph, ExprId, &[ExprId]) -> Result<ExprId, E>,
    ) -> PyResult<Parts>
    where
        Error: From<E>,
    {
        apply_parts(py, &self.function, operands, |graph, ids| {
            if !self.advance {
                return Ok(Ids::from_slice(&[build(graph, ids[0], &ids[1..])?]));
            }
            let (next, key) = graph.random_next(ids[0])?;
            Ok(Ids::from_slice(&[build(graph, key, &ids[1..])?, next]))
        })
    }
}

/// Draws with the arguments that all distributions share.
fn draw_of(shape: ShapeArg, dtype: Option<DTypeArg>, names: Option<NamesArg>) -> Draw {
    let names = names.and_then(|names| names.names());
    Draw { shape: shape.0, dtype: dtype.map(|dtype| dtype.0), names }
}

/// A check of two parameters and the dtype of the result.
type Check = fn(&Bound<'_, PyAny>, &Bound<'_, PyAny>, Option<DType>) -> PyResult<()>;

/// Accepts any two parameters.
const ANY: Check = |_, _, _| Ok(());

/// Rejects scalar bounds with an empty range, or outside of the dtype, to which they are converted
/// before the draw. Other bounds are not read here.
const BETWEEN: Check = |low, high, dtype| match (integer_of(low)?, integer_of(high)?) {
    (Some(low), Some(high)) => check_integer_range(low, high, dtype)
        .map_err(|(argument, why)| argument_error("randint", format!("{argument}: {why}"))),
    _ => Ok(()),
};

/// Rejects plain bounds in descending order.
const ORDERED: Check = |low, high, _| match (float_of(low)?, float_of(high)?) {
    (Some(low), Some(high)) if low > high => {
        let why = format!("high: must be at least low = {low}; got {high}");
        Err(argument_error("uniform", why))
    }
    _ => Ok(()),
};

/// Returns the value of a NumPy scalar, `None` for arrays and for values of another type.
fn scalar_of<'py, T: FromPyObjectOwned<'py>>(value: &Bound<'py, PyAny>) -> PyResult<Option<T>> {
    let is_scalar = is_numpy_scalar(value)? && value.getattr("ndim")?.eq(0)?;
    Ok(if is_scalar { value.extract().ok() } else { None })
}

/// Returns an integer of Python or NumPy, `None` for other values.
fn integer_of(value: &Bound<'_, PyAny>) -> PyResult<Option<i128>> {
    match number_of(value)? {
        Some(Number::Int(number)) => Ok(Some(number)),
        Some(_) => Ok(None),
        None => scalar_of(value),
    }
}

/// Returns a real number of Python or NumPy, `None` for other values.
fn float_of(value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    match number_of(value)? {
        Some(Number::Float(number)) => Ok(Some(number)),
        Some(Number::Int(number)) => Ok(Some(number as f64)),
        Some(Number::LargeInt(number)) => Ok(Some(number)),
        Some(_) => Ok(None),
        None => scalar_of(value),
    }
}

macro_rules! distributions {
    ($($(#[$doc:meta])* $function:ident as $name:literal ($first:ident, $second:ident) $check:expr;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            fn $function(
                key: &Bound<'_, PyAny>,
                $first: &Bound<'_, PyAny>,
                $second: &Bound<'_, PyAny>,
                shape: ShapeArg,
                dtype: Option<DTypeArg>,
                names: Option<NamesArg>,
                advance: bool,
            ) -> PyResult<Parts> {
                let attributes = draw_of(shape, dtype, names);
                let check: Check = $check;
                check($first, $second, attributes.dtype)?;
                let parameters = [$first.clone(), $second.clone()];
                let drawing = Drawing::new($name, advance);
                let function = &drawing.function;
                let operands = key_and_parameters(function, key, &parameters, attributes.dtype)?;
                drawing.run(key.py(), &operands, |graph, key, ids| {
                    graph.$function(key, ids[0], ids[1], &attributes)
                })
            }
        )*
    };
}

distributions! {
    /// Uniform floats between two bounds.
    random_uniform as "uniform" (low, high) ORDERED;
    /// Normal floats.
    random_normal as "normal" (mean, deviation) ANY;
    /// Uniform integers between two bounds.
    random_integers as "randint" (low, high) BETWEEN;
}

/// Gumbel floats.
#[pyfunction]
fn random_gumbel(
    key: &Bound<'_, PyAny>,
    shape: ShapeArg,
    dtype: Option<DTypeArg>,
    names: Option<NamesArg>,
    advance: bool,
) -> PyResult<Parts> {
    let drawing = Drawing::new("gumbel", advance);
    let operand = Value::of(key, &drawing.function)?;
    let attributes = draw_of(shape, dtype, names);
    drawing.run(key.py(), &[operand], |graph, key, _| graph.random_gumbel(key, &attributes))
}

/// Multivariate normal vectors.
#[pyfunction]
fn random_multivariate_normal(
    key: &Bound<'_, PyAny>,
    mean: &Bound<'_, PyAny>,
    covariance: &Bound<'_, PyAny>,
    method: &str,
    shape: ShapeArg,
    dtype: Option<DTypeArg>,
    names: Option<NamesArg>,
    advance: bool,
) -> PyResult<Parts> {
    let drawing = Drawing::new("multivariate_normal", advance);
    let name = &*drawing.function;
    let method = match method {
        "cholesky" => Covariance::Cholesky,
        "eigh" => Covariance::Eigh,
        "svd" => Covariance::Svd,
        other => {
            let why = format!("method: must be \"cholesky\", \"eigh\" or \"svd\"; got {other:?}");
            return Err(argument_error(name, why));
        }
    };
    let operands = [Value::of(key, name)?, Value::of(mean, name)?, Value::of(covariance, name)?];
    let attributes = draw_of(shape, dtype, names);
    drawing.run(key.py(), &operands, |graph, key, ids| {
        graph.random_multivariate_normal(key, ids[0], ids[1], method, &attributes)
    })
}

/// A tensor with entries in another order, and the next key.
#[pyfunction]
fn random_shuffle(
    function: &str,
    key: &Bound<'_, PyAny>,
    x: &Bound<'_, PyAny>,
    axis: Axis,
    independent: bool,
) -> PyResult<Parts> {
    let operands = [Value::of(key, function)?, Value::of(x, function)?];
    apply_parts(key.py(), function, &operands, |graph, ids| {
        let axis = axis.of(graph, ids[1])?;
        many(graph.random_shuffle(ids[0], ids[1], axis, independent).map(<[ExprId; 2]>::from))
    })
}

/// Samples of a tensor, and the next key.
#[pyfunction]
fn random_choice(
    key: &Bound<'_, PyAny>,
    x: &Bound<'_, PyAny>,
    p: Option<&Bound<'_, PyAny>>,
    samples: usize,
    axis: Option<Axis>,
    replace: bool,
) -> PyResult<Parts> {
    let mut operands = vec![Value::of(key, "choice")?, Value::of(x, "choice")?];
    if let Some(p) = p {
        operands.push(Value::of(p, "choice")?);
    }
    apply_parts(key.py(), "choice", &operands, |graph, ids| {
        let axis = axis.as_ref().map(|axis| axis.of(graph, ids[1])).transpose()?;
        let choice = Choice { samples, axis, replace };
        let p = ids.get(2).copied();
        many(graph.random_choice(ids[0], ids[1], p, choice).map(<[ExprId; 2]>::from))
    })
}

/// Draws from a distribution with one or two parameters.
type Draws = fn(&mut Graph, ExprId, &[ExprId], &Draw) -> nxla_runtime::graph::Result<ExprId>;

/// The public name of a distribution, and its function.
fn distribution(name: &str) -> PyResult<(&'static str, Draws)> {
    Ok(match name {
        "bernoulli" => ("bernoulli", |graph, key, p, draw| graph.random_bernoulli(key, p[0], draw)),
        "exponential" => {
            ("exponential", |graph, key, p, draw| graph.random_exponential(key, p[0], draw))
        }
        "gamma" => ("gamma", |graph, key, p, draw| graph.random_gamma(key, p[0], draw)),
        "poisson" => ("poisson", |graph, key, p, draw| graph.random_poisson(key, p[0], draw)),
        "dirichlet" => ("dirichlet", |graph, key, p, draw| graph.random_dirichlet(key, p[0], draw)),
        "laplace" => ("laplace", |graph, key, p, draw| graph.random_laplace(key, p[0], p[1], draw)),
        "beta" => ("beta", |graph, key, p, draw| graph.random_beta(key, p[0], p[1], draw)),
        "truncated_normal" => ("truncated_normal", |graph, key, p, draw| {
            graph.random_truncated_normal(key, p[0], p[1], draw)
        }),
        other => {
            return Err(argument_error("random", format!("distribution: unknown name {other:?}")));
        }
    })
}

/// Draws from a distribution.
#[pyfunction]
fn random_from(
    py: Python<'_>,
    name: &str,
    key: &Bound<'_, PyAny>,
    parameters: Vec<Bound<'_, PyAny>>,
    shape: ShapeArg,
    dtype: Option<DTypeArg>,
    names: Option<NamesArg>,
    advance: bool,
) -> PyResult<Parts> {
    let (name, draws) = distribution(name)?;
    let attributes = draw_of(shape, dtype, names);
    let drawing = Drawing::new(name, advance);
    let function = &drawing.function;
    let operands = key_and_parameters(function, key, &parameters, attributes.dtype)?;
    drawing.run(py, &operands, |graph, key, ids| draws(graph, key, ids, &attributes))
}

/// Categories by their logits.
#[pyfunction]
fn random_categorical(
    key: &Bound<'_, PyAny>,
    logits: &Bound<'_, PyAny>,
    axis: Axis,
    shape: ShapeArg,
    dtype: Option<DTypeArg>,
    names: Option<NamesArg>,
    advance: bool,
) -> PyResult<Parts> {
    let drawing = Drawing::new("categorical", advance);
    let name = &*drawing.function;
    let logits = alone(Value::of(logits, name)?)?;
    let operands = [Value::of(key, name)?, logits];
    let attributes = draw_of(shape, dtype, names);
    drawing.run(key.py(), &operands, |graph, key, ids| {
        let axis = axis.of(graph, ids[0])?;
        Ok::<_, Error>(graph.random_categorical(key, ids[0], axis, &attributes)?)
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_functions!(
        module: random_key, random_split, random_fold_in, random_uniform, random_normal,
        random_integers, random_gumbel, random_multivariate_normal, random_shuffle, random_choice,
        random_from, random_categorical,
    );
    Ok(())
}

//! Application of an operation to operands: in the trace of the operands, or eagerly.
//!
//! Every function on tensors calls a builder, which creates nodes of a graph from the nodes of the
//! operands. If an operand is traced, the builder adds nodes to the trace of the operand. Otherwise
//! the operation runs [eagerly](crate::EagerOp).

use nxla_expr::{ErrorKind, ExprId, Graph};
use nxla_tensor::{DType, Number, NumberError, Scalar, promote_keep_pred};
use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::operand::{Operand, Value, View, position};
use crate::tensor::RawTensor;
use crate::trace::Trace;
use crate::vectors::control::Vectorized;
use crate::vectors::{VectorAxes, per_entry};

/// Nodes of operands or results; most operations have few.
pub type Ids = SmallVec<[ExprId; 4]>;

/// A builder: a function of a graph and the nodes of operands, which is called once. It is a trait
/// object, so that the code around it is compiled once instead of for every operation.
pub type Build<'a> = dyn FnMut(&mut Graph, &[ExprId]) -> Result<Ids> + 'a;

/// Returns a function that may be called once as a [`Build`].
///
/// # Panics
/// If the returned function is called twice.
pub fn called_once<'a>(
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Ids> + 'a,
) -> impl FnMut(&mut Graph, &[ExprId]) -> Result<Ids> + 'a {
    let mut build = Some(build);
    move |graph, ids| build.take().expect("a builder is called once")(graph, ids)
}

/// The trace that the traced ones among the operands belong to.
///
/// # Errors
/// Returns an error for values of two traces.
pub fn trace_of<O: Operand>(operands: &[O]) -> Result<Option<Trace>> {
    let mut found: Option<&Trace> = None;
    for operand in operands {
        let View::Expr(expr) = operand.view() else { continue };
        match found {
            None => found = Some(expr.trace()),
            Some(trace) if trace.is(expr.trace()) => {}
            Some(_) => {
                let why = "values of two traces are combined; pass one of them as an argument of \
                           the traced function instead";
                return Err(Error::Expr(ErrorKind::Trace(why.into()).of("trace")));
            }
        }
    }
    Ok(found.cloned())
}

/// The data among operands as nodes of a trace.
#[derive(Default, Debug)]
pub struct CapturedOperands(SmallVec<[ExprId; 2]>);

impl CapturedOperands {
    /// Adds the data among the operands to a trace. The data may be on a device, so it is read before
    /// the graph is locked.
    ///
    /// # Errors
    /// Returns an error if the trace has finished, or if data on a device cannot be read.
    #[inline]
    pub fn of<O: Operand>(trace: &Trace, operands: &[O]) -> Result<Self> {
        let mut nodes = SmallVec::new();
        for operand in operands {
            if let View::Tensor(tensor) = operand.view() {
                nodes.push(trace.capture(tensor)?.id()?);
            }
        }
        Ok(Self(nodes))
    }

    /// Returns the nodes of the operands in the graph of their trace. A weak scalar takes the common
    /// dtype of the other operands if its kind allows.
    ///
    /// # Errors
    /// Returns an error for a value of another trace, or a number that fits no dtype.
    pub fn nodes<O: Operand>(
        &self,
        graph: &mut Graph,
        trace: &Trace,
        operands: &[O],
    ) -> Result<Ids> {
        let mut captured = self.0.iter().copied();
        let (mut nodes, mut has_numbers, mut common) = (Ids::new(), false, None);
        for operand in operands {
            let id = match operand.view() {
                View::Expr(expr) => trace.id(expr).map_err(|error| error.used_at(graph))?,
                View::Tensor(_) => captured.next().expect("all data has been captured"),
                View::Number(_) => {
                    has_numbers = true;
                    // A number is converted last, because its dtype depends on the other operands;
                    // this entry is a placeholder.
                    nodes.push(ExprId::from_index(0));
                    continue;
                }
            };
            common = promote_common(common, graph.dtype(id));
            nodes.push(id);
        }
        if has_numbers {
            for (operand, id) in operands.iter().zip(&mut nodes) {
                let View::Number(number) = operand.view() else { continue };
                *id = graph.weak_constant(number, common)?;
            }
        }
        Ok(nodes)
    }
}

/// The nodes of operands; see [`CapturedOperands`].
///
/// # Errors
/// Returns the errors of [`CapturedOperands::of`] and [`CapturedOperands::nodes`].
pub fn resolve<O: Operand>(trace: &Trace, operands: &[O]) -> Result<Ids> {
    let captured = CapturedOperands::of(trace, operands)?;
    trace.build(|graph| captured.nodes(graph, trace, operands))
}

/// Calls `build` with the nodes of the operands. If an operand is vectorized, `build` describes one
/// entry, and the results have the vectorized axes of all operands. In a trace, entries that do not
/// enter the current region get safe values.
///
/// # Errors
/// Returns an error of `build`, or an error for vectorized axes of equal names and different sizes.
pub fn build_entries<O: Operand>(
    graph: &mut Graph,
    trace: Option<&Trace>,
    (operands, ids): (&[O], &[ExprId]),
    build: &mut Build<'_>,
    vectors: &mut VectorAxes,
) -> Result<Ids> {
    if operands.iter().all(|operand| operand.view().vectors().is_empty()) {
        return build(graph, ids);
    }
    let values = vectorized_operands(graph, trace, (operands, ids))?;
    let (ids, found) = per_entry(graph, &values, build)?;
    *vectors = found;
    Ok(ids)
}

/// Returns the nodes of operands with their vectorized axes. In a trace, entries that do not enter the
/// current region get safe values.
///
/// # Errors
/// Returns an error if the safe values cannot be built.
pub fn vectorized_operands<O: Operand>(
    graph: &mut Graph,
    trace: Option<&Trace>,
    (operands, ids): (&[O], &[ExprId]),
) -> Result<SmallVec<[Vectorized; 4]>> {
    let own = operands.iter().map(|operand| operand.view().vectors().clone());
    let mut values: SmallVec<[Vectorized; 4]> = ids.iter().copied().zip(own).collect();
    if let Some(trace) = trace {
        for (value, operand) in values.iter_mut().zip(operands) {
            let is_data = matches!(operand.view(), View::Tensor(_));
            *value = trace.mask_entries(graph, value.clone(), is_data)?;
        }
    }
    Ok(values)
}

/// The alternatives of a choice. A weak scalar becomes a tensor of the dtype that it has in
/// combination with the other alternative.
///
/// # Errors
/// Returns an error for a number that fits no dtype, and for two integers that share no dtype.
pub fn either([left, right]: [Value; 2]) -> Result<[Value; 2]> {
    let mut dtypes = [left.dtype(), right.dtype()];
    if let (Value::Number(Number::Int(left)), Value::Number(Number::Int(right))) = (&left, &right)
        && left.max(right) > &i64::MAX.into()
    {
        // The default dtypes of the integers promote to `s64`, in which the large integer wraps.
        if left.min(right) < &0 {
            let why = format!(
                "negative integers and integers above 2**63 - 1 share no integer dtype; got {left} \
                 and {right}; pass a float"
            );
            return Err(Error::Arguments { function: "select".into(), why });
        }
        dtypes = [Some(DType::U64); 2];
    }
    let [left_dtype, right_dtype] = dtypes;
    let typed = |value, common| match value {
        Value::Number(number) => number_tensor(number, common).map(Value::Tensor),
        Value::Expr(_) | Value::Tensor(_) => Ok(value),
    };
    Ok([typed(left, right_dtype)?, typed(right, left_dtype)?])
}

/// Converts a weak scalar to a tensor, for combination with the dtype `common` or alone; see
/// [`Number::weak_scalar`].
///
/// # Errors
/// Returns an error if the number fits no dtype.
pub fn number_tensor(number: Number, common: Option<DType>) -> Result<RawTensor> {
    let (scalar, dtype) = number_scalar(number, common)?;
    Ok(RawTensor::scalar(scalar, dtype))
}

/// Converts a weak scalar to a scalar of a dtype, as [`number_tensor`] does.
///
/// # Errors
/// Returns an error if the number fits no dtype.
pub(crate) fn number_scalar(number: Number, common: Option<DType>) -> Result<(Scalar, DType)> {
    let refused =
        |error: NumberError| Error::Number { function: "number".into(), error: Box::new(error) };
    number.weak_scalar(common).map_err(refused)
}

/// Returns the promoted dtype of all operands except weak scalars, with which the weak scalars are
/// combined; `None` if all operands are weak scalars.
pub fn common_dtype<O: Operand>(operands: &[O]) -> Option<DType> {
    operands.iter().fold(None, |common, operand| match operand.view() {
        View::Expr(expr) => promote_common(common, expr.dtype()),
        View::Tensor(tensor) => promote_common(common, tensor.dtype()),
        View::Number(_) => common,
    })
}

fn promote_common(common: Option<DType>, dtype: DType) -> Option<DType> {
    Some(common.map_or(dtype, |common| promote_keep_pred(common, dtype)))
}

/// Converts an operand that replaces elements of a dtype or is combined with them. A weak scalar is
/// converted to the dtype of the elements if it fits; other operands keep their dtype.
///
/// # Errors
/// Returns an error for a number that fits no dtype.
pub fn try_element(operand: &impl Operand, dtype: DType) -> Result<Value> {
    match operand.to_value() {
        Value::Number(number) => number_tensor(number, Some(dtype)).map(Value::Tensor),
        value @ (Value::Expr(_) | Value::Tensor(_)) => Ok(value),
    }
}

/// Like [`try_element`], but an error for a number that fits no dtype is reported when the value is used.
pub fn element(operand: &impl Operand, dtype: DType) -> Value {
    try_element(operand, dtype).unwrap_or_else(|_| operand.to_value())
}

/// Converts a parameter of a distribution. A weak float takes the dtype of the samples if that is a
/// float dtype; other weak scalars take their default dtype.
pub fn parameter(operand: &impl Operand, drawn: Option<DType>) -> Value {
    let drawn = drawn.filter(|dtype| dtype.is_float() || dtype.is_complex());
    match (operand.view(), drawn) {
        (View::Number(Number::Float(_) | Number::Complex(..)), Some(dtype)) => {
            element(operand, dtype)
        }
        _ => position(operand),
    }
}

/// A weak scalar in a comparison with operands that promote to `common`. Comparisons are exact for
/// integers of any size; see [`Number::for_comparison`].
pub fn comparison_scalar(number: Number, common: Option<DType>) -> Value {
    let (scalar, dtype) = number.for_comparison(common);
    Value::Tensor(RawTensor::scalar(scalar, dtype))
}

/// An operand of a comparison with elements of a dtype; see [`comparison_scalar`].
pub fn compared_with(operand: &impl Operand, dtype: DType) -> Value {
    match operand.to_value() {
        Value::Number(number) => comparison_scalar(number, Some(dtype)),
        value @ (Value::Expr(_) | Value::Tensor(_)) => value,
    }
}

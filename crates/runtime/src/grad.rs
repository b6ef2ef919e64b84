//! Gradients: one value differentiated for many.

use nxla_expr::rewrite::Substitution;
use nxla_tensor::DType;

use crate::error::{Error, Result};
use crate::expr::RawExpr;
use crate::trace::Trace;
use crate::tracers::Tracers;

/// The results of a function that is differentiated.
#[derive(Debug)]
pub struct Differentiated<T> {
    /// The value to differentiate.
    pub value: RawExpr,
    /// The results, which may contain the value.
    pub results: Vec<RawExpr>,
    /// Additional values for the caller.
    pub more: T,
}

/// Calls a function on tracers for values of a trace. Returns the results, the gradients of the sum of
/// the function's value with respect to the values in order, and the additional values of the function.
///
/// Captured values are constant, even if they were computed from the same values. The function is
/// called again if its value has vectorized axes that the values lack, because each entry then has a
/// separate gradient.
///
/// # Errors
/// Returns errors of the function, and an error for values or results of another trace, an op
/// without a derivative, or a complex result of real values.
pub fn values_and_gradients<T>(
    trace: &Trace,
    values: &[impl AsRef<RawExpr>],
    mut function: impl FnMut(Vec<RawExpr>) -> Result<Differentiated<T>>,
) -> Result<(Vec<RawExpr>, Vec<RawExpr>, T)> {
    let (tracers, value, (results, more)) =
        Tracers::begin("grad", trace, values)?.call(None, |tracers| {
            let Differentiated { value, results, more } = function(tracers)?;
            Ok((vec![value], (results, more)))
        })?;
    let (results, gradients) = gradients(tracers, &value[0], &results)?;
    Ok((results, gradients, more))
}

fn gradients(
    tracers: Tracers,
    value: &RawExpr,
    results: &[RawExpr],
) -> Result<(Vec<RawExpr>, Vec<RawExpr>)> {
    let Tracers { trace, values, vectors, scope, .. } = tracers;
    let output = trace.id(value)?;
    trace.build(|graph| {
        let dtype = graph.dtype(output);
        if values.iter().any(|&id| !graph.dtype(id).is_complex()) && dtype.is_complex() {
            Err(complex_result(dtype))
        } else {
            Ok(())
        }
    })?;
    let mut roots = trace.ids(results)?;
    let roots = trace.build(|graph| {
        let (results, gradients) =
            nxla_grad::values_and_gradients(graph, &roots, output, &scope.parameters)?;
        roots = results;
        roots.extend(gradients);
        let mut substitution = Substitution::new();
        for (&tracer, &value) in scope.parameters.iter().zip(&values) {
            substitution.insert(tracer, value);
        }
        Ok::<_, Error>(graph.substitute(&roots, &mut substitution)?)
    })?;
    let all =
        results.iter().map(RawExpr::vectors).chain(std::iter::repeat_n(&vectors, values.len()));
    let exprs = roots.into_iter().zip(all);
    let exprs =
        exprs.map(|(id, vectors)| RawExpr::with_vectors(trace.clone(), id, vectors.clone()));
    let mut exprs: Vec<RawExpr> = exprs.collect();
    let gradients = exprs.split_off(results.len());
    Ok((exprs, gradients))
}

/// A complex result of real values has a derivative along each of its two parts.
fn complex_result(dtype: DType) -> Error {
    let why = format!(
        "the result is {dtype}, but a gradient requires a real result; differentiate its real, \
         imag or abs, or use jvp or vjp, which return derivatives of both parts"
    );
    Error::Arguments { function: "grad".into(), why }
}

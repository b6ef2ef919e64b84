//! Programs as functions of expressions.

use std::panic::Location;

use nxla_expr::{ErrorKind, ExprId, Graph, Program};
use nxla_runtime::{Ids, Trace, VectorAxes, called_once};

use crate::Result;
use crate::apply::build_ids;
use crate::expr::Expr;

/// Adds the nodes of a program to the trace of its arguments, and returns the outputs.
///
/// The program can be a function that was imported, deserialized or changed by a pass. The result is
/// part of the traced function: it can be differentiated, split and compiled. A program for single
/// tensors is applied to each entry of vectorized arguments.
///
/// ```
/// use nxla::{DType, Expr, TensorType, call_program, grad, jit};
///
/// let (sine, _) = jit(|x: Expr| x.sin()).trace(TensorType::scalar(DType::F32))?;
/// let double = move |x: Expr| &call_program(&sine, &[x])[0] * 2;
/// assert_eq!(jit(grad(double)).call(0.0f32)?.item::<f32>()?, 2.0);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// The trace reports an error for arguments of other types than the inputs of the program, or of another
/// trace.
#[track_caller]
#[must_use]
pub fn call_program(program: &Program, arguments: &[Expr]) -> Vec<Expr> {
    let (trace, location) = (&Expr::trace_of(arguments), Location::caller());
    let mut inline = called_once(|graph: &mut Graph, ids: &[ExprId]| {
        check_types(graph, program, ids)?;
        Ok(program.inline(graph, ids)?.into_iter().collect())
    });
    let built = build_ids("call_program", trace, location, arguments, &mut inline);
    results_or_failed(trace, built, program.outputs().len())
}

/// Returns built nodes as expressions, or this number of failed expressions after an error.
pub(crate) fn results_or_failed(
    trace: &Trace,
    built: Option<(Ids, VectorAxes)>,
    count: usize,
) -> Vec<Expr> {
    match built {
        Some((ids, vectors)) => {
            ids.into_iter().map(|id| Expr::of_node(trace.clone(), id, vectors.clone())).collect()
        }
        None => (0..count).map(|_| Expr::new_failed(trace)).collect(),
    }
}

/// Checks the types of arguments; [`Program::inline`] checks their number.
fn check_types(graph: &Graph, program: &Program, arguments: &[ExprId]) -> Result<()> {
    for (position, (&id, expected)) in arguments.iter().zip(program.inputs()).enumerate() {
        let found = graph.tensor_type(id);
        if (found.dtype, &found.shape) != (expected.dtype, &expected.shape) {
            let why = format!("argument {position} must be {expected}; got {found}");
            return Err(graph.error("call_program", ErrorKind::invalid("arguments", why)).into());
        }
    }
    Ok(())
}

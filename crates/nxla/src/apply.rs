//! The implementation of all methods and functions: applying a builder to operands, either in their
//! trace or eagerly.

use std::panic::Location;

use nxla_expr::{ExprId, Graph, Op, Source};
use nxla_runtime::{
    Build, CapturedOperands, EagerOp, Error, Ids, Operand, Result, Trace, VectorAxes, View,
    build_entries, called_once,
};

use crate::expr::Expr;
use crate::tensor::Tensor;

/// The results of a builder: one node or several.
pub(crate) trait Results {
    /// The same structure with expressions or tensors.
    type Of<T>;

    /// Returns the nodes in order.
    fn ids(&self) -> Ids;

    /// Replaces the nodes by values.
    fn rebuild<T>(&self, values: impl Iterator<Item = T>) -> Self::Of<T>;

    /// Returns one value for each result after an error. A list has one value for each operand,
    /// since its length is unknown.
    fn repeat<T>(operands: usize, value: impl FnMut() -> T) -> Self::Of<T>;
}

const ONE_FOR_EACH: &str = "there is one value for each node";

impl Results for ExprId {
    type Of<T> = T;

    fn ids(&self) -> Ids {
        Ids::from_slice(&[*self])
    }

    fn rebuild<T>(&self, mut values: impl Iterator<Item = T>) -> T {
        values.next().expect(ONE_FOR_EACH)
    }

    fn repeat<T>(_: usize, mut value: impl FnMut() -> T) -> T {
        value()
    }
}

impl Results for (ExprId, ExprId) {
    type Of<T> = (T, T);

    fn ids(&self) -> Ids {
        Ids::from_slice(&[self.0, self.1])
    }

    fn rebuild<T>(&self, mut values: impl Iterator<Item = T>) -> (T, T) {
        let first = values.next().expect(ONE_FOR_EACH);
        (first, values.next().expect(ONE_FOR_EACH))
    }

    fn repeat<T>(_: usize, mut value: impl FnMut() -> T) -> (T, T) {
        (value(), value())
    }
}

impl Results for (ExprId, ExprId, ExprId) {
    type Of<T> = (T, T, T);

    fn ids(&self) -> Ids {
        Ids::from_slice(&[self.0, self.1, self.2])
    }

    fn rebuild<T>(&self, mut values: impl Iterator<Item = T>) -> (T, T, T) {
        let mut next = || values.next().expect(ONE_FOR_EACH);
        (next(), next(), next())
    }

    fn repeat<T>(_: usize, mut value: impl FnMut() -> T) -> (T, T, T) {
        (value(), value(), value())
    }
}

impl Results for Vec<ExprId> {
    type Of<T> = Vec<T>;

    fn ids(&self) -> Ids {
        Ids::from_slice(self)
    }

    fn rebuild<T>(&self, values: impl Iterator<Item = T>) -> Vec<T> {
        values.collect()
    }

    fn repeat<T>(operands: usize, value: impl FnMut() -> T) -> Vec<T> {
        std::iter::repeat_with(value).take(operands).collect()
    }
}

/// Calls `use_build` with `build` as a [`Build`], and also returns the results of `build`.
fn build_with_results<R: Results, T>(
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<R>,
    use_build: impl FnOnce(&mut Build<'_>) -> T,
) -> (T, Option<R>) {
    let mut results = None;
    let made =
        use_build(&mut called_once(|graph, ids| Ok(results.insert(build(graph, ids)?).ids())));
    (made, results)
}

/// Builds in a trace. The trace records the first error, which names the function, and reports it
/// when the trace ends.
pub(crate) fn in_trace<O: Operand, R: Results>(
    function: &str,
    trace: &Trace,
    location: &'static Location<'static>,
    operands: &[O],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<R>,
) -> R::Of<Expr> {
    let (traced, results) =
        build_with_results(build, |build| build_ids(function, trace, location, operands, build));
    wrap_results(trace, operands.len(), traced, results)
}

/// Returns the built nodes and their vectorized axes, or `None` after an error.
pub(crate) fn build_ids<O: Operand>(
    function: &str,
    trace: &Trace,
    location: &'static Location<'static>,
    operands: &[O],
    build: &mut Build<'_>,
) -> Option<(Ids, VectorAxes)> {
    let captured = CapturedOperands::of(trace, operands);
    let mut vectors = VectorAxes::NONE;
    let ids = trace.operate(location, |graph| {
        let ids = captured?.nodes(graph, trace, operands)?;
        build_entries(graph, Some(trace), (operands, &ids), build, &mut vectors)
            .map_err(|error| error.in_function(function))
    });
    ids.map(|ids| (ids, vectors))
}

/// Returns nodes as expressions, or failed expressions after an error.
fn wrap_results<R: Results>(
    trace: &Trace,
    operands: usize,
    traced: Option<(Ids, VectorAxes)>,
    results: Option<R>,
) -> R::Of<Expr> {
    let (Some((ids, vectors)), Some(results)) = (traced, results) else {
        return R::repeat(operands, || Expr::new_failed(trace));
    };
    let expr = |id| Expr::of_node(trace.clone(), id, vectors.clone());
    results.rebuild(ids.into_iter().map(expr))
}

/// Builds a program of one operation and runs it. An error has the line of the caller, and an error of
/// the construction names the function.
#[track_caller]
pub(crate) fn run_eagerly<O: Operand, R: Results>(
    function: &str,
    operands: &[O],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<R>,
) -> Result<R::Of<Tensor>> {
    let (tensors, results) = build_with_results(build, |build| run(function, operands, build));
    let location = Location::caller();
    let tensors = tensors.map_err(|error| error.at_location(location))?;
    let tensors = tensors.into_iter().map(Tensor::from);
    Ok(results.expect("it has been built").rebuild(tensors))
}

fn run<O: Operand>(
    function: &str,
    operands: &[O],
    build: &mut Build<'_>,
) -> Result<Vec<nxla_runtime::RawTensor>> {
    refuse_traced(function, operands)?;
    let operation = EagerOp::new(operands, Source::default, build);
    operation.map_err(|error| error.in_function(function))?.run(|| function, None)
}

/// Runs one op of the table. An error has the line of the caller.
#[track_caller]
pub(crate) fn run_op_eagerly<O: Operand>(op: &Op, operands: &[O]) -> Result<Tensor> {
    let run = || {
        refuse_traced(op.name(), operands)?;
        EagerOp::of(op, operands, Source::default)?.run(|| op.name(), None)
    };
    let location = Location::caller();
    let mut results = run().map_err(|error| error.at_location(location))?;
    Ok(results.pop().expect("an op returns one result").into())
}

fn refuse_traced<O: Operand>(function: &str, operands: &[O]) -> Result<()> {
    if operands.iter().any(|operand| matches!(operand.view(), View::Expr(_))) {
        return Err(Error::Usage(format!(
            "{function}: operands of a method of `Tensor` must not be traced; call the method of \
             `Expr`, or convert the tensor by `Expr::of`"
        )));
    }
    Ok(())
}

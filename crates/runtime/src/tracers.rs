//! Tracers for the values that a function is differentiated for.
//!
//! The function is traced on the tracers, so that only its direct use of the values counts: captured
//! values are constant, even if they were computed from the same values.

use std::cell::RefCell;
use std::marker::PhantomData;

use nxla_expr::{ExprId, Mark, Scope, TensorType};
use nxla_tensor::AxisName;

use crate::error::{Error, Result};
use crate::expr::RawExpr;
use crate::trace::Trace;
use crate::vectors::{self, VectorAxes, VectorAxis};

thread_local! {
    /// The functions that are differentiated on this thread, the innermost last: the vectorized axes
    /// that their tracers have because the results have them.
    static CALLS: RefCell<Vec<Vec<AxisName>>> = const { RefCell::new(Vec::new()) };
}

/// Returns the number of derivatives that call functions on this thread, each inside the function
/// of another one: a value of the innermost function is differentiated at most as many times.
pub fn derivative_depth() -> usize {
    CALLS.with_borrow(Vec::len)
}

/// Returns whether tracers have a vectorized axis because the result of a function has the axis. A
/// function that vectorizes its result meets the axis again.
pub(crate) fn is_entry_axis(name: &str) -> bool {
    CALLS.with_borrow(|all| all.iter().flatten().any(|axis| **axis == *name))
}

/// A function that is differentiated, until this value is dropped on the same thread.
struct DerivativeCall(PhantomData<*const ()>);

impl DerivativeCall {
    /// Begins a call on tracers with the vectorized axes `axes`; the values have `of_values`.
    fn begin(axes: &VectorAxes, of_values: &VectorAxes) -> Self {
        let added = axes.iter().filter(|axis| of_values.position(&axis.name).is_none());
        let added = added.map(|axis| axis.name.clone()).collect();
        CALLS.with_borrow_mut(|all| all.push(added));
        Self(PhantomData)
    }
}

impl Drop for DerivativeCall {
    fn drop(&mut self) {
        CALLS.with_borrow_mut(Vec::pop);
    }
}

/// Values, and their tracers while a function is traced.
pub(crate) struct Tracers {
    /// The name of the operation in errors.
    function: &'static str,
    pub(crate) trace: Trace,
    /// The values, with the vectorized axes of all of them.
    pub(crate) values: Vec<ExprId>,
    /// The vectorized axes of every value.
    pub(crate) vectors: VectorAxes,
    /// Before the function.
    pub(crate) mark: Mark,
    pub(crate) scope: Scope,
}

impl Tracers {
    /// Tracers for values of a trace.
    ///
    /// # Errors
    /// Returns an error for values of another trace, or for vectorized axes that do not match.
    pub(crate) fn begin(
        function: &'static str,
        trace: &Trace,
        values: &[impl AsRef<RawExpr>],
    ) -> Result<Self> {
        let values = values.iter().map(|value| trace.safe(value.as_ref()));
        let values = values.collect::<Result<Vec<RawExpr>>>()?;
        let vectors = VectorAxes::union(function, values.iter().map(RawExpr::vectors))?;
        Self::over(function, trace, &values, vectors)
    }

    /// Tracers for values that all get these vectorized axes.
    fn over(
        function: &'static str,
        trace: &Trace,
        values: &[impl AsRef<RawExpr>],
        vectors: VectorAxes,
    ) -> Result<Self> {
        let ids = trace.ids(values)?;
        trace.build(|graph| {
            let mut spread = Vec::with_capacity(ids.len());
            for (&id, value) in ids.iter().zip(values) {
                spread.push(vectors::spread(graph, id, value.as_ref().vectors(), &vectors)?);
            }
            let types: Vec<TensorType> =
                spread.iter().map(|&id| graph.tensor_type(id).clone()).collect();
            let (mark, scope) = (graph.mark(), graph.open_scope(function, &types));
            let trace = trace.clone();
            Ok::<_, Error>(Self { function, trace, values: spread, vectors, mark, scope })
        })
    }

    /// Calls a function on the tracers. Returns its results to differentiate and its further
    /// values. The function is called again, on tracers with an entry for each, if the results have
    /// vectorized axes that the values lack, since each entry then has a separate derivative. Hooks
    /// of the first call are dropped.
    ///
    /// `directions` are the vectorized axes of the tangents, if the tangents are known. Along other
    /// axes, all entries have the same tangents, so the values stay shared.
    ///
    /// # Errors
    /// Returns errors of the function and an error for axes of equal names and different sizes.
    pub(crate) fn call<T>(
        mut self,
        directions: Option<&VectorAxes>,
        mut function: impl FnMut(Vec<RawExpr>) -> Result<(Vec<RawExpr>, T)>,
    ) -> Result<(Self, Vec<RawExpr>, T)> {
        let vectors = self.vectors.clone();
        loop {
            let _call = DerivativeCall::begin(&self.vectors, &vectors);
            let (results, more) = match function(self.add_vectors(&self.scope.parameters)) {
                Ok(answer) => answer,
                Err(error) => {
                    // The caller may catch the error, and then the trace continues.
                    self.trace.edit(|graph| graph.drop_effects(self.mark))?;
                    return Err(error);
                }
            };
            match self.per_entry(&results, directions)? {
                Some(again) => self = again,
                None => return Ok((self, results, more)),
            }
        }
    }

    fn add_vectors(&self, ids: &[ExprId]) -> Vec<RawExpr> {
        let vectorized =
            |&id: &ExprId| RawExpr::with_vectors(self.trace.clone(), id, self.vectors.clone());
        ids.iter().map(vectorized).collect()
    }

    /// The tracers to use instead, with an entry for each of the results.
    fn per_entry(
        &self,
        results: &[RawExpr],
        directions: Option<&VectorAxes>,
    ) -> Result<Option<Self>> {
        let mut separate: Vec<VectorAxes> = vec![self.vectors.clone()];
        match directions {
            None => separate.extend(results.iter().map(|result| result.vectors().clone())),
            Some(directions) => {
                let is_of_result = |axis: &&VectorAxis| {
                    results.iter().any(|result| result.vectors().position(&axis.name).is_some())
                };
                separate.push(VectorAxes::new(directions.iter().filter(is_of_result).cloned()));
            }
        }
        let vectors = VectorAxes::union(self.function, &separate)?;
        if vectors == self.vectors {
            return Ok(None);
        }
        self.trace.edit(|graph| graph.drop_effects(self.mark))?;
        let values = self.add_vectors(&self.values);
        Self::over(self.function, &self.trace, &values, vectors).map(Some)
    }
}

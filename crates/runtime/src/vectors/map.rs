//! A map over one axis of several values, which is vectorized for the function and an ordinary axis of
//! the results.

use std::cell::Cell;
use std::marker::PhantomData;

use nxla_expr::{ExprId, Graph, Op};
use nxla_tensor::normalize_axis;

use super::mistake;
use crate::error::Result;
use crate::expr::RawExpr;

thread_local! {
    /// The depth of nested maps in the traces of this thread. It names their axes, so that equal
    /// functions have equal traces.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Calls a function once for all entries along one axis of each value. The values are vectorized for
/// the call, and the results have the mapped axis at `out_axis`. All entries share a value without an
/// axis. Returns the results and the additional values of the function. Errors for an axis that does
/// not exist start with one of `names`, the names of `axes` and `out_axis` in the caller's interface.
///
/// # Errors
/// Returns errors of the function, and errors for no axis at all, for an axis that a value or a result
/// does not have, and for axes of different sizes.
pub fn map_entries<T>(
    values: &[RawExpr],
    axes: &[Option<i64>],
    out_axis: i64,
    names: [&str; 2],
    function: impl FnOnce(Vec<RawExpr>) -> Result<(Vec<RawExpr>, T)>,
) -> Result<(Vec<RawExpr>, T)> {
    let (mapping, entries) = Mapping::begin(values, axes, names[0])?;
    let (results, more) = function(entries)?;
    let results = results.iter().map(|result| mapping.collect(result, out_axis, names[1]));
    Ok((results.collect::<Result<_>>()?, more))
}

/// A map over an axis while its function is being traced; the next one inside it has another axis.
struct Mapping {
    name: String,
    size: usize,
    /// The depth belongs to the thread.
    not_send: PhantomData<*const ()>,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

impl Mapping {
    /// Vectorizes the values for the call of the function.
    fn begin(
        values: &[RawExpr],
        axes: &[Option<i64>],
        argument: &str,
    ) -> Result<(Self, Vec<RawExpr>)> {
        let name = format!("vmap:{}", DEPTH.get());
        let mut size = None;
        let mut entries = Vec::with_capacity(values.len());
        for (value, axis) in values.iter().zip(axes) {
            let Some(axis) = axis else {
                entries.push(value.clone());
                continue;
            };
            let value = &value.trace().safe(value)?;
            let from = position(value, *axis, argument)?;
            let found = value.shape()[from];
            let expected = *size.get_or_insert(found);
            if found != expected {
                let why = format!(
                    "mapped axes must have equal sizes; axis {axis} of {} has {found} elements, \
                     an earlier axis has {expected}",
                    value.ty()
                );
                return Err(mistake("vmap", why));
            }
            entries.push(move_entry_axis(value, from, 0)?.vectorize(&[name.as_str().into()])?);
        }
        let Some(size) = size else {
            return Err(mistake("vmap", "no argument is mapped"));
        };
        DEPTH.set(DEPTH.get() + 1);
        Ok((Self { name, size, not_send: PhantomData }, entries))
    }

    /// A result with the axis of the map as an ordinary one, at a position counted in the result.
    fn collect(&self, result: &RawExpr, axis: i64, argument: &str) -> Result<RawExpr> {
        let result = result.devectorize_axis(&self.name, self.size)?;
        let to = position(&result, axis, argument)?;
        move_entry_axis(&result, 0, to)
    }
}

fn position(value: &RawExpr, axis: i64, argument: &str) -> Result<usize> {
    normalize_axis(axis, value.shape().rank()).map_err(|_| {
        let why = format!("{argument}: must be in range for {}; got {axis}", value.ty());
        mistake("vmap", why)
    })
}

/// Returns the value with an axis of its entries at another position.
fn move_entry_axis(value: &RawExpr, from: usize, to: usize) -> Result<RawExpr> {
    let (trace, vectors) = (value.trace(), value.vectors().clone());
    let node = value.id()?;
    let id = trace.build(|graph: &mut Graph| -> Result<ExprId> {
        let rank = graph.shape(node).rank();
        let mut order: Vec<usize> =
            (0..rank).filter(|&axis| axis != from + vectors.len()).collect();
        order.insert(to + vectors.len(), from + vectors.len());
        Ok(graph.make(Op::Transpose(order.into()), &[node])?)
    })?;
    Ok(RawExpr::with_vectors(trace.clone(), id, vectors))
}

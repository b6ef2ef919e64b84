//! One axis of several values mapped over: vectorized on the way in, an ordinary axis on the way out.

use std::cell::Cell;

use nxla_expr::{ErrorKind, ExprId, Graph, Op};
use nxla_tensor::normalize_axis;

use super::mistake;
use crate::error::Result;
use crate::expr::Expr;

thread_local! {
    /// How many maps are being traced inside each other on this thread. Their axes are told apart
    /// by it, so that equal functions trace equally.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A map over an axis while its function is being traced; the next one inside it has another axis.
#[derive(Debug)]
pub struct Mapping {
    name: String,
    size: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

impl Mapping {
    /// Begins a map over one axis of each value; a value without an axis is shared by all entries.
    /// Gives what the function is to be called with.
    ///
    /// # Errors
    /// No axis at all; an axis that a value does not have; axes of different sizes.
    pub fn begin(values: &[Expr], axes: &[Option<i64>]) -> Result<(Self, Vec<Expr>)> {
        let name = format!("vmap:{}", DEPTH.get());
        let mut size = None;
        let mut entries = Vec::with_capacity(values.len());
        for (value, axis) in values.iter().zip(axes) {
            let Some(axis) = axis else {
                entries.push(value.clone());
                continue;
            };
            let from = position(value, *axis)?;
            let found = value.shape()[from];
            let expected = *size.get_or_insert(found);
            if found != expected {
                let why = format!(
                    "axis {axis} of {} has size {found}, that of a value before {expected}",
                    value.ty()
                );
                return Err(mistake("vmap", why));
            }
            entries.push(moved(value, from, 0)?.vectorize(&[name.as_str().into()])?);
        }
        let Some(size) = size else {
            return Err(mistake("vmap", "the argument has no value to map over"));
        };
        DEPTH.set(DEPTH.get() + 1);
        Ok((Self { name, size }, entries))
    }

    /// A result with the axis of the map as an ordinary one, at a position counted in the result.
    ///
    /// # Errors
    /// A position beyond the result.
    pub fn collect(&self, result: &Expr, axis: i64) -> Result<Expr> {
        let result = result.devectorize_axis(&self.name, self.size)?;
        let to = position(&result, axis)?;
        moved(&result, 0, to)
    }
}

fn position(value: &Expr, axis: i64) -> Result<usize> {
    normalize_axis(axis, value.shape().rank())
        .map_err(|_| ErrorKind::Axis { axis, ty: Box::new(value.ty()) }.of("vmap").into())
}

/// The value with an axis of its entries in another place.
fn moved(value: &Expr, from: usize, to: usize) -> Result<Expr> {
    let (trace, vectors) = (value.trace(), value.vectors().clone());
    let id = trace.build(|graph: &mut Graph| -> Result<ExprId> {
        let rank = graph.shape(value.id()).rank();
        let mut order: Vec<usize> =
            (0..rank).filter(|&axis| axis != from + vectors.len()).collect();
        order.insert(to + vectors.len(), from + vectors.len());
        Ok(graph.make(Op::Transpose(order.into()), &[value.id()])?)
    })?;
    Ok(Expr::with_vectors(trace.clone(), id, vectors))
}

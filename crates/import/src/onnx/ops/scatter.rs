//! Scatters.

use nxla_expr::ExprId;
use nxla_expr::build::{Combine, Update};
use nxla_tensor::{DType, Shape};

use super::index::{coordinates, coordinates_along, element_coordinates};
use super::{Operator, operator};
use crate::numbers::to_f64;
use crate::onnx::error::{Built, invalid};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("Scatter", scatter_elements),
    operator("ScatterElements", scatter_elements),
    operator("ScatterND", scatter_nd),
    operator("TensorScatter", tensor_scatter),
];

fn update_of(call: &Call<'_, '_, '_>) -> Built<Update> {
    Ok(match call.text("reduction", "none")?.as_str() {
        "none" => Update::Set,
        "add" => Update::Add,
        "mul" => Update::Combine(Combine::Multiply),
        "max" => Update::Combine(Combine::Max),
        "min" => Update::Combine(Combine::Min),
        other => {
            let names = "none, add, mul, max or min";
            return invalid(format!("reduction: must be {names}; got {other:?}"));
        }
    })
}

fn scatter_elements(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, indices, updates] = call.inputs()?;
    let update = update_of(call)?;
    let items = element_coordinates(call, x, indices)?;
    Ok(vec![call.graph().subscript_update(x, &items, updates, update)?])
}

fn scatter_nd(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [x, indices, updates] = call.inputs()?;
    let update = update_of(call)?;
    let items = coordinates(call, x, indices, 0)?;
    Ok(vec![call.graph().subscript_update(x, &items, updates, update)?])
}

/// Writes the new entries of a cache, from an index for each entry of the batch on.
fn tensor_scatter(call: &mut Call<'_, '_, '_>) -> Built<Vec<ExprId>> {
    let [past, update] = call.inputs()?;
    let shape = call.shape(past);
    let axis = call.axis(call.int("axis", -2)?, shape.rank())?;
    if axis == 0 {
        return invalid("axis: must not be the batch");
    }
    let is_circular = call.text("mode", "linear")? == "circular";
    let new: Shape = call.shape(update);
    if new.rank() != shape.rank() {
        let (past, update) = (call.ty(past), call.ty(update));
        return invalid(format!("update: must have the rank of {past}; got {update}"));
    }
    let starts = match call.optional(2) {
        Some(starts) => starts,
        None => {
            let zero = call.scalar_of(0.0, DType::S64)?;
            call.broadcast(zero, &[shape[0]])?
        }
    };
    let size = call.scalar_of(to_f64(shape[axis]), DType::S64)?;
    let graph = call.graph();
    let starts = graph.as_type(starts, DType::S64)?;
    let starts = graph.reshape(starts, [shape[0], 1])?;
    let steps = graph.iota([shape[0], new[axis]], Some(1), DType::S64)?;
    let mut places = graph.add(starts, steps)?;
    if is_circular {
        places = graph.floor_remainder(places, size)?;
    }
    let mut aligned = vec![1; shape.rank()];
    (aligned[0], aligned[axis]) = (shape[0], new[axis]);
    let places = graph.reshape(places, aligned)?;
    let places = graph.broadcast(places, new.clone(), None)?;
    let items = coordinates_along(graph, &new, axis, places)?;
    Ok(vec![graph.subscript_update(past, &items, update, Update::Set)?])
}
